"""What the rounds of a synthesis cost and how large their noise is: fixed by the study before any row is read.

The budget is one amount of Gaussian privacy, mu^2, cut into fixed parts, one a round. What a round asks may depend on
what earlier rounds opened, the part it costs does not, so the parts add up (Dong, Roth and Su 2022, Corollary 3.3, for
questions chosen in view of answers). A round that asks k tables gives each of them 1/k of its part: fewer tables, less
noise, the same cost.

Let a person change one party's answer by at most s in l2 and be at r parties: the sum changes by at most r s. With
m = mu^2 of the round, each of r ledgers is charged m / r, and the variance (r s)^2 / m = (r s^2) / (m / r) is that of a
noise for the squared sensitivity r s^2 at m / r.

A row adds +1 or -1 to every parity. Rows that count w in all move one by at most w if they come or go, and by 2 w if
they are replaced: the l1 sensitivity of counts, c. So k parities move by at most k c^2 in squared l2. A row that is
replaced changes the signs of some columns, and with them the parities of those sets that have an odd number of these:
at most f of the k, whatever the columns (`most_flipped`). So they move by at most f c^2. Rows that come or go with a
replacement move no more, w^2 k at most: a random change of signs flips half of the sets, so f is at least k / 2.

Counts of two parties' columns may have their noise from coins that both toss (`syndic.mpc.coins`), one copy of it; of
three parties' columns two of them toss, where at most one colludes: it knows no coin that the other tossed too. Of k
tables that are asked each has 1/k of the round's mu^2, whichever noise it has, so the parts add up as before; a row
that is replaced moves two of a table's counts by one each, or a parity by two. Each value that moves has a slack.

Where columns are averaged, a person adds the mean of what p parts add, each a row with other values. A mean moves no
further than the part that moves most, so sensitivities are those above, times p in units of a part.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, exp
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.kernel import Terms, budgets_of, strictest, strictest_mu_squared
from syndic.kernel.disclosure import without_coordinator
from syndic.methods.synthesis.measure import Question
from syndic.model.selection.counts import Names
from syndic.model.selection.parity import most_flipped
from syndic.mpc.ring import OVERFLOW, Ring, ring_for
from syndic.noise import FineGaussian, FineGaussianShare
from syndic.noise.binomial import SLACK, BinomialNoise, binomial_for
from syndic.noise.shares import in_shares
from syndic.privacy import Cost, GaussianEvent, Unit
from syndic.privacy.concentrated import part_of
from syndic.privacy.cost import ATTO
from syndic.random import Randomness

_FRACTION_BITS: Final = (12, 16, 20, 24, 28, 32)
# What rounding to the fine grid may take of delta.
_ROUNDING: Final = 1e-3
_LARGEST_EPSILON: Final = 500
# The slack of a round for noise from coins, and what it may take of delta over all rounds. A ledger adds such slacks up
# at the epsilon of all its studies together: more would leave no room for later ones.
_SLACK_OF_COINS: Final = Fraction(16, ATTO)
_OF_COINS: Final = 5e-4


Cut = Callable[[Fraction], Sequence[Fraction]]
"""How a budget is cut into rounds."""


@final
@dataclass(frozen=True)
class RoundNoise:
    """The noise of one round, and the event that is charged for it: the planned one, whatever was asked.

    Values are counts in units of 1/`whole` row.
    """

    noise: FineGaussian | FineGaussianShare
    event: GaussianEvent
    whole: int = 1

    def __post_init__(self) -> None:
        holds = self.noise.event
        if holds.mu_squared > self.event.mu_squared or holds.slack > self.event.slack:
            raise ValueError("the noise of a round is less than what is charged for it")

    def apply(self, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:
        """Return the values with noise, in units of 1 / `scale`."""
        return self.noise.apply(values, randomness)

    @property
    def scale(self) -> int:
        """How many units of what is opened make one row."""
        return self.noise.scale * self.whole

    def variance(self, present: int) -> float:
        """Return the variance of an opened number, in squared rows, when so many parties contributed."""
        return _variance(self.noise, present) / self.whole**2

    def ring(self, rows: int, dimension: int) -> Ring:
        """Return the ring that has room for `rows` rows of all parties in one cell, and for the noise."""
        return ring_for(rows * self.scale + self.tail(OVERFLOW / dimension))

    def tail(self, chance: float) -> int:
        """Return what the noise on one opened number exceeds with at most this chance, in units of 1 / `scale`."""
        noise = self.noise
        return noise.tail(chance, self.shares) if isinstance(noise, FineGaussianShare) else noise.tail(chance)

    @property
    def shares(self) -> int:
        """How many shares the noise has."""
        return self.noise.parties if isinstance(self.noise, FineGaussianShare) else 1


@final
@dataclass(frozen=True, kw_only=True)
class Account:
    """One event for each round, the same at every party, and what makes the noise of a question from it.

    `whole` is the budget that was cut, mu^2 for one person over all rounds and parties. `parties` share the noise of a
    round: one more than the study has if the coordinator adds a share too. A person is counted in so many `parts`.
    `coins`: the slack of a round for noise from coins; 0 where no parties toss any.
    """

    domain: Domain
    unit: Unit
    parties: int
    colluding: int
    missing: int
    fraction_bits: int
    whole: Fraction
    events: tuple[GaussianEvent, ...]
    parts: int = 1
    coins: Fraction = Fraction(0)

    @property
    def _l1(self) -> int:
        return self.unit.l1_of_counts() * self.parts

    @property
    def _l2_squared(self) -> int:
        return self.unit.l2_squared_of_counts() * self.parts**2

    def noise(self, question: Question) -> RoundNoise:
        """Return the noise that every party adds to its answer."""
        dimension = question.dimension(self.domain)
        return self.noise_of(question.number, len(question.tables), dimension, question.parities)

    def noise_of(self, number: int, tables: int, dimension: int, parities: Sequence[Names] = ()) -> RoundNoise:
        """Return the noise of a round that asks so many tables, and so many counts in all of them, or `parities`."""
        squared = self.unit.parties * tables * self._l2_squared
        if parities:
            moved = most_flipped(tuple(parities)) if self.unit.neighbours == "replace" else tables
            squared = self.unit.parties * moved * self._l1**2
        changed = min(dimension, self.unit.parties * tables * self._l1)
        return self.noise_for(number, squared, changed, dimension)

    def noise_for(self, number: int, squared: int | Fraction, changed: int, dimension: int) -> RoundNoise:
        """Return the noise of a round on numbers that a person moves by `squared` in l2, and so many of them."""
        event, one = self.events[number - 1], self.unit.scale * self.parts
        return RoundNoise(self._noise(event.mu_squared, squared, changed, dimension), event, one)

    def _noise(
        self, mu_squared: Fraction, squared: int | Fraction, changed: int, dimension: int
    ) -> FineGaussian | FineGaussianShare:
        if self.parties == 1:
            return FineGaussian(
                sensitivity_squared=Fraction(squared),
                mu_squared=mu_squared,
                changed=changed,
                fraction_bits=self.fraction_bits,
            )
        return FineGaussianShare(
            parties=self.parties,
            colluding=self.colluding,
            missing=self.missing,
            dimension=dimension,
            sensitivity_squared=Fraction(squared),
            mu_squared=mu_squared,
            changed=changed,
            fraction_bits=self.fraction_bits,
        )

    def coin_noise(self, number: int, tables: int, parities: Sequence[Names] = ()) -> BinomialNoise:
        """Return the noise from coins of a count, or a parity, in a round that asks so many tables or `parities`."""
        mu_squared = self.events[number - 1].mu_squared
        if parities:
            return binomial_for(((self._l1, 1),), mu_squared / most_flipped(tuple(parities)))
        return binomial_for(((1, self._l2_squared),), mu_squared / tables)

    def tosses(self, counting: int) -> bool:
        """Return whether two of so many parties that count a table may toss its noise: both never face the others."""
        return counting == 2 or self.colluding == 1

    def most_tossed(self, *, parity: bool = False) -> int:
        """Return how many tables or parities of a round may have noise from coins, for its slack."""
        return int(self.coins / ((1 if parity else self._l2_squared) * SLACK))

    def variance(self, mu_squared: Fraction) -> float:
        """Return the variance, in squared rows, of one table's counts at `mu_squared`, if all parties answer."""
        places = self.unit.parties
        noise = self._noise(mu_squared / places, places * self._l2_squared, places, places)
        return _variance(noise, self.parties) / (self.unit.scale * self.parts) ** 2

    @property
    def alone(self) -> "Account":
        """The account of tables that one party counts by itself: the same events, the whole noise."""
        return replace(self, parties=1)

    @property
    def shares_to_whole(self) -> float:
        """How many times the variance of the whole noise all shares together have."""
        return self.parties / (self.parties - self.colluding - self.missing)

    def planned(self, mu_squared: Fraction, place: int) -> GaussianEvent:
        """Return the event of a round: with the slack of its least noise, that of a single table.

        With k tables the variance is k times as large and so is the number of counts that change: slack, in
        proportion to the second over the square of the first, is largest for one.
        """
        changed = self.unit.parties * self._l1
        least = self._noise(mu_squared, self.unit.parties * self._l2_squared, changed, changed)
        slack = Fraction(ceil(least.event.slack * ATTO), ATTO) + self.coins
        what = f"Gaussian, mu {float(mu_squared) ** 0.5:.3g}, round {place}"
        if self.parties > 1:
            what = in_shares(what, self.parties, self.parties - self.colluding - self.missing)
        return GaussianEvent(mu_squared=mu_squared, slack=slack, what=what)


def against_parties(
    terms: Terms, account: Account, shared: Sequence[GaussianEvent], whole: Sequence[GaussianEvent] = ()
) -> dict[str, float]:
    """Return the epsilons if one share less protects than the cost counts on; none where parties alone share noise.

    That is so for a party where none may collude, and if a coordinator omits its share. Events that are `shared` are of
    sums to whose noise every party adds a share; no one knows a part of the `whole`.
    """
    omitted = account.parties > len(terms.parties)
    if account.parties == 1 or (account.colluding and not omitted):
        return {}
    delta = strictest(terms).delta
    shares = account.parties - account.colluding - account.missing
    times = Fraction(shares, shares - 1)
    # with less noise mu^2 is as many times as large, and slack, which goes with the squared variance, that squared
    left = [GaussianEvent(mu_squared=times * event.mu_squared, slack=times**2 * event.slack) for event in shared]
    # a person is charged so much at each of several parties, or groups
    outside, party = (
        float(Cost.of(terms.unit.parties * [*whole, *events]).epsilon(delta)) for events in (shared, left)
    )
    if omitted:
        return without_coordinator(outside, party)
    return {
        "everyone but the parties, if all add their noise": outside,
        "a party, which can subtract its own share of the noise": party,
    }


def account_of(
    terms: Terms,
    cut: Cut,
    *,
    colluding: int,
    missing: int,
    shares: int | None = None,
    parts: int = 1,
    coins: bool = False,
) -> Account:
    """Cut the strictest budget into rounds by a public rule.

    `shares` is how many roles share the noise of a table: by default all parties. A person is counted in `parts`.
    `coins`: whether two parties may toss coins for the noise of what both count; then a person moves two counts of a
    table by one each.
    """
    shares = len(terms.parties) if shares is None else shares
    whole = strictest_mu_squared(terms)
    of_coins = _slack_of_coins(terms, len(cut(whole))) if coins else Fraction(0)
    sharing = shares, colluding, missing, parts, of_coins
    for bits in _FRACTION_BITS:
        account = _cut(terms, cut, whole, bits, sharing)
        slack = terms.unit.parties * sum((event.slack for event in account.events), Fraction(0))
        grid = slack - len(account.events) * of_coins
        if all(_lost(each.epsilon, grid) <= _ROUNDING * float(each.delta) for each in budgets_of(terms)):
            break
    # less noise was planned for above, so the slack is no larger now
    return _cut(terms, cut, strictest_mu_squared(terms, slack), bits, sharing)


def _slack_of_coins(terms: Terms, rounds: int) -> Fraction:
    """Return the slack of every round for noise from coins; 0 where that would take more than a small part of delta."""
    whole = rounds * _SLACK_OF_COINS
    fits = all(_lost(each.epsilon, whole) <= _OF_COINS * float(each.delta) for each in budgets_of(terms))
    return _SLACK_OF_COINS if fits else Fraction(0)


def _cut(terms: Terms, cut: Cut, whole: Fraction, bits: int, sharing: tuple[int, int, int, int, Fraction]) -> Account:
    (parties, colluding, missing, parts, coins), unit = sharing, terms.unit
    account = Account(
        domain=terms.schema.domain,
        unit=unit,
        parties=parties,
        colluding=colluding,
        missing=missing,
        fraction_bits=bits,
        whole=whole,
        events=(),
        parts=parts,
        coins=coins,
    )
    # a ledger counts mu^2 / 2 in units of 1e-12: rounds are cut to them, and never add up to more
    rounds = [2 * part_of(part, 2 * unit.parties) for part in cut(whole)]
    events = tuple(account.planned(part, place) for place, part in enumerate(rounds, 1))
    return replace(account, events=events)


def _variance(noise: FineGaussian | FineGaussianShare, present: int) -> float:
    return noise.total_variance(present) if isinstance(noise, FineGaussianShare) else noise.variance


def _lost(epsilon: Fraction, slack: Fraction) -> float:
    """Return about what slack takes of delta."""
    return (1 + exp(min(float(epsilon), _LARGEST_EPSILON))) * float(slack)
