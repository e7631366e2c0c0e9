"""Private estimates of distribution parameters from distributed sources."""
