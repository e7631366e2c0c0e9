"""What a study costs, protects and shows to whom: the plan before a row is read, and the statement of a release."""

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import exp, inf
from typing import Any, Final, final

import msgspec

from syndic.document import Document
from syndic.kernel import Disclosure, Resources
from syndic.privacy import Cost, Event, Unit, at_delta, shown
from syndic.study.document import Study, disclosures_of, prices_of
from syndic.version import __version__

WHOLE_RELEASE: Final = "The whole release, all parties together"
OTHER_ADVERSARIES: Final = "Against other adversaries"
_ROUNDING: Final = 0.999
_DELTAS = tuple(Fraction(1, 10**power) for power in range(3, 13))
_PARTITIONS: Final = {
    "horizontal": "horizontal partition (different people at each party)",
    "vertical": "vertical partition (same people, different columns)",
    "mixed": "mixed partition (groups of people; different columns of a group at different parties)",
}
_WIDTH: Final = 13
_MOST_NAMED: Final = 20
_LEFT_OUT: Final = {
    "first": "further rows are left out",
    "last": "only the last rows count",
    "random": "rows drawn at random by the party count",
    "weighted": "each of them counts 1/k if the person has k: together they count as one row",
}


class PartyCost(Document):
    """What the study costs one person at one party: its events, and their epsilon at `delta`, the study's."""

    party: str
    epsilon: float
    delta: float
    events: tuple[Event, ...]


@final
class Statement(Document):
    """The privacy statement of a release.

    `parties` has the cost for one person at each party. `epsilon` and `delta` are for one person over the whole
    release, all parties together. `against` has the epsilon against other adversaries. `discloses`
    lists what is shown exactly, outside any epsilon.
    """

    study: str
    digest: str
    edition: int
    method: str
    paper: str
    partition: str
    trust: str
    unit: Unit
    unit_in_words: str
    epsilon: float
    delta: float
    accountant: str
    curve: tuple[tuple[float, float], ...]
    parties: tuple[PartyCost, ...]
    randomness: str
    protects: bool
    sees: dict[str, str]
    sensitivity: str
    not_protected: tuple[str, ...]
    departures: tuple[str, ...]
    syndic: str
    against: dict[str, float] = msgspec.field(default_factory=dict)
    discloses: tuple[str, ...] = ()

    @property
    def one_number(self) -> bool:
        """Whether the cost at every party, rounded as shown, is also that of the whole release."""
        return all(shown(party.epsilon) == shown(self.epsilon) for party in self.parties)

    @property
    def other_adversaries(self) -> dict[str, float]:
        """The epsilon against each other adversary, if one of them differs from the cost at some party."""
        costs = {shown(party.epsilon) for party in self.parties}
        return self.against if {shown(epsilon) for epsilon in self.against.values()} - costs else {}


def state(study: Study, *, simulated: bool, version: str) -> Statement:
    """Return the statement of a study. Everything in it is public before a row is read."""
    disclosure: Disclosure = study.plan.disclosure
    joint = study.joint
    return Statement(
        study=study.name,
        digest=study.digest,
        edition=study.edition,
        method=study.protocol.title,
        paper=study.protocol.paper,
        partition=study.partition,
        trust=disclosure.trust or study.protocol.trust,
        unit=study.unit,
        unit_in_words=words_for(study.unit, study.partition),
        epsilon=_above(joint.epsilon(study.delta)),
        delta=float(study.delta),
        accountant=_accountant(joint),
        # JSON has no infinity, and a delta without a bound is no point of a curve
        curve=tuple((_above(each), float(delta)) for delta in _DELTAS if (each := joint.epsilon(delta)) != inf),
        parties=_party_costs(study),
        randomness=_randomness(study, simulated=simulated),
        protects=not simulated and not study.protocol.simulation_only,
        sees=disclosure.sees,
        sensitivity=disclosure.sensitivity,
        not_protected=disclosure.not_protected,
        departures=disclosure.departures,
        syndic=version,
        against=disclosure.against,
        discloses=disclosures_of(study),
    )


def words_for(unit: Unit, partition: str) -> str:
    """Return the unit in plain words."""
    rows = "one row" if unit.rows == 1 else f"up to {unit.rows} rows"
    places = "at one party" if unit.parties == 1 else f"at each of up to {unit.parties} parties"
    if partition != "horizontal":
        places = "whose values are spread over the parties, all of them protected together"
    if partition == "mixed" and unit.parties > 1:
        places = f"in each of up to {unit.parties} groups, {places}"
    counted = (
        f"rows with the same '{unit.person}' belong to one person, and {_LEFT_OUT[unit.choose]}"
        if unit.person
        else "no column links the rows of a person: the owners vouch that nobody has more"
    )
    change = {
        "add_remove": "Nobody can tell from the release whether the person is in the data at all",
        "replace": "Nobody can tell from the release which values the person has; the sizes are public",
    }[unit.neighbours]
    return f"One person, with {rows} {places}; {counted}. {change}, beyond the odds that epsilon and delta allow."


def best_guess(epsilon: float, delta: float) -> float:
    """Return the largest chance of a right guess about one person, if it is 1/2 without the release.

    For two neighbouring tables, each with chance 1/2, the best test is right with chance at most
    (e^epsilon + delta) / (1 + e^epsilon): Kairouz, Oh and Viswanath 2015, Theorem 2.1, at equal errors.
    """
    # written so that no epsilon overflows
    share = exp(-epsilon)
    return min(1.0, (1 + delta * share) / (1 + share))


def odds_for(epsilon: float, delta: float) -> str:
    """Return epsilon and delta as the best guess about one person; without the release it is right half of the time."""
    return f"the best guess about one person is right at most {100 * best_guess(epsilon, delta):.1f} % of the time"


def meaning_of(statement: Statement) -> str:
    """Return what the epsilon of the whole release means; a study that discloses something is never only odds."""
    if statement.discloses:
        told = "; ".join(statement.discloses)
        charged = f"; beyond that, {odds_for(statement.epsilon, statement.delta)}" if statement.epsilon else ""
        return f"epsilon does not cover everything: {told}{charged}"
    return odds_for(statement.epsilon, statement.delta)


def costs_of(statement: Statement) -> tuple[str, ...]:
    """Return what the study costs a person at each party, parties with the same cost together."""
    groups: dict[str, list[str]] = {}
    for party in statement.parties:
        groups.setdefault(at_delta(party.epsilon, party.delta), []).append(party.party)
    if len(groups) <= 1:
        whole = ", and over the whole release" if statement.one_number else ""
        cost = next(iter(groups), at_delta(statement.epsilon, statement.delta))
        return (f"{cost} for one person at each party{whole}",)
    unread = {party.party for party in statement.parties if not party.events and statement.partition != "horizontal"}
    told = {cost: f"{cost} for one person at {_listed(names)}" for cost, names in groups.items()}
    for cost, names in groups.items():
        if unread.issuperset(names):
            del told[cost]  # said last: it is not what a person costs
            told[cost] = (
                f"{cost} for the values at {_listed(names)}, which are not read; the same people's values at other "
                "parties are charged there"
            )
    return tuple(told.values())


def summary(statement: Statement) -> dict[str, Any]:
    """Return the lines of a release that a screen shows."""
    lines = {
        "study": f"{statement.study} ({statement.digest[:12]})",
        "method": statement.method,
        "protects": statement.unit_in_words,
        "cost": "; ".join(costs_of(statement)),
        "means": meaning_of(statement),
    }
    if not statement.one_number:
        lines["whole release"] = f"{at_delta(statement.epsilon, statement.delta)}, all parties together"
    return {**lines, "noise": statement.randomness}


def _randomness(study: Study, *, simulated: bool) -> str:
    if simulated:
        return "simulated: the noise is reproducible from a seed and protects nobody"
    if not any(study.plan.events(party.name) for party in study.parties):
        return "none: the method adds no noise"
    return "exact integer noise from the operating system's generator"


def _party_costs(study: Study) -> tuple[PartyCost, ...]:
    plan = study.plan
    return tuple(
        PartyCost(
            party=party,
            epsilon=inf if price.epsilon is None else _above(price.epsilon),
            delta=float(price.delta),
            events=plan.events(party),
        )
        for party, price in prices_of(study).items()
    )


def _above(epsilon: Fraction | float) -> float:
    """Return a float that is not below the exact value."""
    rounded = float(epsilon)
    return rounded if rounded >= epsilon else rounded * (1 + 2.0**-52)


def _accountant(joint: Cost) -> str:
    if joint.rho == joint.gaussian == joint.epsilon_approximate == 0:
        return "sum of pure epsilons"
    if joint.rho == 0 and joint.gaussian:
        return "exact Gaussian profile, pure epsilons added or all by zCDP, whichever is smaller"
    return "zCDP with the tight conversion, pure epsilons added or converted, whichever is smaller"


class PlannedStep(Document):
    """A question that every party will be asked, and what its reply reveals."""

    step: str
    reveals: str
    means: str


@final
class PlanSummary(Document):
    """Everything that an owner needs to decide; `str(plan)` is for reading.

    `reads` are the columns, those that are computed from others with their expression. `held` shows who holds what
    where people and columns are cut, `uncovered` what cannot be counted for everybody.
    """

    study: str
    digest: str
    reads: tuple[str, ...]
    statement: Statement
    steps: tuple[PlannedStep, ...]
    resources: Resources
    held: tuple[str, ...] = ()
    uncovered: tuple[str, ...] = ()

    def __str__(self) -> str:
        statement, needs = self.statement, self.resources
        lines = [
            f"{self.study}  (digest {self.digest[:12]})",
            _line("method", f"{statement.method}; {_PARTITIONS[statement.partition]}"),
            _line("protects", statement.unit_in_words),
            _line("reads", ", ".join(self.reads)),
            *(_line("" if place else "holds", line) for place, line in enumerate(self.held)),
            *(_line("NOT COVERED", text) for text in self.uncovered),
            *(_line("costs", text) for text in costs_of(statement)),
            *(_line("DISCLOSES", f"{text}; exactly, and outside any epsilon") for text in statement.discloses),
            *(_line("charges", text) for text in _charges(statement.parties)),
            *_whole_release(statement),
            *_other_adversaries(statement),
            *(_line("asks", f"{step.step}: {step.reveals} - {step.means}") for step in self.steps),
            *(_line("sees", f"{role}: {what}") for role, what in statement.sees.items()),
            _line("trust", statement.trust),
            *(_line("unprotected", what) for what in statement.not_protected),
            *(_line("WARNING", what) for what in statement.departures),
            _line(
                "needs",
                f"{needs.memory_in_words}; about {needs.seconds:g} s, {needs.rounds} round(s), replies of about "
                f"{needs.reply_bytes / 1e6:,.2f} MB",
            ),
            *(_line("note", note) for note in needs.notes),
        ]
        return "\n".join(lines)


def overstates(statement: Statement, study: Study) -> bool:
    """Return whether a statement that somebody else wrote claims more protection than its study gives."""
    due = state(study, simulated=not statement.protects, version=statement.syndic)
    # versions round a little differently
    pairs = [(statement.epsilon, due.epsilon), (statement.delta, due.delta)]
    found = {party.party: party.epsilon for party in statement.parties}
    pairs += [(found.get(party.party, 0.0), party.epsilon) for party in due.parties]
    pairs += [(statement.against.get(who, 0.0), epsilon) for who, epsilon in due.against.items()]
    less = any(stated < true * _ROUNDING for stated, true in pairs)
    return less or statement.unit != due.unit or bool(set(due.discloses) - set(statement.discloses))


def plan(study: Study) -> PlanSummary:
    """Check the study and return its plan. Reads no row, spends nothing."""
    study.check()
    return PlanSummary(
        study=study.name,
        digest=study.digest,
        reads=tuple(
            column.name if column.derive is None else f"{column.name} = {column.derive}"
            for column in study.schema.columns
        ),
        statement=state(study, simulated=False, version=__version__),
        steps=tuple(
            PlannedStep(step=name, reveals=each.reveals, means=each.means) for name, each in study.steps.items()
        ),
        resources=study.plan.resources,
        held=study.plan.held,
        uncovered=study.plan.uncovered,
    )


def _line(label: str, text: str) -> str:
    return f"  {label:<{_WIDTH}}{text}"


def _whole_release(statement: Statement) -> tuple[str, ...]:
    if statement.one_number:
        return (_line("means", meaning_of(statement)),)
    whole = at_delta(statement.epsilon, statement.delta)
    return (f"  {WHOLE_RELEASE}", _line("", f"{whole}: {meaning_of(statement)}"))


def _other_adversaries(statement: Statement) -> tuple[str, ...]:
    lines = (
        _line("", f"epsilon {shown(epsilon)} against {who}") for who, epsilon in statement.other_adversaries.items()
    )
    return (f"  {OTHER_ADVERSARIES}", *lines) if statement.other_adversaries else ()


def _listed(names: Sequence[str]) -> str:
    """Return the names, of many the first ones and how many more."""
    few = names if len(names) <= _MOST_NAMED else names[: _MOST_NAMED - 1]
    more = f" and {len(names) - len(few):,} more" if len(few) < len(names) else ""
    return ", ".join(few) + more


def _charges(parties: Iterable[PartyCost]) -> tuple[str, ...]:
    """Return what the ledgers are charged for, parties with the same events together."""
    groups: dict[str, list[str]] = {}
    for party in parties:
        groups.setdefault(events_in_words(party.events), []).append(party.party)
    return tuple(f"{_listed(names)}: {events or 'nothing'}" for events, names in groups.items())


def events_in_words(events: Iterable[Event]) -> str:
    """Return what was charged for, equal events together; empty if nothing was."""
    counted = Counter(event.what for event in events if event.what)
    return "; ".join(what if times == 1 else f"{times} times {what}" for what, times in counted.items())
