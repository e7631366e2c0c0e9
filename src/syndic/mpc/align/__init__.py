"""Private set intersection."""
