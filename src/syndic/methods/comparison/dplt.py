"""A latent tree over aligned rows, after DPLT (Tang, Cheng, Su, Chen and Shao 2021), for columns of any size.

Each party puts its columns into groups and learns, from noisy counts of a group, one latent attribute that stands for
it. Tables of all pairs of latent attributes are opened with noise: those across two parties from secure products
(`syndic.mpc.product`), the others from the party that has both. The coordinator finds the tree of most mutual
information, fits it, and draws latent levels along the tree and then each group's values.

*Neighbours*: one person's values are replaced, at all parties at once; who is in and how many are public. *Cost*: one
account of Gaussian privacy in three parts: scores of pairs of columns, tables of groups, tables of latent pairs. Every
party is charged for all parties' parts. *Sensitivity*: a score, half the l1 distance of a pair's table from the product
of its margins, moves by at most 3 rows, so all P of them by 9 P in squared l2. Tables of G groups move by 2 G. A latent
attribute is a function of a person's values that was made of noisy counts, so tables of T latent pairs move by 2 T.
Which columns are in a group, and what a latent level means, follows from noisy numbers: it costs nothing more.

*Who sees what*: everybody sees the noisy scores, tables, groups and the tree. The coordinator deals the triples and
carries sealed rows that it cannot read. A partner knows its own share of a table's noise; with `colluding` 1 the other
share is enough. Coordinator and one party together could read the latent levels of that party's partners.
*Semi-honest*.

Departures from the paper, whose own text has binary attributes: groups are scored by distance from independence, whose
sensitivity is 3 rows where mutual information's is about log n; noisy scores of all pairs replace an exponential
mechanism for each column; a person has one latent level, where the paper multiplies chances of levels; the tables of
pairs serve both for the tree and for its parameters; no index of higher latent attributes saves pairs.
"""

from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, final

import msgspec
import numpy as np
from numpy.typing import NDArray

from syndic.data import decode_codes
from syndic.errors import InputError
from syndic.kernel import Disclosure, Nothing, Party, Resources, Session, Terms, member, step
from syndic.methods.comparison.dplt_disclosure import disclosure_of, estimate_of
from syndic.methods.comparison.dplt_plan import MOST_LEVELS, Plan, Settings, plan_of
from syndic.methods.comparison.dplt_rows import Latents, Learned, count_latents, latent_rows, learn_latents
from syndic.methods.comparison.glued_result import PublishedRows, RowsNote, notes_of, read_rows
from syndic.methods.refusals import check_fits, check_people, wrong_size
from syndic.methods.synthesis.vertical_requirements import check_aligned, check_all_held
from syndic.methods.synthesis.vertical_round import MixedNoise, OpenedRound
from syndic.model.latent.groups import Latent
from syndic.model.latent.tree import latent_tree
from syndic.model.markov import Measurement
from syndic.mpc.dealer import deal_products
from syndic.mpc.order import advance
from syndic.mpc.product import SecureProduct, UsesProducts
from syndic.mpc.product_messages import ProductClose
from syndic.privacy import Event
from syndic.random import generator

_LATENTS = "latent attributes of own columns"


class LatentNote(RowsNote):
    """`groups`: the columns behind each latent attribute; `level_of`: its level for each combination of their values.

    `links`: the pairs of latent attributes that are neighbours in the tree, the closest first.
    """

    groups: dict[str, tuple[str, ...]]
    level_of: dict[str, tuple[int, ...]]
    links: tuple[tuple[str, str], ...]


@final
class Dplt(UsesProducts, tag="dplt"):
    """Parameters of the latent tree.

    `group`: the most columns of a group. `group_cells`: the most combinations of their values; by default as many as
    noise lets be told apart. `levels`: how many levels a latent attribute has, 2 in the paper; by default as many as
    noise lets be told apart in a table of two, up to 16. `score_share` and `pattern_share`: the parts of the budget for
    scores and for tables of groups; what is left is for tables of latent attributes. `colluding` is as
    in the vertical synthesis, `rows` by default the public number of people.
    """

    title: ClassVar[str] = "Latent tree over columns of different parties"
    paper: ClassVar[str] = "after DPLT, Tang et al. 2021; Ver Steeg and Galstyan 2014; triples after Beaver 1991"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "vertical"
    trust: ClassVar[str] = (
        "semi-honest: everybody follows the steps, and the coordinator, who deals the triples, pools what it knows "
        "with no party; unless the study gives identities, the coordinator must not forge keys"
    )

    group: int = 4
    group_cells: int | None = None
    levels: int | None = None
    # made by a function: a fraction has no place in a JSON Schema
    score_share: Fraction = msgspec.field(default_factory=lambda: Fraction(1, 10))
    pattern_share: Fraction = msgspec.field(default_factory=lambda: Fraction(1, 2))
    colluding: int = 1
    rows: int | None = None

    def __post_init__(self) -> None:
        if self.colluding not in (0, 1):
            raise ValueError(f"colluding ({self.colluding}) must be 0 or 1: two partners share the noise of a table")
        if self.group < 1 or (self.group_cells is not None and self.group_cells < 1):
            raise ValueError("group and group_cells must be at least 1")
        if self.levels is not None and not 2 <= self.levels <= MOST_LEVELS:
            raise ValueError(f"levels ({self.levels}) must be from 2 to {MOST_LEVELS}")
        if self.rows is not None and self.rows < 0:
            raise ValueError(f"rows ({self.rows}) must not be negative")
        learning = self.score_share + self.pattern_share
        if min(self.score_share, self.pattern_share) <= 0 or learning >= 1:
            raise ValueError("score_share and pattern_share must be positive and leave something of the budget")

    @property
    def simulation_only(self) -> bool:
        """It keeps its promise."""
        return False

    # The parties' side; keys, masked rows and products are those of the secure product.

    @step(reveals="noisy")
    def learn(self, party: Party, message: Nothing) -> Learned:
        """Score pairs of own columns, group them, count the groups, and learn their latent attributes."""
        del message
        advance(party, _LATENTS, 1)
        plan = self.plan_of(party.terms)
        learned = learn_latents(party, plan, self.group)
        party.remember(_LATENTS, Latents(groups=learned.groups, level_of=learned.level_of))
        return learned

    @step(reveals="masked")
    def open_tables(self, party: Party, message: ProductClose) -> OpenedRound:
        """Complete the shares to tables of latent pairs, count the own ones, add noise, and mask what is shared."""
        plan = self.plan_of(party.terms)
        now, own = plan.round, self._latents(party)
        shares = self.product_shares(party, message)
        blocks = now.layout.blocks[party.name]
        wanted = [*blocks, *(now.layout.tables[place] for place in now.layout.within[party.name])]
        counted = count_latents(party.table, own, plan.levels, wanted)
        check_people(party, *(int(one.sum()) for one in counted))
        margins = dict(zip(blocks, counted, strict=False))
        self.product_unchanged(party, np.concatenate([one[:-1] for one in margins.values()]))
        values = {
            partner: now.shares(
                party.name, now.work.pair(party.name, partner), share.ravel().astype(np.uint64), margins
            )
            for partner, share in shares.items()
        }
        local = [one.ravel() for one in counted[len(blocks) :]]
        noise = MixedNoise(now.across, now.within, sum(one.size for one in local))
        every = np.concatenate([*values.values(), *local])
        noisy = party.contribute(noise, every, why=f"{len(now.layout.tables)} tables of latent attributes")
        hidden, start = {}, 0
        for partner, one in values.items():
            part = self.product_hidden(party, partner, noisy[start : start + one.size], now.ring)
            hidden[partner] = now.ring.pack(part)
            start += one.size
        return OpenedRound(shares=hidden, local=noisy[start:])

    def product_work(self, party: Party) -> SecureProduct:
        """Return the product of all parties' latent attributes."""
        return self.plan_of(party.terms).round.work

    def product_matrix(self, party: Party, start: int, stop: int) -> NDArray[Any]:
        """Return rows of the one-hot matrix of the party's latent attributes, the last level of each left out."""
        matrix = latent_rows(party.table, self._latents(party), self.plan_of(party.terms).levels, (start, stop))
        if len(matrix) != stop - start:
            raise wrong_size(party.name, member(party.terms, party.name).people)
        return matrix

    def _latents(self, party: Party) -> dict[str, Latent]:
        kept, domain = party.recall(_LATENTS, Latents), party.terms.schema.domain
        return {name: Latent(domain.project(kept.groups[name]), level) for name, level in kept.level_of.items()}

    # The coordinator's side.

    def coordinate(self, session: Session) -> PublishedRows:
        """Ask for latent attributes and their tables, find and fit the tree, draw rows."""
        terms, plan, draws = session.terms, self.plan_of(session.terms), generator(session.randomness)
        learned = session.ask(self.learn, Nothing())
        opened = session.ask(self.open_tables, deal_products(session, self, plan.round.work))
        groups = {name: one for answer in learned.values() for name, one in self._read(plan, terms, answer).items()}
        answer, layout = plan.round.answer(opened), plan.round.layout
        shape = (plan.levels, plan.levels)
        parts = answer.values.reshape(len(layout.tables), *shape)
        pairs = [Measurement(*one) for one in zip(layout.tables, parts, answer.variances, strict=True)]
        people = terms.parties[0].people or 0
        model = latent_tree(groups, pairs, float(people))
        table = decode_codes(terms.schema, model.sample(people if self.rows is None else self.rows, draws), draws)
        tables = (*(counts for _, counts in groups.values()), *pairs)
        note = LatentNote(
            tables=notes_of(tables),
            groups={name: latent.domain.names for name, (latent, _) in groups.items()},
            level_of={name: tuple(latent.level_of.tolist()) for name, (latent, _) in groups.items()},
            links=model.links,
        )
        return PublishedRows(table=table, tables=tables, note=note)

    def _read(self, plan: Plan, terms: Terms, answer: Learned) -> dict[str, tuple[Latent, Measurement]]:
        """Cut one party's noisy counts into tables of groups; raises `InputError` if they do not fit the groups."""
        found, start, noise = {}, 0, plan.counted
        for name, columns in answer.groups.items():
            domain = terms.schema.domain.project(columns)
            values = answer.counts[start : start + domain.size] / noise.scale
            start += domain.size
            level_of = answer.level_of.get(name)
            if values.size != domain.size or level_of is None or level_of.shape != (domain.size,):
                raise InputError("a party answered with counts that are not of its groups of columns")
            latent = Latent(domain, np.clip(level_of, 0, plan.levels - 1))
            found[name] = latent, Measurement(columns, values.reshape(domain.sizes), noise.variance(1))
        return found

    def read_result(self, terms: Terms, folder: Path) -> PublishedRows:
        """Read back the rows, the noisy tables and the tree."""
        del terms
        return read_rows(folder, LatentNote)

    # What is known before any row is read.

    def plan_of(self, terms: Terms) -> Plan:
        """Return groups, noise and rings."""
        return _plan_of(self, terms)  # type: ignore[arg-type]  # a study is frozen: it has a hash

    def check(self, terms: Terms) -> None:
        """Refuse what cannot work, with what to change."""
        check_aligned(terms)
        check_all_held(terms)
        try:
            estimate = self.estimate(terms)
        except ValueError as error:
            raise InputError(f"the noise cannot be made: {error}") from None
        check_fits(terms, estimate, "set fewer levels, smaller groups or larger limits", replies=len(terms.parties))

    def spends(self, terms: Terms, party: str) -> tuple[Event, ...]:
        """Two events, the same for every party: each is charged for the whole release."""
        member(terms, party)
        return self.plan_of(terms).events

    def estimate(self, terms: Terms) -> Resources:
        """Bytes of the largest reply, memory, time for learning and multiplying."""
        return estimate_of(terms, self.plan_of(terms), self.colluding)

    def disclosure(self, terms: Terms) -> Disclosure:
        """State what every role sees."""
        return disclosure_of(terms, self.plan_of(terms), self.colluding)


@lru_cache(maxsize=32)
def _plan_of(protocol: Dplt, terms: Terms) -> Plan:
    names = ("group", "group_cells", "levels", "score_share", "pattern_share", "colluding")
    return plan_of(terms, Settings(**{name: getattr(protocol, name) for name in names}))
