"""Private estimators from distributed sources."""
