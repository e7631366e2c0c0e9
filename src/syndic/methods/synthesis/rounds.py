"""Rounds of a synthesis as a selector sees them: ask for noisy tables round by round, and remember what was opened."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.errors import InputError
from syndic.kernel import Message, Progress, silent_progress
from syndic.methods.synthesis.account import Account
from syndic.methods.synthesis.cut import CutReach
from syndic.methods.synthesis.measure import Question, RoundLimits, check_question, split
from syndic.methods.synthesis.result import AskedParities, AskedRound
from syndic.model.markov import Measurement
from syndic.model.markov.measurement import UNKNOWN
from syndic.model.selection import Grouping
from syndic.model.selection.counts import Parities, Room, Sent, endless


class Opened(Message):
    """A single party's answer with the whole noise, in units of the fine grid."""

    values: NDArray[np.int64]


@final
@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one round opened, in rows: the numbers, the largest variance, and whose rows are in them.

    `variances` has that of every table where they differ; else it is empty.
    """

    values: NDArray[np.float64]
    variance: float
    present: tuple[str, ...]
    variances: tuple[float, ...] = ()


@final
@dataclass(kw_only=True, eq=False)
class RoundCounts:
    """Asks whoever counts, and keeps what was answered. A selector sees this and nothing else of the rows.

    `people` is the number of rows where it is public.
    """

    account: Account
    rooms: Sequence[RoundLimits]
    people: int | None
    ask: "Ask"
    reach: CutReach | None = None
    progress: Progress = silent_progress
    rounds: list[AskedRound] = field(default_factory=list)
    scanned: AskedParities | None = None

    @property
    def domain(self) -> Domain:
        """The columns with all their levels."""
        return self.account.domain

    def variance(self, mu_squared: Fraction) -> float:
        """Return the variance of a count, if all parties answer, of one table at this much of the whole budget."""
        return self.account.variance(mu_squared)

    def noisier(self, table: Domain) -> float | None:
        """Return how many times that variance a table has; None if the parties cannot count it."""
        return 1.0 if self.reach is None else self.reach.noisier(table)

    def sends(self, table: Domain) -> Sent:
        """Return what parties send for a table that two of them count."""
        return {} if self.reach is None else self.reach.sends(table)

    def room(self, tables: int, domain: Domain) -> Room:
        """Return what says of one table after another if the next round, of so many, has traffic for it."""
        return endless if self.reach is None else self.reach.room(self._number, tables, domain)

    def measure(self, tables: Sequence[tuple[str, ...]], mu_squared: Fraction, grouping: Grouping) -> list[Measurement]:
        """Open noisy tables: the next round. They share its part of the budget evenly, whatever `mu_squared` says.

        What the round has no room for is left out, the last first: the others then have less noise.
        """
        del mu_squared
        number = self._number
        plain = grouping == Grouping.none(self.domain)
        reach, domain = self.reach, grouping.domain_of_groups
        takes = None if reach is None else lambda some: reach.takes(number, some, domain)
        kept = fitting(tables, domain, self.rooms[number - 1], takes)
        question = Question(number=number, tables=kept, groups=() if plain else grouping.groups)
        answer = self._answer(question)
        asked = AskedRound(
            tables=question.tables,
            groups=question.groups,
            standard_deviation=answer.variance**0.5,
            present=answer.present,
            deviations=tuple(one**0.5 for one in answer.variances),
        )
        self.rounds.append(asked)
        parts = split(question, self.domain, answer.values)
        variances = answer.variances or (answer.variance,) * len(kept)
        return [Measurement(*one) for one in zip(kept, parts, variances, strict=True)]

    def parities(self, sets: Sequence[tuple[str, ...]], mu_squared: Fraction, halves: Grouping) -> Parities:
        """Open noisy parities: the next round. Of other parties' rows than the pairs were, they say nothing.

        Sets that the parties cannot count, or that the round has no traffic for, are left out.
        """
        del mu_squared
        number, kept = self._number, tuple(sets)
        if self.reach is not None:
            kept = self.reach.fitting_sets(number, sets, halves.domain_of_groups) or (self.domain.names[:1],)
        answer = self._answer(Question(number=number, tables=kept, groups=halves.groups, parity=True))
        same = answer.present == self.rounds[-1].present
        self.scanned = AskedParities(sets=len(kept), standard_deviation=answer.variance**0.5, present=answer.present)
        variances = np.array(answer.variances or [answer.variance] * len(kept))
        return Parities(kept, answer.values, variances if same else np.full(len(kept), UNKNOWN))

    @property
    def _number(self) -> int:
        """The number of the next round."""
        number, rounds = len(self.rounds) + (self.scanned is not None) + 1, len(self.rooms)
        if number > rounds:
            raise InputError(f"all {rounds} rounds of the study were asked")
        return number

    def _answer(self, question: Question) -> Answer:
        check_question(question, self.domain, self.rooms[question.number - 1])
        self.progress("rounds", question.number - 1, len(self.rooms))
        answer = self.ask(question)
        self.progress("rounds", question.number, len(self.rooms))
        return answer


Taken = Callable[[Sequence[tuple[str, ...]]], bool]


def fitting(
    tables: Sequence[tuple[str, ...]], domain: Domain, room: RoundLimits, takes: Taken | None = None
) -> tuple[tuple[str, ...], ...]:
    """Return those of the tables, in order, that the round has room for; the columns themselves if there is none."""
    kept: list[tuple[str, ...]] = []
    left = room.cells
    for names in tables:
        size = domain.project(names).size
        if size <= left and len(kept) < room.tables and (takes is None or takes([*kept, names])):
            kept.append(names)
            left -= size
    return tuple(kept) or tuple((name,) for name in domain.names)


Ask = Callable[[Question], Answer]
