"""The bench of sketches measures what it says."""

import numpy as np
import pytest

from syndic.methods.vertimrf.sketch.encode import People, SketchPlan, encode, person_digests, printed_plan
from syndic.methods.vertimrf.sketch.estimate import cell_error
from syndic.random import SystemRandomness
from syndic_lab.bench.sketch import choose
from syndic_lab.bench.sketch import error as sketch_error
from syndic_lab.bench.sketch import run as sketch
from syndic_lab.bench.sketch.choose import sound_plan

KEY = b"0123456789abcdef"


def test_the_plain_kernel_makes_the_same_sketches() -> None:
    codes = np.random.default_rng(3).integers(0, 3, (500, 2))
    ids = [str(place).encode() for place in range(500)]
    plan = SketchPlan(phantoms=0, floor=4, repetitions=11)
    ours = encode(plan, KEY, [People(person_digests(KEY, ids), codes)], [3, 3], SystemRandomness())
    assert (sketch.plain_sketches(plan, KEY, ids, codes, [3, 3], 11) == ours).all()


def test_the_kernel_is_faster_than_the_plain_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SYNDIC_DATA", raising=False)
    monkeypatch.setattr(sketch, "_REPETITIONS", 200)
    found = {(row.row.partition(",")[0], row.metric): row for row in sketch.times(quick=True)}
    row = found["sketch", "ratio"]
    assert row.value > 3  # ten, alone on a machine
    seconds = found["sketch", "seconds"]
    assert seconds.published == pytest.approx(1386)
    assert seconds.baseline is not None


def test_measured_errors_are_those_expected() -> None:
    plan = printed_plan(epsilon=0.4, delta=1e-5, columns=15)
    assert cell_error(plan, people=45_222 - 2826, sketches=6) == pytest.approx(1801, rel=0.01)
    # cells of a run err alike: 40 runs are worth 40 draws, whose sd is uncertain by 11 %
    assert sketch_error.sketch_error(plan, 40) == pytest.approx(1801, rel=0.6)
    # all tables at once: 64.6 by the exact Gaussian profile
    assert sketch_error.secure_product_error(56) == pytest.approx(64.6, rel=0.05)


def test_the_best_sound_plan_has_a_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "_POINTS", 2**16)  # a coarser grid asks for more noise, never for less
    plan = sound_plan(
        SketchPlan(phantoms=1, floor=0, repetitions=2000),
        columns=2, keys=8, epsilon=1.0, delta=1e-5, neighbours="add_remove", people=45_222, sketches=6,
    )  # fmt: skip
    assert plan.cap is not None
    assert cell_error(plan, people=45_222, sketches=6) < 1500
