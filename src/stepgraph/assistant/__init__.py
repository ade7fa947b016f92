"""Tell, while somebody works, what is being done, what comes next and what seems missing."""
