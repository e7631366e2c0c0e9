"""Predict how close a synthesis of different people's rows would be to the population. Reads no row, spends nothing.

Artificial people, in as many columns and values as the study declares, go through the method's own choice of tables,
its own noise and its own model, without parties and masks. There are three populations, from easy to hard to
synthesise. Errors are mean total variation distances from the population: of each party's rows, of all rows without
privacy, and of the table that the study would release.
"""

from statistics import fmean
from typing import Final

import numpy as np

from syndic.advice.advice import Advice, TaskAdvice, verdict_of
from syndic.advice.artificial import CROWDS, IN_WORDS, Codes, Crowd, distance, made_up, made_up_counts
from syndic.advice.assume import Assumptions, check_public, declared_words
from syndic.advice.budgets import break_even, largest_epsilon, party_advice, scaled
from syndic.evaluation.distance import column_sets
from syndic.kernel import Progress, silent_progress
from syndic.methods.synthesis.plan import SynthesisPlan
from syndic.methods.synthesis.trust import POOR
from syndic.model.selection import synthesise
from syndic.study import Study

HIGHEST: Final = 16.0
"""The largest epsilon that is tried, of the party with the largest budget."""

_FACTORS: Final = (0.25, 1.0, 4.0)
_MIDDLE: Final = 1
_SETS: Final = 100
_POPULATION: Final = 200_000

# distances by task, in the same order for all
Distances = list[float]


def advise_synthesis(
    study: Study, assumptions: Assumptions, progress: Progress = silent_progress, seed: int = 0
) -> Advice:
    """Predict the error of columns, of pairs and of relations to the target. Arguments are those of `syndic.advise`."""
    people, sets, largest = check_public(study, assumptions), _sets(study), largest_epsilon(study)
    factors = sorted({*(one for one in _FACTORS if one * largest < HIGHEST), 1.0, max(1.0, HIGHEST / largest)})
    total = len(CROWDS) + len(factors) - 1
    crowds = []
    for place, crowd in enumerate(CROWDS):
        crowds.append(_Forecast(study, crowd, assumptions, sets, np.random.default_rng([seed, place])))
        progress("predict", place + 1, total)
    curve = []
    for place, factor in enumerate(factors):
        middle = crowds[_MIDDLE]
        curve.append(middle.joint if factor == 1.0 else middle.release(scaled(study, factor), seed))
        progress("predict", min(total, len(CROWDS) + place + 1), total)
    tasks = tuple(_task(study, name, place, crowds, factors, curve) for place, name in enumerate(sets))
    hardest = max(tasks, key=lambda task: task.joint)
    quality = f"{hardest.task.split(',')[0]} would be {hardest.joint:.2f} from the population"
    if hardest.joint > POOR:
        quality += f", which is poor (above {POOR:g}): use more people, a larger epsilon, or fewer columns and values"
    verdict, words = verdict_of(tasks, "comparison", quality)
    rounds = sum(not room.parity for room in study.plan_as(SynthesisPlan).size.rooms)
    return Advice(
        study=study.name,
        digest=study.digest,
        verdict=verdict,
        words=words,
        people=people,
        tasks=tasks,
        assumptions=(
            *declared_words(study, assumptions),
            f"{rounds} rounds: all columns, all pairs, then about {round(fmean(one.chosen[0] for one in crowds))} "
            "chosen tables of two to five columns",
            *IN_WORDS,
        ),
        highest=HIGHEST,
    )


def _sets(study: Study) -> dict[str, list[tuple[str, ...]]]:
    """Return the sets of columns of every task, by its name."""
    names, target = study.schema.names, getattr(study.protocol, "target", None)
    found = {"one column": column_sets(names, 1)[:_SETS]}
    if pairs := column_sets(names, 2)[:_SETS]:
        found["two columns"] = pairs
    if target is not None and len(names) > 1:
        found[f"{target} with a column"] = [(name, target) for name in names if name != target]
    return found


class _Forecast:
    """One artificial population, the study's people drawn from it, and what would be released about them."""

    def __init__(
        self,
        study: Study,
        crowd: Crowd,
        assumptions: Assumptions,
        sets: dict[str, list[tuple[str, ...]]],
        draws: np.random.Generator,
    ) -> None:
        self._domain, self._sets = study.schema.domain, list(sets.values())
        sizes = [party.people or 0 for party in study.parties]
        people = sum(sizes)
        drawn = made_up(study.schema, crowd, people + max(_POPULATION, 2 * people), assumptions, draws)
        self._people = {name: codes[:people] for name, codes in drawn.items()}
        self._everybody = {name: codes[people:] for name, codes in drawn.items()}
        ends = np.cumsum([0, *sizes])
        self.alone = {
            party.name: self._distances({name: codes[start:end] for name, codes in self._people.items()})
            for party, start, end in zip(study.parties, ends, ends[1:], strict=False)
        }
        self.pooled = self._distances(self._people)
        self.chosen: list[int] = []
        self.joint = self.release(study, int(draws.integers(2**31)))

    def release(self, study: Study, seed: int) -> Distances:
        """Return the distances of the table that a study would release."""
        plan, draws = study.plan_as(SynthesisPlan), np.random.default_rng(seed)
        counts = made_up_counts(self._people, plan.account, plan.size.rooms, draws)
        fitted = synthesise(plan.selector, counts, plan.account.whole, zeros=plan.impossible)
        self.chosen.append(sum(len(one) for one in fitted.rounds[2:]))
        rows = fitted.sample(plan.drawn(fitted.total), draws)
        return self._distances({name: column.astype(np.int64) for name, column in rows.items()})

    def _distances(self, codes: Codes) -> Distances:
        return [distance(codes, self._everybody, self._domain, sets) for sets in self._sets]


def _task(
    study: Study, name: str, place: int, crowds: list[_Forecast], factors: list[float], curve: list[Distances]
) -> TaskAdvice:
    joint, errors = [one.joint[place] for one in crowds], [one[place] for one in curve]
    parties = []
    for party in study.parties:
        alone = [one.alone[party.name][place] for one in crowds]
        pays = {one < other for one, other in zip(joint, alone, strict=True)}
        own, factor = fmean(alone), break_even(factors, errors, alone[_MIDDLE])
        depends = len(pays) > 1
        parties.append(party_advice(study, party.name, own=own, joint=fmean(joint), factor=factor, depends=depends))
    return TaskAdvice(
        task=f"tables of {name}, total variation distance",
        joint=fmean(joint),
        joint_range=(min(joint), max(joint)),
        pooled=fmean(one.pooled[place] for one in crowds),
        parties=tuple(parties),
    )
