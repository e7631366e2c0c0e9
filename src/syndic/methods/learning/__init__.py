"""Private empirical risk minimisation with secure aggregation."""
