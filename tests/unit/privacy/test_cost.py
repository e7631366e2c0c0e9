from fractions import Fraction
from itertools import combinations
from math import inf

import pytest

from syndic.privacy.concentrated import zcdp_epsilon
from syndic.privacy.cost import Cost, joint_cost
from syndic.privacy.event import ApproximateEvent, ConcentratedEvent, Event, GaussianEvent, PureEvent
from syndic.privacy.gaussian import gaussian_epsilon
from syndic.privacy.unit import Unit

DELTA = Fraction(1, 10**6)
THIRD = Fraction(1, 3)


def test_sums_are_rounded_up_once() -> None:
    events: list[Event] = [PureEvent(epsilon=THIRD)] * 3
    events += [
        ConcentratedEvent(rho=THIRD),
        ApproximateEvent(epsilon=THIRD, delta=Fraction(1, 3 * 10**6)),
        PureEvent(epsilon=Fraction(4)),
        GaussianEvent(mu_squared=THIRD, slack=Fraction(1, 3 * 10**12)),
    ]
    assert Cost.of(events) == Cost(
        pure=5 * 10**12,
        rho_of_pure=4 * 10**12 + 166_666_666_667,
        rho=333_333_333_334,
        epsilon_approximate=333_333_333_334,
        delta_approximate=333_333_333_334,
        gaussian=166_666_666_667,
        slack=333_334,
    )


def test_the_smallest_events_still_cost_something() -> None:
    tiny = Fraction(1, 10**30)
    cost = Cost.of([PureEvent(epsilon=tiny), ApproximateEvent(epsilon=tiny, delta=tiny)])
    assert cost == Cost(pure=1, rho_of_pure=1, epsilon_approximate=1, delta_approximate=1)


def test_nothing_costs_nothing() -> None:
    assert Cost.of([]) == Cost()
    assert Cost().epsilon(Fraction(0)) == 0


def test_pure_costs_need_no_delta_and_are_exact() -> None:
    cost = Cost.of([PureEvent(epsilon=Fraction(1, 10))]) + Cost.of([PureEvent(epsilon=Fraction(1, 5))])
    assert cost.epsilon(Fraction(0)) == Fraction(3, 10)


def test_concentrated_costs_need_a_delta() -> None:
    cost = Cost.of([ConcentratedEvent(rho=Fraction(1, 100))])
    assert cost.epsilon(Fraction(0)) == inf
    assert cost.epsilon(DELTA) == zcdp_epsilon(Fraction(1, 100), DELTA)


def test_many_small_pure_events_count_as_rho_and_one_large_as_epsilon() -> None:
    small = Cost.of([PureEvent(epsilon=Fraction(1, 100))]).times(400)
    assert small.epsilon(DELTA) == zcdp_epsilon(Fraction(400, 20_000), DELTA)
    assert small.epsilon(Fraction(0)) == 4
    large = Cost.of([PureEvent(epsilon=Fraction(1, 2)), ConcentratedEvent(rho=Fraction(1, 1000))])
    assert large.epsilon(DELTA) == Fraction(1, 2) + zcdp_epsilon(Fraction(1, 1000), DELTA)


def test_the_delta_of_approximate_events_is_paid_first() -> None:
    cost = Cost.of([ApproximateEvent(epsilon=Fraction(1), delta=DELTA), ConcentratedEvent(rho=Fraction(1, 10))])
    assert cost.epsilon(DELTA / 2) == inf
    assert cost.epsilon(DELTA) == inf
    assert cost.epsilon(3 * DELTA) == 1 + zcdp_epsilon(Fraction(1, 10), 2 * DELTA)


def test_the_halves_of_a_concentrated_budget_cost_the_whole() -> None:
    half = Cost.of([ConcentratedEvent(rho=Fraction(1, 20))])
    whole = Cost.of([ConcentratedEvent(rho=Fraction(1, 10))])
    assert half + half == half.times(2) == whole
    assert whole.scaled(Fraction(1, 2)) == half
    assert whole.scaled(THIRD).rho == 33_333_333_334


def gaussian(mu_squared: Fraction, slack: Fraction = Fraction(0)) -> GaussianEvent:
    return GaussianEvent(mu_squared=mu_squared, slack=slack)


def test_gaussian_costs_add_their_squares_and_use_the_exact_profile() -> None:
    parts = [gaussian(Fraction(k, 150)) for k in (3, 4, 5)]
    whole = Cost.of(parts)
    assert whole.epsilon(DELTA) == gaussian_epsilon(Fraction(12, 150), DELTA)
    assert whole.epsilon(DELTA) < zcdp_epsilon(Fraction(6, 150), DELTA)
    assert whole.epsilon(Fraction(0)) == inf
    assert whole == Cost.of(parts[:1]) + Cost.of(parts[1:])
    assert whole.scaled(Fraction(1, 2)).times(2) == whole


def test_gaussian_and_concentrated_costs_take_the_smaller_of_two_ways() -> None:
    alike = Cost.of([gaussian(Fraction(1, 20)), ConcentratedEvent(rho=Fraction(1, 40))])
    assert alike.epsilon(DELTA) == zcdp_epsilon(Fraction(1, 20), DELTA)
    unlike = Cost.of([gaussian(Fraction(1, 20)), ConcentratedEvent(rho=Fraction(1, 10**8))])
    apart = gaussian_epsilon(Fraction(1, 20), DELTA * 9 / 10) + zcdp_epsilon(Fraction(1, 10**8), DELTA / 10)
    assert unlike.epsilon(DELTA) <= apart < zcdp_epsilon(Fraction(1, 40) + Fraction(1, 10**8), DELTA)


def test_gaussian_and_pure_costs_add_or_turn_into_rho() -> None:
    one = Cost.of([gaussian(Fraction(1, 100)), PureEvent(epsilon=Fraction(1, 2))])
    assert one.epsilon(DELTA) == Fraction(1, 2) + gaussian_epsilon(Fraction(1, 100), DELTA)
    many = Cost.of([gaussian(Fraction(1, 100)), *[PureEvent(epsilon=Fraction(1, 100))] * 400])
    assert many.epsilon(DELTA) <= zcdp_epsilon(Fraction(1, 200) + Fraction(400, 20_000), DELTA) < 4


def test_slack_counts_even_where_it_is_of_other_events() -> None:
    slack = Fraction(1, 10**8)
    costs: list[Event] = [PureEvent(epsilon=Fraction(1)), ApproximateEvent(epsilon=Fraction(1, 2), delta=DELTA / 2)]
    with_it = Cost.of([*costs, gaussian(Fraction(1, 50), slack)]).epsilon(DELTA)
    assert with_it > Cost.of([*costs, gaussian(Fraction(1, 50))]).epsilon(DELTA)
    assert Cost.of([*costs, gaussian(Fraction(1, 50), DELTA / 4)]).epsilon(DELTA) == inf


def test_covering_is_for_every_sum() -> None:
    small, other = Cost(rho=1), Cost(epsilon_approximate=1, delta_approximate=1)
    assert (small + other).covers(small)
    assert small.covers(small)
    assert not small.covers(other)
    assert not other.covers(small)


def test_a_cost_cannot_hide_its_pure_part_or_be_negative() -> None:
    with pytest.raises(ValueError, match=r"pure \(5\) and rho_of_pure \(0\)"):
        Cost(pure=5)
    with pytest.raises(ValueError, match=r"rho \(-1\) must not be negative"):
        Cost(rho=-1)


COSTS = {
    "clinic": Cost.of([PureEvent(epsilon=Fraction(1)), ConcentratedEvent(rho=Fraction(1, 1000))]),
    "lab": Cost.of([ConcentratedEvent(rho=Fraction(1, 5))]),
    "registry": Cost.of([ApproximateEvent(epsilon=Fraction(1, 2), delta=DELTA / 9)]),
    "school": Cost.of([PureEvent(epsilon=Fraction(1, 3)), gaussian(Fraction(1, 90), Fraction(1, 10**10))]),
}


@pytest.mark.parametrize("parties", [1, 2, 3, 4, 9])
def test_the_joint_cost_covers_every_choice_of_parties(parties: int) -> None:
    joint = joint_cost(COSTS, Unit(neighbours="add_remove", parties=parties))
    for chosen in combinations(COSTS.values(), min(parties, 4)):
        total = Cost()
        for cost in chosen:
            total += cost
        assert joint.covers(total)
        assert joint.epsilon(DELTA) >= total.epsilon(DELTA)
    everything = COSTS["clinic"] + COSTS["lab"] + COSTS["registry"] + COSTS["school"]
    assert everything.covers(joint)
    assert parties < 4 or joint == everything


def test_parties_with_other_people_cost_the_largest_of_them() -> None:
    costs = {name: Cost.of([PureEvent(epsilon=Fraction(k))]) for k, name in enumerate("abc", start=1)}
    unit = Unit(neighbours="add_remove")
    assert joint_cost(costs, unit).epsilon(Fraction(0)) == 3
    assert joint_cost(costs, Unit(neighbours="add_remove", parties=2)).epsilon(Fraction(0)) == 5
    assert joint_cost({}, unit) == Cost()


@pytest.mark.parametrize("rho", ["1e-6", "0.0001", "0.01", "0.3", "2"])
@pytest.mark.parametrize("mu_squared", ["0.01", "1", "9"])
def test_concentrated_and_gaussian_costs_pay_with_parts_of_one_delta(rho: str, mu_squared: str) -> None:
    """Each group is paid at its own part, and the parts add up to delta: written out here once more."""
    delta, square = Fraction(1, 10**5), Fraction(mu_squared)
    cost = Cost.of([ConcentratedEvent(rho=Fraction(rho)), GaussianEvent(mu_squared=square)])
    apart = [
        zcdp_epsilon(Fraction(rho), Fraction(part, 100) * delta)
        + gaussian_epsilon(square, Fraction(100 - part, 100) * delta)
        for part in (1, 10, 50, 90)
    ]
    together = zcdp_epsilon(Fraction(rho) + square / 2, delta)
    assert cost.epsilon(delta) == min(together, *apart)
    # a concentrated event may be a Gaussian one, and what both cost then is known exactly
    assert cost.epsilon(delta) >= gaussian_epsilon(square + 2 * Fraction(rho), delta)


def test_sums_are_in_units_of_1e_12_and_1e_18_whatever_a_ledger_was_written_with() -> None:
    """A ledger keeps the numbers, not the units: another unit would make old charges cheaper."""
    pico, atto = Fraction(1, 10**12), Fraction(1, 10**18)
    assert Cost.of([ApproximateEvent(epsilon=3 * pico, delta=5 * atto)]) == Cost(
        epsilon_approximate=3, delta_approximate=5
    )
    assert Cost.of([GaussianEvent(mu_squared=4 * pico, slack=7 * atto)]) == Cost(gaussian=2, slack=7)
    assert Cost.of([ConcentratedEvent(rho=9 * pico)]) == Cost(rho=9)
    assert Cost.of([PureEvent(epsilon=8 * pico)]).pure == 8
