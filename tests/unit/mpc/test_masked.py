"""The arithmetic of a masked sum: no two masks are one, and whatever lacks shares stays closed."""

from collections.abc import Callable

import numpy as np
import pytest

from syndic.errors import RefusedError
from syndic.mpc.graph import plan_sum
from syndic.mpc.key import agree_all
from syndic.mpc.masked import (
    BOX_BYTES,
    SHARE_BYTES,
    Gathered,
    Secrets,
    Table,
    collect,
    deal,
    make_secrets,
    masks_of,
    openings,
    unmask,
)
from syndic.mpc.ring import Ring, ring_for
from syndic.mpc.seal import seal
from syndic.mpc.shamir import recover
from syndic.random import SimulationRandomness

NAMES = ("a", "b", "c", "d", "e")
RING = ring_for(1000)
VALUES = {place: np.array([place, -place, 7], dtype=np.int64) for place in range(5)}


def table(study: str = "s", label: str = "l") -> Table:
    return Table(study=study, label=label, names=NAMES, plan=plan_sum(5, colluding=0, missing=1))


def secrets() -> dict[int, Secrets]:
    return {place: make_secrets(SimulationRandomness(place)) for place in range(5)}


def agreed(made: dict[int, Secrets], place: int) -> dict[int, bytes]:
    others = [other for other in made if other != place]
    return dict(
        zip(others, agree_all(made[place].seal.private, [made[other].seal.public for other in others]), strict=True)
    )


def gathered(arrived: list[int], *, holders: list[int] | None = None, ring: Ring = RING) -> Gathered:
    """Play all steps; only `arrived` sent values, and only `holders` of them open shares."""
    made, here = secrets(), table()
    dealt = {place: deal(here, place, made[place], agreed(made, place), SimulationRandomness(9)) for place in made}
    held = {
        place: collect(
            here, place, agreed(made, place), {dealer: dealt[dealer][place] for dealer in dealt if dealer != place}
        )
        for place in made
    }
    publics = {place: each.mask.public for place, each in made.items()}
    masked = {}
    for place in arrived:
        others = {other: publics[other] for other in made if other != place}
        masked[place] = ring.add(ring.reduce(VALUES[place]), masks_of(here, place, made[place], others, 3, ring))
    return Gathered(
        table=here,
        commitments={place: here.commitment(place, each.seed) for place, each in made.items()},
        mask_keys=publics,
        dealt=frozenset(made),
        masked=masked,
        opened={place: openings(held[place], arrived) for place in (arrived if holders is None else holders)},
    )


@pytest.mark.parametrize("arrived", [[0, 1, 2, 3, 4], [0, 1, 2, 3], [1, 2, 3, 4], [0, 1, 3, 4]])
def test_the_sum_is_of_those_whose_values_arrived(arrived: list[int]) -> None:
    total = unmask(gathered(arrived), RING)
    assert total.tolist() == sum(VALUES[place] for place in arrived).tolist()  # type: ignore[union-attr]


def test_as_many_shares_as_the_threshold_open_the_sum_and_one_fewer_does_not() -> None:
    assert table().plan.threshold == 3
    assert unmask(gathered([0, 1, 2, 3, 4], holders=[0, 1, 2, 3]), RING).tolist() == [10, -10, 35]
    with pytest.raises(RefusedError, match=r"only 2 shares of a came back, and 3 are needed: the sum stays closed"):
        unmask(gathered([0, 1, 2, 3, 4], holders=[0, 1, 2]), RING)


def test_shares_open_the_seed_and_the_key_they_were_dealt_for() -> None:
    made, here = secrets(), table()
    boxes = deal(here, 2, made[2], agreed(made, 2), SimulationRandomness(9))
    assert sorted(boxes) == [0, 1, 3, 4]
    assert {len(box) for box in boxes.values()} == {BOX_BYTES}
    texts = {}
    for place, box in boxes.items():
        others = {other: boxes_of(made, other)[place] for other in made if other not in (place, 2)}
        texts[place] = collect(here, place, agreed(made, place), {**others, 2: box})[2]
    assert {len(text) for text in texts.values()} == {SHARE_BYTES}
    # a holder's point is its place among the dealer's neighbours, from 1
    assert recover([texts[0], texts[3], texts[4]], [1, 3, 4]) == made[2].seed + made[2].mask.private


def boxes_of(made: dict[int, Secrets], dealer: int) -> dict[int, bytes]:
    return deal(table(), dealer, made[dealer], agreed(made, dealer), SimulationRandomness(9))


def test_a_party_deals_to_no_fewer_than_can_open() -> None:
    made = secrets()
    keys = agreed(made, 0)
    assert sorted(deal(table(), 0, made[0], {place: keys[place] for place in (1, 2, 3)}, SimulationRandomness(1))) == [
        1,
        2,
        3,
    ]
    with pytest.raises(RefusedError, match="a has 2 neighbours left, and 3 are needed"):
        deal(table(), 0, made[0], {place: keys[place] for place in (1, 2)}, SimulationRandomness(1))


def test_a_party_masks_nothing_with_shares_of_too_few_or_of_the_wrong_length() -> None:
    made = secrets()
    keys = agreed(made, 0)
    boxes = {dealer: boxes_of(made, dealer)[0] for dealer in (1, 2, 3)}
    assert sorted(collect(table(), 0, keys, boxes)) == [1, 2, 3]
    with pytest.raises(RefusedError, match="a got shares of 2 neighbours, and 3 are needed"):
        collect(table(), 0, keys, {dealer: boxes[dealer] for dealer in (1, 2)})
    for length in (SHARE_BYTES - 1, SHARE_BYTES + 1):
        short = seal(keys[1], bytes(length), table().place(1, 0), SimulationRandomness(1))
        with pytest.raises(RefusedError, match="b dealt a share of the wrong length"):
            collect(table(), 0, keys, {**boxes, 1: short})


@pytest.mark.parametrize(
    "bound",
    [
        lambda here: here.pair(0, 1),
        lambda here: here.own(0),
        lambda here: here.commitment(0, b"seed"),
        lambda here: here.place(0, 1).written(),
    ],
)
def test_every_mask_and_box_has_a_context_of_its_own(bound: Callable[[Table], bytes]) -> None:
    """Two vectors under one mask tell their difference: another sum, study or party is another context."""
    assert bound(table()) == bound(table())
    assert len({bound(table()), bound(table(label="m")), bound(table(study="t"))}) == 3


def test_contexts_are_of_one_pair_or_one_party() -> None:
    here = table()
    pairs = {here.pair(one, other) for one in range(5) for other in range(one + 1, 5)}
    assert len(pairs | {here.own(place) for place in range(5)}) == 15
    assert here.pair(3, 1) == here.pair(1, 3)
    assert len({here.commitment(0, b"x"), here.commitment(1, b"x"), here.commitment(0, b"y")}) == 3
    assert here.place(0, 1).written() != here.place(1, 0).written()


def test_a_seed_or_a_key_that_was_not_published_is_found() -> None:
    for arrived, name in (([0, 1, 2, 3, 4], "a's seed"), ([1, 2, 3, 4], "a's mask key")):
        right = gathered(arrived)
        wrong = Gathered(
            table=right.table,
            commitments={**right.commitments, 0: bytes(32)},
            mask_keys={**right.mask_keys, 0: bytes(32)},
            dealt=right.dealt,
            masked=right.masked,
            opened=right.opened,
        )
        with pytest.raises(RefusedError, match=f"the shares of {name} do not fit what it published"):
            unmask(wrong, RING)
