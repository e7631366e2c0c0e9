"""The bench sources."""
