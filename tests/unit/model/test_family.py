"""Families against textbook formulas, numeric derivatives of alpha, and optimisers."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

from syndic.model import (
    Bernoulli,
    Binomial,
    Exponential,
    Family,
    Gamma,
    GammaRate,
    Geometric,
    Multinomial,
    Normal,
    NormalMean,
    NormalVariance,
    Poisson,
)
from syndic.model.families.estimate import Model

SHARES = Multinomial(categories=("a", "b", "c"))
# family, parameters, the law of scipy, Fisher information from a textbook
CASES: list[tuple[Family, list[float], Any, list[list[float]] | None]] = [
    (Bernoulli(), [0.3], stats.bernoulli(0.3), [[1 / 0.21]]),
    (Binomial(trials=7), [0.4], stats.binom(7, 0.4), [[7 / 0.24]]),
    (Poisson(), [2.5], stats.poisson(2.5), [[1 / 2.5]]),
    (Geometric(), [0.3], stats.geom(0.3, loc=-1), [[1 / (0.09 * 0.7)]]),
    (Exponential(), [1.7], stats.expon(scale=1 / 1.7), [[1 / 1.7**2]]),
    (GammaRate(shape=2.5), [0.8], stats.gamma(2.5, scale=1 / 0.8), [[2.5 / 0.64]]),
    (
        Gamma(),
        [2.5, 0.8],
        stats.gamma(2.5, scale=1 / 0.8),
        [[0.490357756100234, -1 / 0.8], [-1 / 0.8, 2.5 / 0.64]],
    ),
    (NormalMean(variance=4.0), [1.0], stats.norm(1, 2), [[1 / 4]]),
    (NormalVariance(centre=1.0), [4.0], stats.norm(1, 2), [[1 / 32]]),
    (Normal(centre=3.0), [1.0, 4.0], stats.norm(1, 2), [[1 / 4, 0], [0, 1 / 32]]),
    (SHARES, [0.2, 0.3, 0.5], None, None),
]
Array = NDArray[np.float64]


def natural_of(family: Family, theta: Array) -> Array:  # noqa: PLR0911 - one for each family
    """The natural parameters, from a textbook."""
    match family:
        case Bernoulli() | Binomial():
            return np.asarray(np.log(theta) - np.log1p(-theta))
        case Poisson() | Multinomial():
            return np.asarray(np.log(theta))
        case Geometric():
            return np.asarray(np.log1p(-theta))
        case Exponential() | GammaRate():
            return -theta
        case Gamma():
            return np.array([-theta[1], theta[0]])
        case NormalMean():
            return theta / family.variance
        case NormalVariance():
            return -0.5 / theta
        case Normal():
            return np.array([(theta[0] - family.centre) / theta[1], -0.5 / theta[1]])
    raise AssertionError(family)


def alpha(family: Family, natural: Array) -> float:  # noqa: PLR0911 - one for each family
    """The log normaliser, whose gradient is the mean of T and whose Hessian is its covariance, from a textbook."""
    first, last = natural[0], natural[-1]
    match family:
        case Bernoulli() | Binomial():
            return float(family.trials * np.logaddexp(0.0, first))
        case Poisson():
            return float(np.exp(first))
        case Multinomial():
            return float(np.logaddexp.reduce(natural))
        case Geometric():
            return float(-np.log(-np.expm1(first)))
        case Exponential() | GammaRate():
            return float(-family.shape * np.log(-first))
        case Gamma():
            return float(special.gammaln(last) - last * np.log(-first))
        case NormalMean():
            return float(family.variance * first**2 / 2)
        case NormalVariance():
            return float(-0.5 * np.log(-2 * first))
        case Normal():
            return float(-(first**2) / (4 * last) - 0.5 * np.log(-2 * last))
    raise AssertionError(family)


each_family = pytest.mark.parametrize(
    ("family", "theta", "law", "information"), CASES, ids=lambda value: str(value)[:30]
)


@each_family
def test_mean_and_covariance_are_derivatives_of_alpha(
    family: Family, theta: list[float], law: Any, information: Any
) -> None:
    natural = natural_of(family, np.array(theta))
    width, unit = 1e-4, np.eye(len(theta))
    gradient = [(alpha(family, natural + width * e) - alpha(family, natural - width * e)) / (2 * width) for e in unit]
    np.testing.assert_allclose(family.mean(np.array(theta)), gradient, rtol=1e-6)
    hessian = [
        [
            (
                alpha(family, natural + width * (e + f))
                - alpha(family, natural + width * (e - f))
                - alpha(family, natural - width * (e - f))
                + alpha(family, natural - width * (e + f))
            )
            / (4 * width**2)
            for e in unit
        ]
        for f in unit
    ]
    np.testing.assert_allclose(family.covariance(np.array(theta)), hessian, rtol=1e-4, atol=1e-6)


@each_family
def test_information_is_the_textbooks(family: Family, theta: list[float], law: Any, information: Any) -> None:
    if information is not None:
        np.testing.assert_allclose(
            np.linalg.pinv(family.spread(np.array(theta)), hermitian=True), information, rtol=1e-5, atol=1e-6
        )
    else:
        # shares add up to one: the inverse of their covariance on that plane
        spread = np.diag(theta) - np.outer(theta, theta)
        np.testing.assert_allclose(family.spread(np.array(theta)), spread, atol=1e-12)


@each_family
def test_fit_maximises_the_likelihood(family: Family, theta: list[float], law: Any, information: Any) -> None:
    if law is None:
        values = np.array([0.0, 1, 1, 2, 2, 2, 2, 0, 1, 2])
    else:
        values = np.asarray(law.rvs(200, random_state=4), dtype=np.float64)
    mean = family.statistic(values).mean(axis=0)
    fitted = family.fit(mean)

    def likelihood(at: np.ndarray[Any, Any]) -> float:
        natural = natural_of(family, at)
        return float(natural @ mean - alpha(family, natural))

    moved = [np.eye(len(theta))[place] * 1e-3 * sign for place in range(len(theta)) for sign in (1, -1)]
    if law is None:
        moved = [np.array([1e-3, -1e-3, 0]), np.array([0, 1e-3, -1e-3])]
    assert all(likelihood(fitted) > likelihood(fitted * (1 + step)) for step in moved)


@each_family
def test_fit_inverts_mean(family: Family, theta: list[float], law: Any, information: Any) -> None:
    np.testing.assert_allclose(family.fit(family.mean(np.array([theta, theta]))), [theta, theta], rtol=1e-10)


@each_family
def test_statistic_has_the_stated_moments(family: Family, theta: list[float], law: Any, information: Any) -> None:
    if law is None:  # shares: theta are the chances themselves
        values = np.random.default_rng(5).choice(len(theta), 200_000, p=theta).astype(np.float64)
    else:
        values = np.asarray(law.rvs(200_000, random_state=5), dtype=np.float64)
    drawn = family.statistic(values)
    error = drawn.std(axis=0) / np.sqrt(len(values))
    assert (np.abs(drawn.mean(axis=0) - family.mean(np.array(theta))) < 6 * error).all()


@each_family
def test_closed_form_of_the_first_bias_is_the_general_one(
    family: Family, theta: list[float], law: Any, information: Any
) -> None:
    general = Family.first_bias(family, np.array([theta]))
    np.testing.assert_allclose(family.first_bias(np.array([theta])), general, rtol=1e-4, atol=1e-6)


def test_first_bias_of_the_rate_is_exact() -> None:
    # E 1/xbar = n rate / (n - 1) for exponential values: the corrected estimate has no bias at all
    model = Model(family=Exponential(), least=np.array([1e-3]), most=np.array([1e3]))
    draws = np.random.default_rng(1).gamma(20, 1 / (20 * 1.7), size=(400_000, 1))
    corrected = model.corrected(draws, np.full(400_000, 20))
    assert abs(corrected.mean() - 1.7) < 6 * corrected.std() / 400_000**0.5
    assert abs(model.estimate(draws).mean() - 1.7 * 20 / 19) < 6 * corrected.std() / 400_000**0.5


@pytest.mark.slow
def test_gamma_bias_is_that_of_simulation() -> None:
    draws = np.random.default_rng(2).gamma(2.0, 1.0, size=(100_000, 50))
    family = Gamma()
    fitted = family.fit(family.statistic(draws).mean(axis=1))
    error = fitted.std(axis=0) / len(fitted) ** 0.5
    bias = fitted.mean(axis=0) - [2.0, 1.0]
    # b1 / n, and the next term is of order 1 / n^2
    assert (np.abs(bias - family.first_bias(np.array([2.0, 1.0])) / 50) < 6 * error + 0.1 * np.abs(bias)).all()


@pytest.mark.parametrize(
    ("family", "means"),
    [
        (Bernoulli(), [[-0.4], [1.7]]),
        (Geometric(), [[-3.0], [900.0]]),
        (Exponential(), [[-1.0], [0.0]]),
        (Gamma(), [[-1.0, 5.0], [2.0, 40.0]]),
        (Normal(centre=0.0), [[0.5, -4.0], [90.0, 1.0]]),
        (SHARES, [[-0.2, 0.5, 0.9], [3.0, -1.0, -1.0]]),
    ],
    ids=lambda value: str(value)[:20],
)
def test_any_mean_gives_parameters_of_the_set(family: Family, means: list[list[float]]) -> None:
    least, most = family.span(0.0, 10.0, 0.01)
    model = Model(family=family, least=least, most=most)
    for estimate in (model.estimate(np.array(means)), model.inside(np.full((2, len(least)), np.nan))):
        assert ((estimate >= least) & (estimate <= most)).all()


def test_shares_are_projected_to_the_nearest_ones() -> None:
    mean = np.array([-0.2, 0.5, 0.9])
    one, two = np.meshgrid(np.linspace(0, 1, 501), np.linspace(0, 1, 501))
    every = np.stack([one, two, 1 - one - two], axis=-1).reshape(-1, 3)
    every = every[every[:, 2] >= -1e-12]
    nearest = every[np.argmin(((every - mean) ** 2).sum(axis=1))]
    np.testing.assert_allclose(SHARES.project(mean, np.zeros(3), np.ones(3)), nearest, atol=2e-3)


@pytest.mark.parametrize(
    ("family", "lower", "upper"),
    [
        (Bernoulli(), 0.0, 2.0),
        (Binomial(trials=3), 0.0, 4.0),
        (Poisson(), -1.0, 4.0),
        (Exponential(), -0.1, 4.0),
        (GammaRate(shape=1.0), -0.1, 4.0),
        (Gamma(), 0.0, 4.0),
        (Geometric(), -1.0, 4.0),
    ],
    ids=str,
)
def test_values_that_the_law_cannot_have_are_refused(family: Family, lower: float, upper: float) -> None:
    with pytest.raises(ValueError, match="must"):
        family.check_values(lower, upper)


@pytest.mark.parametrize(
    "make",
    [lambda: Binomial(trials=0), lambda: GammaRate(shape=0.0), lambda: NormalMean(variance=-1.0)],
    ids=["trials", "shape", "variance"],
)
def test_bad_constants_are_refused(make: Any) -> None:
    with pytest.raises(ValueError, match="must be"):
        make()
