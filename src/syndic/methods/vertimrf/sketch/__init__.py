"""Sketches and randomised response of the same people's columns: estimates from them, and their true cost.

Pure functions: arrays in, arrays out. Callers charge `sketch_cost` before they send the result of `encode`.
"""
