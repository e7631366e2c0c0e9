"""What a study will cost, reveal and need, before any row is read."""

from collections import Counter
from typing import final

from syndic.document import Document
from syndic.kernel import Resources
from syndic.study.document import Study
from syndic.study.statement import PartyCost, Statement, odds_for, state
from syndic.version import __version__


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
