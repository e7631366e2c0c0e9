"""Noisy marginal tables of all parties' rows together, over any cut, with one copy of noise for everybody.

Every party counts its rows in public sets of columns, adds its share of integer noise and masks the result
(`syndic.mpc.masked_sum`). Only the sum over the parties is opened: the counts of all rows, with the noise that one
trusted curator would add. Publishing counts party by party, each with its own noise, multiplies the variance by the
number of parties.

*Any cut.* Where parties of a group hold different columns of the same people, two of them count a table of their
columns by a secure product (`syndic.mpc.product`), and each adds its share of it to the same sum: different people is
the case of a group for each party, different columns that of one group. A table that one party counts has the whole
noise of that party; all parties share the noise of the others.

*Neighbours*: as the study says, a person's rows at up to `unit.parties` parties added, removed or replaced; with
groups of several parties, all values of a person in up to `unit.parties` groups replaced. *Sensitivity*: a row is in
one cell of each table, and a group counts a table once. Where columns are averaged, a person's part of the tables is
the mean of what it is for each choice of parties, and so moves no further than the one that moves most. Changes at
several parties or groups add up in the one sum, to which the noise is calibrated. *Cost*: one release of all tables.

*Who sees what*: everybody sees the noisy tables of all parties together. The coordinator sees masked counts, which look
uniform. A party knows its own share of the noise: parties - `colluding` - `missing` shares are enough. Whatever the
coordinator sends, no sum over fewer parties than stated opens. Where parties multiply, the coordinator deals the
triples: with one party of a group it could read the rows of the party's partners.
"""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal, final

import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.kernel import (
    UNDER_MASKS,
    Adversary,
    Group,
    Nothing,
    Party,
    Requires,
    Session,
    Terms,
    adversary_of,
    covered,
    groups_of,
    member,
    most_rows,
    step,
)
from syndic.kernel.cut import check_servers, few_parties, partners_with
from syndic.methods.histogram.marginals_plan import MarginalsPlan, Share, share_of
from syndic.methods.histogram.tables import MarginalsNote, MarginalTables, cut, read_marginals
from syndic.methods.layout import Names, TableLayout, layout_of
from syndic.methods.product_steps import ProductSteps
from syndic.methods.table_noise import COORDINATOR, noise_shares
from syndic.mpc.dealer import deal_products
from syndic.mpc.graph import SumGraph, sum_graph
from syndic.mpc.masked_sum import MaskedSum, SumMasked, Total
from syndic.mpc.product import SecureProduct
from syndic.mpc.ring import OVERFLOW, ring_for
from syndic.noise import SkellamShare

ONE_ROW = Requires(people="bound", delta="Gaussian noise", rows=1, any_cut=True, averages=True)
"""Requirements of a method that opens tables with Gaussian noise, in which a person has one row."""


class CountsTables(ProductSteps):
    """The parties' steps of a method that opens one sum of tables, over any cut; keys are those of sum and product."""

    why: ClassVar[str] = "noisy marginal tables, one sum over all parties"

    def product_at(self, party: Party[MarginalsPlan]) -> SecureProduct:
        """Return the product of all tables across parties."""
        product = party.plan.product
        assert product is not None  # noqa: S101 (these steps are asked of parties that multiply only)
        return product

    def product_rows(self, party: Party[MarginalsPlan], start: int, stop: int) -> NDArray[np.uint8]:
        """Return rows of the party's one-hot matrix. Private."""
        return party.plan.cut.rows(party, (start, stop), lambda coded: coded)

    @step(reveals="masked")
    def count(self, party: Party[MarginalsPlan], message: Nothing) -> SumMasked:
        """Count the tables, add this party's share of the noise, and mask the result."""
        del message
        plan = party.plan
        masks = plan.masked_sum.masks(party)
        values = plan.summed(party.name, plan.cut.added_by(party, plan.product, partial(_count, party)))
        return masks.hide(party.contribute(plan.noise_at(party.name), values, why=self.why))

    def total(self, session: Session[MarginalsPlan]) -> Total:
        """Open the noisy sum over all parties, and add the coordinator's share of the noise if it has one."""
        plan = session.plan
        sums = plan.masked_sum.start(session, once=plan.coordinator_noise)
        if plan.product is not None:
            deal_products(session, self, plan.product)
        total = plan.masked_sum.open_next(sums, self.count, Nothing(), plan.masked_sum.count, plan.masked_sum.ring)
        if plan.coordinator_noise:
            total = replace(total, values=session.contribute(plan.noise_at(COORDINATOR), total.values))
        return total

    def opened(self, session: Session[MarginalsPlan]) -> MarginalTables:
        """Open the noisy sum of all parties' tables."""
        plan, total = session.plan, self.total(session)
        scale, deviations = plan.one, plan.deviations(len(total.present))
        note = MarginalsNote(
            present=total.present,
            standard_deviation=max(deviations),
            tables=plan.cliques,
            deviations=deviations if len(set(deviations)) > 1 else (),
            covers=plan.covers(),
        )
        counts = total.values if scale == 1 else total.values / scale
        return MarginalTables(note=note, tables=cut(plan.domains, counts))


def _count(party: Party[MarginalsPlan], tables: Sequence[Names]) -> list[NDArray[np.int64]]:
    """Return exact counts of a party's own columns, in one pass. Private."""
    # the bound is public, and clipping counts to it never increases the distance between neighbours
    most = most_rows(party.terms, party.name)
    return [np.minimum(table.values, most) for table in party.table.marginals(tables)]


def room_for(layout: TableLayout, noise: Share, most: int) -> int:
    """Return how large a sum of all people in one cell can be, and its noise, if a person adds `most`."""
    people = sum(group.people for group in layout.groups)
    return people * most + noise.tail(OVERFLOW / noise.dimension, noise.parties)


def check_counted(groups: Sequence[Group], tables: Sequence[Names]) -> None:
    """Raise `InputError` for a table that no group of people can count."""
    for columns in tables:
        if not covered(groups, columns):
            raise InputError(
                f"no group has {', '.join(columns)} at {few_parties(groups)}: nobody can count them together. Leave "
                "one of them out"
            )


@final
class Marginals(CountsTables, tag="marginals"):
    """Parameters of the noisy marginal tables.

    `cliques`: the sets of columns to count; by default every column and every pair with at most `cell_cap` cells.
    `colluding`: how many parties may collude, with the coordinator or with each other; at least 1, since every party
    knows its own share of the noise. `missing`: how many parties may drop out. Both add noise: it is calibrated so that
    parties - colluding - missing shares are enough.
    Where parties of a group multiply, none may be missing. `adversary`: "active" lets them prove that their rows have
    at most a single one in each column, so that a party that deviates cannot read a partner's record; "passive" leaves
    the proof out. `servers`: three or four parties that multiply in place of the coordinator, so that it may collude
    with one party or server; two of them together can read all rows. With `colluding = 1` four also count tables of
    three parties' columns. `coordinator_noise`: whether the coordinator adds a share of the noise on what several
    parties count, so that with m parties the variance is (m + 1) / m of a curator's, and not m / (m - 1). It must not
    tell it, nor omit it.
    """

    title: ClassVar[str] = "Marginal tables from a masked sum"
    paper: ClassVar[str] = "Bonawitz et al. 2017; Bell et al. 2020; Kairouz, Liu and Steinke 2021"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "horizontal"
    trust: ClassVar[str] = UNDER_MASKS

    cliques: tuple[tuple[str, ...], ...] = ()
    cell_cap: int = 10_000
    noise: Literal["gaussian", "skellam", "laplace"] = "gaussian"
    colluding: int = 1
    missing: int = 0
    adversary: Adversary | None = None
    servers: tuple[str, ...] = ()
    # false; a study that does not name it keeps its digest
    coordinator_noise: bool | UnsetType = UNSET

    def __post_init__(self) -> None:
        check_servers(self.servers, adversary_of(self.adversary, self.colluding))
        if self.colluding < 1 or self.missing < 0:
            raise ValueError(
                f"colluding ({self.colluding}) must be at least 1, missing ({self.missing}) must not be negative"
            )
        if self.cell_cap < 1:
            raise ValueError(f"cell_cap ({self.cell_cap}) must be at least 1")
        if any(not names or len(set(names)) != len(names) for names in self.cliques):
            raise ValueError("cliques must be sets of different columns, none of them empty")
        if len({frozenset(names) for names in self.cliques}) != len(self.cliques):
            raise ValueError("cliques names the same set of columns twice: it would be charged twice")

    @property
    def requires(self) -> Requires:
        """Public bounds on people, to size the ring; all noise but Laplace needs delta."""
        return Requires(
            people="bound",
            delta="" if self.noise == "laplace" else f"{self.noise} noise",
            parties=1 if self.noise == "skellam" else None,
            because="skellam noise does not cover people at several parties",
            weights=self.noise != "skellam",
            any_cut=True,
            averages=True,
        )

    def plan(self, terms: Terms) -> MarginalsPlan:
        """Choose the tables, calibrate the noise to the strictest budget, and size the ring for both."""
        groups = groups_of(terms, partners_with(self.servers, self.colluding))
        layout = layout_of(groups, self._tables(terms, groups), terms.schema.domain)
        self.graph_of(terms)  # says what is wrong with the number of parties better than the noise does
        return self.plan_from(terms, layout, self._noise(terms, layout), terms.unit.most * layout.one)

    def plan_from(
        self, terms: Terms, layout: TableLayout, noise: Share, most: int, what: str = "marginals"
    ) -> MarginalsPlan:
        """Return the plan that opens these tables, or sums of them to which a person adds `most` at most."""
        if self.missing and layout.one > 1:
            raise InputError("parties over which a column is averaged must all answer: set missing = 0")
        room = room_for(layout, noise, most)
        product = self._multiplied(terms, layout, room)
        ring = product.sizes.ring if product else ring_for(room)
        masked_sum = MaskedSum(label=what, graph=self.graph_of(terms), count=noise.dimension, ring=ring)
        return MarginalsPlan(terms=terms, noise=noise, masked_sum=masked_sum, cut=layout, product=product)

    def graph_of(self, terms: Terms) -> SumGraph:
        """Return who shares masks with whom; raise `InputError` for a number of parties that no sum allows."""
        return sum_graph(len(terms.parties), colluding=self.colluding, missing=self.missing)

    def _multiplied(self, terms: Terms, layout: TableLayout, room: int) -> SecureProduct | None:
        """Return the product of all tables that parties count together, in a ring with room for the sum."""
        if not layout.across:
            return None
        if self.missing:
            raise InputError("parties that multiply must all answer: set missing = 0, or name no table of several")
        for name in self.servers:
            member(terms, name)
        sizes = layout.sizes(terms, room, proven=self.proven)
        return layout.product("product", sizes, proven=self.proven, servers=self.servers)

    @property
    def proven(self) -> bool:
        """Whether parties that multiply prove their rows."""
        return adversary_of(self.adversary, self.colluding) == "active"

    def coordinate(self, session: Session[MarginalsPlan]) -> MarginalTables:
        """Open the noisy sum of all parties' tables."""
        return self.opened(session)

    def read(self, plan: MarginalsPlan, folder: Path) -> MarginalTables:
        """Read back `marginals.parquet` and `marginals.json`."""
        return read_marginals(plan.domains, folder)

    def _tables(self, terms: Terms, groups: Sequence[Group]) -> tuple[Names, ...]:
        """Return the columns of every table that is counted."""
        names, domain = terms.schema.names, terms.schema.domain
        for columns in self.cliques:
            domain.axes(columns)
        check_counted(groups, self.cliques)
        if self.cliques:
            return self.cliques
        sizes = dict(zip(names, domain.sizes, strict=True))
        small = [name for name in names if sizes[name] <= self.cell_cap]
        pairs = ((a, b) for a, b in itertools.combinations(small, 2) if sizes[a] * sizes[b] <= self.cell_cap)
        wanted = itertools.chain(((name,) for name in small), pairs)
        every = any(group.counts_alone(names) for group in groups)
        found = tuple(wanted if every else (columns for columns in wanted if covered(groups, columns)))
        if not found:
            raise InputError(f"no column has at most cell_cap ({self.cell_cap}) cells: raise it or name cliques")
        return found

    def _noise(self, terms: Terms, layout: TableLayout) -> Share:
        """Return the share of the noise that every party adds."""
        unit, tables, one = terms.unit, len(layout.tables), layout.one
        dealt = bool(layout.across) and not self.servers
        parties = noise_shares(terms, coordinator=self.coordinator_noise, dealt=dealt)
        who = {"parties": parties, "colluding": self.colluding, "missing": self.missing, "dimension": layout.dimension}
        l1, squared = tables * unit.l1_of_counts() * one, tables * unit.l2_squared_of_counts() * one**2
        share = share_of(self.noise, terms, l1, squared, **who)
        if isinstance(share, SkellamShare) and self.coordinator_noise:
            share.event_if(share.honest - 1)  # small noise has no bound with a share less, which a statement gives
        return share
