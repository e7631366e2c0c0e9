"""One study in a party folder: the party's copy of the study and its owner's signed agreement."""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import final

from syndic.document import from_file, to_json, to_readable_json
from syndic.errors import InputError, RefusedError
from syndic.kernel import Agreement, Head, member
from syndic.kernel.agreement import check_agreement, read_agreement
from syndic.privacy import Ledger
from syndic.study.document import Study
from syndic.version import __version__

_LETTERS = 16


@final
@dataclass(frozen=True, kw_only=True)
class StudyFolder:
    """The folder of one run; `digest` is that of the run, so a rehearsal has its own folder."""

    folder: Path
    digest: str

    @classmethod
    def of(cls, home: Path, digest: str) -> "StudyFolder":
        """Return the folder of a run in a party folder."""
        return cls(folder=home / "studies" / digest[:_LETTERS], digest=digest)

    @property
    def written(self) -> Path:
        """The signed agreement."""
        return self.folder / "agreement.json"

    def time_of(self, name: str) -> datetime:
        """Return the time at which a file was written."""
        return datetime.fromtimestamp((self.folder / name).stat().st_mtime, UTC)

    def study(self) -> Study:
        """Return the party's own copy of the study."""
        return from_file(self.folder / "study.json", Study)

    def put_study(self, study: Study) -> None:
        """Store a copy of the study; raise `InputError` if the folder belongs to another run."""
        if self._taken():
            raise InputError(
                f"{self.folder}: this is the folder of another study whose digest begins alike: agree to one"
            )
        self._put("study.json", to_readable_json(study))

    def put_agreement(self, agreement: Agreement) -> str:
        """Store a signed agreement; return its digest."""
        content = to_json(agreement)
        self._put("agreement.json", content)
        return hashlib.sha256(content).hexdigest()

    def agreement(self, party: str) -> Agreement | None:
        """Return the agreement that the owner signed last, if any, in force or not."""
        return read_agreement(self.written.read_bytes(), party=party) if self.written.exists() else None

    def in_force(self, study: Study, party: str, ledger: Ledger, booked: str) -> bytes:
        """Return the signed agreement if it is in force now; `booked` is the run's name in the ledger.

        Raises:
            RefusedError: if the owner has not agreed or has withdrawn, or if the agreement expired or was changed.
        """
        standing = ledger.standing(booked)
        if standing is None or not self.written.exists():
            raise RefusedError(f"{party} has not agreed to study {self.digest[:12]}: its owner runs syndic agree")
        if standing.kind == "withdraw":
            raise RefusedError(f"{party} has withdrawn from study {self.digest[:12]}")
        content = self.written.read_bytes()
        if hashlib.sha256(content).hexdigest() != standing.reply:
            raise RefusedError(f"the agreement of {party} is not the one in its owner's ledger: agree again")
        identity = member(study, party).identity or ""
        agreement = read_agreement(content, party=party)
        check_agreement(agreement, identity=identity, run=self.digest, party=party, syndic=__version__)
        return content

    def note_head(self, head: Head) -> None:
        """Write the head of the party's memory beside the ledger, so that a restored older ledger is noticed."""
        self._put("head.json", to_json(head))

    def check_head(self, head: Head, party: str) -> None:
        """Raise `RefusedError` if the memory is older than was noted: its calls would get new noise."""
        path = self.folder / "head.json"
        try:
            noted = from_file(path, Head) if path.exists() else Head()
        except InputError:
            raise RefusedError(
                f"{party}: {path.name} of study {self.digest[:12]} is damaged: set a new edition"
            ) from None
        head.check(noted, f"the ledger of {party}")

    def _taken(self) -> bool:
        """Return whether another run has this folder: its name is 64 bits of a digest, and collisions can be made."""
        try:
            agreement = self.agreement("its owner")
            held = self.study().digest if agreement is None else agreement.run
        except (InputError, RefusedError):
            # there is nothing, or nothing that could be answered
            return False
        return held != self.digest and held.startswith(self.folder.name)

    def _put(self, name: str, content: bytes) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        write_whole(self.folder / name, content)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file in one step, for the account of its owner: others read the old content or the new, never a part."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    draft.replace(path)


def linked(path: Path, other: Path) -> bool:
    """Make a file a link to another one, in place of what it was; return whether this disk has such links."""
    path.unlink(missing_ok=True)
    with suppress(OSError):
        path.hardlink_to(other)
    return path.exists()


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Let other processes that change files of this folder wait until this one is done."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def write_new(path: Path, text: str) -> None:
    """Write a new file that only its owner may read.

    Raises:
        InputError: if there is one already.
    """
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InputError(f"{path.name} exists: choose another name, or remove it") from None
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
