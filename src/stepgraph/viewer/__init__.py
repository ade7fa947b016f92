"""Search in results, and show them in a browser."""
