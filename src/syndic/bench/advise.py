"""How often `advise` is right: its verdicts and starting epsilons beside simulated truth, on settings drawn by a seed.

`told` is the advice with a declared mean, spread and r2 (rounded, and never the shape); `untold` has the defaults only.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from syndic.advise import PartyAdvice, TaskAdvice, advise
from syndic.bench.advise_settings import ALL_SHAPES, PLAIN_SHAPES, Setting, settings
from syndic.bench.advise_truth import HIGHEST, LOWEST, STEPS, Truth, start_of, truth_of
from syndic.bench.row import Row
from syndic.kernel import budget_of

HELD_OUT = {"plain shapes": (20_203, PLAIN_SHAPES), "any shape": (20_202, ALL_SHAPES)}
"""Seeds that were never used to build the advisor, nor to choose any of its numbers."""

SETTINGS = 10
FACTOR = 1.5


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Compared:
    """One setting: the simulated verdict and starting factor of every party, and the advice."""

    setting: Setting
    joint: float
    alone: tuple[float, ...]
    starts: tuple[float | None, ...]
    told: TaskAdvice
    untold: TaskAdvice


def rows(quick: bool) -> Iterator[Row]:
    """Yield two rows for each party of the held-out settings, and the agreement over all of them."""
    for group, (seed, shapes) in HELD_OUT.items():
        found = []
        for setting in settings(seed, SETTINGS, shapes):
            found.append(compare(setting, repeats=60 if quick else 400))
            yield from _setting_rows(group, found[-1])
        for name in ("told", "untold"):
            yield from _agreement(f"{group}, {name}", found, [getattr(one, name) for one in found])


def _agreement(where: str, found: list[Compared], advice: list[TaskAdvice]) -> Iterator[Row]:
    pairs = list(zip(found, advice, strict=True))
    checks = {
        "verdict agrees": [verdicts_agree(one, told) for one, told in pairs],
        "verdict agrees, or within a tenth of break-even": [verdicts_agree(one, told, 0.1) for one, told in pairs],
        "starting epsilon within 1.5": [starts_agree(one, told) for one, told in pairs],
    }
    for metric, flags in checks.items():
        flat = [flag for part in flags for flag in part]
        yield _row(
            f"{where}: settings where all parties do", metric, sum(all(part) for part in flags), f"of {SETTINGS}"
        )
        yield _row(f"{where}: parties", metric, sum(flat), f"of {len(flat)}")


def compare(setting: Setting, *, repeats: int) -> Compared:
    """Simulate a setting at its own budgets and over a grid of factors, and ask for advice on it."""
    truth = truth_of(setting)
    study = setting.study
    curve = curve_of(truth, repeats)
    own_repeats = 2000 if setting.task.kind == "mean" else 800
    alone = [truth.alone(party.people or 0, own_repeats) for party in study.parties]
    return Compared(
        setting=setting,
        joint=truth.joint(1.0, 2 * repeats),
        alone=tuple(alone),
        starts=tuple(start_of(own, curve) for own in alone),
        told=advise(study, tasks=[setting.task], assumptions=setting.assumptions()).tasks[0],
        untold=advise(study, tasks=[setting.task]).tasks[0],
    )


def curve_of(truth: Truth, repeats: int) -> dict[float, float]:
    """Return the simulated joint error for factors that bring the largest epsilon from 1/64 to 64."""
    study = truth.setting.study
    largest = max(float(budget_of(study, party.name).epsilon) for party in study.parties)
    return {
        float(factor): truth.joint(float(factor), repeats) for factor in np.geomspace(LOWEST, HIGHEST, STEPS) / largest
    }


def verdicts_agree(compared: Compared, advice: TaskAdvice, margin: float = 0.0) -> list[bool]:
    """Tell for each party whether the advice is what the simulation says, or that is within `margin` of even."""
    return [
        one.pays == (compared.joint < own) or abs(compared.joint / own - 1) < margin
        for one, own in zip(advice.parties, compared.alone, strict=True)
    ]


def starts_agree(compared: Compared, advice: TaskAdvice) -> list[bool]:
    """Tell for each party whether the starting factor is within 1.5 of the simulated one, or both are never."""
    return [_near(one, start) for one, start in zip(advice.parties, compared.starts, strict=True)]


def _near(one: PartyAdvice, start: float | None) -> bool:
    if one.factor is None or start is None:
        return one.factor is start
    return 1 / FACTOR <= one.factor / start <= FACTOR


def _setting_rows(group: str, compared: Compared) -> Iterator[Row]:
    study = compared.setting.study
    parts = zip(study.parties, compared.alone, compared.starts, compared.told.parties, strict=True)
    for party, alone, start, told in parts:
        where = f"{group} {compared.setting.words}; {party.name}"
        yield _row(where, "alone over jointly", told.alone / compared.told.joint, "1", alone / compared.joint)
        epsilon = float(budget_of(study, party.name).epsilon)
        # 0 stands for never: no epsilon up to 64 is enough
        yield _row(where, "starting epsilon", told.epsilon or 0.0, "epsilon", (start or 0.0) * epsilon)


def _row(row: str, metric: str, value: float, unit: str, baseline: float | None = None) -> Row:
    return Row(bench="advise", row=row, metric=metric, value=value, unit=unit, baseline=baseline)
