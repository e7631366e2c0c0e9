"""Read coded rows repeatedly in bounded memory: real, released, resampled or independent.

Everything here is private unless it comes from a released table.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, factorial
from typing import final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from syndic.data import ArrowSource, Coded, Factor, ReleasedTable, Schema, SparseCounts, Table
from syndic.data.column import code_type
from syndic.data.counting import CellCounter, DenseCounter
from syndic.data.factor import gather
from syndic.data.source import BATCH_ROWS
from syndic.random import SimulationRandomness, generator

Clique = tuple[str, ...]
WEIGHT = "weight"
# sources are slow, and every table of counts reads the rows again
KEPT_BYTES = 2**28
# P(a Poisson(1) variable is above this) is below 1e-18
_MOST_COPIES = 19


@final
@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as codes of a schema; `minus` are rows that count negatively (a release with signed weights)."""

    schema: Schema
    read: Callable[[Clique], Iterator[Coded]]
    minus: "Rows | None" = None

    def marginals(self, cliques: Sequence[Clique]) -> list[Factor]:
        """Return the counts of each set of columns, all in one pass."""
        counter = DenseCounter(self.schema.domain, list(cliques))
        for batch in self.read(counter.names):
            counter.add(batch)
        counts = counter.factors()
        if self.minus is None:
            return counts
        both = zip(counts, self.minus.marginals(cliques), strict=True)
        return [Factor(plus.domain, plus.values - minus.values) for plus, minus in both]

    def cells(self, names: Clique) -> SparseCounts:
        """Return the non-empty cells; memory grows with their number only."""
        counter = CellCounter(self.schema.domain.project(names))
        for batch in self.read(names):
            counter.add(batch)
        counts = counter.counts()
        if self.minus is None:
            return counts
        minus = self.minus.cells(names)
        both = np.concatenate([counts.cells, minus.cells]), np.concatenate([counts.counts, -minus.counts])
        return SparseCounts(counts.domain, *gather(*both))

    def size(self) -> int:
        """Return the number of rows, less those of `minus`."""
        first = self.schema.names[0]
        number = sum(len(batch[first]) for batch in self.read((first,)))
        return number - (self.minus.size() if self.minus else 0)

    def take(self, most: int, *, seed: int, label: str) -> Coded:
        """Return `most` rows drawn without replacement, or all rows if there are fewer, in random order."""
        stream = stream_of(seed, label)
        names = self.schema.names
        keys = np.empty(0)
        kept: Coded = {name: np.empty(0, dtype=code_type(self.schema.domain[name])) for name in names}
        for batch in self.read(names):
            keys = np.concatenate([keys, stream.random(len(batch[names[0]]))])
            chosen = np.argsort(keys)[:most]
            keys = keys[chosen]
            kept = {name: np.concatenate([kept[name], batch[name]])[chosen] for name in names}
        return kept


def stream_of(seed: int, label: str) -> np.random.Generator:
    """Return a seeded generator for splits and resamples, a different one for every label. It protects nobody."""
    return generator(SimulationRandomness(seed, "evaluate", label))


def pooled(tables: Sequence[Table]) -> Rows:
    """Return the rows of several tables of one schema, one table after the other."""

    def read(names: Clique) -> Iterator[Coded]:
        for table in tables:
            yield from table.batches(names)

    return Rows(tables[0].schema, read)


def recoded(rows: Rows, codes: Mapping[str, NDArray[np.int64]]) -> Rows:
    """Return the rows with other codes in some columns: `codes` has the new code of every code."""
    new = {name: np.asarray(one, dtype=code_type(len(one))) for name, one in codes.items()}

    def read(names: Clique) -> Iterator[Coded]:
        for batch in rows.read(names):
            yield {name: new[name][each] if name in new else each for name, each in batch.items()}

    return Rows(rows.schema, read, rows.minus and recoded(rows.minus, codes)) if codes else rows


def kept(rows: Rows) -> Rows:
    """Return the same rows, read from memory if their codes fit in 256 MB."""
    names = rows.schema.names
    batches: list[Coded] = []
    size = 0
    for batch in rows.read(names):
        batches.append(batch)
        size += sum(codes.nbytes for codes in batch.values())
        if size > KEPT_BYTES:
            return rows
    if not batches:
        return rows
    whole = {name: np.concatenate([batch[name] for batch in batches]) for name in names}

    def read(wanted: Clique) -> Iterator[Coded]:
        for start in range(0, len(whole[names[0]]), BATCH_ROWS):
            yield {name: whole[name][start : start + BATCH_ROWS] for name in wanted}

    return Rows(rows.schema, read, rows.minus)


def released(table: ReleasedTable, schema: Schema) -> Rows:
    """Return a release's rows; rows with a negative `weight`, which is not in the schema, count negatively."""
    arrow = table.to_arrow()
    plain = schema.as_released()
    if WEIGHT not in table.names or WEIGHT in schema.names:
        return Rows(schema, pooled([Table(plain, ArrowSource(arrow))]).read)
    plus, minus = (arrow.filter(sign(arrow[WEIGHT], pa.scalar(0))) for sign in (pc.greater, pc.less))
    return Rows(schema, pooled([Table(plain, ArrowSource(plus))]).read, pooled([Table(plain, ArrowSource(minus))]))


def thinned(
    rows: Rows, *, seed: int, label: str, lower: float = 0.0, upper: float = 1.0, within: range | None = None
) -> Rows:
    """Return the rows whose uniform random number is in [lower, upper); disjoint intervals give disjoint rows.

    With `within` only rows at these places are returned; the random numbers are the same.
    """

    def chosen(stream: np.random.Generator, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        numbers = stream.random(len(places))
        kept = (numbers >= lower) & (numbers < upper)
        return kept if within is None else kept & (places >= within.start) & (places < within.stop)

    return _changed(rows, seed, label, chosen)


def resampled(rows: Rows, *, seed: int, label: str) -> Rows:
    """Return a bootstrap: every row a Poisson(1) number of times, which needs one pass over the rows."""
    law = np.cumsum([exp(-1) / factorial(number) for number in range(_MOST_COPIES)])

    def copies(stream: np.random.Generator, places: NDArray[np.int64]) -> NDArray[np.int64]:
        numbers = np.searchsorted(law, stream.random(len(places)), side="right")
        return np.repeat(np.arange(len(places)), numbers)

    return _changed(rows, seed, label, copies)


def independent(rows: Rows, *, seed: int, label: str) -> Rows:
    """Return as many rows, every column drawn independently from its exact frequencies."""
    schema = rows.schema
    counts = rows.marginals([(name,) for name in schema.names])
    laws = {}
    for name, factor in zip(schema.names, counts, strict=True):
        laws[name] = np.cumsum(factor.values) / max(int(factor.sum()), 1)
    total = int(counts[0].sum())

    def read(names: Clique) -> Iterator[Coded]:
        streams = {name: stream_of(seed, f"{label}/{name}") for name in names}
        for start in range(0, total, BATCH_ROWS):
            count = min(BATCH_ROWS, total - start)
            yield {
                name: np.searchsorted(laws[name], stream.random(count), side="right").astype(code_type(len(laws[name])))
                for name, stream in streams.items()
            }

    return Rows(schema, read)


def _changed(
    rows: Rows,
    seed: int,
    label: str,
    choose: Callable[[np.random.Generator, NDArray[np.int64]], NDArray[np.bool_] | NDArray[np.int64]],
) -> Rows:
    """Return the rows that `choose` picks, batch by batch from one stream, whatever the size of batches."""

    def read(names: Clique) -> Iterator[Coded]:
        stream, start = stream_of(seed, label), 0
        for batch in rows.read(names):
            places = np.arange(start, start + len(batch[names[0]]))
            chosen = choose(stream, places)
            yield {name: codes[chosen] for name, codes in batch.items()}
            start += len(places)

    return Rows(rows.schema, read)
