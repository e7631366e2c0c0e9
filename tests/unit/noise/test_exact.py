from collections.abc import Iterator
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from syndic.noise.gaussian import DiscreteGaussian, _half_bell
from syndic.noise.geometric import Geometric, exponential_geometric
from syndic.noise.interval import Enclosure
from syndic.noise.inverse_cdf import LazyTable, accept, coin, uniform
from syndic.noise.laplace import DiscreteLaplace, _magnitudes
from unit.noise.scripted import Scripted

ALL = 2**64 - 1


@pytest.fixture(autouse=True)
def precise() -> Iterator[None]:
    with mpmath.workprec(2000):
        yield


def laplace_distribution(scale: Fraction, place: int) -> mpmath.mpf:
    ratio = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
    return (1 - ratio) / (1 + ratio) * (1 + 2 * mpmath.fsum(ratio**k for k in range(1, place + 1)))


def gaussian_distribution(square: Fraction, place: int) -> mpmath.mpf:
    half = mpmath.mpf(square.denominator) / (2 * square.numerator)
    whole = mpmath.jtheta(3, 0, mpmath.exp(-half))
    return (1 + 2 * mpmath.fsum(mpmath.exp(-(k**2) * half) for k in range(1, place + 1))) / whole


@pytest.mark.parametrize("scale", [Fraction(1, 10), Fraction(1), Fraction(7, 3), Fraction(40)])
def test_laplace_thresholds_are_the_floors_of_the_distribution(scale: Fraction) -> None:
    found = _magnitudes(scale).thresholds
    for place in {0, 1, len(found) // 2, len(found) - 2, len(found) - 1} & set(range(len(found))):
        assert int(found[place]) == int(mpmath.floor(laplace_distribution(scale, place) * 2**63))
    assert int(found[-1]) == 2**63 - 1


@pytest.mark.parametrize("square", [Fraction(1, 100), Fraction(1), Fraction(200, 3), Fraction(900)])
def test_gaussian_thresholds_are_the_floors_of_the_distribution(square: Fraction) -> None:
    found = _half_bell(square, 2).thresholds
    for place in {0, 1, len(found) // 2, len(found) - 2, len(found) - 1} & set(range(len(found))):
        assert int(found[place]) == int(mpmath.floor(gaussian_distribution(square, place) * 2**63))
    assert int(found[-1]) == 2**63 - 1


@pytest.mark.parametrize("place", [0, 3, 20])
def test_undecided_word_is_settled_by_further_bits(place: int) -> None:
    table, scale = _magnitudes(Fraction(2)), Fraction(2)
    digits = int(mpmath.floor(laplace_distribution(scale, place) * mpmath.mpf(2) ** 191))
    first, second, third = digits >> 128, digits >> 64 & ALL, digits & ALL
    word = np.array([first << 1], dtype=np.uint64)
    for more, expected in [
        ([second - 1], place),
        ([second + 1], place + 1),
        ([second, third - 1], place),
        ([second, third + 1], place + 1),
        ([second, third, 0], place),
        ([second, third, ALL], place + 1),
    ]:
        source = Scripted(*more)
        assert table.draw(word, source).tolist() == [expected]
        assert source.left == []


def test_word_beside_a_threshold_needs_no_further_bits() -> None:
    table = _magnitudes(Fraction(2))
    edge = int(table.thresholds[3])
    words = np.array([(edge - 1) << 1, (edge - 1) << 1 | 1, (edge + 1) << 1, 0], dtype=np.uint64)
    assert table.draw(words, Scripted()).tolist() == [3, 3, 4, 0]


@pytest.mark.parametrize("more", [0, 2**63, ALL - 2**40, ALL - 2**20])
def test_tail_beyond_the_table_is_resolved(more: int) -> None:
    scale = Fraction(2)
    table = _magnitudes(scale)
    point = (mpmath.mpf((2**63 - 1) << 64 | more)) / mpmath.mpf(2) ** 127
    expected = next(k for k in range(300) if point < laplace_distribution(scale, k))
    assert table.draw(np.array([ALL], dtype=np.uint64), Scripted(more)).tolist() == [expected]
    assert expected >= len(table.thresholds) - 1


def test_a_law_that_is_nearly_certain_still_has_its_tail() -> None:
    """All but 2^-71 is at 0: one word in 2^63 is undecided, and further bits settle it."""
    table = _magnitudes(Fraction(1, 50))
    assert table.thresholds.tolist() == [2**63 - 1]
    words = np.array([ALL, ALL, ALL - 2], dtype=np.uint64)
    assert table.draw(words, Scripted(0, ALL - 2**50)).tolist() == [0, 1, 0]


def test_guide_and_search_agree() -> None:
    table = _half_bell(Fraction(200**2), 2)
    words = np.random.Generator(np.random.Philox(1)).integers(0, 2**64, 200_000, dtype=np.uint64)
    expected = np.searchsorted(table.thresholds, words >> np.uint64(1))
    assert np.array_equal(table.draw(words, Scripted()), expected)


def test_exact_dyadic_coin() -> None:
    table = LazyTable(coin(lambda bits: (1 << (bits - 1), 1 << (bits - 1))))
    words = np.array([0, 2**63 - 1, 2**63, ALL], dtype=np.uint64)
    # the word at the threshold is undecided for the table and needs one more
    assert table.draw(words, Scripted(0)).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(("probability", "expected"), [(0, 0), (1, 1)])
def test_certain_coin(probability: int, expected: int) -> None:
    table = LazyTable(coin(lambda bits: (probability << bits, probability << bits)))
    words = np.array([0, 1, 2**63, ALL], dtype=np.uint64)
    assert table.draw(words, Scripted(5, 5)).tolist() == [expected] * 4


def test_precision_doubles_until_the_floor_is_certain() -> None:
    asked: list[int] = []

    def law(bits: int) -> Iterator[Enclosure]:
        asked.append(bits)
        third = (1 << bits) // 3
        yield max(0, third - (1 << 250)), third + (1 << 250)
        yield 1 << bits, 1 << bits

    assert LazyTable(law).thresholds.tolist() == [2**63 // 3]
    assert asked == [256, 512]


def test_uniform_rejects_the_incomplete_round() -> None:
    size = 2**63 + 1
    source = Scripted(ALL, 7, size, size - 1)
    assert uniform(size, 2, source).tolist() == [size - 1, 7]
    assert uniform(8, 3, Scripted(8, 15, ALL)).tolist() == [0, 7, 7]


@pytest.mark.parametrize("width", [18, 64])
@pytest.mark.parametrize("exponent", [Fraction(1, 10**9), Fraction(1, 3), Fraction(5), Fraction(40)])
def test_accept_follows_the_exact_probability_at_the_edge(exponent: Fraction, width: int) -> None:
    digits = int(
        mpmath.floor(mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator) * mpmath.mpf(2) ** (width + 64))
    )
    first, second = digits >> 64, digits & ALL
    exponents = np.array([float(exponent)])
    for value, more, expected in [
        (first - 1 if first else first, [] if first else [0], True),
        (first + 1, [], False),
        (first, [second - 1], True),
        (first, [second + 1], False),
    ]:
        source = Scripted(*more)
        found = accept(exponents, lambda _: exponent, np.array([value], dtype=np.uint64), width, source)
        assert found.tolist() == [expected]
        assert source.left == []


def test_accept_decides_rightly_where_doubles_cannot() -> None:
    """Points one unit of 2^-64 beside exp(-x), far inside the rounding error of a double."""
    exponents = [Fraction(k, 97) for k in range(1, 300)]
    edges = [int(mpmath.floor(mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator) * 2**64)) for x in exponents]
    doubles = np.array([float(x) for x in exponents])
    for step, expected in [(-1, True), (1, False)]:
        values = np.array([edge + step for edge in edges], dtype=np.uint64)
        assert np.all(accept(doubles, exponents.__getitem__, values, 64, Scripted()) == expected)


@pytest.mark.parametrize("width", [18, 40, 64])
def test_accept_agrees_with_mpmath_everywhere(width: int) -> None:
    generator = np.random.Generator(np.random.Philox(width))
    exponents = [Fraction(int(k), 1000) for k in generator.integers(0, 3000, 2000)]
    values = generator.integers(0, 2**64, 2000, dtype=np.uint64) >> np.uint64(64 - width)
    doubles = np.array([float(x) for x in exponents])
    found = accept(doubles, exponents.__getitem__, values, width, Scripted(*[2**63] * 50))
    for place, exponent in enumerate(exponents):
        # words of 2^63 stand behind an undecided value: half of the way to the next one
        point = (mpmath.mpf(int(values[place])) + 0.5) / mpmath.mpf(2) ** width
        chance = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)
        assert found[place] == (point < chance)


def test_place_inside_a_block_is_kept_with_the_exact_chance() -> None:
    # sigma 600: blocks of 8; a word of zeros is block 0, the next word gives the place inside and 61 bits of the toss
    noise = DiscreteGaussian(sensitivity_squared=Fraction(600**2), rho=Fraction(1, 2))
    chance = mpmath.exp(-mpmath.mpf(7**2) / (2 * 600**2))
    below, above = (int((chance + offset) * 2**61) for offset in (-1e-6, 1e-6))
    assert noise.draw(1, Scripted(0, 7 << 61 | below)).tolist() == [7]
    assert noise.draw(1, Scripted(0, 7 << 61 | above, 1, 3 << 61)).tolist() == [-3]
    # "minus zero" is drawn again
    assert noise.draw(1, Scripted(1, 0, 0, 0)).tolist() == [0]
    assert noise.draw(1, Scripted(1, 0, 0, 5 << 61)).tolist() == [5]


def test_blocks_are_drawn_by_the_weight_at_their_start() -> None:
    noise = DiscreteGaussian(sensitivity_squared=Fraction(600**2), rho=Fraction(1, 2))
    weights = [mpmath.exp(-mpmath.mpf((8 * block) ** 2) / (2 * 600**2)) for block in range(900)]
    edge = int(mpmath.floor(weights[0] / mpmath.fsum(weights) * 2**63))
    assert noise.draw(2, Scripted((edge - 1) << 1, (edge + 1) << 1, 0, 0)).tolist() == [0, 8]
    # all 61 bits of the toss count: one above the chance is decided, at the chance further bits decide
    for place in range(1, 8):
        chance = int(mpmath.exp(-mpmath.mpf(place**2) / (2 * 600**2)) * 2**61)
        assert noise.draw(1, Scripted(0, place << 61 | chance + 1, 0, 0)).tolist() == [0]
        assert noise.draw(1, Scripted(0, place << 61 | chance, ALL, 0, 0)).tolist() == [0]
        assert noise.draw(1, Scripted(0, place << 61 | chance, 0)).tolist() == [place]


@pytest.mark.parametrize("square", [Fraction(1, 3), Fraction(10), Fraction(500**2)])
def test_narrow_gaussian_noise_is_zero_with_its_chance(square: Fraction) -> None:
    noise = DiscreteGaussian(sensitivity_squared=square, rho=Fraction(1, 2))
    edge = int(mpmath.floor(gaussian_distribution(square, 0) * 2**63))
    words = [(edge - 1) << 1, (edge - 1) << 1 | 1, (edge + 1) << 1, (edge + 1) << 1 | 1]
    assert noise.draw(4, Scripted(*words)).tolist() == [0, 0, 1, -1]


def test_wide_laplace_noise_draws_minus_zero_again_and_nothing_else() -> None:
    """Scale 100: one word for what is above 128 and for the sign, one for the digit below."""
    noise = DiscreteLaplace(sensitivity=100, epsilon=Fraction(1))
    ratio = mpmath.exp(-mpmath.mpf(1) / 100)
    one = int((1 - ratio) * (1 + ratio / 2) / (1 - ratio**128) * 2**64)
    for words, expected in [
        ([0, 0], 0),
        ([1, ALL - 1], -127),
        ([0, ALL - 1], 127),
        ([1, one], -1),
        ([0, one], 1),
        ([1, 0, 0, 0], 0),
        ([1, 0, 1, 0, 1, one], -1),
    ]:
        source = Scripted(*words)
        assert noise.draw(1, source).tolist() == [expected]
        assert source.left == []


def test_accept_margin_covers_the_error_of_doubles() -> None:
    exponents = np.random.Generator(np.random.Philox(2)).exponential(3, 2000)
    errors = [abs(mpmath.exp(-mpmath.mpf(float(x))) - mpmath.mpf(float(np.exp(-x)))) for x in exponents]
    assert max(errors) < 2.0**-50


def test_geometric_digits_make_up_the_number() -> None:
    # ratio 1/2: every bit of the unary digits is known, P(G >= k) = 2^-k
    geometric = Geometric(lambda n, bits: (1 << (bits - n), 1 << (bits - n)) if n <= bits else (0, 1), 1.0)
    words = np.array([0, 2**63 - 2, 2**63 + 2, 2**63 + 2**62 + 2, 2**63 + 2**62 + 2**61 + 2], dtype=np.uint64)
    assert geometric.draw(words, Scripted()).tolist() == [0, 0, 1, 2, 3]


def test_geometric_is_given_as_beyond_the_limit_when_events_never_happen() -> None:
    never = Geometric(lambda _, bits: ((1 << bits) - 1, 1 << bits), 2.0**200)
    words = np.array([2, 2**40, ALL], dtype=np.uint64)
    assert np.all(never.draw(words, Scripted()) >= 2**63)


def test_geometric_with_digits_draws_one_word_for_each() -> None:
    source = Scripted(*[0] * 2, *[ALL - 1] * 2)
    drawn = exponential_geometric(Fraction(10**6)).draw(np.array([0, 0], dtype=np.uint64), source)
    # a word of zeros is the smallest value of its digit, a word of ones the largest: 2^10 - 1 in the upper digit
    assert drawn.tolist() == [1023 << 10, 1023 << 10]
    assert source.left == []


def test_geometric_draws_have_their_digits_also_beside_one_beyond_the_limit() -> None:
    """Were one gap past the end of a domain to end the draw, all others would be too short."""
    source = Scripted(*[ALL - 1, 0] * 7)
    drawn = exponential_geometric(Fraction(2**63)).draw(np.array([0, ALL - 1], dtype=np.uint64), source)
    assert drawn.tolist() == [2**63 - 1, 2**63]
    assert source.left == []
