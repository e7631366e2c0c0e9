"""The memory of this machine, beside what a study needs: before a row is read or anything is spent."""

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from syndic.errors import InputError
from syndic.runtime.local import MOST_OPEN

_PARTY_BYTES: Final = 10_000
_OPEN_BYTES: Final = 400_000
"""Of each party in the process of a simulation, and of each whose ledger is open (`syndic bench growth`)."""

_GROUPS: Final = Path("/proc/self/cgroup")
_MOUNTED: Final = Path("/sys/fs/cgroup")


@cache
def machine_bytes() -> int | None:
    """Return the memory of this machine, or of the container or job that this process is in; None if unknown.

    What other programs use at the moment is not subtracted: the answer does not depend on anybody's rows.
    """
    return min((*_installed(), *_allowed(_GROUPS, _MOUNTED)), default=None)


def machine_in_words(expected: int, most: int) -> str:
    """Return how much memory this machine has, and whether that is enough; empty if it is not known."""
    here = machine_bytes()
    if here is None:
        return ""
    enough = "enough" if here >= most else "enough for what is expected, but not for the most"
    return f"{here / 1e6:,.0f} MB of memory: {enough if here >= expected else 'too little'}"


def check_machine(needed: int, who: str = "") -> None:
    """Raise `InputError` if this machine has less memory than so many bytes; the text begins with `who`."""
    here = machine_bytes()
    if here is None or here >= needed:
        return
    expected = f"{who}about {needed / 1e6:,.0f} MB of memory are needed, and"
    cure = "use a larger machine, or agree on a study with fewer bins or columns"
    raise InputError(
        f"{expected} this machine has {here / 1e6:,.0f} MB: {cure}",
        elsewhere=f"{expected} its machine has less: {cure}",
    )


def in_process_bytes(parties: int) -> int:
    """Return what so many parties need that a simulation has in its own process."""
    return _PARTY_BYTES * parties + _OPEN_BYTES * min(parties, MOST_OPEN)


def _installed() -> Iterator[int]:
    with suppress(AttributeError, ValueError, OSError):  # not on every system
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _allowed(groups: Path, mounted: Path) -> Iterator[int]:
    """Yield the limits of the control groups that this process is in, of version 1 and 2."""
    try:
        lines = groups.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, kinds, place = line.split(":", 2)
        if kinds and "memory" not in kinds.split(","):
            continue
        top, name = (mounted / "memory", "memory.limit_in_bytes") if kinds else (mounted, "memory.max")
        own = top / place.lstrip("/")
        # a container may not see its own place, but the limit at the top is then its own
        for folder in (own, *own.parents):
            # without a limit there is no such file, or no number in it
            with suppress(OSError, ValueError):
                if folder.is_relative_to(top):
                    yield int((folder / name).read_text())
