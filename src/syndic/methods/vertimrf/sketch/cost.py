"""The privacy cost of sketches of several columns under one key."""

from fractions import Fraction
from math import ceil, exp, nextafter, sqrt
from typing import Final, Literal

import msgspec

from syndic.document import exact
from syndic.errors import InputError
from syndic.methods.vertimrf.sketch.encode import WORD_BITS, SketchPlan, floor_for
from syndic.methods.vertimrf.sketch.loss import (
    POINTS,
    Bracket,
    Losses,
    delta_above,
    delta_below,
    loss_law,
    mixed_law,
    replaced_laws,
)
from syndic.privacy.event import ApproximateEvent

Neighbours = Literal["add_remove", "replace"]

# replacing a person is removing one and adding one: the shares of epsilon tried for the first
_SHARES: Final = (0.5, 0.65, 0.8, 0.9)
_FEW_POINTS: Final = 2**17
_ATTO: Final = 10**18
_MOST_PHANTOMS: Final = 2**36


def sketch_delta(
    plan: SketchPlan,
    *,
    columns: int,
    epsilon: float,
    neighbours: Neighbours = "add_remove",
    keys: int = 1,
    points: int = POINTS,
) -> Bracket:
    """Return the true delta at `epsilon` of sketches of `columns` columns under each of `keys` independent keys.

    It holds against everybody who does not have the keys. Both bounds are for the worst pair of tables. For `replace`
    with three columns or more, or very many ranks, the upper bound passes through the table without the person, and the
    lower bound is that of `add_remove`, from the old values alone.
    """
    law, repetitions = loss_law(plan, columns), plan.repetitions * keys
    worst = (replaced_laws(plan, columns) if neighbours == "replace" else ()) or (law.added(), law.removed())
    lower = max(delta_below(losses, repetitions=repetitions, epsilon=epsilon, points=points) for losses in worst)
    lower = max(0.0, lower - _word_rounding(plan.top, repetitions, epsilon))
    return Bracket(lower, _above(plan, columns, keys, epsilon, neighbours, points))


def _word_rounding(top: int, repetitions: int, epsilon: float) -> float:
    """Bound the effect of 64-bit hashes: each tail of the person's rank is rounded down by less than 2^-64."""
    return float(repetitions * top * 2.0**-WORD_BITS * (1 + exp(epsilon)))


def _above(plan: SketchPlan, columns: int, keys: int, epsilon: float, neighbours: Neighbours, points: int) -> float:
    """Return a delta that holds in both directions between neighbours, whichever of their values differ."""
    repetitions = plan.repetitions * keys

    def of(losses: Losses, at: float) -> float:
        return delta_above(losses, repetitions=repetitions, epsilon=at, points=points)

    law, rounding = loss_law(plan, columns), _word_rounding(plan.top, repetitions, epsilon)
    # replacing is symmetric: old and new values may be exchanged
    exact_laws = (law.added(), law.removed()) if neighbours == "add_remove" else replaced_laws(plan, columns)
    if neighbours == "replace" and len(exact_laws) == 2 and keys > 1:
        # under some keys one value may differ, under others both
        exact_laws = (mixed_law(*exact_laws),)
    if exact_laws:
        return min(1.0, max(of(losses, epsilon) for losses in exact_laws) + rounding)
    ways = (
        of(law.added(), share * epsilon) + exp(share * epsilon) * of(law.removed(), (1 - share) * epsilon)
        for share in _SHARES
    )
    return min(1.0, min(ways) + rounding)


def sketch_cost(
    plan: SketchPlan,
    *,
    columns: int,
    epsilon: Fraction,
    delta: Fraction,
    neighbours: Neighbours,
    keys: int = 1,
) -> ApproximateEvent:
    """Return the event to charge for sketches that are (epsilon, delta)-DP; refuse others and state their true delta.

    The event covers one person over all `columns` of all parties and all `keys` together. It is more than the sum of
    the columns' costs under separate keys, so no party can be charged for its own columns alone.
    """
    # a coarse grid proves less, but what it proves holds
    for points in (_FEW_POINTS, POINTS):
        found = _above(plan, columns, keys, nextafter(float(epsilon), 0), neighbours, points)
        if found <= delta:
            break
    else:
        raise InputError(
            f"sketches of {columns} columns under each of {keys} key(s) with {plan.phantoms} phantoms have delta "
            f"{found:.3g} at epsilon {float(epsilon):g}, not {float(delta):.3g}: use a key for each pair of "
            "columns, more phantoms (phantoms_needed), a cap, or secure products instead"
        )
    charged = min(delta, Fraction(ceil(exact(found) * _ATTO) + 1, _ATTO))
    return ApproximateEvent(epsilon=epsilon, delta=charged, what=f"sketches of {columns} columns under {keys} key(s)")


def phantoms_needed(
    plan: SketchPlan,
    *,
    columns: int,
    epsilon: float,
    delta: float,
    neighbours: Neighbours = "add_remove",
    keys: int = 1,
    points: int = 2**19,
) -> SketchPlan:
    """Return the plan with the fewest phantoms (to about 1 %), and their floor, that satisfies the guarantee.

    Repetitions, gamma and cap are those of `plan`. A floor that would reach the cap is set one below it.
    """
    if not (epsilon > 0 and 0 < delta < 1):
        raise InputError(f"epsilon ({epsilon:g}) must be positive and delta ({delta:g}) in (0, 1)")

    def with_phantoms(phantoms: int) -> SketchPlan:
        floor = min(floor_for(phantoms, plan.gamma), plan.top - 1)
        return msgspec.structs.replace(plan, phantoms=phantoms, floor=floor)

    def kept(phantoms: int) -> bool:
        tried = with_phantoms(phantoms)
        return _above(tried, columns, keys, epsilon, neighbours, points) <= delta

    # the losses of one column alone, 1 / phantoms each, add up to about this much
    fails, fits = 1, ceil(sqrt(plan.repetitions * keys) / epsilon)
    while not kept(fits):
        if fits >= _MOST_PHANTOMS:
            raise InputError(
                f"no number of phantoms up to {_MOST_PHANTOMS} satisfies epsilon {epsilon:g} and delta {delta:g}"
            )
        fails, fits = fits, 4 * fits
    while fits - fails > max(1, fits // 100):
        middle = round((fits * fails) ** 0.5) if fails > 1 else (fits + fails) // 2
        fails, fits = (fails, middle) if kept(middle) else (middle, fits)
    return with_phantoms(fits)
