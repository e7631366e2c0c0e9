"""Counting in the database: an engine groups and counts, and only counts are sent to the party's machine.

The counts equal, cell for cell, those from streaming the rows, and are equally private.
"""

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, final

import ibis
import numpy as np
from numpy.typing import NDArray

from syndic.data.counting import CellCounter, cover
from syndic.data.domain import Domain
from syndic.data.factor import Factor, SparseCounts, check_dense
from syndic.data.people import Choice
from syndic.data.schema import Schema
from syndic.data.source import NotCounted
from syndic.data.sources.engine import Ask
from syndic.data.sources.ibis import IbisSource
from syndic.data.sources.pushdown_codes import Grouped, grouped

# text with many spellings makes more groups than cells; with more than these, reading the rows once is faster
SPELLINGS: Final = 4
LEAST_GROUPS: Final = 2**16

Names = tuple[str, ...]
Tally = tuple[dict[str, NDArray[Any]], NDArray[np.int64]]


class Recoding(Protocol):
    """Groups of the levels of columns."""

    @property
    def domain_of_groups(self) -> Domain:
        """The columns with a level for each group."""

    def recode(self, codes: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return the groups of coded rows."""


@final
@dataclass(frozen=True, eq=False)
class Pushdown:
    """Rows that count, as an expression of the source's engine. None as an answer means: stream the rows instead.

    `size` is the number of rows where it is public: rows of missing values are counted too if there are fewer.
    """

    schema: Schema
    source: IbisSource
    rows: Any
    size: int | None = None

    def marginals(self, cliques: Sequence[Names], groups: Recoding | None) -> list[Factor] | None:
        """Return the exact counts of each set of columns, from few larger ones."""
        domain = self.schema.domain if groups is None else groups.domain_of_groups
        domains = [domain.project(names) for names in cliques]
        check_dense(*domains)
        counts = [np.zeros(one.size, dtype=np.int64) for one in domains]
        groups_of_columns, homes = cover(self.schema.domain, cliques)
        with self.source.engine.asking(steady=False) as ask:
            for place, names in enumerate(groups_of_columns):
                tallies = self._few_tallies(ask, names)
                if tallies is None:
                    return None
                wanted = [which for which, found in enumerate(homes) if found == place]
                for codes, number in tallies:
                    coarse = codes if groups is None else groups.recode(codes)
                    for which in wanted:
                        wanted_codes = [coarse[name] for name in domains[which].names]
                        cells = domains[which].index(wanted_codes) if wanted_codes else np.zeros(len(number), np.int64)
                        np.add.at(counts[which], cells, number)
        return [Factor(one, table.reshape(one.sizes)) for one, table in zip(domains, counts, strict=True)]

    def cells(self, domain: Domain) -> SparseCounts | None:
        """Return the cells that have rows."""
        by = self._by(domain.names)
        if by is None:
            return None
        counter = CellCounter(domain)
        try:
            with self.source.engine.asking(steady=False) as ask:
                for codes, number in self._tallies(ask, by, limited=False):
                    counter.add(codes, number)
        except NotCounted:
            return None
        return counter.counts()

    def count(self) -> int:
        """Return the number of rows."""
        with self.source.engine.asking(steady=False) as ask:
            return sum(int(number.sum()) for _, number in self._tallies(ask, {}, limited=False))

    def sums(self, names: Names) -> list[int] | None:
        """Return the sum of each column's codes."""
        by = self._by(names)
        if by is None or any(one.raw for one in by.values()):
            return None
        coded = self.rows.select(**{f"s{place}": by[name].expression for place, name in enumerate(names)})
        added = [coded[name].sum().cast("int64") for name in coded.columns]
        with self.source.engine.asking(steady=False) as ask:
            (batch,) = ask(coded.aggregate([*added, coded.count()]))
        *sums, rows = (column[0].as_py() or 0 for column in batch.columns)
        short = 0 if self.size is None else self.size - rows
        missing = [short * self.schema[name].missing_code for name in names]
        return None if short < 0 else [*map(operator.add, sums, missing)]

    def _few_tallies(self, ask: Ask, names: Names) -> list[Tally] | None:
        """Return codes and counts, grouped by values if they match the schema, else by codes, else None."""
        for tidy in (True, False):
            by = self._by(names, tidy=tidy)
            if by is None:
                return None
            try:
                return list(self._tallies(ask, by, limited=True))
            except NotCounted:
                continue
        return None

    def _by(self, names: Iterable[str], *, tidy: bool = False) -> dict[str, Grouped] | None:
        engine = self.source.engine.name
        found = {name: grouped(self.schema[name], self.rows[name], engine, tidy=tidy) for name in names}
        by = {name: one for name, one in found.items() if one is not None}
        return by if len(by) == len(found) else None

    def _tallies(self, ask: Ask, by: Mapping[str, Grouped], *, limited: bool) -> Iterator[Tally]:
        """Yield codes and the number of rows with them, missing rows last; the same codes may appear again."""
        rows = 0
        for codes, number in self._groups(ask, by, limited=limited):
            rows += int(number.sum())
            yield codes, number
        if self.size is not None and rows > self.size:
            raise NotCounted
        if self.size is not None and rows < self.size:
            missing = {name: np.array([self.schema[name].missing_code]) for name in by}
            yield missing, np.array([self.size - rows])

    def _groups(self, ask: Ask, by: Mapping[str, Grouped], *, limited: bool) -> Iterator[Tally]:
        if not by:
            total = self.rows.aggregate(n=self.rows.count())
            yield from (({}, np.asarray(batch.column(0), dtype=np.int64)) for batch in ask(total))
            return
        places = {f"g{place}": one.expression for place, one in enumerate(by.values())}
        coded = self.rows.select(**places)
        answer = coded.group_by(list(places)).aggregate(n=coded.count())
        most = max(LEAST_GROUPS, SPELLINGS * self.schema.domain.project(by).size)
        seen = 0
        for batch in ask(answer.limit(most + 1) if limited else answer):
            seen += len(batch)
            if limited and seen > most:
                raise NotCounted
            codes = {
                name: self.schema[name].encode(found) if one.raw else np.asarray(found, dtype=np.int64)
                for (name, one), found in zip(by.items(), batch.columns, strict=False)
            }
            yield codes, np.asarray(batch.column(len(by)), dtype=np.int64)


def chosen_rows(source: IbisSource, person: str, most: int, choose: Choice) -> Any | None:
    """Return the first or last rows of each person in the declared order.

    None without an order, where ids need reading, for random rows, as engines have no keyed choice, and weighted ones.
    """
    if choose in ("random", "weighted") or not source.order or not source.rows[person].type().is_integer():
        return None
    place = ibis.row_number().over(group_by=source.rows[person], order_by=source.ordering(last=choose == "last"))
    numbered = source.rows.mutate(syndic_place=place)
    return numbered.filter(numbered[person].notnull(), numbered["syndic_place"] < most)
