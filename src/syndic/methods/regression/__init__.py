"""Regression: Gram matrices of horizontal and vertical studies, and noisy mixed columns."""
