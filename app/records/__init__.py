"""Results of single requests that others post, and the categories that requests fall into."""
