"""The memory and files of this machine, beside what a study needs: before a row is read or anything is spent."""

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Final

from syndic.errors import InputError

resource: ModuleType | None = None
with suppress(ImportError):  # not on every system
    import resource

IN_PROCESS_BYTES: Final = 500_000
"""Of each party that a simulation has in its own process: ledger, source and log (`syndic bench growth`)."""

_FILES_EACH: Final = 3
_FILES_ELSE: Final = 100
"""Open files of each party in a process, its ledger with its journal and index, and of all else."""

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


def check_files(parties: int) -> None:
    """Let this process open the files of so many parties; raise `InputError` if the system does not allow that."""
    if resource is None:
        return
    needed = _FILES_EACH * parties + _FILES_ELSE
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if now == resource.RLIM_INFINITY or now >= needed:
        return
    if most != resource.RLIM_INFINITY and most < needed:
        raise InputError(
            f"{parties:,} parties in one process open {needed:,} files, and this system allows {most:,}: raise the "
            "hard limit of open files (ulimit -Hn), or simulate fewer parties"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, most))


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
