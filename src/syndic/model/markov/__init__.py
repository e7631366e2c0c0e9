"""Graphical models of many columns: fitted to noisy tables of a few columns each, then asked and sampled."""

from syndic.model.markov.counts import Counts as Counts
from syndic.model.markov.counts import Synthesis as Synthesis
from syndic.model.markov.curator import Curator as Curator
from syndic.model.markov.field import MarkovField as MarkovField
from syndic.model.markov.fit import Fitted as Fitted
from syndic.model.markov.fit import fit as fit
from syndic.model.markov.graph import triangulate as triangulate
from syndic.model.markov.grouping import Grouping as Grouping
from syndic.model.markov.measurement import Impossible as Impossible
from syndic.model.markov.measurement import Measurement as Measurement
from syndic.model.markov.measurement import estimate_total as estimate_total
from syndic.model.markov.privmrf import PrivMRF as PrivMRF
from syndic.model.markov.select import Adaptive as Adaptive
from syndic.model.markov.select import GrowingModel as GrowingModel
from syndic.model.markov.select import OneShot as OneShot
from syndic.model.markov.select import RoundLimit as RoundLimit
from syndic.model.markov.tree import JunctionTree as JunctionTree
from syndic.model.markov.tree import grown as grown
from syndic.model.markov.tree import plan_tree as plan_tree
