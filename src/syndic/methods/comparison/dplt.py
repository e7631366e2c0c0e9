"""A latent tree over aligned rows, after DPLT (Tang, Cheng, Su, Chen and Shao 2021), for columns of any size.

Each party groups its columns and learns, from noisy counts of a group, one latent attribute that represents it. Tables
of all pairs of latent attributes open with noise in one masked sum (`syndic.mpc.masked_sum`): those across two parties
come from secure products (`syndic.mpc.product`), the others from the party that has both. The coordinator finds the
spanning tree with the most mutual information, fits it, and draws latent levels along the tree and then each group's
values.

*Neighbours*: one person's values are replaced, at all parties at once; which people are in the data is public. *Cost*:
one account of Gaussian privacy in three parts: scores of pairs of columns, tables of groups, tables of latent pairs.
Every party is charged for all parties' parts. *Sensitivity*: a score, half the l1 distance of a pair's table from the
product of its margins, changes by at most 3 rows, so all P of them by 9 P in squared l2. Tables of G groups change by
2 G. A latent attribute is a function of a person's values that depends only on noisy counts, so tables of T latent
pairs change by 2 T. Groups and the meaning of latent levels follow from noisy numbers: they cost nothing more.

*Who sees what*: everybody sees the noisy scores, tables, groups and the tree. The coordinator deals the triples and
forwards sealed rows that it cannot read. A party knows its own share of the noise; with `colluding` 1 the others' are
enough. The coordinator and one party together could read the latent levels of that party's partners.
*Semi-honest*.

Departures from the paper, which treats binary attributes. Groups are scored by distance from independence, whose
sensitivity is 3 rows; that of mutual information is about log n. Noisy scores of all pairs replace an exponential
mechanism for each column. A person has one latent level; the paper multiplies probabilities of levels. The tables of
pairs serve both for the tree and for its parameters. There is no index of higher latent attributes to save pairs.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import ClassVar, Final, Literal, final

import msgspec
import numpy as np
from numpy.typing import NDArray

from syndic.data import Coded, Domain, Table, decode_codes
from syndic.data.counting import DenseCounter
from syndic.errors import InputError
from syndic.kernel import SAME_PEOPLE, Message, Nothing, Party, Session, Terms, schema_of, step
from syndic.methods.comparison import DEALT
from syndic.methods.comparison.dplt_plan import (
    GAP_SENSITIVITY,
    DpltPlan,
    count_pairs,
    name_latents,
    plan_pairs,
    useful_cells,
    useful_levels,
)
from syndic.methods.layout import Names
from syndic.methods.onehot import hot_rows
from syndic.methods.product_steps import PlainProductSteps
from syndic.methods.synthesis.account import account_of
from syndic.methods.synthesis.result import PublishedRows, RowsNote, notes_of, read_rows
from syndic.model.latent.groups import Latent, latent_of, packed, regrouped
from syndic.model.latent.tree import latent_tree
from syndic.model.markov import Measurement
from syndic.model.selection.curator import SCORE_STEP, independence_gap
from syndic.mpc.dealer import deal_products
from syndic.mpc.graph import sum_graph
from syndic.mpc.masked_sum import MaskedSum, SumMasked
from syndic.mpc.order import advance
from syndic.mpc.product import SecureProduct
from syndic.random import generator

_LATENTS: Final = "latent attributes of own columns"
_MOST_LEVELS: Final = 64


class Learned(Message):
    """What a party released about its own columns: scores in steps, counts in rows, both in units of the fine noise.

    `groups` has the columns of each latent attribute, `level_of` its level for every combination of their values.
    """

    scores: NDArray[np.int64]
    counts: NDArray[np.int64]
    groups: dict[str, tuple[str, ...]]
    level_of: dict[str, NDArray[np.int64]]


class LatentNote(RowsNote):
    """`groups`: the columns behind each latent attribute; `level_of`: its level for each combination of their values.

    `links`: the pairs of latent attributes that are neighbours in the tree, the closest first.
    """

    groups: dict[str, tuple[str, ...]]
    level_of: dict[str, tuple[int, ...]]
    links: tuple[tuple[str, str], ...]


@final
class Dplt(PlainProductSteps, tag="dplt"):
    """Parameters of the latent tree.

    `group`: the most columns of a group. `group_cells`: the most combinations of their values; by default as many as
    can be distinguished from noise. `levels`: the number of levels of a latent attribute, 2 in the paper; by default
    as many as can be distinguished from noise in a table of two, up to 16. `score_share` and `pattern_share`: the parts
    of the budget for scores and for tables of groups; the rest is for tables of latent attributes. `colluding`:
    with 0 the guarantee is for everybody but the parties. `rows`: by default the public number of people.
    """

    title: ClassVar[str] = "Latent tree over columns of different parties"
    paper: ClassVar[str] = "after DPLT, Tang et al. 2021; Ver Steeg and Galstyan 2014; triples after Beaver 1991"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "vertical"
    trust: ClassVar[str] = DEALT

    group: int = 4
    group_cells: int | None = None
    levels: int | None = None
    # a default factory, since JSON Schema has no fractions
    score_share: Fraction = msgspec.field(default_factory=lambda: Fraction(1, 10))
    pattern_share: Fraction = msgspec.field(default_factory=lambda: Fraction(1, 2))
    colluding: int = 1
    rows: int | None = None

    def __post_init__(self) -> None:
        if self.colluding < 0:
            raise ValueError(f"colluding ({self.colluding}) must not be negative")
        if self.group < 1 or (self.group_cells is not None and self.group_cells < 1):
            raise ValueError("group and group_cells must be at least 1")
        if self.levels is not None and not 2 <= self.levels <= _MOST_LEVELS:
            raise ValueError(f"levels ({self.levels}) must be from 2 to {_MOST_LEVELS}")
        if self.rows is not None and self.rows < 0:
            raise ValueError(f"rows ({self.rows}) must not be negative")
        learning = self.score_share + self.pattern_share
        if min(self.score_share, self.pattern_share) <= 0 or learning >= 1:
            raise ValueError("score_share and pattern_share must be positive and leave something: their sum is below 1")

    # the same people, different columns at each party; Gaussian noise needs delta
    requires = SAME_PEOPLE

    def plan(self, terms: Terms) -> DpltPlan:
        """Split the budget between scores, groups and latent pairs; size groups and levels by the noise."""
        domains = {party.name: schema_of(terms, party.name).domain for party in terms.parties}
        pairs, people = count_pairs(domains), terms.parties[0].people or 1
        learning = self.score_share + self.pattern_share
        shares = (*((self.score_share, self.pattern_share) if pairs else (learning,)), 1 - learning)
        account = account_of(terms, lambda whole: [whole * one for one in shares], colluding=self.colluding, missing=0)
        cells = self.group_cells or useful_cells(account, people, len(terms.schema.columns))
        groups = {name: packed(domain, self.group, cells) for name, domain in domains.items()}
        count = sum(len(found) for found in groups.values())
        levels = self.levels or useful_levels(account, people, count)
        now = plan_pairs(terms, account, groups, levels)
        graph = sum_graph(len(terms.parties), colluding=self.colluding, missing=0)
        return DpltPlan(
            terms=terms,
            account=account,
            group=self.group,
            most_cells=cells,
            packed=groups,
            levels=levels,
            # in steps: rounding at both neighbours adds up to one
            scored=account.alone.noise_for(1, pairs * (GAP_SENSITIVITY / SCORE_STEP + 1) ** 2, pairs, pairs)
            if pairs
            else None,
            counted=account.alone.noise_of(len(account.events) - 1, count, 2 * count),
            round=now,
            product=now.multiplied,
            masked_sum=MaskedSum(label="latent pairs", graph=graph, count=now.layout.dimension, ring=now.ring),
            rows=people if self.rows is None else self.rows,
        )

    # The parties' side.

    @step(reveals="noisy")
    def learn(self, party: Party[DpltPlan], message: Nothing) -> Learned:
        """Score pairs of own columns, group them, count the groups, and learn their latent attributes."""
        del message
        advance(party, _LATENTS, 1)
        learned = _learn(party)
        party.remember(_LATENTS, learned)
        return learned

    def product_at(self, party: Party[DpltPlan]) -> SecureProduct:
        """Return the product of all latent attributes of different parties."""
        return party.plan.product

    def product_rows(self, party: Party[DpltPlan], start: int, stop: int) -> NDArray[np.uint8]:
        """Return rows of the one-hot matrix of latent attributes, without the last level of each. Private."""
        latents = _recall_latents(party)
        return hot_rows(
            _batches(party.table, latents),
            lambda coded: [latent.encode(coded) for latent in latents.values()],
            (party.plan.levels - 1,) * len(latents),
            (start, stop),
        )

    @step(reveals="masked")
    def count(self, party: Party[DpltPlan], message: Nothing) -> SumMasked:
        """Count local tables of latent pairs, reconstruct shared tables, add noise, and mask the result."""
        del message
        now, why = party.plan.round, f"{len(party.plan.round.layout.tables)} tables of latent attributes"
        return now.count(party, party.plan.masked_sum, 1, partial(_count_latents, party), why=why)

    # The coordinator's side.

    def coordinate(self, session: Session[DpltPlan]) -> PublishedRows:
        """Collect latent attributes and their tables, find and fit the tree, draw rows."""
        plan, draws = session.plan, generator(session.randomness)
        now, total = plan.round, plan.masked_sum
        sums = total.start(session)
        learned = session.ask(self.learn, Nothing())
        deal_products(session, self, plan.product)
        opened = total.open_next(sums, self.count, Nothing(), total.count, total.ring)
        groups: dict[str, tuple[Latent, Measurement]] = {}
        for party, answer in learned.items():
            groups |= _tables_of_groups(plan, party, answer)
        parts = (opened.values / now.share.scale).reshape(len(now.layout.tables), plan.levels, plan.levels)
        pairs = [Measurement(*one) for one in zip(now.layout.tables, parts, now.variances, strict=True)]
        model = latent_tree(groups, pairs, float(plan.terms.parties[0].people or 0))
        table = decode_codes(plan.terms.schema, model.sample(plan.rows, draws), draws)
        tables = (*(counts for _, counts in groups.values()), *pairs)
        note = LatentNote(
            tables=notes_of(tables),
            groups={name: latent.domain.names for name, (latent, _) in groups.items()},
            level_of={name: tuple(latent.level_of.tolist()) for name, (latent, _) in groups.items()},
            links=model.links,
        )
        return PublishedRows(table=table, tables=tables, note=note)

    def read(self, plan: DpltPlan, folder: Path) -> PublishedRows:
        """Read back the rows, the noisy tables and the tree."""
        del plan
        return read_rows(folder, LatentNote)


def _learn(party: Party[DpltPlan]) -> Learned:
    """Release scores of pairs, then counts of the groups chosen by them; latent attributes follow from the counts.

    Both are charged together before any noise is drawn: their costs add up, although the second depends on the first.
    """
    plan, domain = party.plan, party.plan.domains[party.name]
    pairs = list(itertools.combinations(domain.names, 2))
    exact = [one.values for one in party.table.marginals([*pairs, (domain.names[0],)])]
    randomness = party.charge(plan.learning, why="noisy scores of pairs of columns, and noisy counts of groups of them")
    scores = np.zeros(0, dtype=np.int64)
    if plan.scored is not None and pairs:
        gaps = np.array([independence_gap(one) for one in exact[: len(pairs)]])
        scores = plan.scored.apply(np.round(gaps / float(SCORE_STEP)).astype(np.int64), randomness)
    noisy = {frozenset(pair): float(score) for pair, score in zip(pairs, scores, strict=True)}
    groups = regrouped(domain, plan.packed[party.name], noisy, plan.group, plan.most_cells)
    tables = [one.values for one in party.table.marginals(groups)]
    counts = plan.counted.apply(np.concatenate([one.ravel() for one in tables]), randomness)
    parts = np.split(counts / plan.counted.scale, np.cumsum([one.size for one in tables])[:-1])
    draws = generator(party.key_randomness("first guess of latent attributes"))
    names = [names[0] for names in plan.round.layout.blocks[party.name]]
    latents = [
        latent_of(domain.project(group), part, plan.levels, draws) for group, part in zip(groups, parts, strict=True)
    ]
    return Learned(
        scores=scores,
        counts=counts,
        groups=dict(zip(names, groups, strict=True)),
        level_of={name: one.level_of for name, one in zip(names, latents, strict=True)},
    )


def _recall_latents(party: Party[DpltPlan]) -> dict[str, Latent]:
    kept, domain = party.recall(_LATENTS, Learned), party.terms.schema.domain
    return {name: Latent(domain.project(kept.groups[name]), level) for name, level in kept.level_of.items()}


def _count_latents(party: Party[DpltPlan], wanted: Sequence[Names]) -> list[NDArray[np.int64]]:
    """Return exact counts of latent attributes, in one pass. Private."""
    latents = _recall_latents(party)
    counter = DenseCounter(Domain(tuple(latents), (party.plan.levels,) * len(latents)), list(wanted))
    for batch in _batches(party.table, latents):
        counter.add({name: latent.encode(batch) for name, latent in latents.items()})
    return [one.values for one in counter.factors()]


def _batches(table: Table, latents: Mapping[str, Latent]) -> Iterator[Coded]:
    return table.batches(dict.fromkeys(name for one in latents.values() for name in one.domain.names))


def _tables_of_groups(plan: DpltPlan, party: str, answer: Learned) -> dict[str, tuple[Latent, Measurement]]:
    """Split one party's noisy counts into tables of groups; raise `InputError` if they do not fit the groups."""
    found, start, noise = {}, 0, plan.counted
    grouped = sorted(name for columns in answer.groups.values() for name in columns)
    if tuple(answer.groups) != name_latents(party, len(plan.packed[party])) or grouped != sorted(
        plan.domains[party].names
    ):
        raise InputError(f"{party} answered with groups that are not of its own columns, each in one of them")
    for name, columns in answer.groups.items():
        domain = plan.terms.schema.domain.project(columns)
        values = answer.counts[start : start + domain.size] / noise.scale
        start += domain.size
        level_of = answer.level_of.get(name)
        if values.size != domain.size or level_of is None or level_of.shape != (domain.size,):
            raise InputError("a party answered with counts that do not fit its groups of columns")
        latent = Latent(domain, np.clip(level_of, 0, plan.levels - 1))
        found[name] = latent, Measurement(columns, values.reshape(domain.sizes), noise.variance(1))
    return found
