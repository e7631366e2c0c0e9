"""Garbage where methods learn about columns of several parties turns what they release, for every such method."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from msgspec import structs

from syndic.data import Domain, Schema
from syndic.kernel import Session, run, schema_of
from syndic.methods import AnyMethod, Distdiffgen, Dplt, Glued, Gram, Marginals, Mixing, Synthesis, Vertimrf
from syndic.methods.vertimrf.model.build import Build
from syndic.methods.vertimrf.model.tables import equal_width
from syndic.model.markov import Measurement
from syndic.privacy import Unit
from syndic.random import SimulationRandomness
from syndic.runtime import Local
from syndic_lab.bench.model.synthesis import simulated_node
from syndic_lab.bench.model.synthesis_data import Coded, codes_of
from syndic_lab.bench.vertical.runs import study_of

PEOPLE = 3000
HELD: list[tuple[str, ...]] = [("a", "b"), ("c", "d")]
LABELLED: list[tuple[str, ...]] = [("a", "b"), ("b", "c", "d")]


def table(*, garbage: bool) -> Coded:
    """Return columns that follow one number; as garbage, those of the second party are of other people."""
    draws = np.random.default_rng(3)
    hidden = draws.integers(0, 3, PEOPLE)
    columns = {name: np.where(draws.random(PEOPLE) < 0.85, hidden, draws.integers(0, 3, PEOPLE)) for name in "abcd"}
    if garbage:
        other = draws.permutation(PEOPLE)
        columns |= {name: columns[name][other] for name in "cd"}
    return Coded("made", Schema.from_domain(dict.fromkeys("abcd", 3)), pa.table(columns))


def released(method: AnyMethod, *, garbage: bool, epsilon: str, neighbours: Any, held: list[tuple[str, ...]]) -> Any:
    """Return the result of one run, every party in this process."""
    data = table(garbage=garbage)
    study = study_of(data, epsilon, held, method, neighbours=neighbours)
    if isinstance(method, Mixing):
        study = structs.replace(study, unit=Unit(neighbours=neighbours, parties=2))
    nodes = {
        party.name: simulated_node(study, party.name, data.table.select(schema_of(study, party.name).names), 5)
        for party in study.parties
    }
    session = Session(
        runtime=Local(nodes),
        study=study.digest,
        method=study.protocol,
        plan=study.plan,
        randomness=SimulationRandomness(5, "draws"),
    )
    return run(study.protocol, session)


def apart(counts: np.ndarray) -> float:
    """Return how far a table of two columns is from independent columns: 0.48 for a and c."""
    shares = counts / counts.sum()
    return float(np.abs(shares - np.outer(shares.sum(axis=1), shares.sum(axis=0))).sum()) / 2


def of_rows(result: Any) -> float:
    codes: Mapping[str, np.ndarray] = codes_of(result.table.to_arrow(), table(garbage=False).schema)
    return apart(np.histogram2d(codes["a"], codes["c"], bins=3)[0])


def of_tables(result: Any) -> float:
    return apart(np.maximum(result[("a", "c")].values, 0.0))


def of_moments(result: Any) -> float:
    """Return the largest covariance of a feature of a with one of c, in units of one person."""
    gram = result.gram if hasattr(result, "gram") else result.mixed.gram()
    matrix = gram.matrix / gram.matrix[0, 0]
    first, second = ([place for place, name in enumerate(gram.names) if name.startswith(one)] for one in "ac")
    return float(np.abs(matrix[np.ix_(first, second)] - np.outer(matrix[first, 0], matrix[0, second])).max())


SKETCHED: Any = {"repetitions": 1000}
# what makes it, the epsilon, neighbours, the columns of each party, what is looked at, what garbage changes at least
CASES: dict[str, tuple[Callable[[], AnyMethod], str, str, list[tuple[str, ...]], Callable[[Any], float], float]] = {
    "synthesis": (Synthesis, "4", "replace", HELD, of_rows, 0.2),
    "vertimrf, sketches": (lambda: Vertimrf(way="sketch", **SKETCHED), "10", "replace", HELD, of_rows, 0.2),
    "vertimrf, responses": (
        lambda: Vertimrf(way="oracle", local_share=Fraction(1, 10)), "10", "replace", HELD, of_rows, 0.2,
    ),
    "vertimrf, published sketches": (
        lambda: Vertimrf(way="sketch", as_published=True, **SKETCHED), "16", "add_remove", HELD, of_rows, 0.2,
    ),
    "vertimrf, published responses": (
        lambda: Vertimrf(way="oracle", as_published=True), "20", "replace", HELD, of_rows, 0.2,
    ),
    "dplt": (Dplt, "8", "replace", HELD, of_rows, 0.2),
    "distdiffgen": (lambda: Distdiffgen(label="b", specialisations=6), "16", "replace", LABELLED, of_rows, 0.2),
    "marginals": (Marginals, "4", "replace", HELD, of_tables, 0.3),
    "gram": (Gram, "4", "replace", HELD, of_moments, 0.05),
    "mixing": (lambda: Mixing(scheme="dgm"), "20", "replace", HELD, of_moments, 0.05),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_other_peoples_columns_turn_the_release(name: str) -> None:
    make, epsilon, neighbours, held, look, least = CASES[name]
    true, turned = (
        look(released(make(), garbage=garbage, epsilon=epsilon, neighbours=neighbours, held=held))
        for garbage in (False, True)
    )
    assert true - turned > least


def test_glued_rows_know_nothing_of_the_other_party() -> None:
    """The check can fail: this method has neither encodings nor products, and garbage changes nothing."""
    rows = [released(Glued(), garbage=each, epsilon="8", neighbours="replace", held=HELD) for each in (False, True)]
    assert max(map(of_rows, rows)) < 0.05


class Told:
    """A table across parties with noise as large as that of published responses at epsilon 0.8."""

    def __init__(self, cells: np.ndarray) -> None:
        self.cells = cells

    def table(self, names: tuple[str, ...]) -> np.ndarray:
        del names
        return self.cells

    def variance(self, names: tuple[str, ...]) -> float:
        del names
        return 1e12


@pytest.mark.parametrize("consistency", [True, False])
def test_published_vertimrf_fits_tables_across_parties_as_closely_as_local_ones(*, consistency: bool) -> None:
    """Weighed by their precision they count for nothing here, and garbage in their place goes unnoticed."""
    domain = Domain(("a", "c"), (2, 2))
    even = {name: Measurement((name,), np.array([500.0, 500.0]), 1.0) for name in domain.names}
    found = []
    for cells in ([[450.0, 50.0], [50.0, 450.0]], [[50.0, 450.0], [450.0, 50.0]]):
        build = Build(
            bins=equal_width(domain, 4), people=1000.0, pairs=[("a", "c")], across=Told(np.array(cells)), local=(),
            counts=even, spread=True, consistency=consistency, aware=False, largest=100, cells=100, edges=None,
            refined=1, rounds=1,
        )  # fmt: skip
        found.append(build.run().field.marginals([("a", "c")])[0].values)
    assert found[0] == pytest.approx(np.array([[450.0, 50.0], [50.0, 450.0]]), abs=5)
    assert found[1] == pytest.approx(np.array([[50.0, 450.0], [450.0, 50.0]]), abs=5)
