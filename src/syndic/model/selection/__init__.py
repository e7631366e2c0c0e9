"""Which tables of a few columns a graphical model is fitted to: chosen from noisy ones, measured, fitted, in rounds."""

from syndic.model.selection.counts import Synthesis
from syndic.model.selection.curator import Curator
from syndic.model.selection.grouping import Grouping
from syndic.model.selection.privmrf import PrivMRF
from syndic.model.selection.select import GrowingModel, synthesise
from syndic.model.selection.settings import Adaptive

__all__ = ["Adaptive", "Curator", "Grouping", "GrowingModel", "PrivMRF", "Synthesis", "synthesise"]
