"""The bench model."""
