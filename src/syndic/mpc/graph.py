"""Who masks with whom in a masked sum, and how many shares open a secret.

Up to 32 parties everybody is everybody's neighbour. Beyond, the parties sit in a circle, in an order drawn from the
study's digest, and each has the k/2 next ones on either side as neighbours (Bell, Bonawitz, Gascon, Lepoint and
Raykova 2020). k is the smallest number for which, over that order, these fail together with a chance of at most 2^-40:

- *private*: every party has fewer than 2 threshold - k colluding neighbours. A neighbour gives one of two kinds of
  share, and the coordinator plus the colluding ones would need `threshold` of both kinds to open one party;
- *connected*: colluding and missing parties fill no k/2 seats in a row, so no group of parties is cut off and summed
  alone;
- *live*: every party has at most k - threshold missing neighbours, so that the total can be opened.

Where everybody is a neighbour the three hold for certain. The claim is for colluding and missing parties that do not
depend on the order, which anyone can compute once the study is written. A failure may open one party's vector, which
carries a share of the noise only: its chance, `SumPlan.failure`, belongs into the delta of what is summed, and where
there is no room for it the plan must be `certain`.
"""

from bisect import bisect_left
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from math import floor, inf, log2

import numpy as np
import scipy
from numpy.typing import NDArray

from syndic.document import Document
from syndic.errors import InputError
from syndic.mpc.key import derive
from syndic.mpc.mask import stream
from syndic.privacy import ApproximateEvent, Budget, Cost, Event
from syndic.privacy.concentrated import PICO
from syndic.privacy.cost import ATTO

MOST_PARTIES = 50_000
FAILURE_BITS = 40
_COMPLETE = 32
_LEAST = 2.0**-1000


class SumPlan(Document):
    """Public numbers of a masked sum: parties, how many may collude and be missing, neighbours, shares needed.

    `failure_bits` is b where the plan fails with a chance of at most 2^-b; infinite where it cannot fail.
    """

    parties: int
    colluding: int
    missing: int
    neighbours: int
    threshold: int
    failure_bits: float

    @property
    def failure(self) -> Fraction:
        """The chance that the plan fails, rounded up to whole units of 1e-18; 0 only where it cannot."""
        if self.failure_bits == inf:
            return Fraction(0)
        return Fraction(floor(Fraction(2.0**-self.failure_bits) * ATTO) + 1, ATTO)

    @property
    def events(self) -> tuple[Event, ...]:
        """What a party charges beside the sum: nothing where the plan cannot fail."""
        if not self.failure:
            return ()
        what = f"a sparse graph of masks fails once in 2^{floor(self.failure_bits)}"
        # an event has an epsilon: the least that a ledger counts in
        return (ApproximateEvent(epsilon=Fraction(1, PICO), delta=self.failure, what=what),)

    def left_of(self, budgets: Iterable[Budget], ledgers: int = 1) -> list[tuple[Fraction, Fraction]]:
        """Return epsilon and delta of each budget, less what so many parties charge beside the sum."""
        less = Cost.of(self.events).times(ledgers)
        epsilon, delta = Fraction(less.epsilon_approximate, PICO), Fraction(less.delta_approximate, ATTO)
        return [(budget.epsilon - epsilon, budget.delta - delta) for budget in budgets]

    @property
    def not_protected(self) -> tuple[str, ...]:
        """The chance of failure in words, for a disclosure."""
        if not self.failure:
            return ()
        return (
            f"with a chance of 2^-{floor(self.failure_bits)}, which is part of delta, too many colluding parties are "
            f"among one party's {self.neighbours} neighbours, and its values open with its own share of the noise only",
        )


@lru_cache(maxsize=256)
def plan_sum(parties: int, *, colluding: int = 0, missing: int = 0, certain: bool = False) -> SumPlan:
    """Return the plan with the fewest neighbours for that many colluding and missing parties.

    It fails with a chance of at most 2^-40, or if it must be `certain` never, at the price of more neighbours.
    """
    chance = 0.0 if certain else 2.0**-FAILURE_BITS
    if not 2 <= parties <= MOST_PARTIES:
        raise InputError(f"a masked sum of {parties} parties: it takes 2 to {MOST_PARTIES:,}")
    if colluding < 0 or missing < 0:
        raise InputError(f"colluding ({colluding}) and missing ({missing}) must not be negative")
    if parties > _COMPLETE:
        # a circle of two neighbours would do if nobody colluded; log m keeps it from resting on that alone
        least = 2 * (parties - 1).bit_length()
        most = least
        while most < parties - 1 and _sparse(parties, colluding, missing, most, chance) is None:
            least, most = most, 2 * most
        choices = range(least, min(most + 2, parties - 1), 2)

        def sparse(count: int) -> SumPlan | None:
            return _sparse(parties, colluding, missing, count, chance)

        fits = bisect_left(choices, True, key=lambda count: sparse(count) is not None)
        plan = sparse(choices[fits]) if fits < len(choices) else None
        if plan is not None:
            return plan
    return _complete(parties, colluding, missing)


def plan_within(delta: Fraction, parties: int, *, colluding: int, missing: int) -> SumPlan:
    """Return the plan whose chance of failure is at most `delta`: one that cannot fail if the usual one does more."""
    plan = plan_sum(parties, colluding=colluding, missing=missing)
    if plan.failure <= delta:
        return plan
    return plan_sum(parties, colluding=colluding, missing=missing, certain=True)


def _complete(parties: int, colluding: int, missing: int) -> SumPlan:
    neighbours = parties - 1
    threshold = neighbours - missing
    # if all neighbours collude there is nothing to hide: the total less their own values is this party's value
    if colluding >= parties or 2 * threshold <= neighbours + min(colluding, neighbours - 1):
        most = max((neighbours - colluding - 1) // 2, 0)
        raise InputError(
            f"{parties} parties with {colluding} colluding and {missing} missing: a masked sum would not be safe; "
            f"with {colluding} colluding at most {most} may be missing, and fewer than all may collude"
        )
    return SumPlan(
        parties=parties,
        colluding=colluding,
        missing=missing,
        neighbours=neighbours,
        threshold=threshold,
        failure_bits=inf,
    )


def _sparse(parties: int, colluding: int, missing: int, neighbours: int, chance: float) -> SumPlan | None:
    """Return the plan with that many neighbours and the best threshold, or None if it fails with a larger chance."""
    thresholds = np.arange(neighbours // 2 + 1, neighbours + 1)
    others = parties - 1
    exposed = _at_least(2 * thresholds - neighbours, others, colluding, neighbours)
    stuck = _at_least(neighbours - thresholds + 1, others, missing, neighbours)
    chances = parties * (exposed + stuck) + parties * _run(parties, colluding + missing, neighbours // 2)
    best = int(np.argmin(chances))
    if chances[best] > chance:
        return None
    return SumPlan(
        parties=parties,
        colluding=colluding,
        missing=missing,
        neighbours=neighbours,
        threshold=int(thresholds[best]),
        failure_bits=-log2(chances[best]) if chances[best] > 0 else inf,
    )


def _at_least(counts: NDArray[np.int64], others: int, marked: int, drawn: int) -> NDArray[np.float64]:
    """Return the chances that at least so many of `drawn` random others are among the `marked` ones.

    Only what cannot happen has the chance 0, however small the number would be.
    """
    from scipy import stats  # noqa: PLC0415 (takes half a second, and few studies have so many parties)

    marked = min(marked, others)
    chances = np.asarray(stats.hypergeom.sf(counts - 1, others, marked, drawn), dtype=np.float64)
    return np.where(counts > min(marked, drawn), 0.0, np.maximum(chances, _LEAST))


def _run(parties: int, marked: int, length: int) -> float:
    """Return the chance that `length` given seats all have marked parties."""
    if marked < length:
        return 0.0
    if marked >= parties:
        return 1.0
    gamma = scipy.special.gammaln
    logarithm = gamma(marked + 1) - gamma(marked - length + 1) - gamma(parties + 1) + gamma(parties - length + 1)
    return max(float(np.exp(logarithm)), _LEAST)


def neighbours_of(plan: SumPlan, study: str, party: int) -> NDArray[np.int64]:
    """Return the neighbours of a party, as ascending places in the study's list."""
    if plan.neighbours == plan.parties - 1:
        return np.delete(np.arange(plan.parties), party)
    order, seats = _circle(plan.parties, study)
    half = plan.neighbours // 2
    steps = np.concatenate([np.arange(-half, 0), np.arange(1, half + 1)])
    return np.sort(order[(seats[party] + steps) % plan.parties])


@lru_cache(maxsize=16)
def _circle(parties: int, study: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return who sits on each seat and the seat of each party."""
    key = derive(study.encode(), "sum graph", parties)
    order = np.argsort(np.frombuffer(stream(key, b"", 8 * parties), dtype="<u8"), kind="stable")
    seats = np.empty_like(order)
    seats[order] = np.arange(parties)
    return order, seats
