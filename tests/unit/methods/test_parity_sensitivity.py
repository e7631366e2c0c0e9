"""Parities that a coordinator may choose as it likes: no person moves them by more than their noise is made for."""

from itertools import combinations, combinations_with_replacement, product
from math import prod

import numpy as np
import pytest
from numpy.typing import NDArray

from syndic.methods.synthesis.account import Account
from syndic.privacy import Unit
from unit.methods.synthesising import planned, study

Sets = tuple[tuple[str, ...], ...]
UNITS = (
    "rows = 1",
    "rows = 1\nparties = 2",
    "rows = 2",
    "rows = 2\nparties = 3",
    'rows = 2\nperson = "id"\nchoose = "weighted"',
    'rows = 2\nperson = "id"\nchoose = "weighted"\nparties = 2',
)


def rows_of(sets: Sets, names: str, constant: str = "", lies: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Return what every possible row adds to every set: columns that are `constant` have one sign only.

    With `lies` the other columns are at a partner, whose bits for each set may be any.
    """
    kinds = product(*(((1,) if name in constant else (1, -1)) for name in names))
    found = [[prod(signs[names.index(name)] for name in one if name in names) for one in sets] for signs in kinds]
    return np.array(found, dtype=np.int64) * (1 if lies is None else lies)


def moved(rows: NDArray[np.int64], unit: Unit) -> int:
    """Return by how much a person moves the sums at most, in squared l2: all rows tried, none and fewer too."""
    held = [np.zeros(rows.shape[1], dtype=np.int64)]
    for number in range(1, unit.rows + 1):
        weight = unit.most // number if unit.scale > 1 else 1
        held += [
            weight * rows[list(some)].sum(axis=0) for some in combinations_with_replacement(range(len(rows)), number)
        ]
    there = np.unique(np.array(held), axis=0)
    others = there if unit.neighbours == "replace" else np.zeros_like(there[:1])
    largest = max(int(np.square(there - one).sum(axis=1).max()) for one in others)
    # the same at every party of the person, in the same sum
    return unit.parties**2 * largest


def covered(account: Account, place: int, sets: Sets) -> int:
    """Return the squared change that a round's part of the budget, over all parties of a person, has noise for."""
    noise = account.noise_of(place, len(sets), len(sets), sets)
    assert noise.event == account.events[place - 1]
    assert noise.noise.mu_squared == noise.event.mu_squared
    return int(noise.noise.sensitivity_squared * account.unit.parties)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("unit", UNITS)
def test_no_choice_of_sets_and_halves_moves_more_than_the_noise_covers(unit: str, neighbours: str) -> None:
    made = planned(study(parties=3, unit=f'neighbours = "{neighbours}"\n{unit}'))
    place = next(place for place, room in enumerate(made.size.rooms, 1) if room.parity)
    draws = np.random.default_rng(7)
    for _ in range(30):
        names = "abcd"[: draws.integers(1, 5)]
        every = [one for size in range(1, len(names) + 1) for one in combinations(names, size)]
        chosen = draws.permutation(len(every))[: draws.integers(1, len(every) + 1)]
        sets = tuple(tuple(draws.permutation(every[each]).tolist()) for each in chosen)
        enough, own = covered(made.account, place, sets), made.account.unit
        free = moved(rows_of(sets, names), own)
        assert free == enough, "and no more noise than it takes"
        # halves of one sign, and a partner that lies about its columns, set by set
        assert moved(rows_of(sets, names, constant=names[0]), own) <= enough
        lies = draws.choice([-1, 1], len(sets))
        assert moved(rows_of(sets, names[:2], lies=lies), own) <= enough
