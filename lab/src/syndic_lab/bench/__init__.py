"""Measurements, each beside a baseline in the same run."""

from collections.abc import Callable, Iterator

from syndic_lab.bench import align, noise
from syndic_lab.bench.advise import run as advise
from syndic_lab.bench.erm import run as erm
from syndic_lab.bench.estimate import run as estimate
from syndic_lab.bench.guard import run as guard
from syndic_lab.bench.homm import run as homm
from syndic_lab.bench.model import run as model
from syndic_lab.bench.regression import run as regression
from syndic_lab.bench.row import Row
from syndic_lab.bench.secure import run as secure
from syndic_lab.bench.sketch import run as sketch
from syndic_lab.bench.sources import run as sources
from syndic_lab.bench.vertical import plan as vertical
from syndic_lab.peers import run as peers

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
