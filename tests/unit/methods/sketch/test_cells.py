"""Unions, complements and cells against sets and exact counts."""

from fractions import Fraction
from functools import reduce

import numpy as np
import pytest

from syndic.errors import InputError
from syndic.methods.vertimrf.sketch.encode import People, SketchPlan, encode, person_digests
from syndic.methods.vertimrf.sketch.estimate import cell_table, complements
from syndic.model.markov.measurement import onto_simplex
from syndic.random import SimulationRandomness
from syndic_lab.encodings import Decoder, decoded_cells, harmonic

KEY = b"0123456789abcdef"
COUNT = 3000
BARE = SketchPlan(phantoms=0, floor=0, repetitions=4000)


def columns(sizes: tuple[int, ...], plan: SketchPlan) -> tuple[list[np.ndarray], np.ndarray]:
    """Return each column's sketches and everybody's codes; most people have the first one in all."""
    generator = np.random.default_rng(11)
    codes = np.column_stack([(size * generator.random(COUNT) ** 2).astype(np.int64) for size in sizes])
    copied = generator.random(COUNT) < 0.8
    codes[copied, 1:] = np.minimum(codes[copied, :1], np.array(sizes[1:]) - 1)
    digests = person_digests(KEY, (str(place).encode() for place in range(COUNT)))
    # each column by itself, as at parties of their own
    found = [
        encode(plan, KEY, [People(digests, codes[:, [place]])], [size], SimulationRandomness(place))
        for place, size in enumerate(sizes)
    ]
    return found, codes


def exact(codes: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    places = np.ravel_multi_index(tuple(codes.T), sizes)
    return np.bincount(places, minlength=int(np.prod(sizes))).reshape(sizes)


def test_the_largest_rank_is_that_of_the_union() -> None:
    digests = person_digests(KEY, (str(place).encode() for place in range(COUNT)))

    def sketch(rows: np.ndarray) -> np.ndarray:
        some = People(digests[rows], np.zeros((len(rows), 1), dtype=np.int64))
        return encode(BARE, KEY, [some], [1], SimulationRandomness(0))

    left, right = np.arange(0, 1800), np.arange(1200, 3000)
    assert (np.maximum(sketch(left), sketch(right)) == sketch(np.arange(3000))).all()


def test_complements_are_the_largest_of_the_others() -> None:
    ranks = np.random.default_rng(2).integers(3, 9, (50, 6)).astype(np.uint16)
    plan = SketchPlan(phantoms=0, floor=3, repetitions=50)
    wanted = np.column_stack([np.delete(ranks, place, axis=1).max(axis=1) for place in range(6)])
    assert (complements(ranks, plan) == wanted).all()
    assert (complements(ranks[:, :1], plan) == 3).all()


@pytest.mark.parametrize("sizes", [(4,), (4, 3), (2, 5, 3)])
def test_without_phantoms_cells_are_the_counts_but_for_the_sketches_error(sizes: tuple[int, ...]) -> None:
    sketches, codes = columns(sizes, BARE)
    # four sd of the largest union
    reach = 4 * 1.04 * COUNT / BARE.repetitions**0.5
    wanted = exact(codes, sizes)
    decoders: tuple[Decoder, ...] = ("likeliest", "harmonic")
    for decoder in decoders:
        found = decoded_cells(sketches, BARE, COUNT, decoder)
        assert np.abs(found - wanted).max() < reach
    margins = [
        wanted.sum(axis=tuple(other for other in range(len(sizes)) if other != axis)) for axis in range(len(sizes))
    ]
    independent = reduce(np.multiply.outer, [margin / COUNT for margin in margins]) * COUNT
    if len(sizes) > 1:  # a decoder that knows the margins only would fail
        assert np.abs(independent - wanted).max() > 1.5 * reach


def test_phantoms_of_columns_of_different_sizes_are_taken_off() -> None:
    plan = SketchPlan(phantoms=500, floor=5, repetitions=4000)
    sketches, codes = columns((2, 5), plan)
    reach = 6 * 1.04 * (COUNT + 5 * 500) / plan.repetitions**0.5
    assert np.abs(cell_table(sketches, plan, COUNT) - exact(codes, (2, 5))).max() < reach


def test_the_printed_decoder_clips_every_cell_to_nothing() -> None:
    plan = SketchPlan(phantoms=500, floor=5, repetitions=2000)
    sketches, _ = columns((2, 5), plan)
    assert (decoded_cells(sketches, plan, COUNT, "printed") == 0).all()


def test_onto_simplex_is_the_nearest_table() -> None:
    cells = np.array([[5.0, -3.0], [2.0, 0.4]])
    found = onto_simplex(cells, 6.0)
    assert found.sum() == pytest.approx(6.0)
    assert (found >= 0).all()
    # the conditions of the nearest point: one shift for all positive cells, no more for the others
    shift = (cells - found)[found > 0]
    assert np.ptp(shift) < 1e-12
    assert (cells[found == 0] <= shift[0]).all()
    assert (onto_simplex(cells, 0.0) == 0).all()


def test_columns_of_other_repetitions_are_refused() -> None:
    with pytest.raises(InputError, match="4000"):
        cell_table([np.ones((3, 2), dtype=np.uint16)], BARE, 10)


def test_harmonic_of_a_hashed_set_is_its_size() -> None:
    sketches, codes = columns((1, 1), BARE)
    assert float(harmonic(sketches[0][:, 0], Fraction(1))) == pytest.approx(len(codes), rel=6 * 1.04 / 4000**0.5)
