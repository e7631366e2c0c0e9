"""Define the agreed document: who takes part, what is protected, what may be spent, by which method."""

import hashlib
from collections import Counter
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import ClassVar, Literal, Self, TypeVar, final

from msgspec import UNSET

from syndic.data import Schema
from syndic.data.lists import with_lists
from syndic.document import Document, from_file, from_toml, run_checks, to_json
from syndic.errors import InputError
from syndic.kernel import (
    CoordinatorKey,
    Limits,
    Member,
    Plan,
    PublicIdentity,
    Step,
    account_of,
    budgets_of,
    groups_of,
    make_plan,
    member,
    most_people,
    owner_of,
    parties_of,
    people_of,
    shared_people,
    steps_of_run,
)
from syndic.kernel.terms import ReadFrom, check_digest, named, owned, owners_of_several
from syndic.methods import Align, AnyMethod
from syndic.privacy import Budget, Cost, Price, Unit, check_delta, joint_cost
from syndic.privacy.covered import charge_of

Kind = TypeVar("Kind", bound=Plan)
Partition = Literal["horizontal", "vertical", "mixed"]

# Part of every digest: increased when the meaning of a study file changes.
_FORMAT = b"syndic study 1\n"


@final
class Study(Document, dict=True):
    """A study: public, hashed, the same at every party.

    `edition` distinguishes a repetition from a retry: running the same study again returns the stored answers, another
    edition is another study with its own cost. `alignment` is the digest of the study that aligned the people of a
    vertical one: each party then reads its rows in the agreed order. `coordinator` is who may ask parties with
    identities. `read_from` names, for a column that several parties of the same people hold, the party that it is read
    from, or several: it is then averaged. By default it is the first.
    """

    name: str
    unit: Unit
    budget: Budget
    protocol: AnyMethod
    parties: tuple[Member, ...]
    schema: Schema
    limits: Limits = Limits()
    purpose: str = ""
    edition: int = 1
    alignment: str | None = None
    coordinator: CoordinatorKey | None = None
    read_from: ReadFrom = UNSET

    def __hash__(self) -> int:
        """Return a hash of the digest."""
        return hash(self.digest)

    def __post_init__(self) -> None:
        run_checks(self, self.checks)

    def _check_name(self) -> None:
        if not self.name.strip():
            raise ValueError("name must not be empty")

    def _check_parties(self) -> None:
        if not self.parties:
            raise ValueError("parties must name at least one party")
        names = [party.name.lower() for party in self.parties]
        twice = sorted(name for name, times in Counter(names).items() if times > 1)
        if twice:
            raise ValueError(f"two parties are called '{twice[0]}': names must differ, ignoring upper and lower case")

    def _check_unit_parties(self) -> None:
        if self.unit.parties > len(self.parties) > 0:
            raise ValueError(f"unit.parties ({self.unit.parties}) must be at most the {len(self.parties)} parties")
        groups = len({party.group or f"party {party.name}" for party in self.parties})
        if self.unit.parties > groups > 0:
            raise ValueError(
                f"unit.parties ({self.unit.parties}) must be at most the {groups} groups: it says in how many of them "
                "a person may be"
            )

    def _check_owners(self) -> None:
        if len({party.name.lower() for party in self.parties}) < len(self.parties):
            return  # two parties of one name would seem to be of one owner
        owners = {owner_of(party) for party in self.parties}
        if len({owner.lower() for owner in owners}) < len(owners):
            raise ValueError("owner: two owners differ only in upper and lower case")
        for owner, parties in owners_of_several(self).items():
            groups = [party.group for party in parties]
            if None in groups or len(set(groups)) < len(groups):
                raise ValueError(
                    f"owner '{owner}': its parties must each name a `group`, all different: in one group an "
                    "organisation is one party"
                )
            if owner.lower() in {party.name.lower() for party in self.parties}:
                # that party's account has no party in its name, and so is in every ledger somebody's own
                raise ValueError(f"owner '{owner}': no party may be called like the owner of several: rename the party")

    def _check_alignment(self) -> None:
        check_digest(self.alignment)

    def _check_person(self) -> None:
        if self.unit.person is not None and self.unit.person in (*self.schema.names, *self.schema.inputs):
            raise ValueError(f"unit.person ('{self.unit.person}') identifies people: it must not be a schema column")

    def _check_identities(self) -> None:
        known = [PublicIdentity.read(party.identity) for party in self.parties if party.identity is not None]
        keys = {key for one in known for key in (one.signing, one.sealing)}
        if known and len(keys) != 2 * len(self.parties):
            raise ValueError("identity: give each party its own, or give none (the study then runs on one machine)")
        asks = None if self.coordinator is None else PublicIdentity.read(self.coordinator.identity)
        if asks is not None and keys & {asks.signing, asks.sealing}:
            raise ValueError(
                "coordinator: its identity is that of a party, and methods assume that the two are not one. Create one "
                "for it with `syndic identity` in a folder of its own"
            )

    def _check_columns(self) -> None:
        for party in self.parties:
            columns = party.columns
            if columns is None:
                continue
            unknown = [name for name in columns if name not in self.schema.names]
            if unknown or not columns or len(set(columns)) != len(columns):
                raise ValueError(
                    f"party '{party.name}': columns must be names of the schema, at least one and each once"
                    + (f"; not in the schema: {', '.join(unknown)}" if unknown else "")
                )

    def _check_read_from(self) -> None:
        held = {party.name: party.columns or self.schema.names for party in self.parties}
        for column, names in (self.read_from or {}).items():
            if column not in self.schema.names:
                raise ValueError(f"read_from: '{column}' is not a column of the schema")
            if not names or len(set(names)) != len(names):
                raise ValueError(f"read_from of '{column}' must name at least one party, each once")
            for name in names:
                if name not in held:
                    raise ValueError(f"read_from of '{column}': '{name}' is not a party of this study")
                if column not in held[name]:
                    raise ValueError(f"read_from of '{column}': party '{name}' does not hold it")

    checks: ClassVar = (
        _check_name,
        _check_parties,
        _check_unit_parties,
        _check_columns,
        _check_identities,
        _check_owners,
        _check_alignment,
        _check_person,
        _check_read_from,
    )

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a study from a `.toml` or `.json` file and check that it is consistent.

        Files beside it that hold lists of values become part of the study and of its digest.
        """
        return from_file(path, cls, prepare=partial(with_lists, folder=Path(path).parent))

    @classmethod
    def loads(cls, text: str, folder: Path | None = None) -> Self:
        """Read a study from TOML text; lists of values may be files in `folder`."""
        return from_toml(text, cls, where="study", prepare=partial(with_lists, folder=folder))

    @cached_property
    def digest(self) -> str:
        """The study's digest, a SHA-256 of its content; comments and layout of the file do not matter."""
        return hashlib.sha256(_FORMAT + to_json(self)).hexdigest()

    @cached_property
    def by_name(self) -> dict[str, Member]:
        """The parties by name, in their order."""
        return named(self.parties)

    @cached_property
    def by_owner(self) -> dict[str, tuple[Member, ...]]:
        """The parties as which each organisation takes part."""
        return owned(self.parties)

    @property
    def costs(self) -> dict[str, Cost]:
        """The cost that each party's ledger will be charged, by party."""
        return self.plan.costs

    @property
    def joint(self) -> Cost:
        """The cost of the whole release for a person who is at as many parties as the unit allows."""
        return joint_cost(self.costs, self.unit)

    @cached_property
    def delta(self) -> Fraction:
        """The delta at which guarantees are stated."""
        return max(budget.delta for budget in budgets_of(self))

    @property
    def partition(self) -> Partition:
        """How people and columns are cut: as the method needs it, or as the parties say if it takes any cut."""
        if not self.protocol.requires.any_cut:
            return self.protocol.partition
        if not shared_people(self):
            return "horizontal"
        return "vertical" if len(groups_of(self)) == 1 else "mixed"

    @cached_property
    def by_place(self) -> bool:
        """Whether rows of different parties are matched by their places."""
        needs = self.protocol.requires
        return needs.people == "same" or (needs.any_cut and shared_people(self))

    @property
    def people(self) -> int | None:
        """A public bound on the number of all people, those of a group counted once; None if a party gives none."""
        return None if people_of(self) is None else most_people(self)

    @property
    def plan(self) -> Plan:
        """The method's plan for this study, computed once in a process: noise, events, resources, who sees what.

        Raises:
            InputError: if the method cannot run this study. Reads no row.
        """
        return _plan_of(self)

    def plan_as(self, kind: type[Kind]) -> Kind:
        """Return the plan, which must be of the class `kind`."""
        plan = self.plan
        if not isinstance(plan, kind):
            raise InputError(f"the plan of {self.protocol.title} is not a {kind.__name__}: it has another method")
        return plan

    @property
    def steps(self) -> dict[str, Step]:
        """The steps of a run, in their order."""
        return {name: each for name, (each, _owner) in steps_of_run(self.protocol, self.plan).items()}

    def check(self) -> None:
        """Raise `InputError` if the study cannot run or would cost more than its budget. Reads no row."""
        self._check_deltas()
        groups, own = groups_of(self), {party.name: party.alignment for party in self.parties}
        for group in groups:
            found = {own[name] for name in group.parties}
            if len(found) > 1 or (found != {None} and (self.partition != "mixed" or len(group.parties) == 1)):
                raise InputError(
                    f"alignment of the parties of group '{group.name}': give each the same, and only where a study has "
                    "several groups, to a group with several parties"
                )
        same = max((_overlapping(self, digest) for digest in set(own.values()) if digest), default=0)
        if same > self.unit.parties:
            raise InputError(
                f"a person may be in {same} groups of the same alignment, which have no organisation in common: make "
                f"them one group, name the `owner` that is in both, or set parties = {same} in [unit]"
            )
        for owner, parties in owners_of_several(self).items():
            digests = [party.alignment for party in parties]
            same = len({*digests} - {None}) + digests.count(None)
            if same > self.unit.parties:
                raise InputError(
                    f"a person may be in {same} of the groups of '{owner}', which no one alignment found: align them "
                    f"as `sets` of one study, or set parties = {same} in [unit]"
                )
        try:
            self.plan.check()
            epsilon = self.joint.epsilon(self.delta)
        except (ValueError, ArithmeticError) as error:
            # a mechanism that these budgets do not allow names the number that is out of range, or overflows
            raise InputError(f"{self.name}: {error}") from None
        # after the method has said whether parties may hold different columns
        if self.alignment and (self.partition != "vertical" or isinstance(self.protocol, Align)):
            raise InputError("alignment is only for vertical studies that read aligned rows: leave it out")
        if self.protocol.simulation_only:
            return
        if epsilon > self.budget.epsilon or self.delta > self.budget.delta:
            raise InputError(
                f"the parties' budgets add up to epsilon {float(epsilon):.6g}, delta {float(self.delta):g} for one "
                f"person, above the study's budget of epsilon {float(self.budget.epsilon):g}, delta "
                f"{float(self.budget.delta):g}: raise the study's budget or lower the parties' budgets"
            )

    def _check_deltas(self) -> None:
        people = self.people
        if self.delta == 0:
            return
        if people is None:
            raise InputError("delta above 0 needs a public number of people: set `people` for every party")
        try:
            check_delta(self.delta, people)
        except InputError as error:
            raise InputError(f"study file, budget: {error}") from None


@lru_cache(maxsize=16)
def _plan_of(study: Study) -> Plan:
    """Return the plan of a study, cached in this process by the study's value."""
    return make_plan(study.protocol, study)


def coordinator_of(study: Study) -> PublicIdentity:
    """Return the identity of the coordinator; raise `InputError` if the study names none."""
    if study.coordinator is None:
        raise InputError(
            f"{study.name}: a study between organisations must name its coordinator: add the lines [coordinator] and "
            "identity that `syndic coordinator parties` prints"
        )
    return PublicIdentity.read(study.coordinator.identity)


def price_of(study: Study, party: str) -> Price:
    """Return the cost of all that the study charges at a party, at the study's delta, and what it discloses.

    Where an organisation has several parties, it is what their common ledger is charged for all of them.
    """
    each = [study.plan.events(one.name) for one in parties_of(study, owner_of(member(study, party)))]
    events = charge_of(each, account_of(study, party, "").most) if len(each) > 1 else each[0]
    return Price.of(study.name, events, study.delta, disclosures_of(study))


def prices_of(study: Study) -> dict[str, Price]:
    """Return the price of every party; parties with the same events have the same, worked out once."""
    delta, discloses = study.delta, disclosures_of(study)
    return study.plan.by_party(lambda events: Price.of(study.name, events, delta, discloses))


@lru_cache(maxsize=16)
def disclosures_of(study: Study) -> tuple[str, ...]:
    """Return what the study shows exactly, outside any epsilon; most studies show nothing."""
    found = dict.fromkeys(party.alignment or study.alignment for party in study.parties)
    return (*study.plan.disclosure.discloses, *(_aligned(one, study) for one in found if one is not None))


def _overlapping(study: Study, alignment: str) -> int:
    """Return a bound on the groups of one alignment that a person may be in.

    An organisation has a person in one of its groups only, as it leaves those found before out of the next. So a person
    is in no more groups than it takes organisations to have one in every group; they are taken from the largest on.
    """
    groups: dict[str, set[str | None]] = {}
    for party in study.parties:
        if party.alignment == alignment:
            groups.setdefault(owner_of(party), set()).add(party.group)
    left, taken = set[str | None]().union(*groups.values()), 0
    while left:
        left -= max(groups.values(), key=lambda own: len(own & left))
        taken += 1
    return taken


def alignment_of(study: Study, party: str) -> str | None:
    """Return the digest of the study that aligned a party's people, if they were."""
    return member(study, party).alignment or study.alignment


def seeded_digest(study: str, seed: int) -> str:
    """Return the digest of a seeded run of the study with this digest: it can never pass for the real study."""
    return hashlib.sha256(f"simulation {seed} of {study}".encode()).hexdigest()


def _aligned(alignment: str, study: Study) -> str:
    who = "all parties" if alignment == study.alignment else "the parties of its group"
    return (
        f"its people were aligned by study {alignment[:12]}: every party knows exactly which of its people are common "
        f"to {who}"
    )
