"""What a survival study publishes: the noisy table, and the curves, tests and hazard ratios that follow from it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import exp
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import scipy

from syndic.data import Domain, Factor
from syndic.document import Document, from_file
from syndic.errors import InputError
from syndic.kernel import Result
from syndic.methods.histogram.tables import read_counts
from syndic.model.survival import (
    Curve,
    Estimate,
    LogRank,
    RiskSets,
    incidence,
    log_rank,
    proportional_hazards,
    risk_sets,
    survival,
)

EVERYBODY = "all"


@final
class Covariate(Document):
    """A column in `by`: its levels but "other" and "missing", and their middles if it is a number."""

    name: str
    levels: tuple[str, ...]
    middles: tuple[float, ...] = ()

    def terms(self, kept: list[int]) -> tuple[str, ...]:
        """Return what its coefficients compare: a unit more, or a kept level with the first of them."""
        if self.middles:
            return (f"{self.name}, per unit",)
        return tuple(f"{self.name}: {self.levels[level]} against {self.levels[kept[0]]}" for level in kept[1:])

    def coded(self, level: int, kept: list[int]) -> list[float]:
        """Return a level's row of the design."""
        if self.middles:
            return [self.middles[level]]
        return [float(level == other) for other in kept[1:]]


@final
class SurvivalLayout(Document):
    """How the table's cells are read.

    `times`: the end of every interval but the last, which is open; the first begins at `start`. `whole`: each interval
    is one point in time. `censored`: the level of `event` at which nothing happened; `causes` has the others.
    """

    time: str
    start: float
    times: tuple[float, ...]
    whole: bool
    event: str
    censored: int
    causes: tuple[str, ...]
    by: tuple[Covariate, ...]
    entered: bool

    def counts(self, table: Factor) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return groups x entries x intervals x kinds, censored first, without people with a missing value."""
        length, kinds = len(self.times) + 1, 1 + len(self.causes)
        kept = [*(len(one.levels) for one in self.by), *([length] if self.entered else []), length, kinds]
        values = table.values[tuple(slice(size) for size in kept)].astype(np.float64)
        order = [self.censored, *(kind for kind in range(kinds) if kind != self.censored)]
        return values[..., order].reshape(-1, length if self.entered else 1, length, kinds)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The level of every column in `by`, for each group of the counts."""
        return tuple(product(*(range(len(one.levels)) for one in self.by)))


@final
class SurvivalNote(Document):
    """What was opened: the layout, the parties whose people are counted, and the standard deviation of a count.

    `covers` is the share of the people that are counted: in some groups the columns may be at too many parties.
    """

    layout: SurvivalLayout
    present: tuple[str, ...]
    standard_deviation: float
    covers: float = 1.0


@final
@dataclass(frozen=True)
class HazardRatio:
    """A hazard ratio with its interval and the p-value of no effect; `widened`: its width without noise is 1."""

    term: str
    ratio: float
    lower: float
    upper: float
    p_value: float
    widened: float


@final
@dataclass(frozen=True, kw_only=True)
class SurvivalResult(Result):
    """The noisy table, and what follows from it. It is released: anyone may see it."""

    note: SurvivalNote
    table: Factor

    @cached_property
    def sets(self) -> RiskSets:
        """People at risk and events, for every combination of levels in `by`."""
        layout = self.note.layout
        every = risk_sets(
            layout.counts(self.table),
            np.array([*layout.times, np.inf]),
            self.note.standard_deviation**2,
            whole=layout.whole,
            entered=layout.entered,
            start=layout.start,
        )
        return every.within(slice(0, len(layout.times)))

    def grouped(self, by: str | None = None) -> tuple[tuple[str, ...], RiskSets]:
        """Return the levels of a column in `by` and their sums, or those of all people together."""
        groups = self.note.layout.groups
        if by is None:
            return (EVERYBODY,), self.sets.merged([list(range(len(groups)))])
        names = [one.name for one in self.note.layout.by]
        if by not in names:
            raise InputError(f"'{by}' is not in `by` of the study ({', '.join(names) or 'it is empty'})")
        place = names.index(by)
        levels = self.note.layout.by[place].levels
        unions = [[row for row, group in enumerate(groups) if group[place] == level] for level in range(len(levels))]
        return levels, self.sets.merged(unions)

    def curves(self, by: str | None = None, cause: str | None = None) -> dict[str, Curve]:
        """Return the survival curve of every level of a column in `by`, or of all people.

        With `cause`: the cumulative incidence of that cause instead.
        """
        causes = self.note.layout.causes
        if cause is not None and cause not in causes:
            raise InputError(f"'{cause}' is not a cause; they are {', '.join(causes)}")
        levels, sets = self.grouped(by)
        every = (sets.only([place]) for place in range(len(levels)))
        found = (survival(one) if cause is None else incidence(one, causes.index(cause)) for one in every)
        return dict(zip(levels, found, strict=True))

    def median(self, by: str | None = None) -> dict[str, Estimate]:
        """Return the time by which half of the people had an event, with its interval."""
        return {level: curve.quantile() for level, curve in self.curves(by).items()}

    def restricted_mean(self, until: float | None = None, by: str | None = None) -> dict[str, Estimate]:
        """Return the mean time without an event up to a time, by default the end of the grid, with its interval."""
        until = self.note.layout.times[-1] if until is None else until
        return {level: curve.restricted_mean(until) for level, curve in self.curves(by).items()}

    def log_rank(self, by: str) -> LogRank | None:
        """Compare the survival of the levels of a column in `by`; None if the noise leaves nothing to compare."""
        return log_rank(self.grouped(by)[1])

    def hazard_ratios(self, level: float = 0.95) -> tuple[HazardRatio, ...] | None:
        """Return Cox's hazard ratios of all columns in `by` together; None if the noise leaves nothing to fit.

        Levels that nobody has, as far as the noise shows, are left out.
        """
        layout = self.note.layout
        if not layout.by:
            raise InputError("hazard ratios need columns in `by` of the study, which is empty")
        kept = [[place for place, one in enumerate(self.grouped(by.name)[1].clear()) if one] for by in layout.by]
        rows = [
            place
            for place, group in enumerate(layout.groups)
            if all(level in known for level, known in zip(group, kept, strict=True))
        ]
        columns = [(by, known) for by, known in zip(layout.by, kept, strict=True) if by.terms(known)]
        terms = [term for by, known in columns for term in by.terms(known)]
        if not rows or not terms:
            return None
        coded = [dict(zip((by.name for by in layout.by), layout.groups[row], strict=True)) for row in rows]
        design = np.array([[x for by, known in columns for x in by.coded(one[by.name], known)] for one in coded])
        fitted = proportional_hazards(self.sets.only(rows), design)
        if fitted is None:
            return None
        width, plain = float(scipy.special.ndtri(0.5 + level / 2)), np.sqrt(np.diag(fitted.sampling))
        each = zip(terms, fitted.coefficients.tolist(), fitted.deviation.tolist(), plain.tolist(), strict=True)
        return tuple(
            HazardRatio(
                term=term,
                ratio=exp(value),
                lower=exp(value - width * deviation),
                upper=exp(value + width * deviation),
                p_value=float(2 * scipy.special.ndtr(-abs(value) / deviation)),
                widened=deviation / sampled,
            )
            for term, value, deviation, sampled in each
        )

    # Files.

    def files(self) -> Mapping[str, Any]:
        """Return the noisy table, the note, all curves and all estimates."""
        levels = np.unravel_index(np.arange(self.table.domain.size), self.table.domain.sizes)
        named = dict(zip(self.table.domain.names, levels, strict=True))
        cells = pa.table({**named, "count": self.table.values.ravel()})
        return {
            "survival.parquet": cells,
            "survival.json": self.note,
            "curves.csv": "\n".join(self._curve_lines()) + "\n",
            "estimates.csv": "\n".join(self._estimate_lines()) + "\n",
        }

    def summary(self) -> Mapping[str, Any]:
        """Return the median of all people, each test's p-value, and the standard deviation of a count."""
        median = self.median()[EVERYBODY]
        tests = {one.name: self.log_rank(one.name) for one in self.note.layout.by if len(one.levels) > 1}
        return {
            "median time": "not reached" if median.value is None else median.value,
            **{f"log-rank test by {name}": f"p = {test.p_value:.3g}" for name, test in tests.items() if test},
            "parties in the sum": len(self.note.present),
            **({"share of the people": f"{self.note.covers:.0%}"} if self.note.covers < 1 else {}),
            "standard deviation of a count": round(self.note.standard_deviation, 3),
        }

    @classmethod
    def read(cls, domain: Domain, folder: Path) -> "SurvivalResult":
        """Read back `survival.parquet` and `survival.json`."""
        note = from_file(folder / "survival.json", SurvivalNote)
        return cls(note=note, table=read_counts([domain], folder / "survival.parquet")[0])

    def _views(self) -> Iterator[tuple[str, str, Curve]]:
        """Yield what, of whom, and its curve: survival, then every cause where there are several."""
        causes = self.note.layout.causes if len(self.note.layout.causes) > 1 else ()
        for by in (None, *(one.name for one in self.note.layout.by)):
            for cause in (None, *causes):
                what = "survival" if cause is None else f"incidence of {cause}"
                for level, curve in self.curves(by, cause).items():
                    yield what, level if by is None else f"{by}: {level}", curve

    def _curve_lines(self) -> Iterator[str]:
        yield "what,group,time,value,lower,upper,band_lower,band_upper"
        for what, group, curve in self._views():
            ends = (*curve.interval(), *curve.band())
            for place, time in enumerate(curve.times.tolist()):
                numbers = ",".join(f"{each[place]:.6g}" for each in (curve.values, *ends))
                yield f"{_quoted(what)},{_quoted(group)},{time:.10g},{numbers}"

    def _estimate_lines(self) -> Iterator[str]:
        yield "what,group,value,lower,upper,p_value"
        for by in (None, *(one.name for one in self.note.layout.by)):
            for what, found in (("median time", self.median(by)), ("restricted mean", self.restricted_mean(by=by))):
                for level, one in found.items():
                    numbers = ",".join("" if end is None else f"{end:.6g}" for end in (one.value, one.lower, one.upper))
                    yield f"{what},{_quoted(level if by is None else f'{by}: {level}')},{numbers},"
        for column in self.note.layout.by:
            test = self.log_rank(column.name) if len(column.levels) > 1 else None
            if test is not None:
                yield f"log-rank test,{_quoted(column.name)},{test.statistic:.6g},,,{test.p_value:.6g}"
        for ratio in (self.hazard_ratios() if self.note.layout.by else None) or ():
            numbers = ",".join(f"{end:.6g}" for end in (ratio.ratio, ratio.lower, ratio.upper, ratio.p_value))
            yield f"hazard ratio,{_quoted(ratio.term)},{numbers}"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
