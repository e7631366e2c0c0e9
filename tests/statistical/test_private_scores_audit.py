"""An attacker who knows everything but one person, against the noisy scores that a party publishes."""

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from syndic import Unit
from syndic.data import Schema, Table, open_source
from syndic.evaluation import scores as paid
from syndic.random import SystemRandomness

pytestmark = [pytest.mark.statistical, pytest.mark.slow]

TRIES = 4_000
MISS = 1e-7  # chance that one confidence bound is wrong
SCHEMA = Schema.from_domain({"x": 2})
REST = [1] * 50
RELEASED = Table(SCHEMA, open_source(pa.table({"x": [1] * 10}))).marginals([("x",)])


class CountedOnce:
    """In place of a table: its counts, which are the same in every try, are made once."""

    def __init__(self, values: list[int]) -> None:
        self.counts = Table(SCHEMA, open_source(pa.table({"x": values}))).marginals([("x",)])

    def marginals(self, cliques: Any) -> Any:
        assert cliques == [("x",)]
        return self.counts


def outcomes(unit: Unit, values: list[int], epsilon: Fraction) -> Any:
    """Return the published size and the published distance, as often as there are tries."""
    table: Any = CountedOnce(values)
    noises = paid._noises(unit, epsilon, 1)
    drawn = (paid._drawn(table, RELEASED, noises, SystemRandomness()) for _ in range(TRIES))
    return np.array([(size, int(distance[0])) for size, distance, _ in drawn])


def reached(unit: Unit, one: list[int], other: list[int], event: Any, epsilon: Fraction) -> float:
    """Return a lower bound on the epsilon that the event shows, right with probability 1 - 2e-7."""
    hits = [int(event(outcomes(unit, values, epsilon)).sum()) for values in (one, other)]
    low = stats.beta.ppf(MISS, hits[0], TRIES - hits[0] + 1)
    high = stats.beta.ppf(1 - MISS, hits[1] + 1, TRIES - hits[1])
    return float(np.log(low / high))


def further(published: Any) -> Any:
    """With the person at 0, counts are one further from the release, whatever the size came out as."""
    size, distance = published.T
    return (size >= len(REST) + 1) & (distance >= np.abs(len(REST) - size) + 1)


def moved(published: Any) -> Any:
    """With one person of 51 at 0, the distance is 2; without, it is 0."""
    return published[:, 1] >= 2


def test_adding_a_person_is_hidden_as_claimed() -> None:
    unit = Unit(neighbours="add_remove")
    assert 0.35 < reached(unit, [*REST, 0], REST, further, Fraction(1)) <= 1.0
    assert reached(unit, [*REST, 0], REST, further, Fraction(2)) > 1.0  # the attack catches half the noise


def test_replacing_a_person_is_hidden_as_claimed() -> None:
    unit = Unit(neighbours="replace")
    assert 0.35 < reached(unit, [*REST, 0], [*REST, 1], moved, Fraction(1)) <= 1.0
    assert reached(unit, [*REST, 0], [*REST, 1], moved, Fraction(2)) > 1.0
