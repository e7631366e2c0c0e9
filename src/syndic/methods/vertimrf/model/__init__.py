"""VertiMRF after the encodings have arrived: a model of all columns from local models and tables across parties.

Zhao, Li, Ren, Ding, Yang and Li, "VertiMRF: differentially private vertical federated data synthesis", KDD 2024.
Everything here is computed from what the parties released: it costs nothing.
"""
