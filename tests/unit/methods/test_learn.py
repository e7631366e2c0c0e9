"""Learning as a protocol: against the simulation, with the noise and the guarantee that the study says."""

from fractions import Fraction
from math import exp, sqrt
from pathlib import Path

import msgspec
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from support import charges, read_back, rows
from syndic import plan
from syndic.data import Table, open_source
from syndic.methods.learning.query import batches
from syndic.methods.learning.result import LearnResult, weights_of
from syndic.model.erm.loss import SQUARED, JointObjective, Logistic, Objective
from syndic.privacy import Budget, Cost, joint_cost
from syndic.report import coefficient_tables, report
from syndic.study import simulate
from syndic_lab.bench.erm.noise_law import gradient_sigma
from unit.methods.learning import (
    BINARY,
    NOISELESS,
    cohort,
    learnt,
    nothing,
    planned,
    protocol_of,
    sources,
    study,
    weights,
)


@pytest.mark.parametrize("scheme", ["mpc_grad", "local_grad"])
def test_descent_without_noise_is_the_simulations(scheme: str) -> None:
    of = study(f'{BINARY}scheme = "{scheme}"\niterations = 5\nrate = 1.0', budget=NOISELESS)
    expected = cohort(of, sources(), Objective(Logistic(), 0.01)).descend(1, [5], nothing)[0, :, 0]
    assert weights(of)[0] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("scheme", ["mpc_out", "local_out", "pathak"])
def test_averages_without_noise_are_the_simulations(scheme: str) -> None:
    of = study(f'{BINARY}scheme = "{scheme}"', budget=NOISELESS)
    expected, _ = cohort(of, sources(), Objective(Logistic(), 0.01)).average_minimiser(1e-9)
    # Pathak's noise is four times as large, and not nothing at this budget
    assert weights(of)[0] == pytest.approx(expected, abs=0.02 if scheme == "pathak" else 0.01)


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_few_rounds_reach_the_minimiser(loss: str) -> None:
    label = BINARY if loss == "logistic" else 'label = "colour"\nregularisation = 0.01\nloss = "softmax"\nclip = 1.5\n'
    of = study(f'{label}scheme = "newton"\niterations = 12', budget=NOISELESS)
    protocol, data = protocol_of(of), sources()
    objective = JointObjective(protocol.objective.loss, 0.01, clip=protocol.clip)
    design = planned(of).design
    read = [
        batch
        for each in data.values()
        for batch in batches(design, Table(schema=design.schema, source=open_source(each)))
    ]
    plain, labels = (np.concatenate([getattr(batch, name) for batch in read]) for name in ("plain", "labels"))
    found = weights(of, data)
    # of norm far below that at zero: the method forgets where it began
    assert np.linalg.norm(objective.gradient(found, plain, labels)) < 0.02 * np.linalg.norm(
        objective.gradient(np.zeros(design.shape), plain, labels)
    )


def test_unequal_parties_learn_as_if_pooled() -> None:
    sizes = {"p0": 20, "p1": 90, "p2": 50, "p3": 5}
    options = 'label = "score"\nloss = "ridge"\nclip = 0.4\nregularisation = 0.05\niterations = 9\nrate = 0.7'
    of = study(options, sizes=sizes, budget=NOISELESS, unit='neighbours = "add_remove"')
    data = sources(sizes)
    whole = cohort(of, data, Objective(SQUARED, 0.05, clip=0.4), pooled=True)
    expected = whole.descend(1, [9], nothing, rate=0.7)[0, :, 0]
    assert weights(of, data)[0] == pytest.approx(expected, abs=1e-3)


def test_each_class_has_the_model_it_has_alone() -> None:
    together = weights(study('label = "colour"\nclip = 2.0\niterations = 2', budget=NOISELESS))
    for place, colour in enumerate(("red", "green", "blue")):
        alone = weights(study(f'label = "colour"\npositive = "{colour}"\niterations = 2', budget=NOISELESS))
        assert together[place] == pytest.approx(alone[0], abs=1e-3)


@pytest.mark.parametrize(("unit", "records"), [("replace", 2), ("add_remove", 1)])
def test_noise_is_that_of_the_exact_gaussian_for_the_honest_parties(unit: str, records: int) -> None:
    of = study(f"{BINARY}iterations = 30\ncolluding = 1", unit=f'neighbours = "{unit}"')
    found = planned(of).noise[0].average_deviation(planned(of).people)
    needed = gradient_sigma(records / 200, 30, Fraction(1), Fraction(1, 10**5))
    # four parties draw shares that three of them would have been enough for
    assert found == pytest.approx(needed * sqrt(4 / 3), rel=1e-5)


def test_the_guarantee_is_for_people_at_parties_of_different_budgets() -> None:
    of = study(
        f"{BINARY}iterations = 3\nscheme = 'local_grad'",
        budget="epsilon = 17.0\ndelta = 1e-5",
        unit='neighbours = "replace"\nparties = 2',
    )
    strict = msgspec.structs.replace(of.parties[0], budget=Budget(epsilon=Fraction(15), delta=Fraction(1, 10**5)))
    mixed = msgspec.structs.replace(of, parties=(strict, *of.parties[1:]))
    costs = {party.name: Cost.of(mixed.plan.events(party.name)) for party in mixed.parties}
    last = planned(mixed).guarantee[-1]
    assert last == (3, float(joint_cost(costs, mixed.unit).epsilon(Fraction(1, 10**5))))


def test_a_tiny_delta_is_accounted_for_by_rho() -> None:
    for epsilon, kind in ((1, "gaussian"), (12, "concentrated")):
        of = study(f"{BINARY}iterations = 50", budget=f"epsilon = {epsilon}.0\ndelta = 1e-11")
        events = of.plan.events("p0")
        assert {event.__struct_config__.tag for event in events} == {kind}
        assert 0.99 * epsilon <= plan(of).statement.epsilon <= epsilon


def delta_less(epsilon: float, mu: float, delta: float) -> float:
    """How far the delta of Gaussian noise is above `delta` (Balle and Wang 2018)."""
    return float(norm.cdf(mu / 2 - epsilon / mu) - exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu) - delta)


def test_early_iterates_cost_less() -> None:
    of = study(f"{BINARY}iterations = 10")
    guarantee = dict(learnt(of).model.guarantee)
    ratio = 1 / gradient_sigma(1.0, 1, Fraction(1), Fraction(1, 10**5))
    for number in (1, 5, 10):
        expected = brentq(delta_less, 0.0, 5.0, args=(ratio * sqrt(number / 10), 1e-5))
        assert guarantee[number] == pytest.approx(expected, rel=1e-4)
    assert guarantee[10] <= 1.0


def test_people_at_several_parties_pay_at_each() -> None:
    one, two = (study(f"{BINARY}iterations = 4", unit=f'neighbours = "replace"\nparties = {n}') for n in (1, 2))
    deviations = [planned(of).noise[0].average_deviation(planned(of).people) for of in (one, two)]
    assert deviations[1] == pytest.approx(2 * deviations[0], rel=1e-6)
    assert two.costs["p0"].gaussian == pytest.approx(one.costs["p0"].gaussian / 2, rel=1e-6)
    assert float(two.joint.epsilon(two.delta)) == pytest.approx(1.0, rel=1e-6)


def test_small_parties_abstain_by_their_public_number(tmp_path: Path) -> None:
    sizes = {"p0": 50, "p1": 50, "p2": 50, "p3": 4}
    data = sources(sizes)
    of = study(f"{BINARY}iterations = 5\nminimum = 10\nrate = 1.0", sizes=sizes, budget=NOISELESS)
    result = simulate(of, data, seed=1, folder=tmp_path).result
    assert isinstance(result, LearnResult)
    assert of.plan.events("p3") == ()
    assert charges(tmp_path, "p3") == []
    big = {name: each for name, each in data.items() if name != "p3"}
    expected = cohort(of, big, Objective(Logistic(), 0.01)).descend(1, [5], nothing)[0, :, 0]
    assert weights_of(result.model, result.design)[0] == pytest.approx(expected, abs=1e-3)
    assert result.model.people == 150


def test_the_result_is_read_back_and_predicts(tmp_path: Path) -> None:
    of = study('label = "colour"\niterations = 4\npath = true', budget=NOISELESS)
    release = simulate(of, sources(), seed=1)
    paths = release.write(tmp_path)
    assert {path.name for path in paths} >= {"model.json", "coefficients.csv", "path.csv"}
    result, again = release.result, read_back(of, tmp_path)
    assert isinstance(result, LearnResult)
    assert isinstance(again, LearnResult)
    assert again.model == result.model
    assert np.array_equal(np.asarray(again.path), np.asarray(result.path))
    data = rows(30, 9)
    scores = release.model.decision_function(data)
    assert scores.shape == (30, 3)
    expected = [("red", "green", "blue")[place] for place in scores.argmax(axis=1)]
    assert release.model.predict(data).tolist() == expected
    assert (tmp_path / "coefficients.csv").read_text().startswith("feature,red,green,blue\nage,")
    assert "largest coefficients" in result.summary()
    page = report(release, tmp_path / "page.html").read_text()
    assert "What was learnt" in page
    assert "Guarantee along the rounds" in page
    # no interval of these coefficients is known to cover, and every place that shows them says so
    assert "have no intervals" in page
    (grid,) = coefficient_tables(release)
    assert "without intervals" in grid.caption
