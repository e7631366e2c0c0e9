"""Which sketches a study makes, and what they cost."""

from fractions import Fraction
from functools import lru_cache
from math import log, log1p
from typing import Final

import msgspec

from syndic.errors import InputError
from syndic.methods.vertimrf.layout import Layout
from syndic.methods.vertimrf.sketch import SketchPlan, cell_error, phantoms_needed, rank_thresholds, sketch_cost
from syndic.privacy import ApproximateEvent

# Of the accountant's grid while plans are tried; what is found is proven again on a finer one, so a little is left.
_POINTS: Final = 2**15
_MARGIN: Final = 0.9


def capped_plan(start: SketchPlan, layout: Layout, *, epsilon: Fraction, delta: Fraction) -> SketchPlan:
    """Return the sketches with the least expected error under a key for each pair, or `start` where it has phantoms.

    Caps above the rank that a union of everybody shows are tried one after the other, each with as many phantoms as
    the promise takes, until a larger one has a larger error.
    """
    if start.phantoms:
        return start
    return _search(
        start,
        len(layout.pairs),
        layout.people,
        layout.sketches,
        epsilon=float(epsilon),
        delta=float(delta),
    )


@lru_cache(maxsize=64)
def _search(start: SketchPlan, keys: int, people: int, sketches: int, *, epsilon: float, delta: float) -> SketchPlan:
    best: tuple[float, SketchPlan] | None = None
    for cap in _caps(people, start.gamma):
        try:
            plan = phantoms_needed(
                msgspec.structs.replace(start, phantoms=1, floor=0, cap=cap),
                columns=2,
                keys=keys,
                epsilon=epsilon,
                delta=_MARGIN * delta,
                neighbours="replace",
                points=_POINTS,
            )
        except InputError:
            continue
        error = cell_error(plan, people=people, sketches=sketches)
        if best is not None and error >= best[0]:
            break
        best = error, plan
    if best is None:
        raise InputError(
            f"no sketches of {keys} pairs of columns keep epsilon {epsilon:g} and delta {delta:g}: raise them, take "
            'fewer columns or repetitions, or way = "oracle"'
        )
    return best[1]


def _caps(people: int, gamma: Fraction) -> range:
    """Return caps from the rank that a union of everybody shows on, a factor of two apart."""
    middle = round(log(max(2, people)) / log1p(float(gamma)))
    step = max(1, round(log(2) / log1p(float(gamma))))
    return range(max(2, middle + step), min(len(rank_thresholds(gamma)), middle + 8 * step), step)


def sketch_event(plan: SketchPlan, layout: Layout, *, epsilon: Fraction, delta: Fraction) -> ApproximateEvent:
    """Return what the sketches of all pairs of all parties cost a person whose values are replaced."""
    return _event(plan, len(layout.pairs), epsilon=epsilon, delta=delta)


@lru_cache(maxsize=64)
def _event(plan: SketchPlan, keys: int, *, epsilon: Fraction, delta: Fraction) -> ApproximateEvent:
    return sketch_cost(plan, columns=2, keys=keys, epsilon=epsilon, delta=delta, neighbours="replace")
