"""The bench sketch."""
