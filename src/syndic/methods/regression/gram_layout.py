"""Which features of which parties a Gram matrix has, and the noise and rings that follow from them."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import final

import msgspec
import numpy as np
from numpy.typing import NDArray

from syndic.data.coding import Coding, Feature, coded_rows, coding_of, product_of
from syndic.data.table import Coded
from syndic.document import exact
from syndic.errors import InputError
from syndic.kernel import Terms, schema_of
from syndic.methods.synthesis.vertical_requirements import budgets_of
from syndic.model.gram.matrix import intercept, places_of, presence, sensitivity_squared
from syndic.mpc.triple import ProductSizes, product_sizes
from syndic.noise import FineGaussianShare
from syndic.privacy import mu_squared_for

Pair = tuple[str, str]

# The noise of one sum exceeds what the ring has room for with a chance below this over all sums.
_OVERFLOW = 2.0**-64
MOST_BITS = 62
"""Shares of sums fill their ring, and noise is added to them as 64-bit numbers, which must not wrap."""

# rows whose products, at most 2^32 each, add up to less than 2^53
_PIECE = 1 << 20


@final
@dataclass(frozen=True, kw_only=True)
class Clip:
    """Some of a party's features, `blocks` blocks of numbers, whose sum of squares is brought down to `length`."""

    places: tuple[int, ...]
    blocks: int
    length: Fraction

    def apply(self, rows: NDArray[np.int32], bits: int) -> NDArray[np.int32]:
        """Return the rows, longer ones shortened; rounding is towards zero, so none stays longer."""
        numbers = rows[:, list(self.places)].astype(np.int64)
        most = int(self.length * 4**bits)
        squares = (numbers**2).sum(axis=1)
        long = squares > most
        # a little less, so that the floating-point product cannot round up
        factors = np.sqrt(most / squares[long])[:, None] * (1 - 1e-12)
        numbers[long] = np.trunc(numbers[long] * factors).astype(np.int64)
        shortened = rows.copy()
        shortened[:, list(self.places)] = numbers
        return shortened


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Layout:
    """Public. `features` are those of the matrix; `spans` says which of them a party has, `codings` how it makes them.

    `places` says which opened sum an entry of the matrix is. Sums are whole numbers in units of 4^-bits.
    """

    codings: Mapping[str, tuple[Coding, ...]]
    features: tuple[Feature, ...]
    spans: Mapping[str, slice]
    places: NDArray[np.int64]
    absent: Mapping[str, Mapping[str, int]]
    clips: Mapping[str, "Clip"]
    bits: int
    sensitivity: Fraction
    noise: FineGaussianShare
    sizes: ProductSizes

    @property
    def count(self) -> int:
        """How many sums are opened."""
        return self.noise.dimension

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise of an opened sum, in units of z."""
        return float(self.noise.total_variance(self.noise.parties) ** 0.5) / float(4**self.bits)

    def rows(self, party: str, coded: Coded) -> NDArray[np.int32]:
        """Return the party's features of coded rows. Private."""
        matrix = coded_rows(self.codings[party], coded)
        if party in self.clips:
            matrix = self.clips[party].apply(matrix, self.bits)
        if not self.absent:
            return matrix
        levels = self.absent[party]
        there = ~np.logical_and.reduce([coded[name] >= level for name, level in levels.items()])
        full = np.hstack([np.full((len(matrix), 1), 1 << self.bits, dtype=np.int32), matrix])
        full[~there] = 0
        return full


@lru_cache(maxsize=32)
def layout_of(
    terms: Terms,
    *,
    products: tuple[Pair, ...],
    colluding: int,
    bits: int,
    overlap: bool,
    norm: float,
    exempt: tuple[str, ...],
) -> Layout:
    """Return the layout; every message's size follows from it, so it is kept for those who ask again."""
    codings = {party.name: _codings(terms, party.name, products, bits) for party in terms.parties}
    features, spans = _features(codings, overlap=overlap)
    check_names(itertools.chain.from_iterable(codings.values()), features)
    places = places_of(features)
    count = int(places.max()) + 1
    found = {name: clip_of(blocks, exact(norm), exempt) for name, blocks in codings.items()}
    clips = {name: clip for name, clip in found.items() if clip is not None}
    sensitivity = sensitivity_squared(
        [block for blocks in codings.values() for block in blocks],
        len(codings) if overlap else 0,
        [(clip.blocks, clip.length) for clip in clips.values()],
    )
    noise = _noise(terms, sensitivity * 16**bits, count, colluding)
    return Layout(
        codings=codings,
        features=features,
        spans=spans,
        places=places,
        absent=_absent(terms) if overlap else {},
        clips=clips,
        bits=bits,
        sensitivity=sensitivity,
        noise=noise,
        sizes=_sizes(terms, [span.stop - span.start for span in spans.values()], bits, noise),
    )


def _features(
    codings: Mapping[str, tuple[Coding, ...]], *, overlap: bool
) -> tuple[tuple[Feature, ...], dict[str, slice]]:
    """Return the intercept and all parties' features, or each after its party's presence; and where they are."""
    features: list[Feature] = [] if overlap else [intercept()]
    spans = {}
    for name, blocks in codings.items():
        start = len(features)
        ones = presence(name) if overlap else intercept()
        features += [ones] if overlap else []
        features += [msgspec.structs.replace(each, ones=ones.name) for block in blocks for each in block.features]
        spans[name] = slice(start, len(features))
    return tuple(features), spans


def _sizes(terms: Terms, widths: list[int], bits: int, noise: FineGaussianShare) -> ProductSizes:
    return product_sizes(
        rows=terms.parties[0].people or 1,
        entry=1 << bits,
        signed=True,
        headroom=noise.tail(_OVERFLOW / noise.dimension, noise.parties),
        columns=widths,
        cells=sum(left * right for left, right in itertools.combinations(widths, 2)),
        # smaller rings for blocks of rows save little here, and a dishonest dealer could do more with them
        lift=False,
        chunk_bytes=min(1 << 24, min(terms.limits.message_mb, terms.limits.memory_mb) * 10**6 // (8 * len(widths))),
    )


def _codings(terms: Terms, party: str, products: tuple[Pair, ...], bits: int) -> tuple[Coding, ...]:
    columns = {column.name: coding_of(column, bits) for column in schema_of(terms, party).columns}
    return (
        *columns.values(),
        *(product_of(columns[one], columns[other]) for one, other in products if one in columns and other in columns),
    )


def check_names(codings: Iterable[Coding], features: Sequence[Feature]) -> None:
    """Refuse columns that could not be told apart by the names of their blocks or features."""
    blocks = [each.block for each in features if each.ones == each.name]
    blocks += ["*".join(coding.columns) for coding in codings]
    for names in (blocks, [each.name for each in features]):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(f"two features would be called {twice[0]}: rename a column or a value")


def clip_of(blocks: tuple[Coding, ...], norm: Fraction, exempt: tuple[str, ...]) -> Clip | None:
    """Return what is shortened at a party: blocks of nothing but numbers, unless a column of theirs is exempt."""
    places: list[int] = []
    start = count = 0
    for block in blocks:
        if block.numbers == len(block.features) and not set(exempt) & set(block.columns):
            places += range(start, start + len(block.features))
            count += 1
        start += len(block.features)
    length = max(Fraction(1), norm * count)
    return Clip(places=tuple(places), blocks=count, length=length) if length < count else None


def _absent(terms: Terms) -> dict[str, dict[str, int]]:
    """Return, by party and column, the code from which on a value is missing: where all are, the person is absent."""
    found = {}
    for party in terms.parties:
        columns = schema_of(terms, party.name).columns
        filled = [column.name for column in columns if column.size == column.levels]
        if filled:
            raise InputError(
                f"overlap: a person whom '{party.name}' does not have is a row of missing values, so missing must be "
                f'"level" in {", ".join(filled)}'
            )
        found[party.name] = {column.name: column.levels for column in columns}
    return found


def _noise(terms: Terms, square: Fraction, count: int, colluding: int) -> FineGaussianShare:
    """Return each party's share of the noise. Sums are whole numbers of a fine unit already: no fraction bits."""

    def made(slack: Fraction) -> FineGaussianShare:
        return FineGaussianShare(
            parties=len(terms.parties),
            colluding=colluding,
            dimension=count,
            sensitivity_squared=square,
            mu_squared=min(mu_squared_for(budget.epsilon, budget.delta, slack) for budget in budgets_of(terms)),
            changed=count,
            fraction_bits=0,
        )

    try:
        # with the slack reckoned in there is more noise, hence less slack: twice the first is safely enough
        return made(2 * made(Fraction(0)).event.slack)
    except ValueError as error:
        raise InputError(f"the noise shares cannot be made: {error}") from None


def products_of(rows: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the sums of products of any two features over some rows, exactly. Private."""
    total = np.zeros((rows.shape[1], rows.shape[1]), dtype=np.int64)
    for start in range(0, len(rows), _PIECE):
        # sums of whole numbers below 2^53: the floating-point product is exact
        wide = rows[start : start + _PIECE].astype(np.float64)
        total += (wide.T @ wide).astype(np.int64)
    return total
