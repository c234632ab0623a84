"""Parts of pages: markup only, no reading."""
