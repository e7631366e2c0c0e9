"""The bench erm."""
