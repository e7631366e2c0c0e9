"""Multiclass losses against finite differences; the few-round method against its sensitivity and the true minimiser."""

from math import sqrt

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from syndic.data.design import into_ball
from syndic.errors import InputError
from syndic.model.erm.loss import (
    SQUARED,
    Huber,
    JointObjective,
    Logistic,
    Loss,
    Objective,
    SmoothedHinge,
    Softmax,
    joint_curvature,
    joint_slope,
    one_against_others,
    shares,
)
from syndic.model.erm.second_order import CURVATURE_SHARE, STEPS, UNIT, Newton, follow
from syndic.model.erm.solve import minimise

Numbers = NDArray[np.float64]


def data(count: int = 400, classes: int = 3, features: int = 4, seed: int = 0) -> tuple[Numbers, Numbers]:
    generator = np.random.default_rng(seed)
    rows = into_ball(generator.normal(size=(count, features)), 1.0)
    centres = generator.normal(size=(classes, features))
    codes = np.argmax(4 * rows @ centres.T + generator.gumbel(size=(count, classes)), axis=1)
    return rows, one_against_others(codes.astype(np.float64), classes)


def test_softmax_slopes_are_finite_differences_and_its_curvature_is_above_the_true_one() -> None:
    generator = np.random.default_rng(1)
    predictions, step = generator.normal(0, 2, (50, 4)), 1e-6
    labels = one_against_others(generator.integers(4, size=50).astype(np.float64), 4)
    loss = Softmax()
    for axis in np.eye(4):
        rise = (loss.value(predictions + step * axis, labels) - loss.value(predictions - step * axis, labels)) / (
            2 * step
        )
        assert loss.slope(predictions, labels) @ axis == pytest.approx(rise, abs=1e-8)
    for share, above in zip(shares(predictions), loss.curvature(predictions, labels), strict=True):
        exact = np.diag(share) - np.outer(share, share)
        assert np.linalg.eigvalsh(np.diag(above) - exact).min() > -1e-12
        assert np.linalg.eigvalsh(exact).max() <= loss.smoothness


def test_softmax_of_two_classes_is_logistic() -> None:
    z = np.linspace(-40, 40, 81)
    both, labels = np.column_stack([-z / 2, z / 2]), np.tile([-1.0, 1.0], (81, 1))
    assert Softmax().value(both, labels) == pytest.approx(Logistic().value(z, np.ones(81)), abs=1e-12)
    assert Softmax().slope(both, labels)[:, 1] == pytest.approx(Logistic().slope(z, np.ones(81)), abs=1e-12)


@pytest.mark.parametrize("models", [2, 3, 5])
@pytest.mark.parametrize("loss", [Softmax(), Logistic(), SmoothedHinge(0.4)], ids=repr)
def test_joint_bounds_are_not_passed_and_not_idle(loss: Loss, models: int) -> None:
    generator = np.random.default_rng(2)
    spread = generator.choice([0.0, 0.5, 5.0, 100.0], (20_000, 1))
    predictions = generator.normal(size=(20_000, models)) * spread
    # two classes at one half each, the others far behind
    predictions = np.concatenate([predictions, np.where(np.arange(models) < 2, 1.0, -100.0)[None]])
    labels = one_against_others(generator.integers(models, size=20_001).astype(np.float64), max(models, 3))[:, :models]
    for found, bound in (
        (loss.slope(predictions, labels), joint_slope(loss, models)),
        (loss.curvature(predictions, labels), joint_curvature(loss, models)),
    ):
        largest = float(np.linalg.norm(found, axis=1).max())
        assert 0.7 * bound < largest <= bound * (1 + 1e-12)


@pytest.mark.parametrize("loss", [Softmax(), Logistic()], ids=repr)
def test_joint_gradient_is_the_finite_difference_and_is_clipped_by_record(loss: Loss) -> None:
    rows, labels = data()
    objective = JointObjective(loss, 0.02, clip=10.0)
    weights, step = np.random.default_rng(3).normal(size=(3, 4)), 1e-6
    gradient = objective.gradient(weights, rows, labels)
    for place in np.ndindex(3, 4):
        moved = np.zeros((3, 4))
        moved[place] = step
        rise = objective.value(weights + moved, rows, labels) - objective.value(weights - moved, rows, labels)
        assert gradient[place] == pytest.approx(rise / (2 * step), abs=1e-7)
    norms = np.linalg.norm(rows, axis=1)
    tight = JointObjective(loss, 0.02, clip=0.3).slopes(rows @ weights.T, labels, norms)
    lengths = np.linalg.norm(tight, axis=1) * norms
    assert lengths.max() <= 0.3
    assert lengths.max() > 0.299


def test_one_model_is_the_objective_of_two_classes() -> None:
    rows, labels = data(classes=2)
    weights = np.array([[1.0, -2.0, 0.5, 3.0]])
    single, joint = Objective(Logistic(), 0.1), JointObjective(Logistic(), 0.1)
    assert joint.value(weights, rows, labels) == pytest.approx(single.value(weights[0], rows, labels[:, 0]))
    assert joint.gradient(weights, rows, labels)[0] == pytest.approx(single.gradient(weights[0], rows, labels[:, 0]))


def newton(
    loss: Loss, models: int, people: int, neighbours: str = "replace", rounds: int = 16, rows: int = 1
) -> Newton:
    return Newton(
        objective=JointObjective(loss, 0.01, clip=0.9),
        shape=(models, 4),
        people=people,
        neighbours="replace" if neighbours == "replace" else "add_remove",
        rounds=rounds,
        rows=rows,
    )


@pytest.mark.parametrize("rounds", [1, 2, 8, 16, 40])
def test_shares_are_the_whole_budget(rounds: int) -> None:
    scheme = newton(Softmax(), 3, 100, rounds=rounds)
    assert sum(scheme.share(number) for number in range(1, rounds + 1)) == 1
    assert min(scheme.share(number) for number in range(1, rounds + 1)) > 0
    assert len(scheme.matrices) == {1: 1, 2: 1, 8: 3, 16: 3, 40: 3}[rounds]
    for number in scheme.matrices:
        # what the matrix part of one noise costs is the share planned for it
        part = (scheme._matrix_reach(number, scheme.weight(number)) / float(scheme.reach(number))) ** 2
        assert part * float(scheme.share(number)) == pytest.approx(float(CURVATURE_SHARE) / len(scheme.matrices))


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize(
    ("loss", "models"), [(Logistic(), 1), (Softmax(), 3), (Logistic(), 3), (SQUARED, 1), (Huber(0.5), 1)], ids=repr
)
def test_one_person_moves_no_sum_further_than_its_reach(loss: Loss, models: int, neighbours: str) -> None:
    generator = np.random.default_rng(4)
    rows, labels = data(30, classes=models if models > 1 else 2)
    for rows_each in (1, 3):
        scheme = newton(loss, models, 30, neighbours, rows=rows_each)
        worst = 0.0
        for _ in range(150):
            weights = generator.normal(0, generator.choice([0.1, 30.0]), (models, 4))
            mine = slice(0, rows_each)
            others = rows.copy(), labels.copy()
            # orthogonal and opposite rows are the worst that there are
            others[0][mine] = np.eye(4)[generator.integers(4)] * generator.choice([-1.0, 1.0])
            others[1][mine] = -labels[mine]
            first = rows.copy()
            first[mine] = np.eye(4)[generator.integers(4)]
            for number in (1, 3, 16):
                before = scheme.sums(number, weights, first, labels)
                if neighbours == "replace":
                    after = scheme.sums(number, weights, *others)
                else:
                    after = scheme.sums(number, weights, first[rows_each:], labels[rows_each:])
                moved = float(np.linalg.norm((after - before).astype(np.float64)))
                assert moved <= float(scheme.reach(number))
                assert np.abs(before).max() <= scheme.largest(number, 30)
                worst = max(worst, moved / float(scheme.reach(number)))
        assert worst > 0.6  # the bound is not idle


def test_sums_do_not_depend_on_the_order_and_are_the_exact_gradient_and_curvature() -> None:
    rows, labels = data(500)
    scheme = newton(Softmax(), 3, 500)
    weights = np.random.default_rng(5).normal(size=(3, 4))
    order = np.random.default_rng(6).permutation(500)
    sums = scheme.sums(3, weights, rows, labels)
    assert np.array_equal(sums, scheme.sums(3, weights, rows[order], labels[order]))
    joint = scheme.objective
    exact = joint.gradient(weights, rows, labels) - joint.regularisation * weights
    assert sums[:12].reshape(3, 4) * UNIT / 500 == pytest.approx(exact, abs=4 / STEPS)
    curvature = Softmax().curvature(rows @ weights.T, labels)
    state = scheme.update(scheme.start(), 3, np.asarray(sums * UNIT, dtype=np.float64), 500, 0.0)
    found = np.einsum("kij,kj,klj->kil", state.axes, state.roots, state.axes)
    for model in range(3):
        hessian = (rows.T * curvature[:, model]) @ rows / 500 + joint.regularisation * np.eye(4)
        assert found[model] == pytest.approx(hessian, abs=1e-3)


def test_sums_are_exact_at_large_clips_too() -> None:
    generator = np.random.default_rng(0)
    rows = generator.random((40_000, 4)) / 2
    labels = generator.uniform(-1, 1, (40_000, 1))
    scheme = Newton(objective=JointObjective(SQUARED, 0.01, clip=1e3), shape=(1, 4), people=40_000)
    weights = np.full((1, 4), 2.0**13)
    # few rows at a time are far from what double precision has room for
    parts = [
        scheme.sums(1, weights, rows[start : start + 20], labels[start : start + 20]) for start in range(0, 40_000, 20)
    ]
    assert np.array_equal(scheme.sums(1, weights, rows, labels), sum(parts))


def steps(scheme: Newton, number: int, weights: Numbers, rows: Numbers, labels: Numbers) -> Numbers:
    return np.asarray(scheme.sums(number, weights, rows, labels) * UNIT, dtype=np.float64)


def minimiser(objective: JointObjective, rows: Numbers, labels: Numbers) -> Numbers:
    shape = (labels.shape[1], rows.shape[1])

    def value(flat: Numbers) -> float:
        return objective.value(flat.reshape(shape), rows, labels)

    found = minimize(value, np.zeros(shape).reshape(-1), method="BFGS", options={"gtol": 1e-9, "maxiter": 2000})
    return np.asarray(found.x).reshape(shape)


@pytest.mark.parametrize(
    ("loss", "classes", "clip", "gap"),
    [
        (Logistic(), 2, 1.0, 1e-4),
        (Softmax(), 3, 2.0, 1e-4),
        (Logistic(), 3, 2.0, 1e-4),
        (SmoothedHinge(0.5), 2, 1.0, 1e-3),  # its curvature is only bounded, so steps are shorter
        (SQUARED, 2, 9.0, 1e-4),
    ],
    ids=repr,
)
def test_without_noise_few_rounds_reach_the_minimum(loss: Loss, classes: int, clip: float, gap: float) -> None:
    rows, labels = data(2000, classes=classes)
    objective = JointObjective(loss, 0.003, clip=clip)
    scheme = Newton(objective=objective, shape=(labels.shape[1], 4), people=2000, rounds=40)
    path = follow(scheme, lambda number, weights: (steps(scheme, number, weights, rows, labels), 0.0))
    least = objective.value(minimiser(objective, rows, labels), rows, labels)
    gaps = [objective.value(weights, rows, labels) - least for weights in path]
    assert gaps[0] > 0.05
    assert abs(gaps[-1]) < gap
    assert len(path) == 41


def test_a_lost_round_leaves_the_weights_and_the_next_goes_on() -> None:
    rows, labels = data(1000, classes=2)
    scheme = newton(Logistic(), 1, 1000)

    def ask(number: int, weights: Numbers) -> tuple[Numbers, float] | None:
        return None if number in (1, 5) else (steps(scheme, number, weights, rows, labels), 0.0)

    path = follow(scheme, ask)
    assert np.array_equal(path[0], path[1])
    assert np.array_equal(path[4], path[5])
    exact = minimise(Objective(Logistic(), 0.01), rows, labels[:, 0]).weights
    assert float(np.linalg.norm(path[-1][0] - exact)) < 0.05 * float(np.linalg.norm(exact))


@pytest.mark.slow
@pytest.mark.statistical
def test_sixteen_noisy_rounds_are_as_good_as_many_of_gradient_descent() -> None:
    generator = np.random.default_rng(7)
    people, features, mu, penalty = 20_000, 20, 0.25, 0.001
    scales = np.geomspace(1, 0.02, features)
    rows = into_ball(generator.normal(size=(people, features)) * scales, 1.0)
    labels = np.where(rows @ generator.normal(0, 4, features) + generator.logistic(size=people) > 0, 1.0, -1.0)[:, None]
    objective = JointObjective(Logistic(), penalty)
    least = objective.value(minimise(Objective(Logistic(), penalty), rows, labels[:, 0]).weights[None], rows, labels)
    scheme = Newton(objective=objective, shape=(1, features), people=people)

    def ask(number: int, weights: Numbers) -> tuple[Numbers, float]:
        deviation = float(scheme.reach(number)) * UNIT / (mu * sqrt(scheme.share(number)))
        exact = steps(scheme, number, weights, rows, labels)
        return exact + generator.normal(0, deviation, len(exact)), deviation

    few = [objective.value(follow(scheme, ask)[-1], rows, labels) - least for _ in range(4)]
    many = []
    for _ in range(4):
        weights = np.zeros((1, features))
        for _ in range(400):
            noise = generator.normal(0, 2 / people * sqrt(400) / mu, weights.shape)
            weights = weights - (objective.gradient(weights, rows, labels) + noise)
        many.append(objective.value(weights, rows, labels) - least)
    assert np.mean(few) < np.mean(many)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="at least 1"):
        newton(Logistic(), 1, 0)
    with pytest.raises(InputError, match="clip"):
        JointObjective(Logistic(), 0.1, clip=0.0)
