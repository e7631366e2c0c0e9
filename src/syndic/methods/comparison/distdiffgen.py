"""Two parties specialise their columns along taxonomy trees for one class, after DistDiffGen (Mohammed et al. 2014).

Both parties know the class attribute, the paper's assumption: `label` is a column of both. Each releases noisy scores
of all groups of its trees (`syndic.model.latent.diffgen`). The coordinator specialises the group of the highest noisy
score, as many times as the study says. Parties count the leaves, cells of both parties' groups and the class, by one
secure product (`syndic.mpc.product`), each adds a share of the noise, and the noisy counts open once. Rows are drawn
from them, values evenly within their groups.

*Neighbours*: one person's values are replaced, at both parties at once; who is in and how many are public. *Cost*: one
account of Gaussian privacy in two parts, scores and leaves; both parties are charged for both. *Sensitivity*: scores of
a column with d groups on a path move by 2 d - 1 in squared l2, proven there, so all of them by the sum over the columns
of both parties. Leaves are one table, whichever groups were chosen: two counts move by one.

*Who sees what*: everybody sees the noisy scores, the groups and the noisy leaves. The coordinator deals the triples and
carries sealed rows that it cannot read. A partner knows its own share of the noise; with `colluding` 1 the other share
is enough. Coordinator and one party together could read the other's groups. *Semi-honest*.

Departures from the paper. Scores are released once with noise, where the paper draws each choice by an exponential
mechanism between the parties, with shared random numbers and comparisons under encryption: a choice then costs nothing
more, and no party learns anything of the other that is not published. It would not do to add the noise of a noisy
maximum and to send each party's best noisy score: that noise hides which candidate won, but the chance of a best score
is a product over all candidates, and one person may change every factor of it. Noise is integer and Gaussian, under
`replace`; values are told apart by the bins of the study, so no split point is searched for.
"""

import hashlib
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, final

import msgspec
import numpy as np
from numpy.typing import NDArray

from syndic.data import decode_codes
from syndic.errors import InputError, RefusedError
from syndic.kernel import Disclosure, Message, Nothing, Party, Resources, Session, Terms, encode, member, step
from syndic.methods.comparison.distdiffgen_disclosure import check_terms, disclosure_of, estimate_of
from syndic.methods.comparison.distdiffgen_plan import Plan, Taxonomy, plan_of
from syndic.methods.comparison.distdiffgen_rows import (
    SplitNote,
    count_cells,
    drawn_rows,
    exact_scores,
    leaf_table,
    side_rows,
)
from syndic.methods.comparison.glued_result import PublishedRows, notes_of, read_rows
from syndic.methods.refusals import check_fits, check_people, wrong_size
from syndic.methods.synthesis.vertical_round import MixedNoise, OpenedRound, Round
from syndic.model.latent.diffgen import specialised
from syndic.mpc.dealer import deal_products
from syndic.mpc.order import advance
from syndic.mpc.product import SecureProduct, UsesProducts
from syndic.mpc.product_messages import ProductClose
from syndic.privacy import Event
from syndic.random import generator

_CUT = "groups of the leaves"
_SCORES = "scores of groups"


class Scores(Message):
    """A party's noisy scores of the groups of its columns, column after column, on the fine grid."""

    values: NDArray[np.int64]


class Chosen(Message):
    """The groups of every column that leaves are counted by, as places in the columns' trees."""

    cut: dict[str, tuple[int, ...]]

    @property
    def digest(self) -> str:
        """What the product of the leaves is bound to."""
        return hashlib.sha256(encode(self)).hexdigest()[:16]


@final
class Distdiffgen(UsesProducts, tag="distdiffgen"):
    """Parameters of the two-party specialisation.

    `label`: the class, a column that both parties hold. `specialisations`: how many groups are replaced by their
    children. `taxonomies`: trees of values; a column without one has its values halved again and again, in their order.
    `choice_share`: the part of the budget for scores. `colluding` is as in the vertical synthesis, `rows` by default
    the public number of people.
    """

    title: ClassVar[str] = "Two-party specialisation along taxonomy trees, for a class"
    paper: ClassVar[str] = "after DistDiffGen, Mohammed et al. 2014; triples after Beaver 1991"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "vertical"
    trust: ClassVar[str] = (
        "semi-honest: everybody follows the steps, and the coordinator, who deals the triples, pools what it knows "
        "with no party; unless the study gives identities, the coordinator must not forge keys"
    )

    label: str
    specialisations: int = 10
    taxonomies: tuple[Taxonomy, ...] = ()
    # made by a function: a fraction has no place in a JSON Schema
    choice_share: Fraction = msgspec.field(default_factory=lambda: Fraction(1, 2))
    colluding: int = 1
    rows: int | None = None

    def __post_init__(self) -> None:
        if self.colluding not in (0, 1):
            raise ValueError(f"colluding ({self.colluding}) must be 0 or 1: two partners share the noise of a table")
        if not 1 <= self.specialisations <= 100:
            raise ValueError(f"specialisations ({self.specialisations}) must be from 1 to 100")
        if not 0 < self.choice_share < 1:
            raise ValueError(f"choice_share ({float(self.choice_share):g}) must be above 0 and below 1")
        if self.rows is not None and self.rows < 0:
            raise ValueError(f"rows ({self.rows}) must not be negative")
        if len({one.column for one in self.taxonomies}) != len(self.taxonomies):
            raise ValueError("taxonomies names the same column twice")

    @property
    def simulation_only(self) -> bool:
        """It keeps its promise."""
        return False

    # The parties' side; keys, masked rows and products are those of the secure product.

    @step(reveals="noisy")
    def score(self, party: Party, message: Nothing) -> Scores:
        """Score every group of own columns' trees by the class, with noise."""
        del message
        advance(party, _SCORES, 1)
        plan = self.plan_of(party.terms)
        exact = exact_scores(party, plan)
        return Scores(values=party.release(plan.scored, exact, why=f"noisy scores of {exact.size} groups of values"))

    @step(reveals="public")
    def take_cut(self, party: Party, message: Chosen) -> Nothing:
        """Check the chosen groups against this party's own study, and keep them."""
        plan = self.plan_of(party.terms)
        trees = plan.every()
        advance(party, _SCORES, 2)
        if message.cut.keys() != trees.keys():
            raise RefusedError("the groups are not of all columns but the label")
        try:
            for name, tree in trees.items():
                tree.group_of(message.cut[name])
        except InputError as error:
            raise RefusedError(str(error)) from None
        if not plan.fits(message.cut):
            raise RefusedError("the groups make more cells at a party than the study allows")
        party.remember(_CUT, message)
        return Nothing()

    @step(reveals="masked")
    def open_leaves(self, party: Party, message: ProductClose) -> OpenedRound:
        """Complete the share to the counts of all leaves, add a share of the noise, and mask the result."""
        now, cut = self._round(party), party.recall(_CUT, Chosen).cut
        ((other, share),) = self.product_shares(party, message).items()
        counts = count_cells(party, self.plan_of(party.terms), cut)
        check_people(party, int(counts.sum()))
        self.product_unchanged(party, counts[:-1])
        pair = now.work.pair(party.name, other)
        values = now.shares(party.name, pair, share.ravel().astype(np.uint64), {(party.name,): counts})
        noise = MixedNoise(now.across, now.within, 0)
        noisy = party.contribute(noise, values, why="noisy counts of the leaves by class")
        hidden = now.ring.pack(self.product_hidden(party, other, noisy, now.ring))
        return OpenedRound(shares={other: hidden}, local=np.zeros(0, dtype=np.int64))

    def product_work(self, party: Party) -> SecureProduct:
        """Return the product of both sides' cells, for the groups that were chosen."""
        return self._round(party).work

    def product_matrix(self, party: Party, start: int, stop: int) -> NDArray[Any]:
        """Return rows of the one-hot matrix of the party's cells, the last left out."""
        matrix = side_rows(party, self.plan_of(party.terms), party.recall(_CUT, Chosen).cut, (start, stop))
        if len(matrix) != stop - start:
            raise wrong_size(party.name, member(party.terms, party.name).people)
        return matrix

    def _round(self, party: Party) -> Round:
        chosen = party.recall(_CUT, Chosen)
        return self.plan_of(party.terms).round_of(chosen.cut, chosen.digest)

    # The coordinator's side.

    def coordinate(self, session: Session) -> PublishedRows:
        """Ask for scores, specialise, count the leaves, draw rows."""
        terms, plan, draws = session.terms, self.plan_of(session.terms), generator(session.randomness)
        answers = session.ask(self.score, Nothing())
        scores: dict[str, NDArray[np.float64]] = {}
        for party, trees in plan.trees.items():
            values = answers[party].values / plan.scored.scale
            if values.shape != (sum(len(tree.inner) for tree in trees.values()),):
                raise InputError(f"{party} answered with {values.size} scores, which are not those of its trees")
            ends = np.cumsum([len(tree.inner) for tree in trees.values()])[:-1]
            scores |= dict(zip(trees, np.split(values, ends), strict=True))
        chosen = Chosen(cut=specialised(plan.every(), scores, self.specialisations, plan.fits))
        session.ask(self.take_cut, chosen)
        now = plan.round_of(chosen.cut, chosen.digest)
        opened = session.ask(self.open_leaves, deal_products(session, self, now.work))
        leaves = leaf_table(plan, chosen.cut, now.answer(opened))
        rows = self.rows if self.rows is not None else terms.parties[0].people or 0
        table = decode_codes(terms.schema, drawn_rows(plan, chosen.cut, leaves, rows, draws), draws)
        note = SplitNote(
            tables=notes_of([leaves]),
            groups={name: _labels(plan, name, nodes) for name, nodes in chosen.cut.items()},
            scores={name: tuple(found.tolist()) for name, found in scores.items()},
            standard_deviation=plan.scored.variance(1) ** 0.5,
        )
        return PublishedRows(table=table, tables=(leaves,), note=note)

    def read_result(self, terms: Terms, folder: Path) -> PublishedRows:
        """Read back the rows, the noisy leaves and the groups."""
        del terms
        return read_rows(folder, SplitNote)

    # What is known before any row is read.

    def plan_of(self, terms: Terms) -> Plan:
        """Return trees, account and noise."""
        return _plan_of(self, terms)  # type: ignore[arg-type]  # a study is frozen: it has a hash

    def check(self, terms: Terms) -> None:
        """Refuse what cannot work, with what to change."""
        check_terms(terms, self.label, [one.column for one in self.taxonomies])
        try:
            estimate = self.estimate(terms)
        except ValueError as error:
            raise InputError(f"the noise cannot be made: {error}") from None
        check_fits(terms, estimate, "set fewer specialisations or larger limits", replies=2)

    def spends(self, terms: Terms, party: str) -> tuple[Event, ...]:
        """Two events, the same for both parties: each is charged for the whole release."""
        member(terms, party)
        return self.plan_of(terms).account.events

    def estimate(self, terms: Terms) -> Resources:
        """Bytes of the largest reply, memory, time for multiplying."""
        return estimate_of(terms, self.plan_of(terms), self.specialisations, self.colluding)

    def disclosure(self, terms: Terms) -> Disclosure:
        """State what every role sees."""
        return disclosure_of(terms, self.plan_of(terms), self.colluding)


@lru_cache(maxsize=32)
def _plan_of(protocol: Distdiffgen, terms: Terms) -> Plan:
    return plan_of(terms, protocol.label, protocol.taxonomies, protocol.choice_share, protocol.colluding)


def _labels(plan: Plan, name: str, nodes: tuple[int, ...]) -> tuple[tuple[str, ...], ...]:
    labels, tree = plan.terms.schema[name].labels(), plan.every()[name]
    return tuple(tuple(labels[level] for level in tree.levels[node]) for node in nodes)
