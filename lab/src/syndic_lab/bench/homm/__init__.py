"""The bench homm."""
