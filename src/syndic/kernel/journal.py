"""The coordinator's journal of a run: its secret and all replies, so that it can be killed at any time and resume.

All random draws of a coordinator come from the secret, and every request follows from the draws and the replies. A
second run therefore sends the same requests. Answered ones are replayed from the journal and not sent again. Parties
that were silent stay silent, so that the list of survivors that parties received stays the same. There is one
exception: silent parties of the last step are asked once more, if no later request was sent and the run did not end.

*Private to the coordinator*: whoever has the secret and colludes with a party can do what a colluding coordinator can.
The file may be deleted once the release is written; the run can then not be resumed. It grows to the size of all
replies. A reply is written and read in pieces, so that memory holds no second copy of it.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final, Self, final

from syndic.errors import InputError, IntegrityError, RefusedError
from syndic.kernel.call import Delivery
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


Recalled = tuple[Delivery, frozenset[str]]
"""The replies to a request, and which parties without a usable reply may be asked once more."""


@final
class Journal:
    """The journal of one run, in one SQLite file that only one coordinator can open at a time."""

    def __init__(self, database: Database, secret: bytes) -> None:
        """Wrap an open journal; call `open` instead."""
        self.secret = secret
        self._database = database
        self._lossy = False

    @classmethod
    def open(cls, path: Path, *, study: str, version: str) -> Self:
        """Open or create the journal of the run with digest `study` and this version of Syndic.

        Raises:
            InputError: if it is the journal of another run or version, or another coordinator has it open.
            IntegrityError: if the file is not a journal.
        """
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            database = Database(path, _FORMAT, patience=1.0, exclusive=True)
        except RefusedError:
            raise InputError(f"{path}: another coordinator is running this study from this folder") from None
        try:
            return cls(database, _secret_of(database, study, version))
        except BaseException:
            database.close()
            raise

    def recall(self, number: int, step: str, *, fresh: bool, asked: Mapping[str, bytes]) -> Recalled | None:
        """Return the replies to request `number`, or None if it was never completed.

        A fresh step shows whether parties can answer now: it is repeated until a reply to another step is stored.

        Raises:
            IntegrityError: if a different request had this number, or the file is damaged.
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
                f"request {number} of this run ('{step}') differs from the stored one ('{row[0]}'): the run cannot be "
                "resumed on this machine. Charges remain in the ledgers; set a new edition to start again"
            )
        self._lossy = any(each[3] for each in heard)
        delivery = Delivery(
            replies={party: self._reply(number, party) for party, _, silent, _ in heard if silent is None},
            silent={party: silent for party, _, silent, _ in heard if silent is not None},
        )
        settled = find("SELECT settled FROM head")
        if settled is None or not isinstance(settled[0], int):
            raise _damaged(self._database.path)
        again = (each[0] for each in heard if each[3] and settled[0] < number)
        return delivery, frozenset(again)

    def settle(self, number: int) -> None:
        """Record, before the next request is sent, that silent parties of request `number` stay silent."""
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
        """Store the replies to request `number` durably, all or none; parties in `failed` gave no usable one."""
        write = self._database.rows
        with self._database.writing():
            # an earlier process may have stored another reply of a fresh step, or fewer replies of this one
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
        """Close the file."""
        self._database.close()

    def _reply(self, number: int, party: str) -> bytes:
        where = "WHERE round = ? AND party = ? ORDER BY piece"
        rows = self._database.rows(f"SELECT value FROM pieces {where}", (number, party))  # noqa: S608  # our own
        if not all(isinstance(value, bytes) for (value,) in rows):
            raise _damaged(self._database.path)
        return b"".join(value for (value,) in rows)


def _secret_of(database: Database, study: str, version: str) -> bytes:
    """Initialise the journal if it is new, and return its secret."""
    path, row = database.path, database.first("SELECT study, version, secret FROM head")
    if row is None:
        row = (study, version, SystemRandomness().bytes(SECRET_BYTES))
        database.first("INSERT INTO head VALUES (?, ?, ?, 0)", *row)
    if row[0] != study:
        raise InputError(f"{path} is another run's journal ({str(row[0])[:12]}, not {study[:12]}): use another folder")
    if row[1] != version:
        raise InputError(
            f"{path}: this run was started with Syndic {row[1]}; version {version} may send different requests. Finish "
            f"it with {row[1]}, or set a new edition"
        )
    if not isinstance(row[2], bytes) or len(row[2]) != SECRET_BYTES:
        raise _damaged(path)
    return row[2]


def _damaged(path: Path) -> IntegrityError:
    return IntegrityError(f"{path}: the coordinator's journal is damaged")
