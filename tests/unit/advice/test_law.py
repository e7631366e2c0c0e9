"""What is kept of a cell's count, against the mechanism's own draws; and budgets times a factor."""

import numpy as np
import pytest

from support import study_text
from syndic import Study
from syndic.advice.budgets import scaled
from syndic.advice.forecast import kept_of, people_in_cells
from syndic.methods.histogram.homm import HommPlan
from syndic.random import SimulationRandomness

DRAWS = 400_000
PROTOCOLS = {
    "laplace": ("epsilon = 0.7", 'method = "homm"'),
    "wide": ("epsilon = 0.001", 'method = "homm"'),
    "at least 3": ("epsilon = 0.7", 'method = "homm"\nat_least = 3'),
    "signed": ("epsilon = 0.7", 'method = "homm"\nclamp = false'),
    "gaussian": ("epsilon = 2.0\ndelta = 1e-5", 'method = "homm"\nnoise = "gaussian"'),
}


@pytest.mark.statistical
@pytest.mark.parametrize("kind", PROTOCOLS)
@pytest.mark.parametrize("expected", [0.0, 0.3, 4.0, 3000.0])
@pytest.mark.parametrize("unit", ['neighbours = "add_remove"', 'neighbours = "replace"\nparties = 2'])
def test_what_is_kept_of_a_cell_is_what_the_mechanism_keeps(kind: str, expected: float, unit: str) -> None:
    budget, protocol = PROTOCOLS[kind]
    plan = Study.loads(study_text(unit=unit, budget=budget, protocol=protocol)).plan_as(HommPlan)
    people = np.random.default_rng(2).poisson(expected, DRAWS)
    noisy = plan.noise["south"].apply(people, SimulationRandomness(1))
    kept = np.where((noisy >= plan.at_least) | (not plan.clamp), noisy, 0)
    mean, variance, size, _ = kept_of(plan, "south", people_in_cells(np.array([expected])))[:, 0]
    # six standard errors: false alarms below 2e-9 each
    assert mean == pytest.approx(kept.mean(), abs=6 * kept.std() / DRAWS**0.5)
    assert size == pytest.approx(np.abs(kept).mean(), abs=6 * kept.std() / DRAWS**0.5)
    assert variance == pytest.approx(
        kept.var(), rel=6 * (np.square(kept - kept.mean()).std() / kept.var()) / DRAWS**0.5
    )


def test_all_budgets_are_multiplied_and_deltas_stay() -> None:
    parties = '[[parties]]\nname = "north"\n[[parties]]\nname = "south"\nbudget = { epsilon = 0.5 }\n'
    half = scaled(Study.loads(study_text(parties=parties)), 0.5)
    assert [float(cost.epsilon(half.delta)) for cost in half.costs.values()] == [0.5, 0.25]
