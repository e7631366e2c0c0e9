"""Secure statistics: masked sums, noise that nobody knows, products across parties."""

from collections.abc import Iterator
from itertools import chain

from syndic_lab.bench.row import Row
from syndic_lab.bench.secure import noise as secure_noise
from syndic_lab.bench.secure import product as secure_product
from syndic_lab.bench.secure import sum as secure_sum


def rows(quick: bool) -> Iterator[Row]:
    """Yield the rows of the three parts."""
    return chain(secure_sum.rows(quick), secure_noise.rows(quick), secure_product.rows(quick))
