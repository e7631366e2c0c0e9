"""What a party keeps of a secure product between its steps, and how it notices that its rows changed."""

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syndic.errors import RefusedError
from syndic.kernel import Message, Party
from syndic.mpc.key import KeyPair, context

Rows = Callable[[int, int], NDArray[Any]]
"""A function that returns the rows of a party's matrix from one index up to another. Private."""


class KeptPair(Message):
    """The dealer's seed and this party's key pair."""

    seed: bytes
    pair: KeyPair


class KeptKeys(Message):
    """The public keys of partners and servers."""

    keys: dict[str, bytes]


class KeptShare(Message):
    """A share of the products of all chunks so far."""

    total: NDArray[np.uint64]


class KeptDigest(Message):
    """A digest of the rows that were masked, or the bits of their test."""

    data: bytes


class KeptSums(Message):
    """The column sums of the rows that were masked."""

    sums: NDArray[np.int64]


def note_masked(label: str, party: Party, chunk: int, matrix: NDArray[Any]) -> None:
    """Store digests that show later whether the rows are still those that were masked.

    If the rows changed, the product would contain the difference times the partner's mask, and the dealer knows that
    mask.
    """
    sums = matrix.sum(axis=0, dtype=np.int64)
    before = party.recall(f"{label} sums", KeptSums).sums if chunk else np.zeros_like(sums)
    party.remember(f"{label} sums", KeptSums(sums=before + sums))
    party.remember(f"{label} masked {chunk}", KeptDigest(data=_digest(matrix)))


def same_rows(label: str, party: Party, chunk: int, matrix: NDArray[Any]) -> NDArray[Any]:
    """Return the rows of a chunk; refuse if they are not those that were masked."""
    if party.recall(f"{label} masked {chunk}", KeptDigest).data != _digest(matrix):
        raise changed(party)
    return matrix


def changed(party: Party) -> RefusedError:
    """Return the error for rows that are not those that were masked."""
    return RefusedError(
        f"the rows of {party.name} changed while they were multiplied; nothing was opened. Keep the source unchanged "
        "during a run, and set a new edition"
    )


def _digest(matrix: NDArray[Any]) -> bytes:
    digest = hashlib.sha256(context("product rows", str(matrix.dtype), *matrix.shape))
    digest.update(np.ascontiguousarray(matrix).data)
    return digest.digest()
