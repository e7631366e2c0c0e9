"""Matrix triples: two parties get shares of X'Y without revealing X or Y, helped by a dealer that sees neither.

*Algebra.* The dealer gives each party p a seed; it expands to one uniform mask U_p of the shape of p's matrix X_p. For
every pair (p left, q right) the dealer also makes halves H_p + H_q = U_p'U_q; H_p comes from p's seed, only H_q is
sent. Each party opens E_p = X_p - U_p to its partners, hidden from the dealer. Then Y_p = X_p'E_q + H_p and
Y_q = E_p'U_q + H_q add up to X_p'X_q, because X_p'E_q + E_p'U_q + U_p'U_q = X_p'(X_q - U_q) + (E_p + U_p)'U_q.

*One mask, many partners.* U_p hides one matrix, X_p, so E_p is one message however many partners read it. A coalition
of parties without p and without the dealer sees E_p, its own seeds and, for each member q, either H_q = U_p'U_q - H_p
(H_p is a fresh pad from p's seed, another for every partner and block) or a half from its own seed. The pads make
all of that independent of U_p, so E_p stays uniform. Two matrices under one U_p would reveal their difference; a party
therefore accepts one seed per product, expands it under the product's label, and opens every block of rows once.

*Room.* Products are shared in a ring or field that holds the whole result and its noise. Smaller ones would save
traffic, but whoever lies about a wrapped block then learns whether its count exceeds a number that it chose.

*What breaks it.* The dealer and one party together can read the matrices of that party's partners. A party can put any
elements into its matrix: what rows are is therefore proven (`syndic.mpc.proof`). A dealer that deals wrong halves
only shifts the result by a number it knows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.mpc.key import context
from syndic.mpc.limb import matrix_product
from syndic.mpc.mask import expand
from syndic.mpc.ring import Integers, field_for, ring_for

# one cell in so many is faster by itself; products of two elements must fit 64 bits
_FEW: Final = 64
_MOST_BITS: Final = 31

Cells = NDArray[np.int64] | None
"""Indices of the selected cells of a product, row by row; None for all of them."""


@final
@dataclass(frozen=True, kw_only=True)
class ProductSizes:
    """Public numbers of a product.

    A product of two entries is between `low` and `high`, an entry between -`entry` and `entry`; masked matrices and
    the result are in `ring`; `chunk` rows are sent in one message.
    """

    rows: int
    low: int
    high: int
    entry: int
    ring: Integers
    chunk: int

    @property
    def centre(self) -> int:
        """The middle of the range of the result: subtracted before opening, added back after."""
        return (self.low + self.high) * self.rows // 2

    @property
    def chunks(self) -> int:
        """The number of messages for all rows."""
        return -(-self.rows // self.chunk)

    def span(self, chunk: int) -> tuple[int, int]:
        """Return the first row of a chunk and the one after its last."""
        return chunk * self.chunk, min(self.rows, (chunk + 1) * self.chunk)


def product_sizes(
    *,
    rows: int,
    entry: int,
    signed: bool,
    headroom: int,
    columns: Sequence[int],
    proven: bool = False,
    least: int = 0,
    chunk_bytes: int = 1 << 24,
) -> ProductSizes:
    """Return the smallest ring, or field if rows are `proven`, that holds the result with its noise.

    Entries are between 0 and `entry`, or between -`entry` and `entry` if `signed`. `headroom` is the largest noise
    that will be added to a cell, `columns` how many each party sends, `least` how many elements the field has at least.
    A chunk of masked rows takes about `chunk_bytes`.
    """
    low, high = (-(entry**2) if signed else 0), entry**2
    bound = -(-(high - low) * rows // 2) + headroom
    ring = field_for(bound, least) if proven else ring_for(bound)
    chunk = min(rows, max(1, 8 * chunk_bytes // (ring.bits * max(1, *columns))))
    return ProductSizes(rows=rows, low=low, high=high, entry=entry, ring=ring, chunk=chunk)


@final
@dataclass(frozen=True, kw_only=True)
class Stock:
    """The numbers that one seed of the dealer expands to: known to the dealer and to the `party` that got the seed.

    Two parties that are dealt the same seed still have different masks. `label` distinguishes the products of a study.
    """

    seed: bytes
    study: str
    party: str
    sizes: ProductSizes
    label: str = "product"

    def mask(self, chunk: int, columns: int) -> NDArray[Any]:
        """Return the mask of the party's own rows of a chunk."""
        start, stop = self.sizes.span(chunk)
        return self._drawn((stop - start, columns), "mask", chunk)

    def half(self, partner: str, chunk: int, shape: tuple[int, int]) -> NDArray[Any]:
        """Return the left party's half of a chunk's triple."""
        return self._drawn(shape, "half", partner, chunk)

    def _drawn(self, shape: tuple[int, ...], *what: str | int) -> NDArray[Any]:
        place = context(self.label, self.study, self.party, *what)
        return expand(self.seed, place, int(np.prod(shape)), self.sizes.ring).reshape(shape)


def opening(matrix: NDArray[Any], mask: NDArray[Any], ring: Integers) -> NDArray[Any]:
    """Return the masked matrix: uniform to everyone without the mask."""
    if matrix.shape != mask.shape:
        raise InputError(f"the matrix has shape {matrix.shape}, but its mask has shape {mask.shape}")
    return ring.subtract(ring.reduce(matrix), mask)


def dealt_half(
    left: NDArray[Any], right: NDArray[Any], half: NDArray[Any], ring: Integers, cells: Cells = None
) -> NDArray[Any]:
    """Return what the dealer sends the right party: the product of the masks minus the left party's half."""
    return ring.subtract(wanted(left, right, ring, cells), half)


def left_share(
    matrix: NDArray[Any], opened: NDArray[Any], half: NDArray[Any], sizes: ProductSizes, cells: Cells = None
) -> NDArray[Any]:
    """Return the left party's share of a product: its own matrix times the partner's opening."""
    return sizes.ring.add(wanted(matrix, opened, sizes.ring, cells, bound=sizes.entry), half)


def right_share(
    opened: NDArray[Any], mask: NDArray[Any], half: NDArray[Any], sizes: ProductSizes, cells: Cells = None
) -> NDArray[Any]:
    """Return the right party's share of a product: the partner's opening times its own mask."""
    return sizes.ring.add(wanted(opened, mask, sizes.ring, cells), half)


def wanted(left: NDArray[Any], right: NDArray[Any], ring: Integers, cells: Cells, *, bound: int = 0) -> NDArray[Any]:
    """Return the product of two matrices, or its selected cells in one column."""
    if cells is None or _FEW * cells.size > left.shape[1] * right.shape[1] or ring.bits > _MOST_BITS:
        product = matrix_product(left, right, ring, bound=bound)
        return product if cells is None else product.reshape(-1)[cells][:, None]
    rows, columns = np.divmod(cells, right.shape[1])
    total = ring.reduce(np.zeros(cells.size, dtype=np.int64))
    for one, other in zip(left, right, strict=True):
        total = ring.add(total, ring.reduce(one[rows].astype(np.int64) * other[columns].astype(np.int64)))
    return total[:, None]
