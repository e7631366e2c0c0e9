"""CPU time of what takes longest, each beside a reference in the same run. Lower is better in all of them.

Nothing here is in seconds: a slow or busy machine slows the reference too.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import partial
from itertools import combinations, product
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from syndic.data import Domain, Schema, Table, open_source
from syndic.methods.vertimrf.sketch.encode import People, encode, person_digests, printed_plan
from syndic.model.markov.kernels import NUMPY_KERNELS, kernels
from syndic.mpc.mask import expand
from syndic.mpc.ring import Ring
from syndic.noise import DiscreteGaussian, DiscreteLaplace
from syndic.random import SystemRandomness
from syndic_lab.bench.guard.errors import Found
from syndic_lab.bench.model.run import step_milliseconds
from syndic_lab.bench.open_vertical import CodedTable
from syndic_lab.bench.secure.product import carrier_for, opened, study_for
from syndic_lab.bench.sketch.run import plain_sketches

Columns = dict[str, NDArray[np.uint8]]

_TRIES: Final = 5
_DRAWS: Final = 200_000
_ROWS: Final = 200_000
_SIZES: Final = (16, 9, 7, 5, 2, 12, 4, 3)
_MASKS: Final = 20
_SKETCHED: Final = 20_000
_REPETITIONS: Final = 50


def speeds() -> Iterator[Found]:
    """Yield the marks that are about time."""
    yield from _of_noise()
    yield "all pairs of eight columns", "CPU time beside numpy's counts", _ratio(*_counting())
    yield "a step of the model, 1e6 cells", "CPU time beside numpy's step", _of_steps()
    yield "twenty masks", "CPU time beside numpy's unsafe words", _ratio(*_masking())
    yield "sketches of eight columns", "CPU time beside a direct implementation", _ratio(*_sketching())
    yield "tables across two parties", "CPU time beside numpy's counts of open rows", _ratio(*_products())


def _ratio(ours: Callable[[], object], reference: Callable[[], object]) -> float:
    """Return the least CPU time of ours over the least of the reference, tried in turn so that load hits both."""
    least = [float("inf"), float("inf")]
    for _ in range(_TRIES):
        for place, work in enumerate((ours, reference)):
            start = time.process_time()
            work()
            least[place] = min(least[place], time.process_time() - start)
    return least[0] / least[1]


Both = tuple[Callable[[], object], Callable[[], object]]
"""Ours and the reference."""


def _of_noise() -> Iterator[Found]:
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


def _columns(rows: int) -> Columns:
    draws = np.random.default_rng(20261115)
    return {f"c{place}": draws.binomial(size - 1, 0.3, rows).astype(np.uint8) for place, size in enumerate(_SIZES)}


def _counting() -> Both:
    columns, sizes = _columns(_ROWS), dict(zip(map("c{}".format, range(len(_SIZES))), _SIZES, strict=True))
    pairs = list(combinations(sizes, 2))
    table = Table(Schema.from_domain(sizes), open_source(pa.table(columns)))
    return partial(table.marginals, pairs), partial(_plain_counts, columns, pairs)


def _plain_counts(columns: Columns, pairs: Iterable[tuple[str, str]]) -> None:
    for one, two in pairs:
        size = int(columns[two].max()) + 1
        np.bincount(columns[one].astype(np.uint16) * np.uint16(size) + columns[two])


def _of_steps() -> float:
    return step_milliseconds(kernels(), 2 * _TRIES) / step_milliseconds(NUMPY_KERNELS, _TRIES)


def _masking() -> Both:
    ring, unsafe, key = Ring(64), np.random.default_rng(), SystemRandomness().bytes(32)

    def ours() -> None:
        for place in range(_MASKS):
            expand(key, place.to_bytes(4, "big"), _DRAWS, ring)

    def plain() -> None:
        for _ in range(_MASKS):
            unsafe.integers(0, 2**64, _DRAWS, dtype=np.uint64)

    return ours, plain


def _sketching() -> Both:
    key = SystemRandomness().bytes(16)
    codes: NDArray[Any] = np.column_stack(list(_columns(_SKETCHED).values()))
    ids = [str(place).encode() for place in range(_SKETCHED)]
    plan = printed_plan(epsilon=0.4, delta=1e-5, columns=len(_SIZES), repetitions=_REPETITIONS)

    def ours() -> None:
        encode(plan, key, [People(person_digests(key, ids), codes)], list(_SIZES), SystemRandomness(), threads=1)

    return ours, partial(plain_sketches, plan, key, ids, codes, list(_SIZES), _REPETITIONS)


def _products() -> Both:
    columns, half = _columns(_SKETCHED), len(_SIZES) // 2
    names = list(columns)
    tables = [
        CodedTable(Domain(tuple(part), sizes), {name: columns[name] for name in part})
        for part, sizes in ((names[:half], _SIZES[:half]), (names[half:], _SIZES[half:]))
    ]
    study = study_for(tables)
    pairs = list(product(names[:half], names[half:]))

    def plain() -> None:
        for _ in range(_MASKS):  # once is too short to be timed
            _plain_counts(columns, pairs)

    return lambda: opened(carrier_for(study, tables)), plain
