"""One attack: a liar in a world and in the world of the neighbouring table, what it got, and what it saw."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from liars.checks import opened, openings, violations
from liars.coordinator import LyingCoordinator
from liars.party import LyingParty
from liars.targets import Target
from liars.world import Inside, World
from syndic_lab.audit.observation import Finding, Neighbours
from syndic_lab.audit.verdict import judge

_FEW = 50
Liar = LyingCoordinator | LyingParty


@final
@dataclass(frozen=True, kw_only=True)
class Attack:
    """What a liar did and got; `score` is its likelihood ratio under one table and under the other."""

    liar: Liar
    one: World
    other: World
    violations: list[str]
    score: tuple[float, float]
    mu_squared: float
    opened: frozenset[tuple[int, tuple[str, ...]]]

    @property
    def refusals(self) -> list[str]:
        """What honest parties, and a coordinator that follows the steps, refused."""
        asked = [each for each in self.one.asked if each.to in self.one.honest]
        said = [each.reply.text for each in asked if each.reply.code != "ok"]
        return [*said, self.liar.ended]


def attack(
    target: Target, seed: int, *, party: str = "", act: Any = None, lies: float = 0.0, twice: bool = True
) -> Attack:
    """Run a study under a liar, a party by name or else the coordinator, on two neighbouring tables.

    Without `twice` on one only: what needs a comparison is not looked at.

    Where no party's rows travel to another, the second world is asked exactly what the first was: its questions do not
    follow from other noise. Elsewhere the liar runs twice, with the same coins.
    """
    one, liar = _run(target, seed, party=party, act=act, lies=lies, other=False)
    if not twice:
        other = one
    elif target.horizontal:
        other = World(target, other=True, seed=seed, inside=Inside(party) if party else None)
        for each in one.asked:
            if each.to in one.honest:
                other.ask(each.call, each.to)
            else:
                other.asked.append(each)
    else:
        other, _ = _run(target, seed, party=party, act=act, lies=lies, other=True)
    found = Attack(
        liar=liar,
        one=one,
        other=other,
        violations=violations(one, other),
        score=_score(one, other),
        mu_squared=sum(each.mu_squared for each in openings(one, other)),
        opened=frozenset(opened(one)),
    )
    for node in (*one.nodes.values(), *other.nodes.values()):
        node.close()
    return found


def _run(target: Target, seed: int, *, party: str, act: Any, lies: float, other: bool) -> tuple[World, Liar]:
    world = World(target, other=other, seed=seed, inside=Inside(party) if party else None)
    kind: Any = LyingParty if party else LyingCoordinator
    return world, kind(world, seed, lies=lies, act=act)


def _score(one: World, other: World) -> tuple[float, float]:
    """Return the logarithm of the likelihood ratio of all that opened, by the normal law, under both tables."""
    leans = mu_squared = 0.0
    for each in openings(one, other):
        leans += float((each.noise * each.apart / each.variance).sum())
        mu_squared += each.mu_squared
    return leans - mu_squared / 2, leans + mu_squared / 2


@final
@dataclass
class Tally:
    """What many random attacks on one target came to: deviations by kind, violations, scores under both tables."""

    target: Target
    role: str
    deviations: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    scores: list[tuple[float, float]] = field(default_factory=list)
    seed: int = 0

    @property
    def count(self) -> int:
        """How many deviations there were."""
        return sum(self.deviations.values())

    def go_on(self) -> None:
        """Attack once more, with the next seed."""
        party = "" if self.role == "coordinator" else self.target.liars[self.seed % len(self.target.liars)]
        # one or two lies that change a request: more would end the run early
        lies = 0.3 if self.role == "coordinator" else 0.5
        found = attack(self.target, self.seed, party=party, lies=lies)
        self.deviations += found.liar.deviations
        self.violations += [f"seed {self.seed}: {each}" for each in found.violations]
        self.scores.append(found.score)
        self.seed += 1

    def finding(self, miss: float) -> Finding | None:
        """Hold the scores against the charge, as the audit does; None where the study claims nothing, or for few."""
        if self.role not in self.target.claimed or len(self.scores) < _FEW:
            return None
        study, (one, other) = self.target.study, np.array(self.scores, dtype=np.float64).T
        trial = Neighbours(
            view=f"a lying {self.role}",
            one=one,
            other=other,
            cost=self.target.cost,
            delta=float(study.budget.delta),
        )
        (found,) = judge(self.target.name, [trial], miss)
        return found
