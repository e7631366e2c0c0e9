"""The exact Gaussian profile, against integrals, another library and published figures."""

from fractions import Fraction
from math import inf, sqrt
from typing import Any

import mpmath
import pytest
from dp_accounting import gaussian_mechanism
from hypothesis import given, settings
from hypothesis import strategies as st

from syndic.errors import InputError
from syndic.privacy import Cost, GaussianEvent, gaussian_epsilon, mu_squared_for, rho_for, zcdp_epsilon
from syndic.privacy.gaussian import _least, with_slack

DELTA = Fraction(1, 10**6)
PICO = 10**12


def integral(mu_squared: Fraction, epsilon: Fraction) -> Any:
    """delta at epsilon, as the mean of the positive part of 1 - exp(epsilon - loss), the loss being N(mu^2/2, mu^2)."""
    mu, e = mpmath.sqrt(mpmath.mpf(mu_squared.numerator) / mu_squared.denominator), mpmath.mpf(float(epsilon))
    start = (e - mu**2 / 2) / mu
    return mpmath.quad(
        lambda z: mpmath.npdf(z) * -mpmath.expm1(e - mu**2 / 2 - mu * z),
        [start + mpmath.mpf(step) / 4 for step in (0, 1, 2, 4, 8, 16, 32, 64, 128)],
    )


@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"),
    [("0.4", "1e-5", 8.63), ("1", "1e-5", 3.73), ("1", "1e-6", 4.225), ("4", "1e-6", 1.19), ("0.1", "1e-5", 30.749566)],
)
def test_noise_has_the_published_size(epsilon: str, delta: str, sigma: float) -> None:
    needed = 1 / sqrt(mu_squared_for(Fraction(epsilon), Fraction(delta)))
    assert needed == pytest.approx(sigma, abs=0.006)
    assert needed < 1 / sqrt(2 * rho_for(Fraction(epsilon), Fraction(delta)))


@pytest.mark.parametrize(
    ("mu_squared", "delta"),
    [("1/18", "1e-6"), ("1/1000", "1e-9"), ("4", "1e-12"), ("100", "0.01"), ("1e-9", "1e-6")],
)
def test_epsilon_is_where_the_integral_reaches_delta(mu_squared: str, delta: str) -> None:
    mu, target = Fraction(mu_squared), Fraction(delta)
    epsilon = gaussian_epsilon(mu, target)
    with mpmath.workdps(30):
        assert integral(mu, epsilon) <= float(target) * (1 + 1e-9)
        assert integral(mu, epsilon * Fraction(999_999, 10**6)) > float(target)


# dp_accounting's search ends within 1e-12 of the root
budgets = st.tuples(
    st.fractions(min_value=Fraction(1, 100), max_value=20, max_denominator=1000),
    st.floats(min_value=1e-12, max_value=0.1).map(Fraction),
)


@settings(deadline=None, max_examples=60)
@given(budgets)
def test_another_library_agrees(budget: tuple[Fraction, Fraction]) -> None:
    epsilon, delta = budget
    sigma = gaussian_mechanism.get_sigma_gaussian(float(epsilon), float(delta))
    ours = 1 / sqrt(mu_squared_for(epsilon, delta))
    assert sigma - 2e-12 - sigma * 1e-10 <= ours <= sigma * (1 + 1e-6)


@settings(deadline=None, max_examples=40)
@given(budgets, st.sampled_from([0, 1, 10**3, 10**6, 10**9]))
def test_a_budget_is_used_up_and_kept(budget: tuple[Fraction, Fraction], attos: int) -> None:
    epsilon, delta = budget
    slack = Fraction(attos, 10**18)
    if (1 + mpmath.exp(float(epsilon))) * float(slack) > float(delta) / 4:
        return
    mu_squared = mu_squared_for(epsilon, delta, slack)
    assert Cost.of([GaussianEvent(mu_squared=mu_squared, slack=slack)]).epsilon(delta) <= epsilon
    more = GaussianEvent(mu_squared=mu_squared + Fraction(2, PICO), slack=slack)
    assert Cost.of([more]).epsilon(delta) > epsilon


@pytest.mark.parametrize("delta", ["1e-300", "1e-30", "1e-9", "0.5", "0.999"])
@pytest.mark.parametrize("epsilon", ["1e-13", "1e-9", "1e-3", "100", "100000"])
def test_extreme_budgets_are_used_up_and_kept(epsilon: str, delta: str) -> None:
    mu_squared = mu_squared_for(Fraction(epsilon), Fraction(delta))
    assert gaussian_epsilon(mu_squared, Fraction(delta)) <= Fraction(epsilon)
    assert gaussian_epsilon(mu_squared + Fraction(2, PICO), Fraction(delta)) > Fraction(epsilon)


@settings(deadline=None, max_examples=60)
@given(st.fractions(min_value=Fraction(1, 10**6), max_value=30, max_denominator=10**6), budgets)
def test_the_exact_profile_is_never_above_concentrated_accounting(
    mu_squared: Fraction, budget: tuple[Fraction, Fraction]
) -> None:
    delta = budget[1]
    assert gaussian_epsilon(mu_squared, delta) <= zcdp_epsilon(mu_squared / 2, delta)


def test_slack_is_paid_for_at_the_epsilon_that_comes_out() -> None:
    mu_squared, slack = Fraction(1, 18), Fraction(1, 10**8)
    epsilon = Cost.of([GaussianEvent(mu_squared=mu_squared, slack=slack)]).epsilon(DELTA)
    with mpmath.workdps(30):
        total = integral(mu_squared, Fraction(epsilon)) + (1 + mpmath.exp(float(epsilon))) * float(slack)
        assert total == pytest.approx(float(DELTA), rel=1e-7)
    assert epsilon > gaussian_epsilon(mu_squared, DELTA)


def test_slack_of_an_exact_release_is_its_whole_delta() -> None:
    """A release within 1e-7 of one that says nothing: (0, 2e-7)-DP by the formula."""
    assert with_slack(lambda _: Fraction(0), DELTA, Fraction(1, 10**7)) == 0
    assert with_slack(lambda _: Fraction(0), DELTA, Fraction(1, 10**6)) == inf


def test_too_much_slack_leaves_no_guarantee() -> None:
    event = GaussianEvent(mu_squared=Fraction(1, 18), slack=DELTA / 2)
    assert Cost.of([event]).epsilon(DELTA) == inf
    with pytest.raises(InputError, match=r"slack \(5e-07\) leaves nothing of delta \(1e-06\): use a finer grid"):
        mu_squared_for(Fraction(1), DELTA, DELTA / 2)


def test_the_precision_that_others_use_does_not_matter() -> None:
    """Ledgers are shared by threads, and any of them may change the library's global precision."""
    expected = mu_squared_for(Fraction(1), DELTA)
    mu_squared_for.cache_clear()
    gaussian_epsilon.cache_clear()
    with mpmath.workdps(3):
        assert mu_squared_for(Fraction(1), DELTA) == expected
        assert gaussian_epsilon(expected, DELTA) <= 1 < gaussian_epsilon(expected + Fraction(2, PICO), DELTA)


def test_no_noise_is_asked_for_what_delta_covers() -> None:
    # at epsilon 0 the profile is 2 Phi(mu / 2) - 1
    assert gaussian_epsilon(Fraction(1, 100), Fraction(4, 100)) == 0
    assert gaussian_epsilon(Fraction(1, 100), Fraction(39, 1000)) > 0
    assert gaussian_epsilon(Fraction(0), DELTA) == 0


@pytest.mark.parametrize(
    ("epsilon", "delta", "slack", "text"),
    [
        ("0", "1e-6", "0", r"epsilon \(0\) must be positive"),
        ("1", "0", "0", r"delta \(0\) must be in \(0, 1\)"),
        ("1", "1", "0", r"delta \(1\) must be in \(0, 1\)"),
        ("1", "1e-6", "-1", r"slack \(-1\) not negative"),
        ("1000", "1e-6", "1e-18", r"leaves nothing"),
    ],
)
def test_budgets_that_cannot_be_are_refused(epsilon: str, delta: str, slack: str, text: str) -> None:
    with pytest.raises(InputError, match=text):
        mu_squared_for(Fraction(epsilon), Fraction(delta), Fraction(slack))
    with pytest.raises(InputError, match=r"mu_squared \(-1\) must not be negative"):
        gaussian_epsilon(Fraction(-1), DELTA)


@pytest.mark.parametrize("delta", ["0", "1", "1.5", "-0.5"])
def test_an_epsilon_is_only_given_at_a_delta_between_0_and_1(delta: str) -> None:
    with pytest.raises(InputError, match=r"must be in \(0, 1\)"):
        gaussian_epsilon(Fraction(1), Fraction(delta))


@pytest.mark.parametrize("least", [0, 1, 2, 3, 9, 20])
def test_the_least_number_is_found_from_every_guess(least: int) -> None:
    """A mu^2 that is one step too large is too little noise, and Newton's method seldom guesses wrong."""

    def holds(number: int) -> bool:
        assert number >= 0
        return number >= least

    assert all(_least(holds, guess) == least for guess in range(26))


def test_a_slack_below_the_least_that_is_counted_counts_as_that() -> None:
    epsilon, delta, atto = Fraction(1), Fraction(1, 10**16), Fraction(1, 10**18)
    mu_squared = mu_squared_for(epsilon, delta, atto / 2)
    assert mu_squared == mu_squared_for(epsilon, delta, atto) < mu_squared_for(epsilon, delta)
    assert mu_squared > mu_squared_for(epsilon, delta, 2 * atto)
    assert Cost.of([GaussianEvent(mu_squared=mu_squared, slack=atto / 2)]).epsilon(delta) <= epsilon


def test_what_slack_takes_is_rounded_up() -> None:
    """delta - (1 + e^epsilon) slack is what is left at each epsilon on the way, and never more than that."""
    delta, slack = Fraction(1, 2), Fraction(1, 100)
    epsilons = [Fraction(step, 10) for step in range(1, 31)]
    left: list[Fraction] = []

    def epsilon_at(part: Fraction) -> Fraction:
        left.append(part)
        return epsilons[min(len(left), len(epsilons)) - 1]

    assert with_slack(epsilon_at, delta, slack) == epsilons[-1]
    with mpmath.workdps(50):
        for epsilon, part in zip([Fraction(0), *epsilons], left, strict=True):
            power = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
            exact = mpmath.mpf(1) / 2 - (1 + power) / 100
            found = mpmath.mpf(part.numerator) / part.denominator
            assert exact * (1 - mpmath.mpf(10) ** -11) < found <= exact


def test_an_epsilon_that_climbs_without_end_is_none() -> None:
    larger = iter(range(1, 10**6))
    assert with_slack(lambda _: Fraction(next(larger), 10**9), DELTA, Fraction(1, 10**12)) == inf


def test_a_slack_of_1_leaves_nothing() -> None:
    assert with_slack(lambda _: Fraction(0), DELTA, Fraction(1)) == inf
    with pytest.raises(InputError, match="leaves nothing"):
        mu_squared_for(Fraction(1), DELTA, Fraction(1))
