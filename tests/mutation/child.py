"""One mutant, one process: forked, limited in time and memory, and gone afterwards."""

import os
import resource
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

_MOST_MEMORY = 4 << 30


@dataclass(frozen=True)
class Ending:
    """How it went: `survived`, `killed` by a test, `time` (it ran far longer than the tests do), `cold`, `crashed`."""

    outcome: str
    by: str
    seconds: float


class Gave(Exception):  # noqa: N818 (an answer, no error)
    """Raised inside the child to end it with an outcome."""

    def __init__(self, outcome: str, by: str = "") -> None:
        super().__init__(outcome)
        self.outcome, self.by = outcome, by


def forked(work: Callable[[], None]) -> Ending:
    """Do the work in a child process; it ends by raising `Gave`, or survives."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _be_child(work, writing)
    os.close(writing)
    # first wait, then read: what a test left running may hold the pipe open, and the line fits into it
    _, status, usage = os.wait4(child, 0)
    os.set_blocking(reading, False)
    told = _line(reading).partition(" ")
    seconds = usage.ru_utime + usage.ru_stime
    if os.WIFSIGNALED(status):
        late = os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGALRM, signal.SIGKILL)
        return Ending("time" if late else "crashed", f"signal {os.WTERMSIG(status)}", seconds)
    return Ending(told[0] or "crashed", told[2], seconds)


def _line(reading: int) -> str:
    try:
        return os.read(reading, 1 << 16).decode()
    except BlockingIOError:
        return ""
    finally:
        os.close(reading)


def limit(seconds: float) -> None:
    """Let the kernel end this process after so much CPU time, or if it waits for far longer."""
    signal.setitimer(signal.ITIMER_PROF, 2 + 5 * seconds)
    signal.setitimer(signal.ITIMER_REAL, 60 + 40 * seconds)


def _be_child(work: Callable[[], None], writing: int) -> NoReturn:
    told = "survived"
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        here = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (here + _MOST_MEMORY, here + _MOST_MEMORY))
        work()
    except Gave as gave:
        told = f"{gave.outcome} {gave.by}"
    except BaseException as error:  # whatever a mutant does, the child only reports it
        told = f"killed {type(error).__name__}"
    finally:
        os.write(writing, told.encode())
        os._exit(0)
