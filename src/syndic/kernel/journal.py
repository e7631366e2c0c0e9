"""What a coordinator keeps of a run, so that it can be killed at any moment and go on: its secret and what it heard.

All that a coordinator draws comes from the secret, and whatever it asks follows from its draws and from what it heard.
A second run therefore asks the same questions. Those that were answered are answered from here and nobody is asked;
who was silent then is silent again, so that the list of survivors that parties were told stays the same. Only after the
last answers, while nothing was asked that follows from them and the run did not end, the silent are asked once more.

*Private to the coordinator*: with the secret, whoever colludes with a party can do what a colluding coordinator could.
The file may be deleted when the release is written; the run can then not be repeated. It grows to the size of all
replies. A reply is written and read in pieces, so that memory holds no second copy of it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, final

from syndic.errors import InputError, IntegrityError, RefusedError
from syndic.kernel.transport import Delivery
from syndic.random import SECRET_BYTES, SystemRandomness
from syndic.sqlite import Database, Format

_LAYOUT: Final = (
    """CREATE TABLE head (study TEXT NOT NULL, version TEXT NOT NULL, secret BLOB NOT NULL,
        settled INTEGER NOT NULL) STRICT""",
    "CREATE TABLE asks (round INTEGER PRIMARY KEY, step TEXT NOT NULL, fresh INTEGER NOT NULL) STRICT",
    """CREATE TABLE heard (round INTEGER, party TEXT, asked BLOB NOT NULL, silent TEXT, failed INTEGER NOT NULL,
        PRIMARY KEY (round, party)) STRICT""",
    """CREATE TABLE pieces (round INTEGER, party TEXT, piece INTEGER, value BLOB NOT NULL,
        PRIMARY KEY (round, party, piece)) STRICT""",
)
_FORMAT: Final = Format(name="journal", application=0x53594E4A, version=1, layout=_LAYOUT)
_PIECE_BYTES: Final = 1 << 24


@final
@dataclass(frozen=True, kw_only=True)
class Recalled:
    """What an ask delivered, and which parties without a usable answer may be asked once more."""

    delivery: Delivery
    again: frozenset[str]


@final
class Journal:
    """The journal of one run, in one SQLite file that one coordinator holds at a time."""

    def __init__(self, database: Database, secret: bytes) -> None:
        """Use `open`."""
        self.secret = secret
        self._database = database
        self._lossy = False

    @classmethod
    def open(cls, path: Path, *, study: str, version: str) -> Self:
        """Open or begin the journal of the run with digest `study`, by this version of Syndic.

        Raises:
            InputError: if it is the journal of another run or version, or another coordinator holds it.
            IntegrityError: if the file is no journal.
        """
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            database = Database(path, _FORMAT, patience=1.0, exclusive=True)
        except RefusedError:
            raise InputError(f"{path}: another coordinator is running this study from this folder") from None
        try:
            return cls(database, _begun(database, study, version))
        except BaseException:
            database.close()
            raise

    def recall(self, number: int, step: str, *, fresh: bool, asked: Mapping[str, bytes]) -> Recalled | None:
        """Return what ask `number` delivered, or None if it was never completed.

        A fresh step tells whether parties could answer now: it is asked anew until an answer of another step is here.

        Raises:
            IntegrityError: if another question was asked under this number, or the file is damaged.
        """
        find = self._database.first
        if fresh and find("SELECT 1 FROM asks WHERE round > ? AND NOT fresh", number) is None:
            return None
        row = find("SELECT step FROM asks WHERE round = ?", number)
        if row is None:
            return None
        heard = self._database.rows("SELECT party, asked, silent, failed FROM heard WHERE round = ?", (number,))
        if row[0] != step or {each[0]: each[1] for each in heard} != dict(asked):
            raise IntegrityError(
                f"question {number} of this run ('{step}') was another one before ('{row[0]}'): the run does not "
                "repeat itself on this machine. What was charged stays charged; use a new edition to begin again"
            )
        self._lossy = any(each[3] for each in heard)
        delivery = Delivery(
            replies={party: self._reply(number, party) for party, _, silent, _ in heard if silent is None},
            silent={party: silent for party, _, silent, _ in heard if silent is not None},
        )
        again = () if self._settled(number) else (each[0] for each in heard if each[3])
        return Recalled(delivery=delivery, again=frozenset(again))

    def settle(self, number: int) -> None:
        """Note that something follows from the ask `number`: who was silent in it stays silent. Before that is sent."""
        if not self._lossy:
            return
        self._database.first("UPDATE head SET settled = max(settled, ?)", number)

    def record(
        self,
        number: int,
        step: str,
        *,
        fresh: bool,
        asked: Mapping[str, bytes],
        delivery: Delivery,
        failed: Collection[str] = (),
    ) -> None:
        """Keep what ask `number` delivered, durably and whole; `failed` are the parties without a usable answer."""
        write = self._database.rows
        with self._database.writing():
            # an earlier life may have left another answer: of a fresh step, or less of this one
            for table in ("asks", "heard", "pieces"):
                write(f"DELETE FROM {table} WHERE round = ?", (number,))  # noqa: S608  # our own names
            write("INSERT INTO asks VALUES (?, ?, ?)", (number, step, fresh))
            for party, digest in asked.items():
                reply = delivery.replies.get(party)
                silent = None if reply is not None else delivery.silent.get(party, "nothing came back")
                write("INSERT INTO heard VALUES (?, ?, ?, ?, ?)", (number, party, digest, silent, party in failed))
                for piece, start in enumerate(range(0, len(reply or b""), _PIECE_BYTES)):
                    part = memoryview(reply or b"")[start : start + _PIECE_BYTES]
                    write("INSERT INTO pieces VALUES (?, ?, ?, ?)", (number, party, piece, part))
        self._lossy = bool(failed)

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def _settled(self, number: int) -> bool:
        find = self._database.first
        if find("SELECT 1 FROM asks WHERE round > ?", number) is not None:
            return True
        row = find("SELECT settled FROM head")
        if row is None or not isinstance(row[0], int):
            raise _damaged(self._database.path)
        return row[0] >= number

    def _reply(self, number: int, party: str) -> bytes:
        where = "WHERE round = ? AND party = ? ORDER BY piece"
        rows = self._database.rows(f"SELECT value FROM pieces {where}", (number, party))  # noqa: S608  # our own
        return b"".join(self._piece(row[0]) for row in rows)

    def _piece(self, value: Any) -> bytes:
        if not isinstance(value, bytes):
            raise _damaged(self._database.path)
        return value


def _begun(database: Database, study: str, version: str) -> bytes:
    """Begin the journal if it is new, and return its secret."""
    path, row = database.path, database.first("SELECT study, version, secret FROM head")
    if row is None:
        row = (study, version, SystemRandomness().bytes(SECRET_BYTES))
        database.first("INSERT INTO head VALUES (?, ?, ?, 0)", *row)
    if row[0] != study:
        raise InputError(
            f"{path} is the journal of another run ({str(row[0])[:12]}, not {study[:12]}): use another folder"
        )
    if row[1] != version:
        raise InputError(
            f"{path}: this run was begun by Syndic {row[1]}, and this is {version}, which may ask otherwise: finish "
            "the run with the version it was begun with, or use a new edition"
        )
    if not isinstance(row[2], bytes) or len(row[2]) != SECRET_BYTES:
        raise _damaged(path)
    return row[2]


def _damaged(path: Path) -> IntegrityError:
    return IntegrityError(f"{path}: the coordinator's journal is damaged: what was written is not there")
