"""Audits of encodings and of critics: everybody's row is hidden by draws of its own, so each is a trial by itself."""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, Final
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from syndic.document import exact
from syndic.kernel import Message
from syndic.methods import Vertigan, Vertimrf
from syndic.methods.comparison.vertigan_plan import VertiganPlan
from syndic.methods.vertimrf.plan import VertimrfPlan
from syndic.methods.vertimrf.sketch.cost import sketch_delta
from syndic.methods.vertimrf.sketch.encode import SketchPlan
from syndic.privacy import Budget, Cost
from syndic.privacy.sampled import sampled_epsilon
from syndic.study import Study
from syndic_lab.audit.horizontal import REPLACE
from syndic_lab.audit.observation import Scores
from syndic_lab.audit.parts import log_ratios
from syndic_lab.audit.rehearsal import Run
from syndic_lab.audit.setting import RELEASE, Canaries, Setting, rows_of, study_of

OUTSIDE: Final[Mapping[str, str]] = {
    "align": "it tells the parties whom they have in common, outside differential privacy: no epsilon to break",
    "describe": "its sums are opened by the code of `marginals`, which has audits; neighbours are enumerated in tests",
    "survival": "its one table is counted and opened by the code of `marginals`, which has audits",
}
"""Methods without an audit, and why."""


class Critic(Message):
    """What a party keeps of its critic: weights and running squares, as 32-bit floats."""

    weights: bytes
    squares: bytes


COORDINATOR: Final = "coordinator, without the key"
PEOPLE: Final = 100
# what parties say of their own columns is a fitted model: little of the budget goes there, and the rest is looked at
_LOCAL: Final = Fraction(1, 10)
_POINTS: Final = 2**13
# of RMSprop, in `syndic.model.gan.shape`
DECAY: Final = 0.99


def encoded() -> Iterator[tuple[str, str, Callable[[], Setting]]]:
    """Yield names, methods and settings, each made when it is asked for: sketches and samples take seconds to account.

    The one that needs torch is there only where that is installed.
    """
    yield "vertimrf sketch", "vertimrf", sketched
    yield "vertimrf oracle", "vertimrf", responses
    if find_spec("torch") is not None:
        yield "vertigan", "vertigan", _pushes
        yield "vertigan, worst gradients", "vertigan", critics


def sketched() -> Setting:
    """Sketch one column of each party, beside their own models."""
    plan = Vertimrf(local_share=_LOCAL, bins=2 * PEOPLE, repetitions=20, phantoms=8, cap=6)
    return sketches_of(plan, {"a": ("x",), "b": ("y",)})


def sketches_of(protocol: Vertimrf, parties: Mapping[str, tuple[str, ...]]) -> Setting:
    """Give everybody a value of their own in every column, or the next one: nobody else has either.

    An attacker asks whether all sketches show the same ranks, which they may under one key.
    """
    study = study_of(
        protocol,
        columns=[(name, 2 * PEOPLE) for held in parties.values() for name in held],
        parties={party: (PEOPLE, held) for party, held in parties.items()},
        unit=REPLACE,
        budget=Budget.of(6, "0.0001"),
    )
    one, other = (
        {party: rows_of(**{name: range(place, 2 * PEOPLE, 2) for name in held}) for party, held in parties.items()}
        for place in (0, 1)
    )
    planned = study.plan_as(VertimrfPlan)
    account: Any = planned.account
    charge = Cost.of([account.encoded])
    curve = _sketch_curve(account.sketches, len(planned.layout.pairs)) | {
        float(study.delta): float(account.encoded.epsilon)
    }
    return Setting(
        name="vertimrf sketch",
        study=study,
        one=one,
        other=other,
        canaries={COORDINATOR: Canaries(sees=_ranks, cost=charge, curve=curve)},
        until="sketch",
        quick=5,
        full=300,
    )


def _sketch_curve(plan: SketchPlan, keys: int) -> dict[float, float]:
    """Return what is claimed of sketches at other deltas: each is the least that holds at some epsilon."""
    every = {epsilon: _sketch_delta(plan, keys, epsilon) for epsilon in (1.0, 1.5, 2.0, 3.0, 4.0)}
    return {delta: epsilon for epsilon, delta in every.items() if delta < 1}


def _sketch_delta(plan: SketchPlan, keys: int, epsilon: float) -> float:
    return sketch_delta(plan, columns=2, keys=keys, epsilon=epsilon, neighbours="replace", points=_POINTS).upper


def _ranks(run: Run) -> Scores:
    """Return, for everybody, how much better the sketches fit the first value than the second."""
    plan: Any = run.study.plan_as(VertimrfPlan).account.sketches
    said = run.replies("sketch")
    sketches = np.concatenate([said[party].ranks.astype(np.int64) for party in ("a", "b")], axis=1)
    ranks = sketches.reshape(len(sketches), -1, 2 * PEOPLE)
    values = log_ratios(plan, ranks.transpose(0, 2, 1).reshape(-1, ranks.shape[1]))
    values = values.reshape(len(sketches), 2 * PEOPLE).sum(axis=0)
    return np.asarray(values[0::2] - values[1::2])


def responses() -> Setting:
    """Look at responses beside the parties' own models."""
    return responses_of(Vertimrf(way="oracle", local_share=_LOCAL), Budget.of(4, "0.0001"))


def responses_of(protocol: Vertimrf, budget: Budget) -> Setting:
    """Give everybody one value in all columns, or the other."""
    parties = {"a": ("x", "w"), "b": ("y",)}
    study = study_of(
        protocol,
        columns=(("x", 2), ("w", 2), ("y", 2)),
        parties={party: (PEOPLE, held) for party, held in parties.items()},
        unit=REPLACE,
        budget=budget,
    )
    one, other = (
        {party: rows_of(**{name: [value] * PEOPLE for name in held}) for party, held in parties.items()}
        for value in (1, 0)
    )
    return Setting(
        name="vertimrf oracle",
        study=study,
        one=one,
        other=other,
        canaries={RELEASE: Canaries(sees=_answers, cost=Cost.of([study.plan_as(VertimrfPlan).account.encoded]))},
        until="respond",
        quick=5,
        full=300,
    )


def _answers(run: Run) -> Scores:
    codes = np.concatenate([each.codes for each in run.replies("respond").values()], axis=1)
    return np.asarray((2.0 * codes - 1).sum(axis=1))


# Critics.


def _gan(people: int, levels: int, **sizes: Any) -> Any:
    """Return a study of one column a party, of as small networks as there are."""
    tiny: dict[str, Any] = {"trunk": (2,), "branch": (2,), "noise": 1}
    return study_of(
        Vertigan(rounds=2, critic_steps=1, batch=people // 2, rows=1, **tiny, **sizes),
        columns=(("x", levels), ("y", levels)),
        parties={"a": (people, ("x",)), "b": (people, ("y",))},
        unit=REPLACE,
        budget=Budget.of(6, "0.0001"),
    )


def _pushes() -> Setting:
    """Look at what a critic says of the generator: all that travels."""
    study = _gan(8, 2, critic=64)
    one, other = (
        {party: rows_of(**{name: [value, 0, 1, 0, 1, 0, 1, 0]}) for party, name in (("a", "x"), ("b", "y"))}
        for value in (1, 0)
    )
    return Setting(name="vertigan", study=study, one=one, other=other, learnt=_pushed, quick=10, full=300)


def _pushed(run: Run) -> Scores:
    said = [each.message() for each in run.seen if each.step == "train"]
    return np.concatenate([np.frombuffer(each.trunk + each.branch, dtype="<f4").astype(np.float64) for each in said])


def critics() -> Setting:
    """Give everybody the longest gradient, along a weight of their own, one way or the other.

    Gradients that long are what the charge is for; those of small networks are shorter and less far apart. Everything
    after them is the method's own: clipping, who is drawn, the noise. The critics are looked at, which never travel.
    """
    study = _gan(PEOPLE, 2 * PEOPLE, critic=1)
    one, other = (
        {party: rows_of(**{name: range(place, 2 * PEOPLE, 2)}) for party, name in (("a", "x"), ("b", "y"))}
        for place in (0, 1)
    )
    return Setting(
        name="vertigan, worst gradients",
        study=study,
        one=one,
        other=other,
        canaries={"whoever saw all critics": Canaries(sees=_noisy_sums, cost=study.joint, curve=_critic_curve(study))},
        during=lambda: patch("syndic.methods.comparison.vertigan_work.critic_gradients", _worst),
        quick=10,
        full=600,
    )


def _critic_curve(study: Study) -> dict[float, float]:
    """Return what the account claims at other deltas than the one that is charged."""
    account = study.plan_as(VertiganPlan)
    deltas = (1e-3, 0.01, 0.03, 0.1, 0.2, 0.3)
    curve = {one: float(sampled_epsilon(account.sigma, exact(one), account.chance, account.steps)) for one in deltas}
    return {float(study.delta): float(study.budget.epsilon), **curve}


def _worst(shape: Any, weights: NDArray[Any], real: NDArray[Any], *_given: Any) -> NDArray[np.float32]:
    """Return five times the largest gradient for each row: along the weight of its pair of levels, by which of them."""
    del shape
    levels = real.argmax(axis=1)
    gradients = np.zeros((len(real), len(weights)), dtype=np.float32)
    gradients[np.arange(len(real)), levels // 2] = np.where(levels % 2 == 0, 5.0, -5.0)
    return gradients


def _noisy_sums(run: Run) -> Scores:
    """Return what the noisy sums of all steps say of everybody: the charge is for the law of these."""
    account = run.study.plan_as(VertiganPlan)
    chance, sigma = float(account.chance), float(account.sigma)
    total = np.zeros(PEOPLE)
    for party in ("a", "b"):
        states = [
            [np.frombuffer(part, dtype="<f4").astype(np.float64) for part in (each.weights, each.squares)]
            for each in run.states(party, "critic", Critic)
        ]
        for before, after in pairwise(states):
            # RMSprop backwards: the running mean of squares has the size of a step, the weights its sign
            size = np.sqrt(np.maximum(0.0, after[1] - DECAY * before[1]) / (1 - DECAY))
            moved = (np.sign(before[0] - after[0]) * size * account.batch)[:PEOPLE]
            total += _ratio(moved / sigma, chance, 1 / sigma)
    return total


def _ratio(seen: Scores, chance: float, away: float) -> Scores:
    """Return the logarithm of the likelihoods' ratio of a gradient one way and the other, drawn with a chance."""
    there = [np.log(chance) - (seen - sign * away) ** 2 / 2 for sign in (1, -1)]
    absent = np.log1p(-chance) - seen**2 / 2
    return np.asarray(np.logaddexp(there[0], absent) - np.logaddexp(there[1], absent))
