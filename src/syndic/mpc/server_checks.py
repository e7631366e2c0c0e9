"""What servers hold against each other before they answer, and what a verifier holds against their answers."""

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syndic.mpc.key import KEY_BYTES, context
from syndic.mpc.product_messages import ServerQuery, check_seed
from syndic.mpc.ring import Residues


def digest_of(key: bytes, box: bytes) -> bytes:
    """Return the digest of what a party sealed, and of its public key: one box may open under two keys."""
    return hashlib.sha256(context("served", key, box)).digest()


def same(fixed: list[bytes], found: list[bytes]) -> bool:
    """Return whether a verifier asks for the challenge of the proof, and for shares that it knew of beforehand."""
    return fixed == found


def same_points(echo: Mapping[str, Mapping[str, bytes]], queries: Mapping[str, ServerQuery]) -> bool:
    """Return whether verifiers asked another server for the same points."""
    return echo == {name: query.points for name, query in queries.items()}


def on_line(field: Residues, answers: Sequence[NDArray[Any]]) -> bool:
    """Return whether all answers are on one line, which two honest servers fix."""
    slope, *slopes = (field.subtract(later, one) for one, later in pairwise(answers))
    return all(np.array_equal(slope, other) for other in slopes)


def seeds_of(seed: bytes) -> list[bytes]:
    """Return the challenges of both verifiers."""
    found = [seed[:KEY_BYTES], seed[KEY_BYTES:]]
    for one in found:
        check_seed(one)
    return found
