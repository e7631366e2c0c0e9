"""The Gram matrix: which sums are opened, what one person can change, how noise travels."""

import itertools
from collections.abc import Sequence
from fractions import Fraction

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from syndic.data import Boolean, Categorical, Instead, Integer, Real
from syndic.data.coding import Coding, coded_rows, coding_of, product_of
from syndic.data.schema import Column
from syndic.errors import InputError
from syndic.model.gram.matrix import GramMatrix, intercept, places_of, presence, sensitivity_squared
from syndic.model.gram.rows import Clip

BITS = 6
NUMBER = Integer(name="n", lower=-1, upper=1, missing=Instead(value=0))
OTHER = Integer(name="o", lower=-1, upper=1, missing=Instead(value=0))
FLAGGED = Integer(name="f", lower=-1, upper=1)
TRUTH = Boolean(name="t", missing=Instead(value=False))
LIST = Categorical(name="c", values=("x", "y", "z"), missing=Instead(value="x"), outside=Instead(value="x"))
PAIR = Categorical(name="p", values=("a", "b"), missing=Instead(value="a"), outside=Instead(value="a"))
COLUMNS: dict[str, Column] = {each.name: each for each in (NUMBER, OTHER, FLAGGED, TRUTH, LIST, PAIR)}


def codings(names: str) -> list[Coding]:
    """Return blocks for a text such as "n c nc": columns and products."""
    found = []
    for word in names.split():
        parts = [coding_of(COLUMNS[letter], BITS) for letter in word]
        found.append(parts[0] if len(parts) == 1 else product_of(*parts))
    return found


def every_row(blocks: Sequence[Coding]) -> NDArray[np.float64]:
    """Return the features of every row there can be, the intercept first."""
    names = list(dict.fromkeys(name for block in blocks for name in block.columns))
    codes = np.array(list(itertools.product(*(range(COLUMNS[name].size) for name in names))))
    rows = coded_rows(blocks, {name: codes[:, place] for place, name in enumerate(names)}) / (1 << BITS)
    return np.column_stack([np.ones(len(rows)), rows])


def opened(blocks: Sequence[Coding], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what each row adds to the opened sums."""
    places = places_of((intercept(), *(feature for block in blocks for feature in block.features)))
    first, second = np.array([np.argwhere(places == place)[0] for place in range(places.max() + 1)]).T
    return rows[:, first] * rows[:, second]


SETS = [
    "n",
    "n o",
    "n o t",
    "c",
    "c p",
    "c p t",
    "n c",
    "f",
    "f c",
    "f n o",
    "n c nc",
    "n o no",
    "f c fc",
    "c p cp",
    "t c",
]


@pytest.mark.parametrize("names", SETS)
def test_no_two_rows_differ_by_more_than_the_sensitivity(names: str) -> None:
    blocks = codings(names)
    sums = opened(blocks, every_row(blocks))
    largest = max(float(((sums - each) ** 2).sum(axis=1).max()) for each in sums)
    assert largest <= sensitivity_squared(blocks)


@pytest.mark.parametrize(("names", "reached"), [("n", 4), ("n o t", 16), ("c", 2), ("c p", 6), ("n c", 8), ("t c", 8)])
def test_the_sensitivity_is_reached(names: str, reached: int) -> None:
    blocks = codings(names)
    sums = opened(blocks, every_row(blocks))
    assert max(float(((sums - each) ** 2).sum(axis=1).max()) for each in sums) == reached
    assert sensitivity_squared(blocks) <= reached + 1


def test_rows_between_the_bounds_differ_by_no_more() -> None:
    fine = [coding_of(Integer(name=name, lower=-50, upper=50, missing=Instead(value=0)), BITS) for name in "uvw"]
    blocks = [*fine, *codings("c p t"), product_of(fine[0], codings("c")[0])]
    generator = np.random.default_rng(7)
    # many rows near the bounds, where the largest changes are
    codes = {name: np.rint(100 * generator.beta(0.3, 0.3, 40_000)).astype(int) for name in "uvw"}
    codes |= {name: generator.integers(0, COLUMNS[name].size, 40_000) for name in "cpt"}
    rows = coded_rows(blocks, codes) / 2.0**BITS
    sums = opened(blocks, np.column_stack([np.ones(len(rows)), rows]))
    changes = ((sums[:20_000] - sums[20_000:]) ** 2).sum(axis=1)
    bound = float(sensitivity_squared(blocks))
    assert 0.8 * bound < changes.max() <= bound


def test_the_sensitivity_of_many_numbers_and_of_many_lists() -> None:
    numbers = [coding_of(Real(name=f"x{place}", lower=0.0, upper=1.0, bins=9), BITS) for place in range(11)]
    # each with a level for missing values: still one feature at a time
    assert sensitivity_squared(numbers) == 144
    lists = codings("c p") * 3
    # six lists and the intercept: every one of 21 tables moves two counts
    assert sensitivity_squared(lists) == 42


@pytest.mark.parametrize("length", [Fraction(1), Fraction(3, 2), Fraction(2)])
def test_shortened_rows_change_no_more_than_their_length_allows(length: Fraction) -> None:
    blocks = [coding_of(Integer(name=name, lower=-2, upper=2, missing=Instead(value=0)), BITS) for name in "uvw"]
    blocks += codings("c")
    codes = np.array(list(itertools.product(range(5), range(5), range(5), range(3))))
    rows = coded_rows(blocks, dict(zip("uvwc", codes.T, strict=True)))
    clip = Clip(places=(0, 1, 2), blocks=3, length=length)
    short = clip.apply(rows, BITS)
    assert (short[:, :3].astype(np.int64) ** 2).sum(axis=1).max() <= length * 4**BITS
    kept = (rows[:, :3].astype(np.int64) ** 2).sum(axis=1) <= length * 4**BITS
    assert np.array_equal(short[kept], rows[kept])
    assert np.array_equal(short[:, 3:], rows[:, 3:])
    # the direction stays, but for rounding
    assert np.abs(np.cross(short[:, :3], rows[:, :3])).max() <= 3 * 2**BITS
    sums = opened(blocks, np.column_stack([np.ones(len(short)), short / 2.0**BITS]))
    largest = max(float(((sums - each) ** 2).sum(axis=1).max()) for each in sums)
    assert largest <= sensitivity_squared(blocks, lengths=[(3, length)]) < sensitivity_squared(blocks)


def test_lengths_add_up_over_parties() -> None:
    numbers = codings("n o") * 3
    # four of six columns count half, the others and the intercept in full; and the lengths once more
    assert sensitivity_squared(numbers, lengths=[(2, Fraction(1)), (2, Fraction(1))]) == (1 + 2 + 2) ** 2 + 2


@pytest.mark.parametrize("names", ["n c", "f c", "c p", "t n"])
def test_absent_people_change_no_more_than_the_sensitivity(names: str) -> None:
    first, second = codings(names)
    rows = []
    for block in (first, second):
        mine = every_row([block])  # the first column is the presence
        rows.append(np.vstack([mine, np.zeros(mine.shape[1])]))
    both = np.array([np.concatenate(pair) for pair in itertools.product(*rows)])
    features = (presence("a"), *first.features, presence("b"), *second.features)
    # features of a party are there where its presence is
    width = len(first.features)
    homes = ["(at a)"] * (width + 1) + ["(at b)"] * (len(features) - width - 1)
    features = tuple(msgspec.structs.replace(each, ones=home) for each, home in zip(features, homes, strict=True))
    places = places_of(features)
    at = np.array([np.argwhere(places == place)[0] for place in range(places.max() + 1)])
    sums = both[:, at[:, 0]] * both[:, at[:, 1]]
    # what is said to be the same sum is
    for i, j in np.argwhere(places >= 0):
        assert np.allclose(both[:, i] * both[:, j], sums[:, places[i, j]])
    largest = max(float(((sums - each) ** 2).sum(axis=1).max()) for each in sums)
    assert largest <= sensitivity_squared([first, second], presences=2)


@pytest.mark.parametrize("names", SETS)
def test_the_matrix_is_that_of_the_rows(names: str) -> None:
    blocks = codings(names)
    rows = every_row(blocks)
    gram = GramMatrix(
        features=(intercept(), *(feature for block in blocks for feature in block.features)),
        rows=len(rows),
        values=opened(blocks, rows).sum(axis=0),
        sigma=0.0,
    )
    assert np.allclose(gram.matrix, rows.T @ rows)


def test_noise_travels_as_the_map_says() -> None:
    generator = np.random.default_rng(3)
    blocks = codings("n c f")
    features = (intercept(), *(feature for block in blocks for feature in block.features))
    places = places_of(features)
    noise = generator.normal(size=places.max() + 1)
    matrix = np.where(places >= 0, noise[places], 0.0)
    vector = generator.normal(size=len(features))
    gram = GramMatrix(features=features, rows=10, values=np.zeros_like(noise), sigma=1.0)
    assert np.allclose(gram.noise_map([0, 2, 3], vector) @ noise, (matrix @ vector)[[0, 2, 3]])
    assert gram.noise_weights(vector) @ noise == pytest.approx(vector @ matrix @ vector)


def test_more_noise_adds_in_squares() -> None:
    gram = GramMatrix.of(np.zeros((5, 40)), [str(place) for place in range(40)], sigma=3.0)
    noisier = gram.renoised(4.0, np.random.default_rng(0))
    assert noisier.sigma == 5.0
    assert (noisier.values - gram.values).std() == pytest.approx(4.0, rel=0.2)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="has 5 sums"):
        GramMatrix(features=GramMatrix.of(np.zeros((2, 2)), ["a", "b"]).features, rows=2, values=np.zeros(4), sigma=1.0)
    with pytest.raises(ValueError, match="distinct"):
        GramMatrix.of(np.zeros((2, 2)), ["a", "a"])
    with pytest.raises(InputError, match="no feature 'q'"):
        GramMatrix.of(np.zeros((2, 2)), ["a", "b"]).index("q")
