"""The command line: people's side, no mathematics."""

from syndic.cli.main import main

__all__ = ["main"]
