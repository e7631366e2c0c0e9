"""What seats of one organisation are charged: never less than a person can lose, never more than the sum."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from syndic.errors import BudgetError
from syndic.privacy import Account, Budget, Cost, Event, Ledger, PureEvent
from syndic.privacy.seat import uncovered

EVENTS = [PureEvent(epsilon=Fraction(number, 10), what=f"e{number}") for number in (1, 2, 3)]


def accounts(seats: int, most: int) -> list[Account]:
    names = [f"s{number}" for number in range(seats)]
    return [
        Account(run="run", seat=name, beside=tuple(f"run {other}" for other in names if other != name), most=most)
        for name in names
    ]


@given(
    st.integers(1, 4), st.integers(1, 4), st.lists(st.tuples(st.integers(0, 3), st.sampled_from(EVENTS)), max_size=25)
)
def test_every_choice_of_seats_is_paid_for_whatever_the_order(
    seats: int, most: int, asked: list[tuple[int, PureEvent]]
) -> None:
    most = min(most, seats)
    own = accounts(seats, most)
    with Ledger.open(":memory:") as ledger:
        ledger.declare("people", Budget(epsilon=Fraction(100)))
        used = [Counter[Event]() for _ in range(seats)]
        for call, (place, event) in enumerate((place % seats, event) for place, event in asked):
            account = own[place]
            given = {"dataset": "people", "study": account.name, "call": str(call), "door": "1", "why": "test"}
            ledger.reserve(**given, events=(event,), account=account)  # type: ignore[arg-type]
            used[place][event] += 1
            paid = Counter(e for entry in ledger.entries() if entry.kind == "reserve" for e in entry.events)
            for chosen in combinations(used, most):
                lost = sum(chosen, Counter[Event]())
                assert not lost - paid, "a person at these seats loses more than was charged"
            assert not paid - sum(used, Counter[Event]()), "more than all seats together"
        ledger.verify()


def test_the_cap_counts_what_is_charged_and_the_limit_what_is_used() -> None:
    one, two = accounts(2, 1)
    event = EVENTS[0]
    with Ledger.open(":memory:") as ledger:
        ledger.declare("people", Budget(epsilon=Fraction(1, 10)))

        def charge(account: Account, call: str) -> None:
            ledger.reserve(
                dataset="people", study=account.name, call=call, door="1", events=(event,), why="x",
                limit=Cost.of([event]), account=account,
            )  # fmt: skip

        charge(one, "a")
        charge(two, "b")
        assert ledger.spent("people").epsilon == Fraction(1, 10)
        for account, call in ((one, "c"), (two, "d")):
            with pytest.raises(BudgetError):
                charge(account, call)
        # the same call again is the same reservation, and is answered once
        charge(two, "b")
        ledger.commit(two.name, "b", "0" * 64)
        ledger.check(dataset="people", study=two.name, events=(event,), account=two)
        after = ledger.spent_after(dataset="people", study="other", events=(event,))
        assert after.epsilon == Fraction(2, 10)


def test_other_runs_and_parties_do_not_cover() -> None:
    one, two = accounts(2, 1)
    event = EVENTS[0]
    with Ledger.open(":memory:") as ledger:
        ledger.declare("people", Budget(epsilon=Fraction(1)))
        ledger.reserve(dataset="people", study="another s0", call="a", door="1", events=(event,), why="x")
        ledger.reserve(dataset="people", study=two.name, call="b", door="1", events=(event,), why="x", account=two)
        assert ledger.spent("people").epsilon == Fraction(2, 10)
        ledger.declare("others", Budget(epsilon=Fraction(1)))
        ledger.reserve(dataset="others", study=one.name, call="c", door="1", events=(event,), why="x", account=one)
        assert ledger.spent("others").epsilon == Fraction(1, 10)


def test_a_study_that_does_not_fit_for_all_seats_is_refused_before_the_first() -> None:
    one, two, _ = accounts(3, 2)
    event = EVENTS[0]
    with Ledger.open(":memory:") as ledger:
        ledger.declare("people", Budget(epsilon=Fraction(1, 10)))
        with pytest.raises(BudgetError):
            ledger.check(dataset="people", study=one.name, events=(event,), account=one)
        ledger.declare("people", Budget(epsilon=Fraction(2, 10)))
        ledger.check(dataset="people", study=one.name, events=(event,), account=one)
        after = ledger.spent_after(dataset="people", study=one.name, events=(event,), account=one)
        assert after.epsilon == Fraction(2, 10)
        for account in (one, two):
            given = {"dataset": "people", "study": account.name, "call": account.seat, "door": "1", "why": "x"}
            ledger.reserve(**given, events=(event,), account=account)  # type: ignore[arg-type]
            ledger.check(dataset="people", study=account.name, events=(event,), account=account)
        assert ledger.spent("people").epsilon == Fraction(2, 10)


def test_what_is_not_covered_is_counted_event_by_event() -> None:
    a, b, _ = EVENTS
    assert uncovered([a, b], own=[], others=[[a]], charged=[a], most=1) == (b,)
    assert uncovered([a, a], own=[], others=[[a]], charged=[a], most=1) == (a,)
    assert uncovered([a], own=[], others=[[a], [a]], charged=[a, a], most=2) == ()
    assert uncovered([a], own=[], others=[[a]], charged=[a], most=2) == (a,)


def test_a_seat_is_charged_under_its_own_cap_though_another_declared_a_higher_one() -> None:
    """An owner lowers the cap in one party file and forgets another, which declares the old one again."""
    one, two = accounts(2, 2)
    low, high, event = Budget(epsilon=Fraction(1, 10)), Budget(epsilon=Fraction(5)), EVENTS[0]
    own = replace(one, cap=low)
    with Ledger.open(":memory:") as ledger:
        for account in (own, replace(two, cap=high)):
            assert account.cap is not None
            ledger.declare("people", account.cap)
        given = {"dataset": "people", "door": "1", "why": "x"}
        ledger.reserve(**given, study=two.name, call="a", events=(event,), account=two)  # type: ignore[arg-type]
        with pytest.raises(BudgetError):
            ledger.reserve(**given, study=own.name, call="b", events=(event,), account=own)  # type: ignore[arg-type]
        with pytest.raises(BudgetError):
            ledger.check(dataset="people", study=own.name, events=(event,), account=own)
        ledger.reserve(**given, study=two.name, call="b", events=(event,), account=two)  # type: ignore[arg-type]


def test_seats_with_their_own_connections_at_once_are_charged_as_one_after_the_other(tmp_path: Path) -> None:
    """Threads, each with its own connection: whichever comes first is charged; the cap allows no second charge."""
    path, event = tmp_path / "ledger.sqlite", EVENTS[0]
    with Ledger.open(path) as ledger:
        ledger.declare("people", Budget(epsilon=Fraction(3, 10)))

    def charge(account: Account) -> None:
        with Ledger.open(path) as own:
            for call in "abc":
                given = {"dataset": "people", "study": account.name, "call": call, "door": "1", "why": "x"}
                own.reserve(**given, events=(event,), account=account)  # type: ignore[arg-type]
                own.commit(account.name, call, "0" * 64)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(charge, accounts(4, 1)))
    with Ledger.open(path) as ledger:
        ledger.verify()
        kinds = Counter(entry.kind for entry in ledger.entries())
        assert (kinds["reserve"], kinds["covered"]) == (3, 9)
        assert ledger.spent("people").epsilon == Fraction(3, 10)
