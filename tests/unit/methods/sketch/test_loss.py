"""The law of one repetition, against sums over the person's rank and over every outcome of all sketches."""

from collections import defaultdict
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from syndic.errors import InputError
from syndic.methods.vertimrf.sketch.encode import SketchPlan
from syndic.methods.vertimrf.sketch.loss import loss_law


def brute(plan: SketchPlan, columns: int, elements: int) -> dict[tuple[int, int], tuple[Fraction, Fraction]]:
    """Return chance with and without the person for each (smallest rank, how many show it), in fractions."""
    tail = 1 / (1 + plan.gamma)
    levels = range(plan.floor, plan.top + 1)

    def below(rank: int) -> Fraction:
        return 1 - tail**rank

    def shown(rank: int, person: int) -> Fraction:
        """Return the chance that a sketch shows this rank where the person's rank is this; 0 for nobody."""

        def upto(level: int) -> Fraction:
            if level < max(person, plan.floor) and level < plan.top:
                return Fraction(0)
            return Fraction(1) if level >= plan.top else below(level) ** elements

        return upto(rank) - (upto(rank - 1) if rank > plan.floor else 0)

    ranks = {rank: tail ** (rank - 1) * (1 - tail) for rank in range(1, plan.top)}
    ranks[plan.top] = tail ** (plan.top - 1)
    tables = {person: {rank: shown(rank, person) for rank in levels} for person in [0, *ranks]}
    found: dict[tuple[int, int], list[Fraction]] = defaultdict(lambda: [Fraction(0), Fraction(0)])
    for outcome in product(levels, repeat=columns):
        smallest = min(outcome)
        place = found[smallest, outcome.count(smallest)]
        place[1] += _product(tables[0], outcome)
        place[0] += sum((chance * _product(tables[rank], outcome) for rank, chance in ranks.items()), Fraction(0))
    return {key: (both[0], both[1]) for key, both in found.items()}


def _product(table: dict[int, Fraction], outcome: tuple[int, ...]) -> Fraction:
    result = Fraction(1)
    for rank in outcome:
        result *= table[rank]
    return result


@pytest.mark.parametrize(
    ("columns", "gamma", "floor", "cap"),
    [
        (1, Fraction(1), 2, 9),
        (2, Fraction(1), 2, 9),
        (3, Fraction(1), 0, 6),
        (2, Fraction(3, 10), 3, 12),
        (3, Fraction(1), 4, 6),
    ],
)
def test_chances_and_ratios_are_those_of_every_outcome(columns: int, gamma: Fraction, floor: int, cap: int) -> None:
    plan = SketchPlan(phantoms=7, floor=floor, repetitions=1, gamma=gamma, cap=cap)
    law = loss_law(plan, columns)
    # outcomes with the same ratio may be one to the law: compare the chance of each loss
    wanted: dict[float, float] = defaultdict(float)
    for there, absent in brute(plan, columns, 7).values():
        if absent:
            wanted[round(float(np.log(float(there / absent))), 9)] += float(absent)
    found: dict[float, float] = defaultdict(float)
    for chance, ratio in zip(np.exp(law.log_without), law.log_ratio, strict=True):
        if chance > 0:
            found[round(float(ratio), 9)] += float(chance)
    assert found.keys() == wanted.keys()
    for ratio, chance in wanted.items():
        assert found[ratio] == pytest.approx(chance, rel=1e-9)


@pytest.mark.parametrize("columns", [1, 2, 15])
@pytest.mark.parametrize("gamma", [Fraction(1), Fraction(1, 10)])
def test_both_laws_sum_to_one(columns: int, gamma: Fraction) -> None:
    law = loss_law(SketchPlan(phantoms=5000, floor=12, repetitions=1, gamma=gamma), columns)
    assert law.added()[0].sum() == pytest.approx(1, abs=1e-12)
    assert law.removed()[0].sum() == pytest.approx(1, abs=1e-12)


def test_one_column_keeps_the_published_bound_and_two_do_not() -> None:
    plan = SketchPlan(phantoms=1000, floor=10, repetitions=1)
    assert loss_law(plan, 1).log_ratio.max() <= np.log1p(1 / 1000) * (1 + 1e-9)
    assert loss_law(plan, 1).log_ratio.min() >= -np.log1p(1 / 1000)
    assert loss_law(plan, 2).log_ratio.max() > 20


def test_sketches_without_phantoms_hide_nobody() -> None:
    with pytest.raises(InputError, match="hide nobody"):
        loss_law(SketchPlan(phantoms=0, floor=3, repetitions=1), 2)
