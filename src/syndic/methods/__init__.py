"""The methods, one file each. `AnyMethod` is the closed list of what a study may name."""

from syndic.methods.align import Align
from syndic.methods.comparison.distdiffgen import Distdiffgen
from syndic.methods.comparison.dplt import Dplt
from syndic.methods.comparison.glued import Glued
from syndic.methods.comparison.vertigan import Vertigan
from syndic.methods.estimate.estimate import Estimation
from syndic.methods.histogram.average import Average
from syndic.methods.histogram.crosstables import Crosstables
from syndic.methods.histogram.homm import Homm
from syndic.methods.histogram.marginals import Marginals
from syndic.methods.learning.learn import Risk
from syndic.methods.regression.gram import Gram
from syndic.methods.regression.mixing import Mixing
from syndic.methods.regression.pooled_gram import PooledGram
from syndic.methods.synthesis.horizontal import Synthesis
from syndic.methods.synthesis.vertical import Vertical
from syndic.methods.vertimrf.vertimrf import Vertimrf

AnyMethod = (
    Align
    | Average
    | Crosstables
    | Distdiffgen
    | Estimation
    | Glued
    | Gram
    | Homm
    | Dplt
    | Marginals
    | Mixing
    | PooledGram
    | Risk
    | Synthesis
    | Vertigan
    | Vertical
    | Vertimrf
)

__all__ = [
    "Align",
    "AnyMethod",
    "Average",
    "Crosstables",
    "Distdiffgen",
    "Dplt",
    "Estimation",
    "Glued",
    "Gram",
    "Homm",
    "Marginals",
    "Mixing",
    "PooledGram",
    "Risk",
    "Synthesis",
    "Vertical",
    "Vertigan",
    "Vertimrf",
]
