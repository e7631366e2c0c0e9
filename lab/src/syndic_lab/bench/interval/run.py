"""`bench interval`: how often intervals of releases cover, beside real rows and drawn rows that are taken as real.

Releases are independent, so they run in several processes. With a file, each is appended to it as it ends, and those
that it has are not run again; with no process, what it has is all that is shown.
"""

from collections.abc import Iterable, Iterator
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import numpy as np

from syndic.document import from_json, to_json
from syndic_lab.bench.interval.population import FEW_LEVELS, MADE_UP
from syndic_lab.bench.interval.release import Layout, Outcome, Setting, outcome
from syndic_lab.bench.row import Row, standard_error

PEOPLE: Final = (2_000, 20_000)
EPSILONS: Final = ("0.5", "1", "3")
LAYOUTS: Final[tuple[Layout, ...]] = ("curator", "horizontal", "vertical")
# of each layout: 201 of a population, size and epsilon
RELEASES: Final = 67
ADULT: Final = 45_222
OF_ADULT: Final = 50


def settings(quick: bool) -> list[Setting]:
    """Return all releases, one of every kind before the second of any, so that a part of them says something."""
    kinds, found = list(product(MADE_UP, PEOPLE, EPSILONS, LAYOUTS)), list[Setting]()
    for seed in range(1, 2 if quick else RELEASES + 1):
        found += [
            Setting(population=kind, people=people, epsilon=epsilon, layout=layout, seed=seed)
            for kind, people, epsilon, layout in kinds
        ]
        if seed <= OF_ADULT:
            found.append(Setting(population="adult", people=ADULT, epsilon="0.8", layout="horizontal", seed=seed))
    return found


def rows(quick: bool, processes: int = 1, file: Path | None = None) -> Iterator[Row]:
    """Yield coverage, widths and refusals by setting, by kind of question, in all, and the worst cells."""
    found = list(_outcomes(settings(quick), processes, file))
    made_up = [one for one in found if one.setting.population != "adult"]
    for kind in (*MADE_UP, "adult"):
        yield from _of(kind, [one for one in found if one.setting.population == kind])
    for layout, people, epsilon in product(LAYOUTS, PEOPLE, EPSILONS):
        wanted = (layout, people, epsilon)
        kept = [one for one in made_up if (one.setting.layout, one.setting.people, one.setting.epsilon) == wanted]
        yield from _of(_named(*wanted), kept)
    for kind in dict.fromkeys(each.kind for one in found for each in one.asked):
        yield from _of(f"kind of question: {kind}", found, kind)
    yield from _of("all made-up populations", made_up)
    for layout in LAYOUTS:
        wanted = (layout, PEOPLE[-1], "1")
        kept = [one for one in made_up if (one.setting.layout, one.setting.people, one.setting.epsilon) == wanted]
        yield from _of(f"few levels, {_named(*wanted)}", [one for one in kept if one.setting.population in FEW_LEVELS])
    yield from _worst(made_up)
    seconds = [sum(each.seconds for each in one.asked) for one in found if one.setting.population == "adult"]
    if seconds:
        yield _row("adult", "CPU seconds of all questions, mean", float(np.mean(seconds)), "s")


def _outcomes(wanted: Iterable[Setting], processes: int, file: Path | None) -> Iterator[Outcome]:
    wanted = list(wanted)
    lines = file.read_text(encoding="utf-8").splitlines() if file is not None and file.is_file() else []
    done = {one.setting: one for one in (from_json(line.encode(), Outcome, where=str(file)) for line in lines)}
    yield from (done[one] for one in wanted if one in done)
    left = [one for one in wanted if one not in done] if processes else []
    if not left:
        return
    with get_context("spawn").Pool(processes) as pool:
        for one in pool.imap_unordered(outcome, left):
            if file is not None:
                with file.open("a", encoding="utf-8") as sink:
                    sink.write(to_json(one).decode() + "\n")
            yield one


def _of(what: str, found: list[Outcome], kind: str | None = None) -> Iterator[Row]:
    """Yield what became of questions; the baseline of coverage is that of drawn rows taken as real."""
    releases = [[each for each in one.asked if kind in (None, each.kind)] for one in found]
    asked = [each for one in releases for each in one]
    kept = [each for each in asked if each.covers is not None]
    if not kept:
        return
    # questions about one release depend on each other: the error is that of a mean over releases
    inside = [[each.covers is True for each in one if each.covers is not None] for one in releases]
    error = standard_error([float(np.mean(one)) for one in inside if one])
    what = f"{what} ({len(found)} releases)"
    drawn, real = (float(np.mean(one)) for one in ([each.drawn for each in kept], [each.real for each in kept]))
    coverage = float(np.mean([each.covers is True for each in kept]))
    yield _row(what, "coverage; baseline: drawn rows as if real", coverage, "1", drawn, error, len(found))
    yield _row(what, "coverage of real rows", real, "1")
    yield _row(what, "width / that of real rows, median", float(np.median([one.width for one in kept])), "1")
    yield _row(what, "refused", 1 - len(kept) / len(asked), "1")


def _worst(found: list[Outcome]) -> Iterator[Row]:
    """Yield the lowest and highest coverage of a population, size and epsilon, all layouts together."""
    cells: dict[str, list[Outcome]] = {}
    for one in found:
        own = one.setting
        cells.setdefault(f"{own.population}, {own.people:,} people, epsilon {own.epsilon}", []).append(one)
    lines = [next(_of(what, kept), None) for what, kept in cells.items()]
    known = sorted((one for one in lines if one is not None), key=lambda one: one.value)
    for name, end in (("lowest", known[0]), ("highest", known[-1])) if known else ():
        what = f"{name} of {len(known)} cells: {end.row}"
        yield _row(what, end.metric, end.value, "1", end.baseline, end.error, end.runs)


def _named(layout: Layout, people: int, epsilon: str) -> str:
    return f"{layout}, {people:,} people, epsilon {epsilon}"


def _row(
    what: str,
    metric: str,
    value: float,
    unit: str,
    baseline: float | None = None,
    error: float | None = None,
    runs: int | None = None,
) -> Row:
    return Row(
        bench="interval", row=what, metric=metric, value=value, unit=unit, baseline=baseline, error=error, runs=runs
    )
