"""Mine a task graph from narrated how-to videos, and recognise the keysteps of new ones."""

__version__ = "0.1.0"
