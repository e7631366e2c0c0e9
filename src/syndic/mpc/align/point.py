"""Ids as points of Curve25519, and secret powers of them: x-coordinates only, by X25519.

*Onto the curve.* An id's keyed hash goes through the Elligator 2 map (Bernstein, Hamburg, Krasnova and Lange 2013; RFC
9380, section 6.7.1), whose every image is on the curve. A hash taken as a coordinate itself would be on the curve half
of the time and on its twist otherwise, which no power hides: one bit of each id would leak. The map can be inverted,
so that a proof may program the hash as a random oracle.

*Powers.* X25519 multiplies by 8 times a number, so every result is in the subgroup of prime order, and powers commute:
whoever takes them in whatever order gets the same point. A blinding is a power that its owner can take back: RFC 7748
lets a scalar be one of 2^251 multiples of 8, about half of all residues modulo the order, and a blinding is drawn until
its inverse is one of them too. Anything that a dishonest party sends instead of points, on the curve or its twist,
is no more harmful to the secret power than any public key that X25519 may receive.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from syndic.errors import RefusedError
from syndic.random import Randomness

POINT_BYTES = 32
HASH_BYTES = 64

_PRIME = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_CURVE = 486662  # the A of y^2 = x^3 + A x^2 + x
_TWOS = (8, *((low & -low).bit_length() - 1 for low in range(1, 256)))  # how often 2 divides a byte


def points_of(digests: Iterable[bytes]) -> bytes:
    """Return, one after the other, the x-coordinates that hashes of 64 uniform bytes are mapped to."""
    # 1 + 2 r^2 is never 0, because -1/2 is no square modulo the prime
    spreads = [(1 + 2 * pow(int.from_bytes(digest, "little"), 2, _PRIME)) % _PRIME for digest in digests]
    return b"".join([_point(spread, inverse) for spread, inverse in zip(spreads, _inverses(spreads), strict=True)])


def _point(spread: int, inverse: int) -> bytes:
    # x^3 + A x^2 + x at x = -A / spread, times a square: whether it is a square decides between the two candidates
    right = -_CURVE * spread * (_CURVE**2 * (1 - spread) + spread**2) % _PRIME
    first = -_CURVE * inverse
    return ((first if _is_square(right) else -first - _CURVE) % _PRIME).to_bytes(POINT_BYTES, "little")


def _inverses(numbers: Sequence[int]) -> list[int]:
    """Return the inverses modulo the prime: one inversion and three products each (Montgomery 1987)."""
    before = [1]
    for number in numbers:
        before.append(before[-1] * number % _PRIME)
    rest, found = pow(before[-1], -1, _PRIME), []
    for number, product in zip(reversed(numbers), reversed(before[:-1]), strict=True):
        found.append(rest * product % _PRIME)
        rest = rest * number % _PRIME
    return found[::-1]


def _is_square(number: int) -> bool:
    """Return whether a number is a square modulo the prime, by its Jacobi symbol: seven times faster than a power."""
    modulus, below, odd = _PRIME, _PRIME & 255, 0  # of `odd` the second bit counts: that of numbers 4 k + 3
    while number:
        low = number & 255
        twos = _TWOS[low]
        if twos:
            twos = twos if low else (number & -number).bit_length() - 1
            number >>= twos
            low = number & 255
            if twos & 1:  # 2 is no square modulo numbers 8 k + 3 and 8 k + 5
                odd ^= below ^ below >> 1
        odd ^= low & below
        number, modulus, below = modulus % number, number, low
    return not odd & 2


@final
@dataclass(frozen=True, kw_only=True)
class Blinding:
    """Two secret powers: `on` blinds a point; `off` later replaces the blinding by the party's own power."""

    on: bytes
    off: bytes


def new_power(randomness: Randomness) -> bytes:
    """Return a random scalar, as X25519 reads it."""
    drawn = int.from_bytes(randomness.bytes(POINT_BYTES), "little")
    return (2**254 + drawn % 2**251 * 8).to_bytes(POINT_BYTES, "little")


def new_blinding(power: bytes, randomness: Randomness) -> Blinding:
    """Return a blinding that leaves `power` when it is removed."""
    while True:
        off = new_power(randomness)
        wanted = _number(power) * pow(_number(off), -1, _ORDER) % _ORDER
        eighth = wanted * pow(8, -1, _ORDER) % _ORDER
        if 2**251 <= eighth < 2**252:
            return Blinding(on=(8 * eighth).to_bytes(POINT_BYTES, "little"), off=off)


def _number(power: bytes) -> int:
    return int.from_bytes(power, "little")


def raised(points: bytes, power: bytes) -> bytes:
    """Return the secret power of every point; about 40 microseconds each.

    Raises:
        RefusedError: if a point is invalid; no party that follows the protocol sends one.
    """
    own = X25519PrivateKey.from_private_bytes(power)
    read, places = X25519PublicKey.from_public_bytes, range(0, len(points), POINT_BYTES)
    try:
        return b"".join([own.exchange(read(points[place : place + POINT_BYTES])) for place in places])
    except ValueError:
        raise RefusedError(
            "an invalid point (of small order) was received: no party that follows the protocol sends one"
        ) from None
