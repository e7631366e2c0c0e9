"""What the synthesis works out from a study before any row is read: rounds, noise, sizes, masks, and what it says."""

from functools import cached_property
from typing import Final, final

from syndic.errors import RefusedError
from syndic.kernel import (
    ALIGNED,
    GROUPS,
    PARTNERS,
    Disclosure,
    Plan,
    Resources,
    beyond_unit,
    change_of,
    not_covered,
    of_products,
    picture,
    shared_people,
    trust_with_groups,
)
from syndic.kernel.cut import averaged_in_words, copies, few_parties, some_lack
from syndic.kernel.disclosure import of_coordinator, units_of
from syndic.methods.synthesis.account import Account, against_parties
from syndic.methods.synthesis.cut import CutReach
from syndic.methods.synthesis.measure import Question, check_question
from syndic.methods.synthesis.size import Size, level_notes, most_drawn, most_rows
from syndic.methods.synthesis.zeros import Zeros
from syndic.model.markov import Impossible
from syndic.model.selection import Adaptive
from syndic.mpc.graph import SumGraph
from syndic.mpc.masked_sum import MaskedSums
from syndic.mpc.servers import STAGES
from syndic.privacy import Event

_CHUNK_BYTES: Final = 1 << 24
_LACKING: Final = "people that a table does not count: they are assumed to be like those that it counts"
_COINS_SHOWN: Final = (
    "noise from coins against a party that deviates while the coordinator only looks: the coordinator can then know "
    "it, and so the exact tables of that party and its partners"
)
_SERVER_SEES: Final = "one share of all rows each, which looks uniform, and what other parties see"


@final
class SynthesisPlan(Plan):
    """What chooses the tables, what each round costs and may ask, and the masks, which a single party does not need.

    `people`: the number of rows where it is public. `wanted`: how many rows the study wants, if it says so. `reach`:
    what groups of people can count, where they have several parties or lack columns.
    """

    selector: Adaptive
    account: Account
    size: Size
    masked_sums: MaskedSums | None
    zeros: tuple[Zeros, ...]
    people: int | None
    wanted: int | None
    reach: CutReach | None = None

    @cached_property
    def impossible(self) -> tuple[Impossible, ...]:
        """The impossible cells by code."""
        return tuple(one.mask(self.terms.schema) for one in self.zeros)

    @property
    def coordinator_noise(self) -> bool:
        """Whether the coordinator shares the noise of what several parties count."""
        return self.account.parties > len(self.terms.parties)

    @property
    def coins(self) -> bool:
        """Whether two parties toss coins for the noise of what both count."""
        return self.reach is not None and self.reach.coin_traffic > 0

    @property
    def graph(self) -> SumGraph | None:
        """Who masks with whom."""
        return self.masked_sums.graph if self.masked_sums else None

    @cached_property
    def most_rows(self) -> int:
        """The public bound on the rows of all parties."""
        return most_rows(self.terms)

    def drawn(self, total: float) -> int:
        """Return how many rows are drawn, given the number that the noisy counts say."""
        return self.wanted if self.wanted is not None else min(max(0, round(total)), most_drawn(self.terms))

    @property
    def rounds(self) -> tuple[str, ...]:
        """One party is asked for tables with the whole noise, several for masked ones, and groups multiply first."""
        if self.masked_sums is None:
            return ("measure",)
        keys, meet, *rest = self.masked_sums.rounds("count")
        proved = ("product_proved",) if self._proven else ()
        served = ("product_served",) if self.servers else ()
        products = ("ask_round", "product_keys", "product_masked", *served, *proved, "product_multiplied")
        asked = products if self.shared else products[:1]
        return (keys, meet, *(asked if self.reach else ()), *rest)

    @property
    def shared(self) -> bool:
        """Whether parties multiply: some hold columns of the same people."""
        return shared_people(self.terms)

    @property
    def servers(self) -> tuple[str, ...]:
        """The parties that multiply in place of the coordinator, if there are any."""
        return self.reach.servers if self.reach and self.shared else ()

    @property
    def held(self) -> tuple[str, ...]:
        """Who holds what, in lines."""
        return picture(self.reach.groups, self.terms.schema.names) if self.reach else ()

    @property
    def uncovered(self) -> tuple[str, ...]:
        """Which columns, pairs and tables to keep cannot be counted, or for a part, who stand for the others."""
        names, keep = self.terms.schema.names, self.selector.keep
        return not_covered(self.reach.groups, names, keep) if self.reach else ()

    def check_question(self, question: Question) -> None:
        """Raise `RefusedError` unless this study lets the question be asked in its round."""
        rooms, domain = self.size.rooms, self.terms.schema.domain
        if not 1 <= question.number <= len(rooms):
            raise RefusedError(f"round {question.number} was asked, and the study has {len(rooms)} rounds")
        check_question(question, domain, rooms[question.number - 1])
        grouped = question.grouping(domain).domain_of_groups
        if self.reach and not self.reach.takes(question.number, question.tables, grouped, parity=question.parity):
            raise RefusedError(
                f"round {question.number}: a table is of columns that no group has at {few_parties(self.reach.groups)},"
                " or has a side of one value, or those across parties take more traffic than the study allows"
            )

    def events(self, party: str) -> tuple[Event, ...]:
        """One event a round, the same for every party."""
        self.check_party(party)
        return self.account.events

    @cached_property
    def resources(self) -> Resources:
        """Memory at the busiest role, bytes of the largest reply, and about how long it takes."""
        terms, size, graph, rounds = self.terms, self.size, self.graph, len(self.account.events)
        parties, people, columns = len(terms.parties), self.most_rows, len(terms.schema.columns)
        noise = self.account.noise(Question(number=rounds, tables=((terms.schema.names[0],),)))
        deviation = noise.variance(noise.shares) ** 0.5
        bits = noise.ring(self.most_rows, size.round_cells).bits if graph else 64
        # a round may ask up to round_cells, but what helps at this noise is far less: a tenth of a count per cell
        typical = min(size.round_cells, int(10 * self.most_rows / deviation) + 1000)
        masked = parties * graph.neighbours * typical * 2e-8 if graph else 0.0
        traffic = sum(room.traffic for room in size.rooms)
        fitting = 1.5e-6 * size.model_cells + columns**2 / 600 + 6e-8 * traffic
        steps, products = len(self.rounds) - 2 if self.reach else 1, 1 + self.coins
        # the second product, of coins, has the steps of the first
        steps += self.coins * sum(name.startswith("product") for name in self.rounds)
        steps += STAGES * products if self.servers else 0
        return Resources(
            memory_bytes=size.memory_bytes,
            expected_bytes=size.expected_bytes,
            party_bytes=size.party_bytes,
            reply_bytes=max(typical * bits // 8 + 64, self._rows_bytes(1)),
            rounds=rounds * steps + (3 if graph else 1),
            seconds=round(2.0 + rounds * (people * columns / 1e8 + masked) + fitting, 1),
            notes=(
                f"{rounds} rounds; a model of at most {size.model_cells:,} cells, rounds of at most "
                f"{size.round_cells:,}",
                f"standard deviation {deviation:.3g} times the root of the number of tables on every count of the last "
                "round",
                *self._coarse,
                *((f"{graph.neighbours} neighbour{'s' * (graph.neighbours > 1)} per party",) if graph else ()),
                *self._of_cut,
                *level_notes(
                    self.account, self.selector, self.reach.noisier if self.reach else lambda _: 1.0, self.most_rows
                ),
            ),
        )

    @property
    def _coarse(self) -> tuple[str, ...]:
        """What is said where columns have fewer groups of levels than usual."""
        most = self.selector.most_levels
        if most == Adaptive().most_levels or max(self.terms.schema.domain.sizes) <= most:
            return ()
        return (
            f"levels of a column are put into at most {most} groups, so that all pairs of columns fit into memory: a "
            "larger limits.memory_mb allows more",
        )

    def _rows_bytes(self, senders: int) -> int:
        """Return the most bytes of masked rows, or coins, of so many parties in one message."""
        most, limit = max(room.traffic for room in self.size.rooms), self.terms.limits.message_mb * 10**6
        most = max(most, self.reach.coin_traffic) if self.reach else most
        return copies(self.servers) * min(most, senders * _CHUNK_BYTES, limit // 4)

    @property
    def _of_cut(self) -> tuple[str, ...]:
        if not self.reach:
            return ()
        traffic, least = sum(room.traffic for room in self.size.rooms), self.account.shares_to_whole**-0.5
        crossed = f"tables across parties take at most {traffic / 1e6:,.1f} MB in all" if self.shared else ""
        alone = f"the standard deviation of a table that one party counts is {least:.2g} times that"
        if self.coins:
            most = self.account.colluding == 1 and max(group.partners for group in self.reach.groups) > PARTNERS
            few = "two or three parties" if most else "two parties"
            alone += (
                f", and that of tables of {few}, whose coins take at most {self.reach.coin_traffic / 1e6:,.1f} "
                "MB a round, some 4 % more or up to that of all others where counts have little noise"
            )
        notes = [f"{alone}; {crossed}" if crossed else alone]
        if self.shared and any(len(group.parties) > group.partners for group in self.reach.groups):
            few = few_parties(self.reach.groups)
            notes.append(f"tables have columns of {few}: a relation that shows in no such table is lost")
        return tuple(notes)

    @property
    def largest_message(self) -> int:
        """The bytes of a reply, or of what a party or server gets from all others at once."""
        return self.resources.reply_bytes + self._rows_bytes(len(self.terms.parties) - 1)

    @property
    def too_large(self) -> tuple[str, str]:
        """What is too large if the run does not fit, and what to change."""
        return "a run", f"set fewer bins, {'less traffic ' if self.shared else ''}or larger limits"

    @property
    def disclosure(self) -> Disclosure:
        """What every role sees."""
        unit, graph = self.terms.unit, self.graph
        sets = sum(room.tables for room in self.size.rooms if room.parity)
        tables = sum(not room.parity for room in self.size.rooms)
        parities = f"noisy parities of at most {sets:,} set(s) of columns, " if sets else ""
        opened = f"the noisy tables of {tables} rounds, {parities}the model fitted to them and the rows drawn from it"
        moved = f", each parity by at most {unit.l1_of_counts()}{units_of(unit)}" if sets else ""
        at_once = " (of parities, as many as one row can change)" if sets and unit.neighbours == "replace" else ""
        served = "shares of tables, which look uniform, " if self.servers else ""
        rows = served or ("masked rows of its group, which look uniform, " if self.shared else "")
        tossed = ", of noise from coins one half, which looks uniform" if self.coins else ""
        asked = f"{rows}{opened}, and what was asked; each knows its own counts and share of noise{tossed}"
        sealed = "sealed rows that it cannot read, " if self.shared else ""
        own = "the tables without its own share of the noise, " if self.coordinator_noise else ""
        masked = f"{sealed}every party's masked answers, which look uniform, who dropped out, {own}and "
        party, places = ("group", "groups") if self.shared else ("party", "parties")
        masks: tuple[str, ...] = ()
        if graph:
            masks = (
                f"against more than {graph.colluding} colluding parties, who know their shares of the noise, or more "
                f"than {graph.missing} parties that omit theirs: less noise remains than stated",
                "the tables against a party that submits invented numbers: nothing checks them",
                "which parties take part or drop out",
            )
        return Disclosure(
            sees={
                "coordinator": f"{masked if graph else ''}{opened}",
                **({f"servers {', '.join(self.servers)}": _SERVER_SEES} if self.servers else {}),
                **({"other parties": asked} if graph else {}),
                "anyone with the release": opened,
            },
            sensitivity=(
                f"{change_of(unit)} one person's {unit.rows} row(s) at one {party} changes each table by at most "
                f"{unit.l2_squared_of_counts()} in squared l2{units_of(unit)}{moved}"
                f"{averaged_in_words(self.reach.groups) if self.reach else ''}; the noise of a round is "
                f"calibrated to as many as it asks{at_once}; at up to {unit.parties} of the {places} the changes add "
                f"up in the same sum, so the noise is calibrated to {unit.parties} time(s) that, and each of these "
                f"parties is charged 1/{unit.parties} of the round's part of the budget"
            ),
            against=against_parties(self.terms, self.account, self.account.events),
            not_protected=(
                GROUPS,
                f"people in more than {unit.parties} of the groups" if self.shared else beyond_unit(unit),
                *masks,
                *((*of_products(proven=self._proven, servers=self.servers), ALIGNED) if self.shared else ()),
                *((_COINS_SHOWN,) if self.coins and not self.servers else ()),
                *((of_coordinator(self.account.parties - self.account.colluding),) if self.coordinator_noise else ()),
                *((_LACKING,) if self.reach and some_lack(self.reach.groups, self.terms.schema.names) else ()),
                "the columns, bounds, labels and people, and which combinations of values were declared impossible: "
                "they are public",
            ),
            trust=trust_with_groups(
                self.account.colluding, proven=self._proven, servers=self.servers, noise=self.coordinator_noise
            )
            if self.shared
            else "",
        )

    @property
    def _proven(self) -> bool:
        return self.reach is not None and self.reach.proven
