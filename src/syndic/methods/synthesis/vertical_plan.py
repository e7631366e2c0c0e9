"""What the vertical synthesis works out from a study before any row is read: rounds, noise, traffic, what it says."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Final, final

from msgspec.structs import replace

from syndic.data import Domain
from syndic.errors import InputError, RefusedError
from syndic.kernel import (
    ALIGNED,
    DEALER_AND_PARTY,
    GROUPS,
    PARTNERS,
    Disclosure,
    Group,
    Plan,
    Resources,
    Terms,
    against_partners,
    budgets_of,
    of_products,
    product_sees,
    trust_in,
)
from syndic.methods.layout import Names, layout_of, same_people
from syndic.methods.synthesis.account import Account
from syndic.methods.synthesis.measure import Question, check_question
from syndic.methods.synthesis.size import Size, list_notes, most_rows
from syndic.methods.synthesis.vertical_rounds import Round, alone, opens_in_word, plan_round, room_for
from syndic.methods.synthesis.zeros import Zeros
from syndic.model.markov import Adaptive, Impossible
from syndic.mpc.threeserver import STAGES
from syndic.privacy import Cost, Event, GaussianEvent

# Of one masked entry of a chunk at a party: as drawn, opened, unpacked and multiplied.
_ENTRY_BYTES: Final = 32
_CHUNK_ENTRIES: Final = 1 << 24


@final
class VerticalPlan(Plan):
    """What chooses the tables, what each round costs and may ask, and how many rows are drawn.

    `account` is of tables across parties, whose noise two partners share; `proven` whether parties prove their rows;
    `servers` are the parties that multiply, if not the coordinator deals.
    """

    selector: Adaptive
    account: Account
    size: Size
    zeros: tuple[Zeros, ...]
    rows: int
    proven: bool
    servers: tuple[str, ...] = ()

    @cached_property
    def impossible(self) -> tuple[Impossible, ...]:
        """The impossible cells by code."""
        return tuple(one.mask(self.terms.schema) for one in self.zeros)

    @cached_property
    def holder(self) -> Mapping[str, str]:
        """Which party has each column."""
        return holders(self.terms)

    # What may be asked, and how it is answered.

    def noisier(self, table: Domain) -> float | None:
        """Return the variance beside that of a party's own table; None for columns of more than two parties."""
        parties = {self.holder[name] for name in table.names}
        if len(parties) > PARTNERS:
            return None
        if len(parties) == 1:
            return 1.0
        sides = [table.project(name for name in table.names if self.holder[name] == party).size for party in parties]
        return self.account.shares_to_whole if min(sides) > 1 else None

    def takes(self, number: int, tables: Sequence[Names], domain: Domain) -> bool:
        """Return whether a round can count all these tables over groups of levels."""
        if any(self.noisier(domain.project(names)) is None for names in tables):
            return False
        layout = layout_of(same_people(self.terms, self.holder), tables, domain)
        if not layout.across:
            return True
        noise = self.account.noise_of(number, len(tables), layout.dimension)
        try:
            sizes = layout.sizes(self.terms, room_for(noise, layout), proven=self.proven)
        except InputError:  # more noise than any field has room for
            return False
        return opens_in_word(sizes, noise) and layout.traffic(sizes) <= self.size.rooms[number - 1].traffic

    def check_question(self, question: Question) -> None:
        """Raise `RefusedError` unless this study lets the question be asked in its round."""
        rooms, domain = self.size.rooms, self.terms.schema.domain
        if not 1 <= question.number <= len(rooms):
            raise RefusedError(f"round {question.number} was asked, and the study has {len(rooms)} rounds")
        check_question(question, domain, rooms[question.number - 1])
        if not self.takes(question.number, question.tables, question.grouping(domain).domain_of_groups):
            raise RefusedError(
                f"round {question.number}: a table is of columns at three parties or has a side of one value, or the "
                "tables across parties take more traffic than the study allows"
            )

    @cached_property
    def round_of(self) -> Callable[[Question], Round]:
        """How a question that was checked is answered; the last ones are kept, since every chunk of rows needs it."""
        return lru_cache(maxsize=4)(self._round_of)

    def _round_of(self, question: Question) -> Round:
        domain = question.grouping(self.terms.schema.domain).domain_of_groups
        # partners who were asked different things cannot read each other's mail; a part of a digest can be made equal
        label = f"round {question.number}, {question.digest.hex()}"
        layout = layout_of(same_people(self.terms, self.holder), question.tables, domain)
        return plan_round(
            self.terms, self.account, question.number, layout, label, proven=self.proven, servers=self.servers
        )

    # What is said before any row is read.

    @property
    def rounds(self) -> tuple[str, ...]:
        """A round is asked and vouched for; tables across parties are multiplied; all noisy tables open."""
        proved = ("product_proved",) if self.proven else ()
        served = ("product_served",) if self.servers else ()
        products = ("product_keys", "product_masked", *served, *proved, "product_multiplied")
        return ("ask_round", "vouch_round", *products, "open_round")

    def events(self, party: str) -> tuple[Event, ...]:
        """One event a round, the same for every party: each is charged for the whole release."""
        self.check_party(party)
        return self.account.events

    @cached_property
    def epsilons(self) -> tuple[float, float]:
        """The epsilon against everyone who knows no share of the noise, and against a partner of every table."""
        return epsilons_of(self.terms, (), self.account.events, self.account.colluding)

    @cached_property
    def resources(self) -> Resources:
        """Memory at the busiest role, bytes of the largest message, time for multiplying and fitting."""
        size, rounds, columns = self.size, len(self.size.rooms), len(self.terms.schema.columns)
        traffic = [room.traffic for room in size.rooms]
        both = self.account.noise_of(rounds, 1, PARTNERS).variance(PARTNERS) ** 0.5
        single = alone(self.account).noise_of(rounds, 1, PARTNERS).variance(1) ** 0.5
        counting, fitting = rounds * most_rows(self.terms) / 1e6, 1.5e-6 * size.model_cells + columns**2 / 600
        return Resources(
            memory_bytes=size.memory_bytes,
            reply_bytes=(2 if self.servers else 1) * min(max(traffic), _CHUNK_ENTRIES) + 8 * size.round_cells,
            rounds=(len(self.rounds) + (STAGES if self.servers else 0)) * rounds,
            seconds=round(2.0 + 6e-8 * sum(traffic) + counting + fitting, 1),
            notes=(
                f"{rounds} rounds; a model of at most {size.model_cells:,} cells; tables across parties take at most "
                f"{sum(traffic) / 1e6:,.1f} MB in all",
                f"standard deviation {single:.3g} on every count of a table within a party and {both:.3g} across two, "
                "in the last round for each table that shares it, times the root of their number",
                *list_notes(alone(self.account), self.selector),
            ),
        )

    @property
    def largest_message(self) -> int:
        """The bytes of what a party gets from all others at once."""
        return (len(self.terms.parties) - 1) * self.resources.reply_bytes

    @property
    def too_large(self) -> tuple[str, str]:
        """What is too large if the run does not fit, and what to change."""
        return "a run", "set fewer bins, less traffic or larger limits"

    @property
    def disclosure(self) -> Disclosure:
        """What every role sees."""
        rounds = len(self.size.rooms)
        return disclosure_of(
            opened=f"the noisy tables of {rounds} rounds, the model fitted to them and the rows drawn from it",
            party_sees=", what was asked",
            sensitivity=(
                "replacing one person's values at all parties at once changes two counts by one in every table, so the "
                "k tables of a round by 2 k in squared l2; the noise of a round is calibrated to as many as it asks, "
                "within and across parties alike, and every party is charged for the whole round"
            ),
            epsilons=self.epsilons,
            proven=self.proven,
            servers=self.servers,
            known=(
                "the columns, bounds, labels and people, and which combinations of values were declared impossible: "
                "they are public",
            ),
        )


def holders(terms: Terms) -> dict[str, str]:
    """Return which party has each column."""
    return {name: party.name for party in terms.parties for name in party.columns or ()}


def limit_traffic(
    terms: Terms,
    account: Account,
    selector: Adaptive,
    size: Size,
    traffic: int,
    *,
    proven: bool,
    groups: Sequence[Group] = (),
) -> Size:
    """Give the round of pairs what it takes, at most half of the traffic, and the rest evenly to chosen tables.

    The first round is counted at home. `traffic` is in bytes a person. `groups` are those of any cut, whose tables are
    added; without them all parties hold columns of the same people.
    """
    whole = traffic * most_rows(terms)
    pairs = _pairs_traffic(terms, account, selector, proven=proven, groups=groups)
    chosen, second = len(size.rooms) - 2, min(pairs, whole // 2)
    parts = (0, second, *[(whole - second) // chosen] * chosen)
    rooms = tuple(replace(room, traffic=part) for room, part in zip(size.rooms, parts, strict=True))
    held = _ENTRY_BYTES * min(_CHUNK_ENTRIES, max(parts))
    return replace(size, rooms=rooms, memory_bytes=size.memory_bytes + held)


def _pairs_traffic(terms: Terms, account: Account, selector: Adaptive, *, proven: bool, groups: Sequence[Group]) -> int:
    """Return about how many bytes all pairs of columns across parties take, at most, once rare levels are grouped."""
    domain = terms.schema.domain
    grouped = Domain(domain.names, tuple(min(size, selector.most_levels) for size in domain.sizes))
    tables = [names for names in selector.pairs(grouped) if min(grouped.project(names).sizes) > 1]
    layout = layout_of(groups or same_people(terms, holders(terms)), tables, grouped)
    if not layout.across:
        return 0
    room = room_for(account.noise_of(2, len(tables), layout.dimension), layout)
    room += sum(group.people for group in groups)
    return layout.traffic(layout.sizes(terms, room, proven=proven))


# Of all methods whose partners share the noise of tables from secure products.


def epsilons_of(
    terms: Terms, whole: Sequence[GaussianEvent], shared: Sequence[GaussianEvent], colluding: int
) -> tuple[float, float]:
    """Return the epsilon against everyone who knows no share of the noise, and against a partner of every table.

    Events that are `shared` are of tables whose noise two partners share; no one knows a part of the `whole` ones.
    """
    delta = min(budget.delta for budget in budgets_of(terms))
    times = 1 if colluding else PARTNERS
    # of half the noise: twice the mu^2, and four times the slack, which goes with the squared variance
    left = [GaussianEvent(mu_squared=times * event.mu_squared, slack=times**2 * event.slack) for event in shared]
    outside, partner = (Cost.of([*whole, *events]).epsilon(delta) for events in (shared, left))
    return float(outside), float(partner)


def disclosure_of(
    *,
    opened: str,
    sensitivity: str,
    epsilons: tuple[float, float],
    known: tuple[str, ...],
    together: str = DEALER_AND_PARTY,
    proven: bool = False,
    servers: tuple[str, ...] = (),
    party_sees: str = "",
) -> Disclosure:
    """Return what every role sees.

    `together` is what coordinator and one party could read, `known` what is known without the release, `party_sees`
    what parties see besides masked rows.
    """
    outside, partner = epsilons
    first, *rest = of_products(proven=proven, servers=servers)
    return Disclosure(
        sees=product_sees(opened, party=party_sees, servers=servers),
        sensitivity=sensitivity,
        against=against_partners(outside, partner),
        not_protected=(first if servers else together, *rest, ALIGNED, GROUPS, *known),
        trust=trust_in(proven=proven, servers=servers),
    )
