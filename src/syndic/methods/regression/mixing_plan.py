"""The plan of noisy columns: which columns are released, with joint or published noise, and who sees what."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.data.coding import Coding, Feature, coded_rows, coding_of
from syndic.data.table import Coded
from syndic.kernel import GROUPS, PROCESS_BYTES, Disclosure, Plan, Resources, Terms, everybody, schema_of
from syndic.kernel.terms import budgets_of, strictest_mu_squared
from syndic.methods.regression.mixing_result import Bounds, MixedNote, Scheme
from syndic.model.gram.matrix import intercept
from syndic.model.gram.mixing import classical_sigma, mixes_for, printed_mixes, tile_of
from syndic.model.gram.rows import check_names
from syndic.mpc.toss import PublicToss
from syndic.noise import FineGaussian
from syndic.privacy import Cost, Event

# a ledger counts mu^2 / 2 in units of 1e-12, rounded up
_STEP = Fraction(2, 10**12)
# a ledger counts slack in units of 1e-18, rounded up
_LEAST_SLACK = Fraction(1, 10**18)
# bits by which noise is finer than the values, which keeps it as good as Gaussian up to an epsilon of about 25
_FINE = 8
# of one entry at a party: as read, as released, and while its noise is drawn
_ENTRY_BYTES = 128


@final
class MixingPlan(Plan):
    """Every party's features and noise. `squares`: the squared l2 change of one person's row at a party, in [-1, 1].

    `mixes` is None if rows are not mixed; then there is no coin toss. A published number is a whole number; it stands
    for a value times 2^(bits + 8), and times sqrt(`mixes`) if rows are mixed. `tau` is the noise of a value.
    """

    scheme: Scheme
    bits: int
    bounds: Bounds
    as_published: bool
    squares: Mapping[str, int]
    noise: Mapping[str, FineGaussian]
    mixes: int | None
    tau: float
    toss: PublicToss

    @cached_property
    def codings(self) -> Mapping[str, tuple[Coding, ...]]:
        """The blocks of features of each party."""
        return codings_of(self.terms, self.bits)

    @property
    def features(self) -> tuple[Feature, ...]:
        """All features, party by party."""
        return tuple(each for blocks in self.codings.values() for block in blocks for each in block.features)

    @property
    def people(self) -> int:
        """The public number of people."""
        return self.terms.parties[0].people or 0

    def width(self, party: str) -> int:
        """Return how many features a party has."""
        return _width(self.codings[party])

    def rows(self, party: str, coded: Coded) -> NDArray[np.int32]:
        """Return the party's features of coded rows, from -2^bits to 2^bits. Private."""
        return coded_rows(self.codings[party], coded)

    def note(self, seed: str) -> MixedNote:
        """Return how to read what is published."""
        return MixedNote(
            scheme=self.scheme,
            people=self.people,
            mixes=self.mixes,
            fraction_bits=self.bits + _FINE,
            bounds=self.bounds,
            tau=self.tau,
            seed=seed,
            features=self.features,
        )

    @property
    def rounds(self) -> tuple[str, ...]:
        """The joint coin toss and the mixing, or one noisy answer from each party."""
        return ("publish",) if self.mixes is None else (*self.toss.rounds, "mix")

    def events(self, party: str) -> tuple[Event, ...]:
        """One release of the party's own columns: its part of a person's cost of the whole release."""
        self.check_party(party)
        return (self.noise[party].event,)

    @property
    def resources(self) -> Resources:
        """Bytes of the largest reply, memory, and time for the signs and the noise."""
        people, widest = self.people, max(map(self.width, self.noise))
        rows, every = self.mixes or people, len(self.features)
        signs = people * (self.mixes or 0)
        tile = rows * tile_of(self.bits) // 8 if self.mixes else 0
        return Resources(
            memory_bytes=PROCESS_BYTES + 2 * tile + rows * max(_ENTRY_BYTES * widest, 16 * every),
            reply_bytes=8 * rows * widest + 1000,
            rounds=1 + len(self.rounds),
            seconds=round(1.0 + signs * (5e-10 + 1e-10 * widest) + rows * widest * 5e-7 + people * widest * 1e-7, 1),
            notes=(
                f"{rows:,} noisy rows of {every} features; standard deviation {self.tau:.4g} on every entry, for "
                "values in [-1, 1]",
                'the method "gram" publishes what regressions need with much less noise, if no party colludes with the '
                "coordinator",
            ),
        )

    @property
    def too_large(self) -> tuple[str, str]:
        """What is too large if the run does not fit, and what to change."""
        return "a run", "use fewer columns or mixes, or set larger limits"

    @property
    def disclosure(self) -> Disclosure:
        """What every role sees."""
        rows, signs = "a noisy row of every person", ""
        if self.mixes:
            rows = f"{self.mixes} noisy rows, each a sum over all people with random signs, and the signs"
            signs = "; the mixed rows change by the number of mixes times that, whatever the signs are"
        parts = ", ".join(f"{name} {square}" for name, square in self.squares.items())
        made = (
            "each party's noise is calibrated as if no other party had the person"
            if self.as_published
            else "the noise is calibrated to the sum"
        )
        return Disclosure(
            sees=everybody(rows),
            sensitivity=(
                "replacing one person's values at all parties at once changes the person's row by at most "
                f"{sum(self.squares.values())} in squared l2, for values in [-1, 1]{signs}. "
                f"By party: {parts}; {made}, and each ledger is charged its own part"
            ),
            not_protected=(
                "who the people are: aligned rows show it to every party; and how many, which the release shows",
                GROUPS,
                "the columns, their bounds and lists of values: they are public",
            ),
            departures=self._departures() if self.as_published else (),
        )

    def _departures(self) -> tuple[str, ...]:
        strictest = min(budgets_of(self.terms), key=lambda budget: (budget.epsilon, budget.delta))
        joint = Cost.of([noise.event for noise in self.noise.values()]).epsilon(strictest.delta)
        double = (
            " The noise is calibrated to values in [-1, 1], twice what values in [0, 1] need, which hides part of it."
            if self.bounds == "unit"
            else ""
        )
        return (
            f"the paper states epsilon {float(strictest.epsilon):g} for each party's release alone; a person has a row "
            f"at all {len(self.noise)} parties, and their releases together cost epsilon {float(joint):.4g}.{double}",
            "the classical formula for the noise is valid only for epsilon up to 1, and is loose there",
        )


def plan_mixing(
    terms: Terms, *, scheme: Scheme, mixes: int | None, bits: int, bounds: Bounds, as_published: bool
) -> MixingPlan:
    """Choose the number of mixes and calibrate every party's noise."""
    codings = codings_of(terms, bits)
    every = [block for blocks in codings.values() for block in blocks]
    check_names(every, (intercept(), *(each for block in every for each in block.features)))
    squares = {name: _square(blocks) for name, blocks in codings.items()}
    widths = {name: _width(blocks) for name, blocks in codings.items()}
    if as_published:
        parts = _published_parts(terms, squares, max(widths.values()), bounds)
    else:
        parts = _joint_parts(terms, squares, Fraction(0))
    if scheme == "rmgm":
        mixes = mixes or _mixes(terms, sum(widths.values()), _tau(squares, parts), as_published=as_published)
    noise = _noise(squares, parts, widths, mixes or 1, bits)
    if not as_published:
        # including the slack adds noise, which lowers the slack: twice the first value is always enough
        slack = sum((2 * one.event.slack + _LEAST_SLACK for one in noise.values()), Fraction(0))
        parts = _joint_parts(terms, squares, slack)
        noise = _noise(squares, parts, widths, mixes or 1, bits)
    return MixingPlan(
        terms=terms,
        scheme=scheme,
        bits=bits,
        bounds=bounds,
        as_published=as_published,
        squares=squares,
        noise=noise,
        mixes=mixes,
        tau=_tau(squares, parts),
        toss=PublicToss(label="signs"),
    )


def codings_of(terms: Terms, bits: int) -> dict[str, tuple[Coding, ...]]:
    """Return the blocks of features of each party."""
    return {
        party.name: tuple(coding_of(column, bits) for column in schema_of(terms, party.name).columns)
        for party in terms.parties
    }


def _width(codings: Sequence[Coding]) -> int:
    return sum(len(block.features) for block in codings)


def _square(codings: Sequence[Coding]) -> int:
    """Return the largest squared l2 change of a row, for values in [-1, 1], if all of a person's values are replaced.

    In a block at most one feature is not zero. A change between two indicators counts 1 + 1, from -1 to 1 it counts 4,
    and from a number to the indicator of a missing value at most 1 + 1.
    """
    return sum(2 if block.complete else 4 for block in codings)


def _joint_parts(terms: Terms, squares: Mapping[str, int], slack: Fraction) -> dict[str, Fraction]:
    """Return each party's part of the strictest mu^2, by a person's change there: all entries get the same noise."""
    whole = strictest_mu_squared(terms, slack)
    total = sum(squares.values())
    # whole units of the ledger, so that the sum of the parts, as ledgers count it, does not exceed the total
    return {name: whole * square / total // _STEP * _STEP for name, square in squares.items()}


def _published_parts(terms: Terms, squares: Mapping[str, int], widest: int, bounds: Bounds) -> dict[str, Fraction]:
    """Return the mu^2 that each party's release costs with the published noise.

    Published: standard deviation 2 sqrt(d_max) sigma, also for values in [0, 1], where it is twice as much as needed.
    """
    deviation = 2 * _published_sigma(terms) * (2 if bounds == "unit" else 1)
    variance = Fraction(widest * deviation**2).limit_denominator(10**12)
    return {name: square / variance for name, square in squares.items()}


def _published_sigma(terms: Terms) -> float:
    """Return the classical mechanism's noise for the strictest budget."""
    return max(classical_sigma(float(each.epsilon), float(each.delta)) for each in budgets_of(terms))


def _tau(squares: Mapping[str, int], parts: Mapping[str, Fraction]) -> float:
    """Return the standard deviation of the noise of an entry, for values in [-1, 1]."""
    return math.sqrt(max(square / parts[name] for name, square in squares.items()))


def _noise(
    squares: Mapping[str, int], parts: Mapping[str, Fraction], widths: Mapping[str, int], mixes: int, bits: int
) -> dict[str, FineGaussian]:
    return {
        name: FineGaussian(
            sensitivity_squared=Fraction(square * 4**bits * mixes),
            mu_squared=parts[name],
            changed=widths[name] * mixes,
            fraction_bits=_FINE,
        )
        for name, square in squares.items()
    }


def _mixes(terms: Terms, features: int, tau: float, *, as_published: bool) -> int:
    people = terms.parties[0].people or 1
    if as_published:
        return printed_mixes(people, _published_sigma(terms))
    return mixes_for(people=people, features=features, tau=tau)
