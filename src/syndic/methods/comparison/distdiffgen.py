"""Two parties specialise their columns along taxonomy trees for one class, after DistDiffGen (Mohammed et al. 2014).

Both parties know the class attribute, the paper's assumption: `label` is a column of both. Each releases noisy scores
of all groups of its trees (`syndic.model.latent.diffgen`). The coordinator specialises the group with the highest noisy
score, as many times as the study says. A leaf is a cell of both parties' groups and the class. Parties count the leaves
by one secure product (`syndic.mpc.product`), each adds a share of the noise to its share of them, and the masked sum
(`syndic.mpc.masked_sum`) opens once. Rows are drawn from it, values uniformly within their groups.

*Neighbours*: one person's values are replaced, at both parties at once; which people are in the data is public. *Cost*:
one account of Gaussian privacy in two parts, scores and leaves; both parties are charged for both. *Sensitivity*:
scores of a column with d groups on a path change by 2 d - 1 in squared l2, proven there, so all of them by the sum over
the columns of both parties. Leaves are one table, whichever groups were chosen: two counts change by one.

*Who sees what*: everybody sees the noisy scores, the groups and the noisy leaves. The coordinator deals the triples and
forwards sealed rows that it cannot read. A partner knows its own share of the noise; with `colluding` 1 the other share
is enough. The coordinator and one party together could read the other's groups. *Semi-honest*.

Departures from the paper. Scores are released once with noise. The paper draws each choice by an exponential mechanism
between the parties, with shared random numbers and comparisons under encryption. Here a choice costs nothing more, and
no party learns anything about the other that is not published. Report-noisy-max on each party's best score is no
alternative: its noise hides which candidate won, but the probability of a best score is a product over all candidates,
and one person may change every factor. Noise is integer and Gaussian, under `replace`; values are grouped by the bins
of the study, so there is no search for split points.
"""

import hashlib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, final

import msgspec
import numpy as np
from numpy.typing import NDArray

from syndic.data import decode_codes
from syndic.errors import InputError, RefusedError
from syndic.kernel import PARTNERS, SAME_PEOPLE, Message, Nothing, Party, Session, Terms, encode, step
from syndic.methods.comparison import DEALT
from syndic.methods.comparison.distdiffgen_plan import DistdiffgenPlan, Taxonomy
from syndic.methods.layout import Names
from syndic.methods.onehot import hot_rows
from syndic.methods.product_steps import PlainProductSteps
from syndic.methods.synthesis.account import account_of
from syndic.methods.synthesis.cut import CutRound
from syndic.methods.synthesis.result import PublishedRows, RowsNote, notes_of, read_rows
from syndic.model.latent.diffgen import Cut, balanced, max_scores, specialised, tree_of
from syndic.model.latent.groups import positive
from syndic.model.markov import Measurement
from syndic.model.markov.sample import draw_column
from syndic.mpc.dealer import deal_products
from syndic.mpc.graph import sum_graph
from syndic.mpc.key import PublicKey
from syndic.mpc.masked_sum import MaskedSums, SumMasked
from syndic.mpc.order import advance
from syndic.mpc.product import SecureProduct
from syndic.mpc.product_messages import ProductStart
from syndic.random import generator

_CUT = "groups of the leaves"
_SCORES = "scores of groups"


class Scores(Message):
    """A party's noisy scores of the groups of its columns, column after column, in units of the fine noise."""

    values: NDArray[np.int64]


class Chosen(Message):
    """The groups of every column by which leaves are counted, as indices into the columns' trees."""

    common = ("cut",)
    cut: dict[str, tuple[int, ...]]

    @property
    def digest(self) -> str:
        """The digest to which the secure product of the leaves is bound."""
        return hashlib.sha256(encode(self)).hexdigest()


class SplitNote(RowsNote):
    """`groups`: the labels of every column's groups. `scores`: noisy scores of all groups of its tree, root first.

    `standard_deviation` is that of a score, in rows.
    """

    groups: dict[str, tuple[tuple[str, ...], ...]]
    scores: dict[str, tuple[float, ...]]
    standard_deviation: float


@final
class Distdiffgen(PlainProductSteps, tag="distdiffgen"):
    """Parameters of the two-party specialisation.

    `label`: the class, a column that both parties have. `specialisations`: how many groups are replaced by their
    children. `taxonomies`: trees of values; a column without one gets a balanced binary tree over its ordered values.
    `choice_share`: the part of the budget for scores. `colluding`: 1 makes each share of the noise
    enough by itself; with 0 the guarantee is for everybody but the parties. `rows`: by default the public number of
    people.
    """

    title: ClassVar[str] = "Two-party specialisation along taxonomy trees, for a class"
    paper: ClassVar[str] = "after DistDiffGen, Mohammed et al. 2014; triples after Beaver 1991"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "vertical"
    trust: ClassVar[str] = DEALT

    label: str
    specialisations: int = 10
    taxonomies: tuple[Taxonomy, ...] = ()
    # a default factory, since JSON Schema has no fractions
    choice_share: Fraction = msgspec.field(default_factory=lambda: Fraction(1, 2))
    colluding: int = 1
    rows: int | None = None

    def __post_init__(self) -> None:
        if self.colluding not in (0, 1):
            raise ValueError(f"colluding ({self.colluding}) must be 0 or 1: a table's noise has two shares")
        if not 1 <= self.specialisations <= 100:
            raise ValueError(f"specialisations ({self.specialisations}) must be from 1 to 100")
        if not 0 < self.choice_share < 1:
            raise ValueError(f"choice_share ({float(self.choice_share):g}) must be above 0 and below 1")
        if self.rows is not None and self.rows < 0:
            raise ValueError(f"rows ({self.rows}) must not be negative")
        if len({one.column for one in self.taxonomies}) != len(self.taxonomies):
            raise ValueError("taxonomies names the same column twice")

    # the same people at both parties; Gaussian noise needs delta. `plan` checks that both have the label
    requires = msgspec.structs.replace(SAME_PEOPLE, columns="any")

    def plan(self, terms: Terms) -> DistdiffgenPlan:
        """Make the trees, split the budget between scores and leaves, and calibrate the noise of the scores."""
        self._check_columns(terms)
        given = {one.column: one.tree(terms.schema) for one in self.taxonomies}
        trees = {
            party.name: {
                name: given[name] if name in given else tree_of(balanced(terms.schema[name].size))
                for name in party.columns or ()
                if name != self.label
            }
            for party in terms.parties
        }
        shares = self.choice_share, 1 - self.choice_share
        account = account_of(terms, lambda whole: [whole * one for one in shares], colluding=self.colluding, missing=0)
        # at least the two changed counts of the table that the account is planned for
        moved = max(2, sum(tree.moved for own in trees.values() for tree in own.values()))
        return DistdiffgenPlan(
            terms=terms,
            account=account,
            trees=trees,
            label=self.label,
            scored=account.alone.noise_for(1, moved, moved, moved),
            masked_sums=MaskedSums(label="leaves", graph=sum_graph(PARTNERS, colluding=self.colluding, missing=0)),
            times=self.specialisations,
            rows=self.rows if self.rows is not None else terms.parties[0].people or 0,
        )

    def _check_columns(self, terms: Terms) -> None:
        """Raise `InputError` unless there are two parties with different columns, and both have the label."""
        label = self.label
        if len(terms.parties) != PARTNERS:
            raise InputError(f"distdiffgen needs exactly two parties; the study has {len(terms.parties)}")
        held = [tuple(party.columns or ()) for party in terms.parties]
        if any(label not in columns for columns in held):
            raise InputError(f"label ({label}) must be a column of both parties: both use it to score their columns")
        apart = [name for columns in held for name in columns if name != label]
        if sorted(apart) != sorted(set(terms.schema.names) - {label}) or any(len(one) < PARTNERS for one in held):
            raise InputError(
                "every column of the schema but the label must be at exactly one party, and each party must have one"
            )
        if terms.schema[label].size < PARTNERS:
            raise InputError(f"label ({label}) must have two levels or more")
        unknown = [one.column for one in self.taxonomies if one.column not in apart]
        if unknown:
            raise InputError(f"taxonomies: {unknown[0]} must be a column of a party, and not the label")

    # The parties' side.

    @step(reveals="noisy")
    def score(self, party: Party[DistdiffgenPlan], message: Nothing) -> Scores:
        """Score every group in the trees of own columns by the class, and add noise."""
        del message
        advance(party, _SCORES, 1)
        trees, label = party.plan.trees[party.name], party.plan.label
        tables = party.table.marginals([(name, label) for name in trees])
        found = [max_scores(tree, one.values) for tree, one in zip(trees.values(), tables, strict=True)]
        exact = np.concatenate([np.zeros(0, dtype=np.int64), *found])
        why = f"noisy scores of {exact.size} groups of values"
        return Scores(values=party.release(party.plan.scored, exact, why=why))

    @step(reveals="public")
    def take_cut(self, party: Party[DistdiffgenPlan], message: Chosen) -> Nothing:
        """Check the chosen groups against this party's own study, and store them."""
        trees = party.plan.every
        advance(party, _SCORES, 2)
        if message.cut.keys() != trees.keys():
            raise RefusedError("the groups must cover all columns except the label")
        try:
            for name, tree in trees.items():
                tree.group_of(message.cut[name])
        except InputError as error:
            raise RefusedError(str(error)) from None
        if not party.plan.fits(message.cut):
            raise RefusedError("the groups give a party more cells than the study allows")
        party.remember(_CUT, message)
        return Nothing()

    def product_at(self, party: Party[DistdiffgenPlan]) -> SecureProduct:
        """Return the product of the leaves of the chosen groups."""
        return _round(party).multiplied

    def product_rows(self, party: Party[DistdiffgenPlan], start: int, stop: int) -> NDArray[np.uint8]:
        """Return rows of the one-hot matrix of the party's cells, without the last cell. Private."""
        plan, cut = party.plan, party.recall(_CUT, Chosen).cut
        batches = party.table.batches(plan.domain(party.name, cut).names)
        width = plan.width(party.name, cut) - 1
        return hot_rows(batches, lambda coded: [plan.cells(party.name, cut, coded)], (width,), (start, stop))

    @step(reveals="public")
    def product_keys(self, party: Party[DistdiffgenPlan], message: ProductStart) -> PublicKey:
        """Store the dealer's seed, make a key pair, publish the public key."""
        return self.product_at(party).product_keys(party, message)

    @step(reveals="masked")
    def count_leaves(self, party: Party[DistdiffgenPlan], message: Nothing) -> SumMasked:
        """Reconstruct shares of all leaf counts, add a share of the noise, and mask the result."""
        del message
        why = "noisy counts of the leaves by class"
        return _round(party).count(party, party.plan.masked_sums, 1, partial(_count_cells, party), why=why)

    # The coordinator's side.

    def coordinate(self, session: Session[DistdiffgenPlan]) -> PublishedRows:
        """Collect scores, specialise groups, count the leaves, draw rows."""
        plan, draws = session.plan, generator(session.randomness)
        sums = plan.masked_sums.start(session)
        scores = _scores_by_column(plan, session.ask(self.score, Nothing()))
        chosen = Chosen(cut=specialised(plan.every, scores, plan.times, plan.fits))
        session.ask(self.take_cut, chosen)
        now = plan.round_of(chosen.cut, chosen.digest)
        deal_products(session, self, now.multiplied)
        opened = sums.opened(sums.send(self.count_leaves, lambda _: Nothing()), {}, now.layout.dimension, now.ring)
        leaves = _leaf_table(plan, chosen.cut, opened.values / now.share.scale, now.variances[0])
        table = decode_codes(plan.terms.schema, _draw_rows(plan, chosen.cut, leaves, draws), draws)
        groups = {}
        for name, nodes in chosen.cut.items():
            labels, levels = plan.terms.schema[name].labels(), plan.every[name].levels
            groups[name] = tuple(tuple(labels[level] for level in levels[node]) for node in nodes)
        note = SplitNote(
            tables=notes_of([leaves]),
            groups=groups,
            scores={name: tuple(found.tolist()) for name, found in scores.items()},
            standard_deviation=plan.scored.variance(1) ** 0.5,
        )
        return PublishedRows(table=table, tables=(leaves,), note=note)

    def read(self, plan: DistdiffgenPlan, folder: Path) -> PublishedRows:
        """Read back the rows, the noisy leaves and the groups."""
        del plan
        return read_rows(folder, SplitNote)


def _round(party: Party[DistdiffgenPlan]) -> CutRound:
    """Return the plan for counting the leaves of the chosen groups."""
    chosen = party.recall(_CUT, Chosen)
    return party.plan.round_of(chosen.cut, chosen.digest)


def _count_cells(party: Party[DistdiffgenPlan], tables: Sequence[Names]) -> list[NDArray[np.int64]]:
    """Return the number of rows in each cell of the party's side, as one table. Private."""
    del tables
    plan, cut = party.plan, party.recall(_CUT, Chosen).cut
    counts = np.zeros(plan.width(party.name, cut), dtype=np.int64)
    for batch in party.table.batches(plan.domain(party.name, cut).names):
        counts += np.bincount(plan.cells(party.name, cut, batch), minlength=counts.size)
    return [counts]


def _scores_by_column(plan: DistdiffgenPlan, answers: Mapping[str, Scores]) -> dict[str, NDArray[np.float64]]:
    """Split the noisy scores of both parties by column."""
    scores: dict[str, NDArray[np.float64]] = {}
    for party, trees in plan.trees.items():
        values = answers[party].values / plan.scored.scale
        ends = np.cumsum([len(tree.inner) for tree in trees.values()])
        if values.shape != (ends[-1],):
            raise InputError(f"{party} answered with {values.size} scores, which do not fit its trees")
        scores |= dict(zip(trees, np.split(values, ends[:-1]), strict=True))
    return scores


def _leaf_table(plan: DistdiffgenPlan, cut: Cut, values: NDArray[np.float64], variance: float) -> Measurement:
    """Return the opened leaves: an axis for every column that was specialised, and one for the class."""
    left, right = (plan.domain(party, cut) for party in plan.trees)
    table = values.reshape([plan.width(party, cut) for party in plan.trees])[: left.size, : right.size]
    sizes = {name: one[name] for one in (left, right) for name in one.names if one[name] > 1}
    return Measurement(tuple(sizes), table.reshape(tuple(sizes.values())), variance)


def _draw_rows(
    plan: DistdiffgenPlan, cut: Cut, leaves: Measurement, draws: np.random.Generator
) -> dict[str, NDArray[Any]]:
    """Draw leaves in proportion to their counts, negative ones set to 0, and values uniformly within their groups."""
    first = np.zeros(plan.rows, dtype=np.int64)
    cells = draw_column(positive(leaves.values).reshape(1, -1), first, draws)
    places = dict(zip(leaves.names, np.unravel_index(cells, leaves.values.shape), strict=True))
    codes: dict[str, NDArray[Any]] = {plan.label: places.get(plan.label, first)}
    for name, tree in plan.every.items():
        weights = np.zeros((len(cut[name]), len(tree.levels[0])))
        for place, node in enumerate(cut[name]):
            weights[place, list(tree.levels[node])] = 1.0
        codes[name] = draw_column(weights, places.get(name, first), draws)
    return codes
