"""Survival studies with noise: coverage, false alarms, widths, and the error of a curve, beside pooled rows.

A made-up cohort over five parties has groups with the same hazard and covariates with known effects. `rossi` and
`gbsg2` are data sets of lifelines, whose figures on pooled rows are the baseline. Rows are simulated from a seed, so
nobody is protected here.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from syndic import Study, simulate
from syndic.document import from_builtins
from syndic.methods.survival.result import EVERYBODY, SurvivalResult
from syndic.methods.survival.survival import SurvivalPlan
from syndic.model.survival import RiskSets, log_rank, proportional_hazards, risk_sets, survival
from syndic_lab.bench.row import Row

PARTIES: Final = 5
MONTHS: Final = 40
HAZARD: Final = 0.03
EFFECTS: Final = (0.0, 0.3, 0.6)
DESIGN: Final = np.array([[arm, stage == 1, stage == 2] for arm in range(2) for stage in range(3)], dtype=np.float64)


def rows(quick: bool) -> Iterator[Row]:
    """Yield what many noisy tables of the cohort show, then one whole study of it, then the data sets of lifelines."""
    for people in (2_000, 20_000):
        yield from _repeated(people, 200 if quick else 2_000)
    yield from _whole(20_000, 2 if quick else 10)
    if find_spec("lifelines") is not None:
        for name in ("rossi", "gbsg2"):
            yield from _known(name, 2 if quick else 10)


def _row(row: str, metric: str, value: float, unit: str = "1", baseline: float | None = None) -> Row:
    return Row(bench="survival", row=row, metric=metric, value=value, unit=unit, baseline=baseline)


def study_of(columns: list[dict[str, Any]], people: int, protocol: dict[str, Any]) -> Study:
    """Return a study of five parties at epsilon 1."""
    return from_builtins(
        {
            "name": "cohort",
            "unit": {"neighbours": "add_remove"},
            "budget": {"epsilon": "1", "delta": "3e-7"},
            "protocol": {"method": "survival", **protocol},
            "parties": [{"name": f"p{place}", "people": people} for place in range(PARTIES)],
            "schema": {"columns": columns},
        },
        Study,
        where="cohort",
    )


def cohort(people: int, generator: np.random.Generator) -> pa.Table:
    """Return people with exponential times: the arm changes nothing, the stage does."""
    arm, stage = generator.integers(0, 2, people), generator.integers(0, 3, people)
    time = generator.exponential(1 / (HAZARD * np.exp(np.array([0.0, *EFFECTS[1:]])[stage])))
    watched = generator.uniform(10, 60, people)
    ended = np.where(time <= watched, "yes", "no")
    return pa.table({"months": np.minimum(time, watched), "ended": ended, "arm": arm, "stage": stage.astype(str)})


def cohort_study(people: int) -> Study:
    """Return the study of the cohort: forty intervals of a month, an open one after them."""
    columns: list[dict[str, Any]] = [
        {"kind": "real", "name": "months", "lower": 0.0, "upper": float(MONTHS + 1), "bins": MONTHS + 1},
        {"kind": "categorical", "name": "ended", "values": ["no", "yes"]},
        {"kind": "integer", "name": "arm", "lower": 0, "upper": 1},
        {"kind": "categorical", "name": "stage", "values": ["0", "1", "2"]},
    ]
    protocol = {"time": "months", "event": "ended", "censored": "no", "by": ["arm", "stage"]}
    return study_of(columns, people // PARTIES + 1, protocol)


def truth(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the population's survival."""
    hazards = HAZARD * np.exp(np.array([0.0, *EFFECTS[1:]]))
    curve: NDArray[np.float64] = np.exp(-np.outer(times, hazards)).mean(axis=1)
    return curve


def _sets(table: pa.Table, deviation: float, generator: np.random.Generator) -> RiskSets:
    place = np.minimum(np.floor(table["months"].to_numpy()).astype(int), MONTHS)
    ended = (np.array(table["ended"].to_pylist()) == "yes").astype(int)
    group = 3 * table["arm"].to_numpy() + np.array(table["stage"].to_pylist()).astype(int)
    counts = np.zeros((6, 1, MONTHS + 1, 2))
    np.add.at(counts, (group, 0 * group, place, ended), 1)
    counts += np.round(generator.normal(0, deviation, counts.shape))
    times = np.arange(1.0, MONTHS + 2)
    return risk_sets(counts, times, deviation**2, whole=False).within(slice(0, MONTHS))


def _repeated(people: int, repeats: int) -> Iterator[Row]:
    """Yield coverage and false alarms over many tables with the study's noise, drawn as real numbers and rounded."""
    deviation = max(cohort_study(people).plan_as(SurvivalPlan).deviations(PARTIES))
    generator = np.random.default_rng(people)
    points, bands, alarms, ratios, widths = [], [], [], [], []
    for _ in range(repeats):
        sets = _sets(cohort(people, generator), deviation, generator)
        curve = survival(sets.merged([list(range(6))]))
        real, (lower, upper), (low, high) = truth(curve.times), curve.interval(), curve.band()
        points.append(float(np.mean((lower <= real) & (real <= upper))))
        bands.append(bool(np.all((low <= real) & (real <= high))))
        test = log_rank(sets.merged([[0, 1, 2], [3, 4, 5]]))
        alarms.append(test is not None and test.p_value < 0.05)
        fitted = proportional_hazards(sets, DESIGN)
        if fitted is not None:
            ratios.append(np.abs(fitted.coefficients - EFFECTS) < 1.959964 * fitted.deviation)
            widths.append(fitted.deviation / np.sqrt(np.diag(fitted.sampling)))
    where = f"cohort of {people:,}, {repeats:,} tables"
    yield _row(where, "coverage of a curve's 95 % intervals", float(np.mean(points)), baseline=0.95)
    yield _row(where, "coverage of its 95 % band", float(np.mean(bands)), baseline=0.95)
    yield _row(where, "log-rank test, false alarms at 5 %", float(np.mean(alarms)), baseline=0.05)
    yield _row(where, "coverage of hazard ratios", float(np.mean(ratios)), baseline=0.95)
    yield _row(where, "hazard ratios that could be fitted", len(ratios) / repeats)
    yield _row(where, "width of hazard ratios against pooled rows", float(np.median(widths)))


def _whole(people: int, seeds: int) -> Iterator[Row]:
    """Yield the largest distance from the curve of pooled rows over whole studies, beside its 95 % half width."""
    table = cohort(people, np.random.default_rng(0))
    plain = survival(_sets(table, 0.0, np.random.default_rng(0)).merged([list(range(6))]))
    off = [
        float(np.abs(curve.values - plain.raw[: curve.times.size]).max())
        for curve in (_study_curve(cohort_study(people), table, seed) for seed in range(1, 1 + seeds))
    ]
    half = 1.959964 * float(plain.deviation.max())
    for metric, value in (("mean", np.mean(off)), ("worst", np.max(off))):
        yield _row(f"cohort of {people:,}, {seeds} studies", f"largest error, {metric}", float(value), baseline=half)


def _study_curve(study: Study, table: pa.Table, seed: int) -> Any:
    held = {party.name: table.take(np.arange(place, len(table), PARTIES)) for place, party in enumerate(study.parties)}
    result = simulate(study, held, seed=seed).result
    if not isinstance(result, SurvivalResult):
        raise TypeError("a survival study gave another result")
    return result.curves()[EVERYBODY]


def _known(name: str, seeds: int) -> Iterator[Row]:
    """Yield the exact figures beside lifelines' own, then the error of whole studies with noise."""
    from lifelines import KaplanMeierFitter, datasets  # noqa: PLC0415

    frame = getattr(datasets, f"load_{name}")()
    time, event = ("week", "arrest") if name == "rossi" else ("time", "cens")
    step = 1 if name == "rossi" else 60
    whole = (frame[time].to_numpy() + step - 1) // step
    most = int(whole.max())
    fitter = KaplanMeierFitter().fit(whole, frame[event])
    counts = np.zeros((1, 1, most, 2))
    np.add.at(counts, (0 * whole, 0 * whole, whole - 1, frame[event].to_numpy()), 1)
    exact = survival(risk_sets(counts, np.arange(1.0, most + 1), 0.0, whole=True))
    pooled = fitter.survival_function_at_times(exact.times).to_numpy()
    yield _row(name, "distance from lifelines without noise", float(np.abs(exact.raw - pooled).max()))
    columns: list[dict[str, Any]] = [
        {"kind": "integer", "name": "time", "lower": 1, "upper": most + 1},
        {"kind": "categorical", "name": "ended", "values": ["no", "yes"]},
    ]
    study = study_of(columns, len(frame), {"time": "time", "event": "ended", "censored": "no"})
    table = pa.table({"time": whole, "ended": np.where(frame[event] == 1, "yes", "no")})
    covered, off = [], []
    for seed in range(1, 1 + seeds):
        curve = _study_curve(study, table, seed)
        near = exact.raw[: curve.times.size]
        off.append(float(np.abs(curve.values - near).max()))
        lower, upper = curve.interval()
        covered.append(float(np.mean((lower <= near) & (near <= upper))))
    half = 1.959964 * float(exact.deviation.max())
    yield _row(name, f"largest error, mean of {seeds} studies", float(np.mean(off)), baseline=half)
    yield _row(name, "share of the plain curve inside the intervals", float(np.mean(covered)))
