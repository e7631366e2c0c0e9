"""Columns with bounds, divided into bins: integers, reals and dates."""

import datetime
import math
from abc import abstractmethod
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from syndic.data import values as read
from syndic.data.bins import (
    FINE_BINS,
    MOST_BINS,
    MOST_SCALED_BINS,
    Scale,
    apart,
    draw_between,
    given_edges,
    real_edges,
    whole_edges,
)
from syndic.data.column import LARGEST_INTEGER, LARGEST_SIZE, MISSING_LABEL, Described, Instead
from syndic.data.reading import CLOCKS, Resolution


class Ranged(Described, frozen=True, kw_only=True):
    """A column with bounds, both included, divided into bins.

    `bins` bins of equal width on `scale`: "linear", "log" (positive numbers) or "symlog" (logarithmic on both sides of
    0); or bins between the given `edges`, which begin and end with the bounds. Without either, bins are fine (64, or
    one for each whole number), and a synthesis merges neighbours by their noisy counts. Outside (also infinity): "clip"
    moves the value to the nearer bound, "missing" treats it as missing. Missing: "level" is one more level that decodes
    to null, `{value = ...}` uses a value within the bounds.
    """

    bins: int | None = None
    scale: Scale = "linear"
    outside: Literal["clip", "missing"] = "clip"

    if TYPE_CHECKING:
        # every kind of column has these, of its own type
        lower: Any
        upper: Any
        edges: Any
        missing: Any

    @property
    @abstractmethod
    def bin_edges(self) -> NDArray[Any]:
        """The levels + 1 edges of the bins, increasing; a bin includes its lower edge."""

    @property
    def fine(self) -> bool:
        """Whether the bins are left open, so that a method may merge neighbours."""
        return self.bins is None and self.edges is None

    @abstractmethod
    def beyond(self) -> float:
        """Return the smallest number above the upper bound."""

    @abstractmethod
    def _numbers(self, array: pa.Array) -> read.Numbers:
        """Return the array as numbers."""

    @abstractmethod
    def _bins(self, numbers: read.Numbers) -> NDArray[np.int64]:
        """Return the bins of numbers within the bounds."""

    def _number(self, value: Any) -> float:
        """Return a bound, an edge or a value as a number."""
        return float(value)

    def _bounds(self) -> tuple[float, float]:
        """Return the smallest and the largest value inside, as numbers."""
        return self._number(self.lower), self._number(self.upper)

    def _instead(self) -> float | None:
        """Return the number used for missing values, or None if they have a level."""
        return None if self.missing == "level" else self._number(self.missing.value)

    @property
    def missing_code(self) -> int:
        """The code that missing values get."""
        value = self._instead()
        return self.levels if value is None else int(self._bins(np.array([value], dtype=np.float64))[0])

    def borders(self) -> list[float]:
        """Return the inner edges as numbers, dates as steps since 1970. A value's code is how many are not above it."""
        edges = self.bin_edges[1:-1]
        return [float(edge) for edge in (edges.astype(np.int64) if edges.dtype.kind == "M" else edges)]

    def lowest(self) -> float:
        """Return the lower bound as a number."""
        return self._bounds()[0]

    def _codes(self, array: pa.Array) -> NDArray[np.int64]:
        numbers = self._numbers(array)
        lower, upper = self._bounds()
        missing = np.isnan(numbers)
        if self.outside == "missing":
            missing |= (numbers < lower) | (numbers > upper)
        codes = self._bins(np.clip(np.where(missing, lower, numbers), lower, upper))
        codes[missing] = self.missing_code
        return codes

    def _with_missing(self, labels: list[str]) -> tuple[str, ...]:
        return (*labels, MISSING_LABEL)[: self.size]

    def _check(self, end: float, last: str) -> None:
        """Refuse bins, edges and values that do not fit the bounds; edges end with `end`, in words `last`."""
        self._check_name()
        # more would fill the memory when a study file is read
        most = MOST_BINS if self.scale == "linear" and self.edges is None else MOST_SCALED_BINS
        asked = self.bins if self.edges is None else len(self.edges)
        if asked is not None and asked > most:
            raise ValueError(f"{self.name!r}: bins ({asked}) must be at most {most}")
        if self.scale == "log" and self.lower <= 0:
            raise ValueError(f"{self.name!r}: scale 'log' needs a positive lower bound, not {self.lower}: use 'symlog'")
        if self.edges is not None:
            self._check_edges([self._number(edge) for edge in self.edges], end, last)
        lower, upper = self._bounds()
        value = self._instead()
        if value is not None and not lower <= value <= upper:
            raise ValueError(f"{self.name!r}: the value for missing must be within the bounds")
        if self.size > LARGEST_SIZE:
            raise ValueError(f"{self.name!r}: {self.size} levels are too many (at most 2^32): set fewer bins")

    def _check_edges(self, edges: list[float], end: float, last: str) -> None:
        if self.bins is not None or self.scale != "linear":
            raise ValueError(f"{self.name!r}: give `edges`, or `bins` and `scale`, not both")
        if len(edges) < 2 or (edges[0], edges[-1]) != (self._bounds()[0], end):
            raise ValueError(f"{self.name!r}: edges must begin with lower and end with {last}")
        if any(not first < second for first, second in pairwise(edges)):
            raise ValueError(f"{self.name!r}: edges must increase")


class Whole(Ranged, frozen=True, kw_only=True):
    """A ranged column of whole numbers, on a linear scale divided nearly equally among the bins."""

    @property
    def levels(self) -> int:
        """Number of bins; by default one for each whole number, on a logarithmic scale at most 64."""
        if self._given() is None and self.scale == "linear":
            return self._open_bins() if self.bins is None else self.bins
        return len(self._whole_edges()) - 1

    def _given(self) -> tuple[int, ...] | None:
        """Return the declared edges as whole numbers, or None if there are none."""
        return None if self.edges is None else tuple(int(self._number(edge)) for edge in self.edges)

    def beyond(self) -> float:
        """Return the whole number after the upper bound."""
        return self._bounds()[1] + 1

    def _count(self) -> int:
        lower, upper = self._bounds()
        return int(upper) - int(lower) + 1

    def _bins(self, numbers: read.Numbers) -> NDArray[np.int64]:
        lower = int(self._bounds()[0])
        whole = np.floor(numbers).astype(np.int64)
        if self.levels == self._count():
            return whole - lower
        return np.searchsorted(self._whole_edges()[1:-1], whole, side="right")

    def _whole_edges(self) -> NDArray[np.int64]:
        given = self._given()
        if given is not None:
            return given_edges(given, np.int64)
        return whole_edges(int(self._bounds()[0]), self._count(), self.bins or self._open_bins(), self.scale)

    def _open_bins(self) -> int:
        """Return the number of bins if the study does not set it."""
        return self._count() if self.scale == "linear" else min(self._count(), FINE_BINS)

    def _draw(self, codes: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        if self.levels == self._count():
            return codes + int(self._bounds()[0])
        edges = self._whole_edges()
        low, high = edges[codes], edges[codes + 1]
        if self.scale == "linear":
            return generator.integers(low, high)
        drawn = np.floor(draw_between(low, high, self._bounds(), self.scale, generator)).astype(np.int64)
        return np.clip(drawn, low, high - 1)

    def _check_bins(self, things: str) -> None:
        if self.bins is not None and not 1 <= self.bins <= self._count():
            raise ValueError(f"{self.name!r}: bins ({self.bins}) must be 1 to {self._count()}, its number of {things}")


@final
class Integer(Whole, frozen=True, kw_only=True, tag_field="kind", tag="integer"):
    """Integers from lower to upper, one bin each unless `bins`, `edges` or `scale` is set; rounded down.

    The last of `edges` is upper + 1, because a bin includes its lower edge.
    """

    lower: int
    upper: int
    edges: tuple[int, ...] | None = None
    missing: Literal["level"] | Instead[int] = "level"

    def __post_init__(self) -> None:
        if not -LARGEST_INTEGER < self.lower <= self.upper < LARGEST_INTEGER:
            raise ValueError(f"{self.name!r}: lower ({self.lower}) must not be above upper ({self.upper}), within 2^53")
        self._check_bins("integers")
        self._check(self.upper + 1, "upper + 1")

    @property
    def bin_edges(self) -> NDArray[np.int64]:
        """The first integer of every bin, then upper + 1."""
        return self._whole_edges()

    def labels(self) -> tuple[str, ...]:
        """Return "18" or "18-20" for each bin, and "(missing)"."""
        edges = self.bin_edges
        pairs = zip(edges[:-1].tolist(), (edges[1:] - 1).tolist(), strict=True)
        return self._with_missing([str(a) if a == b else f"{a}-{b}" for a, b in pairs])

    def _numbers(self, array: pa.Array) -> read.Numbers:
        return np.asarray(np.floor(read.numbers(array)))

    def _values(self, codes: NDArray[np.int64], generator: np.random.Generator) -> pa.Array:
        return pa.array(self._draw(codes, generator))


@final
class Date(Whole, frozen=True, kw_only=True, tag_field="kind", tag="date"):
    """Dates and times from lower to the end of upper, in steps of `resolution`, on a clock in `zone`.

    One bin for each step unless `bins` or `edges` is set; of hours, minutes and seconds at most 64. A value with a zone
    or an offset is converted to `zone`; one without is what a clock there showed. The last of `edges` is the day, month
    or year after upper, because a bin includes its lower edge. Released are dates (the first day of a month or year),
    and for hours, minutes and seconds timestamps on that clock.
    """

    lower: datetime.date
    upper: datetime.date
    resolution: Resolution = "day"
    zone: str = "UTC"
    edges: tuple[datetime.date, ...] | None = None
    missing: Literal["level"] | Instead[datetime.date] = "level"

    def __post_init__(self) -> None:
        lower, upper = self._bounds()
        if not lower < upper:
            raise ValueError(f"{self.name!r}: lower ({self.lower}) must be before upper ({self.upper})")
        if not read.is_zone(self.zone):
            raise ValueError(f"{self.name!r}: unknown zone {self.zone!r}: use a name such as 'UTC' or 'Europe/Zurich'")
        self._check_bins(f"{self.resolution}s")
        if self.scale != "linear":
            raise ValueError(f"{self.name!r}: scale is for numbers: leave it out for dates")
        after = self.resolution if self.resolution in ("year", "month") else "day"
        self._check(upper + 1, f"the {after} after upper")

    @property
    def clock(self) -> str:
        """The type of a step in numpy: "datetime64[h]"."""
        return f"datetime64[{CLOCKS[self.resolution]}]"

    @property
    def bin_edges(self) -> NDArray[np.datetime64]:
        """The first step of every bin, then the one after upper."""
        return self._whole_edges().astype(self.clock)

    def labels(self) -> tuple[str, ...]:
        """Return "2020-01-01" or "2020-01-01 to 2020-01-31" for each bin, and "(missing)"."""
        edges = self.bin_edges
        pairs = zip(edges[:-1], edges[1:] - 1, strict=True)
        return self._with_missing([str(a) if a == b else f"{a} to {b}" for a, b in pairs])

    def _number(self, value: datetime.date, clock: datetime.time = datetime.time.min) -> float:
        """Return the number of the step, since 1970, at a time of a day."""
        return float(np.datetime64(datetime.datetime.combine(value, clock)).astype(self.clock).astype(np.int64))

    def _bounds(self) -> tuple[float, float]:
        return self._number(self.lower), self._number(self.upper, datetime.time.max)

    def _open_bins(self) -> int:
        return min(self._count(), FINE_BINS) if self._timed else self._count()

    @property
    def _timed(self) -> bool:
        return self.resolution in ("hour", "minute", "second")

    def _numbers(self, array: pa.Array) -> read.Numbers:
        return read.times(array, self.resolution, self.zone)

    def _values(self, codes: NDArray[np.int64], generator: np.random.Generator) -> pa.Array:
        steps = self._draw(codes, generator).astype(self.clock)
        return pa.array(steps.astype("datetime64[s]" if self._timed else "datetime64[D]"))


@final
class Real(Ranged, frozen=True, kw_only=True, tag_field="kind", tag="real"):
    """Real numbers from lower to upper in bins of equal width on their scale; the last bin includes the upper bound."""

    lower: float
    upper: float
    edges: tuple[float, ...] | None = None
    missing: Literal["level"] | Instead[float] = "level"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.upper - self.lower) and self.lower < self.upper):
            raise ValueError(
                f"{self.name!r}: lower ({self.lower}) must be below upper ({self.upper}), both and their "
                "difference finite"
            )
        if self.bins is not None and self.bins < 1:
            raise ValueError(f"{self.name!r}: bins ({self.bins}) must be at least 1")
        self._check(self.upper, "upper")
        even = self.edges is None and self.scale == "linear"
        narrowest = (self.upper - self.lower) / self.levels if even else np.diff(self.bin_edges).min()
        if narrowest < 8 * np.spacing(max(abs(self.lower), abs(self.upper))):
            raise ValueError(f"{self.name!r}: bins ({self.levels}) are narrower than floats resolve: set fewer")

    @property
    def levels(self) -> int:
        """Number of bins; 64 by default."""
        if self.edges is not None:
            return len(self.edges) - 1
        return FINE_BINS if self.bins is None else self.bins

    @property
    def bin_edges(self) -> NDArray[np.float64]:
        """The borders of the bins."""
        if self.edges is not None:
            return given_edges(self.edges, np.float64)
        return real_edges(self.lower, self.upper, self.levels, self.scale)

    def labels(self) -> tuple[str, ...]:
        """Return "[0, 0.5)" for each bin, and "(missing)"."""
        labels = [f"[{a}, {b})" for a, b in pairwise(apart(self.bin_edges.tolist(), 6))]
        labels[-1] = labels[-1][:-1] + "]"
        return self._with_missing(labels)

    def beyond(self) -> float:
        """Return the float after the upper bound."""
        return math.nextafter(self.upper, math.inf)

    def _numbers(self, array: pa.Array) -> read.Numbers:
        return read.numbers(array)

    def _bins(self, numbers: read.Numbers) -> NDArray[np.int64]:
        return np.searchsorted(self.bin_edges[1:-1], numbers, side="right")

    def _values(self, codes: NDArray[np.int64], generator: np.random.Generator) -> pa.Array:
        low, high = self.bin_edges[codes], self.bin_edges[codes + 1]
        drawn = draw_between(low, high, self._bounds(), self.scale, generator)
        # rounding may reach the next bin's edge
        return pa.array(np.clip(drawn, low, np.nextafter(high, -np.inf)))
