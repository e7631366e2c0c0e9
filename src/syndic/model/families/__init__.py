"""Families of laws and their estimates."""
