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

*Small rings.* The masked matrices are most of the traffic, so they are as small as a block of B rows allows, not the
whole table: with every block product in [0, 2^(b-1)) (after a public shift) b bits do. Shares of a block then have a
sum of either the value or the value + 2^b; the latter exactly if one of the two shares is 2^(b-1) or more. That is an
"or" of one bit of each party, w = a + c - a c, and the products a c are added up over the blocks by a second, small
triple in the ring of the remaining bits: the parties exchange a - r_p and c - r_q, the dealer shares sum r_p r_q.

*What breaks it.* The dealer and one party together can read the matrices of that party's partners. Semi-honest: a party
can put any ring elements into its matrix. If nothing is lifted, a dealer that deals wrong halves only shifts the result
by a number it knows. If blocks are lifted, it could make a block wrap at a value that it chose and see whether it did.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.mpc.key import context
from syndic.mpc.limb import block_products
from syndic.mpc.mask import expand
from syndic.mpc.ring import Ring, ring_for

Cells = NDArray[np.int64] | None
"""Indices of the selected cells of a product, row by row; None for all of them."""


@final
@dataclass(frozen=True, kw_only=True)
class ProductSizes:
    """Public numbers that determine rings and blocks.

    A product of two entries is between `low` and `high`, an entry between -`entry` and `entry`; `small` is the ring of
    the masked matrices, `whole` that of the result; `block` rows are multiplied together and `chunk` rows are
    sent in one message.
    """

    rows: int
    low: int
    high: int
    entry: int
    small: Ring
    whole: Ring
    block: int
    chunk: int

    @property
    def lifted(self) -> bool:
        """Whether blocks are shared in a smaller ring than the result."""
        return self.small.bits < self.whole.bits

    @property
    def carry(self) -> Ring:
        """The ring for the number of blocks that wrapped."""
        return Ring(self.whole.bits - self.small.bits)

    @property
    def shift(self) -> int:
        """The constant that makes the product of a block non-negative."""
        return -self.low * self.block

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

    def blocks(self, chunk: int) -> int:
        """Return how many blocks a chunk has."""
        start, stop = self.span(chunk)
        return -(-(stop - start) // self.block)


def product_sizes(
    *,
    rows: int,
    entry: int,
    signed: bool,
    headroom: int,
    columns: Sequence[int],
    cells: int,
    lift: bool = True,
    chunk_bytes: int = 1 << 24,
) -> ProductSizes:
    """Return the rings and blocks that need the least traffic.

    Entries are between 0 and `entry`, or between -`entry` and `entry` if `signed`. `headroom` is the largest noise
    that will be added to a cell, `columns` how many each party sends, `cells` the number of cells of all pairs'
    products together. A chunk of masked rows takes about `chunk_bytes`.
    """
    low, high = (-(entry**2) if signed else 0), entry**2
    whole = ring_for(-(-(high - low) * rows // 2) + headroom)
    best, small, block = (rows * sum(columns) + cells) * whole.bits, whole, rows
    for bits in range(2, whole.bits) if lift else ():
        height = ((1 << (bits - 1)) - 1) // (high - low)
        if height:
            carries = cells * -(-rows // height)
            traffic = rows * sum(columns) * bits + carries * (2 * whole.bits - bits)
            if traffic < best:
                best, small, block = traffic, Ring(bits), height
    wanted = max(1, 8 * chunk_bytes // (small.bits * max(1, *columns)))
    # a chunk consists of whole blocks; if nothing is lifted, blocks may be of any size
    block = min(block, wanted) if small == whole else block
    chunk = min(rows, max(1, wanted // block) * block)
    return ProductSizes(rows=rows, low=low, high=high, entry=entry, small=small, whole=whole, block=block, chunk=chunk)


@final
@dataclass(frozen=True, kw_only=True)
class Stock:
    """The numbers that one seed of the dealer expands to: known to the dealer and to the party that got the seed.

    `label` distinguishes the products of a study: the same seed gives different masks for another product.
    """

    seed: bytes
    study: str
    sizes: ProductSizes
    label: str = "product"

    def mask(self, chunk: int, columns: int) -> NDArray[Any]:
        """Return the mask of the party's own rows of a chunk."""
        start, stop = self.sizes.span(chunk)
        return self._drawn(self.sizes.small, (stop - start, columns), "mask", chunk)

    def half(self, partner: str, chunk: int, shape: tuple[int, int]) -> NDArray[Any]:
        """Return the left party's halves of the triples of a chunk's blocks."""
        return self._drawn(self.sizes.small, (self.sizes.blocks(chunk), *shape), "half", partner, chunk)

    def wrap(self, partner: str, chunk: int, shape: tuple[int, int]) -> NDArray[Any]:
        """Return the masks of the party's wrap bits of a chunk's blocks."""
        return self._drawn(self.sizes.carry, (self.sizes.blocks(chunk), *shape), "wrap", partner, chunk)

    def carry(self, partner: str, shape: tuple[int, int]) -> NDArray[Any]:
        """Return the left party's half of the dealer's sum of products of wrap masks."""
        return self._drawn(self.sizes.carry, shape, "carry", partner)

    def _drawn(self, ring: Ring, shape: tuple[int, ...], *what: str | int) -> NDArray[Any]:
        count = int(np.prod(shape))
        return expand(self.seed, context(self.label, self.study, *what), count, ring).reshape(shape)


def row_sums(matrix: NDArray[Any], groups: Sequence[int], ring: Ring, *, complement: bool = False) -> bytes:
    """Return a digest of every row's sum in every group of columns, or of one minus that sum.

    In a row that sums to one in every group, one minus the sums of the opening are the sums of the mask.
    """
    starts = np.cumsum([0, *groups[:-1]])
    sums = ring.reduce(np.add.reduceat(matrix, starts, axis=1, dtype=np.uint64))
    return hashlib.sha256(ring.pack(ring.subtract(np.ones_like(sums), sums) if complement else sums)).digest()


def opening(matrix: NDArray[Any], mask: NDArray[Any], ring: Ring) -> NDArray[Any]:
    """Return the masked matrix: uniform to everyone without the mask."""
    if matrix.shape != mask.shape:
        raise InputError(f"the matrix has shape {matrix.shape}, but its mask has shape {mask.shape}")
    return ring.subtract(matrix.astype(ring.dtype), mask)


def dealt_half(
    left: NDArray[Any], right: NDArray[Any], half: NDArray[Any], sizes: ProductSizes, cells: Cells = None
) -> NDArray[Any]:
    """Return what the dealer sends the right party: the products of the masks minus the left party's half."""
    return sizes.small.subtract(_wanted(block_products(left, right, sizes.small, sizes.block), cells), half)


def left_blocks(
    matrix: NDArray[Any], opened: NDArray[Any], half: NDArray[Any], sizes: ProductSizes, cells: Cells = None
) -> NDArray[Any]:
    """Return the left party's share of every block's product: its own matrix times the partner's opening."""
    product = block_products(matrix, opened, sizes.small, sizes.block, bound=sizes.entry)
    share = sizes.small.add(_wanted(product, cells), half)
    if not sizes.lifted:
        return share
    return sizes.small.add(share, sizes.small.reduce(np.asarray(sizes.shift)))


def right_blocks(
    opened: NDArray[Any], mask: NDArray[Any], half: NDArray[Any], sizes: ProductSizes, cells: Cells = None
) -> NDArray[Any]:
    """Return the right party's share of every block's product: the partner's opening times its own mask."""
    return sizes.small.add(_wanted(block_products(opened, mask, sizes.small, sizes.block), cells), half)


def _wanted(blocks: NDArray[Any], cells: Cells) -> NDArray[Any]:
    """Return the selected cells of every block's product, in one column."""
    return blocks if cells is None else blocks.reshape(len(blocks), -1)[:, cells][:, :, None]


def folded(blocks: NDArray[Any], sizes: ProductSizes) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Return the sum of a party's block shares minus its own wraps, modulo 2^64, and the wrap bits themselves."""
    total = blocks.sum(axis=0, dtype=np.uint64)
    if not sizes.lifted:
        return total, np.zeros(0, dtype=np.bool_)
    wraps = blocks >= sizes.small.dtype.type(1 << (sizes.small.bits - 1))
    return total - (wraps.sum(axis=0, dtype=np.uint64) << np.uint64(sizes.small.bits)), wraps


def masked_wraps(wraps: NDArray[np.bool_], mask: NDArray[Any], sizes: ProductSizes) -> NDArray[Any]:
    """Return the wrap bits under their mask, for the partner."""
    return sizes.carry.subtract(wraps.astype(sizes.carry.dtype), mask)


def both_wrapped(bits: NDArray[Any], other: NDArray[Any]) -> NDArray[np.uint64]:
    """Return sums over blocks of products: own bits with the partner's masked ones (left), or masked with mask."""
    total: NDArray[np.uint64] = np.einsum("bij,bij->ij", bits.astype(np.uint64), other.astype(np.uint64))
    return total


def lifted_share(total: NDArray[np.uint64], both: NDArray[np.uint64], sizes: ProductSizes) -> NDArray[Any]:
    """Return a party's share of the whole product in the ring of the result.

    `both` is the party's share of the number of blocks in which both parties' bits were set.
    """
    return sizes.whole.reduce(total + (both << np.uint64(sizes.small.bits)))


def unshifted(share: NDArray[Any], sizes: ProductSizes) -> NDArray[Any]:
    """Subtract the shifts of all blocks; only the left party does this, once."""
    blocks = sum(sizes.blocks(chunk) for chunk in range(sizes.chunks)) if sizes.lifted else 0
    constant = blocks * sizes.shift % (1 << sizes.whole.bits)
    return sizes.whole.subtract(share, np.full_like(share, constant))


def fixed_point(values: NDArray[np.float64], lower: float, upper: float, bits: int) -> NDArray[np.int32]:
    """Return values clipped to public bounds as integers from -2^bits to 2^bits, clipped again after rounding.

    Without the second clip a rounding error could lengthen a row beyond what the sensitivity was computed for.
    """
    if not lower < upper or not 1 <= bits <= 24:
        raise InputError(f"fixed point needs lower < upper and 1 to 24 bits, not {lower}, {upper}, {bits}")
    scale = float(1 << bits)
    middle, half = (lower + upper) / 2, (upper - lower) / 2
    clipped = np.clip(np.nan_to_num(values, nan=middle), lower, upper)
    return np.clip(np.rint((clipped - middle) / half * scale), -scale, scale).astype(np.int32)
