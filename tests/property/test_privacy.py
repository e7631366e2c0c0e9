import tempfile
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from syndic.document import from_json, to_json
from syndic.errors import BudgetError, RefusedError
from syndic.privacy.concentrated import rho_for
from syndic.privacy.cost import Cost, joint_cost
from syndic.privacy.event import ApproximateEvent, ConcentratedEvent, Event, GaussianEvent, PureEvent
from syndic.privacy.ledger import Ledger
from syndic.privacy.unit import Budget, Unit, check_delta, default_delta

amounts = st.fractions(min_value=Fraction(1, 10**15), max_value=5, max_denominator=10**15).filter(bool)
deltas = st.fractions(min_value=Fraction(1, 10**20), max_value=Fraction(1, 10), max_denominator=10**20).filter(bool)
event = st.one_of(
    st.builds(PureEvent, epsilon=amounts, what=st.text(max_size=5)),
    st.builds(ConcentratedEvent, rho=amounts),
    st.builds(ApproximateEvent, epsilon=amounts, delta=deltas),
    st.builds(GaussianEvent, mu_squared=amounts, slack=st.sampled_from([Fraction(0), Fraction(1, 10**15)])),
)
events = st.lists(event, max_size=6)
costs = events.map(Cost.of)
# machines that run tests are busy
unhurried = settings(deadline=None)


@unhurried
@given(events)
def test_events_survive_writing_and_reading(written: list[Event]) -> None:
    assert from_json(to_json(written), list[Event], where="here") == written


@unhurried
@given(events, events)
def test_costs_add_up_to_the_cost_of_all_but_for_rounding_up(first: list[Event], second: list[Event]) -> None:
    apart, together = Cost.of(first) + Cost.of(second), Cost.of(first + second)
    assert apart.covers(together)
    for name in Cost.__struct_fields__:
        assert getattr(apart, name) - getattr(together, name) <= 1
    assert Cost.of(reversed(first + second)) == together


@unhurried
@given(costs, costs, deltas)
def test_epsilon_never_falls_with_more_events_and_never_grows_with_delta(
    cost: Cost, more: Cost, delta: Fraction
) -> None:
    assert cost.epsilon(delta) <= (cost + more).epsilon(delta)
    epsilons = [cost.epsilon(delta / part) for part in (1, 2, 1000)]
    assert all(larger <= smaller for larger, smaller in pairwise(epsilons))
    assert cost.epsilon(delta) <= cost.epsilon(Fraction(0))


@unhurried
@given(costs, st.integers(0, 20), st.fractions(min_value=0, max_value=3))
def test_scaling_rounds_up_and_repeats_like_adding(cost: Cost, count: int, factor: Fraction) -> None:
    total = Cost()
    for _ in range(count):
        total += cost
    assert cost.times(count) == total
    scaled = cost.scaled(factor)
    for name in Cost.__struct_fields__:
        assert 0 <= getattr(scaled, name) - factor * getattr(cost, name) < 1


@unhurried
@given(st.dictionaries(st.text(max_size=3), costs, max_size=4), st.integers(1, 5), deltas)
def test_the_joint_cost_grows_with_overlap_up_to_the_sum(
    parties: dict[str, Cost], overlap: int, delta: Fraction
) -> None:
    joint = joint_cost(parties, Unit(neighbours="replace", parties=overlap))
    total = sum(parties.values(), start=Cost())
    assert total.covers(joint)
    assert joint == total or overlap < len(parties)
    assert all(joint.epsilon(delta) >= cost.epsilon(delta) for cost in parties.values())


@unhurried
@given(st.fractions(min_value=Fraction(1, 1000), max_value=20, max_denominator=1000).filter(bool), deltas)
def test_the_rho_of_a_budget_costs_no_more_than_the_budget(epsilon: Fraction, delta: Fraction) -> None:
    rho = rho_for(epsilon, delta)
    assert rho > 0
    for parts in (1, 3):
        spent = Cost.of([ConcentratedEvent(rho=rho / parts)] * parts).epsilon(delta)
        assert spent <= epsilon
        assert float(spent) > float(epsilon) * (1 - 1e-3)


@unhurried
@given(st.integers(1, 10**12))
def test_the_default_delta_is_always_allowed(people: int) -> None:
    delta = default_delta(people)
    check_delta(delta, people)
    assert delta**2 * people**3 <= 1


call = st.tuples(st.integers(0, 5), st.sampled_from(["release", "charge"]), st.integers(1, 40))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.one_of(call, st.integers(0, 5)), max_size=25))
def test_a_ledger_agrees_with_a_plain_list_of_charges(work: list[tuple[int, str, int] | int]) -> None:
    """Charges are in hundredths of epsilon, the cap is 1; a bare number commits that call."""
    charged: dict[tuple[int, str], int] = {}
    answered: set[int] = set()
    with (
        tempfile.TemporaryDirectory() as folder,
        Ledger.open(Path(folder) / "ledger.db") as ledger,
    ):
        ledger.declare("visits", Budget(epsilon=Fraction(1)))
        for job in work:
            if isinstance(job, int):
                expected = "done" if job in {name for name, _ in charged} else "refused"
                assert outcome_of_commit(ledger, job) == expected
                answered |= {job} if expected == "done" else set()
                continue
            name, door, hundredths = job
            known = charged.get((name, door))
            if known is not None:
                expected = "known" if known == hundredths else "refused"
            elif name in answered:
                expected = "refused"
            else:
                expected = "charged" if sum(charged.values()) + hundredths <= 100 else "budget"
            assert outcome_of_charge(ledger, name, door, hundredths) == expected
            if expected == "charged":
                charged[name, door] = hundredths
        assert ledger.spent("visits").epsilon == Fraction(sum(charged.values()), 100)
        assert sum(entry.kind == "reserve" for entry in ledger.entries()) == len(charged)
        ledger.verify()


def outcome_of_commit(ledger: Ledger, name: int) -> str:
    try:
        ledger.commit("digest", str(name), "digest")
    except RefusedError:
        return "refused"
    return "done"


def outcome_of_charge(ledger: Ledger, name: int, door: str, hundredths: int) -> str:
    charge = [PureEvent(epsilon=Fraction(hundredths, 100))]
    try:
        reservation = ledger.reserve(
            dataset="visits", study="digest", call=str(name), door=door, events=charge, why="counts"
        )
    except BudgetError:
        return "budget"
    except RefusedError:
        return "refused"
    return "charged" if reservation.fresh else "known"


@unhurried
@given(event, amounts)
def test_events_are_frozen_and_equal_by_value(one: Event, amount: Fraction) -> None:
    assert msgspec.structs.replace(one) == one
    name = {ConcentratedEvent: "rho", GaussianEvent: "mu_squared"}.get(type(one), "epsilon")
    try:
        setattr(one, name, amount)
    except AttributeError:
        return
    raise AssertionError("an event was changed")
