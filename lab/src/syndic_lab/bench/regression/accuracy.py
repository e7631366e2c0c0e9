"""Test R squared from noisy Gram matrices: rescaled numbers, with and without a target, bounds alone, no privacy.

Two vertical or five horizontal parties with the noise of their plans, delta 1e-7, four rows to learn from for each to
test on. The noise is floating-point noise of a seeded generator. Bounds are the least and largest value, which a study
must not look up. The made-up tables have columns that are skewed, correlated, unrelated or far from their bounds.
"""

import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syndic.document import from_builtins
from syndic.errors import InputError
from syndic.methods.regression.gram_plan import GramPlan
from syndic.model.gram.matrix import GramMatrix
from syndic.model.gram.rows import products_of
from syndic.model.gram.scaling import Scale
from syndic.sklearn import GramRegression
from syndic.study import Study
from syndic_lab.bench.regression.data import LOADERS, Data
from syndic_lab.bench.row import Row

Numbers = NDArray[np.float64]

LABEL: Final = "label"
EPSILONS: Final = (1.0, 0.3, 0.1)
CUTS: Final = {"two vertical": ("vertical", 2), "five horizontal": ("horizontal", 5)}
WAYS: Final[dict[str, dict[str, Any]]] = {
    "rescaled": {},
    "with a target": {"target": LABEL},
    "by bounds": {"scaling": 0.0},
}
_BINS: Final = 1000
_SEEDS: Final = 10
_QUICK_SEEDS: Final = 2


def rows(quick: bool) -> Iterator[Row]:
    """Yield the rows of every table: made-up ones, and the data sets that are there unless `quick`."""
    for data in made_up():
        yield from of_table(data, _QUICK_SEEDS if quick else _SEEDS)
    for load in () if quick else LOADERS:
        try:
            data = load()
        except InputError as error:
            print(f"skipped: {error}", file=sys.stderr)
        else:
            yield from of_table(data, _SEEDS)


def of_table(data: Data, seeds: int, epsilons: tuple[float, ...] = EPSILONS) -> Iterator[Row]:
    """Yield mean and worst R squared of so many seeds, with least squares without privacy as baseline."""
    splits = [_split(data, seed) for seed in range(seeds)]
    exact = float(np.mean([_least_squares(*split) for split in splits]))
    for parties, (cut, count) in CUTS.items():
        for epsilon in epsilons:
            for what, options in WAYS.items():
                found = [_private(*split, cut, count, epsilon, options, seed) for seed, split in enumerate(splits)]
                name = f"{data.name}, {parties}, epsilon {epsilon:g}, {what}"
                for metric, value in (("mean", float(np.mean(found))), ("worst", min(found))):
                    yield Row(
                        bench="gram",
                        row=name,
                        metric=f"test R squared, {metric} of {seeds}",
                        value=value,
                        unit="share",
                        baseline=exact,
                    )


def made_up() -> Iterator[Data]:
    """Yield tables drawn with a seed, in [0, 1]."""
    generator = np.random.default_rng(5)
    hidden = generator.standard_normal((20_000, 8)) @ (np.eye(8) + 0.4 * generator.standard_normal((8, 8)))
    label = hidden[:, 0] - 0.5 * hidden[:, 1] + 0.3 * hidden[:, 2] + generator.standard_normal(20_000)
    skewed = np.column_stack([hidden[:, :2], np.exp(0.8 * hidden[:, 2:6]), hidden[:, 6:]])
    yield _scaled("skewed", np.column_stack([skewed, label]))
    factors = generator.standard_normal((20_000, 3))
    measured = factors @ generator.standard_normal((3, 30)) + 0.3 * generator.standard_normal((20_000, 30))
    label = factors @ np.array([1.0, 0.5, -0.5]) + 0.8 * generator.standard_normal(20_000)
    yield _scaled("correlated", np.column_stack([measured, label]))
    plain = generator.standard_normal((20_000, 9))
    yield _scaled("unrelated", plain)
    plain[:, -1] += plain[:, :3].sum(axis=1)
    yield _scaled("wide bounds", plain, room=2.0)


def _scaled(name: str, table: Numbers, room: float = 0.0) -> Data:
    low, high = table.min(axis=0), table.max(axis=0)
    return Data(name, (table - low + room * (high - low) / 2) / ((1 + room) * (high - low)), 2)


def _split(data: Data, seed: int) -> tuple[Numbers, Numbers]:
    order = np.random.default_rng([seed, 3]).permutation(len(data.table))
    people = 4 * len(order) // 5
    return data.table[order[:people]], data.table[order[people:]]


def _least_squares(learned: Numbers, test: Numbers) -> float:
    ones = np.ones((len(learned), 1))
    weights = np.linalg.lstsq(np.hstack([ones, learned[:, :-1]]), learned[:, -1], rcond=None)[0]
    return _explained(test, np.clip(weights[0] + test[:, :-1] @ weights[1:], 0, 1))


def _private(
    learned: Numbers, test: Numbers, cut: str, parties: int, epsilon: float, options: Mapping[str, Any], seed: int
) -> float:
    names = [*(f"c{place}" for place in range(learned.shape[1] - 1)), LABEL]
    study = study_of(len(learned), names, cut, parties, epsilon, options)
    model = GramRegression(names[-1]).fit(opened(study, learned, np.random.default_rng([seed, 4])))
    return _explained(test, model.predict(test[:, :-1]))


def opened(study: Study, learned: Numbers, generator: np.random.Generator) -> GramMatrix:
    """Return the matrix that a run of the study would open, with noise of a seeded generator."""
    names = study.schema.names
    coded = {
        name: np.minimum(values * _BINS, _BINS - 1).astype(np.int32)
        for name, values in zip(names, learned.T, strict=True)
    }
    plan = study.plan_as(GramPlan)
    scaling = plan.stages.scaling
    scales: tuple[Scale, ...] = ()
    if scaling is not None:
        counts = scaling.counts(plan.codings, coded)
        noisy = counts + scaling.sigma * generator.standard_normal(len(counts))
        scales = scaling.scales(plan.codings, noisy, len(learned))
    rows = np.full((len(learned), len(plan.features)), 1 << plan.bits, dtype=np.int32)
    for name in plan.groups[0].parties:
        rows[:, plan.columns[name]] = plan.rows(name, coded, scales)
    sums, note = products_of(rows) / 4.0**plan.bits, plan.note_for(scales, plan.everybody)
    values = sums[np.triu_indices(len(sums))][1:]
    exact = GramMatrix(
        features=note.features,
        rows=len(learned),
        values=values,
        sigma=0.0,
        shortened=note.shortened,
        halved=bool(scales),
    )
    return exact.renoised(plan.sigma, generator)


def study_of(
    people: int, names: list[str], cut: str, parties: int, epsilon: float, options: Mapping[str, Any]
) -> Study:
    """Return a study of columns in [0, 1], with an equal part of the columns or of the people at each party."""
    held = []
    for place in range(parties):
        if cut == "vertical":
            own = names[place * len(names) // parties : (place + 1) * len(names) // parties]
            held.append({"name": f"p{place}", "people": people, "columns": own})
        else:
            held.append({"name": f"p{place}", "people": people * (place + 1) // parties - people * place // parties})
    column = {"kind": "real", "lower": 0.0, "upper": 1.0, "bins": _BINS, "missing": {"value": 0.5}}
    content = {
        "name": "bench",
        "unit": {"neighbours": "replace"},
        "budget": {"epsilon": epsilon, "delta": 1e-7},
        "protocol": {"method": "gram", **options},
        "parties": held,
        "schema": {"columns": [{"name": name, **column} for name in names]},
    }
    return from_builtins(content, Study, where="bench")


def _explained(test: Numbers, predicted: Numbers) -> float:
    label = test[:, -1]
    return 1 - float(((label - predicted) ** 2).sum() / ((label - label.mean()) ** 2).sum())
