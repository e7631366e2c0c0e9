"""Sketches as drawn: their law, their estimates, and an attacker who waits for a tie.

The attacker sees the sketches of one person's values, knows nobody else has these values, and has no key. He says
"there" where the likelihood ratio says so, or where all sketches show one large rank. Rates are compared by exact
(Clopper-Pearson) bounds.
"""

from fractions import Fraction
from math import exp

import numpy as np
import pytest
from scipy import stats

from syndic.methods.vertimrf.sketch.cost import sketch_delta
from syndic.methods.vertimrf.sketch.encode import (
    People,
    SketchPlan,
    encode,
    largest_ranks,
    person_digests,
    printed_plan,
)
from syndic.methods.vertimrf.sketch.estimate import cell_table, likeliest
from syndic.random import Randomness, SimulationRandomness, SystemRandomness
from syndic_lab.audit.parts import log_ratios
from syndic_lab.encodings import harmonic

pytestmark = [pytest.mark.statistical, pytest.mark.slow]

MISS = 1e-7
EPSILON, DELTA = 0.4, 1e-5


def test_phantoms_have_the_law_of_the_largest_of_many() -> None:
    plan = SketchPlan(phantoms=300, floor=6, repetitions=1, cap=14)
    ranks = largest_ranks(plan, 300, 200_000, SystemRandomness())
    levels = np.arange(6, 15)
    upto = np.where(levels == 14, 1.0, (1 - 2.0**-levels) ** 300)
    chances = np.diff(upto, prepend=0.0)
    counts = np.bincount(ranks, minlength=15)[6:]
    assert stats.chisquare(counts, 200_000 * chances).pvalue > MISS


def test_hashed_ranks_are_geometric() -> None:
    digests = person_digests(SystemRandomness().bytes(16), (str(place).encode() for place in range(4000)))
    codes = np.arange(4000)[:, None]  # everybody alone in a value
    plan = SketchPlan(phantoms=0, floor=0, repetitions=50)
    ranks = encode(plan, SystemRandomness().bytes(16), [People(digests, codes)], [4000], SystemRandomness())
    counts = np.bincount(np.minimum(ranks.ravel(), 12), minlength=13)[1:]
    chances = np.append(2.0 ** -np.arange(1, 12), 2.0**-11)
    assert stats.chisquare(counts, ranks.size * chances).pvalue > MISS


@pytest.mark.parametrize(("gamma", "constant"), [("1", 1.037), ("3/10", 1.006), ("1/10", 1.0008)])
def test_estimates_have_no_bias_and_the_published_spread(gamma: str, constant: float) -> None:
    runs, repetitions, elements = 600, 500, 40_000
    plan = SketchPlan(phantoms=0, floor=0, repetitions=repetitions, gamma=Fraction(gamma))
    ranks = largest_ranks(plan, elements, runs * repetitions, SystemRandomness()).reshape(repetitions, runs)
    for found in (harmonic(ranks, plan.gamma), likeliest(ranks, plan)):
        relative = found / elements - 1
        sd = constant / repetitions**0.5
        # the likeliest has a bias of the order of 1 / repetitions
        assert abs(relative.mean()) < stats.norm.isf(MISS / 2) * sd / runs**0.5 + 1.2 / repetitions
        assert stats.chi2.cdf((runs - 1) * (relative.std(ddof=1) / sd / 1.02) ** 2, runs - 1) > MISS / 10
        assert stats.chi2.sf((runs - 1) * (relative.std(ddof=1) / sd / 1.02) ** 2, runs - 1) > MISS / 10


def wins(plan: SketchPlan, columns: int, *, there: bool, tries: int, randomness: Randomness) -> int:
    """Return how often the likelihood ratio of the person's sketches, all that anybody can use, exceeds the claim."""
    found = 0
    for _ in range(tries):
        key = randomness.bytes(16)
        rows = 1 if there else 0
        one = People(person_digests(key, [b"ann"])[:rows], np.zeros((rows, columns), dtype=np.int64))
        ranks = encode(plan, key, [one], [1] * columns, randomness).astype(np.int64)
        found += bool(log_ratios(plan, ranks).sum() > EPSILON)
    return found


def lower(wins: int, tries: int) -> float:
    return float(stats.beta.ppf(MISS, wins, tries - wins + 1)) if wins else 0.0


def upper(wins: int, tries: int) -> float:
    return float(stats.beta.isf(MISS, wins + 1, tries - wins)) if wins < tries else 1.0


def test_the_attack_beats_the_printed_sketches() -> None:
    columns, tries = 15, 400
    plan = printed_plan(epsilon=EPSILON, delta=DELTA, columns=columns)
    randomness = SimulationRandomness(31)
    there = wins(plan, columns, there=True, tries=tries, randomness=randomness)
    absent = wins(plan, columns, there=False, tries=tries, randomness=randomness)
    assert lower(there, tries) > exp(EPSILON) * upper(absent, tries) + DELTA


def test_one_rank_in_all_sketches_gives_a_person_away() -> None:
    """The attack in words: in some repetition all fifteen show the same large rank. Nothing else produces this."""
    columns, tries = 15, 2000
    plan = printed_plan(epsilon=EPSILON, delta=DELTA, columns=columns)
    alone = SketchPlan(phantoms=0, floor=0, repetitions=1)
    randomness = SimulationRandomness(35)
    counts = []
    for there in (True, False):
        found = 0
        for _ in range(tries):
            ranks = largest_ranks(plan, plan.phantoms, 2000 * columns, randomness).reshape(2000, columns)
            if there:
                ranks = np.maximum(ranks, largest_ranks(alone, 1, 2000, randomness)[:, None])
            smallest = ranks.min(axis=1)
            found += bool(((smallest == ranks.max(axis=1)) & (smallest > plan.floor)).any())
        counts.append(found)
    assert lower(counts[0], tries) > exp(EPSILON) * upper(counts[1], tries) + DELTA


@pytest.mark.parametrize(
    ("plan", "columns"),
    [
        # phantoms really needed for two columns of one key; a cap, for fifteen; a cap, for two under each of four keys
        (SketchPlan(phantoms=17_000, floor=15, repetitions=2000), 2),
        (SketchPlan(phantoms=29_000, floor=15, repetitions=2000, cap=16), 15),
        (SketchPlan(phantoms=1_900, floor=11, repetitions=4 * 2000, cap=17), 2),
    ],
    ids=["honest phantoms", "cap", "key for each pair, cap"],
)
def test_the_attack_does_not_beat_the_sound_ones(plan: SketchPlan, columns: int) -> None:
    assert sketch_delta(plan, columns=columns, epsilon=EPSILON, points=2**18).upper <= DELTA
    tries = 800_000 // plan.repetitions
    randomness = SimulationRandomness(32)
    there = wins(plan, columns, there=True, tries=tries, randomness=randomness)
    absent = wins(plan, columns, there=False, tries=tries, randomness=randomness)
    assert lower(there, tries) <= exp(EPSILON) * upper(absent, tries) + DELTA
    # a ratio above exp(epsilon) has a chance of about 2e-4: five times are less than one in a million
    assert there < 5


def test_whoever_has_the_key_proves_absence() -> None:
    """Sketches protect against those without the key only: no guarantee holds against a data party."""
    plan = printed_plan(epsilon=EPSILON, delta=DELTA, columns=15)
    key, randomness = b"k" * 16, SimulationRandomness(33)
    digests = person_digests(key, (str(place).encode() for place in range(200)))
    bare = SketchPlan(phantoms=0, floor=0, repetitions=plan.repetitions)
    own = encode(bare, key, [People(digests, np.arange(200)[:, None])], [200], randomness)
    others = encode(plan, key, [], [1], randomness)  # a value that nobody has
    proven = (own > others).any(axis=0)
    # about .18 in 2,000 repetitions, published for a small value
    assert stats.binomtest(int(proven.sum()), 200, 0.18).pvalue > MISS


def test_cells_of_printed_sketches_have_the_published_error() -> None:
    """45,222 people, two columns of four values: root mean square error 1,801 at 2,000 repetitions."""
    plan = printed_plan(epsilon=EPSILON, delta=DELTA, columns=15)
    randomness, people, runs = SimulationRandomness(34), 45_222, 60
    bare = SketchPlan(phantoms=0, floor=plan.floor, repetitions=2000)
    errors = []
    for _ in range(runs):
        cells = np.full((4, 4), people // 16)
        drawn = np.stack([largest_ranks(bare, int(cell), 2000, randomness) for cell in cells.ravel()], axis=1)
        drawn = drawn.reshape(2000, 4, 4)
        phantoms = largest_ranks(plan, plan.phantoms, 2000 * 8, randomness).reshape(2000, 2, 4)
        columns = [np.maximum(drawn.max(axis=2 - place), phantoms[:, place]) for place in range(2)]
        errors.append(float(np.mean((cell_table(columns, plan, people) - cells) ** 2)))
    # errors of one run's cells are nearly the same number, so a run is worth one draw of chi-square at least
    total = sum(errors) / 1801.0**2
    assert stats.chi2.cdf(total, runs) > MISS
    assert stats.chi2.sf(total, runs) > MISS
