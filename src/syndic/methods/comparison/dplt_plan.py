"""The plan of a latent tree: groups, latent levels, noise, rings, and the disclosure."""

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import isqrt
from typing import Final, final

from syndic.data import Domain
from syndic.kernel import ALIGNED, GROUPS, PROCESS_BYTES, Disclosure, Plan, Resources, Terms, schema_of
from syndic.kernel.disclosure import TOGETHER, UNCHECKED_ROWS, WRONG_TRIPLES, product_sees
from syndic.methods.layout import Names, layout_of, same_people
from syndic.methods.synthesis.account import Account, RoundNoise, against_parties
from syndic.methods.synthesis.cut import CutRound, plan_round
from syndic.mpc.masked_sum import MaskedSum
from syndic.mpc.product import SecureProduct
from syndic.privacy import Event, GaussianEvent

GAP_SENSITIVITY: Final = 3
"""The sensitivity of a pair's distance from independence, in rows: see `independence_gap`."""

# A table is useful if its mean count is at least this many standard deviations of the noise.
_USEFUL: Final = 1.6
_DEFAULT_LEVELS: Final = 16
_LEAST_CELLS: Final = 4
_ENTRY_BYTES: Final = 32


@final
class DpltPlan(Plan):
    """The groups of each party, their latent levels, and the noise of scores, groups and latent pairs.

    `packed` has each party's groups, formed by size alone: the final groups are as many, perhaps with other columns,
    with at most `group` columns and `most_cells` combinations of values. `scored` is the noise of scores, if any party
    has two columns, `counted` that of the groups' tables, `round` the plan for counting the tables of latent pairs by a
    `product`, which `masked_sum` opens. `rows` is the number of rows to draw.
    """

    account: Account
    group: int
    most_cells: int
    packed: Mapping[str, tuple[Names, ...]]
    levels: int
    scored: RoundNoise | None
    counted: RoundNoise
    round: CutRound
    product: SecureProduct
    masked_sum: MaskedSum
    rows: int

    @cached_property
    def domains(self) -> Mapping[str, Domain]:
        """The columns of each party."""
        return {party.name: schema_of(self.terms, party.name).domain for party in self.terms.parties}

    @cached_property
    def learning(self) -> GaussianEvent:
        """What scores and tables of groups cost together."""
        first = self.account.events[:-1]
        mu_squared = sum((event.mu_squared for event in first), Fraction(0))
        return GaussianEvent(
            mu_squared=mu_squared,
            slack=sum((event.slack for event in first), Fraction(0)),
            what=f"Gaussian, mu {float(mu_squared) ** 0.5:.3g}, groups of columns",
        )

    @property
    def rounds(self) -> tuple[str, ...]:
        """Keys; parties learn latent attributes, multiply them, and the noisy tables of all pairs open."""
        keys, meet, count = self.masked_sum.rounds("count")
        return (keys, meet, "learn", *self.product.rounds, count)

    def events(self, party: str) -> tuple[Event, ...]:
        """Two events, the same for every party: latent attributes, and the tables of pairs of them."""
        self.check_party(party)
        return self.learning, self.round.share.event

    @cached_property
    def resources(self) -> Resources:
        """Memory at the busiest role, bytes of the largest message, time for learning and multiplying."""
        sizes, layout = self.product.sizes, self.round.layout
        widths = [sum(each) for each in layout.widths.values()]
        groups = sum(len(found) for found in self.packed.values())
        largest = groups * max(self.most_cells, *self.terms.schema.domain.sizes)
        chunk, traffic = sizes.ring.packed_bytes(sizes.chunk * max(widths)), layout.traffic(sizes)
        deviations = (
            self.counted.variance(1),
            self.round.whole.variance(1),
            self.round.share.variance(self.account.parties),
        )
        counted, within, across = (variance**0.5 for variance in deviations)
        return Resources(
            memory_bytes=PROCESS_BYTES
            + _ENTRY_BYTES * sizes.chunk * sum(widths)
            + 64 * layout.dimension
            + largest * (16 + 24 * self.levels)
            + 32 * sizes.rows * len(self.terms.schema.columns),
            reply_bytes=max(chunk, 8 * layout.dimension, 16 * largest) + 1000,
            rounds=5 + 2 * sizes.chunks,
            seconds=round(1.0 + 6e-8 * traffic + largest * self.levels * 2e-5 + sizes.rows / 2e5, 1),
            notes=(
                f"{groups} groups of at most {self.most_cells:,} combinations of values; {self.levels} latent levels; "
                f"{len(layout.tables)} tables of latent pairs take about {traffic / 1e6:,.1f} MB",
                f"standard deviation {counted:.3g} on every count of a group, {within:.3g} on those of latent pairs "
                f"within a party and {across:.3g} across two",
            ),
        )

    @property
    def largest_message(self) -> int:
        """The bytes that a party gets from all others in one message."""
        return len(self.terms.parties) * self.resources.reply_bytes

    too_large = ("a run", "set fewer levels, smaller groups or larger limits")

    @property
    def disclosure(self) -> Disclosure:
        """What every role sees."""
        pairs, tables = count_pairs(self.domains), len(self.round.layout.tables)
        groups = sum(len(found) for found in self.packed.values())
        opened = (
            "the noisy scores of pairs of columns, the noisy tables of groups and of pairs of latent attributes, "
            "what each latent level means, and rows drawn from the tree"
        )
        return Disclosure(
            sees=product_sees(opened),
            sensitivity=(
                f"replacing one person's values at all parties at once changes each of {pairs} scores by at most "
                f"{GAP_SENSITIVITY} rows, two counts by one in each of {groups} tables of groups, and two counts by "
                f"one in each of {tables} tables of latent pairs; every party is charged for all of it"
            ),
            against=against_parties(self.terms, self.account, self.account.events[-1:], whole=(self.learning,)),
            not_protected=(
                f"{TOGETHER}: they can read the latent levels of that party's partners",
                UNCHECKED_ROWS,
                WRONG_TRIPLES,
                ALIGNED,
                GROUPS,
                "the columns, bounds, labels and the number of people: they are public",
            ),
        )


def count_pairs(domains: Mapping[str, Domain]) -> int:
    """Return the number of pairs of columns that are at the same party."""
    return sum(len(domain) * (len(domain) - 1) // 2 for domain in domains.values())


def name_latents(party: str, count: int) -> tuple[str, ...]:
    """Return names for a party's latent attributes; party names have no spaces, so no name occurs twice."""
    return tuple(f"{party} {place}" for place in range(1, count + 1))


def useful_cells(account: Account, people: int, columns: int) -> int:
    """Return how many combinations of values a table of a group can distinguish from noise."""
    deviation = account.alone.noise_of(len(account.events) - 1, columns, 2 * columns).variance(1) ** 0.5
    return max(_LEAST_CELLS, int(people / (_USEFUL * deviation)))


def useful_levels(account: Account, people: int, groups: int) -> int:
    """Return how many latent levels a table of two latent attributes can distinguish from noise."""
    pairs = groups * (groups - 1) // 2
    deviation = account.noise_of(len(account.events), pairs, 2 * pairs).variance(account.parties) ** 0.5
    return max(2, min(_DEFAULT_LEVELS, isqrt(int(people / (_USEFUL * deviation)))))


def plan_pairs(terms: Terms, account: Account, packed: Mapping[str, tuple[Names, ...]], levels: int) -> CutRound:
    """Return the plan for counting the tables of all pairs of latent attributes, like tables of columns."""
    holder = {latent: name for name, groups in packed.items() for latent in name_latents(name, len(groups))}
    domain = Domain(tuple(holder), (levels,) * len(holder))
    layout = layout_of(same_people(terms, holder), list(combinations(holder, 2)), domain)
    return plan_round(terms, account, len(account.events), layout, "latent attributes")
