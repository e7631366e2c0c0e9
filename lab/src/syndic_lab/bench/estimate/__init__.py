"""The bench estimate."""
