"""Million draws a second of exact integer noise, next to opendp's exact noise and numpy's unsafe doubles."""

import statistics
import time
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from syndic.noise import DiscreteGaussian, DiscreteLaplace
from syndic.random import SystemRandomness
from syndic_lab.bench.row import Row

_DRAWS = 1_000_000
_LAPLACE_SCALES = (1, 1000)
_GAUSSIAN_SIGMAS = (1, 10, 1000, 10**6)


def rows(quick: bool) -> Iterator[Row]:
    """Yield two rows for each law: ours with opendp's speed as baseline, numpy's with ours as baseline.

    opendp comes with the extra `bench`; where it is missing its baseline is None.
    """
    system, unsafe = SystemRandomness(), np.random.default_rng()
    repeats, theirs = (3, 20_000) if quick else (9, 200_000)
    for scale in _LAPLACE_SCALES:
        laplace = DiscreteLaplace(sensitivity=scale, epsilon=Fraction(1))
        ours = _speed(lambda noise=laplace: noise.draw(_DRAWS, system), _DRAWS, repeats)  # type: ignore[misc]
        numpy = _speed(lambda scale=scale: unsafe.laplace(0, scale, _DRAWS), _DRAWS, repeats)  # type: ignore[misc]
        yield from _rows(f"discrete Laplace, scale {scale}", ours, _opendp_speed("laplace", scale, theirs), numpy)
    for sigma in _GAUSSIAN_SIGMAS:
        gaussian = DiscreteGaussian(sensitivity_squared=Fraction(sigma**2), rho=Fraction(1, 2))
        ours = _speed(lambda noise=gaussian: noise.draw(_DRAWS, system), _DRAWS, repeats)  # type: ignore[misc]
        numpy = _speed(lambda sigma=sigma: unsafe.normal(0, sigma, _DRAWS), _DRAWS, repeats)  # type: ignore[misc]
        yield from _rows(f"discrete Gaussian, sigma {sigma}", ours, _opendp_speed("gaussian", sigma, theirs), numpy)


def _rows(law: str, ours: float, opendp: float | None, numpy: float) -> Iterator[Row]:
    for row, value, baseline in [
        (f"{law}, exact, against opendp", ours, opendp),
        (f"{law}, unsafe numpy doubles, against exact", numpy, ours),
    ]:
        yield Row(
            bench="noise", row=row, metric="million draws per second", value=value, unit="1e6/s", baseline=baseline
        )


def _speed(draw: Callable[[], object], draws: int, repeats: int) -> float:
    """Return the median speed in million draws a second, after one call that builds the tables."""
    draw()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        draw()
        seconds.append(time.perf_counter() - start)
    return draws / statistics.median(seconds) / 1e6


def _opendp_speed(law: str, scale: float, draws: int) -> float | None:
    try:
        import opendp.prelude as dp  # noqa: PLC0415 - an extra
    except ImportError:
        return None
    dp.enable_features("contrib")
    distance = dp.l1_distance(T=int) if law == "laplace" else dp.l2_distance(T=float)
    then = dp.m.then_laplace if law == "laplace" else dp.m.then_gaussian
    mechanism = (dp.vector_domain(dp.atom_domain(T=int)), distance) >> then(scale=float(scale))
    return _speed(lambda: mechanism([0] * draws), draws, 3)
