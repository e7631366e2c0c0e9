"""VertiGAN's figures: distances beside those of rows without knowledge, time, and bytes of the busiest party."""

from typing import Any

import numpy as np
import pyarrow as pa

from support import needs_torch
from syndic.data import Schema
from syndic_lab.bench.model.synthesis_data import Coded

SIZES = {"a": 3, "b": 4, "c": 2}
TINY: dict[str, Any] = {
    "rounds": 2,
    "critic_steps": 1,
    "batch": 8,
    "trunk": (4,),
    "branch": (4,),
    "critic": 4,
    "noise": 3,
}

pytestmark = needs_torch


def coded(count: int = 200) -> Coded:
    draws = np.random.default_rng(1)
    columns = {name: np.minimum(draws.poisson(0.3, count), size - 1) for name, size in SIZES.items()}
    return Coded("made", Schema.from_domain(SIZES), pa.table(columns))


def test_bytes_are_those_of_the_busiest_party() -> None:
    from syndic_lab.bench.vertical.gan import gan  # noqa: PLC0415

    found = gan(coded(), "2", 0, 2, **TINY)
    # two rounds, both ways, of trunk and the wider branch: 3 x 4 + 4 weights, and 4 x 4 + 4 + 4 x 7 + 7
    weights = 2 * 2 * 4 * (16 + 55)
    assert weights < found.sent < weights + 3000
    assert 0 < found.apart[3] <= 1


def test_rows_stand_beside_rows_without_knowledge() -> None:
    from syndic_lab.bench.vertical.gan import gan_rows  # noqa: PLC0415

    found = list(gan_rows(coded(), [0], 2, ("2",), {"tiny": TINY, "longer": {**TINY, "rounds": 3}}))
    assert [row.metric for row in found] == ["tvd3", "seconds", "megabytes"] * 2
    assert {row.row for row in found} == {f"made, epsilon 2, 2 parties, {name}" for name in ("tiny", "longer")}
    assert all(row.baseline is not None and 0.3 < row.baseline < 1 for row in found if row.metric == "tvd3")
    assert found[5].value > found[2].value
