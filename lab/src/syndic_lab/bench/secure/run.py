"""Secure statistics: masked sums, noise that nobody knows, products across parties, proofs of lengths."""

from collections.abc import Iterator
from itertools import chain

from syndic_lab.bench.row import Row
from syndic_lab.bench.secure import gram as secure_gram
from syndic_lab.bench.secure import noise as secure_noise
from syndic_lab.bench.secure import product as secure_product
from syndic_lab.bench.secure import sum as secure_sum


def rows(quick: bool) -> Iterator[Row]:
    """Yield the rows of the four parts."""
    return chain(*(part.rows(quick) for part in (secure_sum, secure_noise, secure_product, secure_gram)))
