"""How often `advise` is right: its verdicts and starting epsilons beside simulated truth, on settings drawn by a seed.

Three advices on each setting: `untold` has the defaults only; `told` hears a rounded mean, spread and r2; `published`
also hears the shares of bins and how much each column explains. None hears the shape itself.

What counts as right was fixed before the held-out seeds were drawn. "Gains" and "loses" are right if the simulated
errors are on that side; "about even" is right if they differ by less than a fifth. A setting counts if all its
parties do and at most half of them are told about even. A starting epsilon is right within a factor of 1.5 of the
simulated one (never with never); both are taken within the simulated range. As simulated errors are known to about a
twentieth, the start is also judged against all starts that own errors a twentieth larger or smaller would have.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from syndic.advice.advice import PartyAdvice, TaskAdvice
from syndic.advice.predict import advise_tasks
from syndic.kernel import budget_of
from syndic_lab.bench.advise.settings import ALL_SHAPES, PLAIN_SHAPES, Setting, settings
from syndic_lab.bench.advise.truth import HIGHEST, LOWEST, STEPS, Truth, start_of, truth_of
from syndic_lab.bench.row import Row

HELD_OUT: Final = {"plain shapes": (40_404, PLAIN_SHAPES), "any shape": (40_405, ALL_SHAPES)}
"""Seeds that were never used to build the advisor, nor to choose any of its numbers."""

EVEN_IN_TRUTH: Final = 0.2
"""What "about even" claims: the true errors differ by less than this fraction."""

SETTINGS: Final = 10
FACTOR: Final = 1.5
SURE: Final = 0.05
LEVELS: Final = ("published", "told", "untold")


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Compared:
    """One setting: simulated errors jointly (at its budgets, by factor) and of every party alone, and the advices."""

    setting: Setting
    joint: float
    curve: dict[float, float]
    alone: tuple[float, ...]
    advices: dict[str, TaskAdvice]


def rows(quick: bool) -> Iterator[Row]:
    """Yield two rows for each party of the held-out settings, and the agreement over all of them."""
    for group, (seed, shapes) in HELD_OUT.items():
        found = []
        for setting in settings(seed, SETTINGS, shapes):
            found.append(compare(setting, repeats=60 if quick else 400))
            yield from _setting_rows(group, found[-1])
        for level in LEVELS:
            yield from agreement(f"{group}, {level}", found, level)


def agreement(where: str, found: list[Compared], level: str) -> Iterator[Row]:
    """Yield how many settings and parties the advices of a level are right about."""
    evens = [evens_of(one, level) for one in found]
    verdicts = [verdicts_agree(one, level) for one in found]
    counted = [all(flags) and 2 * even <= len(flags) for flags, even in zip(verdicts, evens, strict=True)]
    yield _row(f"{where}: settings", "verdicts agree", sum(counted), f"of {len(found)}")
    starts = {
        "starting epsilons within 1.5": [starts_agree(one, level) for one in found],
        "starting epsilons within 1.5, or of the simulation's error": [starts_agree(one, level, SURE) for one in found],
    }
    for metric, flags in starts.items():
        yield _row(f"{where}: settings", metric, sum(all(part) for part in flags), f"of {len(found)}")
    strict = [[one.pays == (each.joint < own) for one, own in _pairs(each, level)] for each in found]
    for metric, flags in {"verdicts agree": verdicts, "which is better agrees": strict, **starts}.items():
        flat = [flag for part in flags for flag in part]
        yield _row(f"{where}: parties", metric, sum(flat), f"of {len(flat)}")
    yield _row(f"{where}: parties", "told about even", sum(evens), f"of {sum(len(one.alone) for one in found)}")


def compare(setting: Setting, *, repeats: int) -> Compared:
    """Simulate a setting at its own budgets and over a grid of factors, and ask for advice on it."""
    truth = truth_of(setting)
    study, tasks = setting.study, [setting.task]
    own_repeats = 4000 if setting.task.kind == "mean" else 1000
    published, told = setting.assumptions(bins=True), setting.assumptions()
    return Compared(
        setting=setting,
        joint=truth.joint(1.0, 3 * repeats),
        curve=curve_of(truth, repeats),
        alone=tuple(truth.alone(party.people or 0, own_repeats) for party in study.parties),
        advices={
            "published": advise_tasks(study, tasks=tasks, assumptions=published).tasks[0],
            "told": advise_tasks(study, tasks=tasks, assumptions=told).tasks[0],
            "untold": advise_tasks(study, tasks=tasks).tasks[0],
        },
    )


def curve_of(truth: Truth, repeats: int) -> dict[float, float]:
    """Return the simulated joint error for factors that bring the largest epsilon from 1/64 to 64."""
    study = truth.setting.study
    largest = max(float(budget_of(study, party.name).epsilon) for party in study.parties)
    return {
        float(factor): truth.joint(float(factor), repeats) for factor in np.geomspace(LOWEST, HIGHEST, STEPS) / largest
    }


def evens_of(compared: Compared, level: str) -> int:
    """Return how many parties are told that alone and jointly are about even."""
    return sum(one.standing == "about even" for one in compared.advices[level].parties)


def verdicts_agree(compared: Compared, level: str) -> list[bool]:
    """Tell for each party whether what it was told is what the simulation says."""
    return [right(one, compared.joint / own) for one, own in _pairs(compared, level)]


def right(one: PartyAdvice, ratio: float) -> bool:
    """Tell whether advice is right if the true error jointly is `ratio` times that alone."""
    if one.standing == "about even":
        return 1 / (1 + EVEN_IN_TRUTH) < ratio < 1 + EVEN_IN_TRUTH
    return (one.standing == "gains") == (ratio < 1)


def starts_agree(compared: Compared, level: str, sure: float = 0.0) -> list[bool]:
    """Tell for each party whether the start is within 1.5 of one that an own error within `sure` would have."""
    return [near(one.factor, own, compared.curve, sure) for one, own in _pairs(compared, level)]


def near(factor: float | None, own: float, curve: dict[float, float], sure: float) -> bool:
    """Tell whether a starting factor agrees with a simulated curve and own error, both known to within `sure`."""
    first = start_of(own * (1 + sure), curve)
    last = start_of(own / (1 + sure), curve)
    if factor is None or first is None:
        return factor is None and last is None
    # the advisor also searches below the simulated range
    factor = max(factor, min(curve))
    return first / FACTOR <= factor and (last is None or factor <= FACTOR * last)


def _pairs(compared: Compared, level: str) -> list[tuple[PartyAdvice, float]]:
    return list(zip(compared.advices[level].parties, compared.alone, strict=True))


def _setting_rows(group: str, compared: Compared) -> Iterator[Row]:
    study = compared.setting.study
    for place, (told, alone) in enumerate(_pairs(compared, "published")):
        party = study.parties[place]
        where = f"{group} {compared.setting.words}; {party.name}"
        predicted = told.alone / compared.advices["published"].joint
        yield _row(where, "alone over jointly", predicted, "1", alone / compared.joint)
        epsilon = float(budget_of(study, party.name).epsilon)
        # 0 stands for never: no epsilon up to 64 is enough
        start = start_of(alone, compared.curve)
        yield _row(where, "starting epsilon", told.epsilon or 0.0, "epsilon", (start or 0.0) * epsilon)


def _row(row: str, metric: str, value: float, unit: str, baseline: float | None = None) -> Row:
    return Row(bench="advise", row=row, metric=metric, value=value, unit=unit, baseline=baseline)
