"""Exact limb products and matrix triples, against products of Python integers."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from syndic.errors import InputError
from syndic.mpc.limb import joint_product, matrix_product
from syndic.mpc.ring import Integers, Residues, Ring, field_for
from syndic.mpc.triple import (
    ProductSizes,
    Stock,
    dealt_half,
    left_share,
    opening,
    product_sizes,
    right_share,
)

Matrix = NDArray[Any]


def slow_product(left: Matrix, right: Matrix, modulus: int) -> list[list[int]]:
    """Multiply with Python's own integers."""
    columns = (
        [[int(value) for value in column] for column in left.T],
        [[int(value) for value in column] for column in right.T],
    )
    return [
        [sum(x * y for x, y in zip(one, other, strict=True)) % modulus for other in columns[1]] for one in columns[0]
    ]


@pytest.mark.parametrize("bits", [1, 2, 8, 9, 10, 11, 16, 17, 19, 26, 27, 31, 32, 33, 48, 53, 63, 64])
def test_products_are_exact_in_every_ring(bits: int) -> None:
    ring, generator = Ring(bits), np.random.default_rng(bits)
    largest = 2**bits - 1
    for rows in (1, 255, 256, 700):
        left = ring.reduce(generator.integers(0, largest, (rows, 3), dtype=np.uint64, endpoint=True))
        right = ring.reduce(generator.integers(0, largest, (rows, 2), dtype=np.uint64, endpoint=True))
        # where rounding would show first: the ends and the middle of the ring
        left[:, 0], right[:, 0] = largest, 2 ** (bits - 1)
        found = matrix_product(left, right, ring)
        assert found.dtype == ring.dtype
        assert found.tolist() == slow_product(left, right, 2**bits)


@pytest.mark.parametrize("prime", [16381, 131041, 524269, 8388593])
@pytest.mark.parametrize("bound", [0, 1])
def test_products_are_exact_in_every_field(prime: int, bound: int) -> None:
    field, generator = Residues(prime), np.random.default_rng(prime)
    for rows in (1, 127, 128, 129, 5000):
        left = field.reduce(generator.integers(0, prime, (rows, 3)))
        right = field.reduce(generator.integers(0, prime, (rows, 2)))
        left[:, 0], right[:, 0] = prime - 1, prime - 1  # the largest sums there are
        left = left % 2 if bound else left
        found = matrix_product(left, right, field, bound=bound)
        assert found.dtype == field.dtype
        assert found.tolist() == slow_product(left, right, prime)


@pytest.mark.parametrize("prime", [131041, 8388593, 268435361])
@pytest.mark.parametrize("widths", [(2,), (3, 2), (40, 30), (2, 3, 2)])
def test_sums_of_products_of_several_columns_are_exact(prime: int, widths: tuple[int, ...]) -> None:
    field, generator = Residues(prime), np.random.default_rng(prime)
    *matrices, last = (field.reduce(generator.integers(0, prime, (900, width))) for width in (*widths, 3))
    matrices[0][:, 0], last[:, 0] = prime - 1, prime - 1
    joint = matrices[0].astype(object)
    for one in matrices[1:]:
        joint = (joint[:, :, None] * one.astype(object)[:, None, :]).reshape(len(joint), -1)
    found = joint_product(matrices, last, field)
    assert found.dtype == field.dtype
    assert found.tolist() == (joint.T @ last.astype(object) % prime).tolist()


def test_the_last_and_largest_sums_that_single_precision_holds() -> None:
    ring = Ring(9)
    for rows in (255, 256, 257):  # 256 * 2^8 * 2^8 is 2^24, one row more is beyond it
        worst = np.full((rows, 1), 2**8, dtype=np.uint16)
        odd = np.full((rows, 1), 2**8 + 1, dtype=np.uint16)
        for left, right in [(worst, worst), (worst, odd), (odd, odd)]:
            assert matrix_product(left, right, ring).tolist() == slow_product(left, right, 2**9)


@pytest.mark.parametrize("bound", [1, 1000, 2**20])
def test_signed_left_sides_within_a_bound(bound: int) -> None:
    ring, generator = Ring(40), np.random.default_rng(bound)
    left = generator.integers(-bound, bound, (300, 4), endpoint=True)
    right = ring.reduce(generator.integers(0, 2**40, (300, 3), dtype=np.uint64))
    assert matrix_product(left, right, ring, bound=bound).tolist() == slow_product(left, right, 2**40)


@pytest.mark.parametrize("bits", [24, 25, 26, 53, 54, 55])
@pytest.mark.parametrize("rows", [1, 2, 3, 2049])
def test_few_rows_of_a_one_hot_matrix_in_a_ring_too_wide_for_the_float(bits: int, rows: int) -> None:
    """The sum would fit, but the elements lose their last bit before they are brought around zero."""
    ring, generator = Ring(bits), np.random.default_rng(bits)
    left = np.eye(3, dtype=np.uint8)[generator.integers(0, 3, rows)]
    right = ring.reduce(generator.integers(0, 2**bits, (rows, 20), dtype=np.uint64))
    assert matrix_product(left, right, ring, bound=1).tolist() == slow_product(left, right, 2**bits)


def test_more_rows_than_are_multiplied_at_once() -> None:
    ring, generator = Ring(12), np.random.default_rng(1)
    left, right = (ring.reduce(generator.integers(0, 2**12, (5000, width))) for width in (3, 4))
    assert matrix_product(left, right, ring).tolist() == slow_product(left, right, 2**12)


def multiplied(left: Matrix, right: Matrix, sizes: ProductSizes) -> NDArray[np.int64]:
    """Play all three roles of one product."""
    shape, ring = (left.shape[1], right.shape[1]), sizes.ring
    one, other = (Stock(seed=seed * 32, study="s", party="p", sizes=sizes) for seed in (b"l", b"r"))
    total = ring.reduce(np.zeros(shape, dtype=np.int64))
    for chunk in range(sizes.chunks):
        span = slice(*sizes.span(chunk))
        masks = one.mask(chunk, shape[0]), other.mask(chunk, shape[1])
        half = one.half("r", chunk, shape)
        dealt = dealt_half(*masks, half, ring)
        opened = [opening(matrix[span], mask, ring) for matrix, mask in zip((left, right), masks, strict=True)]
        total = ring.add(total, left_share(left[span], opened[1], half, sizes))
        total = ring.add(total, right_share(opened[0], masks[1], dealt, sizes))
    centred = ring.subtract(total, ring.reduce(np.full(shape, sizes.centre)))
    return ring.lift(centred) + sizes.centre


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(1, 700),
    widths=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    power=st.integers(0, 10),
    signed=st.booleans(),
    proven=st.booleans(),
    chunk_bytes=st.integers(1, 400),
    fill=st.sampled_from(["random", "largest", "opposite"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_shares_open_to_the_product(
    rows: int, widths: tuple[int, int], power: int, signed: bool, proven: bool, chunk_bytes: int, fill: str, seed: int
) -> None:
    entry = 1 if proven else 2**power
    low = -entry if signed else 0
    generator = np.random.default_rng(seed)
    left, right = (generator.integers(low, entry, (rows, width), endpoint=True) for width in widths)
    if fill != "random":  # the bounds themselves must fit
        left[:], right[:] = entry, entry if fill == "largest" else low
    sizes = product_sizes(
        rows=rows,
        entry=entry,
        signed=signed,
        headroom=0,
        columns=widths,
        proven=proven,
        chunk_bytes=chunk_bytes,
    )
    assert isinstance(sizes.ring, Residues) == proven
    assert (multiplied(left, right, sizes) == left.T @ right).all()


def test_wanted_cells_are_those_of_the_product() -> None:
    sizes = ProductSizes(rows=30, low=0, high=1, entry=1, ring=Ring(4), chunk=30)
    generator = np.random.default_rng(5)
    left, right = (generator.integers(0, 2, (30, width)).astype(sizes.ring.dtype) for width in (3, 4))
    cells, half = np.array([0, 5, 6, 11, 2]), np.ones((5, 1), dtype=sizes.ring.dtype)
    plain = (left.T @ right).ravel()[cells][:, None].astype(np.int64)
    assert (left_share(left, right, half, sizes, cells) == (plain + 1) % 16).all()
    assert (right_share(left, right, half, sizes, cells) == (plain + 1) % 16).all()
    assert (dealt_half(left, right, half, sizes.ring, cells) == (plain - 1) % 16).all()


def adult_sizes(**changes: Any) -> ProductSizes:
    settings: dict[str, Any] = {
        "rows": 45_222,
        "entry": 1,
        "signed": False,
        "headroom": 2000,
        "columns": (86, 86),
    }
    return product_sizes(**{**settings, **changes})


def test_sizes_follow_from_public_bounds() -> None:
    assert adult_sizes().ring == Ring(16)  # 45,222 people and the noise: 2^16 is enough
    assert adult_sizes(headroom=20_000).ring == Ring(17)
    assert adult_sizes(proven=True).ring == Residues(131041)
    assert adult_sizes(headroom=60_000, proven=True).ring == Residues(262133)


def test_a_field_has_room_for_its_bound_and_there_is_a_largest() -> None:
    for bound in (1, 65_520, 65_521, 4_194_296):
        field = field_for(bound)
        ends = np.array([-bound, bound])
        assert field.lift(field.reduce(ends)).tolist() == ends.tolist()
        assert field.modulus % 4 == 1
    assert (field_for(65_520).bits, field_for(65_521).bits) == (17, 18)
    with pytest.raises(InputError, match='adversary = "passive"'):
        field_for(134_217_681)


@pytest.mark.parametrize(("signed", "ends"), [(False, (0, 45_222)), (True, (-45_222, 45_222))])
def test_the_largest_noise_fits_at_either_end_of_the_result(signed: bool, ends: tuple[int, int]) -> None:
    """Or a sum with noise would come out at the other end."""
    headroom = 10_000 if not signed else 20_000
    sizes = adult_sizes(signed=signed, headroom=headroom)
    assert sizes.ring == Ring(16 if not signed else 17)
    half = 2 ** (sizes.ring.bits - 1)
    assert -half <= ends[0] - headroom - sizes.centre
    assert ends[1] + headroom - sizes.centre < half


def test_gram_matrix_of_signed_columns() -> None:
    generator = np.random.default_rng(3)
    columns = [generator.integers(-(2**8), 2**8, (500, width), dtype=np.int32, endpoint=True) for width in (3, 2)]
    sizes = product_sizes(rows=500, entry=2**8, signed=True, headroom=10**5, columns=(3, 2))
    exact = columns[0].astype(np.int64).T @ columns[1]
    assert (multiplied(columns[0], columns[1], sizes) == exact).all()


def test_masks_of_other_parties_chunks_studies_products_and_uses_differ() -> None:
    sizes = adult_sizes(rows=1000, chunk_bytes=50)
    assert sizes.chunks > 1
    stock = Stock(seed=b"s" * 32, study="one", party="a", sizes=sizes)
    drawn = [
        stock.mask(0, 86),
        stock.mask(1, 86),
        Stock(seed=b"t" * 32, study="one", party="a", sizes=sizes).mask(0, 86),
        Stock(seed=b"s" * 32, study="two", party="a", sizes=sizes).mask(0, 86),
        Stock(seed=b"s" * 32, study="one", party="b", sizes=sizes).mask(0, 86),
        Stock(seed=b"s" * 32, study="one", party="a", sizes=sizes, label="round 2").mask(0, 86),
        stock.half("north", 0, (8, 8)),
        stock.half("south", 0, (8, 8)),
        stock.half("south", 1, (8, 8)),
    ]
    starts = {each.ravel()[:40].tobytes() for each in drawn}
    assert len(starts) == len(drawn)


def test_what_partners_see_is_uniform_and_a_reused_mask_is_not() -> None:
    sizes = adult_sizes(rows=4000, headroom=0)
    ring = sizes.ring
    stock = Stock(seed=b"u" * 32, study="s", party="p", sizes=sizes)
    matrix = np.ones((4000, 86), dtype=np.uint8)
    opened = opening(matrix, stock.mask(0, 86), ring)
    assert uniform(opened.astype(np.uint64), ring) > 1e-6
    again = opening(np.zeros_like(matrix), stock.mask(0, 86), ring)
    assert uniform(again.astype(np.uint64), ring) > 1e-6
    # the fault that one seed a study prevents: two matrices under one mask tell their difference
    assert (ring.subtract(opened, again) == 1).all()


def uniform(elements: Matrix, ring: Integers) -> float:
    """Return the p-value of the elements being uniform."""
    size = ring.modulus if isinstance(ring, Residues) else 2**ring.bits
    return float(stats.chisquare(np.bincount(elements.ravel() * 512 // size, minlength=512)).pvalue)


@pytest.mark.parametrize("proven", [False, True])
def test_halves_for_the_right_party_are_uniform(proven: bool) -> None:
    sizes = adult_sizes(rows=8192, headroom=4000, proven=proven)
    one, other = (Stock(seed=seed * 32, study="s", party="p", sizes=sizes) for seed in (b"l", b"r"))
    masks, half = (one.mask(0, 90), other.mask(0, 90)), one.half("r", 0, (90, 90))
    assert uniform(dealt_half(*masks, half, sizes.ring).astype(np.uint64), sizes.ring) > 1e-6


def test_a_matrix_of_another_shape_is_refused() -> None:
    with pytest.raises(InputError, match="but its mask has shape"):
        opening(np.zeros((3, 2)), np.zeros((3, 3), dtype=np.uint16), Ring(9))
