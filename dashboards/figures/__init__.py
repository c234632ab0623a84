"""Figures as plain values: from a view of the service to what Plotly draws. Pure, tested without a browser."""
