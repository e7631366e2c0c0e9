"""Noisy Gram matrices: consistency, and regressions computed from them."""
