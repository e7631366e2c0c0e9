"""Access to the console: signing in, and sessions that expire.

Sessions and failed sign-ins are in the memory of the process: stopping the console ends them.
"""

import hmac
import ipaddress
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, final

from syndic.console import users
from syndic.console.users import User
from syndic.console.views import Role
from syndic.errors import InputError, RefusedError
from syndic.privacy.audit import AuditLog
from syndic.random import SystemRandomness

_BYTES: Final = 32
_IDLE_SECONDS: Final = 3600.0
_LONGEST_SECONDS: Final = 12 * 3600.0
_MOST_SESSIONS: Final = 64
_FREE_FAILURES: Final = 5
_LONGEST_WAIT: Final = 900.0
_BUSY_SECONDS: Final = 2.0
_MOST_WAITING: Final = 8
_MOST_NAMES: Final = 4096
_BUSY: Final = "too many people sign in at the moment: try again"


def role_of(folder: Path) -> Role:
    """Return the role of a folder."""
    if (folder / "coordinator.json").is_file():
        return "coordinator"
    if (folder / "party.toml").is_file():
        return "party"
    raise InputError(f"{folder}: this is neither a party folder (with party.toml) nor a coordinator's folder")


@final
class SignIn:
    """Sign-ins with passwords, one at a time. A name with many failures waits, whether or not a user has it."""

    def __init__(self, folder: Path) -> None:
        """Sign in to the console of this folder."""
        self._folder = folder
        self._failures: dict[str, tuple[int, float]] = {}
        self._lock = threading.Lock()
        # of the forty threads that also make pages
        self._places = threading.Semaphore(_MOST_WAITING)

    def user(self, name: str, password: str) -> User | None:
        """Return the user if the password is right.

        Raises:
            RefusedError: if the name must wait, or too many others try to sign in now.
        """
        with _held(self._places, blocking=False), _held(self._lock, timeout=_BUSY_SECONDS):
            return self._user(_digest(name.lower()), name, password)

    def _user(self, key: str, name: str, password: str) -> User | None:
        failed, last = self._failures.get(key, (0, 0.0))
        wait = last + _wait(failed) - time.monotonic()
        if wait > 0:
            raise RefusedError(f"too many failed sign-ins with this name: wait {wait:.0f} seconds")
        found = users.by_password(self._folder, name, password)
        if found is not None:
            self._failures.pop(key, None)
            return found
        if len(self._failures) >= _MOST_NAMES:
            del self._failures[min(self._failures, key=lambda each: self._failures[each][1])]
        self._failures[key] = (failed + 1, time.monotonic())
        return None


@contextmanager
def _held(lock: Any, **how: Any) -> Iterator[None]:
    if not lock.acquire(**how):
        raise RefusedError(_BUSY)
    try:
        yield
    finally:
        lock.release()


@cache
def sign_in_of(folder: Path) -> SignIn:
    """Return the one place where users of a folder's console are asked for passwords."""
    return SignIn(folder)


def signed_in(folder: Path, proxied: str, form: Mapping[str, str]) -> User | None:
    """Return the user whom the proxy or the form names, and record the sign-in; None if something is wrong."""
    if proxied:
        user = users.find(folder, proxied)
    elif form.get("secret"):
        user = users.by_token(folder, form["secret"].strip())
    else:
        user = sign_in_of(folder).user(form.get("name", "").strip(), form.get("password", ""))
    if user is not None:
        AuditLog(folder).add("sign in", who=f"user {user.name}", why="by the proxy" if proxied else "")
    elif proxied:
        raise RefusedError("the proxy signed you in, but you are not a user of this console: ask its administrator")
    return user


def record_refusal(folder: Path, name: str, alert: str) -> None:
    """Record that somebody could not sign in."""
    # what was typed as an unknown name may be a password
    known = users.find(folder, name)
    who = f"user {known.name}" if known else "an unknown user"
    AuditLog(folder).refuse("sign in", who=who, why=alert.partition(": wait")[0])


def _wait(failed: int) -> float:
    """Return the seconds after the last failure in which a name cannot sign in: a minute after five, then doubled."""
    return 0.0 if failed < _FREE_FAILURES else min(60.0 * 2 ** min(failed - _FREE_FAILURES, 10), _LONGEST_WAIT)


@final
@dataclass(frozen=True, kw_only=True)
class Proxy:
    """A reverse proxy that signs people in: its address, its header with the user's name, the address in browsers."""

    address: str
    header: str
    url: str

    def __post_init__(self) -> None:
        try:
            ipaddress.ip_address(self.address)
        except ValueError:
            raise InputError(f"--proxy {self.address}: write the one address from which the proxy connects") from None
        if not re.fullmatch("[A-Za-z0-9-]+", self.header):
            raise InputError(f"--proxy-header {self.header}: a header's name has letters, digits and -")
        if not re.fullmatch(r"https?://[A-Za-z0-9.:\[\]-]+", self.url):
            raise InputError(f"--url {self.url}: write the address in browsers, such as https://console.example.org")

    def sends_from(self, client: str) -> bool:
        """Return whether a connection from this address is the proxy's."""
        try:
            found = ipaddress.ip_address(client)
        except ValueError:
            return False
        inner = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
        return (inner or found) == ipaddress.ip_address(self.address)


@final
@dataclass(frozen=True, kw_only=True)
class Visit:
    """A session: its token for forms, its user, the user's edition, and the times of its start and last use."""

    token: str
    user: str
    edition: str
    began: float
    used: float


@final
class Sessions:
    """The sessions of one console."""

    def __init__(self) -> None:
        """Begin without sessions."""
        self._visits: dict[str, Visit] = {}
        self._lock = threading.Lock()

    def begin(self, user: str = "", edition: str = "") -> str:
        """Return the name of a new session of this user, for the cookie."""
        source, now = SystemRandomness(), time.monotonic()
        name = source.bytes(_BYTES).hex()
        with self._lock:
            if len(self._visits) >= _MOST_SESSIONS:
                del self._visits[min(self._visits, key=lambda each: self._visits[each].used)]
            self._visits[_digest(name)] = Visit(
                token=source.bytes(_BYTES).hex(), user=user, edition=edition, began=now, used=now
            )
        return name

    def find(self, name: str) -> Visit | None:
        """Return the session with this name if it has not ended."""
        key, now = _digest(name), time.monotonic()
        with self._lock:
            visit = self._visits.get(key)
            if visit is None:
                return None
            if now - visit.used > _IDLE_SECONDS or now - visit.began > _LONGEST_SECONDS:
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
