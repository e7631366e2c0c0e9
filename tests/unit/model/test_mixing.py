"""Mixing by streamed signs against the whole matrix of signs; least squares from noisy rows against formulas."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from syndic.data.coding import Feature
from syndic.errors import InputError
from syndic.model.gram.fit import regress
from syndic.model.gram.mixed import Mixed, least_squares
from syndic.model.gram.mixing import Mixer, classical_sigma, mixes_for, printed_mixes, tile_of
from syndic.mpc.mask import stream


def bits_of(tile: int, length: int) -> bytes:
    return stream(b"k" * 32, str(tile).encode(), length)


def whole(mixes: int, people: int, bits: int) -> NDArray[np.int64]:
    """Return the signs as one matrix, from the same bits."""
    width = tile_of(bits) // 8
    tiles = [
        np.unpackbits(np.frombuffer(bits_of(tile, mixes * width), np.uint8).reshape(mixes, width), axis=1)
        for tile in range(-(-people // tile_of(bits)))
    ]
    return 1 - 2 * np.concatenate(tiles, axis=1).astype(np.int64)[:, :people]


@pytest.mark.parametrize(("bits", "people", "mixes"), [(10, 20_000, 70), (16, 700, 64), (4, 5, 3), (12, 4096, 130)])
def test_mixing_is_the_product_with_all_signs_exactly(bits: int, people: int, mixes: int) -> None:
    generator = np.random.default_rng(bits)
    rows = generator.integers(-(2**bits), 2**bits, (people, 3), endpoint=True, dtype=np.int32)
    rows[:, 2] = 2**bits  # the largest sums there can be
    mixer = Mixer(mixes=mixes, width=3, bits=bits, stream=bits_of)
    for batch in np.array_split(rows, 7):
        mixer.add(batch)
    signs = whole(mixes, people, bits)
    assert mixer.people == people
    assert np.array_equal(mixer.total(), signs @ rows)
    assert set(np.unique(signs)) == {-1, 1}


def test_largest_sums_of_a_tile_are_exact_in_single_precision() -> None:
    for bits in range(4, 17):
        assert tile_of(bits) % 8 == 0
        assert tile_of(bits) * 2**bits <= 2**24


def test_one_person_moves_the_mix_by_the_root_of_the_mixes() -> None:
    generator = np.random.default_rng(1)
    rows = generator.integers(-16, 17, (50, 4), dtype=np.int32)
    other = rows.copy()
    other[17] = -rows[17] + 1
    totals = []
    for each in (rows, other):
        mixer = Mixer(mixes=33, width=4, bits=4, stream=bits_of)
        mixer.add(each)
        totals.append(mixer.total())
    moved = float(((totals[0] - totals[1]) ** 2).sum())
    assert moved == 33 * float(((rows[17] - other[17]) ** 2).sum())


def test_inner_products_survive_mixing() -> None:
    # Johnson-Lindenstrauss for signs: off by 4 b s^2 with a chance below (l + 1)^2 exp(-k (b^2 / 4 - b^3 / 6))
    mixes, people = 4000, 300
    points = np.random.default_rng(2).integers(-500, 501, (people, 5), dtype=np.int32)
    mixer = Mixer(mixes=mixes, width=5, bits=10, stream=bits_of)
    mixer.add(points)
    mixed = mixer.total() / np.sqrt(mixes)
    size = float((points.astype(float) ** 2).sum(axis=0).max())
    b = 0.2
    assert 36 * np.exp(-mixes * (b**2 / 4 - b**3 / 6)) < 1e-6
    assert np.abs(mixed.T @ mixed - points.T.astype(float) @ points).max() <= 4 * b * size


def test_numbers_of_mixes() -> None:
    sigma = classical_sigma(1.0, 1e-5)
    assert sigma == pytest.approx(4.8448, abs=1e-4)
    assert [printed_mixes(n, sigma) for n in (10**4, 3 * 10**4, 10**5, 3 * 10**5, 10**6, 3 * 10**6)] == [
        *(206, 357, 652, 1130, 2064, 3575)
    ]
    assert [printed_mixes(n, classical_sigma(0.1, 1e-5)) for n in (10**4, 10**5, 10**6)] == [20, 65, 206]
    assert mixes_for(people=10**6, features=11, tau=25.0) == 534
    assert mixes_for(people=1000, features=11, tau=25.0) == 24
    assert mixes_for(people=100, features=11, tau=0.01) == 100


def noisy_rows(*, mixed: bool, tau: float = 0.3, people: int = 4000) -> tuple[Mixed, NDArray[np.float64]]:
    generator = np.random.default_rng(5)
    rows = generator.uniform(-1, 1, (people, 3))
    rows[:, 2] = 0.3 * rows[:, 0] - 0.4 * rows[:, 1] + 0.2
    full = np.column_stack([np.ones(people), rows])
    if mixed:
        full = generator.choice([-1.0, 1.0], (500, people)) @ full / np.sqrt(500)
    table = full[:, 1:] + tau * generator.standard_normal((len(full), 3))
    names = [Feature(name=name, block=name) for name in ("a", "b", "y")]
    return Mixed(
        features=tuple(names), people=people, table=table, ones=full[:, 0], noise=np.full(3, tau), mixed=mixed
    ), rows


@pytest.mark.parametrize("mixed", [True, False])
@pytest.mark.parametrize("debias", [True, False])
def test_printed_regressions_are_their_formulas(mixed: bool, debias: bool) -> None:
    noisy, _ = noisy_rows(mixed=mixed)
    x, y = noisy.table[:, :2], noisy.table[:, 2]
    hessian = x.T @ x / 4000 - (len(x) * 0.09 / 4000 if debias else 0.0) * np.eye(2) + 1e-5 * np.eye(2)
    found = least_squares(noisy, "y", debias=debias)
    assert found.features == ("a", "b")
    assert found.coefficients == pytest.approx(np.linalg.inv(hessian) @ x.T @ y / 4000)
    assert found.least_eigenvalue == pytest.approx(np.linalg.eigvalsh(hessian).min())
    assert np.abs(found.predict(np.full((1, 2), 100.0))) <= 1.0


@pytest.mark.parametrize("mixed", [True, False])
def test_the_way_over_a_gram_matrix_finds_the_relation_and_its_intercept(mixed: bool) -> None:
    noisy, rows = noisy_rows(mixed=mixed)
    gram = noisy.gram()
    truth = np.column_stack([np.ones(len(rows)), rows])
    truth = truth.T @ truth
    assert np.abs(gram.matrix - truth).max() < 5 * gram.sigma
    fit = regress(gram, "y", ("a", "b"))
    assert fit.intercept == pytest.approx(0.2, abs=0.08)
    assert fit.coefficients == pytest.approx([0.3, -0.4], abs=0.08)


def test_values_in_the_unit_interval_are_a_public_move_away() -> None:
    noisy, rows = noisy_rows(mixed=False, tau=0.0)
    unit = noisy.in_unit()
    assert unit.table == pytest.approx((rows + 1) / 2)
    kept = Mixed(
        features=(Feature(name="a", block="a", values="indicator"),),
        people=4,
        table=np.eye(4)[:, :1],
        ones=np.ones(4),
        noise=np.ones(1),
        mixed=False,
    )
    assert np.array_equal(kept.in_unit().table, kept.table)
    assert kept.in_unit().noise.tolist() == [1.0]


def test_a_label_among_the_features_is_refused() -> None:
    noisy, _ = noisy_rows(mixed=False)
    with pytest.raises(InputError, match="others than the label"):
        least_squares(noisy, "y", ("a", "y"))
    with pytest.raises(InputError, match="no feature 'z'"):
        least_squares(noisy, "z")


def test_mixed_rows_whose_signs_cancel_out_tell_no_means() -> None:
    noisy, _ = noisy_rows(mixed=True)
    with pytest.raises(InputError, match="use more mixes"):
        replace(noisy, ones=np.zeros(500)).gram()
