"""Feed damaged files to every reader, and see whether each is read or refused in one line."""
