"""A method in one file: how many rows all parties have together. Only the sum opens, with one curator's noise.

`docs/architecture.md` says how to add a method. This one is not installed anywhere, so only its plan is made.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

import syndic as sy
from syndic.kernel import (
    GROUPS,
    MADE_UP,
    Disclosure,
    Method,
    Nothing,
    Party,
    Plan,
    Requires,
    Resources,
    Result,
    Session,
    Terms,
    beyond_unit,
    budgets_of,
    most_rows,
    read_table,
    step,
)
from syndic.mpc.graph import sum_graph
from syndic.mpc.masked_sum import MaskedSum, SumMasked
from syndic.mpc.ring import OVERFLOW, ring_for
from syndic.noise import LaplaceShare
from syndic.privacy import Event
from syndic.privacy.concentrated import part_of


@dataclass(frozen=True)
class Total(Result):
    """The noisy number of rows of all parties together."""

    rows: int

    def files(self) -> Mapping[str, Any]:
        return {"total.parquet": pa.table({"rows": [self.rows]})}

    def summary(self) -> Mapping[str, Any]:
        return {"rows": self.rows}


class TotalRowsPlan(Plan):
    """One count with Laplace noise, and the sum that opens it."""

    noise: LaplaceShare
    masked_sum: MaskedSum  # who masks with whom; brings its own steps

    @property
    def rounds(self) -> tuple[str, ...]:
        return self.masked_sum.rounds("count")

    def events(self, party: str) -> tuple[Event, ...]:
        del party  # all are charged alike
        return (self.noise.event,)

    @property
    def resources(self) -> Resources:
        return Resources(memory_bytes=10**8, reply_bytes=self.masked_sum.message_bytes, seconds=1.0, rounds=4)

    @property
    def disclosure(self) -> Disclosure:
        unit = self.terms.unit
        return Disclosure(
            sees={
                "coordinator": "every party's count under masks, which look uniform, and the noisy total",
                "other parties": "public keys, and the noisy total",
                "anyone with the release": "the noisy total",
            },
            sensitivity=f"one person has at most {unit.rows} row(s) at each of {unit.parties} parties",
            not_protected=(GROUPS, beyond_unit(unit), MADE_UP),
        )


class TotalRows(Method, tag="total-rows"):
    """It has no parameters."""

    title: ClassVar[str] = "Number of rows"
    paper: ClassVar[str] = "none"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "horizontal"
    trust: ClassVar[str] = "semi-honest: everybody follows the steps, and at most one party shares what it knows"

    @property
    def requires(self) -> Requires:
        because = "table sizes are public under replace: there is nothing to protect"
        return Requires(people="bound", least_parties=3, neighbours="add_remove", because=because)

    def plan(self, terms: Terms) -> TotalRowsPlan:
        parties, unit = len(terms.parties), terms.unit
        # a person at several parties is charged at each
        epsilon = part_of(min(budget.epsilon for budget in budgets_of(terms)), unit.parties)
        noise = LaplaceShare(
            sensitivity=unit.rows, epsilon=epsilon, parties=parties, colluding=1, missing=0, dimension=1
        )
        # room for all rows and for the noise
        most = sum(most_rows(terms, party.name) for party in terms.parties)
        ring = ring_for(most + noise.tail(OVERFLOW, parties))
        graph = sum_graph(parties, colluding=1, missing=0)
        masked_sum = MaskedSum(label="rows", graph=graph, count=1, ring=ring)
        return TotalRowsPlan(terms=terms, noise=noise, masked_sum=masked_sum)

    @step(reveals="masked")
    def count(self, party: Party[TotalRowsPlan], message: Nothing) -> SumMasked:
        """Count the rows, add this party's share of the noise, and mask the result."""
        del message
        plan = party.plan
        masks = plan.masked_sum.masks(party)  # refuses before a row is read or anything is charged
        rows = np.array([min(party.table.rows(), most_rows(party.terms, party.name))])
        return masks.hide(party.contribute(plan.noise, rows, why="number of rows"))

    def coordinate(self, session: Session[TotalRowsPlan]) -> Total:
        """Open the sum of all parties' counts, with its noise."""
        return Total(int(session.plan.masked_sum.open(session, self.count).values[0]))

    def read(self, plan: TotalRowsPlan, folder: Path) -> Total:
        del plan
        return Total(read_table(folder, "total.parquet")["rows"][0].as_py())


def main() -> None:
    """Print what a study with this method would cost, ask and reveal."""
    with as_file(files("syndic") / "demo") as data:
        demo = sy.Study.load(data / "study.toml")
    study = sy.Study(
        name="how many",
        unit=demo.unit,
        budget=demo.budget,
        protocol=TotalRows(),  # type: ignore[arg-type]  # not among the installed methods
        parties=demo.parties,
        schema=demo.schema,
    )
    print(sy.plan(study))


if __name__ == "__main__":
    main()
