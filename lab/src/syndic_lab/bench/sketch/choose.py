"""Which sound sketches tell most: with or without a cap, and how many phantoms."""

from fractions import Fraction
from math import log, log1p
from typing import Final

import msgspec

from syndic.errors import InputError
from syndic.methods.vertimrf.sketch.cost import Neighbours, phantoms_needed
from syndic.methods.vertimrf.sketch.encode import SketchPlan, rank_thresholds
from syndic.methods.vertimrf.sketch.estimate import cell_error

# of the accountant's grid: coarse, as many plans are tried; what is found is proven all the same
_POINTS: Final = 2**18


def sound_plan(
    start: SketchPlan,
    *,
    columns: int,
    keys: int,
    epsilon: float,
    delta: float,
    neighbours: Neighbours,
    people: int,
    sketches: int,
) -> SketchPlan:
    """Return the plan with the least expected error of a cell among those that keep the promise, capped or not.

    Without a cap one large common rank gives a person away, which takes many phantoms to hide.

    Args:
        start: its repetitions of each key and its gamma are kept.
        columns: columns under one key; 2 for a key for each pair.
        keys: independent keys in which one person takes part, 1 for one key for all.
        epsilon: of the promise, over all keys and repetitions.
        delta: likewise.
        neighbours: likewise.
        people: the public number of people.
        sketches: sum of (size - 1) over the columns of a table.
    """
    best: SketchPlan | None = None
    for cap in [None, *_caps(people, start.gamma)]:
        capped = msgspec.structs.replace(start, phantoms=1, floor=0, cap=cap)
        try:
            plan = phantoms_needed(
                capped, columns=columns, keys=keys, epsilon=epsilon, delta=delta, neighbours=neighbours, points=_POINTS
            )
        except InputError:
            continue
        errors = [cell_error(each, people=people, sketches=sketches) for each in (plan, best or plan)]
        best = plan if best is None or errors[0] < errors[1] else best
    if best is None:
        raise InputError(f"no sketches of {columns} columns keep epsilon {epsilon:g} and delta {delta:g}")
    return best


def _caps(people: int, gamma: Fraction) -> range:
    """Return caps about the rank that a union of everybody shows, a factor of two apart."""
    middle = round(log(people) / log1p(float(gamma)))
    step = max(1, round(log(2) / log1p(float(gamma))))
    return range(max(2, middle - step), min(len(rank_thresholds(gamma)), middle + 5 * step), step)
