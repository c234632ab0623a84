"""The pages that people look at: Dash on the service's one FastAPI object. Reads through service/ only."""
