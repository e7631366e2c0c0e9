"""One study in a party's home: its own copy of the study and its owner's signed agreement."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import final

from syndic.document import from_file, to_json, to_readable_json
from syndic.errors import InputError, RefusedError
from syndic.kernel import Agreement, member
from syndic.kernel.agreement import check_agreement, read_agreement
from syndic.privacy import Ledger
from syndic.study.document import Study
from syndic.version import __version__

_LETTERS = 16


@final
@dataclass(frozen=True, kw_only=True)
class StudyFolder:
    """The folder of one run; `digest` is the run's, so a rehearsal has a folder of its own."""

    folder: Path
    digest: str

    @classmethod
    def of(cls, home: Path, digest: str) -> "StudyFolder":
        """Return the folder of a run in a home."""
        return cls(folder=home / "studies" / digest[:_LETTERS], digest=digest)

    @property
    def written(self) -> Path:
        """The signed agreement."""
        return self.folder / "agreement.json"

    def study(self) -> Study:
        """Return the party's own copy of the study."""
        return from_file(self.folder / "study.json", Study)

    def put_study(self, study: Study) -> None:
        """Keep a copy of the study; raise `InputError` if the folder is that of another run."""
        if self._taken():
            raise InputError(f"{self.folder}: is the folder of another study, whose digest begins alike: agree to one")
        self._put("study.json", to_readable_json(study))

    def put_agreement(self, agreement: Agreement) -> str:
        """Keep a signed agreement; return its digest."""
        content = to_json(agreement)
        self._put("agreement.json", content)
        return hashlib.sha256(content).hexdigest()

    def agreement(self, party: str) -> Agreement | None:
        """Return what the owner signed last, if anything; whether it holds is another question."""
        return read_agreement(self.written.read_bytes(), party=party) if self.written.exists() else None

    def in_force(self, study: Study, party: str, ledger: Ledger) -> bytes:
        """Return the signed agreement if it holds now.

        Raises:
            RefusedError: if the owner has not agreed, has withdrawn, or its agreement expired or was changed.
        """
        standing = ledger.standing(self.digest)
        if standing is None or not self.written.exists():
            raise RefusedError(f"{party} has not agreed to study {self.digest[:12]}: its owner runs syndic agree")
        if standing.kind == "withdraw":
            raise RefusedError(f"{party} has withdrawn from study {self.digest[:12]}")
        content = self.written.read_bytes()
        if hashlib.sha256(content).hexdigest() != standing.reply:
            raise RefusedError(f"the agreement of {party} is not the one that its owner's log names: agree again")
        identity = member(study, party).identity or ""
        agreement = read_agreement(content, party=party)
        check_agreement(agreement, identity=identity, run=self.digest, party=party, syndic=__version__)
        return content

    def note_calls(self, number: int) -> None:
        """Note beside the ledger what `Memory.calls` says, so that an older copy of the ledger is noticed."""
        self._put("calls", str(number).encode())

    def check_calls(self, number: int, party: str) -> None:
        """Raise `RefusedError` if the ledger knows of fewer calls than were noted: they would get new noise."""
        path = self.folder / "calls"
        noted = path.read_bytes() if path.exists() else b"0"
        if not noted.isdigit() or number < int(noted):
            raise RefusedError(
                f"{party} answered calls of study {self.digest[:12]} before and its stored answers are gone: its "
                "ledger is an older copy. Put the newest back, or use a new edition"
            )

    def _taken(self) -> bool:
        """Tell whether another run has this folder: its name is 64 bits of a digest, and these can be made alike."""
        try:
            agreement = self.agreement("its owner")
            held = self.study().digest if agreement is None else agreement.run
        except (InputError, RefusedError):
            # nothing is there, or nothing that could be answered
            return False
        return held != self.digest and held.startswith(self.folder.name)

    def _put(self, name: str, content: bytes) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        write_whole(self.folder / name, content)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, for a process that is just reading it."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_bytes(content)
    draft.replace(path)
