"""The methods, one file each. `AnyProtocol` is the closed list of what a study may name."""

from syndic.protocols.align import Align
from syndic.protocols.average import Average
from syndic.protocols.crosstables import CrossTabulation
from syndic.protocols.distdiffgen import DistDiffGen
from syndic.protocols.dplt import LatentTreeSynthesis
from syndic.protocols.estimate import Estimation
from syndic.protocols.glued import Glued
from syndic.protocols.gram import GramMatrix
from syndic.protocols.homm import Homm
from syndic.protocols.marginals import Marginals
from syndic.protocols.mixing import Mixing
from syndic.protocols.pooled_gram import PooledGram
from syndic.protocols.risk import Risk
from syndic.protocols.synthesis import Synthesis
from syndic.protocols.vertical import Vertical
from syndic.protocols.vertigan import VertiGan
from syndic.protocols.vertimrf import VertiMRF

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
