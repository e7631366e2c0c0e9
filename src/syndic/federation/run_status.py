"""A coordinator's run while it is running: which step, whom it waits for, how much was said; kept in one small file.

Nothing in it is private: who takes part and the steps are in the study, the rest is sizes and times.
"""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, final

from syndic.document import Document, from_file, to_readable_json
from syndic.errors import InputError
from syndic.kernel import Delivery, Progress, Runtime
from syndic.study.study_folder import StudyFolder, write_whole

_FILE = "progress.json"
_MOST_AT_ONCE = 256


class Asked(Document):
    """A step: how often it was asked, and who gave no answer the last time."""

    step: str
    times: int
    silent: tuple[str, ...]
    at: datetime


class RunState(Document):
    """How far a run is; `process` is the one that runs it, `text` why it ended if it failed."""

    run: str
    state: Literal["running", "finished", "failed"]
    process: int
    step: str
    waiting: tuple[str, ...]
    asked: tuple[Asked, ...]
    sent_bytes: int
    received_bytes: int
    updated: datetime
    text: str = ""

    @property
    def alive(self) -> bool:
        """Whether the process that runs it is still there."""
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


def read_state(folder: Path, run: str) -> RunState | None:
    """Return how far a run of a coordinator's folder is; None if it never began."""
    path = StudyFolder.of(folder, run).folder / _FILE
    return from_file(path, RunState) if path.is_file() else None


def note_start(folder: Path, run: str, process: int) -> None:
    """Note that a process was started for a run, before it can say so itself."""
    _write(folder, _first(run, process))


def _first(run: str, process: int) -> RunState:
    return RunState(
        run=run,
        state="running",
        process=process,
        step="",
        waiting=(),
        asked=(),
        sent_bytes=0,
        received_bytes=0,
        updated=datetime.now(UTC),
    )


def _write(folder: Path, state: RunState) -> None:
    path = StudyFolder.of(folder, state.run).folder / _FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(path, to_readable_json(state))
    except OSError as error:
        raise InputError(f"{path.name}: the run's progress cannot be written: {error.strerror}") from None


@final
class Watched:
    """A runtime that writes down how far it is; each party is asked by itself, so that the slow one has a name."""

    def __init__(self, runtime: Runtime, *, folder: Path, run: str, progress: Progress) -> None:
        """Watch `runtime` in a run with that digest; its stored in `folder` gets the file."""
        self._runtime = runtime
        self._folder = folder
        self._progress = progress
        self._state = _first(run, os.getpid())
        self._put()

    def progress(self, what: str, done: int, total: int) -> None:
        """Note the step, and hand on."""
        if what != self._state.step:
            self._put(step=what)
        self._progress(what, done, total)

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        """Send every party its bytes by the runtime below."""
        replies: dict[str, bytes] = {}
        silent: dict[str, str] = {}
        self._put(waiting=tuple(calls), sent_bytes=self._state.sent_bytes + sum(map(len, calls.values())))
        with ThreadPoolExecutor(max_workers=min(_MOST_AT_ONCE, len(calls))) as pool:
            waiting = {pool.submit(self._one, party, data, seconds): party for party, data in calls.items()}
            for future in as_completed(waiting):
                delivery = future.result()
                replies |= delivery.replies
                silent |= delivery.silent
                self._put(
                    waiting=tuple(party for party in calls if party not in replies and party not in silent),
                    received_bytes=self._state.received_bytes + sum(map(len, delivery.replies.values())),
                )
                arrived(len(replies))
        self._put(asked=self._asked(tuple(silent)))
        return Delivery(replies=replies, silent=silent)

    def end(self, error: BaseException | None) -> None:
        """Note how the run ended."""
        self._put(state="finished" if error is None else "failed", waiting=(), text="" if error is None else str(error))

    def close(self) -> None:
        """Close the runtime below."""
        self._runtime.close()

    def _asked(self, silent: tuple[str, ...]) -> tuple[Asked, ...]:
        known = {one.step: one for one in self._state.asked}
        before, step = known.get(self._state.step), self._state.step
        known[step] = Asked(step=step, times=before.times + 1 if before else 1, silent=silent, at=datetime.now(UTC))
        return tuple(known.values())

    def _one(self, party: str, data: bytes, seconds: float) -> Delivery:
        return self._runtime.send({party: data}, seconds=seconds, arrived=_not_told)

    def _put(self, **changed: object) -> None:
        fields = {name: getattr(self._state, name) for name in RunState.__struct_fields__}
        self._state = RunState(**{**fields, "updated": datetime.now(UTC), **changed})
        _write(self._folder, self._state)


def _not_told(_done: int) -> None:
    """One call has no progress of its own."""
