"""The methods, one file each. `AnyProtocol` is the closed list of what a study may name."""

from syndic.protocols.average import Average
from syndic.protocols.crosstables import CrossTabulation
from syndic.protocols.estimate import Estimation
from syndic.protocols.homm import Homm
from syndic.protocols.marginals import Marginals

AnyProtocol = Average | CrossTabulation | Estimation | Homm | Marginals

__all__ = ["AnyProtocol", "Average", "CrossTabulation", "Estimation", "Homm", "Marginals"]
