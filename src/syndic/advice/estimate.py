"""Predict the error of an estimate under each scheme, from public numbers; no row is read."""

import dataclasses
from math import sqrt
from typing import Any, Final

import msgspec
import numpy as np

from syndic.advice.advice import Advice, TaskAdvice, verdict_of
from syndic.advice.assume import Assumptions, check_public, moments_of, shares_of
from syndic.advice.budgets import largest_epsilon, party_advice, scaled
from syndic.advice.scale import listed
from syndic.errors import InputError
from syndic.kernel import Member, make_plan, member
from syndic.methods.estimate.estimate import Estimate
from syndic.methods.estimate.plan import EstimatePlan, Layout
from syndic.model import Gamma, Multinomial, Normal, NormalVariance
from syndic.model.families.estimate import blocks_condition
from syndic.model.families.family import Array
from syndic.study import Study

_HIGHEST: Final = 64.0
_STEPS: Final = 25
# the assumed parameters, and steps from them towards both ends of the set
_SHIFTS: Final = (0.0, -0.3, 0.3)


def advise_estimate(study: Study, assumptions: Assumptions) -> Advice:
    """Predict the error of every parameter under each scheme, and of each party alone. Reads no row."""
    protocol: Any = study.protocol
    check_public(study, assumptions)
    people = sum(party.people or 0 for party in _counting(study))
    layout = study.plan_as(EstimatePlan).layout
    theta = assumed(layout, study, assumptions)
    tasks, verdicts = [], []
    for variant in _variants(protocol, study):
        for place in range(len(theta)):
            task = _task(study, variant, layout, theta, place, people)
            tasks.append(task)
            if variant.scheme[1:] == protocol.scheme[1:]:
                verdicts.append(task)
    best = min(tasks, key=lambda task: task.joint / task.pooled)
    said = f"smallest relative error: {best.task}, {best.joint / best.pooled:.3g} times the error without noise"
    verdict, words = verdict_of(verdicts, "parameter", said)
    return Advice(
        study=study.name,
        digest=study.digest,
        verdict=verdict,
        words=words,
        people=people,
        tasks=tuple(tasks),
        assumptions=_described(study, protocol, layout, theta, assumptions),
    )


def predicted(study: Study, protocol: Estimate, theta: Array, factor: float = 1.0) -> Array:
    """Return the mean squared error of every parameter, all budgets times `factor`, without the bias of blocks."""
    layout = study.plan_as(EstimatePlan).layout
    plan = protocol.plan_from(layout, scaled(study, factor))
    nothing = np.zeros(layout.dimension, dtype=np.int64)
    names = tuple(party.name for party in study.parties)
    if plan.masked_sum:
        means = [plan.mean_of_all(names, nothing, part) for part in plan.parts]
    else:
        means = [plan.mean_of(name, nothing) for name in plan.counting]
    mean = theta if plan.blocks else layout.model.family.mean(theta)
    parts = tuple(dataclasses.replace(one, mean=mean) for one in means)
    return np.asarray(plan.combined(parts).standard_error ** 2)


def _variants(protocol: Estimate, study: Study) -> list[Estimate]:
    """Return the schemes that this study could use."""
    found = []
    for scheme in ("dssa", "dsaa", "masked"):
        blocks = protocol.blocks if scheme == "dsaa" and protocol.in_blocks else None
        variant = msgspec.structs.replace(protocol, scheme=scheme, blocks=blocks, as_published=False)
        try:
            make_plan(variant, study).check()
        except InputError:
            continue
        found.append(variant)
    return found


def assumed(layout: Layout, study: Study, assumptions: Assumptions) -> Array:
    """Return the parameters that correspond to the assumed moments or shares of the column."""
    family, column = layout.model.family, study.schema[layout.schema.names[0]]
    if listed(column):
        shares = shares_of(column, assumptions)
        whole = np.full(column.size, 0.01)
        whole[: len(shares)] = shares
        theta = whole / whole.sum() if isinstance(family, Multinomial) else whole[1:2]
        return layout.model.inside(theta)
    mean, deviation = moments_of(column, assumptions)
    if isinstance(family, Normal):
        theta = np.array([mean, deviation**2])
    elif isinstance(family, NormalVariance):
        theta = np.array([deviation**2])
    elif isinstance(family, Gamma):
        theta = np.array([(mean / deviation) ** 2, mean / deviation**2])
    else:
        return layout.model.estimate(np.array([mean]))
    return layout.model.inside(theta)


def _task(study: Study, protocol: Estimate, layout: Layout, theta: Array, place: int, people: int) -> TaskAdvice:
    ends = [layout.model.least, layout.model.least, layout.model.most]
    near = [theta + abs(shift) * (end - theta) for shift, end in zip(_SHIFTS, ends, strict=True)]
    errors = [float(predicted(study, protocol, each)[place]) for each in near]
    spread = float(layout.model.family.spread(theta)[place, place])
    factors = np.geomspace(0.01, _HIGHEST, _STEPS) / largest_epsilon(study)
    curve = np.array([float(predicted(study, protocol, theta, factor)[place]) for factor in factors])
    parties = []
    for party in _counting(study):
        own = spread / (party.people or 1)
        enough = factors[curve < own]
        factor = float(enough[0]) if enough.size else None
        parties.append(party_advice(study, party.name, own=sqrt(own), joint=sqrt(errors[0]), factor=factor))
    return TaskAdvice(
        task=f"{layout.model.family.parameters[place]} by {protocol.scheme}",
        joint=sqrt(errors[0]),
        joint_range=(sqrt(min(errors)), sqrt(max(errors))),
        pooled=sqrt(spread / people),
        parties=tuple(parties),
    )


def _counting(study: Study) -> list[Member]:
    """Return the parties that sum up the column."""
    return [member(study, name) for name in study.plan_as(EstimatePlan).counting]


def _described(
    study: Study, protocol: Estimate, layout: Layout, theta: Array, assumptions: Assumptions
) -> tuple[str, ...]:
    source = "declared" if protocol.column in assumptions.columns else "assumed"
    values = ", ".join(f"{name} {value:.4g}" for name, value in zip(layout.model.family.parameters, theta, strict=True))
    parties = _counting(study)
    smallest = min(party.people or 1 for party in parties)
    blocks = msgspec.structs.replace(protocol, scheme="dsaa", groups=(), as_published=False)
    counts = ", ".join(f"{party.name} {blocks.blocks_at(study, party.name)}" for party in parties)
    least = blocks_condition(smallest, len(parties))
    return (
        f"{protocol.column}: {values} ({source})",
        "values follow the family that the study names, and hardly any is outside the bounds",
        f"dsaa: {counts} blocks; their bias is not included; efficient only for epsilon well above {least:.3g}",
    )
