"""Masks: expand one 256-bit key to any number of uniform ring elements with ChaCha20.

Without the key the elements are indistinguishable from uniform ones, so a value plus a mask reveals nothing. A mask
must hide one vector only: two vectors under the same mask reveal their difference. So every use has its own context.
"""

from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.mpc.key import KEY_BYTES, derive
from syndic.mpc.ring import Ring

_NONCE = bytes(16)
# the block counter of ChaCha20 has 32 bits, and a block 64 bytes
_MOST_BYTES = 1 << 38


def stream(key: bytes, context: bytes, length: int) -> bytes:
    """Return `length` bytes of the ChaCha20 stream of a key and a context."""
    if len(key) != KEY_BYTES:
        raise InputError(f"a key must have {KEY_BYTES} bytes, found {len(key)}")
    if length > _MOST_BYTES:
        raise InputError(f"one key and context give at most {_MOST_BYTES} bytes, not {length}: use several contexts")
    # the nonce may be constant, because the derived key is used for this context only
    cipher = Cipher(ChaCha20(derive(key, b"mask", context), _NONCE), mode=None)
    return cipher.encryptor().update(bytes(length))


def expand(key: bytes, context: bytes, count: int, ring: Ring) -> NDArray[Any]:
    """Return `count` uniform elements of `ring`, from a 32-byte key and a context."""
    data = stream(key, context, count * ring.dtype.itemsize)
    return ring.reduce(np.frombuffer(data, dtype=ring.dtype.newbyteorder("<")))
