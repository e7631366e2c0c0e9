"""Advice on estimates: predicted errors against formulas, and the verdict."""

from typing import Any

import numpy as np
import pytest

import syndic as sy
from syndic.advice import Assumptions
from syndic.advice.estimate import advise_estimate, predicted
from syndic.data import Instead
from syndic.errors import InputError
from syndic.model import AnyFamily, Bernoulli, Exponential, Multinomial, Normal, Poisson
from syndic.model.families.estimate import Setting
from syndic_lab.bench.estimate.accuracy import masked_error, statistics_error

COLUMNS = (
    sy.Integer(name="visits", lower=0, upper=30, missing=Instead(value=0)),
    sy.Boolean(name="sick", missing=Instead(value=False)),
    sy.Categorical(name="colour", values=("red", "green")),
)


def study(
    family: AnyFamily, column: str = "visits", epsilon: str = "0.5", people: int = 4000, **options: Any
) -> sy.Study:
    return sy.Study(
        name="visits",
        unit=sy.Unit(neighbours="replace"),
        budget=sy.Budget.of(epsilon),
        protocol=sy.Estimate(column=column, family=family, **options),
        parties=tuple(sy.Member(name=name, people=people) for name in ("north", "south", "east")),
        schema=sy.Schema(columns=COLUMNS),
    )


def test_predicted_errors_are_the_corrected_formulas() -> None:
    declared = Assumptions.of(("visits.mean=4",))
    asked = study(Poisson(), colluding=1)
    advice = advise_estimate(asked, declared)
    assert sy.advise(asked, assumptions=declared) == advice
    found = {task.task: task for task in advice.tasks}
    assert list(found) == ["mean by dssa", "mean by dsaa", "mean by masked"]
    setting = Setting(parties=3, people=4000, epsilon=0.5, information=1 / 4)
    wanted = statistics_error(setting, slope=1.0, diameter=30.0)
    assert found["mean by dssa"].joint ** 2 == pytest.approx(wanted, rel=1e-3)
    # one of three shares of the noise is not counted on: half as much again is added
    plain = masked_error(setting, slope=1.0, diameter=30.0)
    masked = setting.bound + 1.5 * (plain - setting.bound)
    assert found["mean by masked"].joint ** 2 == pytest.approx(masked, rel=1e-3)
    assert found["mean by dssa"].pooled ** 2 == pytest.approx(4 / 12_000)
    assert found["mean by dssa"].parties[0].alone ** 2 == pytest.approx(4 / 4000)
    assert advice.verdict == "share"
    assert "mean by masked" in advice.words


def test_epsilon_from_which_on_it_pays_is_where_the_errors_meet() -> None:
    asked = study(Poisson())
    advice = advise_estimate(asked, Assumptions.of(("visits.mean=4",)))
    first = advice.tasks[0].parties[0]
    assert first.epsilon is not None
    assert first.factor is not None
    protocol: Any = asked.protocol
    assert predicted(asked, protocol, np.array([4.0]), first.factor)[0] < 4 / 4000
    assert predicted(asked, protocol, np.array([4.0]), first.factor / 1.5)[0] > 4 / 4000


def test_too_little_budget_is_not_worth_it() -> None:
    advice = advise_estimate(study(Poisson(), epsilon="0.001"), Assumptions())
    assert advice.verdict == "do not share"
    assert "DO NOT SHARE" in str(advice)


@pytest.mark.parametrize(
    ("family", "column", "tasks"),
    [
        (Normal(), "visits", 6),
        (Bernoulli(), "sick", 3),
        (Multinomial(), "colour", 12),
        (Exponential(), "visits", 2),
    ],
    ids=["normal", "bernoulli", "multinomial", "exponential without a set for blocks"],
)
def test_every_parameter_and_every_scheme_that_can_run(family: AnyFamily, column: str, tasks: int) -> None:
    advice = advise_estimate(study(family, column), Assumptions())
    assert len(advice.tasks) == tasks
    assert all(task.joint > 0.99 * task.pooled for task in advice.tasks)
    assert all(low <= task.joint <= high for task in advice.tasks for low, high in [task.joint_range])


def test_tasks_are_refused() -> None:
    with pytest.raises(InputError, match="leave them out for estimate"):
        sy.advise(study(Poisson()), tasks=["mean:visits"])
