"""What a curious or lying coordinator sees of masked sums round by round: uniform numbers, unless a fault is planted.

Many runs with fresh keys; the chance of a false alarm is 1e-7 for each look.
"""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from many_parties import AddRounds, Ask, Fleet, started
from syndic.kernel import decode, encode
from syndic.mpc.graph import Seats
from syndic.mpc.masked_sum import SumMasked, SumSurvivors
from syndic.mpc.ring import Ring

pytestmark = pytest.mark.statistical

RUNS, LENGTH, PARTIES = 25, 400, 4
MISS = 1e-7
BITS = 4


def fleet(folder: Path, seed: int, *, missing: int = 1) -> Fleet:
    folder.mkdir(parents=True)
    # few large values: whatever is left of them shows
    return Fleet(AddRounds(missing=missing, length=LENGTH, bound=40_000, extreme=1), PARTIES, folder, seed=seed)


def one_round(made: Fleet) -> NDArray[np.int64]:
    protocol = made.protocol
    assert isinstance(protocol, AddRounds)
    rounds = started(made)
    opened = rounds.total(
        protocol.add_round, lambda number: Ask(round=number), count=LENGTH, ring=protocol.ring(made.study)
    )
    assert opened is not None
    return opened.values


def seen(made: Fleet, step: str, party: str) -> NDArray[np.int64]:
    ring: Ring = made.protocol.ring(made.study)
    return ring.unpack(decode(made.seen[(step, party)], SumMasked).values, LENGTH).astype(np.int64)


def uniform(values: NDArray[np.int64], ring: Ring) -> float:
    """Return the chance of a look at the leading bits that is as uneven, if the values are uniform."""
    cells = np.bincount((values % (1 << ring.bits)) >> (ring.bits - BITS), minlength=1 << BITS)
    return float(stats.chisquare(cells).pvalue)


@pytest.mark.parametrize("step", ["add_round", "sum_open"])
def test_what_a_party_sends_is_uniform(step: str, tmp_path: Path) -> None:
    found = []
    for seed in range(RUNS):
        made = fleet(tmp_path / str(seed), seed)
        assert np.all(one_round(made) == PARTIES * 40_000)
        found.append(seen(made, step, "p0"))
    assert uniform(np.concatenate(found), made.protocol.ring(made.study)) > MISS


def test_what_lists_that_differ_open_is_uniform(tmp_path: Path) -> None:
    found = []
    for seed in range(RUNS):
        made = fleet(tmp_path / str(seed), seed)

        def lie(step: str, party: str, body: bytes) -> bytes:
            if step != "sum_open" or party == "p3":
                return body
            # everybody but p3 is told that p3 was silent
            return encode(SumSurvivors(label="one", number=1, arrived=bytes([0b11100000])))

        made.ask = lie
        one_round(made)
        ring = made.protocol.ring(made.study)
        # what the liar wants: the sum without p3, from the answers of the three
        total = np.zeros(LENGTH, dtype=np.int64)
        for party in ("p0", "p1", "p2"):
            total += seen(made, "add_round", party) - seen(made, "sum_open", party)
        # the three were told one list, so their sum opens: it is one that the study's noise is made for
        assert np.all(ring.lift(ring.reduce(total)) == 3 * 40_000)
        # and p3's own values, late as they are said to be, stay closed with all that was sent
        found.append(seen(made, "add_round", "p3") - seen(made, "sum_open", "p3"))
    assert uniform(np.concatenate(found), ring) > MISS


def test_one_mask_for_all_rounds_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def difference(made: Fleet) -> NDArray[np.int64]:
        """Return a party's second message less its first: with one mask it is the difference of its values."""
        protocol = made.protocol
        assert isinstance(protocol, AddRounds)
        rounds = started(made)
        ring, sent = protocol.ring(made.study), []
        for _ in range(2):
            rounds.total(protocol.add_round, lambda number: Ask(round=number), count=LENGTH, ring=ring)
            sent.append(seen(made, "add_round", "p0"))
        return ring.lift(ring.reduce(sent[1] - sent[0]))

    assert not np.any(difference(fleet(tmp_path / "sound", 1)) == 40_000)
    bound = Seats.bound
    monkeypatch.setattr(Seats, "bound", lambda seats, what, _number, _view=b"": bound(seats, what, 1))
    assert np.all(difference(fleet(tmp_path / "planted", 1)) == 40_000)
