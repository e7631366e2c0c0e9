"""The methods, one file each. `AnyProtocol` is the closed list of what a study may name."""

from syndic.methods.align import Align
from syndic.methods.comparison.distdiffgen import DistDiffGen
from syndic.methods.comparison.dplt import LatentTreeSynthesis
from syndic.methods.comparison.glued import Glued
from syndic.methods.comparison.vertigan import VertiGan
from syndic.methods.estimate.estimate import Estimation
from syndic.methods.histogram.average import Average
from syndic.methods.histogram.crosstables import CrossTabulation
from syndic.methods.histogram.homm import Homm
from syndic.methods.histogram.marginals import Marginals
from syndic.methods.learning.learn import Risk
from syndic.methods.regression.gram import GramMatrix
from syndic.methods.regression.mixing import Mixing
from syndic.methods.regression.pooled_gram import PooledGram
from syndic.methods.synthesis.horizontal import Synthesis
from syndic.methods.synthesis.vertical import Vertical
from syndic.methods.vertimrf.vertimrf import VertiMRF

AnyProtocol = (
    Align
    | Average
    | CrossTabulation
    | DistDiffGen
    | Estimation
    | Glued
    | GramMatrix
    | Homm
    | LatentTreeSynthesis
    | Marginals
    | Mixing
    | PooledGram
    | Risk
    | Synthesis
    | VertiGan
    | Vertical
    | VertiMRF
)

__all__ = [
    "Align",
    "AnyProtocol",
    "Average",
    "CrossTabulation",
    "DistDiffGen",
    "Estimation",
    "Glued",
    "GramMatrix",
    "Homm",
    "LatentTreeSynthesis",
    "Marginals",
    "Mixing",
    "PooledGram",
    "Risk",
    "Synthesis",
    "VertiGan",
    "VertiMRF",
    "Vertical",
]
