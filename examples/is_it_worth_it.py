"""Measure the error of a released count at three budgets, on artificial rows. Nothing is spent.

A coordinator may run this with columns and sizes like those of a planned study, before asking parties to agree.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import syndic as sy

STUDY = """
name = "rehearsal"
[unit]
neighbours = "add_remove"
[budget]
epsilon = {epsilon}
[protocol]
method = "homm"
[[parties]]
name = "a"
[[parties]]
name = "b"
[[schema.columns]]
name = "age"
kind = "integer"
lower = 18
upper = 95
bins = 6
missing = {{ value = 50 }}
[[schema.columns]]
name = "treated"
kind = "boolean"
missing = {{ value = false }}
"""


def artificial(people: int, seed: int) -> pa.Table:
    """Return artificial rows."""
    draws = np.random.default_rng(seed)
    age = draws.integers(18, 96, people)
    return pa.table({"age": age, "treated": draws.random(people) < age / 150})


def main() -> None:
    """Compare the number of treated people in the release with the truth, at three budgets."""
    rows = {"a": artificial(1500, 1), "b": artificial(900, 2)}
    true = sum(pc.sum(table["treated"]).as_py() for table in rows.values())
    for epsilon in (0.1, 0.5, 2.0):
        study = sy.Study.loads(STUDY.format(epsilon=epsilon))
        errors = []
        for seed in range(5):
            released = sy.simulate(study, rows, seed=seed).table.to_arrow()
            errors.append(pc.sum(released["treated"]).as_py() - true)
        spread = float(np.sqrt(np.mean(np.square(errors))))
        print(f"epsilon {epsilon:g}: {true} treated people, root mean squared error {spread:.0f}")


if __name__ == "__main__":
    main()
