"""Regression: Gram matrices of both cuts, and mixed columns."""
