"""What a descriptive study publishes: noisy sums, and the statistics that follow from them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from syndic.data import Integer, Real, Schema
from syndic.data.coding import bins_of
from syndic.document import from_file
from syndic.errors import InputError
from syndic.kernel import read_table
from syndic.methods.describe.opened import EVERYBODY, DescribeNote, Fit, Opened, is_number
from syndic.model.describe import (
    ChiSquared,
    Comparison,
    Statistic,
    Sums,
    compare,
    deviation,
    equal_means,
    independence,
    mean,
    mean_difference,
    quantile,
    regression,
    share,
    standardised_difference,
    trend,
)
from syndic.model.describe.sums import CLEAR

Floats = NDArray[np.float64]

COMPARISONS: Final[tuple[Comparison, ...]] = ("difference", "risk ratio", "odds ratio")
QUARTILES: Final = (0.25, 0.5, 0.75)


@final
@dataclass(frozen=True)
class Row:
    """One line of estimates: what, of which column, of or between which groups, and the statistic."""

    what: str
    column: str
    group: str
    found: Statistic


@final
@dataclass(frozen=True, kw_only=True)
class DescribeResult(Opened):
    """The noisy sums, and what follows from them. It is released: anyone may see it."""

    # Listed columns.

    def share(self, column: str, level: str, group: str = EVERYBODY) -> Statistic:
        """Return the share of a value in a group, of people whose value is known."""
        counts, noise = self._split(column, level)
        return share(counts[0, self.place(group)], noise, self.note.repeated)

    def compare(self, column: str, level: str, how: Comparison, group: str, other: str) -> Statistic:
        """Compare the share of a value in two groups; within strata if the study has them."""
        counts, noise = self._split(column, level, stratified=True)
        strata = counts[:, [self.place(group), self.place(other)]]
        return compare(how, strata, np.tile(noise, (2, 1)), self.note.repeated)

    def chi_squared(self, column: str, *, stratified: bool = False) -> ChiSquared | None:
        """Test that a listed column has the same shares in all groups; `stratified`: within every stratum."""
        counts = self.counts(column, stratified=stratified)
        return independence(counts, self._variance(column, stratified=stratified), self.note.repeated)

    def trend(self, column: str, *, stratified: bool = False) -> ChiSquared | None:
        """Test it against shares that rise or fall with the order of groups and values."""
        counts, group = self.counts(column, stratified=stratified), self.schema[self.note.group or column]
        rows = _scores(group)[list(self.groups.values())]
        columns = _scores(self.schema[column])[list(self.levels(column).values())]
        return trend(counts, self._variance(column, stratified=stratified), rows, columns, self.note.repeated)

    # Numbers.

    def mean(self, column: str, group: str = EVERYBODY) -> Statistic:
        """Return the mean of a number in a group."""
        return mean(self.numbers(column), self.place(group), self.readings(self.moments(column)).middle)

    def deviation(self, column: str, group: str = EVERYBODY) -> Statistic:
        """Return the standard deviation of a number in a group."""
        return deviation(self.numbers(column), self.place(group))

    def quantile(self, column: str, chance: float = 0.5, group: str = EVERYBODY) -> Statistic:
        """Return the quantile of a number in a group, by default the median."""
        counts, edges = self.histogram(column)
        place, whole = self.place(group), isinstance(self.schema[column], Integer)
        people = float(self.cells(self.moments(column))[self.groups[group], 0])
        return quantile(
            counts[place],
            people,
            self._variance(column),
            edges,
            chance,
            whole=whole,
            repeated=self.note.repeated,
        )

    def mean_difference(self, column: str, group: str, other: str) -> Statistic:
        """Return how much larger the mean of a number is in a group than in another."""
        return mean_difference(self.numbers(column), self.place(group), self.place(other))

    def equal_means(self, column: str) -> ChiSquared | None:
        """Test that a number has the same mean in all groups."""
        return equal_means(self.numbers(column), len(self.groups))

    def standardised_difference(self, column: str, group: str, other: str) -> Statistic:
        """Return the difference of two groups in standard deviations: of means, or of the share of the last of two."""
        if is_number(self.schema[column]):
            return standardised_difference(self.numbers(column), self.place(group), self.place(other))
        levels = list(self.levels(column))
        if len(levels) != 2:
            return Statistic()
        # a share is the mean of 0 and 1
        counts, (own, rest) = self._split(column, levels[-1])
        cells = np.array([[one + others, one, one] for one, others in counts[0]])
        noise = np.array([[own + rest, own, own], [own, own, own], [own, own, own]])
        shapes = [_binary_shape(one / max(whole, 1.0)) for whole, one, _ in cells]
        sums = Sums.of_numbers(cells, noise, shapes, self.note.repeated)
        return standardised_difference(sums, self.place(group), self.place(other))

    def p_value(self, column: str) -> float | None:
        """Return the p-value that a column is the same in all groups: of means, or of shares."""
        if len(self.groups) < 2:
            return None
        test = self.equal_means(column) if is_number(self.schema[column]) else self.chi_squared(column)
        return None if test is None else test.p_value

    def _split(self, column: str, level: str, *, stratified: bool = False) -> tuple[Floats, Floats]:
        """Return how many people of every stratum and group have a value, and another one; and both variances."""
        levels = list(self.levels(column))
        if level not in levels:
            raise InputError(f"'{level}' is not a value of '{column}' ({', '.join(levels[:8])})")
        counts = self.counts(column, stratified=stratified)
        own = counts[..., levels.index(level)]
        noise = self._variance(column, stratified=stratified) * np.array([1.0, len(levels) - 1.0])
        return np.stack([own, counts.sum(axis=-1) - own], axis=-1), noise

    def _variance(self, column: str, *, stratified: bool = False) -> float:
        """Return the variance of the noise on a count of a column."""
        return self.deviation_of(self.tabled(column, stratified=stratified)) ** 2

    # Regressions.

    def regression(self, place: int = 0) -> Mapping[str, Statistic] | None:
        """Return the coefficients of a regression of the study, by term; None if the noise leaves nothing to fit.

        Of logistic and Poisson regressions they are ratios, of odds and of rates. Values that nobody has, as far as the
        noise shows, are left out.
        """
        fit = self.note.fits[place]
        cells, noise, kept = self._outcomes(fit)
        terms, columns = ["intercept"], [np.ones(cells[..., 0].size)]
        grids = np.meshgrid(*kept, indexing="ij")
        for name, levels, codes in zip(fit.block.by, kept, grids, strict=True):
            for term, values in self._terms(name, levels):
                terms.append(term)
                columns.append(values[codes.ravel()])
        fitted = None
        if min(map(len, kept)) > 0 and len(terms) > 1:
            fitted = regression(fit.kind, cells.reshape(-1, 3), noise, np.column_stack(columns), self.note.repeated)
        if fitted is None:
            return None
        exponential = fit.kind != "linear"
        return {term: fitted.statistic(place, exponential=exponential) for place, term in enumerate(terms) if place}

    def _outcomes(self, fit: Fit) -> tuple[Floats, Floats, list[NDArray[np.int64]]]:
        """Return people, sum and squares of the outcome by kept levels, their noise, and which levels those are."""
        readings, noise = self.readings(fit.block), self.noise(fit.block)
        cells = self.cells(fit.block).reshape(*readings.shape, 3)
        if fit.kind == "poisson":
            # rates are counted from 0
            middle = readings.middle
            shift = np.array([[1.0, 0.0, 0.0], [middle, 1.0, 0.0], [middle**2, 2 * middle, 1.0]])
            cells, noise = cells @ shift.T, shift @ noise @ shift.T
        people, kept = cells[..., 0], []
        for axis, name in enumerate(fit.block.by):
            column = self.schema[name]
            counts = people.sum(axis=tuple(other for other in range(people.ndim) if other != axis))
            least = CLEAR * (people.size / counts.size * noise[0, 0]) ** 0.5
            number = isinstance(column, Integer | Real)
            kept.append(np.flatnonzero((counts[: column.levels] > least) | number))
        return cells[np.ix_(*kept)], noise, kept

    def _terms(self, name: str, kept: NDArray[np.int64]) -> Iterator[tuple[str, Floats]]:
        """Yield a regressor's terms and their value at each level: per unit, or a value against the first kept."""
        column = self.schema[name]
        if isinstance(column, Integer | Real):
            yield f"{name}, per unit", bins_of(column)[0]
            return
        labels = column.labels()
        for level in kept[1:]:
            yield f"{name}: {labels[level]} against {labels[kept[0]]}", (np.arange(column.size) == level).astype(float)

    # All of it, and files.

    def rows(self) -> Iterator[Row]:
        """Yield all estimates: of every group, then all comparisons and tests, then the regressions."""
        for column in self.note.columns:
            yield from self._number_rows(column) if is_number(self.schema[column]) else self._listed_rows(column)
            if len(self.groups) > 1:
                for group, other in self.pairs:
                    found = self.standardised_difference(column, group, other)
                    yield Row("standardised difference", column, f"{group} against {other}", found)
        for place, fit in enumerate(self.note.fits):
            what = {"linear": "linear coefficient", "logistic": "odds ratio", "poisson": "rate ratio"}[fit.kind]
            outcome = fit.block.of + ("" if fit.success is None else f": {fit.success}")
            for term, found in (self.regression(place) or {}).items():
                yield Row(f"{what} by regression", outcome, term, found)

    def _number_rows(self, column: str) -> Iterator[Row]:
        for group in self.groups:
            yield Row("mean", column, group, self.mean(column, group))
            yield Row("standard deviation", column, group, self.deviation(column, group))
            for chance in QUARTILES:
                what = "median" if chance == 0.5 else f"quantile {chance:g}"
                yield Row(what, column, group, self.quantile(column, chance, group))
        for group, other in self.pairs:
            found = self.mean_difference(column, group, other)
            yield Row("difference of means", column, f"{group} against {other}", found)
        if len(self.groups) > 1:
            yield _tested("test of equal means", column, self.equal_means(column))

    def _listed_rows(self, column: str) -> Iterator[Row]:
        levels = tuple(self.levels(column))
        for level, group in product(levels, self.groups):
            yield Row("share", f"{column}: {level}", group, self.share(column, level, group))
        within = self.strata_of(column) is not None
        for level, (group, other), how in product(levels[1:] if len(levels) == 2 else levels, self.pairs, COMPARISONS):
            what = how.replace("difference", "difference of shares") + (" within strata" if within else "")
            yield Row(
                what, f"{column}: {level}", f"{group} against {other}", self.compare(column, level, how, group, other)
            )
        for stratified in (False, True)[: (1 + within) if len(self.groups) > 1 else 0]:
            where = " within strata" if stratified else ""
            yield _tested(f"chi-squared test{where}", column, self.chi_squared(column, stratified=stratified))
            yield _tested(f"test of trend{where}", column, self.trend(column, stratified=stratified))

    def files(self) -> Mapping[str, Any]:
        """Return the noisy sums, the note and all estimates."""
        sizes = [stop.stop - stop.start for stop in self._starts.values()]
        table = pa.table({"block": np.repeat(np.arange(len(sizes), dtype=np.int32), sizes), "sum": self.sums})
        return {
            "describe.parquet": table,
            "describe.json": self.note,
            "estimates.csv": "\n".join(self._lines()) + "\n",
        }

    def _lines(self) -> Iterator[str]:
        yield "what,column,group,value,lower,upper,p_value"
        for row in self.rows():
            texts = ",".join('"' + text.replace('"', '""') + '"' for text in (row.what, row.column, row.group))
            found = row.found
            ends = (found.value, found.lower, found.upper, found.p_value)
            yield texts + "," + ",".join("" if end is None else f"{end:.6g}" for end in ends)

    def summary(self) -> Mapping[str, Any]:
        """Return the groups, how many statistics noise hides, and the standard deviation of a count."""
        every = list(self.rows())
        return {
            "groups": ", ".join(self.groups) or "none stands out from the noise",
            "statistics": len(every),
            "hidden by the noise": sum(row.found.value is None for row in every),
            "parties in the sum": len(self.note.present),
            "standard deviation of a count": round(self.note.standard_deviation, 3),
            **({"share of the people": f"{min(self.partly.values()):.0%}"} if self.partly else {}),
        }


def read_describe(schema: Schema, folder: Path, size: int) -> DescribeResult:
    """Read back `describe.parquet` and `describe.json`."""
    note = from_file(folder / "describe.json", DescribeNote)
    sums = np.asarray(read_table(folder, "describe.parquet")["sum"]).astype(np.int64)
    if len(sums) != size:
        raise InputError(f"{folder.name}: describe.parquet does not have the sums that the study defines")
    return DescribeResult(note=note, sums=sums, schema=schema)


def _tested(what: str, column: str, test: ChiSquared | None) -> Row:
    found = Statistic() if test is None else Statistic(value=test.statistic, p_value=test.p_value)
    return Row(what, column, "all groups", found)


def _scores(column: Any) -> Floats:
    """Return the numbers that the levels of a column stand for, or their order."""
    return bins_of(column)[0] if isinstance(column, Integer | Real) else np.arange(column.levels, dtype=np.float64)


def _binary_shape(value: float) -> tuple[float, float]:
    spread = max(value * (1 - value), 1e-6)
    return (1 - 2 * value) / spread**0.5, 1 / spread - 3
