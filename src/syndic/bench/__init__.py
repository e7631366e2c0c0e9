"""Measurements, each beside a baseline in the same run."""

from collections.abc import Callable, Iterator

from syndic.bench import (
    advise,
    align,
    erm,
    estimate,
    guard,
    homm,
    model,
    noise,
    peers,
    regression,
    secure,
    sketch,
    sources,
)
from syndic.bench import vertical_plan as vertical
from syndic.bench.row import Row

# Each takes `quick` and yields rows as they are measured.
BENCHES: dict[str, Callable[[bool], Iterator[Row]]] = {
    "advise": advise.rows,
    "align": align.rows,
    "erm": erm.rows,
    "estimate": estimate.rows,
    "guard": guard.rows,
    "homm": homm.rows,
    "model": model.rows,
    "noise": noise.rows,
    "peers": peers.rows,
    "regression": regression.rows,
    "secure": secure.rows,
    "sketch": sketch.rows,
    "sources": sources.rows,
    "vertical": vertical.rows,
}

__all__ = ["BENCHES", "Row"]
