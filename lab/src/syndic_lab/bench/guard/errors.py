"""Errors of small whole runs, one or more of every family of methods. Lower is better in all of them."""

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from syndic.data import Table, open_source
from syndic.methods import (
    AnyMethod,
    Average,
    Dplt,
    Estimate,
    Gram,
    Homm,
    Learn,
    Marginals,
    Synthesis,
    Vertimrf,
)
from syndic.methods.learning.plan import LearnPlan
from syndic.model.erm.loss import Logistic, Objective
from syndic.model.erm.solve import minimise
from syndic.model.families.discrete import Multinomial
from syndic.model.gram.fit import regress
from syndic.privacy import Unit
from syndic.study import Release
from syndic_lab.bench.guard.people import SIZES, codes, people, released, schema_of, study_of
from syndic_lab.bench.interactions import missed

Found = tuple[str, str, float]
Vector = NDArray[np.float64]
Judged = tuple[AnyMethod, Callable[[Any], float]]
"""A method, and how far its result is off."""

PAIRS: Final = tuple(combinations(SIZES, 2))
_ADD: Final = Unit(neighbours="add_remove")
_REPLACE: Final = Unit(neighbours="replace")
_TABLES: Final[tuple[tuple[str, AnyMethod, Unit], ...]] = (
    ("merged histograms, three parties", Homm(), _ADD),
    ("masked tables, three parties", Marginals(), _ADD),
    ("graphical model, three parties", Synthesis(), _ADD),
    ("graphical model, columns of two parties", Synthesis(), _REPLACE),
    ("latent tree, two parties", Dplt(), _REPLACE),
    ("VertiMRF with responses, two parties", Vertimrf(way="oracle"), _REPLACE),
)
# errors of few numbers scatter: a run of the guard has the mean of several
_REPEATS: Final = 6
_PENALTY: Final = 0.01


def errors(seed: int, epsilon: float = 1.0) -> Iterator[Found]:
    """Yield the marks that are about errors; with another epsilon than the baseline's, what the guard would see."""
    for name, protocol, unit in _TABLES:
        yield (
            name,
            "distance of all pairs of columns",
            _mean_distance(released(protocol, unit, epsilon, seed, apart=unit == _REPLACE)),
        )
    yield "exclusive or of three columns, five parties", "rows that do not agree", missed(3, seed, epsilon)
    seeds = [_REPEATS * seed + place for place in range(_REPEATS)]
    for name, metric, (protocol, distance) in (
        ("products across two parties", "error of coefficients", _of_gram(Gram())),
        ("products of three parties", "error of coefficients", _of_gram(Gram())),
        ("products of three parties, a target", "error of coefficients", _of_gram(Gram(target="a"))),
        ("learning with curvature, three parties", "error of coefficients", _of_risk("newton", 6)),
        ("learning, noise on the result, three parties", "error of coefficients", _of_risk("mpc_out")),
        ("averages between two servers", "error of averages", _of_averages()),
        ("estimates, three parties", "error of shares", _of_estimates()),
    ):
        apart = name.startswith("products across")
        runs = (released(protocol, _REPLACE, epsilon, one, apart=apart) for one in seeds)
        yield name, metric, float(np.mean([distance(run.result) for run in runs]))


def _apart(found: Any, truth: Any) -> float:
    return float(np.linalg.norm(np.asarray(found, dtype=np.float64).ravel() - np.asarray(truth).ravel()))


# Tables.


def _mean_distance(release: Release) -> float:
    """Return the mean total variation distance between noisy and true tables of two columns."""
    noisy = {}
    if isinstance(release.study.protocol, Marginals):
        result: Any = release.result
        noisy = {one.domain.names: np.asarray(one.values, dtype=np.float64) for one in result.tables}
    found, truth = [], people()
    for pair in PAIRS:
        true = _counts(truth, pair)
        counted = np.maximum(noisy[pair] if pair in noisy else _counts(release.table.to_arrow(), pair), 0)
        found.append(0.5 * float(np.abs(true / true.sum() - counted / counted.sum()).sum()))
    return float(np.mean(found))


def _counts(table: pa.Table, pair: tuple[str, str]) -> Vector:
    counts = np.zeros((SIZES[pair[0]], SIZES[pair[1]]))
    np.add.at(counts, (codes(table, pair[0]), codes(table, pair[1])), 1)
    return counts


# Coefficients.


def _matrix() -> tuple[Vector, Vector]:
    """Return features with a one before them, and the number that they explain."""
    table = people()
    features = np.column_stack([np.ones(table.num_rows), *(codes(table, name) for name in ("b", "c", "d"))])
    return features.astype(np.float64), codes(table, "a").astype(np.float64)


def _of_gram(protocol: Gram) -> Judged:
    truth = np.linalg.lstsq(*_matrix(), rcond=None)[0]

    def distance(result: Any) -> float:
        intercept, slopes = regress(result.gram, "a").original()
        return _apart([intercept, *slopes], truth)

    return protocol, distance


def _of_risk(scheme: Literal["newton", "mpc_out"], iterations: int | None = None) -> Judged:
    protocol = Learn(label="d", positive="true", regularisation=_PENALTY, scheme=scheme, iterations=iterations)
    table = Table(schema=schema_of(), source=open_source(people()))
    features, labels = study_of(protocol, _REPLACE, 1.0).plan_as(LearnPlan).design.matrix(table)
    truth = minimise(Objective(Logistic(), _PENALTY), features, labels[:, 0], tolerance=1e-9).weights
    # the last column is the same for everybody, and its weight times that is the intercept
    truth = np.append(truth[:-1], truth[-1] * features[0, -1])

    def distance(result: Any) -> float:
        found = [*result.model.coefficients[0], result.model.intercepts[0]]
        return _apart(found, truth)

    return protocol, distance


# Averages and shares.


def _of_averages() -> Judged:
    names = ("a", "b", "c")
    truth = [codes(people(), name).mean() for name in names]
    return Average(servers=("p0", "p1"), columns=names), lambda result: _apart(result.averages.averages, truth)


def _of_estimates() -> Judged:
    truth = np.bincount(codes(people(), "a")) / people().num_rows
    family = Estimate(column="a", family=Multinomial())
    return family, lambda result: _apart(result.estimates.together.estimate, truth)
