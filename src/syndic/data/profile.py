"""Describe a column by its rows: kind, bounds, values, skew, or why it is left out.

What is found here was read from rows. It is private and for the owner only, until a person confirms it from public
knowledge (`syndic.study.draft`). Ids and free text are left out, and no value of theirs is kept. A category is listed
only if several rows have it.
"""

import datetime
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from syndic.data import values as read
from syndic.data.bins import FINE_BINS, Scale, real_edges, round_bounds, round_days, round_down, round_up
from syndic.data.column import LARGEST_INTEGER
from syndic.data.reading import EPOCH, Key, key_of

_PERSON: Final = frozenset({
    "account", "case", "client", "customer", "employee", "encounter", "household", "member", "participant", "patient",
    "person", "record", "respondent", "row", "student", "subject", "user", "visit",
})  # fmt: skip
_ID: Final = frozenset({
    "email", "guid", "iban", "id", "identifier", "ids", "key", "mrn", "phone", "pid", "pseudonym", "ssn", "uid", "uuid",
})  # fmt: skip
_NUMBER: Final = frozenset({"index", "nbr", "no", "nr", "num", "number"})
_CODE: Final = frozenset({
    "category", "code", "codes", "diag", "diagnosis", "fips", "icd", "icd10", "icd9", "plz", "postalcode", "postcode",
    "type", "zip", "zipcode",
})  # fmt: skip
# only as the last word of a name: a store_size is a quantity
_CODED: Final = frozenset({
    "airline", "branch", "carrier", "class", "clinic", "county", "department", "dept", "district", "flight", "hospital",
    "province", "region", "route", "sector", "state", "station", "store", "tract", "ward",
})  # fmt: skip
_JOINED: Final = re.compile(rf"({'|'.join(sorted(_PERSON))})_?({'|'.join(sorted(_ID | _NUMBER))})$")
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+[0-9]*|[0-9]+|[^\W\d_]+")


def named_as_id(name: str) -> bool:
    """Return whether a column's name says that it identifies people or records: `patient_id`, `caseNo`, `customer`."""
    words = _words(name)
    if not words:
        return False
    if words[-1] in _ID or (len(words) == 1 and words[0] in _PERSON):
        return True
    return bool(_JOINED.search(name.lower())) or (len(words) > 1 and words[-1] in _NUMBER and words[0] in _PERSON)


def named_as_code(name: str) -> bool:
    """Return whether a column's name says that its numbers are codes: `zip_code`, `flight`, `room_no`."""
    words = _words(name)
    # the number of a room is a code, that of rooms is not
    numbered = len(words) > 1 and words[-1] in _NUMBER - {"index", "num"} and not words[-2].endswith("s")
    return numbered or not {*words[-1:]}.isdisjoint(_CODED) or not _CODE.isdisjoint(words)


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


Kind = Literal["boolean", "integer", "real", "categorical", "ordinal", "date"]

MOST_LISTED: Final = 100
"""A category beyond the most frequent ones is not listed."""

PUBLIC_LIST: Final = 'name a public list of all values, values = "FILE.csv", in a data dictionary or in the study'

_FEW_ROWS: Final = 5  # a listed category or exact bound has so many rows; in tables below _SMALL_TABLE rows two
_SMALL_TABLE: Final = 100
_MOSTLY: Final = 0.95  # share of values that must fit a kind
_FEW_ODD: Final = 5  # distinct texts in a column of numbers or dates
_DISTINCT: Final = 0.5  # share of distinct texts from which they are ids or free text
_COVERED: Final = 0.5  # share of rows that the listed categories must have
_LONG_TEXT: Final = 40
_FEW_CODES: Final = 50
_SHORTEST_CODE: Final = 100
_OPEN_LEVELS: Final = 256  # fewer whole numbers or days have a level each
_FIXED_BINS: Final = 32
_FEW_FOR_BINS: Final = 8000  # fewer rows have half as many
_MOST_DATE_BINS: Final = 40
_SHARES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
_MUCH: Final = 1.5  # so many times as many bins between two quantiles make a logarithmic scale worth it
_SPIKE: Final = 0.1  # share of rows with one real number from which a person is told
_FAR: Final = 3  # an end is far from the other rows if the range without it is so many times smaller
_ABSENT: Final = frozenset({"na", "n/a", "#n/a", "<na>", "null", "nan", "?"})
_ABSENT_NUMBER: Final = _ABSENT | {"none", "-", ".", "unknown", "missing"}
_OTHER_DATE: Final = re.compile(r"[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{1,4}([ T].*)?")
_SCALES: Final = tuple(
    tuple(line.split(", "))
    for line in (
        "low, medium, high",
        "very low, low, medium, high, very high",
        "small, medium, large",
        "none, mild, moderate, severe",
        "never, rarely, sometimes, often, always",
        "never, former, current",
        "poor, fair, good, very good, excellent",
        "strongly disagree, disagree, neutral, agree, strongly agree",
        "primary, secondary, tertiary",
    )
)


@final
@dataclass(frozen=True, kw_only=True)
class ColumnProfile:
    """What rows say about a column. Private.

    `kind` is None if the column is left out, and `reason` says why. `absent` are texts such as "NA" that mean missing;
    `unlisted` is the number of different values that are too rare to be listed. `missing` counts every value that a
    study would take as missing; `odd` of these have text that is not of the kind. `coded` numbers look like codes;
    `far`: a few rows alone make the range several times as wide; `spike`: many rows have the same real number.
    The scale follows from `quantiles` of a column of numbers.
    """

    name: str
    kind: Kind | None
    reason: str = ""
    identifies: bool = False
    lower: int | float | datetime.date | None = None
    upper: int | float | datetime.date | None = None
    bins: int | None = None
    scale: Scale = "linear"
    quantiles: tuple[float, ...] = ()
    values: tuple[str, ...] = ()
    absent: bool = False
    unlisted: int = 0
    rows: int = 0
    missing: int = 0
    odd: int = 0
    coded: bool = False
    far: bool = False
    spike: bool = False

    @property
    def remark(self) -> str:
        """What a person should look at: odd texts, codes, a few rows far away, one number of many rows; else empty."""
        if self.odd:
            what = {"date": "no dates", "boolean": "neither true nor false"}.get(self.kind or "", "no numbers")
            return f"{self.odd / self.rows:.1%} of its values are {what} and count as missing"
        if self.coded:
            return 'its numbers look like codes: if so, give it the kind "categorical" in a dictionary'
        if self.far:
            return "a few rows alone make its range several times as wide: errors? Narrower bounds clip them"
        return "many rows have the same number, which is released as any number of its bin" * self.spike


@dataclass(frozen=True)
class _Distinct:
    """The distinct texts of a column, and the number of rows of each."""

    texts: pa.Array
    rows: NDArray[np.int64]

    @property
    def total(self) -> int:
        return int(self.rows.sum())

    def without(self, words: frozenset[str]) -> "_Distinct":
        keep = np.asarray(pc.invert(pc.is_in(pc.utf8_lower(self.texts), pa.array(sorted(words), pa.large_string()))))
        return _Distinct(self.texts.filter(pa.array(keep)), self.rows[keep])


def profile_column(name: str, chunks: Sequence[pa.Array], kind: Kind | None = None) -> ColumnProfile:
    """Return what the rows of all files say about a column; `kind` if it is known. Private."""
    rows = sum(len(chunk) for chunk in chunks)
    if any(pa.types.is_nested(chunk.type) for chunk in chunks):
        return ColumnProfile(name=name, kind=None, reason="lists and records cannot be a column", rows=rows)
    found = _distinct(chunks)
    numeric = kind in {"boolean", "integer", "real", "date"}
    present = found.without(_ABSENT_NUMBER if numeric else _ABSENT)
    profile = _described(name, found, present, kind)
    if profile.kind in {"categorical", "ordinal"}:
        missing, absent = rows - present.total, present.total < found.total
        return replace(profile, rows=rows, missing=missing, absent=absent)
    plain = found.without(_ABSENT_NUMBER)
    reader = {"boolean": read.truths, "date": read.times}.get(profile.kind or "", read.numbers)
    odd = 0 if profile.kind is None else int(plain.rows[np.isnan(reader(plain.texts))].sum())
    return replace(profile, rows=rows, missing=rows - plain.total + odd, odd=odd)


def _distinct(chunks: Sequence[pa.Array]) -> _Distinct:
    texts = [_texts(chunk) for chunk in chunks]
    joined = pa.chunked_array(texts, pa.large_string()).drop_null()
    counts = joined.value_counts()
    found = counts.field("values").cast(pa.large_string())
    keep = pc.not_equal(pc.utf8_length(found), 0)
    return _Distinct(found.filter(keep), np.asarray(counts.field("counts").filter(keep)).astype(np.int64))


def _texts(array: pa.Array) -> pa.Array:
    """Return values of any type as trimmed text; days as ISO dates; null where missing."""
    array = read.decoded(array)
    if read.is_text(array.type):
        return read.texts(array).cast(pa.large_string())
    if pa.types.is_date(array.type) or pa.types.is_timestamp(array.type):
        days = read.times(array)
        missing = np.isnan(days)
        whole = np.where(missing, 0, days).astype(np.int32)
        dates = pa.array(whole).cast(pa.date32()).cast(pa.large_string())
        return pc.if_else(pa.array(missing), pa.scalar(None, pa.large_string()), dates)
    if read.is_number(array.type):
        return read.ids(array).cast(pa.large_string())
    return pa.nulls(len(array), pa.large_string())


def _described(name: str, found: _Distinct, present: _Distinct, kind: Kind | None) -> ColumnProfile:
    left_out = ColumnProfile(name=name, kind=None)
    if not len(present.texts):
        return replace(left_out, reason="no row has a value", kind="boolean" if kind == "boolean" else None)
    if kind is not None:
        return _of_kind(name, present, kind)
    identity = _identifies(name, present)
    if identity:
        return replace(left_out, reason=identity, identifies=True)
    if len(present.texts) == 1:
        return replace(left_out, reason="every row has the same value")
    return _found(name, found, present)


def _found(name: str, found: _Distinct, present: _Distinct) -> ColumnProfile:
    """Return a column whose kind is that of nearly all its values."""
    # words such as "none" are values of a categorical column, and missing in a column of numbers
    plain = found.without(_ABSENT_NUMBER)
    if len(plain.texts) and not np.isnan(read.truths(plain.texts)).any():
        return ColumnProfile(name=name, kind="boolean")
    numbers = read.numbers(plain.texts)
    if _fits(plain, numbers):
        return _of_numbers(name, plain, numbers)
    if _fits(plain, read.times(plain.texts)):
        return _of_kind(name, plain, "date")
    return _of_texts(name, present)


def _fits(found: _Distinct, values: NDArray[np.float64]) -> bool:
    odd = np.isnan(values)
    return bool(found.total) and odd.sum() <= _FEW_ODD and found.rows[~odd].sum() >= _MOSTLY * found.total


def _of_kind(name: str, found: _Distinct, kind: Kind) -> ColumnProfile:
    """Return a column of a known kind, with its bounds or values."""
    if kind == "boolean":
        return ColumnProfile(name=name, kind=kind)
    if kind in {"categorical", "ordinal"}:
        return replace(_listed(name, found), kind=kind)
    if kind == "date":
        days = read.times(found.texts)
        days = days[~np.isnan(days)]
        if not len(days):
            return ColumnProfile(name=name, kind=None, reason="no row has a date")
        lower, upper = round_days(*(datetime.date.fromordinal(int(day) + EPOCH) for day in (days.min(), days.max())))
        bins = bins_for(kind, lower, upper, "linear")
        return ColumnProfile(name=name, kind=kind, lower=lower, upper=upper, bins=bins)
    return _bounded(name, found, read.numbers(found.texts), whole=kind == "integer")


def _identifies(name: str, found: _Distinct) -> str:
    """Return why a column identifies people or records, or an empty text."""
    distinct, total = len(found.texts), found.total
    if named_as_id(name) and distinct > min(_FEW_CODES, max(total // 20, 2)):
        return "it identifies people or records"
    running = total > _FEW_CODES and distinct >= _MOSTLY * total and _running(found)
    return "nearly every row has its own value, as in an id" if running else ""


def _running(found: _Distinct) -> bool:
    """Return whether values look like ids: numbers that count rows, or long ones of the same length."""
    numbers = read.numbers(found.texts)
    if np.isnan(numbers).any() or not (np.isfinite(numbers) & (numbers == np.floor(numbers))).all():
        return False
    lengths = pc.min_max(pc.utf8_length(found.texts)).as_py()
    return float(numbers.max()) - float(numbers.min()) < 2 * found.total or lengths["min"] == lengths["max"] >= 9


def _of_numbers(name: str, found: _Distinct, numbers: NDArray[np.float64]) -> ColumnProfile:
    odd = np.isnan(numbers)
    finite = numbers[np.isfinite(numbers)]
    whole = bool(len(finite)) and bool((finite == np.floor(finite)).all())
    padded = whole and pc.any(pc.match_substring_regex(found.texts, "^0[0-9]+$")).as_py()
    few = np.unique(finite) if whole and _apart(finite, found.total) else finite[:0]
    if whole and (named_as_code(name) or named_as_id(name) or padded or 0 < len(few) <= _FEW_ODD):
        return _listed(name, _Distinct(found.texts.filter(pa.array(~odd)), found.rows[~odd]))
    least, most = (int(few[0]), int(few[-1])) if len(few) else (0, 0)
    coded = least >= _SHORTEST_CODE and len(str(least)) == len(str(most))
    return replace(_bounded(name, found, numbers, whole=whole), coded=coded)


def _apart(numbers: NDArray[np.float64], total: int) -> bool:
    """Return whether whole numbers are few, far apart and no multiples of a round one, as codes are."""
    distinct, least, most = len(np.unique(numbers)), float(numbers.min()), float(numbers.max())
    if max(-least, most) >= LARGEST_INTEGER or distinct > min(MOST_LISTED, total // 20):
        return False
    return most - least + 1 > 10 * distinct and bool(np.gcd.reduce(numbers.astype(np.int64)) == 1)


def _bounded(name: str, found: _Distinct, numbers: NDArray[np.float64], *, whole: bool) -> ColumnProfile:
    usable = np.isfinite(numbers)
    numbers, rows = numbers[usable], found.rows[usable]
    left_out = ColumnProfile(name=name, kind=None)
    if not len(numbers):
        return replace(left_out, reason="no row has a finite number")
    least, most = float(numbers.min()), float(numbers.max())
    if whole and max(abs(least), abs(most)) >= LARGEST_INTEGER / 2:
        return replace(left_out, reason="its numbers are beyond 2^52: an id?")
    if not math.isfinite(2 * (most - least)) or least == most:
        return replace(left_out, reason="its numbers cannot be bounded" if least < most else "every number is the same")
    kind: Kind = "integer" if whole else "real"
    quantiles = _quantiles(numbers, rows)
    scale = scale_for(kind, least, most, quantiles, found.total)
    lower, upper = round_bounds(least, most, whole=whole)
    if scale != "linear":
        upper = round_up(most)
        lower = round_down(least) if least > 0 else -round_up(-least) if least < 0 else 0 * upper
    bounded = ColumnProfile(name=name, kind=kind, scale=scale, quantiles=quantiles, far=_far(numbers, rows, found))
    if not whole:
        spike = bool(rows.max() >= _SPIKE * rows.sum()) and len(numbers) > _FEW_CODES
        return replace(bounded, lower=float(lower), upper=float(upper), spike=spike)
    # an end that several rows have is a limit, such as 18 or 59, and not one person's value
    shared = [rows[numbers == end].sum() >= _least_rows(found) for end in (least, most)]
    first = int(least) if shared[0] else math.floor(lower)
    last = int(most) if shared[1] else math.ceil(upper)
    return replace(bounded, lower=first, upper=last, bins=bins_for(kind, first, last, scale, found.total))


def _far(numbers: NDArray[np.float64], rows: NDArray[np.int64], found: _Distinct) -> bool:
    """Return whether a few rows alone make the range several times as wide."""
    order = np.argsort(numbers)
    below, few = np.cumsum(rows[order]), _least_rows(found)
    if below[-1] < _SMALL_TABLE:
        return False
    above = below[-1] - below + rows[order]
    inner = numbers[order][(below > few) & (above > few)]
    return len(inner) > 1 and float(np.ptp(numbers)) > _FAR * float(np.ptp(inner))


def _quantiles(numbers: NDArray[np.float64], rows: NDArray[np.int64]) -> tuple[float, ...]:
    """Return quantiles of the rows, without a value that most of them have: on every scale it is in one bin."""
    if len(numbers) > 1 and rows.max() > rows.sum() / 2:
        numbers, rows = np.delete(numbers, rows.argmax()), np.delete(rows, rows.argmax())
    order = np.argsort(numbers)
    below = np.cumsum(rows[order]) / rows.sum()
    return tuple(numbers[order][np.searchsorted(below, _SHARES)].tolist())


def scale_for(kind: Kind, lower: Any, upper: Any, quantiles: Sequence[float] = (), rows: int | None = None) -> Scale:
    """Return a logarithmic scale if its bins tell the rows between these quantiles apart much better.

    If nothing is known of the rows, whole numbers in a wide range get one: it suits more kinds of numbers.
    """
    if kind not in {"integer", "real"} or (kind == "integer" and upper - lower < _OPEN_LEVELS):
        return "linear"
    if not quantiles:
        return "symlog" if kind == "integer" else "linear"
    curved: Scale = "log" if lower > 0 else "symlog"
    bins = bins_for(kind, lower, upper, "linear", rows) or FINE_BINS
    linear = _fewest_bins(quantiles, real_edges(lower, upper, bins, "linear"))
    return curved if _fewest_bins(quantiles, real_edges(lower, upper, FINE_BINS, curved)) > _MUCH * linear else "linear"


def _fewest_bins(quantiles: Sequence[float], edges: NDArray[np.float64]) -> float:
    """Return the least number of bins between two neighbouring quantiles that differ; 0 if none differ."""
    apart = np.diff(np.interp(np.unique(quantiles), edges, np.arange(len(edges))))
    return float(apart[apart > 0].min()) if (apart > 0).any() else 0.0


def bins_for(kind: Kind, lower: Any, upper: Any, scale: Scale, rows: int | None = None) -> int | None:
    """Return a number of bins that follows from the bounds, fewer for few rows; None to leave the bins open.

    Dates are divided into weeks, months, quarters or years.
    """
    if kind == "date" and (upper - lower).days >= _OPEN_LEVELS:
        days = (upper - lower).days
        counts = [round(days / each) for each in (7, 30.44, 91.3, 365.25)]
        return next((count for count in counts if count <= _MOST_DATE_BINS), _MOST_DATE_BINS)
    if kind == "integer" and scale == "linear" and upper - lower >= _OPEN_LEVELS:
        return _FIXED_BINS if rows is None or rows >= _FEW_FOR_BINS else _FIXED_BINS // 2
    return None


def _of_texts(name: str, found: _Distinct) -> ColumnProfile:
    left_out = ColumnProfile(name=name, kind=None)
    distinct, total = len(found.texts), found.total
    lengths = np.asarray(pc.utf8_length(found.texts)).astype(np.int64)
    if (lengths * found.rows).sum() > _LONG_TEXT * total:
        return replace(left_out, reason="free text: most values are long")
    if distinct > 2 and distinct > _DISTINCT * total:
        return replace(left_out, reason="free text or an id: most values occur once", identifies=named_as_id(name))
    dated = pc.match_substring_regex(found.texts, f"^{_OTHER_DATE.pattern}$")
    if found.rows[np.asarray(dated)].sum() >= _MOSTLY * total:
        return replace(left_out, reason="dates in another form than 2024-12-31: convert them first")
    return _listed(name, found)


def _least_rows(found: _Distinct) -> int:
    """Return how many rows have a value that is not one person's."""
    return _FEW_ROWS if found.total >= _SMALL_TABLE else 2


def _listed(name: str, found: _Distinct) -> ColumnProfile:
    """Return a column with its frequent values, in their order."""
    rows: dict[Key, int] = {}
    texts: dict[Key, str] = {}
    for text, count in zip(found.texts.to_pylist(), found.rows.tolist(), strict=True):
        key = key_of(text)
        if key is not None:
            rows[key] = rows.get(key, 0) + count
            texts.setdefault(key, text)
    least = _least_rows(found)
    frequent = sorted((key for key in rows if rows[key] >= least), key=lambda key: (-rows[key], texts[key]))
    listed = frequent[:MOST_LISTED]
    if not listed:
        return ColumnProfile(name=name, kind=None, reason="every value is rare: an id, a code or free text?")
    if sum(rows[key] for key in listed) < _COVERED * found.total:
        reason = f"the {MOST_LISTED} most frequent values are in less than half of the rows: {PUBLIC_LIST}"
        return ColumnProfile(name=name, kind=None, reason=reason)
    unlisted = len(rows) - len(listed)
    # numbers first, by their size
    listed.sort(key=lambda key: (0, key, "") if isinstance(key, float) else (1, 0.0, str(key)))
    values = [texts[key] for key in listed]
    for scale in _SCALES:
        if not unlisted and len(values) > 2 and {value.lower() for value in values} <= set(scale):
            ordered = sorted(values, key=lambda value: scale.index(value.lower()))
            return ColumnProfile(name=name, kind="ordinal", values=tuple(ordered))
    return ColumnProfile(name=name, kind="categorical", values=tuple(values), unlisted=unlisted)
