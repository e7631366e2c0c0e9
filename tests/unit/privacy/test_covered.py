"""What parties of one organisation are charged: never less than a person can lose, never more than the sum."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from syndic.errors import BudgetError, IntegrityError
from syndic.privacy import Account, Budget, Cost, Event, Ledger, PureEvent
from syndic.privacy.covered import uncovered
from syndic.privacy.store import Store

EVENTS = [PureEvent(epsilon=Fraction(number, 10), what=f"e{number}") for number in (1, 2, 3)]

RUN, OTHER = "ab" * 32, "cd" * 32


def accounts(parties: int, most: int) -> list[Account]:
    names = [f"s{number}" for number in range(parties)]
    return [
        Account(run=RUN, party=name, beside=tuple(f"{RUN} {other}" for other in names if other != name), most=most)
        for name in names
    ]


@given(
    st.integers(1, 4), st.integers(1, 4), st.lists(st.tuples(st.integers(0, 3), st.sampled_from(EVENTS)), max_size=25)
)
def test_every_choice_of_parties_is_paid_for_whatever_the_order(
    parties: int, most: int, asked: list[tuple[int, PureEvent]]
) -> None:
    most = min(most, parties)
    own = accounts(parties, most)
    with Ledger.open(":memory:") as ledger:
        ledger.declare("people", Budget(epsilon=Fraction(100)))
        used = [Counter[Event]() for _ in range(parties)]
        for call, (place, event) in enumerate((place % parties, event) for place, event in asked):
            account = own[place]
            given = {"dataset": "people", "study": account.name, "call": str(call), "door": "1", "why": "test"}
            ledger.reserve(**given, events=(event,), account=account)  # type: ignore[arg-type]
            used[place][event] += 1
            paid = Counter(e for entry in ledger.entries() if entry.kind == "reserve" for e in entry.events)
            for chosen in combinations(used, most):
                lost = sum(chosen, Counter[Event]())
                assert not lost - paid, "a person at these parties loses more than was charged"
            assert not paid - sum(used, Counter[Event]()), "more than all parties together"
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
        ledger.reserve(dataset="people", study=f"{OTHER} s0", call="a", door="1", events=(event,), why="x")
        ledger.reserve(dataset="people", study=two.name, call="b", door="1", events=(event,), why="x", account=two)
        assert ledger.spent("people").epsilon == Fraction(2, 10)
        ledger.declare("others", Budget(epsilon=Fraction(1)))
        ledger.reserve(dataset="others", study=one.name, call="c", door="1", events=(event,), why="x", account=one)
        assert ledger.spent("others").epsilon == Fraction(1, 10)


def test_a_study_that_does_not_fit_for_all_parties_is_refused_before_the_first() -> None:
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
            given = {"dataset": "people", "study": account.name, "call": account.party, "door": "1", "why": "x"}
            ledger.reserve(**given, events=(event,), account=account)  # type: ignore[arg-type]
            ledger.check(dataset="people", study=account.name, events=(event,), account=account)
        assert ledger.spent("people").epsilon == Fraction(2, 10)


@pytest.mark.parametrize(
    ("most", "paid", "is_forged"),
    [("1", 0, True), ("1", 1, False), ("2", 1, True), ("2", 2, False), ("0", 0, True), ("9" * 5000, 2, True)],
)
def test_verify_finds_an_entry_that_claims_a_cover_that_is_not_there(
    tmp_path: Path, most: str, paid: int, is_forged: bool
) -> None:
    """Digests match, as whoever can write the file can write them; what is wrong is that nobody was charged enough."""
    path, own, event = tmp_path / "ledger.sqlite", accounts(3, 1), EVENTS[0]
    with Ledger.open(path) as ledger:
        ledger.declare("people", Budget(epsilon=Fraction(1)))
        for account in own[:paid]:
            ledger.reserve(dataset="people", study=account.name, call="a", door="1", events=(event,), why="x")
    store = Store(path, 1.0)
    with store.database.writing():
        store.append(
            kind="covered", dataset="people", study=own[2].name, call="a", door="1", events=(event,),
            cost=Cost.of([event]), why="x", asked=most,
        )  # fmt: skip
    store.database.close()
    with Ledger.open(path) as ledger:
        if not is_forged:
            ledger.verify()
            return
        with pytest.raises(IntegrityError, match=f"entry {2 + paid} says that charges .* cover it, and they do not"):
            ledger.verify()
        with pytest.raises(IntegrityError, match="cover it"):
            ledger.reserve(dataset="people", study="other", call="b", door="1", events=(event,), why="x")


def test_charges_of_another_run_or_data_set_do_not_cover(tmp_path: Path) -> None:
    path, (one, two), event = tmp_path / "ledger.sqlite", accounts(2, 1), EVENTS[0]
    with Ledger.open(path) as ledger:
        for dataset, study in (("others", one.name), ("people", f"{OTHER} s0")):
            ledger.declare(dataset, Budget(epsilon=Fraction(1)))
            ledger.reserve(dataset=dataset, study=study, call="a", door="1", events=(event,), why="x")
        ledger.verify()
    store = Store(path, 1.0)
    with store.database.writing():
        store.append(
            kind="covered", dataset="people", study=two.name, call="a", door="1", events=(event,),
            cost=Cost.of([event]), why="x", asked="1",
        )  # fmt: skip
    store.database.close()
    with Ledger.open(path) as ledger, pytest.raises(IntegrityError, match="entry 5"):
        ledger.verify()


def test_what_is_not_covered_is_counted_event_by_event() -> None:
    a, b, _ = EVENTS
    assert uncovered([a, b], own=[], others=[[a]], charged=[a], most=1) == (b,)
    assert uncovered([a, a], own=[], others=[[a]], charged=[a], most=1) == (a,)
    assert uncovered([a], own=[], others=[[a], [a]], charged=[a, a], most=2) == ()
    assert uncovered([a], own=[], others=[[a]], charged=[a], most=2) == (a,)


def test_a_party_is_charged_under_its_own_cap_though_another_declared_a_higher_one() -> None:
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


def test_parties_with_their_own_connections_at_once_are_charged_as_one_after_the_other(tmp_path: Path) -> None:
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
