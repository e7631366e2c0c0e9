"""Decoders of sketches as printed, and what Theorem 5 and Lemma 3 of Zhao et al. promise of them."""

from collections.abc import Iterator
from math import ceil, log, sqrt
from typing import Final

import numpy as np

from syndic.methods.vertimrf.sketch.encode import SketchPlan, largest_ranks, printed_epsilon, printed_plan
from syndic.methods.vertimrf.sketch.estimate import likeliest
from syndic.random import SystemRandomness
from syndic_lab.bench.row import Row, standard_error
from syndic_lab.bench.sketch.error import PEOPLE, SIZE, sketched_cells
from syndic_lab.encodings import Decoder, harmonic, printed

_EPSILON, _DELTA, _BETA = 0.4, 1e-5, 0.05
_UNION: Final = 50_000


def unions(quick: bool) -> Iterator[Row]:
    """Yield the size of a union as each decoder finds it, over the true one: 1 without bias."""
    runs, randomness = (100 if quick else 300), SystemRandomness()
    plan = SketchPlan(phantoms=0, floor=0, repetitions=2000)
    ranks = [largest_ranks(plan, _UNION, plan.repetitions, randomness)[:, None] for _ in range(runs)]
    found = {
        "harmonic mean of ranks (Algorithm 4, line 7)": [printed(one, plan.gamma) for one in ranks],
        "harmonic mean of powers (authors' program)": [harmonic(one, plan.gamma) for one in ranks],
        "likeliest (ours)": [likeliest(one, plan) for one in ranks],
    }
    for name, estimates in found.items():
        values = [float(one[0]) / _UNION for one in estimates]
        published = None if "ours" in name else 1.0
        yield _row(f"union of {_UNION}, {name}", "estimate over truth", values, published)


def promises(quick: bool) -> Iterator[Row]:
    """Yield how many cells err by more than Theorem 5 allows, with the repetitions of Lemma 3 and with 2,000."""
    runs, gamma = (10 if quick else 100), 1.0
    few = ceil(100 * sqrt(log(1 / _BETA)) / gamma**2)
    for repetitions in (few, 2000):
        plan = printed_plan(epsilon=_EPSILON, delta=_DELTA, columns=2, repetitions=repetitions)
        one = printed_epsilon(epsilon=_EPSILON, delta=_DELTA, columns=2, repetitions=repetitions)
        reach = sqrt(log(1 / _DELTA)) * log(1 / _BETA) ** 0.25 / one
        decoders: tuple[Decoder, ...] = ("harmonic", "printed")
        for decoder in decoders:
            beyond = []
            for _ in range(runs):
                found, true = sketched_cells(plan, decoder)
                allowed = gamma * (PEOPLE / true - 1) + reach / true
                beyond.append(float(np.mean(np.abs(found - true) / true > allowed)))
            row = f"Theorem 5, t {repetitions}, {decoder} decoder, {SIZE} x {SIZE} cells"
            yield _row(row, "share beyond the bound", beyond, _BETA)
        # what the bound allows a mean cell, as a multiple of it
        mean = PEOPLE / SIZE**2
        allowed_mean = gamma * (PEOPLE / mean - 1) + reach / mean
        yield _row(f"Theorem 5, t {repetitions}, a mean cell", "allowed error over the cell", [allowed_mean] * 2, None)


def _row(row: str, metric: str, values: list[float], published: float | None) -> Row:
    return Row(
        bench="sketch",
        row=row,
        metric=metric,
        value=float(np.mean(values)),
        unit="ratio",
        published=published,
        error=standard_error(values),
        runs=len(values),
    )
