"""Measurements, each beside a baseline in the same run."""

from collections.abc import Callable, Iterator

from syndic.bench import noise, sources
from syndic.bench.row import Row

# Each takes `quick` and yields rows as they are measured.
BENCHES: dict[str, Callable[[bool], Iterator[Row]]] = {"noise": noise.rows, "sources": sources.rows}

__all__ = ["BENCHES", "Row"]
