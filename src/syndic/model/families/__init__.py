"""Families of distributions and their estimates."""
