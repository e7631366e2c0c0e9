"""The plan of two-way tables: which columns of which parties are counted together, and the noise and rings for it."""

import itertools
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.document import Document
from syndic.kernel import (
    ALIGNED,
    GROUPS,
    Disclosure,
    Plan,
    Resources,
    against_partners,
    budgets_of,
    of_products,
    product_sees,
    trust_in,
)
from syndic.methods.histogram.crosstables_result import CrossNote, Names, Pair
from syndic.mpc.product import SecureProduct
from syndic.mpc.threeserver import STAGES, servers_of
from syndic.noise import DiscreteGaussian, GaussianShare
from syndic.noise.shares import sum_rho
from syndic.privacy import Event, zcdp_epsilon
from syndic.random import Randomness


class TableNoise(Document):
    """Noise shares on tables across parties, and full noise on the last `alone` values, a party's own tables."""

    share: GaussianShare
    alone: int

    @property
    def event(self) -> Event:
        """What all opened tables together cost."""
        return self.share.event

    def apply(self, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:
        """Return the values with their noise."""
        shared = self.share.draw(values.size - self.alone, randomness)
        noise: NDArray[np.int64] = np.concatenate([shared, whole_noise(self.share).draw(self.alone, randomness)])
        return values + noise


def whole_noise(share: GaussianShare) -> DiscreteGaussian:
    """Return the noise of a party's own tables: one discrete Gaussian with the parameter of all honest shares together.

    It is not calibrated to the budget: shares have a minimum size, so there may be more noise than the budget needs.
    The charge covers tables across and within parties alike, and so needs the same noise on all of them.
    """
    sigma_squared = share.honest * share.sigma_squared
    square = share.sensitivity_squared
    return DiscreteGaussian(sensitivity_squared=square, rho=square / (2 * sigma_squared))


class CrosstablesPlan(Plan):
    """Which tables are counted, a partner's share of their noise, and the product that counts those across parties.

    `across` has the tables of a pair of parties, the left party's columns first; `within` has a party's own tables, and
    `sent` its sets of columns that are in a table across parties, each counted as one.
    """

    across: Mapping[Pair, tuple[tuple[Names, Names], ...]]
    within: Mapping[str, tuple[Pair, ...]]
    sent: Mapping[str, tuple[Names, ...]]
    noise: GaussianShare
    product: SecureProduct

    @cached_property
    def tables(self) -> tuple[Names, ...]:
        """The columns of all tables that are counted: first those across parties, then those within each."""
        across = (left + right for tables in self.across.values() for left, right in tables)
        return (*across, *(pair for pairs in self.within.values() for pair in pairs))

    @property
    def servers(self) -> tuple[str, ...]:
        """The parties that multiply, if not the coordinator deals."""
        return servers_of(self.product)

    @cached_property
    def note(self) -> CrossNote:
        """What is opened, and the standard deviation of a count."""
        within = whole_noise(self.noise).variance
        return CrossNote(across=self.noise.total_variance(2) ** 0.5, within=within**0.5, tables=self.tables)

    @cached_property
    def epsilons(self) -> tuple[float, float]:
        """The epsilon against everyone who knows no share of the noise, and against a partner who knows one."""
        noise = self.noise
        delta = min(budget.delta for budget in budgets_of(self.terms))
        one, both = (
            sum_rho(noise.sensitivity_squared, noise.sigma_squared, shares, noise.dimension) for shares in (1, 2)
        )
        if any(self.within.values()):  # tables within a party have the full noise, and the same against everyone
            both = max(both, noise.event.rho)
        return float(zcdp_epsilon(both, delta)), float(zcdp_epsilon(one, delta))

    def domains(self, tables: Sequence[Names]) -> list[Domain]:
        """Return the domains of some tables."""
        return [self.terms.schema.domain.project(names) for names in tables]

    def slices(self, party: str) -> dict[Names, slice]:
        """Return where the cells of each set of columns are in the party's matrix."""
        ends = np.cumsum([0, *self.product.groups[party]]).tolist()
        spans = [slice(start, stop) for start, stop in itertools.pairwise(ends)]
        return dict(zip(self.sent[party], spans, strict=True))

    def events(self, party: str) -> tuple[Event, ...]:
        """One release of all tables: every party is charged for the whole."""
        self.check_party(party)
        return (self.noise.event,)

    @property
    def rounds(self) -> tuple[str, ...]:
        """The secure product, chunk by chunk, and the opening of the noisy tables."""
        return (*self.product.rounds, "open_tables")

    @cached_property
    def resources(self) -> Resources:
        """Bytes of the largest reply, memory, time for dealing and multiplying."""
        product, sizes = self.product, self.product.sizes
        widths = [sum(each) for each in product.groups.values()]
        cells = [rows * columns for rows, columns in map(product.shape, product.pairs)]
        partners, chunk = len(self.terms.parties) - 1, sizes.ring.packed_bytes(sizes.chunk * max(widths))
        stages = STAGES if self.servers else 0
        return Resources(
            memory_bytes=10**8 + 16 * chunk * (partners + 1) + 64 * sum(cells),
            reply_bytes=max(2 * chunk if self.servers else chunk, 8 * max(cells)) + 4000,
            rounds=4 + (2 + stages) * sizes.chunks if stages else 2 + (len(product.rounds) - 1) * sizes.chunks,
            seconds=round(1.0 + sizes.rows * (sum(widths) * 8e-8 + sum(cells) * 4e-10), 1),
            notes=(
                f"{len(self.tables):,} tables; rows are masked and tables opened with {sizes.ring.bits} bits per entry",
                f"standard deviation {self.note.across:.3g} on every count across parties, "
                f"{self.note.within:.3g} within one",
            ),
        )

    @property
    def largest_message(self) -> int:
        """The bytes of two replies: a party gets what its partner sent, and the dealer's halves; a server of all."""
        return max(2, len(self.terms.parties) if self.servers else 0) * self.resources.reply_bytes

    @property
    def too_large(self) -> tuple[str, str]:
        """What is too large if the run does not fit, and what to change."""
        return "a run", "name fewer pairs, or use fewer bins"

    @property
    def disclosure(self) -> Disclosure:
        """What every role sees."""
        tables, noisy = len(self.tables), "the noisy tables"
        outside, partner = self.epsilons
        return Disclosure(
            sees=product_sees(noisy, servers=self.servers),
            sensitivity=(
                f"replacing one person's values at all parties at once changes two counts by one in each of {tables} "
                f"table(s), so by {2 * tables} in squared l2; every party is charged for the whole release"
            ),
            against=against_partners(outside, partner),
            not_protected=(*of_products(proven=self.product.proven, servers=self.servers), ALIGNED, GROUPS),
            trust=trust_in(proven=self.product.proven, servers=self.servers),
        )
