"""Time to an event, over all parties' people, from one noisy table of counts.

Every party counts its people by group, time and kind of end (event or censored), and all counts together are opened
once under one copy of noise, as in `marginals`. The coordinator derives from that table: survival curves
(Kaplan-Meier) and cumulative incidences with intervals, medians and restricted means, the log-rank test, hazard ratios
(Cox). Every variance has a part for sampling and a part for the noise.

Two parties may hold different columns of the same people instead, such as times here and groups there. Then the table
is the product of their one-hot matrices, counted and opened as in `crosstables`.

*Neighbours*: as the study says, one row for each person. *Sensitivity*: a person is in one cell of one table. *Cost*:
one release of the table; what is derived from it is free.

*Who sees what*: as in `marginals`, or `crosstables`. Everybody sees the noisy table, the coordinator masked counts.
"""

from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, final

import msgspec

from syndic.data import Column, Date, Integer, Real, Schema
from syndic.data.lists import OTHER
from syndic.errors import InputError
from syndic.kernel import (
    SAME_PEOPLE,
    UNDER_MASKS,
    Method,
    Nothing,
    Party,
    Requires,
    Session,
    Terms,
    schema_of,
    step,
)
from syndic.methods.histogram.crosstables import Crosstables, OpenedTables, onehot_rows, open_shares, tables_from
from syndic.methods.histogram.crosstables_plan import CrosstablesPlan
from syndic.methods.histogram.marginals import Marginals, MarginalsPlan, count_tables, open_tables
from syndic.methods.survival.result import Covariate, SurvivalLayout, SurvivalNote, SurvivalResult
from syndic.mpc.dealer import deal_products
from syndic.mpc.masked_sum import SumMasked
from syndic.mpc.product_messages import ProductChallenge, ProductInbox, ProductOpening, ProductProof, ProductTurn


@final
class SurvivalPlan(MarginalsPlan):
    """The one table that is counted, and how its cells are read: groups, times, kinds of end."""

    layout: SurvivalLayout

    @property
    def too_large(self) -> tuple[str, str]:
        """What is too large if the run does not fit, and what to change."""
        return f"the table has {self.masked_sum.count:,} cells; a run", "use fewer bins, or fewer columns in `by`"


@final
class AcrossPlan(CrosstablesPlan):
    """The one table, counted across two parties with different columns, and how its cells are read."""

    layout: SurvivalLayout

    def deviation(self, present: int) -> float:
        """Return the standard deviation of the noise on a count; both parties contribute."""
        del present
        return self.note.across

    @property
    def too_large(self) -> tuple[str, str]:
        """What is too large if the run does not fit, and what to change."""
        return f"the table has {self.noise.dimension:,} cells; a run", "use fewer bins, or fewer columns in `by`"


@final
class Survival(Method, tag="survival"):
    """Parameters of a survival study.

    `time`: the column with the time to the end, an integer or real. Its bins are the time grid. Its last bin stands
    for "this long or longer": curves end where it begins. `event`: the column that says how the time ended. `censored`:
    its value for people to whom nothing happened; every other value is a cause. `by`: columns whose groups are compared
    and whose hazard ratios are fitted. `entry`: the column with the time at which a person was first observed, with
    the same bins as `time`, for delayed entry. `colluding` and `missing` as in `marginals`; where two parties hold
    different columns, `colluding` is 1 and `missing` is 0.
    """

    title: ClassVar[str] = "Survival curves, comparisons and hazard ratios from a masked table"
    paper: ClassVar[str] = "Kaplan and Meier 1958; Cox 1972; Aalen and Johansen 1978; counts as in `marginals`"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "horizontal"
    trust: ClassVar[str] = UNDER_MASKS

    time: str
    event: str
    censored: str = "no"
    by: tuple[str, ...] = ()
    entry: str | None = None
    cell_cap: int = 100_000
    colluding: int = 1
    missing: int = 0

    def __post_init__(self) -> None:
        if len(set(self.columns)) != len(self.columns):
            raise ValueError(f"time, event, entry and by must be different columns ({', '.join(self.columns)})")
        Marginals(cliques=(self.columns,), colluding=self.colluding, missing=self.missing, cell_cap=self.cell_cap)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table, in its order."""
        return (*self.by, *(() if self.entry is None else (self.entry,)), self.time, self.event)

    @property
    def requires(self) -> Requires:
        """Public bounds on people, delta for Gaussian noise, and one row for each person."""
        return Requires(
            people="bound",
            columns="any",
            delta="Gaussian noise",
            rows=1,
            because="a person has one time and one end",
        )

    def plan(self, terms: Terms) -> SurvivalPlan | AcrossPlan:
        """Check the columns, calibrate the noise to one table, and size the ring."""
        layout = self._layout(terms.schema)
        cells = terms.schema.domain.project(self.columns).size
        if cells > self.cell_cap:
            raise InputError(
                f"the table of {', '.join(self.columns)} has {cells:,} cells, and at most cell_cap ({self.cell_cap:,}) "
                "are counted: use fewer bins for the time, or fewer columns in `by`"
            )
        if any(party.columns is not None for party in terms.parties):
            return self._across(terms, layout)
        counted = Marginals(cliques=(self.columns,), colluding=self.colluding, missing=self.missing).plan(terms)
        return SurvivalPlan(
            terms=terms, domains=counted.domains, noise=counted.noise, masked_sum=counted.masked_sum, layout=layout
        )

    @step(reveals="masked")
    def count(self, party: Party[SurvivalPlan], message: Nothing) -> SumMasked:
        """Count the people by group, time and end, add this party's share of the noise, and mask the result."""
        del message
        return count_tables(party)

    # Where two parties hold different columns; keys are those of the secure product.

    @step(reveals="sealed")
    def product_masked(self, party: Party[AcrossPlan], message: ProductTurn) -> ProductOpening:
        """Mask the rows of one chunk and seal them for the partner."""
        return party.plan.product.mask(party, message, partial(onehot_rows, party))

    @step(reveals="sealed")
    def product_proved(self, party: Party[AcrossPlan], message: ProductChallenge) -> ProductProof:
        """Prove that the masked rows of one chunk are one-hot."""
        return party.plan.product.prove(party, message, partial(onehot_rows, party))

    @step(reveals="sealed")
    def product_multiplied(self, party: Party[AcrossPlan], message: ProductInbox) -> Nothing:
        """Check the partner's proof of the chunk and multiply it by its masked rows."""
        return party.plan.product.multiply(party, message, partial(onehot_rows, party))

    @step(reveals="masked")
    def open_tables(self, party: Party[AcrossPlan], message: Nothing) -> OpenedTables:
        """Reconstruct the table from the shares, add this party's share of the noise, and mask the result."""
        del message
        return open_shares(party)

    def coordinate(self, session: Session[Any]) -> SurvivalResult:
        """Open the noisy sum of all parties' tables, or the noisy table across two parties."""
        plan: SurvivalPlan | AcrossPlan = session.plan
        if isinstance(plan, AcrossPlan):
            deal_products(session, self, plan.product)
            shares = session.ask(self.open_tables, Nothing())
            table, present = tables_from(plan, shares)[0].transpose(self.columns), tuple(shares)
        else:
            opened = open_tables(session, self.count)
            table, present = opened.tables[0], opened.note.present
        note = SurvivalNote(layout=plan.layout, present=present, standard_deviation=plan.deviation(len(present)))
        return SurvivalResult(note=note, table=table)

    def read(self, plan: SurvivalPlan | AcrossPlan, folder: Path) -> SurvivalResult:
        """Read back `survival.parquet` and `survival.json`."""
        found = SurvivalResult.read(plan.terms.schema.domain.project(self.columns), folder)
        if found.note.layout != plan.layout:
            raise InputError(f"{folder.name}: survival.json does not belong to this study")
        return found

    def _across(self, terms: Terms, layout: SurvivalLayout) -> AcrossPlan:
        """Return the plan of a table across two parties; each counts its own columns of it as one."""
        SAME_PEOPLE.check(terms)
        held = {party.name: schema_of(terms, party.name).names for party in terms.parties}
        own = {party: tuple(name for name in self.columns if name in names) for party, names in held.items()}
        if len(own) != 2 or not all(own.values()):
            raise InputError(
                "time, event, entry and by must be columns of exactly two parties, or all of them of every party: a "
                "table across three parties cannot be counted"
            )
        if self.colluding != 1 or self.missing:
            raise InputError("where two parties hold different columns, colluding must be 1 and missing 0")
        (left, right), (first, second) = own, own.values()
        sent = {party: (names,) for party, names in own.items()}
        plan = Crosstables().plan_of(terms, {(left, right): ((first, second),)}, {left: (), right: ()}, sent)
        return AcrossPlan(**msgspec.structs.asdict(plan), layout=layout)

    def _layout(self, schema: Schema) -> SurvivalLayout:
        """Return how the cells are read; raise `InputError` for columns that cannot be read as times and ends."""
        schema.domain.axes(self.columns)
        time, event = schema[self.time], schema[self.event]
        if not isinstance(time, Integer | Real) or time.levels < 2:
            raise InputError(f"time: '{self.time}' must be an integer or real column with at least two bins")
        if self.entry is not None and _grid(schema[self.entry]) != _grid(time):
            raise InputError(f"entry: '{self.entry}' must have the same kind, bounds and bins as '{self.time}'")
        kinds = _listed(event)
        if self.censored not in kinds or len(kinds) < 2:
            raise InputError(
                f"censored: '{self.censored}' must be one of at least two values of '{self.event}' ({', '.join(kinds)})"
            )
        edges = [float(edge) for edge in time.bin_edges]
        whole = isinstance(time, Integer) and time.levels == time.upper - time.lower + 1
        return SurvivalLayout(
            time=self.time,
            start=min(0.0, edges[0]),
            times=tuple(edges[:-2] if whole else edges[1:-1]),
            whole=whole,
            event=self.event,
            censored=kinds.index(self.censored),
            causes=tuple(kind for kind in kinds if kind != self.censored),
            by=tuple(_covariate(schema[name]) for name in self.by),
            entered=self.entry is not None,
        )


def _grid(column: Column) -> tuple[object, ...]:
    return (type(column), *column.bin_edges.tolist()) if isinstance(column, Integer | Real) else (column.name,)


def _listed(column: Column) -> tuple[str, ...]:
    """Return the levels but "other" and "missing": people with one of those are in no risk set."""
    return tuple(label for label in column.labels()[: column.levels] if label != OTHER)


def _covariate(column: Column) -> Covariate:
    middles: tuple[float, ...] = ()
    if isinstance(column, Integer | Real):
        edges = column.bin_edges.astype(float)
        last = 1.0 if isinstance(column, Integer) else 0.0
        middles = tuple(((edges[:-1] + edges[1:] - last) / 2).tolist())
    elif isinstance(column, Date):
        raise InputError(f"by: '{column.name}' is a date; derive a number from it, or leave it out")
    return Covariate(name=column.name, levels=_listed(column), middles=middles)
