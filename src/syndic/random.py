"""Sources of random bits. Randomness is always passed as an argument: no global generator, no default seed.

Noise of a party comes from `SystemRandomness` only. `SecretRandomness`, with a key from there, is for a coordinator,
which must be able to repeat its draws after it was killed: of a share of noise too, since the mean of two shares on one
sum would be less noise. `SimulationRandomness` is reproducible from a seed and therefore not private; everything made
with it is labelled as such (`simulated` is true).
"""

import hashlib
import os
from typing import ClassVar, Protocol, final

import numpy as np
from numpy.typing import NDArray

SECRET_BYTES = 32
_BLOCK_BYTES = 4096


class Randomness(Protocol):
    """A stream of uniform bits."""

    simulated: ClassVar[bool]

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` independent uniform 64-bit words."""

    def bytes(self, count: int) -> bytes:
        """Return `count` independent uniform bytes."""


@final
class SystemRandomness:
    """The operating system's generator."""

    simulated: ClassVar[bool] = False

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` independent uniform 64-bit words."""
        # a bytearray gives the array its own writable memory, so that no caller needs a copy
        return np.frombuffer(bytearray(os.urandom(8 * count)), dtype=np.uint64)

    def bytes(self, count: int) -> bytes:
        """Return `count` independent uniform bytes."""
        return os.urandom(count)


@final
class SecretRandomness:
    """A pseudorandom stream (SHAKE-256) that can be repeated with its key; without the key it looks uniform."""

    simulated: ClassVar[bool] = False

    def __init__(self, key: bytes, *labels: str) -> None:
        """Start the stream of `key`, 32 uniform bytes; different labels give independent streams."""
        if len(key) != SECRET_BYTES:
            raise ValueError(f"a key must have {SECRET_BYTES} bytes, found {len(key)}")
        # keys have a fixed length and labels are terminated before the block number, so all inputs differ
        self._start = hashlib.shake_256(key + "\x00".join([*labels, ""]).encode())
        self._blocks = 0
        self._rest = b""

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return the next `count` words of the stream."""
        return np.frombuffer(bytearray(self.bytes(8 * count)), dtype=np.uint64)

    def bytes(self, count: int) -> bytes:
        """Return the next `count` bytes of the stream."""
        parts = [self._rest]
        missing = count - len(self._rest)
        while missing > 0:
            block = self._start.copy()
            block.update(self._blocks.to_bytes(8, "little"))
            self._blocks += 1
            parts.append(block.digest(_BLOCK_BYTES))
            missing -= _BLOCK_BYTES
        drawn = b"".join(parts)
        self._rest = drawn[count:]
        return drawn[:count]


@final
class SimulationRandomness:
    """A reproducible stream for simulations, one for each seed and labels. Not private."""

    simulated: ClassVar[bool] = True

    def __init__(self, seed: int, *labels: str) -> None:
        """Start the stream of `seed`; different labels give independent streams."""
        text = "\x00".join([str(seed), *labels]).encode()
        key = np.frombuffer(hashlib.sha256(text).digest()[:16], dtype=np.uint64)
        self._stream = np.random.Philox(key=key)

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` words of the stream."""
        return np.asarray(self._stream.random_raw(count), dtype=np.uint64).reshape(count)

    def bytes(self, count: int) -> bytes:
        """Return `count` bytes of the stream."""
        return self.words(-(-count // 8)).tobytes()[:count]


def generator(randomness: Randomness) -> np.random.Generator:
    """Return a numpy generator seeded from `randomness`, for draws that need no privacy (values within bins)."""
    return np.random.Generator(np.random.Philox(key=randomness.words(2)))
