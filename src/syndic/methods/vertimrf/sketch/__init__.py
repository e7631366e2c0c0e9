"""Sketches and randomised response of the same people's columns: what they tell, and what they really cost.

Pure functions: arrays in, arrays out. Whoever sends `encode`'s result has charged `sketch_cost` before.
"""
