"""Runtimes carry bytes between a coordinator and parties."""

from syndic.runtime.local import Local
from syndic.runtime.process import Processes, serve

__all__ = ["Local", "Processes", "serve"]
