"""Parties without ledger, messages or folders: a protocol's own code, thousands of times over.

For measurements on data that are public or made up. Nothing is charged and the noise repeats from a seed, so
nobody is protected; a study with real people runs through `syndic.study` and its ledgers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, final

from syndic.data import Schema, SparseCounts
from syndic.kernel import Message, Progress, Terms, silent_progress
from syndic.methods.histogram.homm import Homm, HommPlan, MergedTable
from syndic.noise import Mechanism
from syndic.random import Randomness, SimulationRandomness

Input = TypeVar("Input")
Output = TypeVar("Output")


@final
@dataclass(frozen=True)
class CountedTable:
    """A table whose rows were counted before, as counting does not depend on the noise."""

    counts: SparseCounts

    def coded_by(self, schema: Schema) -> "CountedTable":
        """Return this table, which was counted in the grid of the schema."""
        if schema.domain != self.counts.domain:
            raise ValueError("these rows were counted in another grid")
        return self

    def cells(self) -> SparseCounts:
        """Return the occupied cells with their exact counts."""
        return self.counts


@final
@dataclass(frozen=True, kw_only=True)
class OpenParty:
    """What a step may touch, without a ledger: `release` applies the mechanism and charges nobody."""

    name: str
    plan: HommPlan
    table: CountedTable
    randomness: Randomness

    @property
    def terms(self) -> Terms:
        """The public terms."""
        return self.plan.terms

    def release(self, mechanism: Mechanism[Input, Output], values: Input, *, why: str) -> Output:
        """Return the mechanism's noisy output."""
        del why
        return mechanism.apply(values, self.randomness)


@final
@dataclass(frozen=True, kw_only=True)
class OpenSession:
    """The coordinator's view of open parties: a step is called, not sent."""

    plan: HommPlan
    parties: Mapping[str, OpenParty]
    randomness: Randomness
    progress: Progress = silent_progress

    @property
    def terms(self) -> Terms:
        """The public terms."""
        return self.plan.terms

    def ask(self, step: Callable[[Any, Message], Message], message: Message) -> dict[str, Message]:
        """Return every party's answer to one step."""
        return {name: step(party, message) for name, party in self.parties.items()}


def merge_openly(protocol: Homm, terms: Terms, tables: Mapping[str, SparseCounts], *labels: str) -> MergedTable:
    """Run both sides of the protocol on counted tables; the noise is the stream of seed 0 and `labels`."""
    plan = protocol.plan(terms)
    parties = {
        name: OpenParty(
            name=name, plan=plan, table=CountedTable(counts), randomness=SimulationRandomness(0, *labels, name)
        )
        for name, counts in tables.items()
    }
    session: Any = OpenSession(plan=plan, parties=parties, randomness=SimulationRandomness(0, *labels))
    return protocol.coordinate(session)
