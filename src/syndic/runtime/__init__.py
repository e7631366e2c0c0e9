"""Runtimes carry bytes between a coordinator and parties."""

from syndic.runtime.faults import Fault, Faulty
from syndic.runtime.local import Local
from syndic.runtime.process import Processes, serve

__all__ = ["Fault", "Faulty", "Local", "Processes", "serve"]
