"""Rows of a two-party specialisation: exact scores and cells at a party, and rows drawn from the opened leaves."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from syndic.kernel import Party
from syndic.methods.comparison.distdiffgen_plan import Plan
from syndic.methods.comparison.glued_result import RowsNote
from syndic.methods.onehot import hot_rows
from syndic.methods.refusals import check_people
from syndic.methods.synthesis.rounds import Answer
from syndic.model.latent.diffgen import Cut, max_scores
from syndic.model.latent.groups import positive
from syndic.model.markov import Measurement
from syndic.model.markov.sample import draw_column


class SplitNote(RowsNote):
    """`groups`: the labels of every column's groups. `scores`: noisy scores of all groups of its tree, root first.

    `standard_deviation` is that of a score, in rows.
    """

    groups: dict[str, tuple[tuple[str, ...], ...]]
    scores: dict[str, tuple[float, ...]]
    standard_deviation: float


def exact_scores(party: Party, plan: Plan) -> NDArray[np.int64]:
    """Return the exact scores of all groups of the party's trees, column after column. Private."""
    trees = plan.trees[party.name]
    tables = [one.values for one in party.table.marginals([(name, plan.label) for name in trees])]
    check_people(party, *(int(one.sum()) for one in tables))
    found = [max_scores(tree, table) for tree, table in zip(trees.values(), tables, strict=True)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *found])


def count_cells(party: Party, plan: Plan, cut: Cut) -> NDArray[np.int64]:
    """Return how many rows each cell of the party's side has. Private."""
    domain = plan.domain(party.name, cut)
    counts = np.zeros(plan.width(party.name, cut), dtype=np.int64)
    for batch in party.table.batches(domain.names):
        counts += np.bincount(plan.cells(party.name, cut, batch), minlength=counts.size)
    return counts


def side_rows(party: Party, plan: Plan, cut: Cut, span: tuple[int, int]) -> NDArray[np.uint8]:
    """Return rows of the one-hot matrix of the party's cells, the last left out. Private."""
    width = plan.width(party.name, cut) - 1
    batches = party.table.batches(plan.domain(party.name, cut).names)
    return hot_rows(batches, lambda coded: [plan.cells(party.name, cut, coded)], (width,), span)


def leaf_table(plan: Plan, cut: Cut, answer: Answer) -> Measurement:
    """Return the opened leaves: an axis for every column that was specialised, and one for the class."""
    left, right = plan.trees
    sides = [plan.domain(party, cut) for party in (left, right)]
    shape = tuple(plan.width(party, cut) for party in (left, right))
    table = answer.values.reshape(shape)[: sides[0].size, : sides[1].size]
    merged = sides[0].merge(sides[1])
    kept = [name for name, size in zip(merged.names, merged.sizes, strict=True) if size > 1]
    domain = merged.project(kept)
    return Measurement(domain.names, table.reshape(domain.sizes), answer.variance)


def drawn_rows(
    plan: Plan, cut: Cut, leaves: Measurement, rows: int, generator: np.random.Generator
) -> dict[str, NDArray[Any]]:
    """Draw leaves in proportion to their counts, none below zero, and values evenly within their groups."""
    cells = draw_column(positive(leaves.values).reshape(1, -1), np.zeros(rows, dtype=np.int64), generator)
    places = dict(zip(leaves.names, np.unravel_index(cells, leaves.values.shape), strict=True))
    codes: dict[str, NDArray[Any]] = {plan.label: places.get(plan.label, np.zeros(rows, dtype=np.int64))}
    for name, tree in plan.every().items():
        weights = np.zeros((len(cut[name]), len(tree.levels[0])))
        for place, node in enumerate(cut[name]):
            weights[place, list(tree.levels[node])] = 1.0
        codes[name] = draw_column(weights, places.get(name, np.zeros(rows, dtype=np.int64)), generator)
    return codes
