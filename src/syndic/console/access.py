"""Access to the console: one local secret, stored as a digest, and sessions that expire.

The secret has 256 random bits, so its digest cannot be searched. It is shown once. Sessions are in the memory of the
process: stopping the console ends them.
"""

import hmac
import os
import threading
import time
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Final, final

from syndic.document import Document, from_json, to_readable_json
from syndic.errors import InputError
from syndic.random import SystemRandomness

_FILE: Final = "console.key"
_FORMAT: Final = "syndic console 1"
_BYTES: Final = 32
_IDLE_SECONDS: Final = 3600.0
_LONGEST_SECONDS: Final = 12 * 3600.0
_MOST_SESSIONS: Final = 64


class _Kept(Document):
    format: str
    sha256: str


def new_secret(folder: Path) -> str:
    """Make a new secret for the folder and return it; only its digest is stored, readable by its owner only."""
    secret = SystemRandomness().bytes(_BYTES).hex()
    path = folder / _FILE
    draft = path.with_name(f"{_FILE}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(to_readable_json(_Kept(format=_FORMAT, sha256=_digest(secret))))
    draft.replace(path)
    return secret


def has_secret(folder: Path) -> bool:
    """Return whether the folder has a secret."""
    return (folder / _FILE).is_file()


def is_secret(folder: Path, offered: str) -> bool:
    """Return whether this is the folder's secret, in the same time whatever was offered."""
    path = folder / _FILE
    if not path.is_file():
        raise InputError("the console's secret was removed: restart the console")
    kept = from_json(path.read_bytes(), _Kept, where=_FILE)
    return hmac.compare_digest(kept.sha256, _digest(offered))


def edition_of(folder: Path) -> str:
    """Return a value that changes with the folder's secret, so that a new secret ends old sessions."""
    path = folder / _FILE
    return _digest(path.read_text(encoding="utf-8")) if path.is_file() else ""


@final
@dataclass(frozen=True, kw_only=True)
class Visit:
    """A session: its token for forms, the edition of the secret, and the times of its start and last use."""

    token: str
    under: str
    began: float
    used: float


@final
class Sessions:
    """The sessions of one console."""

    def __init__(self) -> None:
        """Begin without sessions."""
        self._visits: dict[str, Visit] = {}
        self._lock = threading.Lock()

    def begin(self, under: str = "") -> str:
        """Return the name of a new session, for the cookie; it ends when the secret is no longer `under`."""
        source, now = SystemRandomness(), time.monotonic()
        name = source.bytes(_BYTES).hex()
        with self._lock:
            if len(self._visits) >= _MOST_SESSIONS:
                del self._visits[min(self._visits, key=lambda each: self._visits[each].used)]
            self._visits[_digest(name)] = Visit(token=source.bytes(_BYTES).hex(), under=under, began=now, used=now)
        return name

    def find(self, name: str, under: str = "") -> Visit | None:
        """Return the session with this name if it has not ended."""
        key, now = _digest(name), time.monotonic()
        with self._lock:
            visit = self._visits.get(key)
            if visit is None:
                return None
            late = now - visit.used > _IDLE_SECONDS or now - visit.began > _LONGEST_SECONDS
            if late or visit.under != under:
                del self._visits[key]
                return None
            self._visits[key] = replace(visit, used=now)
            return visit

    def end(self, name: str) -> None:
        """End a session."""
        with self._lock:
            self._visits.pop(_digest(name), None)


def same(token: str, offered: str) -> bool:
    """Return whether two tokens are the same, in the same time whatever was offered."""
    return hmac.compare_digest(token.encode(), offered.encode())


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
