"""The bench interval."""
