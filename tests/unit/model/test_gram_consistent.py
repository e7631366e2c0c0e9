"""Sums of levels of lists are made to add up, which takes noise away and nothing else."""

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from syndic.data import Boolean, Categorical, Instead, Integer, Real
from syndic.data.coding import Feature, coded_rows, coding_of, product_of
from syndic.data.schema import Column
from syndic.model.gram.consistent import consistent
from syndic.model.gram.fit import infer
from syndic.model.gram.matrix import GramMatrix, intercept, places_of, presence

BITS = 6
COLUMNS: dict[str, Column] = {
    "n": Integer(name="n", lower=-3, upper=3, missing=Instead(value=0)),
    "f": Real(name="f", lower=0.0, upper=1.0, bins=9),
    "t": Boolean(name="t", missing=Instead(value=False)),
    "c": Categorical(name="c", values=("x", "y", "z"), missing=Instead(value="x"), outside=Instead(value="x")),
    "p": Categorical(name="p", values=("a", "b"), missing=Instead(value="a"), outside=Instead(value="a")),
}
SETS = ["n c", "n c p", "f c", "t c p", "n c nc", "c p cp", "f c fc", "n t c p nc tp cp"]


def features_and_rows(names: str, count: int = 300) -> tuple[tuple[Feature, ...], NDArray[np.float64]]:
    """Return features and random rows for a text such as "n c nc": columns and products."""
    generator = np.random.default_rng(1)
    codes = {name: generator.integers(0, column.size, count) for name, column in COLUMNS.items()}
    blocks = []
    for word in names.split():
        parts = [coding_of(COLUMNS[letter], BITS) for letter in word]
        blocks.append(parts[0] if len(parts) == 1 else product_of(*parts))
    rows = coded_rows(blocks, codes) / 2.0**BITS  # type: ignore[arg-type]  # codes of any integer type do
    features = (intercept(), *(feature for block in blocks for feature in block.features))
    return features, np.column_stack([np.ones(count), rows])


def gram_of(features: tuple[Feature, ...], rows: NDArray[np.float64], noise: float = 0.0, seed: int = 0) -> GramMatrix:
    places = places_of(features)
    values = np.zeros(places.max() + 1)
    values[places[places >= 0]] = (rows.T @ rows)[places >= 0]
    drawn = np.random.default_rng(seed).standard_normal(len(values))
    return GramMatrix(features=features, rows=len(rows), values=values + noise * drawn, sigma=noise)


@pytest.mark.parametrize("names", SETS)
def test_sums_without_noise_are_left_as_they_are(names: str) -> None:
    gram = gram_of(*features_and_rows(names))
    assert np.allclose(consistent(gram).values, gram.values, atol=1e-6)


@pytest.mark.parametrize("names", SETS)
def test_what_must_hold_holds_and_noise_is_projected(names: str) -> None:
    features, rows = features_and_rows(names)
    exact, noisy = gram_of(features, rows), gram_of(features, rows, 5.0)
    found = consistent(noisy)
    equations = found.projection.equations.toarray()  # type: ignore[union-attr]
    assert np.allclose(equations @ found.values, equations @ exact.values, atol=1e-4)
    # the same by another way: the part of the noise along the equations, by singular vectors
    _, sizes, turned = np.linalg.svd(equations, full_matrices=False)
    basis = turned[sizes > 1e-8]
    noise = noisy.values - exact.values
    assert np.allclose(found.values - exact.values, noise - basis.T @ (basis @ noise), atol=1e-5)
    vector = np.random.default_rng(2).normal(size=len(features))
    plain, left = noisy.noise_map([0, 1], vector), found.noise_map([0, 1], vector)
    assert np.allclose(left, plain - (plain @ basis.T) @ basis, atol=1e-6)
    assert (found.noise_weights(vector) ** 2).sum() <= (noisy.noise_weights(vector) ** 2).sum()
    assert consistent(found) is found


def test_without_lists_nothing_is_done() -> None:
    gram = gram_of(*features_and_rows("n f t"), 3.0)
    assert consistent(gram) is gram


@pytest.mark.slow
def test_errors_of_levels_are_smaller_and_still_right() -> None:
    features, rows = features_and_rows("n c p", 6000)
    generator = np.random.default_rng(3)
    label = rows @ np.array([0.1, 0.3, 0.0, 0.2, -0.1, 0.0, 0.15]) + generator.normal(0, 0.05, len(rows))
    features, rows = (*features, Feature(name="y", block="y")), np.column_stack([rows, label])
    truth = infer(gram_of(features, rows), "y").estimates()
    errors, stated = [], []
    for seed in range(400):
        noisy = gram_of(features, rows, 15.0, seed)
        each = [infer(gram, "y") for gram in (noisy, consistent(noisy))]
        errors.append([found.estimates() - truth for found in each])
        stated.append([found.standard_errors("privacy") for found in each])
    spread, said = np.std(errors, axis=0), np.mean(stated, axis=0)
    assert np.allclose(spread, said, rtol=0.2)
    levels = [2, 3, 4]  # two of the three-level list, one of the other
    assert np.all(said[1][levels] < 0.75 * said[0][levels])


def test_levels_add_up_to_the_presence_of_people() -> None:
    features, rows = features_and_rows("n c")
    there = np.random.default_rng(5).random(len(rows)) < 0.7
    rows = np.where(there[:, None], rows, 0.0)
    home = presence("a")
    features = (home, *(msgspec.structs.replace(each, ones=home.name) for each in features[1:]))
    exact, noisy = gram_of(features, rows), gram_of(features, rows, 4.0)
    assert np.allclose(consistent(exact).values, exact.values, atol=1e-6)
    matrix = consistent(noisy).matrix
    assert matrix[2:, 0].sum() == pytest.approx(matrix[0, 0], abs=1e-4)
