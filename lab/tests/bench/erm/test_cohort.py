"""Parties learning at once, against one party after the other."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array

from syndic.data.design import into_ball
from syndic.errors import InputError
from syndic.model.erm.loss import SQUARED, Huber, Logistic, Loss, Objective
from syndic.model.erm.solve import minimise
from syndic_lab.bench.erm.cohort import Cohort
from syndic_lab.bench.erm.noise_law import law
from syndic_lab.bench.erm.private import Setting

Numbers = NDArray[np.float64]
SIZES = (3, 9, 1, 20)
PARTY = np.repeat(np.arange(4), SIZES)


def data() -> tuple[Numbers, Numbers]:
    generator = np.random.default_rng(0)
    rows = into_ball(generator.normal(size=(33, 6)) * (generator.random((33, 6)) < 0.5), 1.0)
    return rows, np.where(rows[:, 0] + generator.normal(0, 0.3, 33) > 0, 1.0, -1.0)


def cohort(loss: Loss | None = None, clip: float = 1.0) -> Cohort:
    rows, labels = data()
    return Cohort(csr_array(rows), labels, PARTY, Objective(loss or Logistic(), 0.02, clip=clip))


def one_by_one(steps: int, linear: Numbers | None = None, extra: float = 0.0, rate: float = 1.0) -> Numbers:
    """Return the mean of the parties' descents, each run alone on dense rows."""
    rows, labels = data()
    models = []
    for place, size in enumerate(SIZES):
        x, y = rows[place == PARTY], labels[place == PARTY]
        theta = np.zeros(6)
        for _ in range(steps):
            gradient = Objective(Logistic(), 0.02).gradient(theta, x, y) + extra * theta
            theta = theta - rate * (gradient + (0.0 if linear is None else linear[place] / size))
        models.append(theta)
    return np.asarray(np.mean(models, axis=0))


def test_average_gradient_is_the_mean_of_the_parties_own() -> None:
    rows, labels = data()
    for loss, clip in ((Logistic(), 1.0), (SQUARED, 0.3)):
        weights = np.random.default_rng(1).normal(size=(6, 3))
        found = cohort(loss, clip).average_gradient(weights)
        for column in range(3):
            own = [
                Objective(loss, 0.02, clip=clip)
                .record_gradients(weights[:, column], rows[place == PARTY], labels[place == PARTY])
                .mean(axis=0)
                for place in range(4)
            ]
            assert found[:, column] == pytest.approx(np.mean(own, axis=0), abs=1e-12)


def test_descents_of_unequal_parties_are_those_of_each_alone() -> None:
    found = cohort().average_descent([1, 17, 60])
    for place, steps in enumerate((1, 17, 60)):
        assert found[place] == pytest.approx(one_by_one(steps), abs=1e-12)


def test_descents_with_a_linear_term_are_those_of_each_alone() -> None:
    linear = np.random.default_rng(2).normal(size=(4, 6))
    found = cohort().average_descent([40], rate=0.7, linear=linear, extra=0.1)
    assert found[0] == pytest.approx(one_by_one(40, linear, 0.1, 0.7), abs=1e-12)


def test_minimisers_are_those_of_the_solver_and_certified() -> None:
    rows, labels = data()
    for loss in (Logistic(), Huber(0.5)):
        objective = Objective(loss, 0.02)
        alone = [minimise(objective, rows[place == PARTY], labels[place == PARTY]).weights for place in range(4)]
        found, gradient_norm = cohort(loss).average_minimiser(1e-9)
        assert gradient_norm <= 1e-9
        # strong convexity: each is within tolerance / regularisation
        assert float(np.linalg.norm(found - np.mean(alone, axis=0))) <= (1e-9 + 1e-8) / 0.02


def test_minimisers_with_a_linear_term_are_where_the_descent_ends() -> None:
    linear = np.random.default_rng(3).normal(size=(4, 6))
    found, _ = cohort().average_minimiser(1e-10, linear=linear, extra=0.1)
    assert found == pytest.approx(one_by_one(1000, linear, 0.1), abs=1e-7)


def test_columns_are_runs_of_their_own_and_noise_is_added_to_the_gradient() -> None:
    shift = np.random.default_rng(4).normal(size=(6, 2))
    found = cohort().descend(2, [1, 30], lambda _i, _w: shift)
    rows, labels = data()
    theta = np.zeros((6, 2))
    for step in range(30):
        gradient = np.column_stack(
            [
                np.mean(
                    [
                        Objective(Logistic(), 0.02).gradient(theta[:, k], rows[p == PARTY], labels[p == PARTY])
                        for p in range(4)
                    ],
                    axis=0,
                )
                for k in range(2)
            ]
        )
        theta = theta - (gradient + shift)
        if step == 0:
            assert found[0] == pytest.approx(theta, abs=1e-12)
    assert found[1] == pytest.approx(theta, abs=1e-12)


def test_equal_parties_leave_out_the_rest_and_too_few_rows_are_refused() -> None:
    rows, labels = data()
    some = Cohort.equal(csr_array(rows), labels, 10, Objective(Logistic(), 0.1))
    assert some.sizes.tolist() == [3] * 10
    with pytest.raises(InputError, match="too few"):
        Cohort.equal(csr_array(rows), labels, 34, Objective(Logistic(), 0.1))
    with pytest.raises(InputError, match="without gaps"):
        Cohort(csr_array(rows), labels, 2 * PARTY, Objective(Logistic(), 0.1))
    with pytest.raises(InputError, match="the same length"):
        Cohort(csr_array(rows), labels[:3], PARTY, Objective(Logistic(), 0.1))


@pytest.mark.bench
def test_squared_loss_has_no_private_minimiser_and_tolerance_may_be_out_of_reach() -> None:
    with pytest.raises(InputError, match="Huber"):
        cohort(SQUARED).average_minimiser(1e-6)
    with pytest.raises(InputError, match="larger tolerance"):
        cohort().average_minimiser(1e-30)


def test_replacing_a_record_moves_the_average_model_within_the_sensitivity() -> None:
    rows, labels = data()
    objective = Objective(Logistic(), 0.02)
    setting = Setting(
        parties=4,
        records=min(SIZES),
        dimension=6,
        epsilon=Fraction(1),
        delta=Fraction(1, 1000),
        regularisation=0.02,
        iterations=1,
        tolerance=1e-9,
    )
    before, _ = Cohort(csr_array(rows), labels, PARTY, objective).average_minimiser(1e-9)
    moved = []
    for place in range(33):
        other, answers = rows.copy(), labels.copy()
        other[place], answers[place] = np.eye(6)[place % 6], -labels[place]
        after, _ = Cohort(csr_array(other), answers, PARTY, objective).average_minimiser(1e-9)
        moved.append(float(np.linalg.norm(after - before)))
    assert max(moved) <= setting.model_sensitivity
    # a record of a larger party moves it less
    assert all(one <= 2 / (4 * SIZES[who] * 0.02) + 1e-7 for one, who in zip(moved, PARTY, strict=True))
    assert min(moved) > 0


def test_printed_laplace_noise_breaks_its_promise_on_rows_that_exist() -> None:
    """One record replaced, d = 104, n = 300, lambda = 0.01: the privacy loss is several times the epsilon claimed."""
    dimension, epsilon = 104, Fraction(1, 2)
    diagonal = np.full(dimension, dimension**-0.5)
    rows = np.tile(np.eye(dimension)[0] * 1e-3, (300, 1))
    labels = np.ones(300)
    objective = Objective(Logistic(), 0.01)
    models = []
    for sign in (1.0, -1.0):
        rows[0] = sign * diagonal
        models.append(minimise(objective, rows, labels).weights)
    noise = law("as_published", 2 / (300 * 0.01), dimension, epsilon, Fraction(1, 10**5))
    # density ratio of independent Laplace coordinates at a point beyond both models
    loss = float(np.abs(models[0] - models[1]).sum()) / noise.scale
    assert loss > 4 * epsilon
    assert float(np.linalg.norm(models[0] - models[1])) <= 2 / (300 * 0.01)  # the l2 bound itself holds
