"""Which columns of which parties are released, and the noise that follows: jointly calibrated, or as printed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.data.coding import Coding, Feature, coded_rows, coding_of
from syndic.data.table import Coded
from syndic.kernel import Terms, budget_of, schema_of
from syndic.model.gram.matrix import intercept
from syndic.model.gram.mixing import classical_sigma, mixes_for, printed_mixes
from syndic.model.gram.rows import check_names
from syndic.noise import FineGaussian
from syndic.privacy import Budget, mu_squared_for

Scheme = Literal["rmgm", "dgm", "bgm"]
Bounds = Literal["symmetric", "unit"]

# a ledger counts mu^2 / 2 in units of 1e-12, rounded up
_STEP = Fraction(2, 10**12)
# a ledger counts slack in units of 1e-18, rounded up
_LEAST_SLACK = Fraction(1, 10**18)

FINE = 8
"""Noise is finer than the values by so many bits, which keeps it as good as Gaussian up to an epsilon of about 25."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Layout:
    """Public. `squares`: how far one person's row at a party can move, squared, for values in [-1, 1].

    `mixes` is None where rows are not mixed. A published number is a whole number; it stands for a value times
    2^(bits + 8), and times the root of `mixes` where rows are mixed. `tau` is the noise of a value.
    """

    codings: Mapping[str, tuple[Coding, ...]]
    squares: Mapping[str, int]
    noises: Mapping[str, FineGaussian]
    mixes: int | None
    bits: int
    tau: float

    @property
    def features(self) -> tuple[Feature, ...]:
        """All features, party by party."""
        return tuple(each for blocks in self.codings.values() for block in blocks for each in block.features)

    def width(self, party: str) -> int:
        """Return how many features a party has."""
        return sum(len(block.features) for block in self.codings[party])

    def rows(self, party: str, coded: Coded) -> NDArray[np.int32]:
        """Return the party's features of coded rows, from -2^bits to 2^bits. Private."""
        return coded_rows(self.codings[party], coded)


@lru_cache(maxsize=32)
def layout_of(
    terms: Terms, *, scheme: Scheme, mixes: int | None, bits: int, bounds: Bounds, as_printed: bool
) -> Layout:
    """Return the layout; a study is frozen, so it is kept for those who ask again."""
    codings = {
        party.name: tuple(coding_of(column, bits) for column in schema_of(terms, party.name).columns)
        for party in terms.parties
    }
    every = [block for blocks in codings.values() for block in blocks]
    check_names(every, (intercept(), *(each for block in every for each in block.features)))
    squares = {name: square_of(blocks) for name, blocks in codings.items()}
    widths = {name: sum(len(block.features) for block in blocks) for name, blocks in codings.items()}
    if as_printed:
        parts = printed_parts(terms, squares, max(widths.values()), bounds)
    else:
        parts = joint_parts(terms, squares, Fraction(0))
    count = None
    if scheme == "rmgm":
        count = mixes or _mixes(terms, sum(widths.values()), _tau(squares, parts), as_printed=as_printed)
    noises = _noises(squares, parts, widths, count or 1, bits)
    if not as_printed:
        # with the slack reckoned in there is more noise, hence less slack: twice the first is safely enough
        slack = sum((2 * noise.event.slack + _LEAST_SLACK for noise in noises.values()), Fraction(0))
        parts = joint_parts(terms, squares, slack)
        noises = _noises(squares, parts, widths, count or 1, bits)
    return Layout(codings=codings, squares=squares, noises=noises, mixes=count, bits=bits, tau=_tau(squares, parts))


def square_of(codings: Sequence[Coding]) -> int:
    """Return how far a row can move, squared, for values in [-1, 1]: a person's values are replaced at once.

    In a block at most one feature is not zero. From one indicator to another is 1 + 1; from -1 to 1 is 4, and from
    a number to the indicator of a missing value 1 + 1 at most.
    """
    return sum(2 if block.complete else 4 for block in codings)


def joint_parts(terms: Terms, squares: Mapping[str, int], slack: Fraction) -> dict[str, Fraction]:
    """Return each party's part of the strictest mu^2, by what a person can move there: all entries get one noise."""
    whole = min(mu_squared_for(budget.epsilon, budget.delta, slack) for budget in budgets_of(terms))
    total = sum(squares.values())
    # whole units of the ledger, so that the parts' sum as the ledgers count it does not exceed the whole
    return {name: whole * square / total // _STEP * _STEP for name, square in squares.items()}


def printed_parts(terms: Terms, squares: Mapping[str, int], widest: int, bounds: Bounds) -> dict[str, Fraction]:
    """Return the mu^2 that each party's release costs by the printed noise.

    Printed: standard deviation 2 sqrt(d_max) sigma, also where values are in [0, 1], which is twice as much there.
    """
    sigma = min_sigma(terms)
    deviation = 2 * sigma * (2 if bounds == "unit" else 1)
    variance = Fraction(widest * deviation**2).limit_denominator(10**12)
    return {name: square / variance for name, square in squares.items()}


def min_sigma(terms: Terms) -> float:
    """Return the classical mechanism's noise for the strictest budget."""
    return max(classical_sigma(float(each.epsilon), float(each.delta)) for each in budgets_of(terms))


def budgets_of(terms: Terms) -> list[Budget]:
    """Return every party's budget."""
    return [budget_of(terms, party.name) for party in terms.parties]


def _tau(squares: Mapping[str, int], parts: Mapping[str, Fraction]) -> float:
    """Return the standard deviation of the noise of an entry, for values in [-1, 1]."""
    return math.sqrt(max(square / parts[name] for name, square in squares.items()))


def _noises(
    squares: Mapping[str, int], parts: Mapping[str, Fraction], widths: Mapping[str, int], mixes: int, bits: int
) -> dict[str, FineGaussian]:
    return {
        name: FineGaussian(
            sensitivity_squared=Fraction(square * 4**bits * mixes),
            mu_squared=parts[name],
            changed=widths[name] * mixes,
            fraction_bits=FINE,
        )
        for name, square in squares.items()
    }


def _mixes(terms: Terms, features: int, tau: float, *, as_printed: bool) -> int:
    people = terms.parties[0].people or 1
    return (
        printed_mixes(people, min_sigma(terms)) if as_printed else mixes_for(people=people, features=features, tau=tau)
    )
