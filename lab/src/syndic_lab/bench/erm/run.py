"""Distributed learning without distress: every method and baseline, beside the digitised figure."""

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from syndic.errors import InputError
from syndic.report.figure import Curve, Line
from syndic_lab.bench.erm import cost as erm_cost
from syndic_lab.bench.erm import data as erm_data
from syndic_lab.bench.erm import published as erm_published
from syndic_lab.bench.erm import study as erm_study
from syndic_lab.bench.erm.experiment import (
    AGAINST,
    CHECKPOINTS,
    ITERATIONS,
    JOINT,
    LATE,
    Experiment,
    Trace,
    best_baseline,
)
from syndic_lab.bench.erm.newton import EPSILONS, Kinds
from syndic_lab.bench.row import Row

FOLDER = Path("bench-results")
PRINTED = tuple(erm_published.GAPS)
FIGURE = (*PRINTED, JOINT, "MPC Newton, sound", "MPC Grad P, sound", "MPC Out P, sound")
_TIMED = ("KDDCup99", 1000)

# data set and numbers of parties; the quick run has the middle number of the first two only
PLAN: tuple[tuple[Callable[[], erm_data.Split], tuple[int, ...]], ...] = (
    (erm_data.kddcup, (1000, 100, 50_000)),
    (erm_data.adult, (1000, 100, 30_000)),
    (erm_data.nslkdd, (1000, 100, 50_000)),
)


def rows(quick: bool) -> Iterator[Row]:
    """Yield gap and accuracy loss of each method, then the cost of a round; figures go to `bench-results`.

    A method's plain name is the authors' own variant. For the MPC methods the baseline is the best of the local
    methods and Pathak in the same variant and run.
    """
    for load, numbers in PLAN[:2] if quick else PLAN:
        try:
            split = load()
        except InputError as error:
            _tell(f"skipped: {error}")
            continue
        for parties in numbers[:1] if quick else numbers:
            experiment = Experiment(split=split, parties=parties, repeats=3 if quick else 5)
            traces = experiment.measure()
            yield from of_experiment(experiment, traces)
            _draw(experiment, traces)
        if not quick:
            yield from _other_epsilons(split, numbers[0])
    if not quick:
        yield from _kinds()
        yield from _studies()
    yield from erm_cost.rows(quick)


def _other_epsilons(split: erm_data.Split, parties: int) -> Iterator[Row]:
    """Yield the gap and loss of the few-round method and of MPC Grad P at other epsilons, the latter as baseline."""
    for epsilon in EPSILONS:
        experiment = Experiment(split=split, parties=parties, repeats=5, epsilon=epsilon)
        traces = experiment.few_and_many()
        few, many = traces["MPC Newton, sound"], traces["MPC Grad P, sound"]
        name = f"MPC Newton, sound, epsilon {float(epsilon):g}"
        yield _row(experiment, name, "gap", few.gap, many.gap)
        yield _row(experiment, name, "loss", few.loss, many.loss)


def _studies() -> Iterator[Row]:
    """Yield how good the method `learn` itself is, in a study."""
    try:
        yield from erm_study.rows(quick=False)
    except InputError as error:
        _tell(f"skipped: {error}")


def _kinds() -> Iterator[Row]:
    try:
        split, codes, test_codes = erm_data.kinds()
    except InputError as error:
        _tell(f"skipped: {error}")
        return
    yield from Kinds(split, codes, test_codes, repeats=5).rows()


def of_experiment(experiment: Experiment, traces: Mapping[str, Trace]) -> Iterator[Row]:
    """Yield the rows of one experiment."""
    words = ("",) if experiment.split.regression else ("", ", sound")
    best = {word: best_baseline(traces, word) for word in words}
    reference = experiment.reference
    for metric, value in (("objective", experiment.objective), ("accuracy", experiment.accuracy)):
        yield _row(experiment, "Central, no privacy", metric, value(reference))
    for name, trace in traces.items():
        for metric, measured, error in (("gap", trace.gap, trace.errors[0]), ("loss", trace.loss, trace.errors[1])):
            variant = ", sound" if ", sound" in name else ""
            baseline = best[variant][metric] if name.startswith("MPC") else None
            row = _row(experiment, name, metric, measured, baseline, published(experiment, name, metric))
            yield replace(row, error=error, runs=experiment.repeats)
    if (experiment.split.name, experiment.parties) == _TIMED:
        yield _row(experiment, f"MPC Grad P, {ITERATIONS} iterations", "seconds", experiment.seconds())


def published(experiment: Experiment, name: str, metric: str) -> float | None:
    """Return the published figure: the mean of the late points of Figure 1, or the order said in words."""
    match experiment.split.name, experiment.parties, name:
        case "KDDCup99", 1000, _:
            curves = erm_published.GAPS if metric == "gap" else erm_published.LOSSES
            if name == AGAINST:
                return float(np.mean(erm_published.LOSSES["MPC Out P"][LATE])) if metric == "loss" else None
            shown = "Rajkumar-Agarwal" if name == JOINT else name
            return float(np.mean(curves[shown][LATE])) if shown in curves else None
        case "KDDCup98", 1000, _:
            late = erm_published.REGRESSION_GAPS if metric == "gap" else erm_published.REGRESSION_LOSSES
            return late.get("Rajkumar-Agarwal" if name == JOINT else name)
        case "Adult", _, "MPC Grad P":
            return erm_published.ADULT_GAP if metric == "gap" else erm_published.ADULT_LOSS
    return None


def figure(title: str, curves: Mapping[str, tuple[float, ...]], metric: str, least: float) -> Curve:
    """Return one metric over the iterations, a line for each method; `least` stands for what is below it."""
    late = {name: float(np.mean(values[LATE])) for name, values in curves.items()}
    said = ", ".join(f"{name} {value:.2g}" for name, value in sorted(late.items(), key=lambda item: item[1]))
    return Curve(
        title=title,
        description=f"{metric} over iterations 800 to 1400, least first: {said}.",
        width=1200,
        # dots tell lines of one colour apart: there are fewer colours than methods
        lines=tuple(
            Line(
                name,
                tuple((float(x), max(y, least)) for x, y in zip(CHECKPOINTS, values, strict=False)),
                dots=name.startswith("MPC"),
            )
            for name, values in curves.items()
        ),
        x_axis="iteration",
        y_axis=metric,
        y_log=True,
    )


def _row(
    experiment: Experiment,
    name: str,
    metric: str,
    value: float,
    baseline: float | None = None,
    published_value: float | None = None,
) -> Row:
    units = {"gap": "nats", "objective": "nats", "seconds": "s"}
    return Row(
        bench="erm",
        row=f"{experiment.name}, {name}",
        metric=metric,
        value=value,
        unit=units.get(metric, "share"),
        baseline=baseline,
        published=published_value,
    )


def _draw(experiment: Experiment, traces: Mapping[str, Trace]) -> None:
    # half a test row: what a loss of exactly 0 is drawn at
    least = 0.5 / len(experiment.split.test_labels)
    gaps = {name: traces[name].gaps for name in FIGURE}
    losses = {name: traces[name].losses for name in FIGURE}
    _save(experiment, "gap", figure(f"{experiment.name}: optimality gap", gaps, "gap", 1e-6))
    _save(experiment, "loss", figure(f"{experiment.name}: accuracy loss", losses, "loss", least))
    if (experiment.split.name, experiment.parties) == _TIMED:
        for metric, curves in (("gap", erm_published.GAPS), ("loss", erm_published.LOSSES)):
            picture = figure(f"{experiment.name}: {metric} as published, digitised", curves, metric, least)
            _save(experiment, f"{metric}-published", picture)


def _save(experiment: Experiment, what: str, picture: Curve) -> None:
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"erm-{experiment.split.name.lower()}-m{experiment.parties}-{what}.svg"
    path.write_text(picture.to_svg(), encoding="utf-8")
    _tell(f"wrote {path}")


def _tell(text: str) -> None:
    sys.stderr.write(text + "\n")
