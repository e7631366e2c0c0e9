"""The owner's ledger for reading: what was spent over time and by each study, entries, verification, exports."""

import tempfile
from datetime import UTC, datetime
from itertools import pairwise
from math import isfinite
from pathlib import Path

from syndic.console.views import LedgerView, Point, Verified
from syndic.document import Document
from syndic.errors import IntegrityError
from syndic.privacy import Budget, Cost, Entry, Ledger, shown
from syndic.privacy.filter import Charged
from syndic.report import Curve, Line
from syndic.study import PartyFolder
from syndic.study import agreement as owner

_MOST_ENTRIES = 200
_UNITS = (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))


class Verify(Document):
    """Verify the chain; `published` is a head that somebody else kept."""

    published: str = ""


def ledger(folder: Path) -> LedgerView:
    """Return the ledger of the party folder: per data set, per study, over time, and its last entries without calls."""
    with _open(folder) as book:
        try:
            spent, of_studies = tuple(book.spent(dataset) for dataset in book.datasets()), book.studies()
            whole = True
        except IntegrityError:
            # a ledger that was changed counts nothing, but its entries can still be read
            spent, of_studies, whole = (), (), False
        entries = list(book.entries())
        head = book.head()
    told = [one for one in entries if one.kind != "call"]
    return LedgerView(
        sets=spent,
        studies=of_studies,
        history={one.dataset: _history(entries, one.dataset) for one in spent},
        entries=tuple(told[: -_MOST_ENTRIES - 1 : -1]),
        total=len(entries),
        head=head,
        whole=whole,
    )


def verify(folder: Path, asked: Verify) -> Verified:
    """Check that no entry of the ledger was changed, removed or reordered."""
    with _open(folder) as book:
        try:
            book.verify(published=asked.published.strip() or None)
            words, whole = "The ledger is verified: every entry follows from the one before.", True
        except IntegrityError as error:
            # without the folder: a screenshot need not show it
            words, whole = str(error).removeprefix(f"{PartyFolder(folder=folder).ledger}: "), False
        try:
            return Verified(whole=whole, words=words, entries=sum(1 for _ in book.entries()), head=book.head())
        except IntegrityError:
            return Verified(whole=False, words=words, entries=0, head="")


def spending_figure(dataset: str, points: tuple[Point, ...]) -> str:
    """Return the picture of what was spent on a data set and its cap, entry by entry, as SVG."""
    unit, times = _times(points)
    last = points[-1]
    figure = Curve(
        title=f"Spent on {dataset}",
        description=f"Epsilon {shown(last.epsilon)} of the cap {shown(last.cap)} is spent after entry {last.number}.",
        width=640,
        lines=(
            Line("spent", _stairs(times, [point.epsilon for point in points])),
            Line("cap", _stairs(times, [point.cap for point in points])),
        ),
        x_axis=f"{unit} since {points[0].time[:16].replace('T', ' ')} UTC",
        y_axis="epsilon",
        y_least=0.0,
    )
    return figure.inline()


def exported(name: str, folder: Path) -> bytes:
    """Return all entries as `ledger.json` or `ledger.csv`."""
    with tempfile.TemporaryDirectory() as place, _open(folder) as book:
        book.export(Path(place) / name)
        return (Path(place) / name).read_bytes()


def _open(folder: Path) -> Ledger:
    home = PartyFolder(folder=folder)
    # puts the cap of the owner's party file in force
    owner.studies(home)
    return Ledger.open(home.ledger, create=False)


def _history(entries: list[Entry], dataset: str) -> tuple[Point, ...]:
    """Return what was spent after every charge and every new cap."""
    points: list[Point] = []
    first: Cost | None = None
    cap: Budget | None = None
    cost, studies = Cost(), set[str]()
    for entry in entries:
        if entry.dataset != dataset or entry.kind not in {"declare", "plan", "reserve"}:
            continue
        cap = entry.cap or cap
        if entry.kind != "declare":
            first = first or entry.cost
        if entry.kind == "plan" or cap is None:
            continue
        if entry.kind == "reserve":
            # each charge is rounded up: quick, and slightly above `spent`
            cost = cost + entry.cost
            studies.add(entry.study)
        charged = Charged(cost=cost, first=first or cost, alone=len(studies) < 2)
        epsilon = charged.epsilon(cap)
        if isfinite(epsilon):
            points.append(Point(number=entry.number, time=entry.time, epsilon=float(epsilon), cap=float(cap.epsilon)))
    return tuple(points)


def _times(points: tuple[Point, ...]) -> tuple[str, list[float]]:
    """Return a unit of time, and the times of all points and of now, in that unit since the first point."""
    moments = [datetime.fromisoformat(point.time) for point in points] + [datetime.now(UTC)]
    seconds = [max((moment - moments[0]).total_seconds(), 0.0) for moment in moments]
    unit, size = next((one for one in _UNITS if seconds[-1] > 2 * one[1]), _UNITS[-1])
    return unit, [value / size for value in seconds]


def _stairs(times: list[float], values: list[float]) -> tuple[tuple[float, float], ...]:
    """Return the values as a step function up to now: nothing is spent between entries."""
    steps = zip(pairwise(times), values, strict=True)
    return tuple((time, value) for ends, value in steps for time in ends)
