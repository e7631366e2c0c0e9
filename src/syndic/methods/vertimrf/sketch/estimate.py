"""Estimate the number of elements from the largest ranks of many repetitions.

An element is a person or a phantom: to estimate people, subtract the phantoms included. Ranks have repetitions along
the first axis, and there is an estimate for every index of the other axes. All of this is post-processing: it costs
nothing.

Tables across columns from sketches: a cell is everybody minus the union of the complements.

The largest of several ranks is the rank of the union. For values v_1, ..., v_l of l columns, everybody without all of
them is in the union of "not v_1", ..., "not v_l". Its sketch is the largest of the sketches of all other values, and
includes the phantoms of all of them: sum over columns of (size - 1) times as many as one sketch has.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.methods.vertimrf.sketch.encode import SketchPlan

_LARGEST = 2.0**62


def likeliest(ranks: NDArray[np.integer], plan: SketchPlan) -> NDArray[np.float64]:
    """Return the maximum likelihood number of elements for the ranks.

    A rank at the floor means "at most", one at the cap "at least". The estimate is 0 if every rank is at the floor. If
    every rank is at the cap, any large number is equally likely: the one with probability one half of that is returned.
    """
    shape = ranks.shape[1:]
    flat = ranks.reshape(len(ranks), -1).astype(np.int64) - plan.floor
    if flat.size and (int(flat.min()) < 0 or int(flat.max()) > plan.top - plan.floor):
        raise InputError(f"ranks must be from the plan's floor ({plan.floor}) to its largest rank ({plan.top})")
    levels = plan.top - plan.floor + 1
    places = flat + levels * np.arange(flat.shape[1])
    counts = np.bincount(places.ravel(), minlength=levels * flat.shape[1]).reshape(-1, levels)
    used = np.flatnonzero(counts.any(axis=0))
    below, upto = (part[used] for part in log_tails(plan))
    low, high = np.zeros(len(counts)), np.full(len(counts), np.log(_LARGEST))
    # the score falls as the number grows, so halving finds its root; 48 halvings give 1e-13 in the logarithm
    for _ in range(48):
        middle = (low + high) / 2
        rising = _score(np.exp(middle)[:, None], counts[:, used], below, upto) > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    found = np.exp((low + high) / 2)
    found[counts[:, 0] == len(ranks)] = 0.0
    if plan.top > 1:
        found[counts[:, -1] == len(ranks)] = np.log(-np.expm1(np.log(0.5) / len(ranks))) / log_tails(plan)[0][-1]
    return np.asarray(found.reshape(shape), dtype=np.float64)


def log_tails(plan: SketchPlan) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return log Pr[one rank < a] and log Pr[one rank <= a] for each rank a that a sketch may show."""
    levels = np.arange(plan.floor, plan.top + 1, dtype=np.float64)
    base = 1 + float(plan.gamma)
    with np.errstate(divide="ignore"):
        below, upto = np.log1p(-(base ** -np.maximum(levels - 1, 0))), np.log1p(-(base**-levels))
    below[0], upto[-1] = -np.inf, 0.0
    return below, upto


def relative_sd(plan: SketchPlan, elements: float) -> float:
    """Return the sd of `likeliest` for this many elements, relative to their number, by the Fisher information.

    About 1.04, 1.006 and 1.0008 over the square root of the repetitions for gamma 1, 0.3 and 0.1 without a cap.
    """
    below, upto = log_tails(plan)
    chances = np.exp(elements * upto) - np.exp(elements * below)
    # derivative of each probability by the logarithm of the number
    with np.errstate(invalid="ignore"):
        slopes = elements * (
            np.where(np.isinf(upto), 0.0, upto * np.exp(elements * upto))
            - np.where(np.isinf(below), 0.0, below * np.exp(elements * below))
        )
    seen = chances > 1e-300
    information = float(np.sum(slopes[seen] ** 2 / chances[seen]))
    return float("inf") if information == 0 else float((plan.repetitions * information) ** -0.5)


def _score(
    number: NDArray[np.float64], counts: NDArray[np.int64], below: NDArray[np.float64], upto: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the derivative of the log likelihood, sum of log(exp(number upto) - exp(number below)).

    With one factor taken out it is upto + gap / (exp(number gap) - 1), gap = upto - below.
    """
    with np.errstate(invalid="ignore"):  # a rank of 0: -inf less -inf
        gap = upto - below
    finite = np.isfinite(gap)
    terms = np.zeros((len(number), len(gap)))
    scaled = number * gap[finite]
    # beyond 700 the term is smaller than any double
    terms[:, finite] = np.where(scaled < 700, gap[finite] / np.expm1(np.minimum(scaled, 700)), 0.0)
    # a rank of 0 (no floor, nobody) has upto = -inf: it is only seen where the number is 0
    steady = np.where(np.isfinite(upto), upto, -1e300)
    return np.asarray(np.sum(counts * (terms + steady), axis=1))


def cell_error(plan: SketchPlan, *, people: int, sketches: int) -> float:
    """Return the expected root mean square error of a cell that is a small part of the people.

    `sketches` is the number of sketches in a union of complements, the sum over columns of (size - 1).
    """
    elements = people + sketches * plan.phantoms
    return elements * relative_sd(plan, elements)


Decoder = Callable[[NDArray[np.uint16], SketchPlan], NDArray[np.float64]]
"""Returns the number of elements for each column of ranks: `likeliest`, except in comparisons."""


def complements(ranks: NDArray[np.uint16], plan: SketchPlan) -> NDArray[np.uint16]:
    """Return, for each value of one column, the sketch of everybody who has another value."""
    if ranks.shape[1] == 1:
        return np.full_like(ranks, plan.floor)
    largest = np.argmax(ranks, axis=1, keepdims=True)
    found = np.repeat(np.take_along_axis(ranks, largest, axis=1), ranks.shape[1], axis=1)
    rest = ranks.copy()
    np.put_along_axis(rest, largest, 0, axis=1)
    np.put_along_axis(found, largest, rest.max(axis=1, keepdims=True), axis=1)
    return found


def cell_table(
    columns: Sequence[NDArray[np.uint16]], plan: SketchPlan, people: float, decoder: Decoder = likeliest
) -> NDArray[np.float64]:
    """Return an estimate of every cell of the table of these columns, unrounded and perhaps negative.

    Args:
        columns: for each column its sketches, one row per repetition, one column per value, all under one key.
        plan: how they were made.
        people: the number of people, public or noisy.
        decoder: estimates the number of elements from ranks.
    """
    if not columns or any(len(ranks) != plan.repetitions for ranks in columns):
        raise InputError(f"a table needs columns of {plan.repetitions} repetitions each")
    phantoms = plan.phantoms * sum(ranks.shape[1] - 1 for ranks in columns)
    first, *others = [complements(ranks, plan) for ranks in columns]
    shape = tuple(ranks.shape[1] for ranks in columns)
    found = np.empty((shape[0], int(np.prod(shape[1:]))))
    rest = np.full((plan.repetitions, 1), plan.floor, dtype=np.uint16)
    for ranks in others:
        rest = np.maximum(rest[:, :, None], ranks[:, None, :]).reshape(plan.repetitions, -1)
    for value in range(shape[0]):  # one value at a time: a table of all repetitions may not fit into memory
        found[value] = decoder(np.maximum(rest, first[:, value : value + 1]), plan)
    return np.asarray(people - (found.reshape(shape) - phantoms))
