"""HOMM's experiments 1 to 5 (Su and Liu 2020, Table I and Figure 1), run with Syndic's own protocol code.

The choices that the paper leaves open (bounds, bins, weights, grids) are constants here, never computed from rows;
`lab/docs/experiments-homm.md` gives the reasons, what else was tried and what came of it.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from syndic.data import Schema
from syndic.errors import InputError
from syndic.report.figure import Curve, Line
from syndic_lab.bench.homm import data
from syndic_lab.bench.homm.experiment import (
    Experiment,
    Mark,
    Outcome,
    average_party,
    best_party,
    largest_party,
    like_original,
    smallest_party,
    threshold,
)
from syndic_lab.bench.homm.model import check_sklearn, forest, least_squares, misclassification, squared_error_of_mean
from syndic_lab.bench.row import Row

FOLDER = Path("bench-results")
BINS = 6  # of every continuous column, the choice that fits experiment 1 best
PLATEAU, LEVEL = 3.5, 0.13  # published: from this epsilon on experiment 5 stays at about this share
_SIMULATED = (0.2, 0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.5, 6.0, 8.0)
_INSURANCE_SIZES = (30, 40, 40, 45, 45, 50, 50, 50, 55, 60, 65, 70, 300)
_INSURANCE_LEVELS = {"sex": 2, "smoker": 2, "region": 4}


def rows(quick: bool) -> Iterator[Row]:
    """Yield the curves of every experiment and, at the end, all thresholds; figures go to `bench-results`.

    A threshold's baseline is the one of the noise as published.
    """
    check_sklearn()
    thresholds: list[Row] = []
    for make in EXPERIMENTS:
        try:
            experiment = make()
        except InputError as error:
            _tell(f"skipped: {error}")
            continue
        outcome = experiment.measure(quick=quick)
        yield from _curves(experiment, outcome)
        thresholds += _thresholds(experiment, outcome)
        _draw(experiment, outcome)
    yield from thresholds


def mean_of_normal() -> Experiment:
    """Experiment 1: the mean of a normal variable, known to lie within 3 standard deviations of the range's middle."""
    sizes = (20, 50, 60, 90, 150)
    return Experiment(
        number="1",
        title="mean of N(mu, 1)",
        metric="RMSE",
        unit="sd",
        sizes=sizes,
        schema=data.schema_of(data.real("y", data.MEAN - 3, data.MEAN + 3, BINS)),
        draw=data.normal(sizes),
        loss=squared_error_of_mean,
        squared=True,
        epsilons=(0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5, 0.8, 1.0, 2.0, 5.0),
        repeats=1000,  # the paper has 200, at which these thresholds still move by a step from seed to seed
        quick_repeats=200,
        marks=(
            Mark(name="smallest party", reference=smallest_party, published=0.08),
            Mark(name="average party", reference=average_party, published=0.2),
            Mark(name="largest party", reference=largest_party, published=0.5),
        ),
    )


def linear_model(weight: float = 1.0) -> Experiment:
    """Experiment 2: a linear model of one normal and one binary covariate, both of the same weight."""
    sizes = (50, 50, 60, 70, 75, 85, 95, 110, 130, 275)
    middle, spread = 1 + weight / 2, (1.25 * weight**2 + data.NOISE_VARIANCE) ** 0.5
    usual = weight == 1
    return Experiment(
        number="2" if usual else f"2, weights {weight:g}",
        title="linear model, simulated",
        metric="prediction RMSE",
        unit="1",
        sizes=sizes,
        schema=data.schema_of(
            data.real("x1", -3, 3, BINS),
            data.coded("x2", 2),
            data.real("y", middle - 3 * spread, middle + 3 * spread, BINS),
        ),
        draw=data.linear(sizes, test=100, weight=weight),
        loss=least_squares("y", {}),
        epsilons=_SIMULATED,
        repeats=200,
        quick_repeats=60,
        marks=(
            Mark(name="average party", reference=average_party, published=1.0),
            Mark(name="largest party", reference=largest_party),
            Mark(name="like the original", reference=like_original, published=4.5),
        ),
    )


def logistic_model() -> Experiment:
    """Experiment 3: a logistic regression on the covariates of experiment 2."""
    sizes = (50, 55, 60, 60, 65, 65, 70, 70, 75, 80)
    return Experiment(
        number="3",
        title="logistic regression, simulated",
        metric="misclassification",
        unit="share",
        sizes=sizes,
        schema=data.schema_of(data.real("x1", -3, 3, BINS), data.coded("x2", 2), data.coded("y", 2)),
        draw=data.logistic(sizes, test=100),
        loss=misclassification("y", {}),
        epsilons=_SIMULATED,
        repeats=200,
        quick_repeats=60,
        marks=(
            Mark(name="average party", reference=average_party),
            Mark(name="best party", reference=best_party, published=1.0),
            Mark(name="like the original", reference=like_original, published=4.5),
        ),
    )


def medical_costs() -> Experiment:
    """Experiment 4 with the linear model: charges from six covariates, a grid of seven columns."""
    rows = data.insurance()
    return Experiment(
        number="4, linear model",
        title="medical costs, linear model",
        metric="prediction RMSE",
        unit="USD",
        sizes=_INSURANCE_SIZES,
        schema=insurance_schema(),
        draw=data.shuffled(rows, _INSURANCE_SIZES),
        loss=least_squares("charges", _INSURANCE_LEVELS),
        epsilons=(4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 14.0, 16.0),
        repeats=100,
        quick_repeats=20,
        marks=_insurance_marks(),
    )


def medical_costs_forest() -> Experiment:
    """Experiment 4 with a random forest, on the same grid."""
    rows = data.insurance()
    return Experiment(
        number="4, random forest",
        title="medical costs, random forest",
        metric="prediction RMSE",
        unit="USD",
        sizes=_INSURANCE_SIZES,
        schema=insurance_schema(),
        draw=data.shuffled(rows, _INSURANCE_SIZES),
        loss=forest("charges", [name for name in rows if name != "charges"]),
        epsilons=(6.0, 7.0, 8.0, 10.0, 12.0, 14.0, 16.0),
        repeats=100,
        quick_repeats=5,
        marks=_insurance_marks(),
    )


def social_network_ads() -> Experiment:
    """Experiment 5: who bought, from sex, age and salary."""
    sizes = (20, 25, 30, 30, 30, 35, 40, 40, 50)
    return Experiment(
        number="5",
        title="social network ads, logistic regression",
        metric="misclassification",
        unit="share",
        sizes=sizes,
        schema=data.schema_of(
            data.coded("Gender", 2),
            data.real("Age", 16, 64, BINS),
            data.real("EstimatedSalary", 0, 150_000, BINS),
            data.coded("Purchased", 2),
        ),
        draw=data.shuffled(data.ads(), sizes),
        loss=misclassification("Purchased", {}),
        epsilons=(0.5, 1.0, 1.5, 2.0, 2.5, 3.0, PLATEAU, 4.5, 6.0, 8.0, 10.0),
        repeats=100,
        quick_repeats=40,
        marks=(
            Mark(name="smallest party", reference=smallest_party),
            Mark(name="average party", reference=average_party, published=2.0),
            Mark(name="plateau", reference=plateau, published=PLATEAU),
        ),
    )


def insurance_schema(bins: int = BINS) -> Schema:
    """Return the seven columns of experiment 4; bounds are round numbers around adults' ages, indices and bills."""
    return data.schema_of(
        data.real("age", 18, 66, bins),
        data.coded("sex", 2),
        data.real("bmi", 15, 51, bins),
        data.coded("children", 6),
        data.coded("smoker", 2),
        data.coded("region", 4),
        data.real("charges", 0, 60_000, bins),
    )


def plateau(outcome: Outcome) -> float:
    """Return what counts as level: one point of a hundred above the loss at the largest epsilon."""
    return outcome.sanitised[max(outcome.sanitised)] + 0.01


EXPERIMENTS: tuple[Callable[[], Experiment], ...] = (
    mean_of_normal,
    linear_model,
    partial(linear_model, 0.5),
    partial(linear_model, 2.0),
    logistic_model,
    medical_costs,
    medical_costs_forest,
    social_network_ads,
)


def _insurance_marks() -> tuple[Mark, ...]:
    # the paper gives no number: "a relatively larger epsilon"
    return (
        Mark(name="average party", reference=average_party),
        Mark(name="largest party", reference=largest_party),
        Mark(name="like the original", reference=like_original),
    )


def _curves(experiment: Experiment, outcome: Outcome) -> Iterator[Row]:
    def row(what: str, value: float, baseline: float | None = None, published: float | None = None) -> Row:
        return Row(
            bench="homm",
            row=f"experiment {experiment.number}, {what}",
            metric=experiment.metric,
            value=value,
            unit=experiment.unit,
            baseline=baseline,
            published=published,
        )

    for place, (size, loss) in enumerate(zip(experiment.sizes, outcome.parties, strict=True), start=1):
        yield row(f"party {place} alone, {size} people", float(loss), outcome.original)
    yield row("average of the parties", outcome.average, outcome.original)
    yield row("original merged, no privacy", outcome.original)
    for epsilon in experiment.epsilons:
        yield row(f"sanitised merged, epsilon {epsilon:g}", outcome.sanitised[epsilon], outcome.printed[epsilon])
    if experiment.number == "5":
        level = [loss for epsilon, loss in outcome.sanitised.items() if epsilon >= PLATEAU]
        yield row(f"sanitised merged, epsilon {PLATEAU:g} and above", sum(level) / len(level), outcome.original, LEVEL)
        yield Row(
            bench="homm",
            row=f"experiment 5, original merged, wrong at most {LEVEL:.0%} of the time",
            metric="share of splits",
            value=float((outcome.originals <= LEVEL + 1e-9).mean()),
            unit="share",
        )


def _thresholds(experiment: Experiment, outcome: Outcome) -> Iterator[Row]:
    for mark in experiment.marks:
        reference = mark.reference(outcome)
        found = threshold(outcome.sanitised, reference)
        yield Row(
            bench="homm",
            row=f"experiment {experiment.number}, {mark.name}",
            metric="threshold epsilon" if found is not None else "threshold epsilon is above",
            value=max(experiment.epsilons) if found is None else found,
            unit="epsilon",
            baseline=threshold(outcome.printed, reference),
            published=mark.published,
        )


def of_experiment(experiment: Experiment, outcome: Outcome) -> Iterator[Row]:
    """Yield the curves of one experiment, then its thresholds."""
    yield from _curves(experiment, outcome)
    yield from _thresholds(experiment, outcome)


def figure(experiment: Experiment, outcome: Outcome) -> Curve:
    """Return the experiment's curves over epsilon, as in Figure 1 of the paper."""
    ends = (min(experiment.epsilons), max(experiment.epsilons))

    def flat(value: float) -> tuple[tuple[float, float], ...]:
        return tuple((end, value) for end in ends)

    return Curve(
        title=f"HOMM, experiment {experiment.number.partition(',')[0]}: {experiment.title}",
        description=_words(experiment, outcome),
        width=700,
        lines=(
            Line("sanitised", tuple(outcome.sanitised.items()), dots=True),
            Line("original", flat(outcome.original)),
            Line("each party", _one_line_each(sorted(map(float, outcome.parties)), ends)),
            Line("average party", flat(outcome.average)),
            Line("printed noise", tuple(outcome.printed.items())),
        ),
        x_axis="epsilon",
        y_axis=f"{experiment.metric}, {experiment.unit}",
        x_log=ends[1] > 50 * ends[0],
    )


def _one_line_each(values: list[float], ends: tuple[float, float]) -> tuple[tuple[float, float], ...]:
    """Return one path over all level lines, turning at the frame's sides: one entry in the legend for all parties."""
    there_and_back = (ends if place % 2 == 0 else ends[::-1] for place in range(len(values)))
    return tuple((end, value) for value, way in zip(values, there_and_back, strict=True) for end in way)


def _words(experiment: Experiment, outcome: Outcome) -> str:
    said: Mapping[str, float | None] = {
        mark.name: threshold(outcome.sanitised, mark.reference(outcome)) for mark in experiment.marks
    }
    reached = "; ".join(
        f"{name} from {epsilon:g}" if epsilon else f"{name} nowhere here" for name, epsilon in said.items()
    )
    return (
        f"{experiment.metric} over epsilon. Original merged {outcome.original:.4g}, average party "
        f"{outcome.average:.4g}. The sanitised table is better than: {reached}."
    )


def _draw(experiment: Experiment, outcome: Outcome) -> None:
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"homm-{experiment.number.replace(', ', '-').replace(' ', '-')}.svg"
    path.write_text(figure(experiment, outcome).to_svg(), encoding="utf-8")
    _tell(f"wrote {path}")


def _tell(text: str) -> None:
    sys.stderr.write(text + "\n")
