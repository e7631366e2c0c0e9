import hashlib
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from syndic.errors import IntegrityError, RefusedError
from syndic.privacy.chain import Called
from syndic.privacy.event import PureEvent
from syndic.privacy.ledger import Ledger
from syndic.privacy.unit import Budget

TRIGGERS = ("entry_update", "entry_delete", "head_update", "head_delete")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger of one declaration, then five charges with their answers."""
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.declare("visits", Budget(epsilon=Fraction(1)))
        for number in range(5):
            charge(ledger, number)
            ledger.commit("digest", str(number), f"reply {number}")
        ledger.verify()
    return tmp_path / "ledger.db"


def charge(ledger: Ledger, number: int, study: str = "digest") -> None:
    events = [PureEvent(epsilon=Fraction(1, 100))]
    ledger.reserve(dataset="visits", study=study, call=str(number), door="release", events=events, why="counts")


def tamper(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for trigger in TRIGGERS:
            connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("UPDATE entry SET pure = 1 WHERE number = 4", "entry 4 was changed"),
        ("UPDATE entry SET why = 'nothing' WHERE number = 2", "entry 2 was changed"),
        ("UPDATE entry SET time = '2020' WHERE number = 3", "entry 3 was changed"),
        ("UPDATE entry SET call = 'x' WHERE number = 8", "entry 8 was changed"),
        ("""UPDATE entry SET cap = '{"epsilon":"9","delta":"0"}' WHERE number = 1""", "entry 1 was changed"),
        ("UPDATE entry SET events = '[]' WHERE number = 2", "entry 2 was changed"),
        ("UPDATE entry SET events = 'rubbish' WHERE number = 2", "entry 2 was changed: it cannot be read"),
        ("UPDATE entry SET pure = -1 WHERE number = 6", "entry 6 was changed: it cannot be read"),
        ("DELETE FROM entry WHERE number = 6", "entry 6 is missing"),
        ("DELETE FROM entry WHERE number = 1", "entry 1 is missing"),
        ("DELETE FROM entry", "ends at entry 0, but its head names entry 11: entry 1 was removed"),
        ("DELETE FROM entry WHERE number > 9", "ends at entry 9, but its head names entry 11: entry 10 was removed"),
        ("UPDATE entry SET number = number + 20 WHERE number = 11", "entry 11 is missing"),
        ("DELETE FROM head", "the head of the ledger is missing"),
        ("UPDATE head SET number = 10", "ends at entry 11, but its head names entry 10"),
    ],
)
def test_tampering_is_found_and_the_first_bad_entry_named(path: Path, statement: str, text: str) -> None:
    tamper(path, statement)
    with Ledger.open(path) as ledger, pytest.raises(IntegrityError, match=text):
        ledger.verify()


def test_entries_that_change_places_are_found(path: Path) -> None:
    tamper(
        path,
        "UPDATE entry SET number = 100 WHERE number = 4",
        "UPDATE entry SET number = 4 WHERE number = 6",
        "UPDATE entry SET number = 6 WHERE number = 100",
    )
    with Ledger.open(path) as ledger, pytest.raises(IntegrityError, match="entry 4 was changed"):
        ledger.verify()


def rewritten(ledger: Ledger, number: int, change: dict[str, object]) -> tuple[str, str]:
    """An entry with another content and a hash that fits it, from the documented canonical form."""
    entry = json.loads(json.dumps(exported(ledger)["entries"][number - 1]))
    entry |= change
    text = json.dumps(entry | {"hash": ""}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text, hashlib.sha256(text.encode()).hexdigest()


def exported(ledger: Ledger) -> dict[str, list[dict[str, object]]]:
    target = ledger._store.path.with_suffix(".json")
    ledger.export(target)
    document: dict[str, list[dict[str, object]]] = json.loads(target.read_bytes())
    return document


def test_the_hash_is_that_of_the_documented_form(path: Path) -> None:
    with Ledger.open(path) as ledger:
        for entry in ledger.entries():
            assert rewritten(ledger, entry.number, {})[1] == entry.hash


def test_an_entry_rewritten_with_a_fitting_hash_breaks_the_next_one(path: Path) -> None:
    with Ledger.open(path) as ledger:
        _, digest = rewritten(ledger, 4, {"why": "nothing"})
    tamper(path, f"UPDATE entry SET why = 'nothing', hash = '{digest}' WHERE number = 4")
    with Ledger.open(path) as ledger, pytest.raises(IntegrityError, match="entry 5 does not follow entry 4"):
        ledger.verify()


def test_a_charge_other_than_its_events_is_found_even_with_fitting_hashes(path: Path) -> None:
    with Ledger.open(path) as ledger:
        entry = exported(ledger)["entries"][9]
        cost = {**entry["cost"], "pure": 1}  # type: ignore[dict-item]
        _, digest = rewritten(ledger, 10, {"cost": cost})
    tamper(
        path,
        "DELETE FROM entry WHERE number = 11",
        f"UPDATE entry SET pure = 1, hash = '{digest}' WHERE number = 10",
        f"UPDATE head SET number = 10, hash = '{digest}'",
    )
    with Ledger.open(path) as ledger, pytest.raises(IntegrityError, match="entry 10 charges something other"):
        ledger.verify()


def test_only_a_published_head_shows_that_an_older_copy_was_put_back(path: Path) -> None:
    older = path.read_bytes()
    with Ledger.open(path) as ledger:
        before = ledger.head()
        charge(ledger, 5)
        published = ledger.head()
        ledger.verify(published=published)
        ledger.verify(published=before)
    path.write_bytes(older)
    with Ledger.open(path) as ledger:
        ledger.verify()
        ledger.verify(published=before)
        with pytest.raises(IntegrityError, match=f"no entry has the published digest {published}"):
            ledger.verify(published=published)


def test_only_a_published_head_shows_that_a_new_ledger_was_written(path: Path) -> None:
    with Ledger.open(path) as ledger:
        published = ledger.head()
    path.unlink()
    with Ledger.open(path) as ledger:  # as if nothing had been spent
        ledger.declare("visits", Budget(epsilon=Fraction(1)))
        ledger.verify()
        with pytest.raises(IntegrityError, match=f"no entry has the published digest {published}"):
            ledger.verify(published=published)


def test_an_empty_ledger_is_whole_and_has_a_head(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "new.db") as ledger:
        ledger.verify()
        ledger.verify(published=ledger.head())
        with pytest.raises(IntegrityError, match="no entry has the published digest"):
            ledger.verify(published="0" * 64)


def test_nothing_is_appended_to_a_cut_ledger(path: Path) -> None:
    tamper(path, "DELETE FROM entry WHERE number = 11")
    with Ledger.open(path) as ledger:
        with pytest.raises(IntegrityError, match="entry 11 was removed or replaced"):
            charge(ledger, 9)
        with pytest.raises(IntegrityError, match="entry 10 is not the head, entry 11"):
            ledger.log_withdrawal(dataset="visits", study="digest", why="")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entry SET pure = 1, rho_of_pure = 1 WHERE kind = 'reserve'",
        "UPDATE entry SET kind = 'rezerve' WHERE kind = 'reserve'",
        "UPDATE entry SET events = replace(events, '1/', '1/9')",
        "UPDATE entry SET cap = replace(cap, '1', '9')",
        "UPDATE entry SET why = CAST(x'ff' AS TEXT)",
    ],
)
def test_nothing_is_counted_in_a_damaged_ledger(path: Path, statement: str) -> None:
    tamper(path, statement)
    with Ledger.open(path) as ledger:
        for count in (
            lambda: ledger.spent("visits"),
            lambda: charge(ledger, 9),
            lambda: ledger.check(dataset="visits", study="digest", events=[PureEvent(epsilon=Fraction(1, 100))] * 9),
        ):
            with pytest.raises(IntegrityError, match=r"changed|cannot be read|damaged"):
                count()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entry SET pure = 0",
        "DELETE FROM entry",
        "DELETE FROM head",
        "UPDATE head SET number = 3",
        "INSERT INTO head VALUES (2, 0, '')",
    ],
)
def test_triggers_keep_the_tables_append_only(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute(statement)


def text_file(path: Path) -> None:
    path.write_text("number,epsilon\n1,0.5\n" * 100)


def other_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE people (name TEXT)")


def version(number: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        Ledger.open(path).close()
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(f"PRAGMA user_version = {number}")

    return make


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (text_file, "not a Syndic ledger, or damaged"),
        (other_database, "this SQLite file is not a Syndic ledger"),
        (version(4), "ledger has format version 4; this Syndic reads version 3"),
        (version(0), "ledger has format version 0; this Syndic reads version 3"),
    ],
)
def test_foreign_files_are_refused_and_left_alone(tmp_path: Path, make: Callable[[Path], None], text: str) -> None:
    path = tmp_path / "file.db"
    make(path)
    before = path.read_bytes()
    with pytest.raises(IntegrityError, match=text):
        Ledger.open(path)
    assert path.read_bytes() == before


def test_damaged_pages_are_found(path: Path) -> None:
    with Ledger.open(path) as ledger:
        for number in range(5, 60):
            charge(ledger, number)
    damaged = bytearray(path.read_bytes())
    page = 4096
    for start in range(page, len(damaged), page):
        damaged[start : start + 200] = b"\xff" * 200
    path.write_bytes(bytes(damaged))
    with pytest.raises(IntegrityError), Ledger.open(path) as ledger:
        ledger.verify()


def called(call: str, reply: str) -> Called:
    return Called(dataset="visits", study="new", call=call, step="count", asked="e" * 64, reply=reply)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entry SET asked = '' WHERE kind = 'call'",
        "UPDATE entry SET reply = 'refused' WHERE kind = 'call'",
        "UPDATE entry SET why = 'other' WHERE kind = 'call'",
        "UPDATE entry SET reply = 'f' WHERE kind = 'agree'",
        "UPDATE entry SET kind = 'withdraw' WHERE kind = 'agree'",
        "UPDATE entry SET study = 'other' WHERE kind = 'withdraw'",
    ],
)
def test_a_changed_agreement_withdrawal_or_call_is_found(path: Path, statement: str) -> None:
    with Ledger.open(path) as ledger:
        ledger.log_agreement(dataset="visits", study="new", agreement="a" * 64, why="")
        ledger.log_call(called("c", "b" * 64))
        ledger.log_withdrawal(dataset="visits", study="new", why="")
        ledger.verify()
    tamper(path, statement)
    with Ledger.open(path) as ledger, pytest.raises(IntegrityError, match="was changed"):
        ledger.verify()


def test_the_owners_last_word_about_a_study_counts(path: Path) -> None:
    with Ledger.open(path) as ledger:
        assert ledger.standing("new") is None
        assert ledger.agreed() == ()
        for agreement in ("a" * 64, "b" * 64):
            ledger.log_agreement(dataset="visits", study="new", agreement=agreement, why="")
        ledger.log_withdrawal(dataset="visits", study="other", why="")
        standing = ledger.standing("new")
        assert standing is not None
        assert (standing.kind, standing.reply) == ("agree", "b" * 64)
        ledger.log_withdrawal(dataset="visits", study="new", why="enough")
        standing = ledger.standing("new")
        assert standing is not None
        assert (standing.kind, standing.why) == ("withdraw", "enough")
        ledger.log_agreement(dataset="visits", study="third", agreement="c" * 64, why="")
        assert ledger.agreed() == ("new", "third")


def test_a_charged_call_is_committed_and_logged_in_one_go(path: Path) -> None:
    with Ledger.open(path) as ledger:
        charge(ledger, 7, study="new")
        ledger.log_call(called("7", "b" * 64), charged=True)
        assert [entry.kind for entry in ledger.entries()][-3:] == ["reserve", "commit", "call"]
        ledger.log_call(called("7", "b" * 64), charged=True)
        entries = list(ledger.entries())
        assert [entry.kind for entry in entries][-3:] == ["reserve", "commit", "call"]
        assert ledger.calls("new") == (entries[-1],)
        assert ledger.calls("digest") == ()
        with pytest.raises(RefusedError, match="another reply"):
            ledger.log_call(called("7", "c" * 64), charged=True)
        with pytest.raises(RefusedError, match="never charged"):
            ledger.log_call(called("8", "c" * 64), charged=True)
        assert list(ledger.entries()) == entries
