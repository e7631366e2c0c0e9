"""Planted faults of single laws, and claims of papers that do not hold."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any, final

import numpy as np

from syndic.document import exact
from syndic.methods import Homm, Mixing
from syndic.methods.vertimrf.sketch.encode import printed_plan
from syndic.noise import DiscreteLaplace
from syndic.privacy import ApproximateEvent, Budget, Cost, Event, PureEvent, Unit
from syndic.random import Randomness, generator
from syndic_lab.audit.horizontal import REPLACE
from syndic_lab.audit.mechanisms import DELTA, stream
from syndic_lab.audit.observation import Neighbours, Trial, numbers
from syndic_lab.audit.parts import sketch_trials
from syndic_lab.audit.rehearsal import Stage
from syndic_lab.audit.setting import RELEASE, rows_of, study_of
from syndic_lab.exponential import ExponentialMechanism


@final
@dataclass(frozen=True, kw_only=True)
class Fault:
    """One fault: what was done wrong, and the trials that look for it. A control has nothing wrong."""

    name: str
    what: str
    trials: Callable[[int], Sequence[Trial]]
    control: bool = False


def laws() -> Iterator[Fault]:
    """Yield faults of mechanisms, and noise as published."""
    yield from _of_mechanisms()
    yield from _as_published()


# Faults of mechanisms.


def _of_mechanisms() -> Iterator[Fault]:
    yield Fault(
        name="coordinate-wise laplace with an l2 bound",
        what="sixteen entries move by 1 each, and the noise of each is for the length of the move, 4, not for 16",
        trials=_l2_laplace,
    )
    yield Fault(
        name="response for two codes used for five",
        what="the true one of five codes is kept with the chance that is right for two",
        trials=_wrong_response,
    )
    yield Fault(
        name="selection at twice the strength",
        what="scores that move both ways, chosen with the factor for scores that move one way",
        trials=_strong_selection,
    )
    yield Fault(
        name="averaged answers",
        what="four answers to one question, each with noise for the whole charge",
        trials=_averaged,
    )


def _pair(one: Any, other: Any, event: Event, view: str = "anyone with the output") -> list[Trial]:
    return [Neighbours(view=view, one=numbers(one), other=numbers(other), cost=Cost.of([event]), delta=0.0)]


def _l2_laplace(seed: int) -> Sequence[Trial]:
    entries, randomness = 16, stream(seed, "l2")
    noise = DiscreteLaplace(sensitivity=4, epsilon=exact(1))
    seen = [noise.apply(np.full((20_000, entries), value), randomness) for value in (1, 0)]
    one, other = (np.abs(each).sum(axis=1) - np.abs(each - 1).sum(axis=1) for each in seen)
    return _pair(one, other, noise.event)


def _wrong_response(seed: int) -> Sequence[Trial]:
    draws, count = generator(stream(seed, "response")), 20_000
    keep = exp(1) / (1 + exp(1))
    seen = []
    for code in (3, 1):
        others = (code + draws.integers(1, 5, count)) % 5
        seen.append(np.where(draws.random(count) < keep, code, others))
    return _pair(seen[0], seen[1], PureEvent(epsilon=exact(1)))


def _strong_selection(seed: int) -> Sequence[Trial]:
    randomness = stream(seed, "selection")
    twice, honest = (ExponentialMechanism(sensitivity=1, epsilon=exact(epsilon)) for epsilon in (4, 2))
    scores = np.eye(20, dtype=np.int64)[0], 1 - np.eye(20, dtype=np.int64)[0]
    one, other = ([twice.apply(each, randomness) for _ in range(15_000)] for each in scores)
    return _pair(one, other, honest.event)


def _averaged(seed: int) -> Sequence[Trial]:
    randomness, noise = stream(seed, "averaged"), DiscreteLaplace(sensitivity=1, epsilon=exact(1))
    one, other = (noise.apply(np.full((20_000, 4), value), randomness).sum(axis=1) for value in (1, 0))
    return _pair(one, other, noise.event)


# Claims of papers that do not hold.


def _as_published() -> Iterator[Fault]:
    yield Fault(
        name="printed counts under replace",
        what="scale 1 / epsilon, as published, where a person can move two counts (Su and Liu 2020)",
        trials=_printed_counts,
    )
    yield Fault(
        name="printed noise for each party by itself",
        what="columns of one person at 24 parties, each party's noise made for the whole budget (Wu et al. 2022)",
        trials=_printed_columns,
    )
    yield Fault(
        name="printed sketches",
        what="fifteen columns under one key: the person's rank shows in all of them (Zhao et al. 2024)",
        trials=_printed_sketches,
    )


def _printed_counts(seed: int) -> Sequence[Trial]:
    cells = 40_000
    protocol = Homm(as_published=True, clamp=False)
    people = {"a": (cells // 2, None)}
    study = study_of(protocol, columns=(("x", cells),), parties=people, unit=REPLACE, budget=Budget.of(1))
    seen = []
    for place in (1, 0):
        run = Stage(study, {"a": rows_of(x=range(place, cells, 2))}).run(seed + place)
        counts = np.zeros(cells)
        counts[run.result.histograms["a"].cells] = run.result.histograms["a"].counts
        pairs = counts.reshape(-1, 2)
        seen.append(pairs[:, 1].clip(0, 1) - pairs[:, 0].clip(0, 1))
    return _pair(seen[0], seen[1], PureEvent(epsilon=exact(1)), RELEASE)


def _printed_columns(seed: int) -> Sequence[Trial]:
    people, names, delta = 20_000, [f"c{place}" for place in range(24)], exact("5e-7")
    study = study_of(
        Mixing(scheme="dgm", as_published=True),
        columns=[(name, 2) for name in names],
        parties={f"p{name}": (people, (name,)) for name in names},
        unit=Unit(neighbours="replace", parties=len(names)),
        budget=Budget.of(1, delta),
    )
    runs = [
        Stage(study, {f"p{name}": rows_of(**{name: [value] * people}) for name in names}).run(seed + value)
        for value in (1, 0)
    ]
    one, other = (numbers(run.result.numbers.sum(axis=1)) for run in runs)
    claim = Cost.of([ApproximateEvent(epsilon=exact(1), delta=delta)])
    return [Neighbours(view=RELEASE, one=one, other=other, cost=claim, delta=float(delta), cuts=(0.0,))]


def _printed_sketches(seed: int) -> Sequence[Trial]:
    randomness: Randomness = stream(seed, "sketches")
    plan = printed_plan(epsilon=0.4, delta=DELTA, columns=15)
    claim = Cost.of([ApproximateEvent(epsilon=exact("0.4"), delta=exact(DELTA))])
    return sketch_trials(plan, 15, 600, randomness, claim)
