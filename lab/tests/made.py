"""Coded tables whose columns hang together, for the suites about benchmarks."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from syndic.data import Schema
from syndic_lab.bench.model.synthesis_data import Coded


def made_table(sizes: Mapping[str, int], count: int) -> Coded:
    """Return rows of columns of these sizes, all of which follow one hidden number."""
    draws = np.random.default_rng(1)
    hidden = draws.random(count)
    columns = {
        name: np.minimum(size - 1, (hidden * size + draws.normal(0, 0.3, count)).clip(0)).astype(np.int64)
        for name, size in sizes.items()
    }
    return Coded("made", Schema.from_domain(dict(sizes)), pa.table(columns))
