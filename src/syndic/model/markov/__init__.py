"""Graphical models of many columns: fitted to noisy tables of a few columns each, then queried and sampled."""

from syndic.model.markov.counts import Synthesis
from syndic.model.markov.curator import Curator
from syndic.model.markov.field import MarkovField
from syndic.model.markov.fit import fit
from syndic.model.markov.graph import triangulate
from syndic.model.markov.grouping import Grouping
from syndic.model.markov.measurement import Impossible, Measurement, estimate_total
from syndic.model.markov.privmrf import PrivMRF
from syndic.model.markov.select import Adaptive, GrowingModel
from syndic.model.markov.tree import JunctionTree, plan_tree

__all__ = [
    "Adaptive",
    "Curator",
    "Grouping",
    "GrowingModel",
    "Impossible",
    "JunctionTree",
    "MarkovField",
    "Measurement",
    "PrivMRF",
    "Synthesis",
    "estimate_total",
    "fit",
    "plan_tree",
    "triangulate",
]
