"""Rivals of the synthesis on the same tables: glued, latent tree, two-party specialisation.

Distances are as in `bench vertical`. Specialisation is made for a class, so it is measured by what a logistic
regression trained on the release gets right on rows that no run has seen, beside the same regression trained on the
real rows, and beside always saying the most frequent class.
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np

from syndic.methods import Distdiffgen, Dplt, Glued, Synthesis
from syndic.model.latent.diffgen import balanced, max_scores, specialised, tree_of
from syndic.noise import DiscreteLaplace
from syndic.random import SimulationRandomness
from syndic_lab.bench.model.synthesis_data import Coded, codes_of, distances
from syndic_lab.bench.row import Row
from syndic_lab.bench.vertical.runs import Codes, Found, cut, found_by, made_by, study_of
from syndic_lab.exponential import ExponentialMechanism

TIMES: Final = 10
_TEST_SHARE: Final = 0.2
_RIVALS: Final = {"glued": Glued, "latent tree": Dplt}


def rivals(data: Coded, epsilon: str, seeds: Sequence[int], parties: int = 2) -> Iterator[Row]:
    """Yield distances, time and traffic of rivals that make a table of all columns."""
    for title, method in _RIVALS.items():
        study = study_of(data, epsilon, cut(data, parties), method())
        found = [found_by(data, study, seed) for seed in seeds]
        row = f"{data.name}, epsilon {epsilon}, {parties} parties, {title}"
        yield from _apart(row, found)
        yield _row(row, "seconds", min(one.seconds for one in found), "s of processor time, all roles")
        yield _row(row, "megabytes", max(one.sent for one in found) / 1e6, "MB")


def classification(data: Coded, label: str, epsilon: str, seeds: Sequence[int], times: int = TIMES) -> Iterator[Row]:
    """Yield the share of right classes after training on each release of two parties, and distances of some."""
    order = np.random.default_rng(2024).permutation(data.table.num_rows)
    held_out = int(_TEST_SHARE * len(order))
    test = codes_of(data.rows(np.sort(order[:held_out])), data.schema)
    training = Coded(data.name, data.schema, data.rows(np.sort(order[held_out:])))
    apart = cut(data, 2)
    both = [columns if label in columns else (*columns, label) for columns in apart]
    special = study_of(training, epsilon, both, Distdiffgen(label=label, specialisations=times))
    ways: dict[str, Callable[[int], Codes]] = {
        "two-party specialisation": lambda seed: made_by(training, special, seed).codes,
        "specialisation as published, one curator": lambda seed: published(training, label, epsilon, times, seed),
        "synthesis": lambda seed: _all_columns(training, epsilon, apart, Synthesis, seed),
        **{title: _maker(training, epsilon, apart, method) for title, method in _RIVALS.items()},
    }
    share = float(np.bincount(test[label]).max()) / held_out
    real = accuracy(data, label, training.codes(), test)
    begin = f"{data.name}, epsilon {epsilon}, 2 parties"
    yield _row(f"{begin}, real rows", "accuracy", real, "share right", share)
    for title, made in ways.items():
        releases = [made(seed) for seed in seeds]
        right = float(np.mean([accuracy(data, label, one, test) for one in releases]))
        yield _row(f"{begin}, {title}", "accuracy", right, "share right", real)
        if "specialisation" in title:
            real_codes = training.codes()
            found = [Found(distances(real_codes, one, data.domain), 0.0, 0) for one in releases]
            yield from _apart(f"{begin}, {title}", found)


def accuracy(data: Coded, label: str, training: Codes, test: Codes) -> float:
    """Return what a logistic regression on all levels of the other columns gets right."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415  # takes a second

    if len(np.unique(training[label])) == 1:
        return float(np.mean(test[label] == training[label][0]))
    names = [name for name in data.domain.names if name != label]
    sides = [
        np.concatenate([np.eye(data.domain[name])[codes[name]] for name in names], 1) for codes in (training, test)
    ]
    model = LogisticRegression(max_iter=300, tol=1e-3).fit(sides[0], training[label])
    return float(model.score(sides[1], test[label]))


def published(data: Coded, label: str, epsilon: str, times: int, seed: int) -> Codes:
    """Specialise as published: an exponential mechanism for each choice, Laplace noise on the leaves, all at a curator.

    Pure epsilon under add/remove. Half of it is for choices, cut for two choices each time as the paper counts them.
    """
    randomness, codes, whole = SimulationRandomness(seed, "published"), data.codes(), Fraction(epsilon)
    names = [name for name in data.domain.names if name != label]
    trees = {name: tree_of(balanced(data.domain[name])) for name in names}
    tables = {name: np.zeros((data.domain[name], data.domain[label]), dtype=np.int64) for name in names}
    for name in names:
        np.add.at(tables[name], (codes[name], codes[label]), 1)
    scores = {name: max_scores(tree, tables[name]).astype(np.float64) for name, tree in trees.items()}
    choice = ExponentialMechanism(sensitivity=1, epsilon=whole / (4 * times))
    found = specialised(
        trees, scores, times, lambda _: True, lambda one: choice.apply(one.astype(np.int64), randomness)
    )
    sizes = [*(len(found[name]) for name in names), data.domain[label]]
    grouped = [*(trees[name].group_of(found[name])[codes[name]] for name in names), codes[label]]
    leaves = np.bincount(np.ravel_multi_index(grouped, sizes), minlength=int(np.prod(sizes)))
    noisy = DiscreteLaplace(sensitivity=1, epsilon=whole / 2).apply(leaves, randomness)
    draws = np.random.default_rng([seed, 2024])
    cells = np.repeat(np.arange(len(noisy)), np.maximum(noisy, 0))
    groups = np.unravel_index(cells, sizes)
    made = {label: np.asarray(groups[-1], dtype=np.int64)}
    for name, group in zip(names, groups, strict=False):
        made[name] = np.zeros(len(cells), dtype=np.int64)
        for place, node in enumerate(found[name]):
            rows = np.flatnonzero(group == place)
            made[name][rows] = draws.choice(trees[name].levels[node], len(rows))
    return made


def _maker(data: Coded, epsilon: str, held: Sequence[tuple[str, ...]], method: Any) -> Callable[[int], Codes]:
    return lambda seed: _all_columns(data, epsilon, held, method, seed)


def _all_columns(data: Coded, epsilon: str, held: Sequence[tuple[str, ...]], method: Any, seed: int) -> Codes:
    return made_by(data, study_of(data, epsilon, held, method()), seed).codes


def _apart(row: str, found: Sequence[Found]) -> Iterator[Row]:
    for ways in found[0].apart:
        yield _row(row, f"tvd{ways}", float(np.mean([one.apart[ways] for one in found])), "distance")


def _row(row: str, metric: str, value: float, unit: str, baseline: float | None = None) -> Row:
    return Row(bench="vertical", row=row, metric=metric, value=value, unit=unit, baseline=baseline)
