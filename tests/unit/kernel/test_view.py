"""A party's view: the same at parties that were told the same, whoever missed what, and different otherwise."""

import hashlib
import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from syndic.errors import RefusedError
from syndic.kernel import Message
from syndic.kernel.view import View, told

START = View.of("a" * 64)
DIGESTS = [hashlib.sha256(bytes([number])).digest() for number in range(6)]


class Asked(Message):
    common = ("round", "weights")
    round: int
    weights: NDArray[np.float64]
    own: bytes = b""


def after(*digests: bytes) -> View:
    view = START
    for digest in digests:
        view = view.after(0, b"", digest)
    return view


def test_what_differs_between_parties_by_design_is_left_out_and_nothing_else() -> None:
    one = Asked(round=1, weights=np.ones(3))
    assert told("add", one) == told("add", Asked(round=1, weights=np.ones(3), own=b"sealed"))
    others = [
        told("count", one),
        told("add", Asked(round=2, weights=np.ones(3))),
        told("add", Asked(round=1, weights=np.array([1.0, 1.0, np.nextafter(1, 2)]))),
        told("add", Asked(round=1, weights=np.ones(4))),
    ]
    assert len({told("add", one), *others}) == 5


def test_the_order_and_every_request_count() -> None:
    sequences = [one for length in range(4) for one in itertools.permutations(DIGESTS[:3], length)]
    assert len({after(*one).digest for one in sequences}) == len(sequences)
    assert View.of("b" * 64) != START


@pytest.mark.parametrize("known", range(4))
def test_who_missed_requests_ends_with_the_same_view(known: int) -> None:
    """Also where the coordinator brings digests of requests that the party did answer, as after a lost reply."""
    for brought in range(known + 1):
        caught_up = after(*DIGESTS[:known]).after(5, b"".join(DIGESTS[brought:4]), DIGESTS[4])
        assert caught_up == after(*DIGESTS[:5])


def test_what_a_party_answered_cannot_be_told_otherwise_later() -> None:
    """A fork stays: digests of requests that the party answered are not taken from the coordinator."""
    forked = after(DIGESTS[0], DIGESTS[5])
    for brought in (DIGESTS[0] + DIGESTS[1] + DIGESTS[2], DIGESTS[1] + DIGESTS[2], DIGESTS[2]):
        assert forked.after(4, brought, DIGESTS[3]).digest != after(*DIGESTS[:4]).digest


@pytest.mark.parametrize(
    ("number", "missed"), [(1, b""), (2, b""), (-1, b""), (4, b""), (5, DIGESTS[0]), (4, DIGESTS[0][:-1])]
)
def test_a_request_out_of_order_or_with_a_gap_is_refused(number: int, missed: bytes) -> None:
    with pytest.raises(RefusedError, match="came after request 2"):
        after(*DIGESTS[:2]).after(number, missed, DIGESTS[3])
