"""Synthetic tables from a Markov random field, for both cuts."""
