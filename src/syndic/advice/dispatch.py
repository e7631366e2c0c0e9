"""Choose the prediction that suits a study's method."""

from collections.abc import Sequence

import msgspec

from syndic.advice.advice import Advice, NoiseAdvice, VerticalAdvice
from syndic.advice.assume import Assumptions
from syndic.advice.budgets import epsilon_for
from syndic.advice.estimate import advise_estimate
from syndic.advice.published import advise_published, forecast_errors
from syndic.advice.task import Task
from syndic.errors import InputError
from syndic.kernel import Progress, silent_progress
from syndic.methods import Estimate, Homm, Synthesis
from syndic.methods.histogram.homm import HommPlan
from syndic.methods.synthesis.plan import SynthesisPlan
from syndic.study import Study


def advise(
    study: Study,
    *,
    tasks: Sequence[Task | str] | None = None,
    assumptions: Assumptions | None = None,
    wider: float | None = None,
    progress: Progress = silent_progress,
    seed: int = 0,
) -> Advice | VerticalAdvice | NoiseAdvice:
    """Predict what a study would be worth. Reads no row, spends nothing.

    For the methods `homm`, `estimate` and, where parties hold all columns, `synthesis`: each party's error alone and
    jointly, as an `Advice`. For syntheses of different columns of the same people: which method to use and how close
    its table would be, as a `VerticalAdvice`. For all others: what noise does to the numbers they publish, as a
    `NoiseAdvice`.

    Args:
        study: the agreed document; every party must declare its number of `people`.
        tasks: for `homm`, what the release is wanted for, such as "mean:age"; by default every column's mean or shares
            and the prediction of the last column that allows one.
        assumptions: what is assumed of the population; see `syndic.advice.Assumptions`.
        wider: also find the smallest epsilon at which no interval is more than so many times as wide as on pooled rows;
            for `survival`, `describe`, tables and Gram matrices.
        progress: called with the step, how much of it is done, and how much there is.
        seed: seed of the artificial people and their noise, which protect nobody.

    Raises:
        InputError: if nothing is published with noise, or a task or an assumption does not fit the study.
    """
    # heavy to load, and a plan's warning does without
    from syndic.advice.predict import advise_tasks  # noqa: PLC0415
    from syndic.advice.synthesis import advise_synthesis  # noqa: PLC0415
    from syndic.advice.vertical import VERTICAL, advise_vertical  # noqa: PLC0415

    assumptions = assumptions or Assumptions()
    protocol = study.protocol
    if wider is not None:
        found = advise_published(study, assumptions)
        least = epsilon_for(study, wider, lambda one: forecast_errors(one, assumptions)[0])
        return msgspec.structs.replace(found, wanted=wider, epsilon=least)
    # predictions of tasks are for one grid of all parties
    if isinstance(protocol, Homm) and study.plan_as(HommPlan).one_grid:
        return advise_tasks(study, tasks=tasks, assumptions=assumptions, progress=progress, seed=seed)
    if tasks:
        raise InputError(
            "tasks are for the method homm, where all parties have all columns and the same bins; leave them out for "
            f"{protocol.__struct_config__.tag}"
        )
    if isinstance(protocol, Estimate):
        return advise_estimate(study, assumptions)
    # where a party lacks columns, its error alone would be of other tables
    if isinstance(protocol, Synthesis) and study.plan_as(SynthesisPlan).reach is None:
        return advise_synthesis(study, assumptions, progress, seed)
    if isinstance(protocol, VERTICAL) and study.partition == "vertical":
        study.check()
        return advise_vertical(study, assumptions=assumptions, progress=progress, seed=seed)
    return advise_published(study, assumptions)
