"""Linear and logistic regression of made-up people, beside diffprivlib's."""

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syndic.sklearn import PrivateLogisticRegression, PrivateRidge
from syndic_lab.bench.row import Row
from syndic_lab.peers.ask import ask, row

_EPSILONS: Final = (0.3, 1.0, 3.0)
_DELTA: Final = 1e-7
_FEATURES: Final = 5
# next to no shrinking and no gradient of the logistic loss cut: coefficients are compared, not predictions
_C: Final = 0.5
_ALPHA: Final = 2.0
_NORM: Final = 2.45


def rows(quick: bool) -> Iterator[Row]:
    """Yield errors of coefficients of made-up people, beside diffprivlib's, which has delta 0 where we have 1e-7."""
    people, seeds = (20_000, 5) if quick else (20_000, 20)
    data = made_up(people)
    given = {name: data[name] for name in ("features", "number", "label")}
    for epsilon in _EPSILONS:
        theirs = ask("diffprivlib", {"epsilon": epsilon, "seeds": list(range(seeds))}, given).figures
        for kind, truth in (("linear", data["truth"]), ("logistic", data["slope"])):
            ours, seconds = zip(*(_fitted(kind, data, epsilon, seed) for seed in range(seeds)), strict=True)
            what = f"{kind} regression, {people:,} people, {_FEATURES} features, epsilon {epsilon:g}"
            error, other = (_error(found, truth) for found in (ours, theirs[kind]["coefficients"]))
            yield row(what, "distance of coefficients", error, "", other)
            yield row(what, "CPU seconds", float(np.mean(seconds)), "s", theirs[kind]["seconds"])
    zero = float(np.linalg.norm(data["truth"]))
    yield row("no regression at all", "distance of the linear coefficients", zero, "")


def made_up(people: int) -> dict[str, NDArray[np.float64]]:
    """Return features in [-1, 1], a number with a linear law, a label with a logistic law, and both laws."""
    draws = np.random.default_rng(226)
    features = draws.uniform(-1, 1, (people, _FEATURES))
    truth, slope = np.array([0.3, -0.2, 0.1, 0.0, 0.05]), np.array([2.0, -1.0, 0.5, 0.0, 0.25])
    number = np.clip(features @ truth + draws.normal(0, 0.1, people), -1, 1)
    label = (draws.random(people) < 1 / (1 + np.exp(-features @ slope))).astype(np.float64)
    return {"features": features, "number": number, "label": label, "truth": truth, "slope": slope}


def _fitted(kind: str, data: Mapping[str, NDArray[np.float64]], epsilon: float, seed: int) -> tuple[Any, float]:
    bounds = ([-1.0] * _FEATURES, [1.0] * _FEATURES)
    model: Any
    if kind == "linear":
        model = PrivateRidge(epsilon, delta=_DELTA, bounds=bounds, label_bounds=(-1.0, 1.0), alpha=_ALPHA, seed=seed)
    else:
        model = PrivateLogisticRegression(
            epsilon, delta=_DELTA, bounds=bounds, classes=[0.0, 1.0], C=_C, clip=_NORM, seed=seed
        )
    start = time.process_time()
    model.fit(data["features"], data["number" if kind == "linear" else "label"])
    return np.asarray(model.coef_).ravel(), time.process_time() - start


def _error(found: Any, truth: NDArray[np.float64]) -> float:
    return float(np.mean([np.linalg.norm(np.asarray(one) - truth) for one in found]))
