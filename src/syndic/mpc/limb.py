"""Exact products of integer matrices in a ring or a field, computed with numpy's floating-point product.

Why it is exact. A sum of integers whose absolute values add up to at most 2^24 (single precision) or 2^53 (double) is
exact in any order, with or without fused operations: every partial sum is an integer of at most that size. So one
floating-point product suffices if rows * left bound * right bound stays below it; elements of a ring of b bits are
first centred between -2^(b-1) and 2^(b-1), through numbers below 2^b, which must fit too. Otherwise both sides are
split into limbs of 16 bits (each product of limbs is below 2^32, so up to 2^21 rows fit) and the limb products are
added modulo 2^64. In a field of at most 24 bits as many rows are multiplied at once as fit 2^53; in a larger one the
left side is split into limbs of 18 bits, and the right side into as few as keep the sums over all rows below 2^53.
"""

from collections.abc import Sequence
from itertools import count
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syndic.mpc.ring import Integers, Residues, Ring, multiplied

_SINGLE: Final = 1 << 24
_DOUBLE: Final = 1 << 53
_LIMB_BITS: Final = 16
_LEFT_BITS: Final = 18
# a power of two of rows that must fit at once, else limbs are faster
_FEWEST: Final = 5
# rows multiplied at once: converted pieces of a hundred columns fit into the second-level cache
_PIECE: Final = 1 << 11
# numbers of joint columns at once
_JOINT: Final = 1 << 20


def matrix_product(left: NDArray[Any], right: NDArray[Any], ring: Integers, *, bound: int = 0) -> NDArray[Any]:
    """Return left' right in the ring.

    `right` holds elements of the ring. `left` does too, or with `bound` integers of at most that absolute value
    (1 for a one-hot matrix), which is cheaper.
    """
    total: NDArray[Any] = np.zeros((left.shape[1], right.shape[1]), dtype=ring.dtype)
    rows = _PIECE
    largest, whole = 1, False
    if isinstance(ring, Residues):
        largest = (bound or ring.modulus) * ring.modulus
        whole = largest < _DOUBLE >> _FEWEST
        rows = min(rows, _DOUBLE // largest) if whole else rows
    for start in range(0, len(left), rows):
        one, other = left[start : start + rows], right[start : start + rows]
        if isinstance(ring, Residues):
            product = one.T.astype(np.float64) @ other.astype(np.float64) if whole else _wide_product(one, other, ring)
            total = ring.add(total, ring.reduce(product.astype(np.int64)))
        else:
            total = ring.add(total, ring.reduce(_piece(one, other, ring, bound)))
    return total


def joint_product(matrices: Sequence[NDArray[Any]], last: NDArray[Any], field: Residues) -> NDArray[Any]:
    """Return the sums over rows of products of one column of each matrix, by columns of the last; in a small field.

    What several columns say together is made for some rows at a time: it may be much wider than the matrices.
    """
    width = prod(one.shape[1] for one in matrices)
    total: NDArray[Any] = np.zeros((width, last.shape[1]), dtype=field.dtype)
    rows = max(1, _JOINT // max(1, width))
    for start in range(0, len(last), rows):
        joint, *others = (one[start : start + rows].astype(np.int64) for one in matrices)
        for other in others:
            joint = (joint[:, :, None] * other[:, None, :] % field.modulus).reshape(len(joint), -1)
        total = field.add(total, matrix_product(joint, last[start : start + rows], field))
    return total


def _piece(left: NDArray[Any], right: NDArray[Any], ring: Ring, bound: int) -> NDArray[np.uint64]:
    half = 1 << (ring.bits - 1)
    # twice half: what `_centred` subtracts from is a whole number below 2^bits
    reach = max(len(left) * (bound or half) * half, 2 * half)
    if reach > _DOUBLE:
        return _limb_product(left, right, ring, bound)
    number: Any = np.float32 if reach <= _SINGLE else np.float64
    converted = left.astype(number) if bound else _centred(left, ring, number)
    product: NDArray[np.int64] = (converted.T @ _centred(right, ring, number)).astype(np.int64)
    return product.view(np.uint64)


def _centred(elements: NDArray[Any], ring: Ring, number: Any) -> NDArray[Any]:
    """Return the elements as floating-point numbers from -2^(bits-1) to 2^(bits-1)-1."""
    half = 1 << (ring.bits - 1)
    flipped = np.bitwise_xor(elements, ring.dtype.type(half))
    centred: NDArray[Any] = np.subtract(flipped, number(half), dtype=number)
    return centred


def _limb_product(left: NDArray[Any], right: NDArray[Any], ring: Ring, bound: int) -> NDArray[np.uint64]:
    wide_left = left.astype(np.int64).view(np.uint64) if bound else left.astype(np.uint64)
    first, second = _limbs(wide_left, ring), _limbs(right.astype(np.uint64), ring)
    total: NDArray[np.uint64] = np.zeros((left.shape[1], right.shape[1]), dtype=np.uint64)
    for low, one in enumerate(first):
        # limbs whose weight is 2^bits or more are multiples of the modulus
        for high, other in enumerate(second[: len(second) - low]):
            total += (one.T @ other).astype(np.uint64) << np.uint64(_LIMB_BITS * (low + high))
    return total


def _wide_product(left: NDArray[Any], right: NDArray[Any], field: Residues) -> NDArray[np.int64]:
    """Return the product of up to 2^11 rows in a field of at most 54 bits."""
    terms = (len(left) * limbs << (_LEFT_BITS - (-field.bits // limbs)) for limbs in count(1))
    size = -(-field.bits // next(limbs for limbs, sums in enumerate(terms, start=1) if sums <= _DOUBLE))
    shifts = range(0, field.bits, size)
    wide, elements = field.reduce(left).astype(np.int64), right.astype(np.int64)
    shifted = [multiplied(wide, np.full(1, pow(2, shift, field.modulus)), field.modulus) for shift in shifts]
    limbs = np.concatenate([((elements >> shift) & ((1 << size) - 1)).astype(np.float64) for shift in shifts])
    total: NDArray[np.int64] = np.zeros((left.shape[1], right.shape[1]), dtype=np.int64)
    for low in reversed(range(0, field.bits, _LEFT_BITS)):
        part = np.concatenate([(each >> low) & ((1 << _LEFT_BITS) - 1) for each in shifted]).astype(np.float64)
        total = multiplied(total, np.full(1, 1 << _LEFT_BITS), field.modulus)
        total = np.mod(total + (part.T @ limbs).astype(np.int64), field.modulus)
    return total


def _limbs(elements: NDArray[np.uint64], ring: Ring) -> list[NDArray[np.float64]]:
    mask = np.uint64((1 << _LIMB_BITS) - 1)
    shifts = range(0, ring.bits, _LIMB_BITS)
    return [((elements >> np.uint64(shift)) & mask).astype(np.float64) for shift in shifts]
