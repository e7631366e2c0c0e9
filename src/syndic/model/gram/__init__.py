"""Gram matrices: noisy, consistent, and what regressions follow from them."""
