"""Secure statistics: masked sums, noise that nobody knows, products across parties."""

from collections.abc import Iterator
from itertools import chain

from syndic.bench import secure_noise, secure_product, secure_sum
from syndic.bench.row import Row


def rows(quick: bool) -> Iterator[Row]:
    """Yield the rows of the three parts."""
    return chain(secure_sum.rows(quick), secure_noise.rows(quick), secure_product.rows(quick))
