"""A party's side of a latent tree: scores, groups and latent attributes of its own columns, and rows coded by them."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syndic.data import Coded, Domain, Table
from syndic.data.counting import DenseCounter
from syndic.kernel import Message, Party
from syndic.methods.comparison.dplt_plan import Plan
from syndic.methods.onehot import hot_rows
from syndic.methods.refusals import check_people
from syndic.methods.synthesis.vertical_layout import Names
from syndic.model.latent.groups import Latent, independence_gap, latent_of, regrouped
from syndic.model.markov.curator import SCORE_STEP
from syndic.random import Randomness, generator


class Latents(Message):
    """A party's latent attributes: the columns of each, and its level for every combination of their values."""

    groups: dict[str, tuple[str, ...]]
    level_of: dict[str, NDArray[np.int64]]


class Learned(Message):
    """What a party released of its own columns. Scores are in steps and counts in rows, both on the fine grid."""

    scores: NDArray[np.int64]
    counts: NDArray[np.int64]
    groups: dict[str, tuple[str, ...]]
    level_of: dict[str, NDArray[np.int64]]


def learn_latents(party: Party, plan: Plan, most_columns: int) -> Learned:
    """Release scores of pairs, then counts of the groups that they suggest; latent attributes follow from the counts.

    Both are charged at once and before any noise: their costs add up, although the second depends on the first.
    """
    domain = plan.domains[party.name]
    pairs = list(itertools.combinations(domain.names, 2))
    exact = [one.values for one in party.table.marginals([*pairs, (domain.names[0],)])]
    check_people(party, *(int(one.sum()) for one in exact))
    randomness = party.charge(plan.learning, why="noisy scores of pairs of columns, and noisy counts of groups of them")
    scores = _noisy_scores(plan, exact[: len(pairs)], randomness)
    noisy = {frozenset(pair): float(score) for pair, score in zip(pairs, scores, strict=True)}
    groups = regrouped(domain, plan.packed[party.name], noisy, most_columns, plan.most_cells)
    tables = [one.values for one in party.table.marginals(groups)]
    check_people(party, *(int(one.sum()) for one in tables))
    counts = plan.counted.apply(np.concatenate([one.ravel() for one in tables]), randomness)
    parts = np.split(counts / plan.counted.scale, np.cumsum([one.size for one in tables])[:-1])
    draws = generator(party.key_randomness("first guess of latent attributes"))
    names = plan.latents(party.name)
    latents = [
        latent_of(domain.project(group), part, plan.levels, draws) for group, part in zip(groups, parts, strict=True)
    ]
    return Learned(
        scores=scores,
        counts=counts,
        groups=dict(zip(names, groups, strict=True)),
        level_of={name: one.level_of for name, one in zip(names, latents, strict=True)},
    )


def _noisy_scores(plan: Plan, tables: Sequence[NDArray[Any]], randomness: Randomness) -> NDArray[np.int64]:
    if plan.scored is None or not tables:
        return np.zeros(0, dtype=np.int64)
    gaps = np.array([independence_gap(one) for one in tables])
    return plan.scored.apply(np.round(gaps / float(SCORE_STEP)).astype(np.int64), randomness)


def count_latents(
    table: Table, latents: Mapping[str, Latent], levels: int, wanted: Sequence[Names]
) -> list[NDArray[np.int64]]:
    """Return exact counts of latent attributes, in one pass. Private."""
    counter = DenseCounter(Domain(tuple(latents), (levels,) * len(latents)), list(wanted))
    for batch in _batches(table, latents):
        counter.add({name: latent.encode(batch) for name, latent in latents.items()})
    return [one.values for one in counter.factors()]


def latent_rows(table: Table, latents: Mapping[str, Latent], levels: int, span: tuple[int, int]) -> NDArray[np.uint8]:
    """Return rows of the one-hot matrix of latent attributes, the last level of each left out. Private."""
    groups = (levels - 1,) * len(latents)
    return hot_rows(
        _batches(table, latents), lambda coded: [latent.encode(coded) for latent in latents.values()], groups, span
    )


def _batches(table: Table, latents: Mapping[str, Latent]) -> Iterator[Coded]:
    return table.batches(dict.fromkeys(name for one in latents.values() for name in one.domain.names))
