"""Measurements, each beside a baseline in the same run."""

from collections.abc import Callable, Iterator

from syndic.bench import advise, erm, estimate, homm, noise, secure, sources
from syndic.bench.row import Row

# Each takes `quick` and yields rows as they are measured.
BENCHES: dict[str, Callable[[bool], Iterator[Row]]] = {
    "advise": advise.rows,
    "erm": erm.rows,
    "estimate": estimate.rows,
    "homm": homm.rows,
    "noise": noise.rows,
    "secure": secure.rows,
    "sources": sources.rows,
}

__all__ = ["BENCHES", "Row"]
