"""A party's rows, coded by the schema. Everything a table returns is private until noise is added."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from syndic.data.column import Codes, code_type
from syndic.data.counting import CellCounter, DenseCounter
from syndic.data.factor import Factor, SparseCounts
from syndic.data.people import Choice, RowWeights, rows_of_people
from syndic.data.schema import Column, Schema
from syndic.data.source import BATCH_ROWS, Source, check_columns
from syndic.data.sources.ibis import IbisSource

if TYPE_CHECKING:
    from syndic.data.sources.pushdown import Pushdown, Recoding

Coded = dict[str, Codes]


@final
@dataclass(frozen=True, eq=False)
class Table:
    """Rows of a source, as codes of a schema, in bounded memory.

    With `person`, the name of a column that identifies people, only `rows_per_person` rows of each person count, and
    rows without a person are left out. `choose` says which: the first, the last, or random ones by `key`. The choice
    depends only on the person's own rows, so it does not change any sensitivity. With "weighted" the rows of a person
    count `whole` together; then only `marginals` and `count` answer, in units of 1/`whole` row. This needs about 100
    bytes of memory per person, and for all but the first rows one more pass over the ids. Ids are compared as trimmed
    text, whole numbers by their digits whatever their type or leading zeros (7, 7.0, "007"). Without `person`, the
    owner guarantees that nobody has more than `rows_per_person` rows. `id_columns` identify the people that
    organisations have in common; only an alignment reads them.

    `size` is the number of rows where it is public: the first so many count, and rows of missing values follow if there
    are fewer. If one row of a list is replaced by another at any place, the first so many differ by one row at most. So
    no sensitivity changes where people are replaced, and no value changes the number of rows.
    """

    schema: Schema
    source: Source
    rows_per_person: int = 1
    person: str | None = None
    id_columns: tuple[str, ...] = ()
    choose: Choice = "first"
    key: bytes = field(default=b"", repr=False)
    size: int | None = None
    whole: int = 1

    def __post_init__(self) -> None:
        if self.rows_per_person < 1:
            raise ValueError(f"rows_per_person ({self.rows_per_person}) must be at least 1")
        if self.choose == "weighted" and (self.person is None or self.size is not None):
            raise ValueError("weighted rows need `person`, and their number is not public")
        check_columns(self.source, dict.fromkeys([*self._columns(self.schema.inputs), *self.id_columns]))
        object.__setattr__(self, "source", self.schema.derived(self.source))

    def batches(self, names: Iterable[str] | None = None) -> Iterator[Coded]:
        """Yield the codes of some columns (all by default), a batch of rows at a time."""
        self._check_unweighted()
        columns = self.schema.select(self.schema.names if names is None else names).columns
        if self.size is None:
            yield from (coded for coded, _ in self._stored(columns))
            return
        left = self.size
        for coded, _ in self._stored(columns):
            yield {name: codes[:left] for name, codes in coded.items()}
            left -= min(left, len(next(iter(coded.values()))))
            if not left:
                return
        for start in range(0, left, BATCH_ROWS):
            rows = min(BATCH_ROWS, left - start)
            yield {one.name: np.full(rows, one.missing_code, code_type(one.size)) for one in columns}

    def _stored(self, columns: Sequence[Column]) -> Iterator[tuple[Coded, NDArray[np.int64] | None]]:
        """Yield the codes of the source's rows that count, and their weights; None if all rows count once."""
        weigh = self.weights()
        for batch in self.source.batches(self._columns(column.name for column in columns)):
            coded = {column.name: column.encode(batch.column(column.name)) for column in columns}
            if weigh is None or self.person is None:
                yield coded, None
                continue
            weights = weigh(batch.column(self.person))
            yield {name: codes[weights > 0] for name, codes in coded.items()}, weights[weights > 0]

    def coded_by(self, schema: Schema) -> "Table":
        """Return the same rows, coded by columns of the same names with other bins."""
        # derived columns are in the source already
        return self if schema == self.schema else replace(self, schema=schema.as_released())

    def count(self, names: Iterable[str]) -> Factor:
        """Return the exact number of rows in each cell of `names`."""
        return self.marginals([tuple(names)])[0]

    def marginals(self, cliques: Sequence[Iterable[str]], groups: "Recoding | None" = None) -> list[Factor]:
        """Return the exact counts of each set of columns, or of groups of their levels.

        All in one pass over the rows, or by the engine that holds them.
        """
        sets = [tuple(names) for names in cliques]
        pushed = self._pushdown()
        counted = None if pushed is None else pushed.marginals(sets, groups)
        if counted is not None:
            return counted
        counter = DenseCounter(self.schema.domain if groups is None else groups.domain_of_groups, sets)
        if self.choose == "weighted":
            rows = self._stored(self.schema.select(counter.names).columns)
        else:
            rows = ((batch, None) for batch in self.batches(counter.names))
        for batch, weights in rows:
            counter.add(batch if groups is None else groups.recode(batch), weights)
        return counter.factors()

    def cells(self, names: Iterable[str] | None = None) -> SparseCounts:
        """Return the occupied cells with their exact counts; memory grows with their number only."""
        self._check_unweighted()
        domain = self.schema.domain if names is None else self.schema.domain.project(names)
        pushed = self._pushdown()
        counted = None if pushed is None else pushed.cells(domain)
        if counted is not None:
            return counted
        counter = CellCounter(domain)
        for batch in self.batches(domain.names):
            counter.add(batch)
        return counter.counts()

    def rows(self) -> int:
        """Return the exact number of rows that count. Private under `add_remove`: never send or display it."""
        self._check_unweighted()
        if self.size is not None:
            return self.size
        pushed = self._pushdown()
        if pushed is not None:
            return pushed.count()
        name = self.schema.names[0]
        return sum(len(batch[name]) for batch in self.batches([name]))

    def sums(self) -> list[int]:
        """Return the exact sum of each column's codes."""
        self._check_unweighted()
        pushed = self._pushdown()
        added = None if pushed is None else pushed.sums(self.schema.names)
        if added is not None:
            return added
        sums = np.zeros(len(self.schema.columns), dtype=np.int64)
        for batch in self.batches():
            sums += [int(batch[name].sum(dtype=np.int64)) for name in self.schema.names]
        return sums.tolist()

    def _pushdown(self) -> "Pushdown | None":
        """Return what counts in the source's own engine; None where the rows must be streamed."""
        source = self.source
        if not isinstance(source, IbisSource) or not source.engine.counts:
            return None
        from syndic.data.sources.pushdown import Pushdown, chosen_rows  # noqa: PLC0415  # an extra

        most, choose = self.rows_per_person, self.choose
        rows = source.rows if self.person is None else chosen_rows(source, self.person, most, choose)
        return None if rows is None else Pushdown(self.schema, source, rows, self.size)

    def weights(self) -> RowWeights | None:
        """Return what weighs rows by their people; None if all count once."""
        if self.person is None:
            return None
        people = None
        if self.choose != "first":
            people, _ = rows_of_people(batch.column(0) for batch in self.source.batches([self.person]))
        return RowWeights(self.choose, self.rows_per_person, people, key=self.key, whole=self.whole)

    def _check_unweighted(self) -> None:
        """Refuse to hand out rows without their weights: a person would count more often than is charged."""
        if self.choose == "weighted":
            raise ValueError("these rows have weights: only tables of counts can be made of them")

    def _columns(self, names: Iterable[str]) -> list[str]:
        wanted = dict.fromkeys(names)
        if self.person is not None:
            wanted[self.person] = None
        return list(wanted)
