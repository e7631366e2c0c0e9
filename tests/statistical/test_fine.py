"""Noise on a fine grid against the law it is made for; a false alarm has a chance of at most 1e-6."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2, norm

from syndic.noise import FineGaussian, FineGaussianShare
from syndic.random import SystemRandomness

pytestmark = pytest.mark.statistical

ALARM = 1e-8
DRAWS = 200_000
SYSTEM = SystemRandomness()


def fits(noise: NDArray[np.float64], sd: float) -> bool:
    """Pearson's test of 200 classes that a normal law of this standard deviation makes equally likely."""
    observed = np.bincount(np.minimum((norm.cdf(noise / sd) * 200).astype(np.int64), 199), minlength=200)
    expected = noise.size / 200
    return bool(chi2.sf(((observed - expected) ** 2 / expected).sum(), 199) > ALARM)


def test_results_are_values_plus_normal_noise_of_the_stated_variance() -> None:
    noise = FineGaussian(sensitivity_squared=Fraction(2), mu_squared=Fraction(1, 9), changed=2)
    values = np.tile(np.array([-5, 0, 1000]), DRAWS // 3)
    rest = noise.apply(values, SYSTEM) / noise.scale - values
    assert noise.variance == pytest.approx(18)
    assert fits(rest, noise.variance**0.5)
    # the test can fail: 5 in 100 more noise
    assert not fits(1.05 * rest, noise.variance**0.5)


@pytest.mark.parametrize(("parties", "mu_squared"), [(2, Fraction(1, 9)), (5, Fraction(9)), (30, Fraction(1, 2))])
def test_honest_shares_add_up_to_normal_noise_of_the_stated_variance(parties: int, mu_squared: Fraction) -> None:
    share = FineGaussianShare(
        sensitivity_squared=Fraction(2),
        mu_squared=mu_squared,
        changed=2,
        parties=parties + 1,
        missing=1,
        dimension=50_000,
    )
    value = np.arange(50_000)
    opened = sum(
        (share.apply(value, SYSTEM) for _ in range(parties)),
        np.zeros(50_000, dtype=np.int64),
    )
    rest = opened / share.scale - parties * value
    assert share.total_variance(parties) == pytest.approx(float(2 / mu_squared), rel=1e-6)
    assert fits(rest, share.total_variance(parties) ** 0.5)


@pytest.mark.parametrize("bits", [0, 2])
def test_noise_on_a_coarse_grid_has_its_exact_law(bits: int) -> None:
    noise = FineGaussian(sensitivity_squared=Fraction(1), mu_squared=Fraction(1, 7), changed=1, fraction_bits=bits)
    drawn = noise.draw(DRAWS, SYSTEM)
    reach = 6 * noise.scale * 3
    places = np.arange(-reach, reach + 1)
    law = np.exp(-(places**2) / (2 * float(noise.sigma_squared) * noise.scale**2))
    expected = law / law.sum() * DRAWS
    observed = np.bincount(np.clip(drawn, -reach, reach) + reach, minlength=2 * reach + 1)
    rare = expected < 20
    cells = [np.append(part[~rare], part[rare].sum()) for part in (observed, expected)]
    statistic = ((cells[0] - cells[1]) ** 2 / np.maximum(cells[1], 1.0)).sum()
    assert chi2.sf(statistic, int((~rare).sum())) > ALARM
