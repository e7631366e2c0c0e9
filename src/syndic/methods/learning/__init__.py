"""Empirical risk minimisation with noise under secure aggregation."""
