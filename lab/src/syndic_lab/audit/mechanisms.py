"""Audits of every mechanism, against its own event: draws under inputs as far apart as the stated sensitivity."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syndic.document import exact
from syndic.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    FineGaussian,
    FineGaussianShare,
    GaussianShare,
    LaplaceShare,
    RandomisedResponse,
    SkellamShare,
    SparseHistogram,
)
from syndic.privacy import Cost
from syndic.random import Randomness, SimulationRandomness
from syndic_lab.audit.observation import Neighbours, Trial, numbers
from syndic_lab.exponential import ExponentialMechanism, ReportNoisyMax

Draws = Callable[[int, Randomness], list[Trial]]
DELTA: Final = 1e-5
_CALLS: Final = 100
"""A mechanism that gives one answer a call is drawn this many times less often than one that takes arrays."""


def mechanisms() -> Iterator[tuple[str, Draws]]:
    """Yield every mechanism's audit: a name, and a function of how many draws and where they come from."""
    one, two = Fraction(1), Fraction(2)
    yield "discrete laplace", _scalar(DiscreteLaplace(sensitivity=1, epsilon=one), 1, 0.0)
    yield "discrete laplace, large scale", _scalar(DiscreteLaplace(sensitivity=1000, epsilon=one), 1000, 0.0)
    yield "discrete laplace, vector", _laplace_vector(DiscreteLaplace(sensitivity=4, epsilon=one))
    yield "discrete gaussian", _scalar(DiscreteGaussian(sensitivity_squared=one, rho=exact(0.5)), 1, DELTA)
    wide = DiscreteGaussian(sensitivity_squared=Fraction(2000**2), rho=exact(0.5))
    yield "discrete gaussian, large scale", _scalar(wide, 2000, DELTA)
    yield "fine gaussian", _scalar(FineGaussian(sensitivity_squared=one, mu_squared=one, changed=1), 1, DELTA)
    yield "randomised response", _response
    yield "exponential mechanism", _choice(ExponentialMechanism(sensitivity=1, epsilon=two))
    yield "report noisy max", _choice(ReportNoisyMax(sensitivity=1, epsilon=two))
    yield "sparse histogram", _sparse
    shared: dict[str, Any] = {"parties": 4, "colluding": 1, "missing": 1}
    square, large = Fraction(20**2), 20
    for name, make in (
        (
            "gaussian shares",
            lambda size: GaussianShare(**shared, dimension=size, sensitivity_squared=square, rho=exact(0.5)),
        ),
        (
            "skellam shares",
            lambda size: SkellamShare(
                **shared, dimension=size, sensitivity=large, sensitivity_squared=square, rho=exact(0.5)
            ),
        ),
        ("laplace shares", lambda size: LaplaceShare(**shared, dimension=size, sensitivity=large, epsilon=one)),
        (
            "fine gaussian shares",
            lambda size: FineGaussianShare(
                **shared, dimension=size, sensitivity_squared=square, mu_squared=one, changed=1
            ),
        ),
    ):
        yield name, _shares(make, large)


def _scalar(mechanism: Any, away: int, delta: float) -> Draws:
    """Compare one number with one that is as far away as the sensitivity allows."""

    def draws(count: int, randomness: Randomness) -> list[Trial]:
        one, other = (numbers(mechanism.apply(np.full(count, value), randomness)) for value in (away, 0))
        scale = getattr(mechanism, "scale", 1) if isinstance(mechanism, FineGaussian) else 1
        return [_trial(one, other, mechanism.event, delta, away * scale / 2)]

    return draws


def _trial(one: Any, other: Any, event: Any, delta: float, cut: float | None = None) -> Trial:
    return Neighbours(
        view="anyone with the output",
        one=numbers(one),
        other=numbers(other),
        cost=Cost.of([event]),
        delta=delta,
        cuts=() if cut is None else (cut,),
    )


def _laplace_vector(mechanism: DiscreteLaplace) -> Draws:
    """Compare vectors that differ by 1 in as many entries as the l1 sensitivity allows."""

    def draws(count: int, randomness: Randomness) -> list[Trial]:
        ends = np.ones(mechanism.sensitivity, dtype=np.int64), np.zeros(mechanism.sensitivity, dtype=np.int64)
        seen = [mechanism.apply(np.tile(end, (count // len(end), 1)), randomness) for end in ends]
        one, other = (np.abs(each).sum(axis=1) - np.abs(each - 1).sum(axis=1) for each in seen)
        return [_trial(one, other, mechanism.event, 0.0, 0.0)]

    return draws


def _response(count: int, randomness: Randomness) -> list[Trial]:
    """Compare two people's codes."""
    mechanism = RandomisedResponse(size=5, epsilon=Fraction(1))
    one, other = (mechanism.apply(np.full(count, code), randomness) for code in (3, 1))
    return [_trial(one, other, mechanism.event, 0.0)]


def _choice(mechanism: Any) -> Draws:
    """Compare scores of which each moves by the sensitivity, the first up and all others down."""

    def draws(count: int, randomness: Randomness) -> list[Trial]:
        one, other = np.array([1, 0, 0, 0]), np.array([0, 1, 1, 1])
        seen = [[mechanism.apply(scores, randomness) for _ in range(count // _CALLS)] for scores in (one, other)]
        return [_trial(seen[0], seen[1], mechanism.event, 0.0)]

    return draws


def _sparse(count: int, randomness: Randomness) -> list[Trial]:
    """Compare a cell of many that a person fills with one that nobody fills: is it given out, and as what?"""
    mechanism = SparseHistogram(noise=DiscreteLaplace(sensitivity=8, epsilon=Fraction(1)), cells=10**6, at_least=60)
    place, held = np.array([5], dtype=np.uint64), (60, 52)

    def seen(value: int) -> list[int]:
        found = []
        for _ in range(count // _CALLS):
            cells = mechanism.apply((place, np.array([value])), randomness)
            shown = cells.counts[cells.places == place[0]]
            found.append(int(shown[0]) if shown.size else 0)
        return found

    one, other = (seen(value) for value in held)
    return [_trial(one, other, mechanism.event, 0.0)]


def _shares(make: Callable[[int], Any], away: int) -> Draws:
    """Compare sums of which only the shares that a coalition does not know are left."""

    def draws(count: int, randomness: Randomness) -> list[Trial]:
        count //= 2
        share = make(count)
        scale = getattr(share, "scale", 1)

        def left() -> NDArray[np.int64]:
            total = np.zeros(count, dtype=np.int64)
            for _ in range(share.honest):
                total += share.draw(count, randomness)
            return total

        # the event is of vectors of that dimension that differ in one entry: every entry is a trial of its own
        delta = 0.0 if isinstance(share, LaplaceShare) else DELTA
        return [_trial(left() + away * scale, left(), make(1).event, delta, away * scale / 2)]

    return draws


def stream(seed: int, name: str) -> Randomness:
    """Return the coins of one audit: they repeat themselves, and no audit protects anybody."""
    return SimulationRandomness(seed, "audit", name)
