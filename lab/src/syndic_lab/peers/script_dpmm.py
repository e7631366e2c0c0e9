"""MST and AIM by dpmm. Runs as a script in an interpreter that has dpmm; imports nothing of Syndic."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


def main(folder: Path) -> dict[str, Any]:
    """Read `rows.npz` and `settings.json`, leave `made.npy`; return CPU seconds. Its noise has no seed."""
    import pandas as pd  # noqa: PLC0415 - only in that interpreter
    from dpmm.pipelines import (  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415
        AIMPipeline,
        MSTPipeline,
    )

    settings = json.loads((folder / "settings.json").read_text())
    with np.load(folder / "rows.npz") as rows:
        codes, sizes = rows["codes"], rows["sizes"]
    names = [f"c{place:02d}" for place in range(len(sizes))]
    more = {"rounds": settings["rounds"]} if settings["method"] == "AIM" else {}
    pipeline = {"MST": MSTPipeline, "AIM": AIMPipeline}[settings["method"]](
        epsilon=settings["epsilon"],
        delta=settings["delta"],
        max_model_size=settings.get("megabytes"),
        # the rows are coded already, and CPU time is counted in this process only
        disable_processing=True,
        n_jobs=1,
        gen_kwargs={"n_iters": settings["steps"], **more},
    )
    table = pd.DataFrame(codes, columns=names)
    start = time.process_time()
    pipeline.fit(table, domain=dict(zip(names, sizes.tolist(), strict=True)), random_state=settings["seed"])
    made = pipeline.generate(n_records=len(table), random_state=settings["seed"])
    seconds = time.process_time() - start
    np.save(folder / "made.npy", made[names].to_numpy().astype(np.int64))
    return {"seconds": seconds}


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(main(Path(sys.argv[1]))) + "\n")
