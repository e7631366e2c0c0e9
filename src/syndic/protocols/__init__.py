"""The methods, one file each. `AnyProtocol` is the closed list of what a study may name."""

from syndic.protocols.homm import Homm

AnyProtocol = Homm

__all__ = ["AnyProtocol", "Homm"]
