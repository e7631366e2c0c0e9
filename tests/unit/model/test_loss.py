"""Losses against finite differences and brute force; the solver against scikit-learn and its own certificate."""

import warnings

import numpy as np
import pytest
from numpy.typing import NDArray

from syndic.data.design import into_ball
from syndic.errors import InputError
from syndic.model.erm.loss import SQUARED, Huber, Logistic, Loss, Objective, SmoothedHinge
from syndic.model.erm.solve import certified_norm, minimise

Numbers = NDArray[np.float64]
LOSSES: list[Loss] = [Logistic(), SQUARED, Huber(0.7), SmoothedHinge(0.4)]
BOUNDED = [loss for loss in LOSSES if np.isfinite(loss.lipschitz)]


def data(count: int = 300, seed: int = 0, dimension: int = 5) -> tuple[Numbers, Numbers]:
    generator = np.random.default_rng(seed)
    rows = into_ball(generator.normal(size=(count, dimension)), 1.0)
    labels = np.where(rows @ np.arange(dimension) + generator.normal(0, 0.5, count) > 0, 1.0, -1.0)
    return rows, labels


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_slope_and_curvature_are_finite_differences_of_the_value(loss: Loss) -> None:
    # not on a corner of the second derivative
    z = np.linspace(-5.03, 5.01, 403)
    for label in (-1.0, 1.0):
        y, step = np.full_like(z, label), 1e-5
        slope = (loss.value(z + step, y) - loss.value(z - step, y)) / (2 * step)
        assert loss.slope(z, y) == pytest.approx(slope, abs=1e-5)
        smooth = np.abs(loss.curvature(z + 2 * step, y) - loss.curvature(z - 2 * step, y)) < 1e-3
        curvature = (loss.slope(z + step, y) - loss.slope(z - step, y)) / (2 * step)
        assert smooth.mean() > 0.95
        assert loss.curvature(z, y)[smooth] == pytest.approx(curvature[smooth], abs=1e-4)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_bounds_are_reached_and_not_passed(loss: Loss) -> None:
    z = np.linspace(-60, 60, 24_001)
    y = np.ones_like(z)
    assert loss.curvature(z, y).max() == pytest.approx(loss.smoothness, rel=1e-6)
    largest = np.abs(loss.slope(z, y)).max()
    assert largest == pytest.approx(loss.lipschitz, rel=1e-6) or np.isinf(loss.lipschitz)
    assert np.all(np.diff(loss.slope(z, y)) >= 0)  # convex


def test_logistic_is_safe_far_out() -> None:
    z, y = np.array([-1e6, -800.0, 800.0, 1e6]), np.ones(4)
    assert Logistic().value(z, y) == pytest.approx([1e6, 800.0, 0.0, 0.0])
    assert Logistic().slope(z, y) == pytest.approx([-1.0, -1.0, 0.0, 0.0])


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_gradient_is_the_finite_difference_of_the_objective(loss: Loss) -> None:
    rows, labels = data()
    objective = Objective(loss, 0.03, clip=100.0)
    weights = np.random.default_rng(1).normal(size=5)
    step = 1e-6
    different = [
        (objective.value(weights + step * axis, rows, labels) - objective.value(weights - step * axis, rows, labels))
        / (2 * step)
        for axis in np.eye(5)
    ]
    assert objective.gradient(weights, rows, labels) == pytest.approx(np.array(different), abs=1e-7)


@pytest.mark.parametrize("clip", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_replacing_a_record_moves_the_mean_gradient_by_twice_the_clip_at_most(loss: Loss, clip: float) -> None:
    rows, labels = data(20)
    generator = np.random.default_rng(2)
    objective = Objective(loss, 0.03, clip=clip)
    moved = 0.0
    for _ in range(300):
        weights = generator.normal(0, 10, 5)
        other, answers = rows.copy(), labels.copy()
        other[0] = into_ball(generator.normal(0, generator.choice([0.1, 10.0]), (1, 5)), 1.0)[0]
        answers[0] = generator.choice([-1.0, 1.0])
        each = objective.record_gradients(weights, other, answers)
        assert np.sqrt((each**2).sum(axis=1)).max() <= clip * (1 + 1e-12)
        change = objective.gradient(weights, other, answers) - objective.gradient(weights, rows, labels)
        moved = max(moved, float(np.sqrt((change**2).sum())))
    assert moved <= 2 * clip / 20 * (1 + 1e-9)
    assert moved > 0.5 * clip / 20  # the bound is not idle


def test_squared_loss_without_clipping_has_no_bound() -> None:
    rows, labels = data(20)
    weights = np.full(5, 1e6)
    unclipped = Objective(SQUARED, 0.03, clip=1e12).record_gradients(weights, rows, labels)
    assert np.linalg.norm(unclipped, axis=1).max() > 1e5


def test_clipped_squared_loss_is_huber_on_rows_of_norm_one() -> None:
    rows, labels = data(50)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    weights = np.array([3.0, -2.0, 1.0, 0.5, 4.0])
    clipped = Objective(SQUARED, 0.1, clip=0.7).gradient(weights, rows, labels)
    huber = Objective(Huber(0.7), 0.1, clip=0.7).gradient(weights, rows, labels)
    assert clipped == pytest.approx(huber, abs=1e-12)


def test_logistic_solution_is_scikit_learns() -> None:
    linear = pytest.importorskip(
        "sklearn.linear_model", reason="scikit-learn is not installed: pip install 'syndic[evaluate]'"
    )
    rows, labels = data()
    found = minimise(Objective(Logistic(), 0.01), rows, labels, tolerance=1e-11)
    # scikit-learn minimises C sum(loss) + |w|^2 / 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        other = linear.LogisticRegression(C=1 / (0.01 * len(rows)), fit_intercept=False, tol=1e-12, max_iter=10_000)
    other.fit(rows, labels)
    distance = float(np.linalg.norm(found.weights - other.coef_[0]))
    assert distance < 1e-4
    assert found.gradient_norm <= 1e-11


def test_ridge_distance_bound_holds_and_is_close() -> None:
    rows, labels = data()
    objective = Objective(Huber(1e6), 0.01, clip=1e6)  # quadratic everywhere here, so the minimiser is known
    exact = np.linalg.solve(rows.T @ rows / len(rows) + 0.01 * np.eye(5), rows.T @ labels / len(rows))
    for tolerance in (1e-2, 1e-4, 1e-9):
        found = minimise(objective, rows, labels, tolerance=tolerance)
        assert found.gradient_norm <= tolerance
        assert float(np.linalg.norm(found.weights - exact)) <= found.distance
        assert found.distance <= tolerance / 0.01


@pytest.mark.parametrize("loss", BOUNDED, ids=repr)
def test_replacing_a_record_moves_the_minimiser_within_its_sensitivity(loss: Loss) -> None:
    rows, labels = data(30)
    objective = Objective(loss, 0.05)
    before = minimise(objective, rows, labels)
    worst = 0.0
    for place in range(10):
        other, answers = rows.copy(), labels.copy()
        other[place], answers[place] = -rows[place] / np.linalg.norm(rows[place]), -labels[place]
        after = minimise(objective, other, answers)
        worst = max(worst, float(np.linalg.norm(after.weights - before.weights)))
    assert 0 < worst <= 2 / (30 * 0.05)


def test_what_cannot_be_solved_is_refused() -> None:
    rows, labels = data(10)
    with pytest.raises(InputError, match="Huber"):
        minimise(Objective(SQUARED, 0.1), rows, labels)
    with pytest.raises(InputError, match="abstain"):
        minimise(Objective(Logistic(), 0.1), rows[:0], labels[:0])
    for tolerance in (1e-18, np.nan):
        with pytest.raises(InputError, match="larger tolerance"):
            minimise(Objective(Logistic(), 0.1), rows, labels, tolerance=tolerance)
    with pytest.raises(InputError, match="regularisation"):
        Objective(Logistic(), 0.0)


def test_certificate_is_above_the_norm_in_extended_precision_and_hardly_so() -> None:
    rows, labels = data(2000)
    objective = Objective(Logistic(), 0.01)
    for weights in (np.zeros(5), np.array([3.0, -1.0, 20.0, 0.1, 5.0]), minimise(objective, rows, labels).weights):
        x, y, w = (part.astype(np.longdouble) for part in (rows, labels, weights))
        slopes = -y / (1 + np.exp(y * (x @ w)))
        exact = x.T @ slopes / 2000 + np.longdouble(0.01) * w
        length = float(np.sqrt((exact**2).sum()))
        assert length <= certified_norm(objective, weights, rows, labels) <= length + 1e-10
