"""Noisy marginal tables of all parties' rows together, with one copy of noise for everybody.

Every party counts its rows in some public sets of columns, adds its share of integer noise and masks the result
(`syndic.mpc.sum`). Only the sum over the parties opens: the counts of all rows, with noise as if one trusted curator
had held them. Publishing counts party by party, each with its own noise, has as many times the variance as there are
parties.

*Neighbours*: as the study says, a person's rows at up to `unit.parties` parties added, removed or replaced.
*Sensitivity*: a row is in one cell of each table, and the changes at several parties add up in the one sum, for which
the noise is made. *Cost*: one release of all tables, and the chance that the masks of a sparse graph fail.

*Who sees what*: everybody sees the noisy tables of all parties together. The coordinator sees masked counts, which look
uniform. A party knows its own share of the noise: parties - `colluding` - `missing` shares are enough. *Semi-honest*.
"""

import itertools
from fractions import Fraction
from functools import lru_cache
from math import floor
from pathlib import Path
from typing import ClassVar, Literal, final

import numpy as np

from syndic.data import Domain
from syndic.errors import InputError, RefusedError
from syndic.kernel import (
    Disclosure,
    Estimate,
    Member,
    Party,
    Session,
    Terms,
    budget_of,
    member,
    people_of,
    step,
)
from syndic.methods.histogram.tables import MarginalsNote, MarginalTables, cut, read_marginals
from syndic.methods.refusals import check_fits, check_people
from syndic.mpc.graph import SumPlan, plan_within
from syndic.mpc.masked import BOX_BYTES
from syndic.mpc.ring import Ring, ring_for
from syndic.mpc.sum import SumInbox, SumMasked, UsesMaskedSum, masked_sum
from syndic.noise import GaussianShare, LaplaceShare, SkellamShare
from syndic.privacy import Budget, Cost, Event, rho_for
from syndic.privacy.concentrated import PICO
from syndic.privacy.cost import ATTO

Share = GaussianShare | LaplaceShare | SkellamShare

# The noise of one value exceeds what the ring has room for with a chance below this over all values.
_OVERFLOW = 2.0**-64
_LABEL = "marginals"


@final
class Marginals(UsesMaskedSum, tag="marginals"):
    """Parameters of the noisy marginal tables.

    `cliques`: the sets of columns to count, else every column and every pair with at most `cell_cap` cells.
    `colluding`: how many parties may pool what they know with the coordinator or with each other; at least 1, since
    every party knows its own share of the noise. `missing`: how many parties may fall silent. Both cost noise: it is
    made so that parties - colluding - missing shares are enough.
    """

    title: ClassVar[str] = "Marginal tables from a masked sum"
    paper: ClassVar[str] = "Bonawitz et al. 2017; Bell et al. 2020; Kairouz, Liu and Steinke 2021"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "horizontal"
    trust: ClassVar[str] = (
        "semi-honest: everybody follows the steps, and no more parties than `colluding` pool what they know with the "
        "coordinator or each other; unless the study gives identities, the coordinator must not forge keys"
    )

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
            raise ValueError("cliques names the same set of columns twice: it would be paid for twice")

    @property
    def simulation_only(self) -> bool:
        """It keeps its promise."""
        return False

    # The parties' side; keys, shares and openings are those of the masked sum.

    @step(reveals="masked")
    def count(self, party: Party, message: SumInbox) -> SumMasked:
        """Count the tables, add this party's share of the noise, and mask the result."""
        terms = party.terms
        if message.label != _LABEL:
            raise RefusedError(f"the tables are summed under the label '{_LABEL}' and under no other")
        noise, ring = self.noise_of(terms), self.ring_of(terms)
        masks = self.sum_masks(party, message, noise.dimension, ring)
        tables = party.table.marginals(self.cliques_of(terms))
        check_people(party, int(tables[0].sum()))
        counts = np.concatenate([table.values.ravel() for table in tables])
        # the bound is public and lowering a count to it never moves two neighbours apart
        clipped = np.minimum(counts, _most_rows(terms, member(terms, party.name)))
        for event in self.sum_plan(terms).events:
            party.charge(event, why="chance that the masks of a sparse graph do not hide one party's tables")
        noisy = party.contribute(noise, clipped, why="noisy marginal tables, one sum over all parties")
        return self.sum_masked(noisy, masks, ring)

    # The coordinator's side.

    def coordinate(self, session: Session) -> MarginalTables:
        """Open the sum of all parties' tables, with its noise."""
        terms, noise = session.terms, self.noise_of(session.terms)
        ring = self.ring_of(terms)
        total = masked_sum(session, self, self.count, label=_LABEL, count=noise.dimension, ring=ring)
        note = MarginalsNote(
            present=total.present,
            standard_deviation=noise.total_variance(len(total.present)) ** 0.5,
            tables=self.cliques_of(terms),
        )
        return MarginalTables(note=note, tables=cut(self.domains_of(terms), total.values))

    def read_result(self, terms: Terms, folder: Path) -> MarginalTables:
        """Read back `marginals.parquet` and `marginals.json`."""
        return read_marginals(self.domains_of(terms), folder)

    # What is known before any row is read.

    def cliques_of(self, terms: Terms) -> tuple[tuple[str, ...], ...]:
        """Return the sets of columns that are counted."""
        if self.cliques:
            return self.cliques
        names, domain = terms.schema.names, terms.schema.domain
        pairs = itertools.combinations(names, 2)
        wanted = [*((name,) for name in names), *pairs]
        return tuple(columns for columns in wanted if domain.project(columns).size <= self.cell_cap)

    def domains_of(self, terms: Terms) -> tuple[Domain, ...]:
        """Return the domain of every table."""
        return tuple(terms.schema.domain.project(names) for names in self.cliques_of(terms))

    def dimension_of(self, terms: Terms) -> int:
        """Return the number of cells of all tables together."""
        return sum(domain.size for domain in self.domains_of(terms))

    def sum_plan(self, terms: Terms) -> SumPlan:
        """Return who masks with whom: a sparse graph that may fail only where that fits into every delta twice."""
        delta = min(budget.delta for budget in _budgets(terms)) / (2 * terms.unit.parties)
        return plan_within(delta, len(terms.parties), colluding=self.colluding, missing=self.missing)

    def noise_of(self, terms: Terms) -> Share:
        """Return the share of the noise that every party adds: one law for all, made for the strictest budget.

        Let a person change one party's counts by at most s in l2 (d in l1) over all tables, and be at r parties:
        the sum changes by at most r s. The whole budget is rho, and each of r ledgers is charged rho / r, so the
        variance is (r s)^2 / (2 rho) = r s^2 / (2 rho / r): a share for r s^2 at rho / r. With Laplace noise the
        scale is r d / epsilon = d / (epsilon / r): a share for d at epsilon / r.
        """
        unit, tables = terms.unit, len(self.cliques_of(terms))
        # every party that a person is at is charged for the graph too
        graph = Cost.of(self.sum_plan(terms).events).times(unit.parties)
        less_epsilon, less_delta = Fraction(graph.epsilon_approximate, PICO), Fraction(graph.delta_approximate, ATTO)
        left = [(budget.epsilon - less_epsilon, budget.delta - less_delta) for budget in _budgets(terms)]
        who = {
            "parties": len(terms.parties),
            "colluding": self.colluding,
            "missing": self.missing,
            "dimension": self.dimension_of(terms),
        }
        if self.noise == "laplace":
            epsilon = _part(min(epsilon for epsilon, _ in left), unit.parties)
            return LaplaceShare(sensitivity=tables * unit.l1_of_counts(), epsilon=epsilon, **who)
        rho = _part(min(_rho_of(epsilon, delta) for epsilon, delta in left), unit.parties)
        squared = Fraction(unit.parties * tables * unit.l2_squared_of_counts())
        if self.noise == "gaussian":
            return GaussianShare(sensitivity_squared=squared, rho=rho, **who)
        sensitivity = tables * unit.l1_of_counts()
        return SkellamShare(sensitivity=sensitivity, sensitivity_squared=squared, rho=rho, **who)

    def ring_of(self, terms: Terms) -> Ring:
        """Return the ring that has room for all rows of all parties in one cell, and for the noise."""
        noise = self.noise_of(terms)
        rows = sum(_most_rows(terms, party) for party in terms.parties)
        return ring_for(rows + noise.tail(_OVERFLOW / noise.dimension, noise.parties))

    def check(self, terms: Terms) -> None:
        """Refuse what cannot work, with the number it would need."""
        for party in terms.parties:
            if party.people is None:
                raise InputError(f"party '{party.name}': a masked sum needs its public bound on people: set people")
            if self.noise != "laplace" and budget_of(terms, party.name).delta == 0:
                raise InputError(f"party '{party.name}': {self.noise} noise needs delta above 0; set it or use laplace")
            if party.columns is not None:
                raise InputError(f"party '{party.name}': every party counts all columns here; leave columns out")
        if self.noise == "skellam" and terms.unit.parties > 1:
            raise InputError('people at several parties need noise = "gaussian" or "laplace"')
        if not self.cliques_of(terms):
            raise InputError(f"no column has at most cell_cap ({self.cell_cap}) cells: raise it or name cliques")
        self.sum_plan(terms)
        try:
            self.ring_of(terms)
        except ValueError as error:
            raise InputError(f"the noise shares cannot be made: {error}") from None
        self._check_size(terms)

    def spends(self, terms: Terms, party: str) -> tuple[Event, ...]:
        """One release of all tables, charged whole to every party, and the chance that a sparse graph fails."""
        member(terms, party)
        return (self.noise_of(terms).event, *self.sum_plan(terms).events)

    def estimate(self, terms: Terms) -> Estimate:
        """Bytes of the largest reply, memory at the coordinator, time for counting and masks."""
        cells, plan, ring = self.dimension_of(terms), self.sum_plan(terms), self.ring_of(terms)
        parties, people = len(terms.parties), people_of(terms) or 0
        deviation = self.noise_of(terms).total_variance(parties) ** 0.5
        certainty = (
            "and cannot fail" if plan.failure_bits == float("inf") else f"and fail once in 2^{plan.failure_bits:.0f}"
        )
        return Estimate(
            memory_bytes=8 * cells * (parties + 8) + 10**8,
            reply_bytes=max(ring.packed_bytes(cells), plan.neighbours * BOX_BYTES) + 64,
            rounds=5,
            seconds=round(1.0 + people / 1e6 + parties * plan.neighbours * (2e-4 + cells * 2e-8), 1),
            notes=(
                f"{len(self.cliques_of(terms)):,} tables, {cells:,} cells, {ring.bits} bits a cell under masks",
                f"standard deviation {deviation:.3g} on every count of all parties together",
                f"{plan.neighbours} neighbours a party; {plan.threshold} shares open one secret {certainty}",
            ),
        )

    def disclosure(self, terms: Terms) -> Disclosure:
        """State what every role sees."""
        unit, tables = terms.unit, len(self.cliques_of(terms))
        change = "adding or removing" if unit.neighbours == "add_remove" else "replacing"
        noisy = "the noisy tables of all parties together"
        return Disclosure(
            sees={
                "coordinator": f"every party's tables under masks, which look uniform, who fell silent, and {noisy}",
                "other parties": f"sealed shares of masks, and {noisy}; each knows its own counts and share of noise",
                "anyone with the release": noisy,
            },
            sensitivity=(
                f"{change} one person's {unit.rows} row(s) at one party changes each of {tables} table(s) by at most "
                f"{unit.l1_of_counts()} in l1 and {unit.l2_squared_of_counts()} in squared l2; at up to "
                f"{unit.parties} of the parties the changes add up in the same sum, so the noise is made for "
                f"{unit.parties} time(s) that, and each of these parties is charged 1/{unit.parties} of the budget"
            ),
            not_protected=(
                "what is true of groups: a pattern that many people share shows, as it should",
                f"people with more than {unit.rows} row(s) at a party, or at more than {unit.parties} of the parties",
                f"against more than {self.colluding} parties that pool their shares of the noise, or more than "
                f"{self.missing} that leave theirs out: less noise is left than stated",
                *self.sum_plan(terms).not_protected,
                "the total against a party that puts in made-up numbers: nothing checks them",
                "which parties take part or fall silent, the columns, bounds and people: they are public",
            ),
        )

    def _check_size(self, terms: Terms) -> None:
        what = f"the tables have {self.dimension_of(terms):,} cells; a run"
        check_fits(terms, self.estimate(terms), "name fewer cliques or lower cell_cap", what=what)


_rho_of = lru_cache(maxsize=64)(rho_for)


def _budgets(terms: Terms) -> list[Budget]:
    return [terms.budget, *(party.budget for party in terms.parties if party.budget is not None)]


def _part(amount: Fraction, parts: int) -> Fraction:
    """Return the part, cut to whole units of the ledger, so that the parts never add up to more."""
    return Fraction(floor(amount * PICO / parts), PICO)


def _most_rows(terms: Terms, party: Member) -> int:
    """Return the public bound on a party's rows."""
    return (party.people or 0) * terms.unit.rows
