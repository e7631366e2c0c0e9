"""What coalitions can tell about one person from everything they saw of a masked sum with noise shares.

One run sums a long vector whose every entry is a trial of its own: the first party counts 1 in one run and 0 in the
other. Bounds are at 1e-9 for each of a few hundred thresholds.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import inf, log
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from syndic.mpc.graph import plan_sum
from syndic.mpc.key import agree
from syndic.mpc.masked import Gathered, Table, collect, deal, make_secrets, masks_of, openings, unmask
from syndic.mpc.ring import Ring, ring_for
from syndic.noise import LaplaceShare
from syndic.random import SystemRandomness

pytestmark = pytest.mark.statistical

TRIALS = 200_000
PARTIES = 5
EPSILON = 1.0
LEVEL = 1e-9


@dataclass(frozen=True)
class View:
    """Everything there is to see: masked vectors and the total by the coordinator, its own vector by each party."""

    masked: dict[int, NDArray[Any]]
    total: NDArray[np.int64]
    own: dict[int, NDArray[np.int64]]


def ring() -> Ring:
    return ring_for(1 << 20)


def view(count: int) -> View:
    random = SystemRandomness()
    share = LaplaceShare(
        parties=PARTIES, colluding=1, missing=1, dimension=TRIALS, sensitivity=1, epsilon=Fraction(EPSILON)
    )
    plan = plan_sum(PARTIES, colluding=1, missing=1)
    table = Table(study="audit", label="audit", names=tuple(f"p{place}" for place in range(PARTIES)), plan=plan)
    secrets = [make_secrets(random) for _ in range(PARTIES)]
    agreed = [
        {other: agree(secrets[place].seal.private, secrets[other].seal.public) for other in table.neighbours(place)}
        for place in range(PARTIES)
    ]
    boxes = [deal(table, place, secrets[place], agreed[place], random) for place in range(PARTIES)]
    # the last party deals shares and then falls silent
    present = range(PARTIES - 1)
    own, masked, opened = {}, {}, {}
    for place in present:
        values = np.full(TRIALS, count if place == 0 else 0)
        own[place] = share.apply(values, random)
        keys = {other: secrets[other].mask.public for other in table.neighbours(place)}
        masks = masks_of(table, place, secrets[place], keys, TRIALS, ring())
        masked[place] = ring().add(ring().reduce(own[place]), masks)
        inbox = {other: boxes[other][place] for other in table.neighbours(place)}
        opened[place] = openings(collect(table, place, agreed[place], inbox), present)
    gathered = Gathered(
        table=table,
        commitments={place: table.commitment(place, each.seed) for place, each in enumerate(secrets)},
        mask_keys={place: each.mask.public for place, each in enumerate(secrets)},
        dealt=frozenset(range(PARTIES)),
        masked=masked,
        opened=opened,
    )
    return View(masked=masked, total=unmask(gathered, ring()), own=own)


@pytest.fixture(scope="module")
def views() -> tuple[View, View]:
    return view(1), view(0)


def reached(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """Return an epsilon that is needed, but for a small chance: the largest ratio of some event's probabilities."""
    best = -inf
    for threshold in range(-20, 21):
        for more, less in ((one >= threshold, other >= threshold), (other < threshold, one < threshold)):
            seen, rare = int(more.sum()), int(less.sum())
            low = stats.beta.ppf(LEVEL, seen, TRIALS - seen + 1) if seen else 0.0
            high = stats.beta.ppf(1 - LEVEL, rare + 1, TRIALS - rare) if rare < TRIALS else 1.0
            best = max(best, log(low / high) if low > 0 else -inf)
    return best


def test_the_coordinator_and_anyone_with_the_release(views: tuple[View, View]) -> None:
    assert 0 < reached(*(each.total for each in views)) <= EPSILON


@pytest.mark.parametrize("party", [1, 2])
def test_a_curious_party_alone_or_with_the_coordinator(party: int, views: tuple[View, View]) -> None:
    one, other = (each.total - each.own[party] for each in views)
    assert 0 < reached(one, other) <= EPSILON


def test_a_larger_coalition_than_was_paid_for_sees_more(views: tuple[View, View]) -> None:
    """With one silent and three that collude one share is left: the audit has the power to see that."""
    one, other = (each.total - each.own[1] - each.own[2] - each.own[3] for each in views)
    assert reached(one, other) > EPSILON


def test_a_masked_vector_alone_tells_nothing(views: tuple[View, View]) -> None:
    cells = [np.bincount((each.masked[0] >> (ring().bits - 6)).astype(np.int64), minlength=64) for each in views]
    assert stats.chi2_contingency(np.array(cells)).pvalue > LEVEL
    assert np.array_equal(views[0].total, sum(views[0].own.values()))
