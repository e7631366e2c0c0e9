"""What a study costs, protects and shows to whom: the plan before any row is read, the statement of a release."""

from collections import Counter
from fractions import Fraction
from math import exp, inf
from typing import Any, final

from syndic.document import Document
from syndic.kernel import Disclosure, Resources
from syndic.privacy import Cost, Event, Unit, curve
from syndic.study.document import Study
from syndic.version import __version__

_DELTAS = tuple(Fraction(1, 10**power) for power in range(3, 13))


class PartyCost(Document):
    """What one party's people paid: its events and the epsilon they come to at `delta`."""

    party: str
    epsilon: float
    delta: float
    events: tuple[Event, ...]


@final
class Statement(Document):
    """Goes with every release. `epsilon` and `delta` are for one person over the whole joint release."""

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


def state(study: Study, *, simulated: bool, version: str) -> Statement:
    """Write the statement of a study. Everything in it is public before a row is read."""
    disclosure: Disclosure = study.plan.disclosure
    joint = study.joint
    return Statement(
        study=study.name,
        digest=study.digest,
        edition=study.edition,
        method=study.protocol.title,
        paper=study.protocol.paper,
        partition=study.protocol.partition,
        trust=study.protocol.trust,
        unit=study.unit,
        unit_in_words=words_for(study.unit, study.protocol.partition),
        epsilon=_above(joint.epsilon(study.delta)),
        delta=float(study.delta),
        accountant=_accountant(joint),
        # JSON has no infinity, and a delta at which nothing is promised is no point of a curve
        curve=tuple((_above(epsilon), float(delta)) for epsilon, delta in curve(joint, _DELTAS) if epsilon != inf),
        parties=tuple(
            PartyCost(
                party=party.name,
                epsilon=_above(study.costs[party.name].epsilon(study.delta)),
                delta=float(study.delta),
                events=study.plan.events(party.name),
            )
            for party in study.parties
        ),
        randomness=(
            "simulated: the noise repeats from a seed and protects nobody"
            if simulated
            else "exact integer noise from the operating system's generator"
        ),
        protects=not simulated and not study.protocol.simulation_only,
        sees=disclosure.sees,
        sensitivity=disclosure.sensitivity,
        not_protected=disclosure.not_protected,
        departures=disclosure.departures,
        syndic=version,
    )


def words_for(unit: Unit, partition: str) -> str:
    """Return the unit in plain words."""
    rows = "one row" if unit.rows == 1 else f"up to {unit.rows} rows"
    places = "at one party" if unit.parties == 1 else f"at each of up to {unit.parties} parties"
    if partition == "vertical":
        places = "whose values are spread over the parties, all of them protected together"
    counted = (
        f"rows are one person's if they share '{unit.person}', and more are left out"
        if unit.person
        else "each row is taken to be the person's only one within that bound"
    )
    change = {
        "add_remove": "Nobody can tell from the release whether the person is in the data at all",
        "replace": "Nobody can tell from the release which values the person has; the sizes are public",
    }[unit.neighbours]
    return f"One person, with {rows} {places}; {counted}. {change}, beyond the odds that epsilon and delta allow."


def odds_for(epsilon: float, delta: float) -> str:
    """Return epsilon and delta as the best guess about one person, where a coin would be right half of the time."""
    # (e^epsilon + delta) / (1 + e^epsilon), written so that no epsilon overflows
    share = exp(-epsilon)
    return (
        f"the best guess about one person is right at most {100 * (1 + delta * share) / (1 + share):.1f} % of the time"
    )


def summary(statement: Statement) -> dict[str, Any]:
    """Return the few lines that belong on a screen."""
    return {
        "study": f"{statement.study} ({statement.digest[:12]})",
        "method": statement.method,
        "protects": statement.unit_in_words,
        "guarantee": f"epsilon {statement.epsilon:g}, delta {statement.delta:g}: "
        + odds_for(statement.epsilon, statement.delta),
        "noise": statement.randomness,
    }


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
    """A question that every party will be asked, and what its reply gives away."""

    step: str
    reveals: str
    means: str


@final
class PlanSummary(Document):
    """Everything an owner needs to decide; `str(plan)` is for reading."""

    study: str
    digest: str
    statement: Statement
    steps: tuple[PlannedStep, ...]
    resources: Resources

    def __str__(self) -> str:
        statement, needs = self.statement, self.resources
        lines = [
            f"{self.study}  (digest {self.digest[:12]})",
            f"  method     {statement.method}; {statement.partition} partition",
            f"  protects   {statement.unit_in_words}",
            f"  guarantee  epsilon {statement.epsilon:g}, delta {statement.delta:g} for one person over the release",
            f"             {odds_for(statement.epsilon, statement.delta)}",
            *(f"  charges    {_charge(party)}" for party in statement.parties),
            *(f"  asks       {step.step}: {step.reveals} - {step.means}" for step in self.steps),
            *(f"  sees       {role}: {what}" for role, what in statement.sees.items()),
            f"  trust      {statement.trust}",
            *(f"  not kept   {what}" for what in statement.not_protected),
            *(f"  WARNING    {what}" for what in statement.departures),
            f"  needs      about {needs.memory_bytes / 1e6:,.0f} MB, {needs.seconds:g} s, "
            f"{needs.rounds} round(s), replies of about {needs.reply_bytes / 1e6:,.2f} MB",
            *(f"  note       {note}" for note in needs.notes),
        ]
        return "\n".join(lines)


def plan(study: Study) -> PlanSummary:
    """Check the study and return its plan. Reads no row, spends nothing."""
    study.check()
    return PlanSummary(
        study=study.name,
        digest=study.digest,
        statement=state(study, simulated=False, version=__version__),
        steps=tuple(
            PlannedStep(step=name, reveals=each.reveals, means=each.means) for name, each in study.steps.items()
        ),
        resources=study.plan.resources,
    )


def _charge(party: PartyCost) -> str:
    counted = Counter(event.what for event in party.events)
    events = "; ".join(what if times == 1 else f"{times} times {what}" for what, times in counted.items())
    return f"{party.party}: epsilon {party.epsilon:g} ({events or 'nothing'})"
