"""Masks: expand one 256-bit key to any number of uniform elements with ChaCha20.

Without the key the elements are indistinguishable from uniform ones, so a value plus a mask reveals nothing. A mask
must hide one vector only: two vectors under the same mask reveal their difference. So every use has its own context.
"""

from typing import Any, Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.mpc.key import KEY_BYTES, derive
from syndic.mpc.key import context as encoded
from syndic.mpc.ring import Integers, Residues

_NONCE: Final = bytes(16)
# a stream is made in pieces that fit the processor's cache
_ZEROS: Final = bytes(1 << 18)
# the block counter of ChaCha20 has 32 bits, and a block 64 bytes
_MOST_BYTES: Final = 1 << 38


def stream(key: bytes, context: bytes, length: int) -> bytes:
    """Return `length` bytes of the ChaCha20 stream of a key and a context."""
    return _cipher(key, context, length).update(bytes(length))


def _cipher(key: bytes, context: bytes, length: int) -> CipherContext:
    if len(key) != KEY_BYTES:
        raise InputError(f"a key must have {KEY_BYTES} bytes, found {len(key)}")
    if length > _MOST_BYTES:
        raise InputError(f"one key and context give at most {_MOST_BYTES} bytes, not {length}: use several contexts")
    # the nonce may be constant, because the derived key is used for this context only
    return Cipher(ChaCha20(derive(key, b"mask", context), _NONCE), mode=None).encryptor()


def expand(key: bytes, context: bytes, count: int, ring: Integers) -> NDArray[Any]:
    """Return `count` uniform elements of `ring`, from a 32-byte key and a context."""
    elements = _words(key, context, count, ring)
    if isinstance(ring, Residues):
        # numbers that are no elements are drawn again, so that the elements are exactly uniform
        wrong, attempt = np.flatnonzero(elements >= ring.modulus), 0
        while wrong.size:
            attempt += 1
            elements[wrong] = _words(key, context + encoded("drawn again", attempt), wrong.size, ring)
            wrong = wrong[elements[wrong] >= ring.modulus]
    return elements


def _words(key: bytes, context: bytes, count: int, ring: Integers) -> NDArray[Any]:
    """Return uniform integers of as many bits as an element."""
    found, size = np.empty(count, dtype=ring.dtype), ring.dtype.itemsize
    cipher, step = _cipher(key, context, count * size), len(_ZEROS) // size
    for start in range(0, count, step):
        part = found[start : start + step]
        words = np.frombuffer(cipher.update(_ZEROS[: part.nbytes]), dtype=ring.dtype.newbyteorder("<"))
        np.bitwise_and(words, ring.dtype.type((1 << ring.bits) - 1), out=part)
    return found
