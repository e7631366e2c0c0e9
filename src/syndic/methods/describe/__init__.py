"""Everyday statistics of all parties' people: the first table of a paper, comparisons, tests and regressions."""
