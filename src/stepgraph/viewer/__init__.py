"""Look into results: search in them, and show them in a browser."""
