"""Other libraries on the same rows at the same epsilon: error and CPU time, theirs as the baseline of each row.

Their pins clash with ours and with each other's, so each has an interpreter of its own: `make peers` makes them in the
folder that `SYNDIC_PEERS` names. A library that is not there is left out. All noise here comes from seeds or from those
libraries' generators, on made-up or public rows.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syndic.bench.row import Row
from syndic.estimators import PrivateLogisticRegression, PrivateRidge

_EPSILONS = (0.3, 1.0, 3.0)
_DELTA = 1e-7
_FEATURES = 5
# next to no shrinking and no gradient of the logistic loss cut: coefficients are compared, not predictions
_RIDGE = 1e-5
_NORM = 2.45


def rows(quick: bool) -> Iterator[Row]:
    """Yield rows for every library that `SYNDIC_PEERS` has, ours with theirs as the baseline."""
    if interpreter("diffprivlib") is None:
        sys.stderr.write("diffprivlib is left out: make peers installs it, and SYNDIC_PEERS names the folder\n")
    else:
        yield from regressions(quick)


def interpreter(name: str) -> Path | None:
    """Return the interpreter that has a library, or None."""
    path = Path(os.environ.get("SYNDIC_PEERS", "")) / name / "bin" / "python"
    return path if os.environ.get("SYNDIC_PEERS") and path.exists() else None


def regressions(quick: bool) -> Iterator[Row]:
    """Yield errors of coefficients of made-up people, beside diffprivlib's, which has delta 0 where we have 1e-7."""
    people, seeds = (20_000, 5) if quick else (20_000, 20)
    data = made_up(people)
    zero = float(np.linalg.norm(data["truth"]))
    for epsilon in _EPSILONS:
        theirs = _ask(
            "diffprivlib", {"epsilon": epsilon, "seeds": list(range(seeds))}, lambda folder: _save(folder, data)
        )
        for kind, truth in (("linear", data["truth"]), ("logistic", data["slope"])):
            ours, seconds = zip(*(_fitted(kind, data, epsilon, seed) for seed in range(seeds)), strict=True)
            row = f"{kind} regression, {people:,} people, {_FEATURES} features, epsilon {epsilon:g}"
            error, other = (_error(found, truth) for found in (ours, theirs[kind]["coefficients"]))
            yield _row(row, "distance of coefficients", error, "", other)
            yield _row(row, "CPU seconds", float(np.mean(seconds)), "s", theirs[kind]["seconds"])
    yield _row("no regression at all", "distance of the linear coefficients", zero, "", None)


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
        model = PrivateRidge(
            epsilon, delta=_DELTA, bounds=bounds, label_bounds=(-1.0, 1.0), regularisation=_RIDGE, seed=seed
        )
    else:
        model = PrivateLogisticRegression(
            epsilon, delta=_DELTA, bounds=bounds, classes=[0.0, 1.0], regularisation=_RIDGE, clip=_NORM, seed=seed
        )
    start = time.process_time()
    model.fit(data["features"], data["number" if kind == "linear" else "label"])
    return np.asarray(model.coef_).ravel(), time.process_time() - start


def _error(found: Any, truth: NDArray[np.float64]) -> float:
    return float(np.mean([np.linalg.norm(np.asarray(one) - truth) for one in found]))


def _ask(
    name: str,
    settings: Mapping[str, Any],
    before: Callable[[Path], None],
) -> dict[str, Any]:
    """Run the script of a library in its interpreter, in a folder of its own; return what it prints last."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        before(folder)
        (folder / "settings.json").write_text(json.dumps(settings))
        script = Path(__file__).with_name(f"peer_{name}.py")
        command = [str(interpreter(name)), "-W", "ignore", str(script), str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _save(folder: Path, data: Mapping[str, NDArray[np.float64]]) -> None:
    np.savez(folder / "rows.npz", features=data["features"], number=data["number"], label=data["label"])


def _row(row: str, metric: str, value: float, unit: str, baseline: float | None) -> Row:
    return Row(bench="peers", row=row, metric=metric, value=value, unit=unit, baseline=baseline)
