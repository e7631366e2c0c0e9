"""The public terms of a study: all parties agreed to them, and every protocol may read them."""

import re
import typing
from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction

from msgspec import UNSET, UnsetType

from syndic.data import Schema, Source, Table
from syndic.document import Document
from syndic.errors import InputError
from syndic.kernel.identity import PublicIdentity
from syndic.privacy import Account, Budget, Unit, mu_squared_for

Adversary = typing.Literal["active", "passive"]
"""Whether a method protects people also from a role that deviates from the protocol, or from curious ones only."""

ReadFrom = Mapping[str, tuple[str, ...]] | UnsetType
"""For some columns, the parties that they are read from; unset if the study names none."""


class Member(Document):
    """One organisation of a study.

    `people` is a public bound on the number of its people (under `replace`: their exact number).
    `budget` is the privacy budget that this organisation grants its own people, if not the study's.
    `columns` are the columns of the schema that it holds, if not all. `group` is the name of a group of people: parties
    of one group hold columns of the same people, and `alignment` is the digest of the study that aligned them.
    `identity` is its public keys, for studies between organisations: `syndic identity` prints the line. `owner` is the
    name of an organisation that has several groups of people, and so takes part as several parties.
    """

    name: str
    people: int | None = None
    budget: Budget | None = None
    columns: tuple[str, ...] | None = None
    identity: str | None = None
    group: str | None = None
    alignment: str | None = None
    owner: str | UnsetType = UNSET

    def __post_init__(self) -> None:
        """Check that names can be folder names and that the bound is a number of people."""
        for what, name in (("name", self.name), ("group", self.group), ("owner", self.owner or None)):
            if name is not None:
                check_name(what, name)
        if self.people is not None and self.people < 1:
            raise ValueError(f"people ({self.people}) must be at least 1")
        check_digest(self.alignment)
        if self.identity is not None:
            PublicIdentity.read(self.identity)


def check_name(what: str, name: str) -> None:
    """Raise `ValueError` unless a name can be a folder's name."""
    if not re.fullmatch("[A-Za-z0-9_-]{1,64}", name):
        raise ValueError(f"{what} ({name!r}) must be 1 to 64 ASCII letters, digits, '-' or '_'")


def check_digest(alignment: str | None) -> None:
    """Raise `ValueError` unless this is the digest of a study, or None."""
    if alignment is not None and not re.fullmatch("[0-9a-f]{64}", alignment):
        raise ValueError("alignment must be the digest of an alignment study: 64 hexadecimal digits")


class CoordinatorKey(Document):
    """The coordinator of a study between organisations: parties refuse calls that this `identity` did not sign."""

    identity: str

    def __post_init__(self) -> None:
        """Check that the line is an identity."""
        PublicIdentity.read(self.identity)


class Limits(Document):
    """The most memory a role may use and the largest message, in megabytes (10^6 bytes)."""

    memory_mb: int = 2000
    message_mb: int = 500

    def __post_init__(self) -> None:
        """Check that both limits are positive."""
        if self.memory_mb < 1 or self.message_mb < 1:
            raise ValueError("memory_mb and message_mb must be at least 1")


class Terms(typing.Protocol):
    """The public terms of a study; `Study` is the document that carries them."""

    @property
    def schema(self) -> Schema:
        """The columns."""

    @property
    def unit(self) -> Unit:
        """Who is protected."""

    @property
    def budget(self) -> Budget:
        """The privacy budget for one person over the whole joint release."""

    @property
    def parties(self) -> tuple[Member, ...]:
        """The organisations."""

    @property
    def by_name(self) -> Mapping[str, Member]:
        """The parties by name, in their order: there may be very many."""

    @property
    def by_owner(self) -> Mapping[str, tuple[Member, ...]]:
        """The parties as which each organisation takes part."""

    @property
    def read_from(self) -> ReadFrom:
        """The parties that some columns are read from: one of several that hold a column, or several to average."""

    @property
    def limits(self) -> Limits:
        """The most memory and the largest message of a role."""


def member(terms: Terms, name: str) -> Member:
    """Return the organisation called `name`."""
    if name not in terms.by_name:
        raise InputError(f"'{name}' is not a party of this study; its parties are {', '.join(terms.by_name)}")
    return terms.by_name[name]


def owner_of(party: Member) -> str:
    """Return the name of the organisation that takes part as this party."""
    return party.owner or party.name


def named(parties: Iterable[Member]) -> dict[str, Member]:
    """Return parties by name, in their order."""
    return {party.name: party for party in parties}


def owned(parties: Iterable[Member]) -> dict[str, tuple[Member, ...]]:
    """Return by owner the parties as which each organisation takes part."""
    found: dict[str, tuple[Member, ...]] = {}
    for party in parties:
        found[owner_of(party)] = (*found.get(owner_of(party), ()), party)
    return found


def parties_of(terms: Terms, owner: str) -> tuple[Member, ...]:
    """Return the parties as which an organisation takes part."""
    return terms.by_owner.get(owner, ())


def owners_of_several(terms: Terms) -> dict[str, tuple[Member, ...]]:
    """Return the organisations that take part as several parties, with these parties."""
    return {owner: parties for owner, parties in terms.by_owner.items() if len(parties) > 1}


def most_parties(terms: Terms, organisations: int) -> int:
    """Return as how many parties so many organisations take part at most."""
    parties = Counter(owner_of(party) for party in terms.parties)
    return sum(count for _, count in parties.most_common(organisations)) + max(0, organisations - len(parties))


def account_of(terms: Terms, name: str, run: str) -> Account:
    """Return under which name a party's ledger keeps a run.

    The parties of an organisation have one ledger, and a person is at up to `unit.parties` of them. That is relied on
    only where one alignment found all their groups, which are then different people; otherwise a person may be at all.
    """
    own = member(terms, name)
    every = parties_of(terms, owner_of(own))
    beside = tuple(_account(one, run).name for one in every if one is not own)
    apart = own.alignment is not None and {one.alignment for one in every} == {own.alignment}
    most = min(terms.unit.parties, len(every)) if apart else len(every)
    return Account(run=run, party=_account(own, run).party, beside=beside, most=most)


def _account(party: Member, run: str) -> Account:
    return Account(run=run, party="" if party.name == owner_of(party) else party.name)


def identified(terms: Terms) -> bool:
    """Return whether the parties have identities; if so, they exchange signed agreements before they answer."""
    return all(candidate.identity is not None for candidate in terms.parties)


def adversary_of(stated: Adversary | None, colluding: int) -> Adversary:
    """Return the adversary of a method whose partners share noise: by default active where `colluding` allows for it.

    Between organisations an active adversary also needs identities, without which no study runs there.
    """
    if stated == "active" and not colluding:
        raise ValueError(
            'adversary ("active") needs colluding = 1: a partner that deviates adds no noise, so the other share must '
            "be enough"
        )
    return stated or ("active" if colluding else "passive")


def schema_of(terms: Terms, name: str) -> Schema:
    """Return the columns that the party called `name` holds."""
    columns = member(terms, name).columns
    return terms.schema if columns is None else terms.schema.select(columns)


def table_of(terms: Terms, name: str, source: Source, *, key: bytes, id_columns: tuple[str, ...] = ()) -> Table:
    """Return the rows of a party as the unit counts them; `key` chooses random ones."""
    return Table(
        schema=schema_of(terms, name),
        source=source,
        person=terms.unit.person,
        rows_per_person=terms.unit.rows,
        id_columns=id_columns,
        choose=terms.unit.choose,
        key=key,
        size=public_rows(terms, name),
        whole=terms.unit.scale,
    )


def budget_of(terms: Terms, name: str) -> Budget:
    """Return the budget of the party called `name`: its own, or else the study's."""
    return member(terms, name).budget or terms.budget


def people_of(terms: Terms) -> int | None:
    """Return a public bound on the number of people of all parties together, or None if a party gives none."""
    bounds = [candidate.people for candidate in terms.parties]
    return None if None in bounds else sum(bound for bound in bounds if bound is not None)


def budgets_of(terms: Terms) -> tuple[Budget, ...]:
    """Return the study's budget and the parties' own budgets; the cost of one sum must fit into each."""
    return (terms.budget, *(party.budget for party in terms.parties if party.budget is not None))


def strictest(terms: Terms) -> Budget:
    """Return the least epsilon and the least delta of all budgets; they may be of different parties."""
    budgets = budgets_of(terms)
    return Budget(epsilon=min(one.epsilon for one in budgets), delta=min(one.delta for one in budgets))


def strictest_mu_squared(terms: Terms, slack: Fraction = Fraction(0)) -> Fraction:
    """Return the largest mu^2 of Gaussian events that fit into every budget, `slack` included."""
    return min(mu_squared_for(budget.epsilon, budget.delta, slack) for budget in budgets_of(terms))


def public_rows(terms: Terms, name: str) -> int | None:
    """Return the number of rows of the party called `name` if it is public, else None."""
    return member(terms, name).people if terms.unit.sizes_are_public else None


def most_rows(terms: Terms, name: str) -> int:
    """Return the public bound on the rows of the party called `name`, or 0, in units of 1/`unit.scale`."""
    return (member(terms, name).people or 0) * terms.unit.most
