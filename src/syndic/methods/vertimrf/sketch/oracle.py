"""Frequency oracle: every cell of everybody's row by randomised response, and tables decoded in closed form.

Neighbours replace one person's whole row; under `add_remove` a row a person would tell how many people there are, so
nothing is promised. A row of d codes costs d events of the epsilon of one code, in all parties together.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.noise.response import RandomisedResponse
from syndic.privacy import Budget, PureEvent, pure_for


def oracle(sizes: Sequence[int], budget: Budget) -> tuple[RandomisedResponse, ...]:
    """Return the response of each column such that all of them together stay within the budget, under replace."""
    if not sizes:
        raise InputError("an oracle needs at least one column")
    epsilon = pure_for(budget.epsilon, budget.delta, len(sizes))
    return tuple(RandomisedResponse(size=size, epsilon=epsilon) for size in sizes)


def printed_oracle(sizes: Sequence[int], budget: Budget) -> tuple[RandomisedResponse, ...]:
    """Return the printed responses, which cost up to twice the budget (Zhao et al. 2024, Theorem 3).

    The theorem takes half the epsilon of each code, for neighbours by whom the number of published rows differs.
    """
    claimed, columns = float(budget.epsilon), len(sizes)
    epsilon = 2 * claimed / columns
    if budget.delta:
        epsilon = max(epsilon, claimed / (2 * sqrt(2 * columns * log(1 / float(budget.delta)))))
    return tuple(RandomisedResponse(size=size, epsilon=Fraction(epsilon).limit_denominator(10**12)) for size in sizes)


def oracle_events(responses: Sequence[RandomisedResponse]) -> tuple[PureEvent, ...]:
    """Return what one person's row costs, one event a column; zCDP adds epsilon^2 / 2 of each."""
    return tuple(response.event for response in responses)


def decoded_table(responses: Sequence[RandomisedResponse], columns: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
    """Return unbiased counts of the table of some columns from their responses, unrounded and perhaps negative."""
    if len(responses) != len(columns) or not columns:
        raise InputError(f"{len(columns)} columns of answers for {len(responses)} responses")
    shape = tuple(response.size for response in responses)
    places = np.ravel_multi_index([np.asarray(column) for column in columns], shape)
    counts = np.bincount(places, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)
    return decode_counts(responses, counts)


def decode_counts(responses: Sequence[RandomisedResponse], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Apply the inverse of each response along its axis: together the inverse of their Kronecker product."""
    for axis, response in enumerate(responses):
        counts = response.decode_counts(counts, axis=axis)
    return counts
