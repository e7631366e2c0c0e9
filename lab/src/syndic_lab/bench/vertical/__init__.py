"""The bench vertical."""
