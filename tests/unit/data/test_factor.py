import itertools
import math
from collections.abc import Iterable

import numpy as np
import pytest

from syndic.data import Domain, Factor

DOMAIN = Domain(("a", "b", "c"), (2, 3, 4))
RANDOM = np.random.default_rng(5)
LEFT = Factor(DOMAIN, RANDOM.normal(size=(2, 3, 4)))


def cells(domain: Domain) -> Iterable[dict[str, int]]:
    for codes in itertools.product(*map(range, domain.sizes)):
        yield dict(zip(domain.names, codes, strict=True))


def at(factor: Factor, cell: dict[str, int]) -> float:
    return float(factor.values[tuple(cell[name] for name in factor.domain.names)])


@pytest.mark.parametrize("names", [(), ("b",), ("c", "a"), ("c", "b", "a")])
def test_project_sums_out_the_other_columns(names: tuple[str, ...]) -> None:
    plain = LEFT.project(names)
    assert plain.domain.names == names
    for cell in cells(plain.domain):
        inside = [at(LEFT, whole) for whole in cells(DOMAIN) if cell.items() <= whole.items()]
        assert at(plain, cell) == pytest.approx(math.fsum(inside))


def test_factor_checks_its_shape() -> None:
    with pytest.raises(ValueError, match="shape"):
        Factor(DOMAIN, np.zeros((2, 3)))


def test_counts_stay_exact_integers() -> None:
    counts = Factor(Domain.of({"a": 2}), np.array([2**62, 1], dtype=np.int64)).project([])
    assert counts.values.dtype == np.int64
    assert int(counts.sum()) == 2**62 + 1
