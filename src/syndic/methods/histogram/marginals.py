"""Noisy marginal tables of all parties' rows together, with one copy of noise for everybody.

Every party counts its rows in public sets of columns, adds its share of integer noise and masks the result
(`syndic.mpc.masked_sum`). Only the sum over the parties is opened: the counts of all rows, with the noise that one
trusted curator would add. Publishing counts party by party, each with its own noise, multiplies the variance by the
number of parties.

*Neighbours*: as the study says, a person's rows at up to `unit.parties` parties added, removed or replaced.
*Sensitivity*: a row is in one cell of each table, and changes at several parties add up in the one sum, to which the
noise is calibrated. *Cost*: one release of all tables.

*Who sees what*: everybody sees the noisy tables of all parties together. The coordinator sees masked counts, which look
uniform. A party knows its own share of the noise: parties - `colluding` - `missing` shares are enough. Whatever the
coordinator sends, no sum over fewer parties than stated opens.
"""

import itertools
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import ClassVar, Literal, final

import numpy as np

from syndic.data import Domain
from syndic.errors import InputError
from syndic.kernel import (
    GROUPS,
    MADE_UP,
    UNDER_MASKS,
    Disclosure,
    Method,
    Nothing,
    Party,
    Plan,
    Requires,
    Resources,
    Session,
    Terms,
    beyond_unit,
    budgets_of,
    change_of,
    most_rows,
    people_of,
    step,
    units_of,
)
from syndic.methods.histogram.tables import MarginalsNote, MarginalTables, cut, read_marginals
from syndic.mpc.graph import sum_graph
from syndic.mpc.masked_sum import MaskedSum, SumMasked
from syndic.mpc.ring import OVERFLOW, ring_for
from syndic.noise import GaussianShare, LaplaceShare, SkellamShare
from syndic.privacy import Event, rho_for
from syndic.privacy.concentrated import part_of

Share = GaussianShare | LaplaceShare | SkellamShare


class MarginalsPlan(Plan):
    """Which tables are counted, every party's share of their noise, and the one sum that opens them."""

    domains: tuple[Domain, ...]
    noise: Share
    masked_sum: MaskedSum

    @property
    def cliques(self) -> tuple[tuple[str, ...], ...]:
        """The sets of columns that are counted."""
        return tuple(domain.names for domain in self.domains)

    def deviation(self, present: int) -> float:
        """Return the standard deviation of the noise on a count, in rows, when so many parties contributed."""
        return float(self.noise.total_variance(present) ** 0.5) / self.terms.unit.scale

    def events(self, party: str) -> tuple[Event, ...]:
        """One release of all tables, charged in full to every party."""
        self.check_party(party)
        return (self.noise.event,)

    @property
    def resources(self) -> Resources:
        """Bytes of the largest reply, memory at the coordinator, time for counting and masks."""
        cells, graph, ring = self.masked_sum.count, self.masked_sum.graph, self.masked_sum.ring
        parties, people = len(self.terms.parties), people_of(self.terms) or 0
        deviation = self.deviation(parties)
        return Resources(
            memory_bytes=8 * cells * (parties + 8) + 10**8,
            reply_bytes=self.masked_sum.message_bytes,
            rounds=1 + len(self.rounds),
            seconds=round(1.0 + people / 1e6 + parties * graph.neighbours * (2e-4 + cells * 2e-8), 1),
            notes=(
                f"{len(self.domains):,} tables, {cells:,} cells, {ring.bits} bits per masked cell",
                f"standard deviation {deviation:.3g} on every count of all parties together",
                f"each party shares masks with {graph.neighbours} others",
            ),
        )

    @property
    def disclosure(self) -> Disclosure:
        """What every role sees."""
        unit, graph = self.terms.unit, self.masked_sum.graph
        noisy = "the noisy tables of all parties together"
        return Disclosure(
            sees={
                "coordinator": f"every party's masked tables, which look uniform, who dropped out, and {noisy}",
                "other parties": f"public keys, and {noisy}; each knows its own counts and share of the noise",
                "anyone with the release": noisy,
            },
            sensitivity=(
                f"{change_of(unit)} one person's {unit.rows} row(s) at one party changes each of {len(self.domains)} "
                f"table(s) by at most {unit.l1_of_counts()} in l1 and {unit.l2_squared_of_counts()} in squared l2"
                f"{units_of(unit)}; at "
                f"up to {unit.parties} of the parties the changes add up in the same sum, so the noise is calibrated "
                f"to {unit.parties} time(s) that, and each of these parties is charged 1/{unit.parties} of the budget"
            ),
            not_protected=(
                GROUPS,
                beyond_unit(unit),
                f"against more than {graph.colluding} colluding parties, who know their shares of the noise, or more "
                f"than {graph.missing} parties that omit theirs: less noise remains than stated",
                MADE_UP,
                "which parties take part or drop out, the columns, bounds and numbers of people: they are public",
            ),
        )

    @property
    def rounds(self) -> tuple[str, ...]:
        """Keys, the masked counts, the opening of their sum."""
        return self.masked_sum.rounds("count")

    @property
    def too_large(self) -> tuple[str, str]:
        """What is too large if the run does not fit, and what to change."""
        return f"the tables have {self.masked_sum.count:,} cells; a run", "name fewer cliques or lower cell_cap"


@final
class Marginals(Method, tag="marginals"):
    """Parameters of the noisy marginal tables.

    `cliques`: the sets of columns to count; by default every column and every pair with at most `cell_cap` cells.
    `colluding`: how many parties may collude, with the coordinator or with each other; at least 1, since every party
    knows its own share of the noise. `missing`: how many parties may drop out. Both add noise: it is calibrated so that
    parties - colluding - missing shares are enough.
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

    def __post_init__(self) -> None:
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
        )

    def plan(self, terms: Terms) -> MarginalsPlan:
        """Choose the tables, calibrate the noise to the strictest budget, and size the ring for both."""
        domains = self._domains(terms)
        graph = sum_graph(len(terms.parties), colluding=self.colluding, missing=self.missing)
        noise = self._noise(terms, domains)
        rows = sum(most_rows(terms, party.name) for party in terms.parties)
        # room for all rows of all parties in one cell, and for the noise
        ring = ring_for(rows + noise.tail(OVERFLOW / noise.dimension, noise.parties))
        masked_sum = MaskedSum(label="marginals", graph=graph, count=noise.dimension, ring=ring)
        return MarginalsPlan(terms=terms, domains=domains, noise=noise, masked_sum=masked_sum)

    @step(reveals="masked")
    def count(self, party: Party[MarginalsPlan], message: Nothing) -> SumMasked:
        """Count the tables, add this party's share of the noise, and mask the result."""
        del message
        return count_tables(party)

    def coordinate(self, session: Session[MarginalsPlan]) -> MarginalTables:
        """Open the noisy sum of all parties' tables."""
        return open_tables(session, self.count)

    def read(self, plan: MarginalsPlan, folder: Path) -> MarginalTables:
        """Read back `marginals.parquet` and `marginals.json`."""
        return read_marginals(plan.domains, folder)

    def _domains(self, terms: Terms) -> tuple[Domain, ...]:
        """Return the domain of every table that is counted."""
        names, domain = terms.schema.names, terms.schema.domain
        if self.cliques:
            return tuple(domain.project(columns) for columns in self.cliques)
        wanted = [*((name,) for name in names), *itertools.combinations(names, 2)]
        found = tuple(each for each in map(domain.project, wanted) if each.size <= self.cell_cap)
        if not found:
            raise InputError(f"no column has at most cell_cap ({self.cell_cap}) cells: raise it or name cliques")
        return found

    def _noise(self, terms: Terms, domains: tuple[Domain, ...]) -> Share:
        """Return the share of the noise that every party adds, the same for all, calibrated to the strictest budget.

        Let a person change one party's counts by at most s in l2 (d in l1) over all tables, and be at r parties:
        the sum changes by at most r s. The whole budget is rho, and each of r ledgers is charged rho / r, so the
        variance is (r s)^2 / (2 rho) = r s^2 / (2 rho / r): a share for r s^2 at rho / r. With Laplace noise the
        scale is r d / epsilon = d / (epsilon / r): a share for d at epsilon / r.
        """
        unit, tables = terms.unit, len(domains)
        who = {
            "parties": len(terms.parties),
            "colluding": self.colluding,
            "missing": self.missing,
            "dimension": sum(domain.size for domain in domains),
        }
        if self.noise == "laplace":
            epsilon = part_of(min(budget.epsilon for budget in budgets_of(terms)), unit.parties)
            return LaplaceShare(sensitivity=tables * unit.l1_of_counts(), epsilon=epsilon, **who)
        rho = part_of(min(rho_for(budget.epsilon, budget.delta) for budget in budgets_of(terms)), unit.parties)
        squared = Fraction(unit.parties * tables * unit.l2_squared_of_counts())
        if self.noise == "gaussian":
            return GaussianShare(sensitivity_squared=squared, rho=rho, **who)
        sensitivity = tables * unit.l1_of_counts()
        return SkellamShare(sensitivity=sensitivity, sensitivity_squared=squared, rho=rho, **who)


def count_tables(party: Party[MarginalsPlan]) -> SumMasked:
    """Count the plan's tables, add this party's share of the noise, and mask the result."""
    plan = party.plan
    masks = plan.masked_sum.masks(party)
    tables = party.table.marginals(plan.cliques)
    counts = np.concatenate([table.values.ravel() for table in tables])
    # the bound is public, and clipping counts to it never increases the distance between neighbours
    clipped = np.minimum(counts, most_rows(party.terms, party.name))
    noisy = party.contribute(plan.noise, clipped, why="noisy marginal tables, one sum over all parties")
    return masks.hide(noisy)


def open_tables(session: Session[MarginalsPlan], count: Callable[..., SumMasked]) -> MarginalTables:
    """Open the noisy sum of all parties' tables."""
    plan = session.plan
    total = plan.masked_sum.open(session, count)
    scale, deviation = plan.terms.unit.scale, plan.deviation(len(total.present))
    note = MarginalsNote(present=total.present, standard_deviation=deviation, tables=plan.cliques)
    counts = total.values if scale == 1 else total.values / scale
    return MarginalTables(note=note, tables=cut(plan.domains, counts))
