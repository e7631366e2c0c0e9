"""A coordinator's studies, parties and runs; without anything of an owner: no ledger, cap or rows."""

import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

from syndic.console.studies import Sent, folder_of_study, read_study, shown_time, steps_of, view_of
from syndic.console.views import Overview, PartyLine, ProgressView, StudyView
from syndic.document import Document
from syndic.errors import InputError, RefusedError, SyndicError
from syndic.federation.coordinator import Coordinator
from syndic.federation.run import RunState, check_list, note_start, read_state
from syndic.kernel import PublicIdentity
from syndic.runtime.flare.coordinator import Flare
from syndic.study import Study
from syndic.study.agreement import Standing, State
from syndic.study.party_folder import run_digest
from syndic.study.statement import plan
from syndic.study.study_folder import StudyFolder
from syndic.version import __version__

# two simultaneous requests would both find that nothing is running
_STARTING = threading.Lock()


class Run(Document):
    """Run a study with the connected parties; `rehearsal` is the seed of a rehearsal that they agreed to."""

    rehearsal: int | None = None


def overview(folder: Path) -> Overview:
    """Return which federation this is, and how many studies are in which state."""
    found = Counter(line.state for line in studies(folder))
    name = Coordinator.open(folder).federation.name
    return Overview(role="coordinator", name=name, syndic=__version__, studies=dict(sorted(found.items())))


def studies(folder: Path) -> tuple[Standing, ...]:
    """Return the studies of the folder by name."""
    runs = sorted(path.parent.name for path in folder.glob("studies/*/study.json"))
    return tuple(sorted((_line(folder, run) for run in runs), key=lambda line: (line.study, line.edition)))


def receive(folder: Path, sent: Sent) -> Standing:
    """Store a study file, if every party of it is admitted."""
    study = read_study(sent)
    study.check()
    coordinator = Coordinator.open(folder)
    with coordinator.audit.attempt("receive", study=study.digest):
        check_list(study, coordinator)
        StudyFolder.of(folder, study.digest).put_study(study)
    return _line(folder, study.digest)


def study(folder: Path, run: str) -> StudyView:
    """Return a study's plan and parties, and whether it could run."""
    line, content = _line(folder, run), folder_of_study(folder, run).study()
    problem, planned = "", None
    try:
        planned = plan(content)
        check_list(content, Coordinator.open(folder))
    except SyndicError as error:
        problem = str(error)
    return view_of(content, line, planned, problem)


def parties(folder: Path) -> tuple[PartyLine, ...]:
    """Return the admitted parties, and which are connected now."""
    coordinator = Coordinator.open(folder)
    try:
        here: set[str] | None = set(Flare(coordinator.socket, study="", most=0).connected())
    except InputError:
        # the server is not running
        here = None
    return tuple(
        PartyLine(
            party=one.party,
            fingerprint=PublicIdentity.read(one.identity).fingerprint,
            expires=one.expires,
            connected=None if here is None else one.party in here,
        )
        for one in coordinator.admitted()
    )


def run(folder: Path, which: str, asked: Run) -> Standing:
    """Start the run in its own process; a stopped run continues from its journal."""
    with _STARTING:
        return _run(folder, folder_of_study(folder, which).study(), asked)


def _run(folder: Path, content: Study, asked: Run) -> Standing:
    coordinator, digest = Coordinator.open(folder), run_digest(content, asked.rehearsal)
    with coordinator.audit.attempt("start", study=digest):
        _start(coordinator, content, digest, asked)
    return _line(folder, digest)


def _start(coordinator: Coordinator, content: Study, digest: str, asked: Run) -> None:
    folder = coordinator.folder
    state = read_state(folder, digest)
    if state is not None and state.state == "running" and state.alive:
        raise RefusedError("this run is already running")
    check_list(content, coordinator)
    stored = StudyFolder.of(folder, digest)
    stored.put_study(content)
    target = folder / "releases" / (digest[:16] + ("" if asked.rehearsal is None else "-rehearsal"))
    target.parent.mkdir(exist_ok=True, mode=0o700)
    command = [sys.executable, "-P", "-m", "syndic", "run", str(stored.folder / "study.json"), "--home", str(folder)]
    command += ["--out", str(target), "--json"]
    command += [] if asked.rehearsal is None else ["--rehearsal", str(asked.rehearsal)]
    with (stored.folder / "run.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
    note_start(folder, digest, process.pid)
    # without a wait, the ended process would count as alive
    threading.Thread(target=process.wait, daemon=True).start()


def progress(folder: Path, run: str) -> ProgressView:
    """Return which steps were asked, and which parties the run waits for."""
    content, line, state = folder_of_study(folder, run).study(), _line(folder, run), read_state(folder, run)
    # a run also says how far it is with what no party is asked for, such as drawing rows
    steps = [one for one in state.asked if one.step in content.steps] if state else []
    asked = {one.step: (one.answered, len(one.silent), one.at.isoformat()) for one in steps}
    return ProgressView(
        run=run,
        study=content.name,
        state=line.state,
        words=_words(line.state, state),
        steps=steps_of(content, asked),
        waiting=state.waiting if state is not None and line.state == "running" else (),
        said=f"{state.sent_bytes:,} bytes sent, {state.received_bytes:,} received" if state else "nothing",
        updated=shown_time(state.updated.isoformat()) if state else "",
    )


def _line(folder: Path, run: str) -> Standing:
    stored = folder_of_study(folder, run)
    try:
        content = stored.study()
    except SyndicError as error:
        return Standing(study=f"damaged: {error}", run=run, state="damaged")
    state = read_state(folder, run)
    stopped = state is not None and state.state == "running" and not state.alive
    own = content.digest.startswith(stored.digest[:16])
    return Standing(
        study=content.name if own else f"{content.name} (rehearsal)",
        run=content.digest if own else state.run if state else run,
        state="pending" if state is None else "stopped" if stopped else state.state,
        edition=content.edition,
        method=content.protocol.title,
        since=state.updated if state else stored.time_of("study.json"),
    )


def _words(line: State, state: RunState | None) -> str:
    if state is None:
        return "The run has not started."
    if line == "running":
        if not state.step:
            return "The run is starting."
        waiting = f", waiting for {', '.join(state.waiting)}" if state.waiting else ""
        return f"Step '{state.step}'{waiting}."
    if line == "stopped":
        return "The run was stopped. Run it again: it continues where it stopped, and nothing is charged twice."
    if line == "finished":
        return "The run is finished; its release is listed as soon as it is written."
    return f"The run failed: {state.text}"
