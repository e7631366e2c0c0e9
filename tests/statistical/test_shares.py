"""Sums of noise shares against the closed-form law of the sum; a false alarm has a chance of at most 1e-6."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ive
from scipy.stats import chi2

from syndic.noise import GaussianShare, LaplaceShare, SkellamShare
from syndic.noise.poisson import TABLE_RATE, draw_poisson
from syndic.random import SystemRandomness

pytestmark = pytest.mark.statistical

ALARM = 1e-8
SYSTEM = SystemRandomness()
REACH = 400
PLACES = np.arange(-REACH, REACH + 1)

Share = GaussianShare | SkellamShare | LaplaceShare


def fits(drawn: NDArray[np.int64], law: NDArray[np.float64]) -> bool:
    """Pearson's test; cells that expect fewer than 20 are put together."""
    observed = np.bincount(np.clip(drawn, -REACH, REACH) + REACH, minlength=2 * REACH + 1)
    expected = law / law.sum() * drawn.size
    rare = expected < 20
    together = [np.append(part[~rare], part[rare].sum()) for part in (observed, expected)]
    statistic = ((together[0] - together[1]) ** 2 / np.maximum(together[1], 1.0)).sum()
    return bool(chi2.sf(statistic, max(1, int((~rare).sum()))) > ALARM)


def make(kind: str, parties: int, *, colluding: int = 0) -> Share:
    common = {"parties": parties, "colluding": colluding, "dimension": 1}
    if kind == "laplace":
        return LaplaceShare(sensitivity=2, epsilon=Fraction(1, 2), **common)
    rho = Fraction(1, 50) if parties < 50 else Fraction(1, 800)
    if kind == "skellam":
        return SkellamShare(sensitivity=2, sensitivity_squared=Fraction(2), rho=rho, **common)
    return GaussianShare(sensitivity_squared=Fraction(2), rho=rho, **common)


def sum_law(share: Share) -> NDArray[np.float64]:
    """Law of the sum of `honest` shares."""
    if isinstance(share, LaplaceShare):
        return np.exp(-np.abs(PLACES) * float(share.epsilon) / share.sensitivity)
    total = share.total_variance(share.honest)
    if isinstance(share, SkellamShare):
        return np.asarray(ive(np.abs(PLACES), total), dtype=np.float64)
    return np.exp(-(PLACES**2) / (2 * total))


@pytest.mark.parametrize("parties", [2, 5, 100])
@pytest.mark.parametrize("kind", ["gaussian", "skellam", "laplace"])
def test_sum_of_shares_has_the_law_of_the_whole(kind: str, parties: int) -> None:
    share = make(kind, parties)
    draws = 300_000 if parties < 50 else 60_000
    total = sum((share.draw(draws, SYSTEM) for _ in range(parties)), np.zeros(draws, dtype=np.int64))
    assert fits(total, sum_law(share))


@pytest.mark.parametrize("parties", [2, 5, 100])
def test_one_polya_share_has_its_own_law(parties: int) -> None:
    share = make("laplace", parties)
    ratio, shape = np.exp(-0.25), 1 / parties
    steps = np.arange(REACH)
    one = np.cumprod(np.append(1.0, ratio * (steps + shape) / (steps + 1)))
    law = np.convolve(one, one[::-1])
    assert fits(share.draw(300_000, SYSTEM), law)


def test_poisson_beyond_the_table() -> None:
    rate = Fraction(5 * TABLE_RATE, 2)
    drawn = draw_poisson(rate, 20_000, SYSTEM)
    assert abs(drawn.mean() - float(rate)) < 5.5 * float(rate / 20_000) ** 0.5
    # kurtosis is near 3: the variance estimate has relative error sqrt(2 / n)
    assert abs(drawn.var() / float(rate) - 1) < 5.5 * (2 / 20_000) ** 0.5


@pytest.mark.parametrize("kind", ["gaussian", "skellam", "laplace"])
def test_empirical_loss_with_colluders_stays_within_the_event(kind: str) -> None:
    """Colluders subtract their shares; what is left must still hide one person, on every threshold test."""
    parties, colluding, draws = 5, 3, 400_000
    share = make(kind, parties, colluding=colluding)
    left = sum((share.draw(draws, SYSTEM) for _ in range(parties - colluding)), np.zeros(draws, dtype=np.int64))
    if isinstance(share, LaplaceShare):
        epsilon, delta, shift = float(share.epsilon), 0.0, share.sensitivity
    else:
        # rho-zCDP gives (rho + 2 sqrt(rho log(1 / delta)), delta)
        delta, rho, shift = 1e-3, float(share.event.rho), 1
        epsilon = rho + 2 * (rho * np.log(1 / delta)) ** 0.5
    worst = -np.inf
    for threshold in range(-60, 60, 4):
        here, there = (left + shift > threshold).mean(), (left > threshold).mean()
        error = 5.5 * ((here + np.exp(2 * epsilon) * there) / draws) ** 0.5
        worst = max(worst, here - np.exp(epsilon) * there - delta - error)
    assert worst <= 0
    # the test can fail: noise made as if nobody colluded leaves too little
    naive = make(kind, parties)
    assert naive.total_variance(parties - colluding) < 0.41 * share.total_variance(parties - colluding)
