"""Rows with known dependence, and counters that record or replay, for tests of what is measured."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.model.markov import Measurement
from syndic.model.selection import Curator, Grouping
from syndic.model.selection.counts import Parities, Room, Sent, endless
from syndic.privacy import GaussianEvent
from syndic.random import SimulationRandomness

Names = tuple[str, ...]
Codes = dict[str, NDArray[np.int64]]


def chain(domain: Domain, rows: int, seed: int = 0, stay: float = 0.7) -> Codes:
    """Return rows in which each column is at the same height as the one before with chance `stay`, else anywhere."""
    draws = np.random.default_rng(seed)
    codes: Codes = {}
    before = draws.integers(0, 1 << 30, rows)
    for name, size in zip(domain.names, domain.sizes, strict=True):
        fresh = draws.integers(0, 1 << 30, rows)
        before = np.where(draws.random(rows) < stay, before, fresh)
        codes[name] = (before * size) >> 30
    return codes


def curator(codes: Codes, domain: Domain, seed: int = 0, **options: Any) -> tuple[Curator, list[GaussianEvent]]:
    """Return a curator in simulation and the list of what it is charged."""
    events: list[GaussianEvent] = []
    return Curator(codes, domain, SimulationRandomness(seed, "tests"), charge=events.append, **options), events


class Recorder:
    """Passes questions on to a curator and keeps questions and answers."""

    def __init__(self, inner: Curator) -> None:
        """Record what this curator is asked."""
        self.inner = inner
        self.domain, self.people = inner.domain, inner.people
        self.asked: list[tuple[list[Names], Fraction, Grouping]] = []
        self.answers: list[list[Measurement]] = []
        self.opened: list[Parities] = []

    def variance(self, mu_squared: Fraction) -> float:
        """Return the curator's."""
        return self.inner.variance(mu_squared)

    def noisier(self, table: Domain) -> float | None:
        """Return the curator's."""
        return self.inner.noisier(table)

    def sends(self, table: Domain) -> Sent:
        """Return the curator's."""
        return self.inner.sends(table)

    def room(self, tables: int, domain: Domain) -> Room:
        """Return the curator's."""
        return self.inner.room(tables, domain)

    def measure(self, tables: Sequence[Names], mu_squared: Fraction, grouping: Grouping) -> list[Measurement]:
        """Return the curator's answer and keep it."""
        self.asked.append((list(tables), mu_squared, grouping))
        self.answers.append(self.inner.measure(tables, mu_squared, grouping))
        return self.answers[-1]

    def parities(self, sets: Sequence[Names], mu_squared: Fraction, halves: Grouping) -> Parities:
        """Return the curator's answer and keep it."""
        self.asked.append((list(sets), mu_squared, halves))
        self.opened.append(self.inner.parities(sets, mu_squared, halves))
        return self.opened[-1]


class Replay:
    """Gives recorded answers. It has no rows, so whatever is chosen from it was chosen from answers alone."""

    def __init__(self, record: Recorder) -> None:
        """Take over the answers of a record."""
        self.domain, self.people = record.domain, record.people
        self.answers, self.opened = list(record.answers), list(record.opened)
        self.variances = record.inner.variance
        self.asked: list[tuple[list[Names], Fraction, Grouping]] = []

    def variance(self, mu_squared: Fraction) -> float:
        """Return the variance of noise, which does not depend on rows."""
        return self.variances(mu_squared)

    def noisier(self, table: Domain) -> float | None:
        """Return 1: every table has the same noise."""
        del table
        return 1.0

    def sends(self, table: Domain) -> Sent:
        """Return nothing."""
        del table
        return {}

    def room(self, tables: int, domain: Domain) -> Room:
        """Return what takes every table."""
        del tables, domain
        return endless

    def measure(self, tables: Sequence[Names], mu_squared: Fraction, grouping: Grouping) -> list[Measurement]:
        """Return the next recorded answer."""
        self.asked.append((list(tables), mu_squared, grouping))
        return self.answers.pop(0)

    def parities(self, sets: Sequence[Names], mu_squared: Fraction, halves: Grouping) -> Parities:
        """Return the next recorded answer."""
        self.asked.append((list(sets), mu_squared, halves))
        return self.opened.pop(0)
