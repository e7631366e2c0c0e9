"""The bench guard."""
