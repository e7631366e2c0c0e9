"""The owner's ledger for reading: spent and left over time, entries, the check of the chain, exports."""

import tempfile
from datetime import UTC, datetime
from fractions import Fraction
from math import isfinite
from pathlib import Path

from syndic.console.studies import shown_time
from syndic.console.views import EntryLine, LedgerView, Point, SetLine, Verified
from syndic.document import Document
from syndic.errors import IntegrityError
from syndic.privacy import Cost, Entry, Ledger
from syndic.report import Curve, Line
from syndic.study import PartyFolder
from syndic.study import agreement as owner

_MOST_ENTRIES = 200
_UNITS = (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))


class Verify(Document):
    """Check the chain; `published` is a head that somebody else kept."""

    published: str = ""


def ledger(folder: Path) -> LedgerView:
    """Return the ledger of the home: per data set, over time, and its last entries, calls left out."""
    with _open(folder) as book:
        try:
            spendings, whole = [book.spent(dataset) for dataset in book.datasets()], True
        except IntegrityError:
            # a ledger that was changed counts nothing, but its entries can still be looked at
            spendings, whole = [], False
        entries = list(book.entries())
        head = book.head()
    told = [one for one in entries if one.kind != "call"]
    return LedgerView(
        sets=tuple(
            SetLine(
                dataset=one.dataset,
                epsilon=float(one.epsilon) if isfinite(one.epsilon) else None,
                cap=float(one.cap.epsilon),
                delta=float(one.delta),
                left=float(one.left),
            )
            for one in spendings
        ),
        history={one.dataset: _history(entries, one.dataset) for one in spendings},
        entries=tuple(_line(one) for one in told[: -_MOST_ENTRIES - 1 : -1]),
        total=len(entries),
        head=head,
        whole=whole,
    )


def verify(folder: Path, asked: Verify) -> Verified:
    """Check that nothing in the ledger was changed, cut or put in another order."""
    with _open(folder) as book:
        try:
            book.verify(published=asked.published.strip() or None)
            words, whole = "The ledger is whole: every entry follows from the one before.", True
        except IntegrityError as error:
            # without the folder: the owner knows it, and a screenshot need not
            words, whole = str(error).removeprefix(f"{PartyFolder(folder=folder).ledger}: "), False
        try:
            return Verified(whole=whole, words=words, entries=sum(1 for _ in book.entries()), head=book.head())
        except IntegrityError:
            return Verified(whole=False, words=words, entries=0, head="")


def export_json(folder: Path) -> bytes:
    """Return all entries as JSON."""
    return _exported(folder, "ledger.json")


def export_csv(folder: Path) -> bytes:
    """Return all entries as a table."""
    return _exported(folder, "ledger.csv")


def spending_figure(dataset: str, points: tuple[Point, ...]) -> str:
    """Return the picture of what was spent on a data set and its cap, entry by entry, as SVG."""
    unit, times = _times(points)
    last = points[-1]
    figure = Curve(
        title=f"Spent on {dataset}",
        description=f"Epsilon {last.epsilon:.4g} of {last.cap:.4g} is spent after entry {last.number}.",
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


def _exported(folder: Path, name: str) -> bytes:
    with tempfile.TemporaryDirectory() as place, _open(folder) as book:
        book.export(Path(place) / name)
        return (Path(place) / name).read_bytes()


def _open(folder: Path) -> Ledger:
    home = PartyFolder(folder=folder)
    # with the cap that the owner's file says now
    owner.studies(home)
    return Ledger.open(home.ledger, create=False)


def _history(entries: list[Entry], dataset: str) -> tuple[Point, ...]:
    """Return what was spent after every charge and every new cap."""
    points: list[Point] = []
    cost = Cost()
    cap = (Fraction(0), Fraction(0))
    for entry in entries:
        if entry.dataset != dataset or entry.kind not in {"declare", "reserve"}:
            continue
        if entry.cap is not None:
            cap = (entry.cap.epsilon, entry.cap.delta)
        # each charge rounded up: quick, and a hair above what `spent` says
        cost = cost + entry.cost
        epsilon = cost.epsilon(cap[1])
        if isfinite(epsilon):
            points.append(Point(number=entry.number, time=entry.time, epsilon=float(epsilon), cap=float(cap[0])))
    return tuple(points)


def _line(entry: Entry) -> EntryLine:
    return EntryLine(
        number=entry.number,
        time=shown_time(entry.time),
        kind=entry.kind,
        dataset=entry.dataset,
        study=entry.study[:16],
        charge="; ".join(event.what for event in entry.events),
        why=entry.why,
        hash=entry.hash,
    )


def _times(points: tuple[Point, ...]) -> tuple[str, list[float]]:
    """Return a fitting unit and how many of them lie between the first point and each, and now."""
    moments = [datetime.fromisoformat(point.time) for point in points] + [datetime.now(UTC)]
    seconds = [max((moment - moments[0]).total_seconds(), 0.0) for moment in moments]
    unit, size = next((one for one in _UNITS if seconds[-1] > 2 * one[1]), _UNITS[-1])
    return unit, [value / size for value in seconds]


def _stairs(times: list[float], values: list[float]) -> tuple[tuple[float, float], ...]:
    """Return the values joined by steps up to now: nothing is spent between entries."""
    stairs: list[tuple[float, float]] = []
    for time, value in zip(times, [*values, values[-1]], strict=True):
        if stairs:
            stairs.append((time, stairs[-1][1]))
        stairs.append((time, value))
    return tuple(stairs)
