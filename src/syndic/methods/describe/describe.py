"""Everyday statistics of all parties' people from one noisy release of sums.

The study names a column of groups, columns to describe, and regressions. From them follow small tables of counts and
sums of numbers by group (`syndic.methods.describe.blocks`). Every party computes its own, and all together are opened
once under one copy of noise, as in `marginals`. The coordinator derives shares, means, standard deviations and
quantiles by group, their differences and ratios (within strata by Mantel and Haenszel), tests, and regressions with
robust standard errors. Every variance has a part for sampling and a part for the noise.

*Neighbours*: as the study says, one row for each person. *Sensitivity*: a person adds one row of a public matrix to one
cell of each block; squares add up over the blocks. *Cost*: one release of all sums; what is derived from them is free.

*Who sees what*: as in `marginals`. With `stratum = "party"`, noisy tables of each party are opened, too.
"""

from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Final, Literal, final

import msgspec
import numpy as np

from syndic.data import Boolean, Integer, Real, Schema
from syndic.data.column import Listed
from syndic.document import Document
from syndic.errors import InputError
from syndic.kernel import (
    UNDER_MASKS,
    Disclosure,
    Method,
    Nothing,
    Party,
    Requires,
    Session,
    Terms,
    budgets_of,
    change_of,
    groups_of,
    most_rows,
    step,
)
from syndic.methods.describe.blocks import BITS, MOST_BINS, MOST_LEVELS, ONE, Block, Readings, is_number
from syndic.methods.describe.opened import DescribeNote, Fit
from syndic.methods.describe.result import DescribeResult, read_describe
from syndic.methods.histogram.marginals_plan import MarginalsPlan
from syndic.methods.layout import layout_of
from syndic.model.describe import Kind
from syndic.mpc.graph import sum_graph
from syndic.mpc.masked_sum import MaskedSum, SumMasked
from syndic.mpc.ring import OVERFLOW, ring_for
from syndic.noise import GaussianShare
from syndic.privacy import rho_for
from syndic.privacy.concentrated import part_of

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
        return tuple(Readings(block, self.terms.schema) for block in self.note.blocks)

    def deviation(self, present: int) -> float:
        """Return the standard deviation of the noise on a count, in people, when so many parties contributed."""
        return float(self.noise.total_variance(present) ** 0.5) / ONE

    def deviations(self, present: int) -> tuple[float, ...]:
        """Return that number; it is the same for all sums."""
        return (self.deviation(present),)

    @property
    def disclosure(self) -> Disclosure:
        """What every role sees."""
        unit, counted = self.terms.unit, super().disclosure
        sums = "the noisy tables and sums of all parties together"
        if any(block.within for block in self.note.blocks):
            sums += ", and noisy tables of each party by itself"
        sensitivity = (
            f"{change_of(unit)} one person's row at one party changes all sums together by at most "
            f"{self.sensitivity / ONE**2:.3f} in squared l2, if a person counts as 1; at up to {unit.parties} of the "
            f"parties the changes add up, so the noise is calibrated to {unit.parties} time(s) that, and each of these "
            f"parties is charged 1/{unit.parties} of the budget"
        )
        sees = {
            "coordinator": f"every party's masked sums, which look uniform, who dropped out, and {sums}",
            "other parties": f"public keys, and {sums}; each knows its own sums and share of the noise",
            "anyone with the release": sums,
        }
        return msgspec.structs.replace(counted, sees=sees, sensitivity=sensitivity)

    @property
    def too_large(self) -> tuple[str, str]:
        """What is too large if the run does not fit, and what to change."""
        return f"there are {self.masked_sum.count:,} sums; a run", "use fewer columns, bins or groups"


@final
class Describe(Method, tag="describe"):
    """Parameters of a descriptive study.

    `group`: the column whose groups are compared; without it, all people are described together. `columns`: what is
    described; by default all others. `stratum`: a column, or "party", within whose strata listed columns are compared
    as well. `regressions`: each takes one table of its columns. `cell_cap`: the most cells of one table. `colluding`
    and `missing` as in `marginals`.
    """

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

    def __post_init__(self) -> None:
        if self.colluding < 1 or self.missing < 0:
            raise ValueError(
                f"colluding ({self.colluding}) must be at least 1, missing ({self.missing}) must not be negative"
            )
        named = [name for name in (self.group, self.stratum, *self.columns) if name is not None]
        if len(set(named)) != len(named):
            raise ValueError(f"group, stratum and columns must be different columns ({', '.join(named)})")
        for one in self.regressions:
            if not one.on or len({one.outcome, *one.on}) != 1 + len(one.on):
                raise ValueError("a regression needs columns in `on`, all different and none its outcome")
        if self.stratum is not None and self.group is None:
            raise ValueError("stratum is for the comparison of groups: set group")

    @property
    def requires(self) -> Requires:
        """Public bounds on people, delta for Gaussian noise, and one row for each person."""
        return Requires(
            people="bound", delta="Gaussian noise", rows=1, because="intervals are for people, each with one row"
        )

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
        readings = [Readings(block, schema) for block in blocks]
        sensitivity = sum(one.sensitivity(terms.unit.neighbours) for one in readings)
        parties = terms.unit.parties
        noise = GaussianShare(
            sensitivity_squared=Fraction(parties * sensitivity),
            rho=part_of(min(rho_for(budget.epsilon, budget.delta) for budget in budgets_of(terms)), parties),
            parties=len(terms.parties),
            colluding=self.colluding,
            missing=self.missing,
            dimension=sum(one.cells(len(terms.parties)) for one in readings),
        )
        graph = sum_graph(len(terms.parties), colluding=self.colluding, missing=self.missing)
        rows = sum(most_rows(terms, party.name) for party in terms.parties)
        # room for all people with the largest reading in one sum, and for the noise
        ring = ring_for((rows << BITS) + noise.tail(OVERFLOW / noise.dimension, noise.parties))
        cliques = tuple(dict.fromkeys(block.clique for block in blocks))
        return DescribePlan(
            terms=terms,
            cut=layout_of(groups_of(terms), cliques, schema.domain),
            product=None,
            noise=noise,
            masked_sum=MaskedSum(label="describe", graph=graph, count=noise.dimension, ring=ring),
            note=DescribeNote(
                group=self.group,
                columns=described,
                stratum=self.stratum,
                blocks=blocks,
                fits=fits,
                parties=tuple(party.name for party in terms.parties),
                repeated=parties,
            ),
            sensitivity=sensitivity,
        )

    @step(reveals="masked")
    def count(self, party: Party[DescribePlan], message: Nothing) -> SumMasked:
        """Sum what the blocks read from this party's rows, add its share of the noise, and mask the result."""
        del message
        plan = party.plan
        masks = plan.masked_sum.masks(party)
        counted = dict(zip(plan.cliques, party.table.marginals(plan.cliques), strict=True))
        names = plan.note.parties
        sums = np.concatenate(
            [one.sums(counted[one.block.clique].values, names.index(party.name), len(names)) for one in plan.readings]
        )
        # the bound is public, and clipping sums to it never increases the distance between neighbours
        most = most_rows(party.terms, party.name) << BITS
        noisy = party.contribute(plan.noise, np.clip(sums, -most, most), why="noisy tables and sums, over all parties")
        return masks.hide(noisy)

    def coordinate(self, session: Session[DescribePlan]) -> DescribeResult:
        """Open the noisy sums of all parties."""
        plan = session.plan
        total = plan.masked_sum.open(session, self.count)
        note = msgspec.structs.replace(
            plan.note, present=total.present, standard_deviation=plan.deviation(len(total.present))
        )
        return DescribeResult(note=note, sums=np.asarray(total.values, dtype=np.int64), schema=plan.terms.schema)

    def read(self, plan: DescribePlan, folder: Path) -> DescribeResult:
        """Read back `describe.parquet` and `describe.json`."""
        found = read_describe(plan.terms.schema, folder, plan.masked_sum.count)
        opened = {"present": found.note.present, "standard_deviation": found.note.standard_deviation}
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
