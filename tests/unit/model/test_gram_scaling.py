"""Numbers rescaled by noisy counts: what one person changes, what widths come out, and which scales are refused."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from syndic.data import Schema
from syndic.data.coding import Coding, Feature, coded_rows, coding_of
from syndic.document import from_builtins
from syndic.model.gram.matrix import halved_sensitivity_squared, intercept, places_of, squares_of
from syndic.model.gram.scaling import Scale, Scaling, counts_of, is_number, scaling_of

BITS = 6
UNIT = 1 << BITS
COLUMNS: list[dict[str, Any]] = [
    {"name": "a", "kind": "real", "lower": 0.0, "upper": 1.0, "bins": 7, "missing": {"value": 0.5}},
    {"name": "b", "kind": "integer", "lower": 0, "upper": 4, "missing": "level"},
    {"name": "c", "kind": "categorical", "values": ["x", "y"], "missing": {"value": "x"}},
    {"name": "d", "kind": "boolean", "missing": {"value": False}},
    {"name": "e", "kind": "real", "lower": 0.0, "upper": 1.0, "bins": 5, "missing": {"value": 0.5}},
]
SCHEMA = from_builtins({"columns": COLUMNS}, Schema, where="test")
CODINGS = tuple(coding_of(column, BITS) for column in SCHEMA.columns)
ROWS = {
    name: np.array(values)
    for name, values in zip(
        SCHEMA.names, zip(*product(*(range(column.size) for column in SCHEMA.columns)), strict=True), strict=True
    )
}


def scaling(people: int = 1000, mu_squared: Fraction = Fraction(1, 10), target: str | None = None) -> Scaling:
    found = scaling_of(CODINGS, people, mu_squared=mu_squared, share=Fraction(1, 5), excess=Fraction(1), target=target)
    assert found is not None
    return found


def narrow(codings: tuple[Coding, ...]) -> tuple[Scale, ...]:
    """Return the scales that make rows as long as possible: a lying coordinator may send them."""
    return tuple(Scale(name=each.features[0].name, centre=UNIT, width=1) for each in codings if is_number(each))


def test_a_person_changes_two_counts_of_each_number_column() -> None:
    chosen = scaling()
    assert chosen.columns == 3
    each = [
        counts_of(CODINGS, {name: codes[[place]] for name, codes in ROWS.items()}, 8) for place in range(0, 700, 13)
    ]
    changes = [int(((one - other) ** 2).sum()) for one, other in product(each, each)]
    assert max(changes) == 2 * chosen.columns
    # a missing value is in no bin
    missing = {name: np.zeros(1, dtype=int) for name in SCHEMA.names} | {"b": np.array([SCHEMA["b"].levels])}
    assert counts_of(CODINGS, missing, 8).reshape(-1, 8).sum(axis=1).tolist() == [1, 0, 1]


def test_a_person_counts_several_times_for_the_target_and_the_noise_is_for_that() -> None:
    for target in (None, "a", "b"):
        chosen = scaling(target=target)
        assert chosen.weight == (2 if target else 1)
        each = [
            chosen.counts(CODINGS, {name: codes[[place]] for name, codes in ROWS.items()})
            for place in range(0, 700, 13)
        ]
        changes = [int(((one - other) ** 2).sum()) for one, other in product(each, each)]
        assert max(changes) == chosen.moved
        # what the coordinator finds does not depend on how often a person counts
        one = chosen.counts(CODINGS, ROWS).astype(float)
        plain = counts_of(CODINGS, ROWS, chosen.bins).astype(float)
        quiet = replace(chosen, sigma=1e-6, finer=Fraction(1))
        assert quiet.scales(CODINGS, one, 700) == replace(quiet, target=None).scales(CODINGS, plain, 700)


def test_where_only_means_can_be_learned_the_counts_and_the_target_get_more() -> None:
    most = scaling(10**4, target="a")
    assert (most.share, most.weight) == (Fraction(1, 5), 2)
    for people, share in ((60, 0.25), (20, 0.5)):
        few = scaling(people, target="a")
        assert float(few.share) == pytest.approx(share, abs=0.01)
        assert few.share == scaling(people).share <= Fraction(1, 2)
        assert most.finer < few.finer <= Fraction(158, 64)
    assert float(scaling(20, target="a").finer ** 2) == pytest.approx(6, abs=0.1)


def opened(rows: NDArray[np.int32], features: tuple[Feature, ...]) -> NDArray[np.float64]:
    """Return what one person adds to the opened numbers, squares as two halves, in units of z."""
    full = np.hstack([np.full((len(rows), 1), UNIT), rows]) / UNIT
    places, squares = places_of(features), squares_of(features)
    values = np.zeros((len(rows), int(places.max()) + 1))
    first, second = np.nonzero(np.triu(places >= 0))
    values[:, places[first, second]] = full[:, first] * full[:, second]
    values[:, squares] /= 2
    return np.hstack([values, values[:, squares]])


@pytest.mark.parametrize("parties", [1, 2])
@pytest.mark.parametrize("people", [10, 1000, 10**6])
@pytest.mark.parametrize("target", [None, "a", "b"])
def test_no_two_rows_differ_by_more_than_the_sensitivity(parties: int, people: int, target: str | None) -> None:
    chosen = scaling(people, target=target)
    groups = [CODINGS] if parties == 1 else [CODINGS[:2], CODINGS[2:]]
    clips = [chosen.clip(group) for group in groups]
    bound = float(halved_sensitivity_squared(CODINGS, [(clip.blocks, clip.length) for clip in clips if clip]))
    for scales in (narrow(CODINGS), chosen.scales(CODINGS, np.zeros(3 * chosen.bins), people)):
        rows, raw = [], []
        for group, clip in zip(groups, clips, strict=True):
            names = {block.columns[0] for block in group}
            moved = chosen.rescaled(group, tuple(scale for scale in scales if scale.name in names))
            raw.append(coded_rows(moved, ROWS))
            assert clip is not None
            rows.append(clip.apply(raw[-1], BITS))
        matrix = np.hstack(rows)
        features = (intercept(), *(feature for block in CODINGS for feature in block.features))
        numbers = [place for place, feature in enumerate(features[1:]) if feature.values == "number"]
        # halves of squares are whole numbers, also after shortening
        assert not (matrix[:, numbers] % 2).any()
        assert furthest(opened(matrix, features)) <= bound
        if scales == narrow(CODINGS):
            # without shortening a lie would break the guarantee: this test would see it
            assert furthest(opened(np.hstack(raw), features)) > bound


def test_a_target_counts_as_more_columns_and_has_less_noise_in_its_own_unit() -> None:
    plain, aimed = scaling(), scaling(target="a")
    assert (aimed.spread, aimed.length, aimed.reach) == (plain.spread, plain.length, plain.reach)
    assert float(aimed.finer) == pytest.approx(6**0.25, abs=1 / 64)
    bounds = []
    for chosen in (plain, aimed):
        clip = chosen.clip(CODINGS)
        assert clip is not None
        bounds.append(float(halved_sensitivity_squared(CODINGS, [(clip.blocks, clip.length)])) ** 0.5)
    assert bounds[0] < bounds[1] < bounds[0] * float(aimed.finer)
    aimed = replace(aimed, bins=plain.bins, sigma=plain.sigma, weight=1)
    counts = np.tile(np.exp(-((np.arange(plain.bins) - plain.bins / 2) ** 2)), 3) * 1000
    before, after = (one.scales(CODINGS, counts, 1000) for one in (plain, aimed))
    assert after[0].width == pytest.approx(before[0].width / float(aimed.finer), abs=1)
    assert after[1:] == before[1:]
    assert aimed.allowed(CODINGS, after)


def furthest(values: NDArray[np.float64]) -> float:
    """Return the largest squared distance of any two rows."""
    squares = (values**2).sum(axis=1)
    return float((squares[:, None] + squares - 2 * values @ values.T).max())


def test_rows_never_need_much_more_noise_than_by_bounds() -> None:
    for people in (100, 10**4, 10**8):
        chosen = scaling(people)
        assert chosen.length <= 1 + Fraction(1, 64)
        assert chosen.spread >= 1
    # where people are many hardly a row is shortened; where they are few only means can be learned
    assert whole(CODINGS, 10**6)
    assert not whole(CODINGS, 1000)
    assert scaling(10).spread ** 2 == pytest.approx(1, abs=0.1)
    numbers = [CODINGS[0]] * 40
    few = scaling_of(numbers, 100, mu_squared=Fraction(1, 100), share=Fraction(1, 5), excess=Fraction(1))
    assert few is not None
    assert few.spread**2 == pytest.approx(40, rel=0.02)


def whole(held: tuple[Coding, ...], people: int, target: str | None = None) -> bool:
    """Return whether a party with these columns has rows that are hardly ever shortened."""
    chosen = scaling(people, target=target)
    clip = chosen.clip(held)
    assert clip is not None
    return chosen.exact(clip)


def test_a_mean_of_few_squares_varies_more_so_rows_must_be_longer_to_stay_whole() -> None:
    least = [
        min(people for people in range(1000, 10_000, 100) if whole(held, people, target))
        for held, target in ((CODINGS, None), (CODINGS[:2], None), (CODINGS[:1], None))
    ]
    assert least == sorted(set(least))
    # a target counts the more, the fewer squares it is added to
    many = [CODINGS[0], *[CODINGS[4]] * 30]
    aimed = replace(scaling(4000), target="a", finer=Fraction(3))
    clips = [aimed.clip(some) for some in (many, many[:3])]
    assert [clip is not None and aimed.exact(clip) for clip in clips] == [True, False]
    # a lone number column varies the same in any unit
    assert whole(CODINGS[:1], least[-1], "a") > whole(CODINGS[:1], least[-1] - 100, "a")


def test_other_columns_have_a_quarter_more_noise_for_a_target_and_twice_as_much_where_people_are_few() -> None:
    more: dict[int, list[float]] = {10: [], 1000: [], 10**6: []}
    for lists, numbers in product((0, 1, 3, 10, 40), (1, 2, 5, 30)):
        codings = (CODINGS[2],) * lists + (CODINGS[4],) * (numbers - 1) + (CODINGS[0],)
        for people, some in more.items():
            square, finer = [], 1.0
            for target in (None, "a"):
                chosen = scaling_of(
                    codings, people, mu_squared=Fraction(1, 10), share=Fraction(1, 5), excess=Fraction(1), target=target
                )
                assert chosen is not None
                clip, finer = chosen.clip(codings), float(chosen.finer)
                assert clip is not None
                square.append(halved_sensitivity_squared(codings, [(clip.blocks, clip.length)]))
            some.append(float(square[1] / square[0]) ** 0.5)
            # the target's own sums have less: with itself always, with others where there are any
            assert some[-1] == 1 if finer == 1 else some[-1] < finer ** (2 if len(codings) == 1 else 1)
    assert 1.2 < max(more[1000]) < 1.26
    assert max(more[10**6]) < 1.26
    assert 1.5 < max(more[10]) < 2


@pytest.mark.parametrize("target", [None, "a", "b"])
def test_scales_of_any_counts_are_accepted(target: str | None) -> None:
    for people in (1, 1000, 10**6):
        chosen = scaling(people, target=target)
        for counts in np.random.default_rng(people).choice([-people, 0, people, 10.0 * people], (100, 3 * chosen.bins)):
            assert chosen.allowed(CODINGS, chosen.scales(CODINGS, counts, people))


def drawn(values: NDArray[np.float64], noise: float, seed: int = 0) -> Scale:
    """Return the scale of one column in [0, 1] from its noisy counts, for widths of one standard deviation."""
    wide = [COLUMNS[0] | {"bins": 1000}]
    coding = (coding_of(from_builtins({"columns": wide}, Schema, where="test").columns[0], 10),)
    chosen = Scaling(columns=1, bins=32, sigma=noise, spread=1.0, length=Fraction(1), reach=Fraction(4))
    codes = {"a": np.minimum(values * 1000, 999).astype(int)}
    counts = counts_of(coding, codes, 32) + noise * np.random.default_rng(seed).standard_normal(32)
    (found,) = chosen.scales(coding, counts, len(values))
    return found


def test_widths_follow_the_spread_and_not_the_bounds() -> None:
    values = np.clip(np.random.default_rng(1).normal(0.7, 0.1, 10_000), 0, 1)
    for noise, seed in product((1.0, 50.0, 100.0), range(10)):
        found = drawn(values, noise, seed)
        assert found.centre / 1024 == pytest.approx(0.4, abs=0.07)
        assert found.width / 1024 == pytest.approx(0.2, rel=0.35)
    # also where bounds are wide and the noise of all bins together is twice as wide as the column
    values = np.clip(np.random.default_rng(1).normal(0.6, 0.04, 10_000), 0, 1)
    widths = [drawn(values, 300.0, seed).width / 1024 for seed in range(20)]
    assert np.median(widths) == pytest.approx(0.08, rel=0.3)
    assert max(widths) < 0.2


@pytest.mark.parametrize("law", ["normal", "skewed", "two values"])
@pytest.mark.parametrize("noise", [10.0, 300.0, 1000.0, 10_000.0])
def test_a_centre_is_off_by_what_its_error_says(law: str, noise: float) -> None:
    generator = np.random.default_rng(3)
    values = {
        "normal": np.clip(generator.normal(0.6, 0.15, 10_000), 0, 1),
        "skewed": np.clip(generator.exponential(0.15, 10_000), 0, 1),
        "two values": generator.integers(0, 2, 10_000).astype(float),
    }[law]
    scales = [drawn(values, noise, seed) for seed in range(30)]
    off = np.array([(one.centre / 1024 - (2 * values.mean() - 1)) / (one.error / 1024) for one in scales])
    assert np.sqrt((off**2).mean()) < 1.3
    # and it tells more than the bounds unless noise hides everything
    assert np.median([one.error for one in scales]) / 1024 < (0.4 if noise < 1000 else 1.01)


def test_counts_that_noise_explains_tell_nothing() -> None:
    values = np.full(1000, 0.99)
    centres = [drawn(values, 10_000.0, seed) for seed in range(20)]
    # about those of a column that may be anywhere between its bounds
    assert np.median([one.width for one in centres]) / 1024 == pytest.approx(0.65, rel=0.1)
    assert all(one.width > 512 and one.error <= 1024 for one in centres)
    assert np.median([abs(one.centre) for one in centres]) < 200


def test_scales_of_other_columns_are_refused() -> None:
    chosen = scaling()
    good = chosen.scales(CODINGS, np.zeros(3 * chosen.bins), 1000)
    assert [scale.name for scale in good] == ["a", "b", "e"]
    assert chosen.allowed(CODINGS, good)
    first, *rest = good
    for wrong in (
        (),
        tuple(rest),
        (*good, first),
        tuple(reversed(good)),
        (Scale(name="a", centre=0, width=0), *rest),
        (Scale(name="a", centre=2 * UNIT, width=1), *rest),
        (Scale(name="a", centre=0, width=3 * UNIT), *rest),
        (Scale(name="a", centre=0, width=1, error=-1), *rest),
        (Scale(name="a", centre=0, width=1, error=3 * UNIT), *rest),
    ):
        assert not chosen.allowed(CODINGS, wrong)
