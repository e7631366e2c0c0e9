"""One round of a vertical synthesis: what it takes, with what noise, and how its answers become tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.errors import InputError, RefusedError
from syndic.kernel import Message, Terms
from syndic.methods.onehot import completed
from syndic.methods.synthesis.account import Account, RoundNoise
from syndic.methods.synthesis.measure import Question, RoundLimits, check_question
from syndic.methods.synthesis.rounds import Answer
from syndic.methods.synthesis.vertical_layout import Names, RoundLayout, holders, layout_of
from syndic.model.markov import Adaptive, Grouping
from syndic.mpc.product import SecureProduct
from syndic.mpc.product_messages import Pair
from syndic.mpc.ring import Ring
from syndic.mpc.triple import ProductSizes
from syndic.privacy import Event
from syndic.random import Randomness

# The noise of one count exceeds what the ring has room for with a chance below this over all counts of a round.
_OVERFLOW: Final = 2.0**-64
# Shares fill their ring, and noise is added to them as 64-bit numbers.
_MOST_BITS: Final = 62
PARTNERS: Final = 2


class OpenedRound(Message):
    """A party's noisy shares of the round's tables with each partner, under a mask; and its own noisy tables."""

    shares: dict[str, bytes]
    local: NDArray[np.int64]


@final
@dataclass(frozen=True)
class MixedNoise:
    """Shares of noise on tables across parties, and the whole noise on the last `alone` counts, a party's own tables.

    Each of them has at least the noise that the round's event is charged for, and the event counts all tables.
    """

    across: RoundNoise
    within: RoundNoise
    alone: int

    @property
    def event(self) -> Event:
        """What the whole round costs."""
        return self.across.event

    def apply(self, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:
        """Return the values with their noise, in units of the fine grid."""
        shared, own = np.split(values, [values.size - self.alone])
        # a party has some of the round's counts only, so the shares are drawn for as many as there are
        noisy = shared * self.across.scale + self.across.noise.draw(shared.size, randomness)
        return np.concatenate([noisy, self.within.apply(own, randomness)])


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Round:
    """What everybody works out alike from the study and the question."""

    layout: RoundLayout
    grouping: Grouping
    sizes: ProductSizes
    work: SecureProduct
    across: RoundNoise
    within: RoundNoise

    @property
    def ring(self) -> Ring:
        """The ring in which tables across parties open: counts in units of the fine grid."""
        return Ring(self.sizes.whole.bits + self.across.scale.bit_length() - 1)

    @property
    def variances(self) -> tuple[float, ...]:
        """The variance of a count of every table."""
        crossed = {one.place for tables in self.layout.across.values() for one in tables}
        both, alone = self.across.variance(PARTNERS), self.within.variance(1)
        return tuple(both if place in crossed else alone for place in range(len(self.layout.tables)))

    def shares(
        self, own: str, pair: Pair, share: NDArray[np.uint64], margins: Mapping[Names, NDArray[np.int64]]
    ) -> NDArray[np.int64]:
        """Return a party's shares of the tables of a pair, completed by the levels that were not sent. Private."""
        found, start, ring, is_left = [], 0, self.sizes.whole, own == pair[0]
        for one in self.layout.across[pair]:
            shape = (self.layout.size(one.left) - 1, self.layout.size(one.right) - 1)
            part = share[start : start + shape[0] * shape[1]].reshape(shape)
            start += part.size
            counts = margins[one.left if is_left else one.right].ravel().astype(np.uint64)
            full = completed(part, counts[:-1], self.sizes.rows, left=is_left)
            full = full - np.uint64(self.sizes.centre) if is_left else full
            found.append(ring.lift(ring.reduce(full)).ravel())
        return np.concatenate(found)

    def answer(self, opened: Mapping[str, OpenedRound]) -> Answer:
        """Add up what partners opened and put all tables in the question's order."""
        layout, ring, scale = self.layout, self.ring, self.across.scale
        tables: dict[int, NDArray[np.float64]] = {}
        for left, right in layout.across:
            count = layout.count((left, right))
            parts = [ring.unpack(opened[one].shares[other], count) for one, other in ((left, right), (right, left))]
            values = ring.lift(ring.add(*parts)) / scale + self.sizes.centre
            start = 0
            for one in layout.across[left, right]:
                domain = layout.domain.project((*one.left, *one.right))
                table = values[start : start + domain.size].reshape(domain.sizes)
                start += domain.size
                tables[one.place] = table.transpose(domain.axes(layout.tables[one.place]))
        for name, places in layout.within.items():
            sizes = [layout.size(layout.tables[place]) for place in places]
            local = opened[name].local
            if local.shape != (sum(sizes),):
                raise InputError(f"{name} answered with {local.size} counts where {sum(sizes)} were asked")
            tables |= dict(zip(places, np.split(local / scale, np.cumsum(sizes)[:-1]), strict=False))
        values = np.concatenate([tables[place].ravel() for place in range(len(layout.tables))])
        return Answer(
            values=values, variance=max(self.variances), present=tuple(layout.within), variances=self.variances
        )


def alone(account: Account) -> Account:
    """Return the account of tables that one party counts by itself: the same events, the whole noise."""
    return replace(account, parties=1)


def round_of(terms: Terms, account: Account, question: Question) -> Round:
    """Return how a question that was checked is answered."""
    grouping = question.grouping(terms.schema.domain)
    layout = layout_of(terms, question.tables, grouping.domain_of_groups)
    across = account.noise(question)
    sizes = _sizes(terms, layout, across, question.dimension(terms.schema.domain))
    # partners who were asked different things cannot read each other's mail
    label = f"round {question.number}, {question.digest.hex()[:16]}"
    return Round(
        layout=layout,
        grouping=grouping,
        sizes=sizes,
        work=layout.work(label, sizes),
        across=across,
        within=alone(account).noise(question),
    )


def pairs_traffic(terms: Terms, account: Account, selector: Adaptive) -> int:
    """Return about how many bytes all pairs of columns across parties take, at most, once rare levels are grouped."""
    domain = terms.schema.domain
    grouped = Domain(domain.names, tuple(min(size, selector.most_levels) for size in domain.sizes))
    tables = [names for names in selector.pairs(grouped) if min(grouped.project(names).sizes) > 1]
    layout = layout_of(terms, tables, grouped)
    if not layout.across:
        return 0
    dimension = sum(layout.size(names) for names in tables)
    return layout.traffic(_sizes(terms, layout, account.noise_of(2, len(tables), dimension), dimension))


def _sizes(terms: Terms, layout: RoundLayout, noise: RoundNoise, dimension: int) -> ProductSizes:
    tail = noise.tail(_OVERFLOW / dimension)
    return layout.sizes(terms, -(-tail // noise.scale))


@final
@dataclass(frozen=True, kw_only=True)
class RoundPlanner:
    """Which tables the parties can count together, and which of them in one round."""

    terms: Terms
    account: Account
    rooms: Sequence[RoundLimits]

    def noisier(self, table: Domain) -> float | None:
        """Return the variance beside that of a party's own table; None for columns of more than two parties."""
        held = holders(self.terms)
        parties = {held[name] for name in table.names}
        if len(parties) > PARTNERS:
            return None
        if len(parties) == 1:
            return 1.0
        sides = [table.project(name for name in table.names if held[name] == party).size for party in parties]
        return self.account.shares_to_whole if min(sides) > 1 else None

    def takes(self, number: int, tables: Sequence[Names], domain: Domain) -> bool:
        """Return whether a round can count all these tables over groups of levels."""
        if any(self.noisier(domain.project(names)) is None for names in tables):
            return False
        layout, room = layout_of(self.terms, tables, domain), self.rooms[number - 1]
        if not layout.across:
            return True
        dimension = sum(layout.size(names) for names in tables)
        noise = self.account.noise_of(number, len(tables), dimension)
        sizes = _sizes(self.terms, layout, noise, dimension)
        fits = sizes.whole.bits + noise.scale.bit_length() - 1 <= _MOST_BITS
        return fits and layout.traffic(sizes) <= room.traffic

    def check(self, question: Question) -> None:
        """Raise `RefusedError` unless this party's own study lets the question be asked in its round."""
        if not 1 <= question.number <= len(self.rooms):
            raise RefusedError(f"round {question.number} was asked, and the study has {len(self.rooms)} rounds")
        domain = self.terms.schema.domain
        check_question(question, domain, self.rooms[question.number - 1])
        if not self.takes(question.number, question.tables, question.grouping(domain).domain_of_groups):
            raise RefusedError(
                f"round {question.number}: a table is of columns at three parties or has a side of one value, or the "
                "tables across parties take more traffic than the study allows"
            )
