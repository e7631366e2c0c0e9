"""What the coordinator carries in a masked sum looks uniform, whatever the values are.

Each chi-square statistic is compared with its quantile at 1e-8; there are fewer than three hundred of them.
"""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from many_parties import AddUp, Fleet
from syndic.kernel import decode
from syndic.mpc.key import derive
from syndic.mpc.mask import expand
from syndic.mpc.masked_sum import SumMasked
from syndic.mpc.ring import Ring

pytestmark = pytest.mark.statistical

LEVEL = 1e-8


def assert_uniform(values: NDArray[np.unsignedinteger], bits: int) -> None:
    """Compare the lowest and the highest bits, and pairs of neighbouring values, with the uniform law."""
    wide = values.astype(np.uint64)
    few = min(bits, 8)
    low, high = wide & np.uint64(2**few - 1), wide >> np.uint64(bits - few)
    assert_flat(low, 2**few)
    assert_flat(high, 2**few)
    if bits >= 4:
        assert_flat((low[:-1:2] & np.uint64(15)) * np.uint64(16) + (low[1::2] & np.uint64(15)), 256)


def assert_flat(sample: NDArray[np.uint64], cells: int) -> None:
    counts = np.bincount(sample.astype(np.int64), minlength=cells)
    assert len(counts) == cells
    statistic = float(((counts - sample.size / cells) ** 2).sum() / (sample.size / cells))
    assert stats.chi2.isf(1 - LEVEL, cells - 1) < statistic < stats.chi2.isf(LEVEL, cells - 1)


@pytest.mark.parametrize("missing", [0, 1])
@pytest.mark.parametrize("extreme", [-1, 0, 1])
@pytest.mark.parametrize("bound", [1, 1000, 2**40])
def test_masked_values_and_answers_are_uniform_in_the_ring(
    bound: int, extreme: int, missing: int, tmp_path: Path
) -> None:
    fleet = Fleet(AddUp(bound=bound, extreme=extreme, length=40_000, missing=missing), 4, tmp_path, seed=extreme)
    fleet.total()
    ring = fleet.protocol.ring(fleet.study)
    for step in ("add", "sum_open") if missing else ("add",):
        sent = [ring.unpack(decode(fleet.seen[(step, name)], SumMasked).values, 40_000) for name in fleet.names]
        for values in sent:
            assert_uniform(values, ring.bits)
        # nor do two parties' messages tell more together than the total does
        assert_uniform(ring.add(sent[0], sent[1]), ring.bits)
        assert_uniform(ring.subtract(sent[2], sent[1]), ring.bits)


@pytest.mark.parametrize("bits", [1, 7, 8, 13, 33, 64])
def test_expanded_masks_are_uniform_and_contexts_independent(bits: int) -> None:
    key = derive(b"key", bits)
    first, second = (expand(key, context, 100_000, Ring(bits)) for context in (b"one", b"two"))
    assert_uniform(first, bits)
    assert_uniform(Ring(bits).subtract(first, second), bits)
