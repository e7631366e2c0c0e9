"""Run items in one or several processes, each result on disk as soon as it is there, and none twice."""

import hashlib
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import replace

from syndic.document import Document, from_file, to_json, to_readable_json
from syndic.errors import InputError, SyndicError
from syndic.report.figure import Bars, Curve
from syndic.version import __version__
from syndic_lab.bench.row import Row
from syndic_lab.reproduce.item import Item, Measure, Verdict
from syndic_lab.reproduce.pace import Pace, calibrated, in_words

State = Literal["done", "kept", "failed", "no data", "no library", "not quick", "not reproducible"]
Tell = Callable[[str], None]


class Outcome(Document):
    """What one item gave. `key` is a digest of everything that it depends on: version, parameters, data."""

    item: str
    key: str
    version: str
    quick: bool
    cpu_seconds: float
    seconds: float
    rows: tuple[Row, ...]
    curves: tuple[Curve, ...] = ()
    bars: tuple[Bars, ...] = ()


class Done(Document):
    """An item with what became of it; `why` where there is no outcome."""

    name: str
    state: State
    why: str = ""
    outcome: Outcome | None = None
    verdicts: tuple[Verdict, ...] = ()


def silent(_text: str) -> None:
    """Say nothing."""


def reproduce(items: Sequence[Item], folder: Path, *, quick: bool, jobs: int = 1, tell: Tell = silent) -> list[Done]:
    """Run what can be run and is not yet in the folder; every item is accounted for in the answer.

    With several `jobs`, items of the catalogue run in as many processes, those that measure time before all others and
    alone. An interrupted run goes on where it was: what is finished is read, the item or piece under way starts again.
    """
    (folder / "items").mkdir(parents=True, exist_ok=True)
    found: dict[str, Done] = {}
    for item in items:
        stated = reason_not_to(item, quick)
        outcome = None if stated else _kept(item, folder, quick)
        if stated:
            found[item.name] = Done(name=item.name, state=stated[0], why=stated[1])
        elif outcome:
            found[item.name] = _done(item, outcome, "kept")
    waiting = [item for item in items if item.name not in found]
    if waiting:
        pace = Pace(waiting, quick, calibrated() / jobs)
        there = sum(one.state == "kept" for one in found.values())
        tell(f"{len(waiting)} to run, {there} already there: about {in_words(pace.remaining)}")
        found |= _run_all(waiting, folder, quick, jobs, pace, tell)
    return [found[item.name] for item in items]


def _run_all(waiting: Sequence[Item], folder: Path, quick: bool, jobs: int, pace: Pace, tell: Tell) -> dict[str, Done]:
    """Run items, as many at a time as there are jobs."""
    queue = deque(waiting)
    if jobs > 1:  # a long item at the end would run by itself
        queue = deque(sorted(waiting, key=lambda item: (not item.timed, -(item.expected(quick) or 0.0))))
    found: dict[str, Done] = {}
    running: dict[Future[Done], Item] = {}
    began = time.perf_counter()
    with _Here() if jobs == 1 else _processes(jobs) as workers:
        while queue or running:
            timed = any(item.timed for item in running.values())
            while queue and len(running) < (1 if timed or queue[0].timed else jobs):
                item = queue.popleft()
                place = len(waiting) - len(queue)
                tell(f"{place}/{len(waiting)} {item.name}: {item.where}; about {in_words(pace.remaining)} left")
                work = partial(_run, item) if jobs == 1 else partial(_run_named, item.name)
                running[workers.submit(work, folder, quick)] = item
                timed = timed or item.timed
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                item = running.pop(future)
                found[item.name] = done = future.result()
                pace.done(item, time.perf_counter() - began)
                if done.state == "failed":
                    tell(f"{item.name} failed: {done.why}")
    return found


class _Here(Executor):
    """Runs what is submitted at once, in this process."""

    def submit(self, fn: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*given, **named))
        return future


def _processes(jobs: int) -> Executor:
    """Return fresh processes with one thread of linear algebra each: more would wait for each other."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    return ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))


def _run_named(name: str, folder: Path, quick: bool) -> Done:
    """Run an item of the catalogue: its functions are found by name, since most cannot be sent to a process."""
    from syndic_lab.reproduce.catalogue import CATALOGUE  # noqa: PLC0415  # the catalogue imports this package

    return _run(next(item for item in CATALOGUE if item.name == name), folder, quick)


def reason_not_to(item: Item, quick: bool) -> tuple[State, str] | None:
    """Return why an item cannot or shall not be run here, None if it can."""
    if item.measure is None:
        return "not reproducible", item.reason
    folder = os.environ.get("SYNDIC_DATA")
    missing = [file for file in item.needs if folder is None or not (Path(folder) / file).exists()]
    if missing:
        where = f". {item.reason}" if item.reason else ""
        return "no data", f"needs {', '.join(missing)}: set SYNDIC_DATA to a folder that has it{where}"
    absent = [name for name in item.libraries if find_spec(name) is None]
    if absent:
        return "no library", f"needs {', '.join(absent)}: install the extra 'bench'"
    if item.expected(quick) is None:
        return "not quick", "left out of a quick run"
    return None


def key_of(item: Item, quick: bool) -> str:
    """Return a digest of version, item, effort and data."""
    digest = hashlib.sha256(to_json([__version__, item.name, quick]))
    for file in item.needs:
        with (Path(os.environ["SYNDIC_DATA"]) / file).open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()[:32]


def _path(item: Item, folder: Path, piece: str = "") -> Path:
    return folder / "items" / f"{item.name}{piece and '.'}{piece}.json"


def _kept(item: Item, folder: Path, quick: bool, piece: str = "") -> Outcome | None:
    path = _path(item, folder, piece)
    if not path.exists():
        return None
    try:
        outcome = from_file(path, Outcome)
    except InputError:
        # written by another version: measured again
        return None
    return outcome if outcome.key == key_of(item, quick) else None


def _run(item: Item, folder: Path, quick: bool) -> Done:
    try:
        outcome = _measured(item, folder, quick)
    except SyndicError as error:
        return Done(name=item.name, state="failed", why=str(error))
    except Exception as error:  # one broken measurement must not lose an hour of others
        return Done(name=item.name, state="failed", why=f"{type(error).__name__}: {error}")
    _keep(outcome, _path(item, folder))
    return _done(item, outcome, "done")


def _keep(outcome: Outcome, path: Path) -> None:
    part = path.with_suffix(".part")
    part.write_bytes(to_readable_json(outcome))
    part.replace(path)


def _measured(item: Item, folder: Path, quick: bool) -> Outcome:
    """Measure an item, in a full run piece by piece: what was kept of an interrupted run is not measured again."""
    if item.measure is None:
        raise InputError(f"{item.name} cannot be run: {item.reason}")
    if quick or not item.pieces:
        return _timed(item, item.measure, quick)
    found = []
    for name, measure in item.pieces:
        outcome = _kept(item, folder, quick, name)
        if outcome is None:
            outcome = _timed(item, measure, quick)
            _keep(outcome, _path(item, folder, name))
        found.append(outcome)
    return replace(
        found[0],
        cpu_seconds=sum(one.cpu_seconds for one in found),
        seconds=sum(one.seconds for one in found),
        rows=tuple(row for one in found for row in one.rows),
        curves=tuple(curve for one in found for curve in one.curves),
        bars=tuple(bars for one in found for bars in one.bars),
    )


def _timed(item: Item, measure: Measure, quick: bool) -> Outcome:
    start, busy = time.perf_counter(), processor_seconds()
    parts = list(measure(quick))
    return Outcome(
        item=item.name,
        key=key_of(item, quick),
        version=__version__,
        quick=quick,
        cpu_seconds=round(processor_seconds() - busy, 2),
        seconds=round(time.perf_counter() - start, 2),
        rows=tuple(part for part in parts if isinstance(part, Row)),
        curves=tuple(part for part in parts if isinstance(part, Curve)),
        bars=tuple(part for part in parts if isinstance(part, Bars)),
    )


def processor_seconds() -> float:
    """Return the processor seconds of this process and of children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _done(item: Item, outcome: Outcome, state: State) -> Done:
    return Done(name=item.name, state=state, outcome=outcome, verdicts=tuple(item.verdicts(outcome.rows)))


def machine() -> tuple[tuple[str, str], ...]:
    """Return what a reader must know about where this was measured."""
    import platform  # noqa: PLC0415  # only a report needs it

    return (
        ("Syndic", __version__),
        ("Python", sys.version.split()[0]),
        ("system", f"{platform.system()} {platform.machine()}"),
        ("processors", str(os.cpu_count())),
    )
