"""The methods, one file each. `AnyProtocol` is the closed list of what a study may name."""

from syndic.protocols.average import Average
from syndic.protocols.crosstables import CrossTabulation
from syndic.protocols.estimate import Estimation
from syndic.protocols.gram import GramMatrix
from syndic.protocols.homm import Homm
from syndic.protocols.marginals import Marginals
from syndic.protocols.mixing import Mixing
from syndic.protocols.pooled_gram import PooledGram
from syndic.protocols.risk import Risk
from syndic.protocols.synthesis import Synthesis
from syndic.protocols.vertical import Vertical

AnyProtocol = (
    Average
    | CrossTabulation
    | Estimation
    | GramMatrix
    | Homm
    | Marginals
    | Mixing
    | PooledGram
    | Risk
    | Synthesis
    | Vertical
)

__all__ = [
    "AnyProtocol",
    "Average",
    "CrossTabulation",
    "Estimation",
    "GramMatrix",
    "Homm",
    "Marginals",
    "Mixing",
    "PooledGram",
    "Risk",
    "Synthesis",
    "Vertical",
]
