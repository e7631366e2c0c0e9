"""Empirical risk minimisation: losses, solvers, and the private schemes."""
