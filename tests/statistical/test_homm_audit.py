"""An attacker who knows everything but one person, against what one party publishes.

Each pair of neighbouring tables is the worst one; the attacker bets on the most telling event. The lower
confidence bound on the epsilon he reaches must not exceed the claim, and must do so for noise that is too small.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from support import study_text
from syndic import Study
from syndic.data import Table, open_source
from syndic.kernel import Nothing, Terms
from syndic.protocols import Homm
from syndic.random import SimulationRandomness, SystemRandomness

TRIES = 20_000
MISS = 1e-7  # chance that one confidence bound is wrong

CELL = """
[[schema.columns]]
name = "x"
kind = "boolean"
missing = { value = false }
"""
EMPTY: list[bool] = []


@dataclass(frozen=True)
class OpenParty:
    """Lets a step run on a table without ledger or messages; the doors are the protocol's own mechanism."""

    table: Table
    terms: Terms
    randomness: Any
    name: str = "north"

    def release(self, mechanism: Any, values: Any, *, why: str) -> Any:
        return mechanism.apply(values, self.randomness)


def outputs(study: Study, values: list[bool], tries: int, randomness: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return what the party publishes about both cells, `tries` times."""
    table = Table(study.schema, open_source(pa.table({"x": pa.array(values, pa.bool_())})))
    party: Any = OpenParty(table, study, randomness)
    published = np.zeros((tries, 2), dtype=np.int64)
    assert isinstance(study.protocol, Homm)
    for number in range(tries):
        reply = study.protocol.sanitise(party, Nothing())
        published[number, reply.cells.astype(np.int64)] = reply.counts
    return published


def reached(study: Study, one: list[bool], other: list[bool], event: Callable[[Any], Any], randomness: Any) -> float:
    """Return a lower bound on the epsilon that the event shows, right with probability 1 - 2e-7."""
    hits = [int(event(outputs(study, values, TRIES, randomness)).sum()) for values in (one, other)]
    low = stats.beta.ppf(MISS, hits[0], TRIES - hits[0] + 1)
    high = stats.beta.ppf(1 - MISS, hits[1] + 1, TRIES - hits[1])
    return float(np.log(low / high))


def seen(published: Any) -> Any:
    return published[:, 1] >= 1


def moved(published: Any) -> Any:
    return (published[:, 1] >= 1) & (published[:, 0] < 1)


def audited(unit: str, protocol: str = 'method = "homm"', budget: str = "epsilon = 1.0") -> Study:
    parties = '[[parties]]\nname = "north"\npeople = 1\n'
    return Study.loads(study_text(unit=unit, columns=CELL, parties=parties, protocol=protocol, budget=budget))


@pytest.mark.statistical
def test_adding_a_person_is_hidden_as_claimed() -> None:
    study = audited('neighbours = "add_remove"')
    epsilon = reached(study, [True], EMPTY, seen, SystemRandomness())
    assert 0.8 < epsilon <= 1.0  # the claim holds, and the attack is strong enough to come near it


@pytest.mark.statistical
def test_replacing_a_person_is_hidden_as_claimed() -> None:
    study = audited('neighbours = "replace"')
    epsilon = reached(study, [True], [False], moved, SystemRandomness())
    assert 0.7 < epsilon <= 1.0


@pytest.mark.statistical
def test_several_rows_of_a_person_are_hidden_as_claimed() -> None:
    study = audited('neighbours = "add_remove"\nrows = 3')
    epsilon = reached(study, [True] * 3, EMPTY, lambda published: published[:, 1] >= 3, SystemRandomness())
    assert 0.7 < epsilon <= 1.0


@pytest.mark.statistical
def test_the_printed_noise_is_caught_under_replace() -> None:
    study = audited('neighbours = "replace"', 'method = "homm"\nas_printed = true')
    assert reached(study, [True], [False], moved, SimulationRandomness(1)) > 1.2


@pytest.mark.statistical
def test_half_the_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    study = audited('neighbours = "add_remove"')
    whole = Homm.noise_of

    def half(self: Homm, terms: Terms, party: str) -> Any:
        noise: Any = whole(self, terms, party)
        return type(noise)(sensitivity=noise.sensitivity, epsilon=2 * noise.epsilon)

    monkeypatch.setattr(Homm, "noise_of", half)
    assert reached(study, [True], EMPTY, seen, SystemRandomness()) > 1.5
    assert isinstance(study.protocol, Homm)
    assert half(study.protocol, study, "north").epsilon == Fraction(2)
