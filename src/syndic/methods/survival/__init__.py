"""Survival: curves, comparison of groups and hazard ratios from one noisy table of counts."""
