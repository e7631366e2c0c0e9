"""Brute force over the full joint of small random models: the oracle of these tests."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from syndic.data import Domain, Factor
from syndic.model.markov import Impossible, MarkovField, Measurement, plan_tree

Floats = NDArray[np.float64]


def expanded(factor: Factor, domain: Domain) -> NDArray[Any]:
    """Return a factor's values repeated over the columns that only the domain has."""
    ordered = factor.project(name for name in domain.names if name in factor.domain).values
    shape = [size if name in factor.domain else 1 for name, size in zip(domain.names, domain.sizes, strict=True)]
    return np.broadcast_to(ordered.reshape(shape), domain.sizes)


def joint(field: MarkovField) -> Factor:
    """Return the expected counts of every cell, by exp of the sum of the potentials."""
    logs = np.zeros(field.domain.sizes)
    for one in field.potentials:
        logs = logs + expanded(one, field.domain)
    for zero in field.impossible:
        cells = expanded(Factor(field.domain.project(zero.names), zero.cells), field.domain)
        logs = np.where(cells, -np.inf, logs)
    values = np.exp(logs - logs.max())
    return Factor(field.domain, field.total * values / values.sum())


@st.composite
def domains(draw: st.DrawFn, most: int = 6) -> Domain:
    """Domains of a few columns, some of one level."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=most))
    return Domain(tuple("abcdefgh"[: len(sizes)]), tuple(sizes))


@st.composite
def column_sets(draw: st.DrawFn, domain: Domain, most: int = 5) -> list[tuple[str, ...]]:
    """Distinct sets of columns, in any order of columns."""
    choices = [names for count in (1, 2, 3) for names in itertools.combinations(domain.names, count)]
    sets = draw(st.lists(st.sampled_from(choices), max_size=most, unique=True))
    return [tuple(draw(st.permutations(names))) for names in sets]


@st.composite
def fields(draw: st.DrawFn) -> MarkovField:
    """Models with random potentials, also peaked ones, and some impossible cells."""
    domain = draw(domains())
    sets = draw(column_sets(domain))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    width = draw(st.sampled_from([0.5, 3.0, 100.0]))
    potentials = tuple(
        Factor(domain.project(names), generator.normal(0, width, domain.project(names).sizes)) for names in sets
    )
    impossible = []
    for names in sets[: draw(st.integers(0, 2))]:
        cells = generator.random(domain.project(names).sizes) < 0.3
        cells.reshape(-1)[0] = False
        impossible.append(Impossible(names, cells))
    # the first levels are possible everywhere, so there is always a row
    return MarkovField(domain, plan_tree(domain, sets), potentials, 50.0, tuple(impossible))


def noisy(
    domain: Domain, table: Floats, sets: Sequence[tuple[str, ...]], generator: np.random.Generator, deviation: float
) -> list[Measurement]:
    """Return noisy tables of a full table."""
    return [
        Measurement(
            names,
            Factor(domain, table).project(names).values + generator.normal(0, deviation, domain.project(names).sizes),
            deviation**2,
        )
        for names in sets
    ]
