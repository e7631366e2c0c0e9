"""Shamir's secret sharing over the field of 2^16 elements: any `threshold` shares give the secret, fewer tell nothing.

Two bytes are one element, so secrets are any even number of bytes and every share is as long as the secret. Shares are
values of a random polynomial at the points 1, 2, ...; there may be 65,535 of them.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.random import Randomness

# x^16 + x^12 + x^3 + x + 1, of which x is a primitive root
_POLYNOMIAL = 0x1100B
_ORDER = (1 << 16) - 1
_ELEMENT = np.dtype("<u2")


def share(secret: bytes, points: Sequence[int], threshold: int, randomness: Randomness) -> list[bytes]:
    """Return the shares of a secret at some points, of which `threshold` are needed to open it."""
    if not 1 <= threshold <= len(points) or not all(1 <= point <= _ORDER for point in points):
        raise InputError(f"{threshold} of {len(points)} shares: give a threshold of 1 to all, at points from 1")
    width = len(secret) // 2
    constant = np.frombuffer(secret, dtype=_ELEMENT)
    random = randomness.bytes(2 * width * (threshold - 1))
    coefficients = np.frombuffer(random, dtype=_ELEMENT).reshape(threshold - 1, width)
    at = np.asarray(points, dtype=np.uint16)[:, None]
    values = np.zeros((len(points), width), dtype=np.uint16)
    for coefficient in coefficients:
        values = multiply(values ^ coefficient, at)
    return [row.astype(_ELEMENT).tobytes() for row in values ^ constant]


def recover(shares: Sequence[bytes], points: Sequence[int]) -> bytes:
    """Return the secret from as many shares as its threshold; wrong or too few shares give another secret."""
    values = np.frombuffer(b"".join(shares), dtype=_ELEMENT).reshape(len(shares), -1)
    terms = multiply(values.astype(np.uint16), _weights(tuple(points))[:, None])
    secret: NDArray[np.uint16] = np.bitwise_xor.reduce(terms, axis=0)
    return secret.astype(_ELEMENT).tobytes()


def multiply(left: NDArray[np.uint16], right: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """Return products in the field."""
    powers, logarithms = _tables()
    product: NDArray[np.uint16] = powers[logarithms[left] + logarithms[right]]
    return product


@lru_cache(maxsize=256)
def _weights(points: tuple[int, ...]) -> NDArray[np.uint16]:
    """Return Lagrange's weights at 0: the product of x_j / (x_j - x_i) over the others; minus is plus here."""
    if len(set(points)) != len(points):
        raise InputError("two shares at the same point: each holder gives one")
    powers, logarithms = _tables()
    at = np.asarray(points, dtype=np.uint16)
    own = logarithms[at].astype(np.int64)
    between = logarithms[at[:, None] ^ at[None, :]].astype(np.int64)
    np.fill_diagonal(between, 0)
    weights: NDArray[np.uint16] = powers[(own.sum() - own - between.sum(axis=1)) % _ORDER]
    return weights


@lru_cache(maxsize=1)
def _tables() -> tuple[NDArray[np.uint16], NDArray[np.uint32]]:
    """Return the powers of x and their inverse. The logarithm of 0 points to where all powers are 0."""
    first = np.ones(1, dtype=np.int64)
    while len(first) <= _ORDER:
        # x^(n + i) from x^i, for all i < n at once: multiplying by x^n is linear over the 16 bits
        shifted, factor = np.zeros_like(first), int(first[-1])
        for bit in range(16):
            factor = (factor << 1) ^ (_POLYNOMIAL if factor >> 15 else 0)
            shifted ^= np.where(first >> bit & 1, factor, 0)
        first = np.concatenate([first, shifted])
    powers = np.zeros(4 * _ORDER + 1, dtype=np.uint16)
    powers[: 2 * _ORDER] = np.tile(first[:_ORDER], 2)
    logarithms = np.zeros(_ORDER + 1, dtype=np.uint32)
    logarithms[first[:_ORDER]] = np.arange(_ORDER)
    logarithms[0] = 2 * _ORDER
    return powers, logarithms
