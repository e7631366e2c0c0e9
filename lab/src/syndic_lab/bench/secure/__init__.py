"""The bench secure."""
