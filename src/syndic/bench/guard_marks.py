"""What the guard measures: errors of small whole runs, and CPU time beside a reference in the same run.

Lower is better in all of them. People are made up from a fixed seed; noise comes from the run's seed, so it protects
nobody. Nothing here is in seconds: a slow or busy machine slows the reference too.
"""

import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from syndic.data import Schema
from syndic.document import from_toml
from syndic.mechanism import DiscreteGaussian, DiscreteLaplace
from syndic.random import SystemRandomness
from syndic.study import Release, Study, simulate

Found = tuple[str, str, float]
PEOPLE = 3_000
_SIZES = {"a": 6, "b": 4, "c": 3, "d": 2}
_DRAWS = 200_000
_TRIES = 5


def measure(seed: int) -> Iterator[Found]:
    """Yield row, metric and value of every mark, once."""
    yield from errors(seed)
    yield from _speeds()


def measured_alone(seed: int) -> tuple[Found, ...]:
    """Return every mark, measured once; to be run in a process of its own."""
    return tuple(measure(seed))


def errors(seed: int, epsilon: float = 1.0) -> Iterator[Found]:
    """Yield the marks that are about errors; with another epsilon than the baseline's, what the guard would see."""
    for name, method, unit in (
        ("merged histograms, three parties", 'method = "homm"', "add_remove"),
        ("masked tables, three parties", 'method = "marginals"', "add_remove"),
        ("graphical model, three parties", 'method = "synthesis"', "add_remove"),
        ("vertical synthesis, two parties", 'method = "vertical"', "replace"),
    ):
        yield name, "distance of all pairs of columns", _distance(method, unit, seed, epsilon)


def _distance(method: str, unit: str, seed: int, epsilon: float) -> float:
    """Return the mean total variation distance between noisy and true tables of two columns."""
    table, vertical = _people(), unit == "replace"
    names = ("p0", "p1") if vertical else ("p0", "p1", "p2")
    columns = (("a", "b"), ("c", "d")) if vertical else (tuple(_SIZES),) * 3
    head = f'name = "guard"\nunit = {{ neighbours = "{unit}" }}\nbudget = {{ epsilon = {epsilon}, delta = 1e-6 }}\n'
    parties = "".join(
        f'[[parties]]\nname = "{name}"\npeople = {PEOPLE if vertical else PEOPLE // 3}\n'
        + (f"columns = {list(owned)}\n" if vertical else "")
        for name, owned in zip(names, columns, strict=True)
    )
    fields = "".join(
        f'[[schema.columns]]\nname = "{name}"\nkind = "integer"\nlower = 0\nupper = {size - 1}\n'
        "missing = { value = 0 }\n"
        for name, size in _SIZES.items()
    )
    study = from_toml(f"{head}[protocol]\n{method}\n{parties}{fields}", Study, where="guard")
    sources = {
        name: table.select(list(owned)) if vertical else table.slice(place * PEOPLE // 3, PEOPLE // 3)
        for place, (name, owned) in enumerate(zip(names, columns, strict=True))
    }
    return _mean_distance(simulate(study, sources, seed=seed), table)


def _mean_distance(release: Release, table: pa.Table) -> float:
    schema = Schema.from_domain(_SIZES)
    pairs = [(one, two) for place, one in enumerate(schema.names) for two in schema.names[place + 1 :]]
    tables = getattr(release.result, "tables", None)
    noisy = {}
    if release.study.protocol.__struct_config__.tag == "marginals" and tables is not None:
        noisy = {one.domain.names: np.asarray(one.values, dtype=np.float64) for one in tables}
    found = []
    for pair in pairs:
        true = _counts(table, pair)
        counted = noisy[pair] if pair in noisy else _counts(release.table.to_arrow(), pair)
        counted = np.maximum(counted, 0)
        found.append(0.5 * float(np.abs(true / true.sum() - counted / counted.sum()).sum()))
    return float(np.mean(found))


def _counts(table: pa.Table, pair: tuple[str, str]) -> NDArray[np.float64]:
    counts = np.zeros((_SIZES[pair[0]], _SIZES[pair[1]]))
    np.add.at(counts, (np.asarray(table[pair[0]]), np.asarray(table[pair[1]])), 1)
    return counts


def _people() -> pa.Table:
    draws = np.random.default_rng(20261115)
    first = draws.binomial(5, 0.4, PEOPLE)
    second = np.clip(first // 2 + draws.integers(0, 2, PEOPLE), 0, 3)
    third = np.where(draws.random(PEOPLE) < 0.7, first % 3, draws.integers(0, 3, PEOPLE))
    fourth = (draws.random(PEOPLE) < 0.15 + 0.2 * second).astype(np.int64)
    return pa.table({"a": first, "b": second, "c": third, "d": fourth})


def _speeds() -> Iterator[Found]:
    # the reference writes to one place: what it takes to get fresh memory depends on what ran before
    system, unsafe, place = SystemRandomness(), np.random.default_rng(), np.empty(_DRAWS)
    laws: dict[str, DiscreteLaplace | DiscreteGaussian] = {
        "discrete Laplace, scale 1000": DiscreteLaplace(sensitivity=1000, epsilon=Fraction(1)),
        "discrete Gaussian, sigma 1000": DiscreteGaussian(sensitivity_squared=Fraction(10**6), rho=Fraction(1, 2)),
        "discrete Gaussian, sigma 1": DiscreteGaussian(sensitivity_squared=Fraction(1), rho=Fraction(1, 2)),
    }
    for name, law in laws.items():
        ratio = _ratio(partial(law.draw, _DRAWS, system), partial(unsafe.standard_normal, out=place))
        yield name, "CPU time beside numpy's normal doubles", ratio


def _ratio(ours: Callable[[], object], reference: Callable[[], object]) -> float:
    """Return the least CPU time of ours over the least of the reference, tried in turn so that load hits both."""
    least = [float("inf"), float("inf")]
    for _ in range(_TRIES):
        for place, work in enumerate((ours, reference)):
            start = time.process_time()
            work()
            least[place] = min(least[place], time.process_time() - start)
    return least[0] / least[1]
