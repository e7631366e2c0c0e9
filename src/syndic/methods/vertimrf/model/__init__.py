"""VertiMRF after the encodings have arrived: a model of all columns from local models and tables across parties.

Zhao, Li, Ren, Ding, Yang and Li, "VertiMRF: differentially private vertical federated data synthesis", KDD 2024.
Everything here is made of what the parties released: it costs nothing.
"""

from syndic.methods.vertimrf.model.across import Across, OracleTables, SketchTables
from syndic.methods.vertimrf.model.bins import equal_width, gathered, recovered, recovered_variance, shares_of_bins
from syndic.methods.vertimrf.model.build import Build, Built, LocalModel
from syndic.methods.vertimrf.model.consistent import consistent
from syndic.methods.vertimrf.model.graph import joined_graph, r_score

__all__ = [
    "Across",
    "Build",
    "Built",
    "LocalModel",
    "OracleTables",
    "SketchTables",
    "consistent",
    "equal_width",
    "gathered",
    "joined_graph",
    "r_score",
    "recovered",
    "recovered_variance",
    "shares_of_bins",
]
