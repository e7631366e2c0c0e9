"""Protocols with a fault planted into them on purpose, to see whether audits find it.

They are no methods that a study file may name, and refuse to run without a seed: nobody can use one by accident.
"""

import dataclasses
from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.kernel import (
    Disclosure,
    Message,
    Method,
    Nothing,
    Party,
    Plan,
    Requires,
    Resources,
    Result,
    Session,
    Terms,
    budget_of,
    step,
)
from syndic.mpc.graph import sum_graph
from syndic.mpc.key import derive
from syndic.mpc.mask import expand
from syndic.mpc.masked_sum import MaskedSums, Masks, SumMasked
from syndic.mpc.ring import ring_for
from syndic.noise import DiscreteLaplace, LaplaceShare
from syndic.privacy import Event
from syndic.random import Randomness, SimulationRandomness, generator

Counts = NDArray[np.int64]
CountFault = Literal[
    "none",
    "half the noise",
    "sensitivity 1 for 2",
    "unnoised size",
    "bins from the data",
    "empty cells left out",
    "float noise",
    "unnoised choice",
    "one noise for two answers",
    "noise that repeats itself",
    "all rows of a person",
    "a sum noised like a count",
    "refusal by value",
    "length by value",
    "rows in a public answer",
    "charged twice",
]
SumFault = Literal[
    "none", "no mask", "one mask for all", "masks used again", "half the values masked", "shares for nobody colluding"
]


class View(Message):
    """What a party with a fault gives out."""

    counts: Counts
    more: Counts
    floats: NDArray[np.float64]


class Which(Message):
    """Which of the sums is asked for."""

    number: int


class Filler(Message):
    """Bytes that look random."""

    box: bytes


class Kept(Message):
    """What a party remembers of its rows."""

    counts: Counts


@final
@dataclasses.dataclass(frozen=True)
class Shown(Result):
    """What was released, by party or in sum."""

    values: Any

    def files(self) -> dict[str, Any]:
        """Write nothing: nothing of this is for use."""
        return {}

    def summary(self) -> dict[str, Any]:
        """There is nothing to say."""
        return {}


@final
class PlantedPlan(Plan):
    """What each party is charged, and which steps are asked; for sums, the masks."""

    charges: dict[str, tuple[Event, ...]]
    rounds: tuple[str, ...]
    masked_sums: MaskedSums | None = None

    def events(self, party: str) -> tuple[Event, ...]:
        """What the fault's sound form would cost."""
        return self.charges[party]

    @property
    def resources(self) -> Resources:
        """It is small."""
        return Resources(memory_bytes=1, reply_bytes=1, seconds=1.0)

    @property
    def disclosure(self) -> Disclosure:
        """It is a fault."""
        return Disclosure(sees={}, sensitivity="as it should be, but for the fault", not_protected=("anybody",))


class _Planted(Method):
    """What both have in common: they never meet real parties."""

    title: ClassVar[str] = "A planted fault"
    paper: ClassVar[str] = "none"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "horizontal"
    trust: ClassVar[str] = "nobody should"

    @property
    def simulation_only(self) -> bool:
        """A planted fault never meets real parties."""
        return True

    @property
    def requires(self) -> Requires:
        """Nothing."""
        return Requires(columns="any")

    @abstractmethod
    def coordinate(self, session: Session[PlantedPlan]) -> Shown:
        """Collect what the parties give out."""

    def read(self, plan: PlantedPlan, folder: Path) -> Shown:
        """Nothing is ever written."""
        del plan, folder
        raise InputError("a planted fault writes nothing")


@final
class PlantedCounts(_Planted, tag="planted counts"):
    """Noisy counts of the first column at each party, with one fault."""

    fault: CountFault = "none"

    def noise(self, terms: Terms, party: str) -> DiscreteLaplace:
        """Return the noise that the charge is for."""
        return DiscreteLaplace(sensitivity=terms.unit.l1_of_counts(), epsilon=budget_of(terms, party).epsilon)

    def drawn(self, terms: Terms, party: str) -> DiscreteLaplace:
        """Return the noise that is drawn."""
        whole = self.noise(terms, party)
        if self.fault == "half the noise":
            return DiscreteLaplace(sensitivity=whole.sensitivity, epsilon=2 * whole.epsilon)
        if self.fault == "sensitivity 1 for 2":
            return DiscreteLaplace(sensitivity=1, epsilon=whole.epsilon)
        return whole

    @step(reveals="noisy")
    def tell(self, party: Party, message: Nothing) -> View:
        """Count, add noise, and do something that must not be."""
        del message
        counts, rows = self._counted(party)
        if self.fault == "refusal by value" and rows.any():
            raise InputError(f"party '{party.name}': a value is out of place")
        charge = self.noise(party.terms, party.name).event
        randomness = party.charge(charge, why="planted")
        if self.fault == "charged twice":
            party.charge(charge, why="planted")
        if self.fault == "noise that repeats itself":
            randomness = SimulationRandomness(1, party.name)
        party.remember("counts", Kept(counts=counts))
        noise = self.drawn(party.terms, party.name).draw(counts.size, randomness)
        noisy = counts + noise
        if self.fault == "empty cells left out":
            noisy = noisy[counts > 0]
        return View(counts=noisy, more=self._more(counts, rows, noise), floats=self._floats(counts, randomness))

    def _counted(self, party: Party) -> tuple[Counts, Counts]:
        table = party.table
        if self.fault == "all rows of a person":
            table = dataclasses.replace(table, rows_per_person=10**6)
        name, size = table.schema.columns[0].name, table.schema.columns[0].size
        batches = [batch[name].astype(np.int64) for batch in table.batches((name,))]
        rows = np.concatenate([np.zeros(0, dtype=np.int64), *batches])
        if self.fault == "bins from the data":
            low, high = (int(rows.min()), int(rows.max())) if rows.size else (0, 1)
            rows, size = (rows - low) * 2 // (high - low + 1), 2
        if self.fault == "a sum noised like a count":
            return np.array([0, rows.sum()]), rows
        return np.bincount(rows, minlength=size), rows

    def _more(self, counts: Counts, rows: Counts, noise: Counts) -> Counts:
        match self.fault:
            case "unnoised size":
                return np.array([rows.size])
            case "unnoised choice":
                return np.array([int(counts.argmax())])
            case "one noise for two answers":
                # another table, of which everybody knows that it is empty
                return noise
            case _:
                return np.zeros(0, dtype=np.int64)

    def _floats(self, counts: Counts, randomness: Randomness) -> NDArray[np.float64]:
        if self.fault != "float noise":
            return np.zeros(0)
        return np.asarray(counts + generator(randomness).laplace(0.0, 1.0, counts.shape))

    @step(reveals="sealed")
    def fill(self, party: Party, message: Nothing) -> Filler:
        """Send bytes that say nothing, but for their number."""
        del message
        length = int(party.recall("counts", Kept).counts[-1]) if self.fault == "length by value" else 0
        return Filler(box=party.key_randomness("fill").bytes(40 + length))

    @step(reveals="public")
    def about(self, party: Party, message: Nothing) -> View:
        """Say something public; the party remembers its rows, and no release function is used."""
        del message
        counts = party.recall("counts", Kept).counts
        nothing = np.zeros(0, dtype=np.int64)
        told = counts if self.fault == "rows in a public answer" else nothing
        return View(counts=told, more=nothing, floats=np.zeros(0))

    def coordinate(self, session: Session[PlantedPlan]) -> Shown:
        """Collect what the parties give out."""
        told = session.ask(self.tell, Nothing())
        session.ask(self.fill, Nothing())
        session.ask(self.about, Nothing())
        return Shown(told)

    def plan(self, terms: Terms) -> PlantedPlan:
        """One release of counts."""
        charges: dict[str, tuple[Event, ...]] = {
            party.name: (self.noise(terms, party.name).event,) for party in terms.parties
        }
        return PlantedPlan(terms=terms, charges=charges, rounds=("tell", "fill", "about"))


@final
class PlantedSum(_Planted, tag="planted sum"):
    """Counts of all parties summed under masks, twice, with one fault."""

    fault: SumFault = "none"
    cells: int = 8

    def plan(self, terms: Terms) -> PlantedPlan:
        """Two sums."""
        charges: dict[str, tuple[Event, ...]] = {party.name: (self.share(terms).event,) * 2 for party in terms.parties}
        graph = sum_graph(len(terms.parties), colluding=1, missing=0)
        sums = MaskedSums(label="planted", graph=graph)
        return PlantedPlan(terms=terms, charges=charges, rounds=sums.rounds("add"), masked_sums=sums)

    def share(self, terms: Terms, colluding: int = 1) -> LaplaceShare:
        """Return a party's share of the noise of one sum, if so many parties may collude."""
        return LaplaceShare(
            parties=len(terms.parties),
            colluding=colluding,
            dimension=self.cells,
            sensitivity=terms.unit.l1_of_counts(),
            epsilon=terms.budget.epsilon / 2,
        )

    @step(reveals="masked")
    def add(self, party: Party[PlantedPlan], message: Which) -> SumMasked:
        """Count, add a share of noise, mask."""
        sums = party.plan.masked_sums
        assert sums is not None  # noqa: S101 (so planned)
        # a ring with plenty of room
        masks = sums.masks_for(party, message.number, self.cells, ring_for(1 << 30))
        name = party.terms.schema.columns[0].name
        counts = np.zeros(self.cells, dtype=np.int64)
        for batch in party.table.batches((name,)):
            counts += np.bincount(batch[name], minlength=self.cells)
        share = self.share(party.terms)
        drawn = self.share(party.terms, 0) if self.fault == "shares for nobody colluding" else share
        noisy = drawn.apply(counts, party.charge(share.event, why="planted"))
        return dataclasses.replace(masks, values=self._masks(party, message.number, masks)).hide(noisy)

    def _masks(self, party: Party, number: int, sound: Masks) -> NDArray[Any]:
        masks = sound.values
        match self.fault:
            case "no mask":
                return np.zeros_like(masks)
            case "half the values masked":
                return np.where(np.arange(self.cells) < self.cells // 2, masks, 0).astype(masks.dtype)
            case "one mask for all":
                return expand(derive(bytes(32), "planted"), party.name.encode(), self.cells, sound.ring)
            case "masks used again":
                before = party.kept("masks", Kept)
                party.remember("masks", Kept(counts=masks.astype(np.int64)))
                return masks if before is None or number == 1 else before.counts.astype(masks.dtype)
            case _:
                return masks

    def coordinate(self, session: Session[PlantedPlan]) -> Shown:
        """Open two sums of the same counts."""
        assert session.plan.masked_sums is not None  # noqa: S101 (so planned)
        sums = session.plan.masked_sums.start(session)
        ring = ring_for(1 << 30)
        opened = [sums.total(self.add, lambda number: Which(number=number), count=self.cells, ring=ring) for _ in "12"]
        return Shown(np.array([one.values for one in opened if one is not None]))
