"""The predicted noise against the mechanism's own draws, and its moments against the law's sums."""

import numpy as np
import pytest

from support import study_text
from syndic import Study
from syndic.advice.budgets import scaled
from syndic.advice.law import Law, law_of
from syndic.methods.histogram.homm import HommPlan
from syndic.random import SimulationRandomness

DRAWS = 400_000
PROTOCOLS = {
    "laplace": ("epsilon = 0.7", 'method = "homm"'),
    "gaussian": ("epsilon = 2.0\ndelta = 1e-5", 'method = "homm"\nnoise = "gaussian"'),
    "printed": ("epsilon = 0.7", 'method = "homm"\nas_published = true\nclamp = false'),
}


@pytest.mark.statistical
@pytest.mark.parametrize("kind", PROTOCOLS)
@pytest.mark.parametrize("unit", ['neighbours = "add_remove"', 'neighbours = "replace"\nparties = 2'])
def test_the_noise_is_that_of_the_mechanism(kind: str, unit: str) -> None:
    budget, protocol = PROTOCOLS[kind]
    study = Study.loads(study_text(unit=unit, budget=budget, protocol=protocol))
    law = law_of(study, "south")
    real = study.plan_as(HommPlan).noise["south"].apply(np.zeros(DRAWS, np.int64), SimulationRandomness(1))
    ours = law.noise(law.standard(DRAWS, np.random.default_rng(2)))
    for value in range(-4, 5):
        chances = (real == value).mean(), (ours == value).mean()
        # six standard errors of a difference: false alarms below 2e-9 each
        assert abs(chances[0] - chances[1]) < 6 * np.sqrt(2 * 0.25 / DRAWS), value
    assert ours.var() == pytest.approx(real.var(), rel=6 * np.sqrt(2 * 5 / DRAWS))


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [3.9, 4.1, 30.0])
def test_wide_gaussian_noise_has_the_discrete_law(scale: float) -> None:
    law = Law(scale=scale, gaussian=True, printed=False, clamp=False, at_least=1)
    drawn = law.noise(law.standard(DRAWS, np.random.default_rng(4)))
    support = np.arange(-1000, 1001)
    weights = np.exp(-((support / scale) ** 2) / 2)
    weights /= weights.sum()
    for value in (0, 1, round(scale), -round(2 * scale)):
        chance = weights[support == value][0]
        # six standard errors: false alarms below 2e-9 each
        assert abs((drawn == value).mean() - chance) < 6 * np.sqrt(chance / DRAWS)
    assert drawn.var() == pytest.approx(scale**2, rel=6 * np.sqrt(2 / DRAWS))


@pytest.mark.statistical
@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("scale", [0.4, 1.0, 6.0])
@pytest.mark.parametrize(("clamp", "at_least"), [(True, 1), (True, 4), (False, 1)])
def test_moments_of_an_empty_cell(gaussian: bool, scale: float, clamp: bool, at_least: int) -> None:
    law = Law(scale=scale, gaussian=gaussian, printed=False, clamp=clamp, at_least=at_least)
    support = np.arange(-4000, 4001)
    weights = np.exp(-((support / scale) ** 2) / 2 if gaussian else -np.abs(support) / scale)
    weights /= weights.sum()
    shown = np.where(support >= at_least, support, 0) if clamp else support
    mean = float(shown @ weights)
    wanted = mean, float((shown - mean) ** 2 @ weights), float(np.abs(shown) @ weights)
    assert law.moments[1:] == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    if clamp:
        assert law.moments[0] == pytest.approx(float(weights[support >= at_least].sum()), rel=1e-9, abs=1e-15)
        drawn = law.survivors(100_000, np.random.default_rng(3))
        assert drawn.min() >= at_least
        assert drawn.mean() == pytest.approx(
            wanted[0] / law.moments[0], rel=6 * drawn.std() / drawn.mean() / 316 + 1e-9
        )


def test_all_budgets_are_multiplied_and_deltas_stay() -> None:
    parties = '[[parties]]\nname = "north"\n[[parties]]\nname = "south"\nbudget = { epsilon = 0.5 }\n'
    half = scaled(Study.loads(study_text(parties=parties)), 0.5)
    assert [float(cost.epsilon(half.delta)) for cost in half.costs.values()] == [0.5, 0.25]
