"""Sketches: the kernel beside a plain one, what the printed claim is worth, and errors of cells beside each other.

The plain kernel takes the same hashes, a logarithm of each and the largest rank of each value, repetition by
repetition; where the run is quick it does a tenth of the repetitions, and its time is multiplied.
"""

import time
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from syndic.methods.vertimrf.sketch.cost import sketch_delta
from syndic.methods.vertimrf.sketch.encode import (
    People,
    SketchPlan,
    encode,
    largest_ranks,
    person_digests,
    person_words,
    printed_plan,
)
from syndic.random import SystemRandomness
from syndic_lab.bench.row import Row
from syndic_lab.bench.secure.product import tables_for
from syndic_lab.bench.sketch.error import errors

_PEOPLE, _REPETITIONS = 45_222, 2000
# one party's time for the sketches of Adult, of one thread
_PUBLISHED_SECONDS = 23.1 * 60
_COLUMNS = (2, 3, 5, 8, 15)
_BINS = 4


def rows(quick: bool) -> Iterator[Row]:
    """Yield times, true deltas at the claimed epsilon, and errors of cells."""
    yield from times(quick)
    yield from deltas(quick)
    yield from errors(quick)


def times(quick: bool) -> Iterator[Row]:
    """Yield the time of one party's sketches of Adult, or of a table as large."""
    tables = tables_for("adult") or tables_for("sixty")
    if tables is None:  # the made-up table is always there
        return
    codes = np.column_stack([table.codes[name] for table in tables for name in table.domain.names])
    sizes = [size for table in tables for size in table.domain.sizes]
    key = SystemRandomness().bytes(16)
    ids = [str(place).encode() for place in range(len(codes))]
    printed = printed_plan(epsilon=0.4, delta=1e-5, columns=len(sizes), repetitions=_REPETITIONS)
    bare = SketchPlan(phantoms=printed.phantoms, floor=0, repetitions=_REPETITIONS)
    for name, plan in (("sketch", printed), ("sketch without floor", bare)):

        def ours(plan: SketchPlan = plan) -> None:
            people = People(person_digests(key, ids), codes)
            encode(plan, key, [people], sizes, SystemRandomness(), threads=2)

        tenth = 10 if quick else 1

        def plain(plan: SketchPlan = plan, part: int = tenth) -> None:
            plain_sketches(plan, key, ids, codes, sizes, _REPETITIONS // part)

        fast, slow = _timed(ours), _timed(plain)
        row = f"{name}, {_PEOPLE} rows, t {_REPETITIONS}"
        yield _row(row, "seconds", fast[0], "s", slow[0] * tenth, _PUBLISHED_SECONDS)
        yield _row(row, "cpu seconds", fast[1], "s", slow[1] * tenth)
        yield _row(row, "ratio", slow[1] * tenth / fast[1], "x", 1.0)


def many_repetitions() -> Iterator[Row]:
    """Yield one party's time and traffic for sketches of Adult, or of a table as large, with 8,000 repetitions."""
    tables = tables_for("adult") or tables_for("sixty")
    if tables is None:  # the made-up table is always there
        return
    codes = np.column_stack([tables[0].codes[name] for name in tables[0].domain.names])
    sizes = [min(_BINS, size) for size in tables[0].domain.sizes]
    key = SystemRandomness().bytes(16)
    people = People(person_digests(key, [str(place).encode() for place in range(len(codes))]), codes % _BINS)
    plan = printed_plan(epsilon=0.4, delta=1e-5, columns=15, repetitions=8000)

    def work() -> None:
        encode(plan, key, [people], sizes, SystemRandomness(), threads=2)

    elapsed, _ = _timed(work)
    row = f"sketch, {len(codes)} rows, {len(sizes)} columns of a party, t 8000"
    # published: 93 minutes a party, and 22 Mb, read as MB; a rank is sent in two bytes
    yield _row(row, "seconds", elapsed, "s", published=93 * 60.0)
    yield _row(row, "megabytes", 2 * 2 * plan.repetitions * sum(sizes) / 1e6, "MB of two parties", published=22.0)


def plain_sketches(
    plan: SketchPlan,
    key: bytes,
    ids: list[bytes],
    codes: NDArray[np.integer],
    sizes: list[int],
    repetitions: int,
) -> NDArray[np.int64]:
    """Return the sketches as a direct implementation makes them: a logarithm of each person in each repetition."""
    digests = person_digests(key, ids)
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    places = codes.astype(np.int64) + starts
    found = np.zeros((repetitions, sum(sizes)), dtype=np.int64)
    for first in range(0, repetitions, 2):
        words = person_words(key, digests, min(2, repetitions - first), first=first)
        for repetition, some in enumerate(words, start=first):
            # the hash of 0 is guarded: its logarithm is infinite
            hashes = np.maximum(2.0**64 - some.astype(np.float64), 1.0) / 2.0**64
            ranks = np.ceil(-np.log(hashes) / np.log(1 + float(plan.gamma))).astype(np.int64)
            for column in places.T:
                np.maximum.at(found[repetition], column, ranks)
    phantoms = largest_ranks(plan, plan.phantoms, found.size, SystemRandomness()).reshape(found.shape)
    return np.maximum(np.maximum(found, phantoms), plan.floor)


def _timed(work: Callable[[], None]) -> tuple[float, float]:
    """Return elapsed and processor seconds, of all threads."""
    begun, used = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - begun, time.process_time() - used


def deltas(quick: bool) -> Iterator[Row]:
    """Yield what delta printed sketches really have at the epsilon that they claim."""
    for gamma in ("1",) if quick else ("1", "3/10", "1/10"):
        for columns in _COLUMNS:
            plan = printed_plan(epsilon=0.4, delta=1e-5, columns=columns, gamma=Fraction(gamma))
            found = sketch_delta(plan, columns=columns, epsilon=0.4)
            row = f"printed sketch, claimed (0.4, 1e-5), {columns} columns, gamma {float(Fraction(gamma)):g}"
            yield _row(row, "true delta, at least", found.lower, "", None, 1e-5)
            yield _row(row, "true delta, at most", found.upper, "", None, 1e-5)


def _row(
    row: str, metric: str, value: float, unit: str, baseline: float | None = None, published: float | None = None
) -> Row:
    return Row(bench="sketch", row=row, metric=metric, value=value, unit=unit, baseline=baseline, published=published)
