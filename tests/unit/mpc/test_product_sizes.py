"""What is multiplied: shapes of shares, and who is left of whom."""

import numpy as np

from syndic.mpc.product import SecureProduct
from syndic.mpc.product_messages import partners_of
from syndic.mpc.ring import Ring
from syndic.mpc.triple import ProductSizes

SIZES = ProductSizes(rows=9, low=0, high=1, entry=1, ring=Ring(16), chunk=9)
PAIRS = (("a", "b"), ("c", "a"))


def test_a_share_has_the_shape_of_the_product_or_of_the_wanted_cells() -> None:
    groups = {"a": (2, 3), "b": (4,), "c": (1, 1, 1)}
    work = SecureProduct(label="l", sizes=SIZES, pairs=PAIRS, groups=groups, cells={("c", "a"): np.arange(7)})
    assert work.shape(("a", "b")) == (5, 4)
    assert work.shape(("c", "a")) == (7, 1)


def test_partners_are_found_from_either_side() -> None:
    work = SecureProduct(label="l", sizes=SIZES, pairs=PAIRS, groups={})
    assert work.pair("a", "b") == work.pair("b", "a") == ("a", "b")
    assert work.pair("a", "c") == work.pair("c", "a") == ("c", "a")
    assert list(partners_of(PAIRS, "a")) == ["b", "c"]
    assert list(partners_of(PAIRS, "b")) == ["a"]
