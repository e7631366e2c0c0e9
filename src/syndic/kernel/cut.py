"""How a study's data are cut: groups of people, and which party holds each column of a group.

Parties that name the same `group` hold columns of the same people, in the same order. If no party names one, parties
that list their `columns` are one group, and parties that hold all columns have different people: a group each. A table
of counts is the sum over groups of what one party counts, or two parties together, or three by four servers.

A column that several parties of a group hold is read from the first, or from those that the study names in `read_from`.
From several it is averaged: a person counts in equal parts with the values of each. Columns that are read from the same
parties are read together, from one of them in each part; the others are chosen independently.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations, product
from math import lcm, prod
from typing import Final, final

from syndic.document import Document
from syndic.errors import InputError
from syndic.kernel.terms import Adversary, Member, Terms, budget_of
from syndic.privacy import Budget

PARTNERS: Final = 2
"""How many parties can count a table together, if the coordinator deals: a secure product then has two factors."""

_SERVERS: Final = (3, 4)

MOST_PARTS: Final = 24
"""Into how many equal parts a person is cut at most where columns are averaged: sums need as many times the room."""

Sides = tuple[tuple[str, tuple[str, ...]], ...]
"""The parties that count a table, in the study's order, and the columns of each."""


@final
class Group(Document):
    """The people of one group. `read_from`: the parties that a column is read from, in the study's order.

    `also`: the other parties that hold a column, from which it is not read. `partners`: how many of the parties can
    count a table together.
    """

    name: str
    parties: tuple[str, ...]
    people: int
    read_from: Mapping[str, tuple[str, ...]]
    also: Mapping[str, tuple[str, ...]] = {}
    partners: int = PARTNERS

    def shown(self, column: str) -> str:
        """Return the parties that a column is read from, and those that hold it too, or "-"."""
        read, others = self.read_from.get(column, ("-",)), self.also.get(column, ())
        averaged = ", averaged" if len(read) > 1 else ""
        return " and ".join(read) + averaged + (f" (also {', '.join(others)})" if others else "")

    def counted_by(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the parties that count a table of some columns, in the study's order; empty if they cannot."""
        read = {self.read_from.get(name, ()) for name in names}
        found: set[str] = set().union(*read)
        most = self.partners
        several = len(found) > most and any(len({*choice}) > most for choice in product(*read))
        return () if several or () in read else tuple([party for party in self.parties if party in found])

    def counts_alone(self, names: Collection[str]) -> str | None:
        """Return the one party that counts every table of some columns, if there is one."""
        found = {self.read_from.get(name, ()) for name in names}
        parties = found.pop() if len(found) == 1 else ()
        return parties[0] if len(parties) == 1 else None

    def parts(self, names: Iterable[str]) -> int:
        """Return into how many equal parts a person is cut in a table of some columns."""
        return prod(map(len, {self.read_from[name] for name in names if name in self.read_from}))

    def ways(self, names: Sequence[str]) -> tuple[Sides, ...]:
        """Return who counts a table of some columns, for each part of a person; empty if they cannot."""
        if not (parties := self.counted_by(names)):
            return ()
        read, found = [self.read_from[name] for name in names], []
        sets = list(dict.fromkeys(read))
        for choice in product(*sets):
            own = [choice[sets.index(one)] for one in read]
            sides = [(one, tuple([name for name, of in zip(names, own, strict=True) if of == one])) for one in parties]
            found.append(tuple([side for side in sides if side[1]]))
        return tuple(found)


def parts_of(groups: Sequence[Group]) -> int:
    """Return into how many equal parts a person is cut, so that every count is a whole number of them."""
    return lcm(*(group.parts(group.read_from) for group in groups))


def averaged_in_words(groups: Sequence[Group]) -> str:
    """Return how a person counts where columns are averaged, to follow what a person changes; else nothing."""
    parts = parts_of(groups)
    return f", as a mean over {parts} equal parts of the person, with columns from different parties" * (parts > 1)


def groups_of(terms: Terms, partners: int = PARTNERS) -> tuple[Group, ...]:
    """Return the groups of people, in the order of their first parties; `partners` of one can count together."""
    names, rule, found = terms.schema.names, terms.read_from or {}, []
    for (_, name), parties in _members(terms).items():
        every, people = tuple(one.name for one in parties), _people(parties)
        read_from, also = dict[str, tuple[str, ...]](), dict[str, tuple[str, ...]]()
        if len(parties) == 1:  # there may be very many groups of one party
            read_from = dict.fromkeys(names if parties[0].columns is None else parties[0].columns, every)
            found.append(Group(name=name, parties=every, people=people, read_from=read_from))
            continue
        held: dict[str, list[str]] = {}
        for one in parties:
            for column in names if one.columns is None else one.columns:
                held.setdefault(column, []).append(one.name)
        for column, own in held.items():
            read = [party for party in own if party in rule.get(column, ())] or own[:1]
            read_from[column] = tuple(read)
            if others := tuple(party for party in own if party not in read):
                also[column] = others
        group = Group(name=name, parties=every, people=people, read_from=read_from, also=also, partners=partners)
        found.append(group)
    return tuple(found)


def check_servers(servers: tuple[str, ...], adversary: Adversary) -> None:
    """Raise `ValueError` unless a method's `servers` are none, three or four, and parties prove their rows."""
    if servers and (len(servers) not in _SERVERS or len(set(servers)) != len(servers)):
        raise ValueError("servers must name three or four different parties, or none: the coordinator then deals")
    if servers and adversary != "active":
        raise ValueError(
            'servers needs adversary "active": shares are proven, or a party could read a partner\'s record'
        )


def partners_with(servers: tuple[str, ...], colluding: int) -> int:
    """Return how many parties' columns a table may have: so many factors have a degree below the number of servers.

    Two parties have the shares of a table, and together its exact counts: two that collude may have no third partner.
    """
    return len(servers) - 1 if servers and colluding == 1 else PARTNERS


def few_parties(groups: Sequence[Group]) -> str:
    """Return at how many parties of a group the columns of a table may be, in words."""
    return "one, two or three parties" if max(group.partners for group in groups) > PARTNERS else "one or two parties"


def copies(servers: tuple[str, ...]) -> int:
    """Return how many times rows are sent: as packed shares, of which one server needs none, or masked once."""
    return max(1, len(servers) - 1)


def most_people(terms: Terms) -> int:
    """Return how many people all groups have, at most."""
    return sum(map(_people, _members(terms).values()))


def _people(parties: Sequence[Member]) -> int:
    return max(one.people or 0 for one in parties)


def _members(terms: Terms) -> dict[tuple[bool, str], list[Member]]:
    """Return the parties of each group, by whether the study names it, and its name."""
    listed = any(party.columns is not None for party in terms.parties)
    together = listed and not any(party.group for party in terms.parties)
    found: dict[tuple[bool, str], list[Member]] = {}
    for party in terms.parties:
        own = (True, party.group) if party.group else (False, "all" if together else party.name)
        found.setdefault(own, []).append(party)
    return found


def shared_people(terms: Terms) -> bool:
    """Return whether some group has several parties: who is in it is then known to them."""
    if all(party.columns is None and not party.group for party in terms.parties):
        return False
    return any(len(parties) > 1 for parties in _members(terms).values())


def granted(terms: Terms) -> dict[str, frozenset[Budget]]:
    """Return for every party the budgets of all parties that have its people: a release about them must keep each."""
    found: dict[str, frozenset[Budget]] = {}
    for group in groups_of(terms):
        own = frozenset(budget_of(terms, name) for name in group.parties)
        found |= dict.fromkeys(group.parties, own)
    return found


def covered(groups: Sequence[Group], names: Iterable[str]) -> int:
    """Return how many people a table of some columns can count."""
    wanted = tuple(names)
    return sum(group.people for group in groups if group.counted_by(wanted))


def check_held(groups: Sequence[Group], names: Iterable[str]) -> None:
    """Raise `InputError` for a column that no party holds."""
    for name in names:
        if not any(name in group.read_from for group in groups):
            raise InputError(f"column '{name}' is held by no party: give it to one, or remove it from the schema")


def picture(groups: Sequence[Group], names: Sequence[str]) -> tuple[str, ...]:
    """Return lines that show who holds what: a line for each column, a place for each group."""
    cells = [
        ("", *(f"{group.name} ({group.people:,})" for group in groups)),
        *((name, *(group.shown(name) for group in groups)) for name in names),
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return tuple(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells
    )


def some_lack(groups: Sequence[Group], names: Sequence[str]) -> bool:
    """Return whether some table of some columns counts a part of the people only."""
    # columns read from the same parties are alike; one more than there are partners are at too many if any number is
    alike = [{parties: name for name, parties in group.read_from.items()}.values() for group in groups]
    spread = any(
        not group.counted_by(names)
        for group, own in zip(groups, alike, strict=True)
        for names in combinations(own, group.partners + 1)
    )
    return bool(not_covered(groups, names)) or (spread and len(groups) > 1)


def not_covered(
    groups: Sequence[Group], names: Sequence[str], tables: Sequence[Sequence[str]] = (), *, most: int = 6
) -> tuple[str, ...]:
    """Return which columns, pairs and larger `tables` cannot be counted, or for a part of the people; few of many.

    A pair is named if it is counted for fewer people than each of its columns, a larger table if for fewer than each
    of its pairs.
    """
    whole = sum(group.people for group in groups)
    single = {name: covered(groups, (name,)) for name in names}
    pairs = {f"{one} x {other}": covered(groups, (one, other)) for one, other in combinations(names, 2)}
    least = {f"{one} x {other}": min(single[one], single[other]) for one, other in combinations(names, 2)}
    lacking = {what: people for what, people in single.items() if people < whole}
    lacking |= {what: people for what, people in pairs.items() if people < least[what]}
    for table in tables:
        people = covered(groups, table)
        if people < min((covered(groups, pair) for pair in combinations(table, 2)), default=0):
            lacking[" x ".join(table)] = people
    by_people: dict[int, list[str]] = {}
    for what, people in lacking.items():
        by_people.setdefault(people, []).append(what)
    return tuple(
        f"{', '.join(found[:most])}{f' and {len(found) - most:,} more' if len(found) > most else ''}: "
        + (f"counted for {people / whole:.0%} of the people" if people else "cannot be counted")
        for people, found in sorted(by_people.items())
    )
