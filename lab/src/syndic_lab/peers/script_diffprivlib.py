"""Regressions by diffprivlib. Runs as a script in an interpreter that has diffprivlib; imports nothing of Syndic."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


def main(folder: Path) -> dict[str, Any]:
    """Read `rows.npz` and `settings.json`; return coefficients and CPU seconds of linear and logistic regressions."""
    from diffprivlib import models  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415

    settings = json.loads((folder / "settings.json").read_text())
    with np.load(folder / "rows.npz") as rows:
        features, number, label = rows["features"], rows["number"], rows["label"]
    d, found = features.shape[1], {}
    for kind in ("linear", "logistic"):
        coefficients, seconds = [], []
        for seed in settings["seeds"]:
            if kind == "linear":
                model = models.LinearRegression(
                    epsilon=settings["epsilon"],
                    bounds_X=(np.full(d, -1.0), np.full(d, 1.0)),
                    bounds_y=(-1.0, 1.0),
                    random_state=seed,
                )
            else:
                model = models.LogisticRegression(
                    epsilon=settings["epsilon"], data_norm=float(np.sqrt(d)), random_state=seed, max_iter=1000
                )
            start = time.process_time()
            model.fit(features, number if kind == "linear" else label)
            seconds.append(time.process_time() - start)
            coefficients.append(np.asarray(model.coef_).ravel().tolist())
        found[kind] = {"coefficients": coefficients, "seconds": float(np.mean(seconds))}
    return found


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(main(Path(sys.argv[1]))) + "\n")
