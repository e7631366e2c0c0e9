"""The console's users: their names and roles, and how each signs in.

A password is stored as an Argon2id digest. A token has 256 random bits, so a plain digest of it cannot be searched. A
user with neither signs in through a reverse proxy.
"""

import base64
import hmac
import os
import re
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal, get_args

from cryptography.exceptions import InvalidKey
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from syndic.document import Document, from_json, to_json, to_readable_json
from syndic.errors import InputError, RefusedError
from syndic.privacy.audit import AuditLog, account
from syndic.random import SystemRandomness
from syndic.study.study_folder import alone

UserRole = Literal["reader", "owner", "administrator"]
ROLES: Final[tuple[UserRole, ...]] = get_args(UserRole)
LEAST_LETTERS: Final = 15
_MOST_LETTERS: Final = 1000
_FILE: Final = "users.json"
_FORMAT: Final = "syndic users 1"
_BYTES: Final = 32
_NAME: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z.@_+-]{0,63}")
# OWASP's parameters: 19 MiB, two passes
_PASSES, _LANES, _KIBIBYTES = 2, 1, 19 * 1024


class User(Document):
    """A person or a program, with the digest of a password or of a token. Each role may do what those before it may."""

    name: str
    role: UserRole
    password: str = ""
    token: str = ""

    def may(self, needed: UserRole) -> bool:
        """Return whether the user's role includes the needed one."""
        return ROLES.index(self.role) >= ROLES.index(needed)

    @property
    def signs_in(self) -> str:
        """How the user signs in, in words."""
        return "a password" if self.password else "a token" if self.token else "the reverse proxy"

    @property
    def edition(self) -> str:
        """A value that changes with the role, the password and the token: a change ends the user's sessions."""
        return sha256(to_json(self)).hexdigest()


class _File(Document):
    format: str
    users: tuple[User, ...]


def users(folder: Path) -> tuple[User, ...]:
    """Return the users of the folder's console."""
    path = folder / _FILE
    return from_json(path.read_bytes(), _File, where=_FILE).users if path.is_file() else ()


def find(folder: Path, name: str) -> User | None:
    """Return the user with this name; case does not count."""
    return next((one for one in users(folder) if one.name.lower() == name.lower()), None)


def with_password(name: str, role: UserRole, password: str) -> User:
    """Return a user who signs in with this password."""
    if not LEAST_LETTERS <= len(password) <= _MOST_LETTERS:
        raise InputError(f"the password must have {LEAST_LETTERS} to {_MOST_LETTERS} letters: a sentence is one")
    return User(name=name, role=role, password=_hashed(password))


def with_token(name: str, role: UserRole) -> tuple[User, str]:
    """Return a user who signs in with a new token, and the token, which is stored nowhere."""
    token = SystemRandomness().bytes(_BYTES).hex()
    return User(name=name, role=role, token=_digest(token)), token


def put(folder: Path, user: User, *, instead_of: User | None = None) -> None:
    """Add a user, or replace the one of this name and end its sessions.

    Raises:
        InputError: if the name is not valid.
        RefusedError: if no administrator would be left, or the user to replace is no longer `instead_of`.
    """
    if not _NAME.fullmatch(user.name):
        raise InputError("a user's name has 1 to 64 letters, digits and . @ _ + -, and begins with a letter or digit")
    with AuditLog(folder).attempt(f"add user {user.name} as {user.role}"):
        _change(folder, lambda known: (*_without(known, user.name), user), unchanged=instead_of)


def remove(folder: Path, name: str) -> None:
    """Remove a user and end its sessions.

    Raises:
        InputError: if there is no such user.
        RefusedError: if no administrator would be left.
    """
    if find(folder, name) is None:
        raise InputError(f"there is no such user; users are {', '.join(one.name for one in users(folder)) or 'none'}")
    with AuditLog(folder).attempt(f"remove user {name}"):
        _change(folder, lambda known: _without(known, name))


def first_administrator(folder: Path) -> str:
    """Make the account of this process an administrator with a new token; return the token."""
    name = account().removeprefix("account ")
    user, token = with_token(name if _NAME.fullmatch(name) else "administrator", "administrator")
    put(folder, user)
    return token


def by_token(folder: Path, offered: str) -> User | None:
    """Return the user whose token this is."""
    digest = _digest(offered)
    found = [one for one in users(folder) if one.token and hmac.compare_digest(one.token, digest)]
    return found[0] if found else None


def by_password(folder: Path, name: str, offered: str) -> User | None:
    """Return the user if the password is right. The work is the same for unknown names."""
    user = find(folder, name)
    right = _is_password(user.password if user is not None and user.password else _NOBODY, offered)
    return user if right else None


def _is_password(stored: str, offered: str) -> bool:
    tried = offered if len(offered) <= _MOST_LETTERS else ""
    try:
        Argon2id.verify_phc_encoded(tried.encode("utf-8", "replace"), stored)
    except InvalidKey:
        return False
    return True


def _hashed(password: str) -> str:
    salt = SystemRandomness().bytes(16)
    slow = Argon2id(salt=salt, length=_BYTES, iterations=_PASSES, lanes=_LANES, memory_cost=_KIBIBYTES)
    return slow.derive_phc_encoded(password.encode("utf-8", "replace"))


def _random(size: int) -> str:
    return base64.b64encode(SystemRandomness().bytes(size)).decode().rstrip("=")


# the digest of a password that nobody knows, for names that nobody has
_NOBODY: Final = f"$argon2id$v=19$m={_KIBIBYTES},t={_PASSES},p={_LANES}${_random(16)}${_random(_BYTES)}"


def _change(
    folder: Path, change: Callable[[tuple[User, ...]], Iterable[User]], *, unchanged: User | None = None
) -> None:
    """Replace the users in one step; of two processes, one waits for the other."""
    with alone(folder):
        known = users(folder)
        if unchanged is not None and unchanged not in known:
            raise RefusedError("an administrator has changed or removed this user: sign in again")
        changed = tuple(sorted(change(known), key=lambda one: one.name.lower()))
        if not any(one.may("administrator") for one in changed):
            raise RefusedError("the console needs an administrator: add one first")
        draft = folder / f"{_FILE}.{os.getpid()}"
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(to_readable_json(_File(format=_FORMAT, users=changed)))
            os.fsync(file.fileno())
        draft.replace(folder / _FILE)


def _without(known: Iterable[User], name: str) -> tuple[User, ...]:
    return tuple(one for one in known if one.name.lower() != name.lower())


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()
