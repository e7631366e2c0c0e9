"""HOMM: horizontally merged multi-party synthetic data (Su and Liu 2020).

Every party counts its rows in every cell of the public grid that the schema declares, adds noise to every count
(empty cells too) and publishes the noisy counts. Anyone draws rows from them: a category as it stands, a number
uniformly within its bin. The merged table is the concatenation.

*Neighbours*: as the study says, a person's rows at one party added, removed or replaced. *Sensitivity*: a row is in one
cell, so r rows move the counts by r in l1, or by 2 r if they are replaced. *Cost*: one release of the whole histogram;
a person at several parties pays at each, so a party's noise is made for its part of the budget. *Who sees what*:
everybody sees every party's noisy counts. Nobody needs to be trusted.

Sound by default: integer noise calibrated to the study's unit (the paper's scale 1/epsilon holds for adding or
removing one row at one party only), and people at several parties paid for. `as_printed` is the paper's own
noise, for reproduction in simulation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any, ClassVar, Literal, final

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
from numpy.typing import NDArray

from syndic.data import ReleasedTable, SparseCounts, decode_rows
from syndic.document import Document
from syndic.errors import InputError
from syndic.kernel import (
    Disclosure,
    Estimate,
    Message,
    Method,
    Nothing,
    Party,
    Result,
    Session,
    Terms,
    budget_of,
    people_of,
    step,
)
from syndic.methods.refusals import check_people
from syndic.noise import DiscreteGaussian, DiscreteLaplace, SparseHistogram
from syndic.privacy import Event, PureEvent, Unit, rho_for
from syndic.privacy.concentrated import PICO
from syndic.random import Randomness, generator

# Bytes that one kept cell (index and count, sorted once) and one drawn value take at their peak.
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

    def write(self, folder: Path) -> list[Path]:
        """Write `synthetic.parquet` and the noisy counts, `cells.parquet`."""
        self.table.write(folder / "synthetic.parquet")
        names = [name for name, counts in self.histograms.items() for _ in range(len(counts.cells))]
        cells = pa.table(
            {
                "party": pa.array(names, pa.string()).dictionary_encode(),
                "cell": np.concatenate([counts.cells for counts in self.histograms.values()]),
                "count": np.concatenate([counts.counts for counts in self.histograms.values()]),
            }
        )
        pq.write_table(cells, folder / "cells.parquet")
        return [folder / "synthetic.parquet", folder / "cells.parquet"]

    def summary(self) -> Mapping[str, Any]:
        """Return the number of rows drawn and of cells kept; both follow from noisy counts."""
        kept = {name: len(counts.cells) for name, counts in self.histograms.items()}
        return {"rows": len(self.table), "columns": len(self.table.names), "cells kept": kept}


class PrintedLaplace(Document):
    """The paper's noise: a floating-point Laplace draw of scale 1/epsilon, rounded. Protects nobody."""

    epsilon: Fraction
    clamp: bool
    unit: Unit

    @property
    def event(self) -> PureEvent:
        """What holds in real arithmetic: the printed epsilon times the sensitivity that the unit really has."""
        return PureEvent(epsilon=self.epsilon * self.unit.l1_of_counts(), what="continuous Laplace, as printed")

    def apply(self, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:
        """Return the values with noise, rounded."""
        noise = generator(randomness).laplace(0.0, float(1 / self.epsilon), values.shape)
        noisy = values + noise
        return np.rint(np.maximum(noisy, 0.0) if self.clamp else noisy).astype(np.int64)


@final
class Homm(Method, tag="homm"):
    """Parameters of HOMM.

    `clamp`: keep cells with a noisy count of at least `at_least`; otherwise every cell is published with its
    signed count, and rows of negative cells carry weight -1, which keeps weighted sums unbiased.
    `at_least` above 1 makes huge sparse grids possible: it drops small noisy counts after the noise.
    """

    title: ClassVar[str] = "HOMM, merged histogram synthesis"
    paper: ClassVar[str] = "Su and Liu 2020, Utility analysis of horizontally merged multi-party synthetic data"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "horizontal"
    trust: ClassVar[str] = "nobody: each party trusts only itself; no cryptography is needed"

    noise: Literal["laplace", "gaussian"] = "laplace"
    clamp: bool = True
    at_least: int = 1
    as_printed: bool = False

    def __post_init__(self) -> None:
        if self.at_least < 1:
            raise ValueError(f"at_least ({self.at_least}) must be at least 1")
        if self.as_printed and (self.noise != "laplace" or self.at_least != 1):
            raise ValueError("as_printed is Laplace noise on every cell: noise and at_least cannot be set")
        if not self.clamp and self.at_least != 1:
            raise ValueError("at_least drops cells, which clamp = false forbids: set one of them")

    @property
    def simulation_only(self) -> bool:
        """The printed variant never meets real parties."""
        return self.as_printed

    # The parties' side.

    @step(reveals="noisy")
    def sanitise(self, party: Party, message: Nothing) -> Sanitised:
        """Count, add noise to every cell of the grid, keep what the public rule keeps."""
        del message
        counts = party.table.cells()
        check_people(party, int(counts.counts.sum()))
        noise = self.noise_of(party.terms, party.name)
        why = "noisy full histogram"
        if self.clamp and not isinstance(noise, PrintedLaplace):
            kept = party.release(
                self._sparse(noise, party.terms), (counts.cells.astype(np.uint64), counts.counts), why=why
            )
            return Sanitised(cells=kept.places, counts=kept.counts)
        noisy = party.release(noise, counts.dense().values.ravel(), why=why)
        kept_cells = np.flatnonzero(noisy)
        return Sanitised(cells=kept_cells.astype(np.uint64), counts=noisy[kept_cells])

    # The coordinator's side.

    def coordinate(self, session: Session) -> MergedTable:
        """Ask every party for its noisy histogram, draw rows from each, and concatenate."""
        answers = session.ask(self.sanitise, Nothing())
        schema = session.terms.schema
        draws = generator(session.randomness)
        tables, histograms = [], {}
        for done, (name, answer) in enumerate(answers.items()):
            session.progress("draw rows", done, len(answers))
            counts = SparseCounts(schema.domain, answer.cells.astype(np.int64), answer.counts)
            histograms[name] = counts
            rows = decode_rows(schema, counts.cells, np.abs(counts.counts), draws).to_arrow()
            if not self.clamp:
                signs = np.repeat(np.sign(counts.counts).astype(np.int8), np.abs(counts.counts))
                rows = rows.append_column("weight", pa.array(signs))
            tables.append(rows)
        session.progress("draw rows", len(answers), len(answers))
        return MergedTable(table=ReleasedTable(pa.concat_tables(tables)), histograms=histograms)

    def read_result(self, terms: Terms, folder: Path) -> MergedTable:
        """Read back `synthetic.parquet` and `cells.parquet`."""
        try:
            table, cells = (pq.read_table(folder / name) for name in ("synthetic.parquet", "cells.parquet"))
        except (OSError, pa.ArrowInvalid) as error:
            raise InputError(f"{folder.name}: its release cannot be read: {type(error).__name__}") from None
        histograms = {}
        for party in terms.parties:
            own = cells.filter(pa.compute.equal(cells["party"], party.name))
            index, counts = (np.asarray(own[name], dtype=np.int64) for name in ("cell", "count"))
            histograms[party.name] = SparseCounts(terms.schema.domain, index, counts)
        return MergedTable(table=ReleasedTable(table), histograms=histograms)

    # What is known before any row is read.

    def noise_of(self, terms: Terms, party: str) -> "DiscreteLaplace | DiscreteGaussian | PrintedLaplace":
        """Return the noise of one party's counts.

        A person at `unit.parties` parties pays at each of them, so each gets that part of the party's budget.
        """
        budget, unit = budget_of(terms, party), terms.unit
        if self.as_printed:
            return PrintedLaplace(epsilon=budget.epsilon, clamp=self.clamp, unit=unit)
        if self.noise == "laplace":
            epsilon = _part(budget.epsilon, unit.parties)
            return DiscreteLaplace(sensitivity=unit.l1_of_counts(), epsilon=epsilon)
        rho = _part(rho_for(budget.epsilon, budget.delta), unit.parties)
        return DiscreteGaussian(sensitivity_squared=Fraction(unit.l2_squared_of_counts()), rho=rho)

    def check(self, terms: Terms) -> None:
        """Refuse what cannot work, with the number it would need."""
        for candidate in terms.parties:
            if self.noise == "gaussian" and budget_of(terms, candidate.name).delta == 0:
                raise InputError(
                    f"party '{candidate.name}': Gaussian noise needs delta above 0; set delta or use laplace"
                )
            if candidate.columns is not None:
                raise InputError(f"party '{candidate.name}': every party of HOMM holds all columns: leave columns out")
            if terms.unit.neighbours == "replace" and candidate.people is None:
                raise InputError(f"party '{candidate.name}': neighbours = \"replace\" needs its public size, people")
        if not self.clamp and "weight" in terms.schema.names:
            raise InputError("clamp = false adds a column 'weight', which the schema already has: rename it")
        self._check_size(terms)

    def spends(self, terms: Terms, party: str) -> tuple[Event, ...]:
        """One release of the whole histogram."""
        return (self.noise_of(terms, party).event,)

    def estimate(self, terms: Terms) -> Estimate:
        """Cells that survive from noise alone, the largest reply, memory at the busiest role."""
        size = terms.schema.domain.size
        people = people_of(terms) or 0
        survivors = {party.name: self._survivors(terms, party.name) for party in terms.parties}
        noise_rows = sum(count * (self.at_least + self._typical_size(terms, name)) for name, count in survivors.items())
        dense = 0 if self.clamp and not self.as_printed else 24 * size
        largest = max(survivors.values()) + people
        kept = sum(survivors.values()) + people
        rows = noise_rows + people
        memory = dense + _BYTES_PER_CELL * kept + _BYTES_PER_VALUE * rows * len(terms.schema.columns)
        return Estimate(
            memory_bytes=int(memory) + 10**8,
            reply_bytes=int(16 * largest) + 256,
            rounds=2,
            seconds=round(1.0 + people / 1e6 + kept / 2e6 + rows * len(terms.schema.columns) / 1e7, 1),
            notes=(
                f"{size:,} cells in the public grid",
                f"about {sum(survivors.values()):,.0f} empty cells would show rows made of noise alone, "
                f"about {noise_rows:,.0f} rows in all",
                *(self._noise_note(terms, party.name) for party in terms.parties),
            ),
        )

    def disclosure(self, terms: Terms) -> Disclosure:
        """State what every role sees."""
        unit = terms.unit
        change = "adding or removing" if unit.neighbours == "add_remove" else "replacing"
        sees = "every party's noisy counts and the merged table"
        return Disclosure(
            sees={"coordinator": sees, "other parties": sees, "anyone with the release": sees},
            sensitivity=(
                f"{change} one person's rows at one party, {unit.rows} at most, changes its counts by at most "
                f"{unit.l1_of_counts()} in l1 and {unit.l2_squared_of_counts()} in squared l2; a person is at no "
                f"more than {unit.parties} of the parties, and each party's noise is made for its budget divided by "
                f"{unit.parties}"
            ),
            not_protected=_not_protected(unit),
            departures=self._departures(unit),
        )

    def _sparse(self, noise: DiscreteLaplace | DiscreteGaussian, terms: Terms) -> SparseHistogram:
        return SparseHistogram(noise=noise, cells=terms.schema.domain.size, at_least=self.at_least)

    def _survivors(self, terms: Terms, party: str) -> float:
        """Return how many cells noise alone is expected to keep."""
        noise = self.noise_of(terms, party)
        if isinstance(noise, PrintedLaplace) or not self.clamp:
            return float(terms.schema.domain.size)
        return self._sparse(noise, terms).expected_survivors

    def _typical_size(self, terms: Terms, party: str) -> float:
        """Return about how many rows a surviving empty cell shows above `at_least`."""
        noise = self.noise_of(terms, party)
        return float(1 / noise.epsilon) if isinstance(noise, PrintedLaplace) else noise.variance**0.5

    def _noise_note(self, terms: Terms, party: str) -> str:
        noise = self.noise_of(terms, party)
        spread = 2**0.5 / float(noise.epsilon) if isinstance(noise, PrintedLaplace) else noise.variance**0.5
        return f"{party}: standard deviation {spread:.3g} on every count"

    def _check_size(self, terms: Terms) -> None:
        size = terms.schema.domain.size
        if size >= 2**63:
            raise InputError(
                f"the grid has {size:.3g} cells, more than the 9.22e18 that can be numbered: "
                "use fewer columns or bins, or a method for many columns"
            )
        estimate = self.estimate(terms)
        memory, reply = terms.limits.memory_mb * 10**6, terms.limits.message_mb * 10**6
        if estimate.memory_bytes <= memory and estimate.reply_bytes <= reply:
            return
        way_out = "use fewer columns or bins"
        if self.clamp and not self.as_printed:
            way_out += f", or at_least = {self._smallest_that_fits(terms)}, or a larger epsilon"
        raise InputError(
            f"the grid has {size:,} cells; a run would need about {estimate.memory_bytes / 1e6:,.0f} MB of memory "
            f"(limit {terms.limits.memory_mb}) and replies of {estimate.reply_bytes / 1e6:,.0f} MB "
            f"(limit {terms.limits.message_mb}): {way_out}"
        )

    def _smallest_that_fits(self, terms: Terms) -> int:
        memory, reply = terms.limits.memory_mb * 10**6, terms.limits.message_mb * 10**6
        at_least = self.at_least
        while True:
            at_least += max(1, at_least // 8)
            estimate = Homm(noise=self.noise, at_least=at_least).estimate(terms)
            if (estimate.memory_bytes <= memory and estimate.reply_bytes <= reply) or at_least > 10**9:
                return at_least

    def _departures(self, unit: Unit) -> tuple[str, ...]:
        if not self.as_printed:
            return ()
        factor = unit.l1_of_counts() * unit.parties
        return (
            f"the paper claims max_k epsilon_k; in real arithmetic {factor} times that holds for this unit",
            "the noise is drawn in floating point: before rounding, most values of one table are impossible for "
            "its neighbour (Mironov 2012), and no guarantee is proven for the draw itself",
        )


def _part(amount: Fraction, parts: int) -> Fraction:
    """Return the part, cut to whole units of the ledger, so that the parts never add up to more."""
    return Fraction(floor(amount * PICO / parts), PICO)


def _not_protected(unit: Unit) -> tuple[str, ...]:
    common = (
        "what is true of groups: a pattern that many people share shows, as it should",
        f"people with more rows at a party than {unit.rows}, or at more parties than {unit.parties}",
        "that a party takes part, its name, the columns, bounds and bins: they are in the public study",
    )
    if unit.neighbours == "replace":
        return (*common, "the size of each party: it is public under replace")
    return common
