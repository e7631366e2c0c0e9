"""The plan of noisy tables over any cut: what is counted by whom, the one sum that opens it, and its noise."""

from fractions import Fraction
from functools import cached_property
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.data.counting import covered_cells
from syndic.kernel import (
    ALIGNED,
    GROUPS,
    MADE_UP,
    PROCESS_BYTES,
    Disclosure,
    Plan,
    Resources,
    Terms,
    beyond_unit,
    budgets_of,
    change_of,
    covered,
    not_covered,
    of_products,
    picture,
    shared_people,
    strictest,
    trust_with_groups,
)
from syndic.kernel.cut import averaged_in_words, copies
from syndic.kernel.disclosure import of_coordinator, units_of, without_coordinator
from syndic.methods.layout import Parts, TableLayout
from syndic.methods.table_noise import Drawn, TableNoise
from syndic.mpc.masked_sum import MaskedSum
from syndic.mpc.product import SecureProduct
from syndic.mpc.servers import STAGES, ServedProduct
from syndic.noise import DiscreteGaussian, GaussianShare, LaplaceShare, SkellamShare
from syndic.noise.shares import LEAST_VARIANCE
from syndic.privacy import Cost, Event, rho_for
from syndic.privacy.concentrated import part_of

Share = GaussianShare | LaplaceShare | SkellamShare

_LEAST: Final = (
    "the noise cannot be smaller: its proof needs a variance of at least 4 for the share of each party. So the study "
    "costs less than its budget; the rest stays under the cap"
)


def share_of(
    kind: Literal["gaussian", "skellam", "laplace"], terms: Terms, l1: int, l2_squared: int, **who: int
) -> Share:
    """Return the share of the noise that every party adds, the same for all, calibrated to the strictest budget.

    Let a person change one party's numbers by at most s in l2 (d in l1), and be at r parties, or change those of one
    group and be in r groups: the sum changes by at most r s. The whole budget is rho, and each of r ledgers is charged
    rho / r, so the variance is (r s)^2 / (2 rho) = r s^2 / (2 rho / r): a share for r s^2 at rho / r. With Laplace
    noise the scale is r d / epsilon = d / (epsilon / r): a share for d at epsilon / r. `who` shares the noise.
    """
    apart = terms.unit.parties
    if kind == "laplace":
        return LaplaceShare(sensitivity=l1, epsilon=part_of(strictest(terms).epsilon, apart), **who)
    rho = part_of(min(rho_for(one.epsilon, one.delta) for one in set(budgets_of(terms))), apart)
    squared = Fraction(apart * l2_squared)
    if kind == "gaussian":
        return GaussianShare(sensitivity_squared=squared, rho=rho, **who)
    return SkellamShare(sensitivity=l1, sensitivity_squared=squared, rho=rho, **who)


def whole_noise(share: GaussianShare) -> DiscreteGaussian:
    """Return the noise of a table that one party counts: a discrete Gaussian with that of all honest shares together.

    It is not calibrated to the budget: shares have a minimum size, so there may be more noise than the budget needs.
    The charge covers all tables alike, and so needs the same noise on all of them.
    """
    sigma_squared = share.honest * share.sigma_squared
    square = share.sensitivity_squared
    return DiscreteGaussian(sensitivity_squared=square, rho=square / (2 * sigma_squared))


class MarginalsPlan(Plan):
    """Which tables are counted by whom, every party's share of their noise, and the one sum that opens them.

    `product`, where parties of a group count tables together; its shares are in the ring of the sum.
    """

    noise: Share
    masked_sum: MaskedSum
    cut: TableLayout
    product: SecureProduct | None

    @property
    def coordinator_noise(self) -> bool:
        """Whether the coordinator shares the noise of what several parties count."""
        return self.noise.parties > len(self.terms.parties)

    @property
    def cliques(self) -> tuple[tuple[str, ...], ...]:
        """The sets of columns that are counted."""
        return self.cut.tables

    @cached_property
    def domains(self) -> tuple[Domain, ...]:
        """The columns of every table, and their levels."""
        return tuple(map(self.cut.domain.project, self.cut.tables))

    @property
    def parts(self) -> Parts:
        """What opens: all counts, or what else follows from each table."""
        return self.cut.parts

    @property
    def one(self) -> int:
        """What one row counts in the sum."""
        return self.terms.unit.scale * self.cut.one

    def summed(self, party: str, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what a party adds to the sum, given its counts and shares of counts. Private."""
        del party
        return counts

    @cached_property
    def alone(self) -> tuple[bool, ...]:
        """Whether each table is counted by one party, which adds the whole Gaussian noise."""
        if len(self.cut.groups) > 1 and not self.covers():
            return (False,) * len(self.cliques)  # every group counts every table
        gaussian = isinstance(self.noise, GaussianShare)
        return tuple(gaussian and len(parties) == 1 for parties in self.cut.counting)

    def noise_at(self, party: str) -> Share | TableNoise:
        """Return the noise that a party adds, or the coordinator (`COORDINATOR`), which counts no table."""
        if not any(self.alone) or not isinstance(self.noise, GaussianShare):
            return self.noise
        whole: Drawn = whole_noise(self.noise)
        shared = self.cut.marked(lambda who: len(who) > 1, self.parts)
        return TableNoise(
            self.noise.event, self.noise, whole, shared, self.cut.marked(lambda who: who == {party}, self.parts)
        )

    def deviations(self, present: int) -> tuple[float, ...]:
        """Return the standard deviation of a count of every part, in rows, when so many parties contributed."""
        shared = float(self.noise.total_variance(present + self.coordinator_noise) ** 0.5)
        alone = whole_noise(self.noise).variance ** 0.5 if isinstance(self.noise, GaussianShare) else shared
        return tuple((alone if self.alone[place] else shared) / self.one for place, _ in self.parts)

    def deviation(self, present: int) -> float:
        """Return the largest of them."""
        return max(self.deviations(present))

    def covers(self) -> tuple[float, ...]:
        """Return which share of the people every table counts; empty if each counts all."""
        groups = self.cut.groups
        if all(group.counts_alone(self.terms.schema.names) for group in groups):
            return ()
        whole = sum(group.people for group in groups)
        shares = tuple(covered(groups, names) / whole for names in self.cliques)
        return () if all(share == 1 for share in shares) else shares

    def events(self, party: str) -> tuple[Event, ...]:
        """One release of all tables, charged in full to every party."""
        self.check_party(party)
        return (self.noise.event,)

    @cached_property
    def resources(self) -> Resources:
        """Bytes of the largest reply, memory at the coordinator, time for counting and masks."""
        cells, graph, ring = self.masked_sum.count, self.masked_sum.graph, self.masked_sum.ring
        parties, people = len(self.terms.parties), sum(group.people for group in self.cut.groups)
        deviations = sorted(set(self.deviations(parties)))
        chunk, seconds, trips = self._product
        party = PROCESS_BYTES + 8 * (cells * 8 + covered_cells(cells)) + 16 * parties * chunk
        return Resources(
            memory_bytes=party + 8 * cells * parties,
            party_bytes=party,
            reply_bytes=max(self.masked_sum.message_bytes, chunk),
            rounds=1 + len(self.masked_sum.rounds("count")) + trips,
            seconds=round(1.0 + people / 1e6 + parties * graph.neighbours * (2e-4 + cells * 2e-8) + seconds, 1),
            notes=(
                f"{len(self.cliques):,} tables, {cells:,} cells, {ring.bits} bits per masked cell",
                f"standard deviation {' or '.join(f'{one:.3g}' for one in deviations)} on every count of all parties "
                f"together{', the least where one party counts a table' if len(deviations) > 1 else ''}",
                f"each party shares masks with {graph.neighbours} others",
                *((_LEAST,) if getattr(self.noise, "sigma_squared", 0) == LEAST_VARIANCE else ()),
            ),
        )

    @property
    def _product(self) -> tuple[int, float, int]:
        """Bytes of the largest message of the product, seconds for dealing and multiplying, messages to a party."""
        if self.product is None:
            return 0, 0.0, 0
        sizes, widths = self.product.sizes, [sum(each) for each in self.product.groups.values()]
        chunk = sizes.ring.packed_bytes(sizes.chunk * max(widths)) + 4000
        products = sum(rows * columns for rows, columns in map(self.product.shape, self.product.pairs))
        seconds = sizes.rows * (sum(widths) * 8e-8 + products * 4e-10)
        turns = 2 + STAGES if self._served else len(self.product.rounds) - 1
        return copies(self._served) * chunk, seconds, 1 + turns * sizes.chunks

    @property
    def held(self) -> tuple[str, ...]:
        """Who holds what, in lines."""
        several = self.product or self.covers() or self.cut.one > 1
        return picture(self.cut.groups, self.terms.schema.names) if several else ()

    @property
    def uncovered(self) -> tuple[str, ...]:
        """Which columns, pairs and larger tables cannot be counted, or only for a part of the people."""
        return not_covered(self.cut.groups, self.terms.schema.names, self.cliques) if self.held else ()

    @property
    def largest_message(self) -> int:
        """The bytes of what a party gets from all partners at once."""
        partners = max(len(group.parties) for group in self.cut.groups) if self.product else 1
        return max(partners, len(self.terms.parties) if self._served else 0) * self.resources.reply_bytes

    @property
    def _served(self) -> tuple[str, ...]:
        return self.product.servers if isinstance(self.product, ServedProduct) else ()

    @property
    def disclosure(self) -> Disclosure:
        """What every role sees."""
        return self.disclosed("the noisy tables of all parties together", "tables", "counts")

    def disclosed(self, noisy: str, masked: str, own: str) -> Disclosure:
        """Return what every role sees, given what opens, what is masked, and what a party knows of it."""
        unit, graph = self.terms.unit, self.masked_sum.graph
        rows = "shares of tables" if self._served else "masked rows of its group"
        rows = f"{rows}, which look uniform, " if self.product else ""
        sealed = "sealed rows that it cannot read, " if self.product else ""
        less = "the tables without its own share of the noise, " if self.coordinator_noise else ""
        shared = shared_people(self.terms)
        shares = 0 if isinstance(self.noise, LaplaceShare) else self.noise.honest
        return Disclosure(
            sees={
                "coordinator": f"{sealed}every party's masked {masked}, which look uniform, who dropped out, "
                f"{less}and {noisy}",
                **(
                    {f"servers {', '.join(self._served)}": "one share of all rows each, which looks uniform"}
                    if self._served
                    else {}
                ),
                "other parties": f"public keys, {rows}and {noisy}; each knows its own {own} and share of the noise",
                "anyone with the release": noisy,
            },
            sensitivity=(
                f"{change_of(unit)} one person's {unit.rows} row(s) at one {'group' if shared else 'party'} changes "
                f"{self.change}{averaged_in_words(self.cut.groups)}; at up to {unit.parties} of the "
                f"{'groups' if shared else 'parties'} the changes add up in the same sum, so the noise is calibrated "
                f"to {unit.parties} time(s) that, and each of these parties is charged 1/{unit.parties} of the budget"
            ),
            not_protected=(
                GROUPS,
                f"people in more than {unit.parties} of the groups" if shared else beyond_unit(unit),
                f"against more than {graph.colluding} colluding parties, who know their shares of the noise, or more "
                f"than {graph.missing} parties that omit theirs: less noise remains than stated",
                MADE_UP,
                "which parties take part or drop out, the columns, bounds and numbers of people: they are public",
                *(of_products(proven=self.product.proven, servers=self._served) if self.product else ()),
                *((ALIGNED,) if shared else ()),
                *((of_coordinator(shares),) if self.coordinator_noise else ()),
            ),
            against=self._against,
            trust=trust_with_groups(
                graph.colluding, proven=self.product.proven, servers=self._served, noise=self.coordinator_noise
            )
            if self.product
            else "",
        )

    @property
    def change(self) -> str:
        """What a person changes and by how much, in words."""
        unit = self.terms.unit
        return (
            f"each of {len(self.cliques)} table(s) by at most {unit.l1_of_counts()} in l1 and "
            f"{unit.l2_squared_of_counts()} in squared l2{units_of(unit)}"
        )

    @property
    def _against(self) -> dict[str, float]:
        """The epsilons if the coordinator omits its share of the noise."""
        if not self.coordinator_noise:
            return {}
        events = self.noise.event, self.noise.event_if(self.noise.honest - 1)
        # a person is charged so much at each of several parties, or groups
        costs = (Cost.of(self.terms.unit.parties * [event]) for event in events)
        return without_coordinator(*(float(cost.epsilon(strictest(self.terms).delta)) for cost in costs))

    @property
    def rounds(self) -> tuple[str, ...]:
        """Keys, the products of groups with several parties, the masked counts, the opening of their sum."""
        keys, meet, *rest = self.masked_sum.rounds("count")
        return (keys, meet, *(self.product.rounds if self.product else ()), *rest)

    @property
    def too_large(self) -> tuple[str, str]:
        """What is too large if the run does not fit, and what to change."""
        return f"the tables have {self.masked_sum.count:,} cells; a run", "name fewer cliques or lower cell_cap"
