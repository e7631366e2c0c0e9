"""The bench advise."""
