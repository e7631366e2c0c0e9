"""Everyday statistics of all parties' people from one noisy release of sums.

The study names a column of groups, columns to describe, and regressions. From them follow small tables of counts and
sums of numbers by group (`syndic.methods.describe.opened`). Every party computes its own, and all together are opened
once under one copy of noise, as in `marginals`, over any cut: parties that count a table together have shares of it,
which each multiplies by the public matrix of a block. The coordinator derives shares, means, standard deviations and
quantiles by group, their differences and ratios (within strata by Mantel and Haenszel), tests, and regressions with
robust standard errors. Every variance has a part for sampling and a part for the noise.

*Neighbours*: as the study says, one row for each person. *Sensitivity*: a person adds one row of a public matrix to one
cell of each block, or the mean of such rows where columns are averaged; squares add up over the blocks. Shares of
counts cannot be clipped to a bound: where there are any, every party has exactly the declared number of rows, and each
is in one cell, which partners prove (`adversary`).
*Cost*: one release of all sums; what is derived from them is free.

*Who sees what*: as in `marginals`. With `stratum = "party"`, noisy tables of each party (where several have the same
people: of each group of people) are opened, too.
"""

from functools import cached_property
from pathlib import Path
from typing import ClassVar, Final, Literal, final

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from syndic.data import Boolean, Integer, Real, Schema
from syndic.data.column import Listed
from syndic.document import Document
from syndic.errors import InputError
from syndic.kernel import (
    UNDER_MASKS,
    Adversary,
    Disclosure,
    Session,
    Terms,
    groups_of,
    most_rows,
    shared_people,
)
from syndic.kernel.cut import partners_with
from syndic.methods.describe.opened import (
    BITS,
    LEAST_BITS,
    MOST_BINS,
    MOST_LEVELS,
    Block,
    DescribeNote,
    Fit,
    Readings,
    is_number,
)
from syndic.methods.describe.result import DescribeResult, read_describe
from syndic.methods.histogram.marginals import ONE_ROW, CountsTables, Marginals, check_counted, room_for
from syndic.methods.histogram.marginals_plan import MarginalsPlan, Share, share_of
from syndic.methods.layout import Parts, TableLayout, layout_of
from syndic.model.describe import Kind
from syndic.mpc.ring import LARGEST_FIELD

PARTY: Final = "party"


@final
class Regression(Document):
    """A regression of `outcome` on the columns `on`.

    `linear` and `poisson` are for numbers, `logistic` for one value against all others: `value`, by default true or the
    last listed one.
    """

    kind: Kind
    outcome: str
    on: tuple[str, ...]
    value: str | None = None


@final
class DescribePlan(MarginalsPlan):
    """What is summed, every party's share of the noise, and the one sum that opens it."""

    note: DescribeNote
    sensitivity: int

    @cached_property
    def readings(self) -> tuple[Readings, ...]:
        """The matrices of all blocks."""
        return tuple(Readings(block, self.terms.schema, self.note.bits) for block in self.note.blocks)

    @cached_property
    def parts(self) -> Parts:
        """What opens: the sums of every block, which follow from the table of its columns."""
        places, groups = {names: place for place, names in enumerate(self.cliques)}, len(self.cut.groups)
        return tuple((places[one.block.clique], one.cells(groups)) for one in self.readings)

    @property
    def one(self) -> int:
        """What a person counts in the sums."""
        return self.note.parts << self.note.bits

    def summed(self, party: str, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sums of all blocks, given a party's counts and shares of counts. Private."""
        groups = self.cut.groups
        place = next(place for place, group in enumerate(groups) if party in group.parties)
        tables = np.split(counts, np.cumsum([size for _, size in self.cut.parts])[:-1])
        found = [
            one.sums(tables[table], place, len(groups))
            for one, (table, _) in zip(self.readings, self.parts, strict=True)
        ]
        sums = np.concatenate(found)
        if self.product is not None:
            return self.masked_sum.ring.lift(self.masked_sum.ring.reduce(sums))
        # the bound is public, and clipping sums to it never increases the distance between neighbours
        most = most_rows(self.terms, party) * self.one
        return np.clip(sums, -most, most)

    def noted(self, present: tuple[str, ...]) -> DescribeNote:
        """Return the note of a release, when these parties contributed."""
        found = self.deviations(len(present))
        deviations = found if len(set(found)) > 1 else ()
        return msgspec.structs.replace(self.note, present=present, standard_deviation=max(found), deviations=deviations)

    @property
    def disclosure(self) -> Disclosure:
        """What every role sees."""
        sums = "the noisy tables and sums of all parties together"
        if any(block.within for block in self.note.blocks):
            apart = "group of people" if shared_people(self.terms) else "party"
            sums += f", and noisy tables of each {apart} by itself"
        return self.disclosed(sums, "sums", "sums")

    @property
    def change(self) -> str:
        """What a person changes and by how much, in words."""
        length = self.sensitivity / self.one**2
        return f"all sums together by at most {length:.3f} in squared l2, if a person counts as 1"

    @property
    def too_large(self) -> tuple[str, str]:
        """What is too large if the run does not fit, and what to change."""
        return f"there are {self.masked_sum.count:,} sums; a run", "use fewer columns, bins or groups"


@final
class Describe(CountsTables, tag="describe"):
    """Parameters of a descriptive study.

    `group`: the column whose groups are compared; without it, all people are described together. `columns`: what is
    described; by default all others. `stratum`: a column, or "party", within whose strata listed columns are compared
    as well; if parties have the same people, "party" stands for groups of people. `regressions`: each takes one table
    of its columns. `cell_cap`: the most cells of one table. `colluding`, `missing`, `adversary` and `servers` as in
    `marginals`.
    """

    why: ClassVar[str] = "noisy tables and sums, over all parties"

    title: ClassVar[str] = "Descriptive statistics, comparisons and regressions from masked sums"
    paper: ClassVar[str] = (
        "Mantel and Haenszel 1959; Huber 1967; White 1980; tests after Gaboardi et al. 2016; sums as in `marginals`"
    )
    partition: ClassVar[Literal["horizontal", "vertical"]] = "horizontal"
    trust: ClassVar[str] = UNDER_MASKS

    group: str | None = None
    columns: tuple[str, ...] = ()
    stratum: str | None = None
    regressions: tuple[Regression, ...] = ()
    cell_cap: int = 100_000
    colluding: int = 1
    missing: int = 0
    adversary: Adversary | UnsetType = UNSET
    servers: tuple[str, ...] | UnsetType = UNSET

    def __post_init__(self) -> None:
        self._marginals  # noqa: B018 - its own checks are the checks
        named = [name for name in (self.group, self.stratum, *self.columns) if name is not None]
        if len(set(named)) != len(named):
            raise ValueError(f"group, stratum and columns must be different columns ({', '.join(named)})")
        for one in self.regressions:
            if not one.on or len({one.outcome, *one.on}) != 1 + len(one.on):
                raise ValueError("a regression needs columns in `on`, all different and none its outcome")
        if self.stratum is not None and self.group is None:
            raise ValueError("stratum is for the comparison of groups: set group")

    @property
    def _marginals(self) -> Marginals:
        """How the tables are counted and opened."""
        return Marginals(
            colluding=self.colluding,
            missing=self.missing,
            adversary=self.adversary or None,
            servers=self.servers or (),
        )

    requires = msgspec.structs.replace(ONE_ROW, because="intervals are for people, each with one row")

    def plan(self, terms: Terms) -> DescribePlan:
        """Work out the sums that are needed, calibrate the noise to all of them, and size the ring."""
        schema = terms.schema
        described, fits = self._described(schema), tuple(_fit(one, schema) for one in self.regressions)
        within = self.stratum == PARTY and PARTY not in schema.names
        blocks = tuple(dict.fromkeys([*self._blocks(schema, described, within=within), *(one.block for one in fits)]))
        for block in blocks:
            cells = schema.domain.project(block.clique).size
            if cells > self.cell_cap:
                raise InputError(
                    f"the table of {', '.join(block.clique)} has {cells:,} cells, and at most cell_cap "
                    f"({self.cell_cap:,}) are counted: use fewer bins or columns"
                )
        groups = groups_of(terms, partners_with(self._marginals.servers, self.colluding))
        if self.missing and shared_people(terms):
            raise InputError("a group of people is described only if all its parties answer: set missing = 0")
        layout = layout_of(groups, tuple(dict.fromkeys(block.clique for block in blocks)), schema.domain)
        check_counted(groups, layout.tables)
        self._marginals.graph_of(terms)
        note = DescribeNote(
            group=self.group,
            columns=described,
            stratum=self.stratum,
            blocks=blocks,
            fits=fits,
            parties=tuple(group.parties[0] for group in groups),
            repeated=terms.unit.parties,
            bits=self._bits(terms, layout, blocks),
            parts=layout.one,
        )
        noise, sensitivity = self._noise(terms, layout, blocks, note.bits)
        counted = self._marginals.plan_from(terms, layout, noise, note.parts << note.bits, "describe")
        shares = dict(zip(layout.tables, counted.covers(), strict=False))
        return DescribePlan(
            note=msgspec.structs.replace(note, covers=tuple(shares[one.clique] for one in blocks) if shares else ()),
            sensitivity=sensitivity,
            **{name: getattr(counted, name) for name in counted.__struct_fields__},
        )

    def _noise(self, terms: Terms, layout: TableLayout, blocks: tuple[Block, ...], bits: int) -> tuple[Share, int]:
        """Return a party's share of the noise, and what one person of one group changes, in squared l2."""
        readings = [Readings(block, terms.schema, bits) for block in blocks]
        sensitivity = sum(one.sensitivity(terms.unit.neighbours) for one in readings) * layout.one**2
        count = sum(one.cells(len(layout.groups)) for one in readings)
        who = {"parties": len(terms.parties), "colluding": self.colluding, "missing": self.missing, "dimension": count}
        return share_of("gaussian", terms, 0, sensitivity, **who), sensitivity

    def _bits(self, terms: Terms, layout: TableLayout, blocks: tuple[Block, ...]) -> int:
        """Return how finely sums are counted: where rows are proven, as finely as the largest field has room for."""
        if not (layout.across and self._marginals.proven):
            return BITS
        noise, _ = self._noise(terms, layout, blocks, BITS)
        # a hundredth more, since noise on coarser sums is rounded otherwise
        beyond = 101 * room_for(layout, noise, layout.one << BITS) // (50 * LARGEST_FIELD)
        return max(LEAST_BITS, BITS - beyond.bit_length())

    def coordinate(self, session: Session[DescribePlan]) -> DescribeResult:
        """Open the noisy sums of all parties."""
        plan, total = session.plan, self.total(session)
        sums = np.asarray(total.values, dtype=np.int64)
        return DescribeResult(note=plan.noted(total.present), sums=sums, schema=plan.terms.schema)

    def read(self, plan: DescribePlan, folder: Path) -> DescribeResult:
        """Read back `describe.parquet` and `describe.json`."""
        found = read_describe(plan.terms.schema, folder, plan.masked_sum.count)
        opened = {name: getattr(found.note, name) for name in ("present", "standard_deviation", "deviations")}
        if found.note != msgspec.structs.replace(plan.note, **opened):
            raise InputError(f"{folder.name}: describe.json does not belong to this study")
        return found

    def _described(self, schema: Schema) -> tuple[str, ...]:
        """Return the columns that are described; without `columns`, all but the group and the stratum."""
        schema.domain.axes([name for name in (self.group, *self.columns) if name is not None])
        if self.stratum not in (None, PARTY):
            schema.domain.axes([self.stratum])
        asked = bool(self.regressions) and self.group is None
        found = self.columns or tuple(
            name for name in schema.names if name not in (self.group, self.stratum) and not asked
        )
        most = dict.fromkeys(found, MOST_LEVELS) | ({} if self.group is None else {self.group: MOST_BINS})
        for name, limit in most.items():
            column = schema[name]
            if column.levels > limit and (name == self.group or not is_number(column)):
                raise InputError(f"'{name}' has {column.levels:,} values, and at most {limit:,} are described here")
        return found

    def _blocks(self, schema: Schema, described: tuple[str, ...], *, within: bool) -> list[Block]:
        by = () if self.group is None else (self.group,)
        found = [] if self.group is None else [Block(by=(), of=self.group)]
        for name in described:
            found.append(Block(by=by, of=name))
            if is_number(schema[name]):
                found.append(Block(by=by, of=name, read="moments"))
            elif within:
                found.append(Block(by=by, of=name, within=True))
            elif self.stratum is not None:
                found.append(Block(by=(self.stratum, *by), of=name))
        return found


def _fit(one: Regression, schema: Schema) -> Fit:
    """Return what a regression sums; raise `InputError` for an outcome that it is not for."""
    schema.domain.axes((one.outcome, *one.on))
    column = schema[one.outcome]
    for name in one.on:
        is_number(schema[name])
    if one.kind != "logistic":
        if not isinstance(column, Integer | Real):
            raise InputError(f"regressions: {one.kind} needs a number, and '{one.outcome}' is none: use logistic")
        if one.kind == "poisson" and column.lower < 0:
            raise InputError(f"regressions: poisson counts from 0, and '{one.outcome}' may be negative")
        return Fit(kind=one.kind, block=Block(by=one.on, of=one.outcome, read="moments"))
    labels = column.labels()[: column.levels]
    listed = column.values if isinstance(column, Listed) else labels if isinstance(column, Boolean) else None
    value = one.value if one.value is not None or listed is None else listed[-1]
    if value not in labels:
        raise InputError(f"regressions: '{one.outcome}' needs a `value` to predict, one of {', '.join(labels[:8])}")
    return Fit(
        kind="logistic",
        block=Block(by=one.on, of=one.outcome, read="outcome", success=labels.index(value)),
        success=value,
    )
