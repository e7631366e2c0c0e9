"""Graphical models of many columns: fitted to noisy tables of a few columns each, then queried and sampled."""

from syndic.model.markov.field import MarkovField
from syndic.model.markov.fit import fit
from syndic.model.markov.graph import triangulate
from syndic.model.markov.measurement import Impossible, Measurement, estimate_total
from syndic.model.markov.tree import JunctionTree, plan_tree

__all__ = [
    "Impossible",
    "JunctionTree",
    "MarkovField",
    "Measurement",
    "estimate_total",
    "fit",
    "plan_tree",
    "triangulate",
]
