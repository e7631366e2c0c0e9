"""Models from a Gram matrix, held against the rows they were made of."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from syndic.data.coding import Feature
from syndic.errors import InputError
from syndic.model.gram.fit import default_features, infer, regress
from syndic.model.gram.matrix import GramMatrix, intercept, places_of
from syndic.model.gram.moments import moments_of

Numbers = NDArray[np.float64]
NAMES = ["a", "b", "c", "y"]


def rows(count: int = 400, seed: int = 0) -> Numbers:
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1, 1, (count, 3))
    x[:, 2] = 0.7 * x[:, 0] + 0.3 * x[:, 2]
    y = 0.1 + x @ [0.3, -0.2, 0.1] + generator.normal(0, 0.1, count)
    return np.column_stack([x, y])


def least_squares(matrix: Numbers) -> Numbers:
    design = np.column_stack([np.ones(len(matrix)), matrix[:, :-1]])
    found: Numbers = np.linalg.lstsq(design, matrix[:, -1], rcond=None)[0].astype(np.float64)
    return found


def test_without_noise_every_way_is_least_squares() -> None:
    matrix = rows()
    wanted = least_squares(matrix)
    gram = GramMatrix.of(matrix, NAMES)
    for ridge in ("adaptive", "adassp", 0.0):
        fit = regress(gram, "y", ridge=ridge)
        assert np.allclose([fit.intercept, *fit.coefficients], wanted)
        residual = matrix[:, -1] - fit.predict(matrix[:, :-1])
        assert fit.r_squared == pytest.approx(1 - residual.var() / matrix[:, -1].var())
        assert fit.residual_variance == pytest.approx(residual.var())
    inference = infer(gram, "y")
    assert np.allclose(inference.estimates(), wanted)


def test_without_noise_standard_errors_are_the_usual_ones() -> None:
    matrix = rows()
    design = np.column_stack([np.ones(len(matrix)), matrix[:, :-1]])
    residual = matrix[:, -1] - design @ least_squares(matrix)
    variance = residual @ residual / (len(matrix) - 4)
    wanted = np.sqrt(variance * np.diag(np.linalg.inv(design.T @ design)))
    inference = infer(GramMatrix.of(matrix, NAMES), "y")
    assert np.allclose(inference.standard_errors(), wanted)
    assert np.allclose(inference.standard_errors("privacy"), 0)
    reach = inference.intervals(0.9)[:, 1] - inference.estimates()
    assert np.allclose(reach / wanted, 1.6487, atol=1e-3)  # Student's t, 396 degrees
    assert inference.reliable


def test_a_ridge_is_added_to_the_centred_squares() -> None:
    matrix = rows()
    centred = matrix - matrix.mean(axis=0)
    square, cross = centred[:, :-1].T @ centred[:, :-1], centred[:, :-1].T @ centred[:, -1]
    wanted = np.linalg.solve(square + 7.5 * np.eye(3), cross)
    fit = regress(GramMatrix.of(matrix, NAMES), "y", ridge=7.5)
    assert np.allclose(fit.coefficients, wanted)
    assert fit.intercept == pytest.approx(matrix[:, -1].mean() - matrix[:, :-1].mean(axis=0) @ wanted)


def test_any_label_and_any_features() -> None:
    matrix = rows()
    fit = regress(GramMatrix.of(matrix, NAMES), "b", ["y", "a"])
    assert np.allclose([fit.intercept, *fit.coefficients], least_squares(matrix[:, [3, 0, 1]]))


def test_coefficients_in_the_columns_own_units() -> None:
    matrix = rows()
    units = {"a": (50.0, 40.0), "b": (-3.0, 0.5), "y": (1000.0, 900.0)}
    gram = GramMatrix.of(matrix, NAMES, sigma=0.5, generator=np.random.default_rng(1))
    features = tuple(
        Feature(name=each.name, block=each.block, values=each.values, middle=middle, half=half)
        for each in gram.features
        for middle, half in [units.get(each.name, (0.0, 1.0))]
    )
    known = replace(gram, features=features)
    middles, halves = np.array([units.get(name, (0.0, 1.0)) for name in NAMES]).T
    original = matrix * halves + middles
    for fit in (regress(known, "y"), infer(known, "y").fit):
        start, slopes = fit.original()
        scaled = fit.intercept + matrix[:, :-1] @ fit.coefficients
        assert np.allclose(start + original[:, :-1] @ slopes, 1000 + 900 * scaled)
    # the slopes' errors change as the slopes do, and the intercept's as a combination of all
    plain, changed = infer(gram, "y"), infer(known, "y")
    assert np.allclose(changed.standard_errors()[1:], plain.standard_errors()[1:] * 900 / halves[:-1])
    row = np.concatenate([[1.0], -middles[:-1] / halves[:-1]])
    total = plain.sampling + plain.privacy
    assert changed.standard_errors()[0] == pytest.approx(900 * np.sqrt(row @ total @ row))


def test_a_missing_number_adds_nothing_but_the_coefficient_of_its_level() -> None:
    matrix, absent = rows(), np.random.default_rng(9).random(len(rows())) < 0.3
    matrix[absent, 0] = 0.0
    matrix = np.insert(matrix, 1, absent, axis=1)
    flag = Feature(name="a=(missing)", block="a", values="indicator")
    others = (Feature(name=name, block=name) for name in NAMES[1:])
    features = (intercept(), Feature(name="a", block="a", middle=50.0, half=2.0), flag, *others)
    places, products = places_of(features), np.insert(matrix, 0, 1.0, axis=1).T @ np.insert(matrix, 0, 1.0, axis=1)
    sums = np.zeros(int(places.max()) + 1)
    sums[places[places >= 0]] = products[places >= 0]
    known = GramMatrix(features=features, rows=len(matrix), values=sums, sigma=0.1)
    own = matrix[:, :-1].copy()
    own[:, 0] = np.where(absent, 0.0, 50.0 + 2.0 * own[:, 0])
    for fit in (regress(known, "y"), infer(known, "y").fit):
        start, slopes = fit.original()
        assert np.allclose(start + own @ slopes, fit.intercept + matrix[:, :-1] @ fit.coefficients)


@pytest.mark.slow
def test_noise_is_in_the_standard_errors_as_simulated() -> None:
    matrix, generator = rows(3000), np.random.default_rng(5)
    exact = GramMatrix.of(matrix, NAMES)
    found = np.array([infer(exact.renoised(2.0, generator), "y").estimates() for _ in range(3000)])
    predicted = infer(exact.renoised(2.0, generator), "y").standard_errors("privacy")
    # of 3000 draws a standard deviation is known to 1.3 %, and the prediction itself is from noisy sums
    assert np.allclose(found.std(axis=0), predicted, rtol=0.15)
    assert np.abs(found.mean(axis=0) - least_squares(matrix)).max() < predicted.max()


@pytest.mark.parametrize("sigma", [100.0, 300.0])
def test_shrinkage_beats_least_squares_where_noise_is_large(sigma: float) -> None:
    generator = np.random.default_rng(6)
    x = generator.uniform(-1, 1, (2000, 12))
    truth = generator.uniform(-0.1, 0.1, 12)
    exact = GramMatrix.of(np.column_stack([x, x @ truth]), [*map(str, range(12)), "y"])
    errors: dict[str | float, float] = dict.fromkeys(("adaptive", "adassp", 0.0), 0.0)
    for _ in range(100):
        noisy = exact.renoised(sigma, generator)
        for ridge in errors:
            errors[ridge] += float(np.linalg.norm(x @ (regress(noisy, "y", ridge=ridge).coefficients - truth))) / 100
    assert errors["adaptive"] < errors["adassp"] < errors[0.0]
    assert errors["adaptive"] < 2 * np.linalg.norm(x @ truth)


def test_hopeless_noise_gives_a_model_near_nothing_and_says_so() -> None:
    gram = GramMatrix.of(rows(), NAMES, sigma=1e5, generator=np.random.default_rng(2))
    assert np.abs(regress(gram, "y").coefficients).max() < 5
    assert not infer(gram, "y").reliable
    assert np.abs(regress(gram, "y").predict(np.ones((1, 3)))).max() <= 1
    assert np.all(np.linalg.eigvalsh(moments_of(gram, NAMES).repaired) > -1e-6)


def test_r_squared_is_free_of_what_was_fitted_to_the_noise() -> None:
    matrix, generator = rows(4000), np.random.default_rng(7)
    exact = GramMatrix.of(matrix, NAMES)
    fits = [regress(exact.renoised(40.0, generator), "y") for _ in range(600)]
    centred = matrix - matrix.mean(axis=0)
    total = (centred[:, -1] ** 2).sum()
    true = [1 - ((centred[:, -1] - centred[:, :-1] @ fit.coefficients) ** 2).sum() / total for fit in fits]
    stated = [fit.r_squared for fit in fits]
    assert np.mean(stated) == pytest.approx(np.mean(true), abs=0.02)
    assert np.std(np.array(stated) - true) == pytest.approx(np.mean([fit.r_squared_error for fit in fits]), rel=0.25)


def mixed() -> tuple[GramMatrix, Numbers]:
    """Return a matrix with a list of three values, a number and a product of both."""
    generator = np.random.default_rng(8)
    levels, number = generator.integers(0, 3, 900), generator.uniform(-1, 1, 900)
    hot = np.eye(3)[levels]
    label = np.clip(0.2 * number + 0.3 * hot[:, 1] - 0.1 * hot[:, 2] * number + generator.normal(0, 0.05, 900), -1, 1)
    names = [f"k={level}" for level in "xyz"]
    features = (
        intercept(),
        *(Feature(name=name, block="k", values="indicator") for name in names),
        Feature(name="v", block="v"),
        *(Feature(name=f"v*{name}", block="v*k", parts=("v", name)) for name in names),
        Feature(name="y", block="y"),
    )
    matrix = np.column_stack([np.ones(900), hot, number, number[:, None] * hot, label])
    places = places_of(features)
    values = np.zeros(places.max() + 1)
    values[places[places >= 0]] = (matrix.T @ matrix)[places >= 0]
    return GramMatrix(features=features, rows=900, values=values, sigma=0.0), matrix


def test_one_level_of_a_list_is_left_out() -> None:
    gram, matrix = mixed()
    assert default_features(gram) == ("k=y", "k=z", "v", "v*k=y", "v*k=z", "y")
    fit = regress(gram, "y")
    design = matrix[:, [0, 2, 3, 4, 6, 7]]
    wanted = np.linalg.lstsq(design, matrix[:, -1], rcond=None)[0]
    assert np.allclose([fit.intercept, *fit.coefficients], wanted)
    # a level as label is not predicted from its own column or products of it
    assert regress(gram, "k=x").features == ("v", "y")


def test_correlations_and_components() -> None:
    matrix = rows()
    moments = moments_of(GramMatrix.of(matrix, NAMES), NAMES)
    assert np.allclose(moments.correlation(), np.corrcoef(matrix.T))
    assert np.allclose(moments.means, matrix.mean(axis=0))
    inverse = np.linalg.inv(np.cov(matrix.T))
    partial = -inverse / np.sqrt(np.outer(np.diag(inverse), np.diag(inverse)))
    off = ~np.eye(4, dtype=bool)
    assert np.allclose(moments.partial_correlation()[off], partial[off])
    variances, directions = moments.principal_components(2)
    _, singular, turned = np.linalg.svd(matrix - matrix.mean(axis=0), full_matrices=False)
    assert np.allclose(variances, singular[:2] ** 2 / len(matrix))
    assert np.allclose(np.abs(np.sum(directions.T * turned[:2], axis=1)), 1)
    assert moments.principal_components()[0].shape == (4,)


def test_a_fit_gives_up_where_noise_explains_the_sums() -> None:
    generator = np.random.default_rng(6)
    losses = []
    for _ in range(30):
        values = generator.uniform(-1, 1, (2000, 8))
        names = [*"abcdefg", "y"]
        fit = regress(GramMatrix.of(values, names, sigma=150.0, generator=generator), "y")
        losses.append(float(np.mean((values[:, :7] @ fit.coefficients) ** 2) / values[:, 7].var()))
    # the filter alone loses more than 0.02 in half of them
    assert np.median(losses) < 0.01
    assert np.mean(losses) < 0.02


def test_noise_of_means_far_from_zero_is_not_taken_for_a_relation() -> None:
    """Centring puts the noise of the label's mean on every sum, in the direction of the means."""
    generator = np.random.default_rng(8)
    values = generator.uniform(-0.1, 0.1, (2000, 21))
    values[:, :20] += generator.choice([-0.8, 0.8], 20)
    names = [*(f"x{place}" for place in range(20)), "y"]
    grams = [GramMatrix.of(values, names, sigma=200.0, generator=generator) for _ in range(60)]
    learned = [float(np.abs(regress(gram, "y").coefficients).max()) for gram in grams]
    # no coefficient is true; if noise is taken to be equal in all directions, 18 of 60 fits have one above 0.1
    assert sum(size > 0.1 for size in learned) <= 2


def test_columns_that_are_not_correlated_are_fitted_as_such() -> None:
    generator = np.random.default_rng(7)
    left: dict[str, list[float]] = {"adaptive": [], "adassp": []}
    for _ in range(10):
        values = generator.uniform(-1, 1, (2000, 21))
        values[:, 20] = values[:, :3].sum(axis=1) / 4 + 0.1 * values[:, 20]
        names = [*(f"x{place}" for place in range(20)), "y"]
        gram = GramMatrix.of(values, names, sigma=30.0, generator=generator)
        for ridge, losses in left.items():
            found = regress(gram, "y", ridge=ridge).coefficients
            wanted = np.r_[np.full(3, 0.25), np.zeros(17)]
            losses.append(float(((found - wanted) ** 2).sum() / (wanted**2).sum()))
    # without shrinkage the noise alone is 20 (30 / 667)^2 / (3 / 16) = 0.22
    assert np.mean(left["adaptive"]) < 0.22
    assert np.mean(left["adaptive"]) < np.mean(left["adassp"])


def test_noise_leaves_correlations_that_could_be() -> None:
    moments = moments_of(GramMatrix.of(rows(50), NAMES, sigma=30.0, generator=np.random.default_rng(4)), NAMES)
    assert np.linalg.eigvalsh(moments.centred)[0] < 0
    for found in (moments.correlation(), moments.partial_correlation()):
        assert np.abs(found).max() <= 1


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda gram: regress(gram, "q"), "no feature 'q'"),
        (lambda gram: regress(gram, "y", ["y"]), "other columns than the label"),
        (lambda gram: regress(gram, "y", ["(intercept)"]), "not the intercept"),
        (lambda gram: regress(gram, "y", ridge="lasso"), "ridge"),
        (lambda gram: regress(gram, "y", ridge=-1.0), "ridge"),
        (lambda gram: infer(gram, "y").intervals(1.0), "level"),
        (lambda gram: infer(gram, "y").standard_errors("other"), "part"),
        (lambda gram: regress(gram, "y", ridge=float("nan")), "ridge"),
        (lambda gram: regress(gram, "y", []), "at least one"),
        (lambda gram: infer(gram, "y", []), "at least one"),
        (lambda gram: regress(gram, "y", [NAMES[0], NAMES[0]]), "none twice"),
        (lambda _: regress(GramMatrix.of(rows(0), NAMES), "y"), "no people"),
        (lambda _: infer(GramMatrix.of(rows(4), NAMES), "y"), "cannot be fitted"),
        (lambda gram: moments_of(gram, ["(intercept)"]), "no moments"),
    ],
)
def test_what_cannot_be_is_refused(call: object, told: str) -> None:
    with pytest.raises(InputError, match=told):
        call(GramMatrix.of(rows(), NAMES))  # type: ignore[operator]


def test_a_mean_that_noise_hides_stays_near_an_earlier_estimate_in_predictions_only() -> None:
    matrix = rows(400)
    gram = GramMatrix.of(matrix, NAMES, sigma=200.0, generator=np.random.default_rng(4))
    (*features, label) = gram.features
    known = replace(gram, features=(*features, replace_known(label, 0.1)))
    plain, shrunk = (moments_of(each, NAMES).means[-1] for each in (gram, known))
    assert shrunk == pytest.approx(plain * 0.01 / (0.01 + 0.25))
    assert abs(regress(known, "y").intercept) < 0.2 * abs(regress(gram, "y").intercept)
    # intervals are for least squares, without any earlier estimate
    assert np.allclose(infer(known, "y").estimates(), infer(gram, "y").estimates())
    assert (
        moments_of(replace(known, sigma=0.0), NAMES).means[-1] == moments_of(replace(gram, sigma=0.0), NAMES).means[-1]
    )


def replace_known(feature: Feature, known: float) -> Feature:
    return msgspec.structs.replace(feature, known=known)
