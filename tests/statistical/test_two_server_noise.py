"""Noise tossed on shares against the closed-form law, and what single roles see against uniform bits."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from syndic.mpc import gmw
from syndic.mpc.ring import Ring
from syndic.mpc.twoserver import TwoServers
from syndic.noise.circuit_bits import BitNoise, gaussian_bits, laplace_bits
from syndic.random import SystemRandomness

pytestmark = pytest.mark.statistical

ALARM = 1e-8
DRAWS = 20_000
SYSTEM = SystemRandomness()
NO_WORDS = np.empty(0, dtype=np.uint64)


def fits(observed: NDArray[np.int64], law: NDArray[np.float64]) -> bool:
    expected = law / law.sum() * observed.sum()
    rare = expected < 20
    together = [np.append(part[~rare], part[rare].sum()) for part in (observed, expected)]
    statistic = ((together[0] - together[1]) ** 2 / np.maximum(together[1], 1.0)).sum()
    return bool(chi2.sf(statistic, max(1, int((~rare).sum()))) > ALARM)


def tossed(
    noise: BitNoise, ring: Ring, draws: int = DRAWS, keys: tuple[bytes, bytes, bytes] | None = None
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Both servers' shares of fresh noise; keys are the dealer's two and the servers' own."""
    agreed = TwoServers(servers=("a", "b"), dimension=draws, ring=ring, noise=noise)
    coins = agreed.coins
    first, second, common = keys or (SYSTEM.bytes(32), SYSTEM.bytes(32), SYSTEM.bytes(32))
    halves = gmw.Half(key=first, first=True, products=NO_WORDS, masks=NO_WORDS), gmw.deal(first, second, coins)
    nodes = [gmw.begin(half, common, coins) for half in halves]
    for level in range(1, gmw.LEVELS + 1):
        told = [gmw.open_level(half, level, node, coins) for half, node in zip(halves, nodes, strict=True)]
        nodes = [gmw.close_level(halves[i], level, nodes[i], told[1 - i], coins) for i in (0, 1)]
    told = [gmw.open_coins(half, node, coins) for half, node in zip(halves, nodes, strict=True)]
    shares = [gmw.close_coins(halves[i], nodes[i], told[1 - i], coins) for i in (0, 1)]
    one, two = (agreed.noise_from(share, first=i == 0) for i, share in enumerate(shares))
    return one.astype(np.uint64), two.astype(np.uint64)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(20, 3)])
def test_laplace_noise_on_shares(scale: Fraction) -> None:
    ring = Ring(16)
    one, two = tossed(laplace_bits(scale), ring)
    drawn = ring.lift(ring.add(ring.reduce(one), ring.reduce(two)))
    places = np.arange(-200, 201)
    observed = np.bincount(np.clip(drawn, -200, 200) + 200, minlength=401)
    assert fits(observed, np.exp(-np.abs(places) / float(scale)))
    # one share alone is uniform modulo 16, whatever the noise
    for share in (one, two):
        assert fits(np.bincount((share % 16).astype(np.int64), minlength=16), np.full(16, 1 / 16))


def test_gaussian_noise_on_shares() -> None:
    ring, square = Ring(16), Fraction(25)
    one, two = tossed(gaussian_bits(square), ring, 4000)
    drawn = ring.lift(ring.add(ring.reduce(one), ring.reduce(two)))
    places = np.arange(-80, 81)
    observed = np.bincount(np.clip(drawn, -80, 80) + 80, minlength=161)
    assert fits(observed, np.exp(-(places**2) / 50))


def gain(views: list[NDArray[np.int64]], epsilon: float) -> float:
    """The largest P(view > t with) - e^epsilon P(view > t without), less 5.5 standard errors, over thresholds t."""
    without, with_person = views
    found = -np.inf
    for threshold in np.quantile(np.concatenate([without, with_person]), np.linspace(0.01, 0.99, 50)):
        here, there = ((view > threshold).mean() for view in (with_person, without))
        error = 5.5 * ((here + np.exp(2 * epsilon) * there) / without.size) ** 0.5
        found = max(found, here - np.exp(epsilon) * there - error)
    return found


def test_no_single_role_tells_neighbours_apart_beyond_epsilon_and_coalitions_do() -> None:
    """Sums 0 and `shift` by everything that coordinator, servers and the stated coalitions could compute."""
    ring, epsilon, shift = Ring(12), 0.5, 5
    noise = laplace_bits(Fraction(shift) / Fraction(1, 2))
    views: dict[str, list[NDArray[np.int64]]] = {}
    for total in (0, shift):
        keys = SYSTEM.bytes(32), SYSTEM.bytes(32), SYSTEM.bytes(32)
        one, two = (ring.reduce(part) for part in tossed(noise, ring, keys=keys))
        seeds, zero = (ring.reduce(SYSTEM.words(DRAWS)) for _ in range(2))
        # the first server has minus the seeds, the second the masked values, which the coordinator carried to it
        masked = ring.add(ring.reduce(np.full(DRAWS, total)), seeds)
        told_one = ring.add(ring.subtract(one, seeds), zero)
        told_two = ring.subtract(ring.add(two, masked), zero)
        opened = ring.add(told_one, told_two)
        guessed = ring.add(*(ring.reduce(part) for part in tossed(noise, ring, keys=(*keys[:2], SYSTEM.bytes(32)))))
        for name, view in {
            "anyone": opened,
            "coordinator, second server's share less what it carried": ring.subtract(told_two, masked),
            "coordinator, tossing again without the servers' key": ring.subtract(opened, guessed),
            "first server, less its own noise": ring.subtract(opened, one),
            "second server, less its own noise": ring.subtract(opened, two),
            "both servers": ring.subtract(opened, ring.add(one, two)),
        }.items():
            views.setdefault(name, []).append(ring.lift(view))
    together = views.pop("both servers")
    assert all(gain(pair, epsilon) <= 0 for pair in views.values())
    # what is stated to break it does, and the test would have seen it
    assert np.all(together[0] == 0)
    assert np.all(together[1] == shift)
    assert gain(views["anyone"], epsilon / 2) > 0
