from fractions import Fraction
from itertools import product
from math import comb, exp, inf
from typing import Any

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy.optimize import brentq
from scipy.stats import binom

from syndic.errors import InputError
from syndic.privacy.account import (
    Accountant,
    _loss_epsilon,
    curve,
    epsilon_of,
    pure_for,
)
from syndic.privacy.concentrated import zcdp_epsilon
from syndic.privacy.cost import Cost
from syndic.privacy.event import ApproximateEvent, ConcentratedEvent, Event, GaussianEvent, PureEvent
from syndic.privacy.gaussian import gaussian_epsilon

DELTA = Fraction(1, 10**5)


def hockey_stick(first: dict[object, float], second: dict[object, float], epsilon: float) -> float:
    return sum(max(0.0, p - exp(epsilon) * second.get(key, 0.0)) for key, p in first.items())


def worst_pair(epsilon: float, delta: float) -> list[tuple[float, float]]:
    """The outcomes of the worst (epsilon, delta)-DP mechanism: probabilities under both neighbours."""
    likely, unlikely = (1 - delta) / (1 + exp(-epsilon)), (1 - delta) / (1 + exp(epsilon))
    return [(delta, 0.0), (likely, unlikely), (unlikely, likely), (0.0, delta)]


def composed_delta(parameters: list[tuple[float, float]], epsilon: float) -> float:
    """delta(epsilon) of independent worst mechanisms, by going through every outcome."""
    total = 0.0
    for outcome in product(*(worst_pair(e, d) for e, d in parameters)):
        p, q = (float(np.prod([pair[side] for pair in outcome])) for side in (0, 1))
        total += max(0.0, p - exp(epsilon) * q)
    return total


@pytest.mark.parametrize(("count", "each"), [(1, "1"), (10, "1/10"), (50, "1/10"), (400, "1/100")])
def test_loss_distributions_of_equal_pure_events_are_the_binomial_ones(count: int, each: str) -> None:
    claimed = epsilon_of([PureEvent(epsilon=Fraction(each))] * count, DELTA, "pld")

    def delta_at(epsilon: float) -> mpmath.mpf:
        one = mpmath.mpf(Fraction(each).numerator) / Fraction(each).denominator
        p = 1 / (1 + mpmath.exp(-one))
        return sum(
            comb(count, k)
            * p**k
            * (1 - p) ** (count - k)
            * max(mpmath.mpf(0), 1 - mpmath.exp(epsilon - (2 * k - count) * one))
            for k in range(count + 1)
        )

    with mpmath.workdps(40):
        assert delta_at(float(claimed)) <= float(DELTA)
        assert delta_at(float(claimed) * (1 - 1e-4)) > float(DELTA)


def test_loss_distributions_of_unlike_events_agree_with_going_through_every_outcome() -> None:
    parameters = [(0.3, 0.0), (0.5, 1e-6), (0.75, 0.0), (0.2, 3e-6), (1.0, 0.0)]
    events: list[Event] = [
        ApproximateEvent(epsilon=Fraction(str(e)), delta=Fraction(str(d))) if d else PureEvent(epsilon=Fraction(str(e)))
        for e, d in parameters
    ]
    claimed = float(epsilon_of(events, DELTA, "pld"))
    assert composed_delta(parameters, claimed) <= float(DELTA)
    assert composed_delta(parameters, claimed * 0.999) > float(DELTA)
    assert claimed < float(Cost.of(events).epsilon(DELTA))


def test_loss_distributions_on_a_coarse_grid_still_bound_every_outcome() -> None:
    # denominators without a common grid of 2^20 points: rounded up
    parts = [Fraction(1, 1009), Fraction(1000, 1013), Fraction(700, 1019), Fraction(333, 1021)]
    claimed = float(epsilon_of([PureEvent(epsilon=part) for part in parts], Fraction(1, 100), "pld"))
    parameters = [(float(part), 0.0) for part in parts]
    assert composed_delta(parameters, claimed) <= 0.01
    assert composed_delta(parameters, claimed - 1e-4) > 0.01


def test_losses_between_the_points_of_the_grid_are_rounded_up_on_both_sides() -> None:
    # found by a search: the first one is nearly on the grid, the second nearly a whole step off
    parts = [3 + Fraction(1, 1021), 2 + Fraction(1, 1033)]
    claimed = float(epsilon_of([PureEvent(epsilon=part) for part in parts], Fraction(9, 10), "pld"))
    assert composed_delta([(float(part), 0.0) for part in parts], claimed) <= 0.9


def test_loss_distributions_of_events_with_a_large_delta_are_those_of_every_outcome() -> None:
    events = [ApproximateEvent(epsilon=Fraction(1, 2), delta=Fraction(1, 20))] * 2
    claimed = float(epsilon_of(events, Fraction(1, 5), "pld"))
    assert composed_delta([(0.5, 0.05)] * 2, claimed) <= 0.2
    assert composed_delta([(0.5, 0.05)] * 2, claimed * 0.999) > 0.2


def test_plain_addition_adds_deltas_too() -> None:
    events: list[Event] = [ApproximateEvent(epsilon=Fraction(1, 2), delta=DELTA)] * 2
    events.append(PureEvent(epsilon=Fraction(1)))
    assert epsilon_of(events, 3 * DELTA, "pure") == epsilon_of(events, 2 * DELTA, "pure") == 2
    assert epsilon_of(events, 2 * DELTA - Fraction(1, 10**18), "pure") == inf


@pytest.mark.parametrize("mu_squared", ["1/20", "1/3", "1/7", "0.9", "2"])
def test_the_library_is_given_no_more_noise_than_there_is(mu_squared: str, monkeypatch: pytest.MonkeyPatch) -> None:
    deviations: list[Fraction] = []
    mechanism = privacy_loss_distribution.from_gaussian_mechanism

    def heard(deviation: float, **options: Any) -> Any:
        deviations.append(Fraction(deviation))
        return mechanism(deviation, **options)

    monkeypatch.setattr(privacy_loss_distribution, "from_gaussian_mechanism", heard)
    square = Fraction(mu_squared)
    epsilon_of([PureEvent(epsilon=Fraction(1, 2)), GaussianEvent(mu_squared=square)], DELTA, "pld")
    # the deviation is 1 / mu; a cost rounds mu^2 up to 2e-12
    assert len(deviations) == 1
    assert 1 - Fraction(1, 10**10) < deviations[0] ** 2 * square < 1


@pytest.mark.parametrize("epsilon", [2.5e-12, 0.3, 7.1])
def test_what_the_library_finds_is_never_rounded_down(epsilon: float) -> None:
    class Loss:
        def get_epsilon_for_delta(self, _: float) -> float:
            return epsilon

    assert Fraction(epsilon) < _loss_epsilon(Loss(), DELTA) < Fraction(epsilon) * (1 + Fraction(1, 10**8)) + 3e-12
    assert _loss_epsilon(Loss(), Fraction(1, 10**10)) == inf


@pytest.mark.parametrize("accountant", ["best", "pure", "zcdp", "pld"])
@pytest.mark.parametrize("delta", [Fraction(1, 100), Fraction(1, 10**5)])
def test_every_accountant_bounds_real_discrete_laplace_noise(accountant: Accountant, delta: Fraction) -> None:
    epsilons = [Fraction(1, 2), Fraction(4, 5)]
    reach = range(-60, 61)
    releases: list[dict[object, float]] = []
    for shift in (0, 1):
        law: dict[object, float] = {(): 1.0}
        for epsilon in epsilons:
            ratio = exp(-epsilon)
            law = {
                (*key, value): p * (1 - ratio) / (1 + ratio) * ratio ** abs(value - shift)
                for key, p in law.items()
                for value in reach
                if isinstance(key, tuple)
            }
        releases.append(law)
    claimed = epsilon_of([PureEvent(epsilon=epsilon) for epsilon in epsilons], delta, accountant)
    assert hockey_stick(releases[0], releases[1], float(claimed)) <= float(delta)
    assert hockey_stick(releases[1], releases[0], float(claimed)) <= float(delta)


@pytest.mark.parametrize("accountant", ["best", "zcdp", "pld"])
@pytest.mark.parametrize(("pures", "sigma"), [([1.0], 4.0), ([0.5] * 4, 2.0), ([0.1] * 6, 10.0)])
def test_mixtures_with_gaussian_noise_are_bounded(pures: list[float], sigma: float, accountant: Accountant) -> None:
    events: list[Event] = [PureEvent(epsilon=Fraction(str(e))) for e in pures]
    events.append(ConcentratedEvent(rho=1 / (2 * Fraction(str(sigma)) ** 2)))
    claimed = float(epsilon_of(events, DELTA, accountant))
    total = mpmath.mpf(0)
    for outcome in product(*(worst_pair(e, 0.0)[1:3] for e in pures)):
        p, q = (float(np.prod([pair[side] for pair in outcome])) for side in (0, 1))
        total += p * gaussian_delta(1 / sigma, claimed - float(np.log(p / q)))
    assert total <= float(DELTA)


@pytest.mark.parametrize("accountant", ["best", "zcdp", "pld"])
@pytest.mark.parametrize(("pures", "mu"), [([1.0], 0.25), ([0.5] * 4, 0.5), ([0.1] * 6, 0.1), ([0.001], 2.0)])
def test_mixtures_with_gaussian_events_are_bounded(pures: list[float], mu: float, accountant: Accountant) -> None:
    events: list[Event] = [PureEvent(epsilon=Fraction(str(e))) for e in pures]
    events += [GaussianEvent(mu_squared=Fraction(str(mu)) ** 2 / 2)] * 2

    def delta_at(epsilon: float) -> float:
        total = mpmath.mpf(0)
        for outcome in product(*(worst_pair(e, 0.0)[1:3] for e in pures)):
            p, q = (float(np.prod([pair[side] for pair in outcome])) for side in (0, 1))
            total += p * gaussian_delta(mu, epsilon - float(np.log(p / q)))
        return float(total)

    claimed = float(epsilon_of(events, DELTA, accountant))
    assert delta_at(claimed) <= float(DELTA)
    if accountant != "zcdp":
        assert delta_at(claimed * 0.999) > float(DELTA)


def test_slack_is_paid_in_every_account() -> None:
    slack = Fraction(1, 10**7)
    for others in ([], [PureEvent(epsilon=Fraction(1, 2))], [ConcentratedEvent(rho=Fraction(1, 100))]):
        exact = [*others, GaussianEvent(mu_squared=Fraction(1, 20))]
        near = [*others, GaussianEvent(mu_squared=Fraction(1, 20), slack=slack)]
        for accountant in ("zcdp", "pld", "best"):
            before, after = (float(epsilon_of(events, DELTA, accountant)) for events in (exact, near))
            left = DELTA - slack * Fraction(1 + exp(after))
            assert before < after == pytest.approx(float(epsilon_of(exact, left, accountant)), rel=1e-6)


def test_gaussian_events_alone_need_no_grid() -> None:
    events = [GaussianEvent(mu_squared=Fraction(1, 20))] * 2
    assert epsilon_of(events, DELTA, "pld") == epsilon_of(events, DELTA) == gaussian_epsilon(Fraction(1, 10), DELTA)
    assert epsilon_of(events, DELTA, "zcdp") == zcdp_epsilon(Fraction(1, 20), DELTA)
    assert epsilon_of(events, DELTA, "pure") == inf
    assert curve(events, [DELTA]) == curve(Cost.of(events), [DELTA])


def test_loss_distributions_and_rho_share_one_delta() -> None:
    rho, count, each = Fraction(1, 50), 50, Fraction(1, 10)
    wins = np.arange(count + 1)
    law, losses = binom.pmf(wins, count, 1 / (1 + exp(-each))), (2 * wins - count) * float(each)

    def pure_epsilon(delta: float) -> float:
        return float(brentq(lambda e: float(law @ np.maximum(0, -np.expm1(e - losses))) - delta, 0, 5, xtol=1e-12))

    sums = [
        pure_epsilon(float(share * DELTA)) + float(zcdp_epsilon(rho, (1 - share) * DELTA))
        for share in (Fraction(k, 200) for k in range(1, 200))
    ]
    events: list[Event] = [PureEvent(epsilon=each)] * count
    claimed = float(epsilon_of([*events, ConcentratedEvent(rho=rho)], DELTA, "pld"))
    assert min(sums) <= claimed <= min(sums) + 1e-3


def gaussian_delta(mu: float, epsilon: float) -> mpmath.mpf:
    with mpmath.workdps(40):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


def test_the_best_accountant_is_never_beaten() -> None:
    names: list[Accountant] = ["pure", "zcdp", "pld"]
    cases: list[list[Event]] = [
        [PureEvent(epsilon=Fraction(1))],
        [PureEvent(epsilon=Fraction(1, 10)) for _ in range(30)],
        [PureEvent(epsilon=Fraction(1, 10)), ConcentratedEvent(rho=Fraction(1, 10))],
        [ConcentratedEvent(rho=Fraction(1, 10))],
        [ApproximateEvent(epsilon=Fraction(1), delta=DELTA / 10)],
    ]
    for events in cases:
        best = epsilon_of(events, DELTA)
        assert best <= min(epsilon_of(events, DELTA, name) for name in names)
        assert best <= Cost.of(events).epsilon(DELTA)


def test_accountants_say_what_they_cannot_account_for() -> None:
    gaussian = [ConcentratedEvent(rho=Fraction(1, 10))]
    assert epsilon_of(gaussian, DELTA, "pure") == inf
    assert epsilon_of(gaussian, DELTA, "zcdp") == epsilon_of(gaussian, DELTA, "pld")
    assert epsilon_of(gaussian, DELTA) == zcdp_epsilon(Fraction(1, 10), DELTA)
    laplace = [PureEvent(epsilon=Fraction(1))]
    assert epsilon_of(laplace, Fraction(0), "zcdp") == inf
    assert epsilon_of(laplace, Fraction(0), "pld") == inf
    assert epsilon_of(laplace, Fraction(0)) == 1
    stronger = [ApproximateEvent(epsilon=Fraction(1), delta=DELTA)]
    assert epsilon_of(stronger, DELTA / 2) == inf
    for delta in (Fraction(1), Fraction(3, 2), Fraction(-1, 2)):
        with pytest.raises(InputError, match=r"must be in \[0, 1\)"):
            epsilon_of(laplace, delta)
    with pytest.raises(InputError, match=r"accountant \(guess\)"):
        epsilon_of(laplace, DELTA, "guess")  # type: ignore[arg-type]


def test_enormous_pure_events_do_not_overflow() -> None:
    assert epsilon_of([PureEvent(epsilon=Fraction(2000))], DELTA) <= 2000


def test_a_curve_falls_and_each_pair_holds() -> None:
    deltas = [Fraction(0), Fraction(1, 10**9), Fraction(1, 10**6), Fraction(1, 1000)]
    events = [PureEvent(epsilon=Fraction(1, 10))] * 40
    pairs = curve(events, deltas)
    assert [delta for _, delta in pairs] == deltas
    epsilons = [epsilon for epsilon, _ in pairs]
    assert epsilons == sorted(epsilons, reverse=True)
    assert epsilons[0] == 4
    cost = Cost.of(events)
    assert curve(cost, deltas) == [(cost.epsilon(delta), delta) for delta in deltas]


@pytest.mark.parametrize("delta", [Fraction(0), DELTA])
@pytest.mark.parametrize("count", [1, 7, 1000])
def test_pure_calibration_uses_the_whole_budget(count: int, delta: Fraction) -> None:
    each = pure_for(Fraction(1), delta, count)
    assert Cost.of([PureEvent(epsilon=each)] * count).epsilon(delta) <= 1
    more = each + Fraction(1, 10**9)
    assert Cost.of([PureEvent(epsilon=more)] * count).epsilon(delta) > 1
    assert each >= Fraction(1, count) - Fraction(1, 10**12)


@pytest.mark.parametrize(
    ("epsilon", "delta", "count"),
    [("0", "1e-5", 1), ("-0.5", "1e-5", 1), ("1", "-0.5", 1), ("1", "1", 1), ("1", "1.5", 1), ("1", "1e-5", 0)],
)
def test_pure_calibration_names_what_is_wrong(epsilon: str, delta: str, count: int) -> None:
    with pytest.raises(InputError, match=rf"and count \({count}\) at least 1"):
        pure_for(Fraction(epsilon), Fraction(delta), count)


def test_a_budget_below_one_step_for_each_of_many_buys_nothing() -> None:
    assert pure_for(Fraction(3, 10**12), Fraction(0), 10) == 0
    assert pure_for(Fraction(30, 10**12), Fraction(0), 10) == Fraction(3, 10**12)
    assert pure_for(Fraction(30, 10**12), Fraction(0)) == Fraction(30, 10**12)


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("epsilon", ["3", "8", "40"])
def test_pure_calibration_of_large_budgets_fits_a_ledger_and_one_step_more_does_not(epsilon: str, count: int) -> None:
    """Above 2 the rho of a pure event is its epsilon, not half its square."""
    budget = Fraction(epsilon)
    each = pure_for(budget, DELTA, count)
    assert Cost.of([PureEvent(epsilon=each)] * count).epsilon(DELTA) <= budget
    assert Cost.of([PureEvent(epsilon=each + Fraction(1, 10**12))] * count).epsilon(DELTA) > budget


def test_loss_distributions_keep_some_delta_for_rounding_and_none_is_left_at_its_end() -> None:
    events: list[Event] = [PureEvent(epsilon=Fraction(1)), ConcentratedEvent(rho=Fraction(1, 100))]
    assert epsilon_of(events, Fraction(1, 10**10), "pld") == inf
    # shares of delta below the 1e-10 that rounding takes are of no use, the others are
    assert 1 < epsilon_of(events, Fraction(2, 10**10), "pld") < 2
    slack = Fraction(1, 10**6)
    events.append(GaussianEvent(mu_squared=Fraction(1, 100), slack=slack))
    # what slack takes at epsilon 0 is all of delta: nothing is left for the concentrated event
    assert epsilon_of(events, (2 + Fraction(1, 2**40)) * slack, "pld") == inf
