"""Time to an event, over all parties' people, from one noisy table of counts.

Every party counts its people by group, time and kind of end (event or censored), and all counts together are opened
once under one copy of noise, as in `marginals`. The coordinator derives from that table: survival curves
(Kaplan-Meier) and cumulative incidences with intervals, medians and restricted means, the log-rank test, hazard ratios
(Cox). Every variance has a part for sampling and a part for the noise.

Parties may hold different columns of the same people, such as times here and groups there: see `marginals`.

*Neighbours*: as the study says, one row for each person. *Sensitivity*: a person is in one cell of one table. *Cost*:
one release of the table; what is derived from it is free.

*Who sees what*: as in `marginals`. Everybody sees the noisy table, the coordinator masked counts.
"""

from pathlib import Path
from typing import ClassVar, Literal, final

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from syndic.data import Column, Date, Integer, Real, Schema
from syndic.data.coding import bins_of
from syndic.data.lists import OTHER
from syndic.errors import InputError
from syndic.kernel import UNDER_MASKS, Session, Terms
from syndic.methods.histogram.marginals import ONE_ROW, CountsTables, Marginals
from syndic.methods.histogram.marginals_plan import MarginalsPlan
from syndic.methods.survival.result import Covariate, SurvivalLayout, SurvivalNote, SurvivalResult


@final
class SurvivalPlan(MarginalsPlan):
    """The one table that is counted, and how its cells are read: groups, times, kinds of end."""

    layout: SurvivalLayout

    @property
    def too_large(self) -> tuple[str, str]:
        """What is too large if the run does not fit, and what to change."""
        return f"the table has {self.masked_sum.count:,} cells; a run", "use fewer bins, or fewer columns in `by`"


@final
class Survival(CountsTables, tag="survival"):
    """Parameters of a survival study.

    `time`: the column with the time to the end, an integer or real. Its bins are the time grid. Its last bin stands
    for "this long or longer": curves end where it begins. `event`: the column that says how the time ended. `censored`:
    its value for people to whom nothing happened; every other value is a cause. `by`: columns whose groups are compared
    and whose hazard ratios are fitted. `entry`: the column with the time at which a person was first observed, with
    the same bins as `time`, for delayed entry. `colluding`, `missing` and `coordinator_noise` as in `marginals`.
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
    coordinator_noise: bool | UnsetType = UNSET

    def __post_init__(self) -> None:
        if len(set(self.columns)) != len(self.columns):
            raise ValueError(f"time, event, entry and by must be different columns ({', '.join(self.columns)})")
        Marginals(cliques=(self.columns,), colluding=self.colluding, missing=self.missing, cell_cap=self.cell_cap)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table, in its order."""
        return (*self.by, *(() if self.entry is None else (self.entry,)), self.time, self.event)

    requires = replace(ONE_ROW, because="a person has one time and one end")

    def plan(self, terms: Terms) -> SurvivalPlan:
        """Check the columns, calibrate the noise to one table, and size the ring."""
        layout = self._layout(terms.schema)
        cells = terms.schema.domain.project(self.columns).size
        if cells > self.cell_cap:
            raise InputError(
                f"the table of {', '.join(self.columns)} has {cells:,} cells, and at most cell_cap ({self.cell_cap:,}) "
                "are counted: use fewer bins for the time, or fewer columns in `by`"
            )
        counted = Marginals(
            cliques=(self.columns,),
            colluding=self.colluding,
            missing=self.missing,
            coordinator_noise=self.coordinator_noise,
        ).plan(terms)
        return SurvivalPlan(layout=layout, **{name: getattr(counted, name) for name in counted.__struct_fields__})

    def coordinate(self, session: Session[SurvivalPlan]) -> SurvivalResult:
        """Open the noisy sum of all parties' tables."""
        opened = self.opened(session)
        note = SurvivalNote(
            layout=session.plan.layout,
            present=opened.note.present,
            standard_deviation=opened.note.standard_deviation,
            covers=min(opened.note.covers, default=1.0),
        )
        return SurvivalResult(note=note, table=opened.tables[0])

    def read(self, plan: SurvivalPlan, folder: Path) -> SurvivalResult:
        """Read back `survival.parquet` and `survival.json`."""
        found = SurvivalResult.read(plan.domains[0], folder)
        if found.note.layout != plan.layout:
            raise InputError(f"{folder.name}: survival.json does not belong to this study")
        return found

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
        middles = tuple(bins_of(column)[0].tolist())
    elif isinstance(column, Date):
        raise InputError(f"by: '{column.name}' is a date; derive a number from it, or leave it out")
    return Covariate(name=column.name, levels=_listed(column), middles=middles)
