"""Read what may be anything, and write whole or not at all."""
