"""Speed and accuracy, measured rather than asserted."""
