"""The bench regression."""
