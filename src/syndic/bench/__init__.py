"""Measurements, each beside a baseline in the same run."""

from collections.abc import Callable, Iterator

from syndic.bench import advise, erm, estimate, homm, model, noise, regression, secure, sketch, sources, vertical
from syndic.bench.row import Row

# Each takes `quick` and yields rows as they are measured.
BENCHES: dict[str, Callable[[bool], Iterator[Row]]] = {
    "advise": advise.rows,
    "erm": erm.rows,
    "estimate": estimate.rows,
    "homm": homm.rows,
    "model": model.rows,
    "noise": noise.rows,
    "regression": regression.rows,
    "secure": secure.rows,
    "sketch": sketch.rows,
    "sources": sources.rows,
    "vertical": vertical.rows,
}

__all__ = ["BENCHES", "Row"]
