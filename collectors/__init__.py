"""From an engine's text to readings: pure readers, and the scraping and tailing around them."""
