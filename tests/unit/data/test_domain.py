import itertools
import math

import numpy as np
import pytest

from syndic.data import Domain
from syndic.errors import InputError

DOMAIN = Domain(("a", "b", "c"), (2, 3, 4))


def test_project_keeps_the_order_given() -> None:
    assert DOMAIN.project(["c", "a"]) == Domain(("c", "a"), (4, 2))


def test_size_is_exact_beyond_machine_integers() -> None:
    assert Domain.of({str(i): 10 for i in range(100)}).size == 10**100


def test_index_numbers_cells_as_nested_loops_do() -> None:
    rows = list(itertools.product(range(2), range(3), range(4)))
    codes = [np.array(column, dtype=np.uint8) for column in zip(*rows, strict=True)]
    assert DOMAIN.index(codes).tolist() == list(range(24))
    assert list(zip(*(code.tolist() for code in DOMAIN.unravel(np.arange(24))), strict=True)) == rows


def test_index_reaches_63_bits_and_no_further() -> None:
    widest = Domain.of({"x": 2**32, "y": 2**31})
    last = widest.index([np.array([2**32 - 1], dtype=np.uint32), np.array([2**31 - 1], dtype=np.uint32)])
    assert last.tolist() == [2**63 - 1]
    assert [code.tolist() for code in widest.unravel(last)] == [[2**32 - 1], [2**31 - 1]]
    with pytest.raises(InputError, match=str(2**64)):
        Domain.of({"x": 2**32, "y": 2**32}).check_index()


def test_unknown_column_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"\['z'\].*\['a', 'b', 'c'\]"):
        DOMAIN.project(["a", "z"])


@pytest.mark.parametrize(("names", "sizes"), [(("a", "a"), (1, 1)), (("a",), (0,)), (("a",), (1, 2))])
def test_domain_checks_itself(names: tuple[str, ...], sizes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"distinct|at least 1|one size"):
        Domain(names, sizes)


def test_membership_and_length() -> None:
    assert "b" in DOMAIN
    assert "z" not in DOMAIN
    assert (len(DOMAIN), DOMAIN["b"], DOMAIN.size) == (3, 3, math.prod((2, 3, 4)))
