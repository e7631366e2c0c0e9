"""Run a study through the coordinator's server, and record the run's progress in one small file.

Nothing in that file is private: the parties and the steps are in the study, the rest is sizes and times.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, final

from msgspec.structs import replace

from syndic.document import Document, from_file, to_readable_json
from syndic.errors import InputError, PartyError
from syndic.federation.coordinator import Coordinator
from syndic.kernel import Delivery, Progress, Runtime, silent_progress
from syndic.kernel.call import ENVELOPE_BYTES
from syndic.runtime.flare.coordinator import Flare
from syndic.runtime.flare.parts import MOST_AT_ONCE
from syndic.runtime.gather import gather
from syndic.study.document import Study, coordinator_of
from syndic.study.party_folder import run_digest
from syndic.study.release import Release
from syndic.study.run import check_runnable, run_study
from syndic.study.study_folder import StudyFolder, write_whole

_FILE = "progress.json"


def run(
    study: Study,
    *,
    folder: str | Path,
    rehearsal: int | None = None,
    progress: Progress = silent_progress,
    seconds: float = 600.0,
    patience: float = 60.0,
    replies: str | Path | None = None,
) -> Release:
    """Run a study between organisations, as `syndic run` does, and return the release.

    The coordinator calls it, on the machine where `syndic coordinator start` runs; each party runs `syndic join` and
    has agreed to the study. A run that was interrupted continues from what the folder holds.

    Args:
        study: the agreed document, with the identity of every party.
        folder: the coordinator's folder, made by `syndic coordinator init`.
        rehearsal: seed of a rehearsal that the parties agreed to. Its release is not private and is labelled as such.
        progress: called with the step, how much of it is done, and how much there is.
        seconds: how long a party may take for one step.
        patience: how long, in seconds, a party may be disconnected before it counts as silent.
        replies: file for all signed calls and replies, to recompute the release from (`syndic recompute`).

    Raises:
        InputError: if the study is not usable, the folder is not a coordinator's, or its server does not run. Nothing
            was spent.
        PartyError: if a party refused, failed or stayed silent.
    """
    coordinator, digest = Coordinator.open(Path(folder)), run_digest(study, rehearsal)
    with coordinator.audit.attempt("run", study=digest):
        check_runnable(study, rehearsal)
        check_list(study, coordinator)
        most = study.limits.message_mb * 10**6 + ENVELOPE_BYTES
        server = Flare(coordinator.socket, study=digest, most=most, patience=patience)
        kept = coordinator.folder / "studies"
        kept.mkdir(exist_ok=True)
        kept.chmod(0o700)
        # the study and the progress of the run, for other readers of the folder
        StudyFolder.of(coordinator.folder, digest).put_study(study)
        runtime = Watched(server, folder=coordinator.folder, run=digest, progress=progress)
        try:
            _wait_for(server, study, patience, runtime.progress)
            release = run_study(
                study,
                runtime,
                seed=rehearsal,
                folder=kept,
                progress=runtime.progress,
                seconds=seconds,
                identity=coordinator.identity,
                replies=replies,
                checked=True,
            )
        except BaseException as error:
            runtime.end(error)
            raise
        runtime.end(None)
        return release


def check_list(study: Study, coordinator: Coordinator) -> None:
    """Raise `InputError`, before anything is asked, if a party is not admitted or an identity is another one."""
    admitted = {one.party: one for one in coordinator.admitted()}
    strangers = [party.name for party in study.parties if party.name not in admitted]
    if strangers:
        raise InputError(f"{', '.join(strangers)}: not admitted by this coordinator: approve the request first")
    for party in study.parties:
        if party.identity != admitted[party.name].identity:
            raise InputError(
                f"party '{party.name}': the study does not contain the identity that was approved: "
                f'identity = "{admitted[party.name].identity}"'
            )
    if coordinator_of(study) != coordinator.identity.public:
        raise InputError(
            f"{study.name}: the study names another coordinator: parties would refuse calls of this one. Its own line "
            f'is identity = "{coordinator.identity.public}"'
        )


def _wait_for(runtime: Flare, study: Study, patience: float, progress: Progress) -> None:
    """Wait some time for every party's site to connect; the method decides which absences a study tolerates."""
    names = {party.name for party in study.parties}
    end = time.monotonic() + patience
    while True:
        here = names & set(runtime.connected())
        progress("connected", len(here), len(names))
        if here == names:
            return
        if time.monotonic() > end:
            break
        time.sleep(1.0)
    if not here:
        raise PartyError("no party is connected: start every site with `syndic join`, then run again")


class Asked(Document):
    """A step: the answers of all parties, and who did not answer the last time."""

    step: str
    silent: tuple[str, ...]
    at: datetime
    answered: int = 0


class RunState(Document, frozen=True, kw_only=True):
    """The progress of a run; `process` is its process id, `text` the error if it failed."""

    run: str
    state: Literal["running", "finished", "failed"] = "running"
    process: int
    step: str = ""
    waiting: tuple[str, ...] = ()
    asked: tuple[Asked, ...] = ()
    sent_bytes: int = 0
    received_bytes: int = 0
    updated: datetime
    text: str = ""

    @property
    def alive(self) -> bool:
        """Whether its process is still running."""
        try:
            os.kill(self.process, 0)
        except OSError as error:
            return isinstance(error, PermissionError)
        return True


def read_state(folder: Path, run: str) -> RunState | None:
    """Return the progress of a run in a coordinator's folder; None if it never started."""
    path = StudyFolder.of(folder, run).folder / _FILE
    return from_file(path, RunState) if path.is_file() else None


def note_start(folder: Path, run: str, process: int) -> None:
    """Record that a process was started for a run, before the process can do so."""
    _write(folder, RunState(run=run, process=process, updated=datetime.now(UTC)))


def _write(folder: Path, state: RunState) -> None:
    path = StudyFolder.of(folder, state.run).folder / _FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(path, to_readable_json(state))
    except OSError as error:
        raise InputError(f"{path.name}: the run's progress cannot be written: {error.strerror}") from None


@final
class Watched:
    """A runtime that records its progress; each party is asked separately, so that a slow one can be named."""

    def __init__(self, runtime: Runtime, *, folder: Path, run: str, progress: Progress) -> None:
        """Record the progress of `runtime` in the folder of the run with that digest."""
        self._runtime = runtime
        self._folder = folder
        self._progress = progress
        self._lock = threading.Lock()
        self._state = RunState(run=run, process=os.getpid(), updated=datetime.now(UTC))
        self._put()

    def progress(self, what: str, done: int, total: int) -> None:
        """Record the step, and pass it on."""
        if what != self._state.step:
            self._put(step=what)
        self._progress(what, done, total)

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        """Send every party its bytes through the wrapped runtime."""
        self._put(waiting=tuple(calls), sent_bytes=self._state.sent_bytes + sum(map(len, calls.values())))
        delivery = gather(calls, self._exchange, seconds=seconds, arrived=arrived, at_once=MOST_AT_ONCE)
        asked, step = {one.step: one for one in self._state.asked}, self._state.step
        answered = len(delivery.replies) + (asked[step].answered if step in asked else 0)
        asked[step] = Asked(step=step, silent=tuple(delivery.silent), at=datetime.now(UTC), answered=answered)
        self._put(asked=tuple(asked.values()))
        return delivery

    def _exchange(self, party: str, data: bytes, deadline: float) -> bytes | str:
        """Return the reply of one party, or the reason why there is none; record that it is no longer waited for."""
        left = max(deadline - time.monotonic(), 0.0)
        # a single call has no progress
        delivery = self._runtime.send({party: data}, seconds=left, arrived=lambda _done: None)
        outcome = delivery.replies.get(party, delivery.silent.get(party, ""))
        received = len(outcome) if isinstance(outcome, bytes) else 0
        with self._lock:
            self._put(
                waiting=tuple(one for one in self._state.waiting if one != party),
                received_bytes=self._state.received_bytes + received,
            )
        return outcome

    def end(self, error: BaseException | None) -> None:
        """Record how the run ended."""
        self._put(state="finished" if error is None else "failed", waiting=(), text="" if error is None else str(error))

    def close(self) -> None:
        """Close the wrapped runtime."""
        self._runtime.close()

    def _put(self, **changed: Any) -> None:
        self._state = replace(self._state, updated=datetime.now(UTC), **changed)
        _write(self._folder, self._state)
