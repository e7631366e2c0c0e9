"""HOMM: horizontally merged multi-party synthetic data (Su and Liu 2020).

Every party counts its rows in every cell of the public grid that the schema declares, adds noise to every count
(empty cells too) and publishes the noisy counts. Anyone can draw rows from them: a category as it is, a number
uniformly within its bin. The merged table is the concatenation. Parties may have some columns only, and bins of their
own, both public (`homm_columns`).

*Neighbours*: as the study says, a person's rows at one party added, removed or replaced. *Sensitivity*: a row is in one
cell, so r rows change the counts by r in l1, or by 2 r if they are replaced. *Cost*: one release of the whole
histogram. A person at several parties is charged at each, so a party's noise is calibrated to its part of the budget.
*Who sees what*: everybody sees every party's noisy counts. Nobody needs to be trusted.

Sound by default: integer noise calibrated to the study's unit, people at several parties included. The paper's scale
1/epsilon holds only for adding or removing one row at one party. `as_published` is the paper's own noise, for
reproduction in simulation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, final

import numpy as np
import pyarrow as pa
import pyarrow.compute
from msgspec.structs import replace
from numpy.typing import NDArray

from syndic.data import ReleasedTable, Schema, SparseCounts, decode_rows
from syndic.document import Document
from syndic.errors import InputError, RefusedError
from syndic.kernel import (
    GROUPS,
    PROCESS_BYTES,
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
    change_of,
    everybody,
    people_of,
    read_table,
    step,
)
from syndic.methods.histogram.homm_columns import Absent, OwnBins, merged, notes_of, own_schemas
from syndic.noise import DiscreteGaussian, DiscreteLaplace, SparseHistogram
from syndic.privacy import Budget, Event, PureEvent, Unit, rho_for
from syndic.privacy.concentrated import part_of
from syndic.random import Randomness, generator

# Peak bytes of one kept cell (index and count, sorted once) and of one drawn value.
_BYTES_PER_CELL = 48
_BYTES_PER_VALUE = 24


class Sanitised(Message):
    """One party's noisy histogram: linear cell indices in ascending order and their counts."""

    cells: NDArray[np.uint64]
    counts: NDArray[np.int64]


@final
@dataclass(frozen=True, kw_only=True)
class MergedTable(Result):
    """The merged synthetic table, and the noisy histogram of each party that it was drawn from."""

    table: ReleasedTable
    histograms: Mapping[str, SparseCounts]

    def files(self) -> Mapping[str, Any]:
        """Return `synthetic.parquet` and the noisy counts, `cells.parquet`."""
        names = [name for name, counts in self.histograms.items() for _ in range(len(counts.cells))]
        cells = pa.table(
            {
                "party": pa.array(names, pa.string()).dictionary_encode(),
                "cell": np.concatenate([counts.cells for counts in self.histograms.values()]),
                "count": np.concatenate([counts.counts for counts in self.histograms.values()]),
            }
        )
        return {"synthetic.parquet": self.table, "cells.parquet": cells}

    def summary(self) -> Mapping[str, Any]:
        """Return the number of rows drawn and of cells kept; both follow from noisy counts."""
        kept = {name: len(counts.cells) for name, counts in self.histograms.items()}
        return {"rows": len(self.table), "columns": len(self.table.names), "cells kept": kept}


class PublishedLaplace(Document):
    """The paper's noise: a floating-point Laplace draw of scale 1/epsilon, rounded. Not private."""

    epsilon: Fraction
    clamp: bool
    unit: Unit

    @property
    def event(self) -> PureEvent:
        """The cost in real arithmetic: the published epsilon times the true sensitivity of the unit."""
        return PureEvent(epsilon=self.epsilon * self.unit.l1_of_counts(), what="continuous Laplace, as published")

    @property
    def variance(self) -> float:
        """Variance of one draw, before it is rounded."""
        return 2 / float(self.epsilon) ** 2

    def apply(self, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:
        """Return the values with noise, rounded."""
        noise = generator(randomness).laplace(0.0, float(1 / self.epsilon), values.shape)
        noisy = values + noise
        return np.rint(np.maximum(noisy, 0.0) if self.clamp else noisy).astype(np.int64)


Noise = DiscreteLaplace | DiscreteGaussian | PublishedLaplace


@final
class HommPlan(Plan):
    """The noise on the counts of each party, by name, and the public rule by which noisy counts are kept.

    `schemas` has each party's columns with its bins: together the public grid in which it counts its rows.
    """

    noise: Mapping[str, Noise]
    schemas: Mapping[str, Schema]
    clamp: bool
    at_least: int
    absent: Absent

    @property
    def one_grid(self) -> bool:
        """Whether all parties count their rows in the grid of the schema."""
        return all(schema == self.terms.schema for schema in self.schemas.values())

    def sparse(self, party: str) -> SparseHistogram | None:
        """Return the party's noise where only cells of at least `at_least` are kept, or None where every cell is."""
        noise = self.noise[party]
        if isinstance(noise, PublishedLaplace) or not self.clamp:
            return None
        return SparseHistogram(noise=noise, cells=self.schemas[party].domain.size, at_least=self.at_least)

    def counted(self, party: str, cells: NDArray[np.integer], counts: NDArray[np.int64]) -> SparseCounts:
        """Return a party's noisy counts; refuse cells outside its grid, and more rows than the coordinator may hold."""
        most = self.terms.limits.memory_mb
        # as floats, which do not wrap
        rows = float(np.abs(counts.astype(np.float64)).sum())
        if _BYTES_PER_VALUE * rows * len(self.terms.schema.columns) > most * 10**6:
            raise RefusedError(
                f"{party} sent counts of {rows:.3g} rows, more than the study's {most} MB of memory hold"
            )
        try:
            return SparseCounts(self.schemas[party].domain, cells.astype(np.int64), counts)
        except ValueError as error:
            raise RefusedError(f"{party} sent counts that do not fit its grid: {error}") from None

    def events(self, party: str) -> tuple[Event, ...]:
        """One release of the whole histogram."""
        return (self.noise[party].event,)

    @cached_property
    def resources(self) -> Resources:
        """Empty cells kept because of noise alone, the largest reply, memory at the busiest role."""
        sizes, columns = {name: one.domain.size for name, one in self.schemas.items()}, len(self.terms.schema.columns)
        size = max(sizes.values())
        people = people_of(self.terms) or 0
        kept_as = {name: self.sparse(name) for name in self.noise}
        survivors = {
            name: float(sizes[name]) if one is None else one.expected_survivors for name, one in kept_as.items()
        }
        # an empty cell that is kept has about a standard deviation more than `at_least`
        deviations = {name: noise.variance**0.5 for name, noise in self.noise.items()}
        noise_rows = sum(count * (self.at_least + deviations[name]) for name, count in survivors.items())
        dense = 24 * size if None in kept_as.values() else 0
        largest = max(survivors.values()) + people
        kept = sum(survivors.values()) + people
        rows = noise_rows + people
        memory = dense + _BYTES_PER_CELL * kept + _BYTES_PER_VALUE * rows * columns
        return Resources(
            memory_bytes=int(memory) + PROCESS_BYTES,
            reply_bytes=int(16 * largest) + 256,
            rounds=2,
            seconds=round(1.0 + people / 1e6 + kept / 2e6 + rows * columns / 1e7, 1),
            notes=(
                f"{size:,} cells in the {'public' if self.one_grid else 'largest'} grid",
                f"about {sum(survivors.values()):,.0f} empty cells will get rows from noise alone, "
                f"about {noise_rows:,.0f} rows in all",
                *(f"{name}: standard deviation {one:.3g} on every count" for name, one in deviations.items()),
                *notes_of(self.schemas, self.terms.schema, self.absent),
            ),
        )

    @property
    def disclosure(self) -> Disclosure:
        """What every role sees."""
        unit = self.terms.unit
        published = any(isinstance(noise, PublishedLaplace) for noise in self.noise.values())
        departures = (
            f"the paper claims max_k epsilon_k; for this unit the cost in real arithmetic is "
            f"{unit.l1_of_counts() * unit.parties} times that",
            "the noise is drawn in floating point: before rounding, most outputs of one table are impossible for a "
            "neighbouring one (Mironov 2012), and no guarantee is proven for the draw itself",
        )
        return Disclosure(
            sees=everybody("every party's noisy counts and the merged table"),
            sensitivity=(
                f"{change_of(unit)} one person's rows at one party, {unit.rows} at most, changes its counts by at most "
                f"{unit.l1_of_counts()} in l1 and {unit.l2_squared_of_counts()} in squared l2; a person is at no more "
                f"than {unit.parties} of the parties, and each party's noise is calibrated to its budget divided by "
                f"{unit.parties}"
            ),
            not_protected=(
                GROUPS,
                f"people with more rows at a party than {unit.rows}, or at more parties than {unit.parties}",
                "that a party takes part, its name, the columns, bounds and bins: they are in the public study",
                *(("the size of each party: it is public under replace",) if unit.neighbours == "replace" else ()),
            ),
            departures=departures if published else (),
        )

    # one step: every party publishes its noisy histogram
    rounds = ("sanitise",)

    @property
    def too_large(self) -> tuple[str, str]:
        """What is too large if the run does not fit, and what to change, with the smallest `at_least` that does."""
        what = f"the grid has {max(one.domain.size for one in self.schemas.values()):,} cells; a run"
        advice = "use fewer columns or bins, or the method synthesis, which needs no grid"
        if self.sparse(self.terms.parties[0].name) is None:
            return what, advice
        limits, at_least, fits = self.terms.limits, self.at_least, False
        while not fits and at_least <= 10**9:
            at_least += max(1, at_least // 8)
            needs = replace(self, at_least=at_least).resources
            fits = needs.memory_bytes <= limits.memory_mb * 10**6 and needs.reply_bytes <= limits.message_mb * 10**6
        return what, f"{advice}, or at_least = {at_least}, or a larger epsilon"


@final
class Homm(Method, tag="homm"):
    """Parameters of HOMM.

    `clamp`: keep only cells with a noisy count of at least `at_least`. Without it every cell is published with its
    signed count, and rows of negative cells have weight -1, which keeps weighted sums unbiased.
    `at_least` above 1 drops small noisy counts, after the noise; it makes very large sparse grids possible.
    `bins`: bins that a party has of its own. `absent`: what the rows of a party have in columns that it does not
    hold: nothing, or values of `matched` rows of other parties.
    """

    title: ClassVar[str] = "HOMM, merged histogram synthesis"
    paper: ClassVar[str] = "Su and Liu 2020, Utility analysis of horizontally merged multi-party synthetic data"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "horizontal"
    trust: ClassVar[str] = "nobody: each party trusts only itself; no cryptography is needed"

    noise: Literal["laplace", "gaussian"] = "laplace"
    clamp: bool = True
    at_least: int = 1
    as_published: bool = False
    bins: tuple[OwnBins, ...] = ()
    absent: Absent = "missing"

    def __post_init__(self) -> None:
        if self.at_least < 1:
            raise ValueError(f"at_least ({self.at_least}) must be at least 1")
        if self.as_published and (self.noise != "laplace" or self.at_least != 1):
            raise ValueError("as_published is Laplace noise on every cell: noise and at_least cannot be set")
        if not self.clamp and self.at_least != 1:
            raise ValueError("at_least drops cells, which clamp = false forbids: set one of them")
        if not self.clamp and self.absent == "matched":
            raise ValueError("rows with weights cannot be matched: set clamp = true, or leave out absent")

    @property
    def requires(self) -> Requires:
        """Gaussian noise needs delta, `replace` a public number of people, signed rows a free column for weights."""
        return Requires(
            people="replace",
            columns="any",
            delta="Gaussian noise" if self.noise == "gaussian" else "",
            free_columns=() if self.clamp else ("weight",),
        )

    def plan(self, terms: Terms) -> HommPlan:
        """Calibrate every party's noise to its budget."""
        schemas = own_schemas(terms, self.bins)
        largest = max(schema.domain.size for schema in schemas.values())
        if largest >= 2**63:
            raise InputError(
                f"the grid has {largest:.3g} cells; at most 9.22e18 can be indexed: use fewer columns or bins, or a "
                "method for many columns such as synthesis"
            )
        noise = {party.name: self._noise(budget_of(terms, party.name), terms.unit) for party in terms.parties}
        return HommPlan(
            terms=terms, noise=noise, schemas=schemas, clamp=self.clamp, at_least=self.at_least, absent=self.absent
        )

    @step(reveals="noisy")
    def sanitise(self, party: Party[HommPlan], message: Nothing) -> Sanitised:
        """Count rows in every cell of the grid, add noise to every count, and keep cells by the public rule."""
        del message
        counts = party.table.coded_by(party.plan.schemas[party.name]).cells()
        why = "noisy full histogram"
        sparse = party.plan.sparse(party.name)
        if sparse is not None:
            kept = party.release(sparse, (counts.cells.astype(np.uint64), counts.counts), why=why)
            return Sanitised(cells=kept.places, counts=kept.counts)
        noisy = party.release(party.plan.noise[party.name], counts.dense().values.ravel(), why=why)
        kept_cells = np.flatnonzero(noisy)
        return Sanitised(cells=kept_cells.astype(np.uint64), counts=noisy[kept_cells])

    def coordinate(self, session: Session[HommPlan]) -> MergedTable:
        """Ask every party for its noisy histogram, draw rows from each, and concatenate."""
        answers = session.ask(self.sanitise, Nothing())
        draws = generator(session.randomness)
        tables, histograms = {}, {}
        for done, (name, answer) in enumerate(answers.items()):
            session.progress("draw rows", done, len(answers))
            counts = histograms[name] = session.plan.counted(name, answer.cells, answer.counts)
            rows = decode_rows(session.plan.schemas[name], counts.cells, np.abs(counts.counts), draws).to_arrow()
            if not self.clamp:
                signs = np.repeat(np.sign(counts.counts).astype(np.int8), np.abs(counts.counts))
                rows = rows.append_column("weight", pa.array(signs))
            tables[name] = rows
        session.progress("draw rows", len(answers), len(answers))
        table = merged(session.terms.schema, tables, self.absent, draws)
        return MergedTable(table=ReleasedTable(table), histograms=histograms)

    def read(self, plan: HommPlan, folder: Path) -> MergedTable:
        """Read back `synthetic.parquet` and `cells.parquet`."""
        table, cells = (read_table(folder, name) for name in ("synthetic.parquet", "cells.parquet"))
        histograms = {}
        for party in plan.terms.parties:
            own = cells.filter(pa.compute.equal(cells["party"], party.name))
            index, counts = (np.asarray(own[name], dtype=np.int64) for name in ("cell", "count"))
            histograms[party.name] = SparseCounts(plan.schemas[party.name].domain, index, counts)
        return MergedTable(table=ReleasedTable(table), histograms=histograms)

    def _noise(self, budget: Budget, unit: Unit) -> Noise:
        """Return the noise of one party's counts.

        A person at `unit.parties` parties is charged at each of them, so the noise uses 1 / `unit.parties` of the
        party's budget.
        """
        if self.as_published:
            return PublishedLaplace(epsilon=budget.epsilon, clamp=self.clamp, unit=unit)
        if self.noise == "laplace":
            epsilon = part_of(budget.epsilon, unit.parties)
            return DiscreteLaplace(sensitivity=unit.l1_of_counts(), epsilon=epsilon)
        rho = part_of(rho_for(budget.epsilon, budget.delta), unit.parties)
        return DiscreteGaussian(sensitivity_squared=Fraction(unit.l2_squared_of_counts()), rho=rho)
