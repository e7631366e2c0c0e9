import csv
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from syndic.errors import BudgetError, InputError, IntegrityError, RefusedError, SyndicError
from syndic.privacy.chain import Called, Entry, Reservation
from syndic.privacy.concentrated import rho_for
from syndic.privacy.cost import Cost
from syndic.privacy.event import ApproximateEvent, ConcentratedEvent, Event, GaussianEvent, PureEvent
from syndic.privacy.gaussian import gaussian_epsilon, mu_squared_for
from syndic.privacy.ledger import Ledger
from syndic.privacy.unit import Budget

DELTA = Fraction(1, 10**6)
CAP = Budget(epsilon=Fraction(1), delta=DELTA)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "ledger.db") as opened:
        opened.declare("visits", CAP)
        yield opened


def pure(epsilon: str) -> list[Event]:
    return [PureEvent(epsilon=Fraction(epsilon), what="discrete Laplace")]


def reserve(ledger: Ledger, call: str, events: list[Event], **fields: Any) -> Reservation:
    options = {"dataset": "visits", "study": "digest", "door": "release", "why": "counts", **fields}
    return ledger.reserve(call=call, events=events, **options)


def test_a_charge_is_spent_at_once_and_found_again_by_another_reader(ledger: Ledger, tmp_path: Path) -> None:
    first = reserve(ledger, "a", pure("0.3"))
    assert first.fresh
    assert first.reply is None
    with Ledger.open(tmp_path / "ledger.db") as other:
        spending = other.spent("visits")
    assert (spending.epsilon, spending.left, spending.cap) == (Fraction(3, 10), Fraction(7, 10), CAP)
    assert spending.cost == Cost.of(pure("0.3"))
    assert spending.delta == DELTA


def test_the_same_call_is_charged_once_for_each_door(ledger: Ledger) -> None:
    first = reserve(ledger, "a", pure("0.3"))
    again = reserve(ledger, "a", pure("0.3"))
    assert (again.number, again.fresh) == (first.number, False)
    reserve(ledger, "a", pure("0.3"), door="charge")
    assert ledger.spent("visits").epsilon == Fraction(6, 10)


@pytest.mark.parametrize("change", [{"events": pure("0.2")}, {"dataset": "people"}, {"events": pure("0.3") * 2}])
def test_a_call_id_is_not_used_for_two_things(ledger: Ledger, change: dict[str, Any]) -> None:
    ledger.declare("people", CAP)
    reserve(ledger, "a", pure("0.3"))
    with pytest.raises(RefusedError, match="call 'a' was charged for something else"):
        reserve(ledger, "a", **{"events": pure("0.3"), **change})
    assert ledger.spent("visits").epsilon == Fraction(3, 10)


def test_a_study_cannot_take_another_studys_call_ids(ledger: Ledger) -> None:
    """Call ids can be computed from a study's digest: charged under them, one study blocked another for ever."""
    reserve(ledger, "a", pure("0.1"), study="attack")
    ledger.commit("attack", "a", "4567")
    assert reserve(ledger, "a", pure("0.3")).fresh
    ledger.commit("digest", "a", "0123")
    assert reserve(ledger, "a", pure("0.3")).reply == "0123"
    assert reserve(ledger, "a", pure("0.1"), study="attack").reply == "4567"


def test_asking_again_and_again_does_not_fill_the_ledger(ledger: Ledger) -> None:
    """Each question that was ready, refused or repeated appended 568 bytes: 2.7 GB after a day of asking."""

    def log(call: str, step: str, reply: str, *, fresh: bool = False) -> None:
        asked = {"call": call, "asked": call * 64, "step": step}
        ledger.log_call(Called(dataset="visits", study="digest", **asked, reply=reply, fresh=fresh))

    for number in range(100):
        log(str(number), "ready", f"{number:064d}", fresh=True)
        log(str(number), "count", "refused")
        log("c", "count", "d" * 64)
    first = [("ready", "0"), ("count", "0"), ("count", "c")]
    assert [(entry.why, entry.call) for entry in ledger.calls("digest")] == first
    # another reason, another call
    log("e", "ready", "refused", fresh=True)
    log("f", "count", "d" * 64)
    assert [(entry.why, entry.call) for entry in ledger.calls("digest")] == [*first, ("ready", "e"), ("count", "f")]


def test_a_ledger_of_the_version_before_is_upgraded(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with Ledger.open(path) as ledger:
        ledger.declare("visits", CAP)
        reserve(ledger, "a", pure("0.1"))
    with closing(sqlite3.connect(path)) as old:
        old.executescript(
            "DROP INDEX one_charge; DROP INDEX one_answer; DROP INDEX called; PRAGMA user_version = 2;"
            "CREATE UNIQUE INDEX one_charge ON entry (call, door) WHERE kind = 'reserve';"
            "CREATE UNIQUE INDEX one_answer ON entry (call) WHERE kind = 'commit';"
            "DROP TABLE calls; CREATE TABLE calls (study TEXT PRIMARY KEY, number INTEGER NOT NULL) STRICT;"
        )
    for _ in range(2):
        with Ledger.open(path) as ledger:
            assert reserve(ledger, "a", pure("0.1"), study="other").cost == Cost.of(pure("0.1"))
            ledger.verify()
    with closing(sqlite3.connect(path)) as new:
        new.execute("PRAGMA user_version = 4")
    with pytest.raises(IntegrityError, match="format version 4; this Syndic reads version 3"):
        Ledger.open(path)


def test_an_answered_call_gives_back_its_reply_and_opens_no_other_door(ledger: Ledger) -> None:
    reserve(ledger, "a", pure("0.3"))
    ledger.commit("digest", "a", "0123")
    assert reserve(ledger, "a", pure("0.3")).reply == "0123"
    with pytest.raises(RefusedError, match="call 'a' was answered already"):
        reserve(ledger, "a", pure("0.3"), door="charge")


def test_a_call_is_answered_once(ledger: Ledger) -> None:
    reserve(ledger, "a", pure("0.3"))
    ledger.commit("digest", "a", "0123")
    ledger.commit("digest", "a", "0123")
    with pytest.raises(RefusedError, match="another reply"):
        ledger.commit("digest", "a", "4567")
    with pytest.raises(RefusedError, match="call 'b' was never charged"):
        ledger.commit("digest", "b", "0123")
    assert [entry.kind for entry in ledger.entries()] == ["declare", "reserve", "commit"]


def test_a_refused_charge_says_what_would_fit_and_spends_nothing(ledger: Ledger) -> None:
    reserve(ledger, "a", pure("0.8"))
    head = ledger.head()
    with pytest.raises(BudgetError) as caught:
        reserve(ledger, "b", pure("0.5"))
    assert str(caught.value) == (
        "data set 'visits', at delta 1e-06: spent 0.8 of epsilon 1, asked 0.5, left 0.2; "
        "the largest charge of this kind that fits is 0.2"
    )
    assert ledger.head() == head
    reserve(ledger, "b", pure("0.2"))
    with pytest.raises(
        BudgetError, match=r"left 0; the cap is used up, and only its owner can raise it, in party\.toml; if a"
    ):
        reserve(ledger, "c", pure("0.001"))


def said_to_fit(ledger: Ledger, events: list[Event]) -> Fraction:
    """Return the epsilon that a refusal names as the largest that fits."""
    with pytest.raises(BudgetError, match=r"the largest charge of this kind that fits is ([0-9.]+)") as caught:
        reserve(ledger, "too much", events)
    return Fraction(str(caught.value).rsplit(" ", 1)[1])


def test_what_is_said_to_fit_does_fit_for_concentrated_charges(ledger: Ledger) -> None:
    reserve(ledger, "a", [ConcentratedEvent(rho=Fraction(1, 100))])
    largest = said_to_fit(ledger, [ConcentratedEvent(rho=Fraction(1, 10))])
    # more than the difference of the epsilons: rho adds up, and epsilon grows like its root
    assert largest > ledger.spent("visits").left + Fraction(1, 10)
    with pytest.raises(BudgetError):
        reserve(ledger, "b", [ConcentratedEvent(rho=rho_for(largest * Fraction(1001, 1000), DELTA))])
    reserve(ledger, "b", [ConcentratedEvent(rho=rho_for(largest, DELTA))])


def test_what_is_said_to_fit_does_fit_for_gaussian_charges(ledger: Ledger) -> None:
    slack = Fraction(1, 10**15)
    whole = mu_squared_for(CAP.epsilon, DELTA, 2 * slack)
    reserve(ledger, "a", [GaussianEvent(mu_squared=whole / 2, slack=slack)])
    largest = said_to_fit(ledger, [GaussianEvent(mu_squared=whole, slack=slack)])
    # a little less than the other half: a charge that follows an outcome has a part of delta only
    half = gaussian_epsilon(whole / 2, DELTA)
    assert half * Fraction(92, 100) < largest < half
    reserve(ledger, "b", [GaussianEvent(mu_squared=mu_squared_for(largest, DELTA, slack), slack=slack)])
    assert ledger.spent("visits").left < Fraction(1, 10**5)


def test_two_halves_of_one_plan_are_the_whole_cap(ledger: Ledger) -> None:
    """A study's plan is fixed before it starts, so its charges together cost what was stated."""
    slack = Fraction(1, 10**15)
    halves: list[Event] = [GaussianEvent(mu_squared=mu_squared_for(CAP.epsilon, DELTA, 2 * slack) / 2, slack=slack)] * 2
    for call, event in zip("ab", halves, strict=True):
        reserve(ledger, call, [event], limit=Cost.of(halves))
    assert [entry.kind for entry in ledger.entries()] == ["declare", "plan", "reserve", "reserve"]
    assert ledger.spent("visits").left < Fraction(1, 10**9)
    ledger.verify()


def test_another_study_does_not_count_as_a_part_of_the_first_plan(ledger: Ledger) -> None:
    """Half of the first plan was charged; the same half by another study is a choice that followed an outcome."""
    halves: list[Event] = [GaussianEvent(mu_squared=mu_squared_for(CAP.epsilon, DELTA) / 2)] * 2
    reserve(ledger, "a", halves[:1], limit=Cost.of(halves))
    with pytest.raises(BudgetError, match="no charge of this kind fits"):
        reserve(ledger, "b", halves[1:], study="other", limit=Cost.of(halves))
    reserve(ledger, "b", halves[1:], limit=Cost.of(halves))


def test_the_cap_is_reached_exactly(ledger: Ledger) -> None:
    for number in range(10):
        reserve(ledger, f"call {number}", pure("0.1"))
    assert ledger.spent("visits").left == 0
    with pytest.raises(BudgetError):
        reserve(ledger, "one more", [PureEvent(epsilon=Fraction(1, 10**12))])


@pytest.mark.parametrize("share", [Fraction(1, 3), Fraction(1, 7), Fraction(1, 49)])
def test_shares_make_a_whole_though_each_is_rounded_up(ledger: Ledger, share: Fraction) -> None:
    shares: list[Event] = [PureEvent(epsilon=share)] * int(1 / share)
    for number, event in enumerate(shares):
        reserve(ledger, str(number), [event], limit=Cost.of(shares))
    assert ledger.spent("visits").fits
    assert ledger.spent("visits").cost == Cost.of(shares)
    ledger.declare("visits", Budget(epsilon=Fraction(5), delta=DELTA))
    with pytest.raises(BudgetError, match="more than it declares"):
        reserve(ledger, "more", [PureEvent(epsilon=Fraction(1, 10**13))], limit=Cost.of(shares))


def test_a_charge_that_needs_more_delta_says_so(ledger: Ledger) -> None:
    ledger.declare("exact", Budget(epsilon=Fraction(1)))
    needed = "asked unbounded, left 1; this party's cap has no delta, and Gaussian noise needs one: set `delta` in"
    with pytest.raises(BudgetError, match=needed):
        reserve(ledger, "a", [ConcentratedEvent(rho=Fraction(1, 100))], dataset="exact")
    reserve(ledger, "c", pure("0.1"))
    ledger.declare("lowered", CAP)
    reserve(ledger, "d", [ConcentratedEvent(rho=Fraction(1, 100))], dataset="lowered")
    ledger.declare("lowered", Budget(epsilon=Fraction(1)))
    with pytest.raises(
        BudgetError, match=r"spent unbounded .* for what was charged before, this party's cap has no delta"
    ):
        reserve(ledger, "e", pure("0.1"), dataset="lowered")
    with pytest.raises(
        BudgetError, match=r"the delta of this party's cap \(1e-06\) is too small for this charge: set a"
    ):
        reserve(ledger, "b", [ApproximateEvent(epsilon=Fraction(1, 10), delta=2 * DELTA)])


def test_a_study_cannot_spend_more_than_it_declares_by_asking_again(ledger: Ledger) -> None:
    limit = Cost.of(pure("0.2"))
    reserve(ledger, "a", pure("0.1"), limit=limit)
    reserve(ledger, "b", pure("0.1"), limit=limit)
    reserve(ledger, "b", pure("0.1"), limit=limit)
    with pytest.raises(BudgetError, match="study 'digest' would spend more than it declares"):
        reserve(ledger, "c", pure("0.1"), limit=limit)
    reserve(ledger, "c", pure("0.1"), limit=limit, study="other")
    assert ledger.spent("visits").epsilon == Fraction(3, 10)


def test_caps_are_raised_and_lowered_by_entries(ledger: Ledger) -> None:
    reserve(ledger, "a", pure("1"))
    ledger.declare("visits", Budget(epsilon=Fraction(2), delta=DELTA), why="board, 3 May")
    reserve(ledger, "b", pure("0.5"))
    ledger.declare("visits", CAP)
    ledger.declare("visits", CAP)
    assert ledger.spent("visits").left == 0
    with pytest.raises(BudgetError, match=r"spent 1\.5 of epsilon 1, "):
        reserve(ledger, "c", pure("0.1"))
    assert [entry.cap.epsilon for entry in ledger.entries() if entry.cap] == [1, 2, 1]


def test_data_sets_are_apart(ledger: Ledger) -> None:
    ledger.declare("people", Budget(epsilon=Fraction(3)))
    reserve(ledger, "a", pure("1"))
    reserve(ledger, "b", pure("2"), dataset="people")
    assert ledger.spent("people").left == 1
    assert ledger.datasets() == ("people", "visits")
    assert [entry.call for entry in ledger.entries("people")] == ["", "b"]


def test_unknown_data_sets_and_empty_charges_are_refused(ledger: Ledger) -> None:
    with pytest.raises(BudgetError, match="data set 'people' has no cap"):
        reserve(ledger, "a", pure("1"), dataset="people")
    with pytest.raises(InputError, match="data set 'people' is not in the ledger"):
        ledger.spent("people")
    with pytest.raises(InputError, match="no events to charge"):
        reserve(ledger, "a", [])
    with pytest.raises(InputError, match="call must not be empty"):
        reserve(ledger, "", pure("1"))
    with pytest.raises(ValueError, match=r"epsilon \(1e\+07\) must be at most 1e\+06"):
        ledger.declare("x", Budget(epsilon=Fraction(10**7)))


def test_nothing_is_written_without_its_names(ledger: Ledger) -> None:
    reserve(ledger, "a", pure("0.1"))
    head = ledger.head()
    writes: dict[str, Callable[[], None]] = {
        "dataset": lambda: ledger.declare("", CAP),
        "call": lambda: ledger.commit("digest", "", "0123"),
        "reply_digest": lambda: ledger.commit("digest", "a", ""),
        "study": lambda: ledger.log_withdrawal(dataset="visits", study="", why=""),
        "agreement": lambda: ledger.log_agreement(dataset="visits", study="digest", agreement="", why=""),
    }
    for name, write in writes.items():
        with pytest.raises(InputError, match=f"{name} must not be empty"):
            write()
    assert ledger.head() == head


def test_nothing_is_left_where_a_lower_delta_makes_what_was_spent_infinite(ledger: Ledger) -> None:
    reserve(ledger, "a", [ConcentratedEvent(rho=Fraction(1, 100))])
    ledger.declare("visits", Budget(epsilon=Fraction(1)))
    spending = ledger.spent("visits")
    assert spending.epsilon is None
    assert spending.left == 0


def test_charges_beyond_the_range_of_the_file_do_not_fit(ledger: Ledger) -> None:
    ledger.declare("x", Budget(epsilon=Fraction(10**6), delta=DELTA))
    events: list[Event] = [PureEvent(epsilon=Fraction(1, 10))] * 100
    reserve(ledger, "a", events, dataset="x")
    with pytest.raises(BudgetError):
        reserve(ledger, "b", [PureEvent(epsilon=Fraction(10**30))], dataset="x")


def test_an_entry_holds_what_was_asked_and_when(ledger: Ledger) -> None:
    reserve(ledger, "a", pure("0.3"))
    ledger.commit("digest", "a", "0123")
    _, charge, answer = ledger.entries()
    assert (charge.number, charge.kind, charge.dataset, charge.study) == (2, "reserve", "visits", "digest")
    assert (charge.call, charge.door, charge.why) == ("a", "release", "counts")
    assert list(charge.events) == pure("0.3")
    assert charge.cost == Cost.of(pure("0.3"))
    assert (answer.kind, answer.call, answer.reply, answer.cost) == ("commit", "a", "0123", Cost())
    assert answer.previous == charge.hash
    time = datetime.fromisoformat(charge.time)
    assert time.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - time) < timedelta(minutes=1)


@pytest.mark.slow
def test_long_ledgers_are_read_page_by_page(ledger: Ledger) -> None:
    ledger.declare("many", Budget(epsilon=Fraction(10**5)))
    for number in range(1100):
        reserve(ledger, str(number), pure("0.01"), dataset="many")
    assert [entry.call for entry in ledger.entries("many")][1:] == [str(number) for number in range(1100)]
    assert ledger.spent("many").epsilon == 11
    ledger.verify()


def test_threads_share_a_ledger_without_overspending(ledger: Ledger) -> None:
    ledger.declare("visits", Budget(epsilon=Fraction(1)))
    outcomes: list[str] = []

    def work(name: int) -> None:
        for number in range(20):
            try:
                reserve(ledger, f"{name} {number}", pure("0.04"))
                outcomes.append("charged")
            except BudgetError:
                outcomes.append("refused")

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (outcomes.count("charged"), outcomes.count("refused")) == (25, 55)
    assert ledger.spent("visits").left == 0
    ledger.verify()


def test_a_busy_ledger_says_so_instead_of_waiting_for_ever(ledger: Ledger, tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db", patience=0.05) as other:
        with ledger.database.writing(), pytest.raises(RefusedError, match="the ledger is busy"):
            reserve(other, "a", pure("0.1"))
        assert other.spent("visits").epsilon == 0
        assert reserve(other, "a", pure("0.1")).fresh


def test_a_closed_ledger_says_so(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger.db")
    ledger.close()
    with pytest.raises(SyndicError, match="the ledger is closed"):
        ledger.head()


def test_a_ledger_in_a_missing_folder_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unable to open database file: let this account read and write the file"):
        Ledger.open(tmp_path / "nowhere" / "ledger.db")


def test_a_ledger_that_cannot_be_written_is_no_fault_of_syndic(ledger: Ledger) -> None:
    ledger.database.rows("PRAGMA query_only = ON")
    with pytest.raises(InputError, match="attempt to write a readonly database: let this account") as error:
        reserve(ledger, "a", pure("0.3"))
    assert error.value.exit_code == 2


def test_exports_hold_every_entry(ledger: Ledger, tmp_path: Path) -> None:
    reserve(ledger, "a", pure("0.3"))
    ledger.export(tmp_path / "out.json")
    ledger.export(tmp_path / "out.csv")
    document = json.loads((tmp_path / "out.json").read_bytes())
    assert document["head"] == ledger.head() == document["entries"][-1]["hash"]
    assert document["entries"][1]["events"] == [{"kind": "pure", "epsilon": "3/10", "what": "discrete Laplace"}]
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["kind"] for row in rows] == ["declare", "reserve"]
    # the sums have columns of their own
    assert list(rows[0]) == [name for name in Entry.__struct_fields__ if name != "cost"] + list(Cost.__struct_fields__)
    assert rows[1]["pure"] == "300000000000"
    assert json.loads(rows[1]["events"]) == document["entries"][1]["events"]
    assert json.loads(rows[0]["cap"]) == {"epsilon": "1", "delta": "1/1000000"}
    with pytest.raises(InputError, match=r"out\.xlsx: expected a \.json or \.csv file"):
        ledger.export(tmp_path / "out.xlsx")


def test_check_counts_what_the_study_has_still_to_pay(tmp_path: Path) -> None:
    third = PureEvent(epsilon=Fraction(1, 3))
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        ledger.declare("data", Budget(epsilon=Fraction(1)))
        check = partial(ledger.check, dataset="data", study="a")
        check(events=[third] * 3)
        with pytest.raises(BudgetError, match=r"asked 1\.33333"):
            check(events=[third] * 4)
        for call in ("1", "2"):
            ledger.reserve(dataset="data", study="a", call=call, door="1", events=[third], why="")
        check(events=[third] * 3)
        with pytest.raises(BudgetError, match=r"spent 0\.666667"):
            check(events=[third] * 4)
        with pytest.raises(BudgetError):
            ledger.check(dataset="data", study="b", events=[third] * 2)
        assert sum(entry.kind == "reserve" for entry in ledger.entries()) == 2


def test_what_a_study_has_paid_is_not_asked_for_again_though_the_cap_was_lowered(ledger: Ledger) -> None:
    reserve(ledger, "a", pure("0.6"))
    ledger.declare("visits", Budget(epsilon=Fraction(1, 2)))
    ledger.check(dataset="visits", study="digest", events=pure("0.6"))
    with pytest.raises(BudgetError):
        ledger.check(dataset="visits", study="digest", events=[*pure("0.6"), *pure("0.1")])


def test_a_missing_or_empty_file_is_no_ledger_unless_one_is_to_be_made(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    for _ in range(2):
        with pytest.raises(IntegrityError, match="the ledger file is missing or empty"):
            Ledger.open(path, create=False)
        path.touch()
    Ledger.open(path).close()
    with Ledger.open(path, create=False) as opened:
        assert opened.datasets() == ()
