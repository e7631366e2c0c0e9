"""Empirical risk minimisation: losses, solvers, and private schemes."""
