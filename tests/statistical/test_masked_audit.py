"""What coalitions can tell about one person from everything they saw of a masked sum with noise shares.

One run sums a long vector whose every entry is a trial of its own: the first party counts 1 in one run and 0 in the
other. Bounds are at 1e-9 for each of a few hundred thresholds.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import inf, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from many_parties import AddUp, Fleet
from syndic.kernel import decode
from syndic.mpc.masked_sum import SumMasked
from syndic.noise import LaplaceShare
from syndic.random import SystemRandomness

pytestmark = pytest.mark.statistical

TRIALS = 200_000
PARTIES = 5
EPSILON = 1.0
LEVEL = 1e-9


OWN: dict[str, NDArray[np.int64]] = {}


class AddNoisy(AddUp, tag="add-noisy"):
    """Adds up what each party made of its counts and its share of the noise."""

    def vector(self, name: str) -> NDArray[np.int64]:
        return OWN[name]


@dataclass(frozen=True)
class View:
    """Everything there is to see: masked vectors and the total by the coordinator, its own vector by each party."""

    masked: NDArray[Any]
    total: NDArray[np.int64]
    own: dict[int, NDArray[np.int64]]
    bits: int


def view(count: int, folder: Path) -> View:
    share = LaplaceShare(
        parties=PARTIES, colluding=1, missing=1, dimension=TRIALS, sensitivity=1, epsilon=Fraction(EPSILON)
    )
    protocol = AddNoisy(length=TRIALS, bound=1 << 18, colluding=1, missing=1)
    fleet = Fleet(protocol, PARTIES, folder, seed=count)
    for place, name in enumerate(fleet.names):
        OWN[name] = share.apply(np.full(TRIALS, count if place == 0 else 0), SystemRandomness())
    # the last party agrees on keys and then falls silent
    fleet.lost = {"add": {fleet.names[-1]}}
    total, ring = fleet.total(), protocol.ring(fleet.study)
    return View(
        masked=ring.unpack(decode(fleet.seen["add", "p0"], SumMasked).values, TRIALS),
        total=total.values,
        own={place: OWN[name] for place, name in enumerate(total.present)},
        bits=ring.bits,
    )


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> tuple[View, View]:
    return view(1, tmp_path_factory.mktemp("one")), view(0, tmp_path_factory.mktemp("none"))


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
    cells = [np.bincount((each.masked >> np.uint64(each.bits - 6)).astype(np.int64), minlength=64) for each in views]
    assert stats.chi2_contingency(np.array(cells)).pvalue > LEVEL
    assert np.array_equal(views[0].total, sum(views[0].own.values()))
