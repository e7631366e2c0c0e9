"""Public descriptions of columns: their values, and how values are converted to codes and back.

A value never causes a refusal. The rules for values outside the bounds or the list (`outside`), and for null, NaN, text
that does not parse and values of a wrong type (`missing`), are public and written by people.
"""

import datetime
from abc import abstractmethod
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Generic, Literal, TypeVar, final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from syndic.data import values as read
from syndic.data.derive import expression
from syndic.data.lists import OTHER, branches_of, check_tree
from syndic.data.reading import TRUTH_LETTERS, Key, key_of
from syndic.document import Document

Codes = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]
V = TypeVar("V", str, bool, int, float, datetime.date)

MISSING_LABEL = "(missing)"
# for editors: a study file may name a CSV file instead (`syndic.data.lists`)
_OR_FILE = msgspec.Meta(extra_json_schema={"type": ["array", "string"]})
LARGEST_SIZE = 2**32
LARGEST_INTEGER = 2**53  # floats below it are exact integers


class Instead(Document, Generic[V], frozen=True, kw_only=True):
    """The declared value to use instead, written `{value = ...}`."""

    value: V


class Described(Document, frozen=True, kw_only=True):
    """Base of all columns: codes 0 .. size-1, the last one for missing values if `missing` is "level".

    With `derive` its values are computed from other columns of the source by an expression (`syndic.data.derive`).
    """

    name: str
    derive: str | None = None

    @property
    @abstractmethod
    def levels(self) -> int:
        """Number of codes that stand for a value."""

    @property
    @abstractmethod
    def missing_code(self) -> int:
        """The code that missing values get."""

    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """Return a short text for each code, for plots."""

    @abstractmethod
    def _codes(self, array: pa.Array) -> NDArray[np.int64]:
        """Return codes of an array that is neither a dictionary nor made of small integers."""

    @abstractmethod
    def _values(self, codes: NDArray[np.int64], generator: np.random.Generator) -> pa.Array:
        """Return a value for each code below `levels`."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns of the source that are read: its own, or those of `derive`."""
        return (self.name,) if self.derive is None else expression(self.derive).columns

    @property
    def listed(self) -> int:
        """Number of codes that are declared: without "other", unless it is listed, and without missing values."""
        return self.levels

    @property
    def size(self) -> int:
        """Number of codes, including the one for missing values."""
        return max(self.levels, self.missing_code + 1)

    def encode(self, array: pa.Array | pa.ChunkedArray) -> Codes:
        """Return the code of every value of an array of any Arrow type. Codes are as private as the values."""
        if isinstance(array, pa.ChunkedArray):
            chunks = array.chunks or [pa.array([], array.type)]
            return np.concatenate([self.encode(chunk) for chunk in chunks])
        array = read.plain(array)
        if pa.types.is_dictionary(array.type):
            if len(array.dictionary) > len(array):
                return self.encode(array.dictionary_decode())
            table = np.append(self.encode(array.dictionary), self.missing_code)
            # a narrow index type may have no value left for null if the dictionary is full
            codes = table[np.asarray(array.indices.cast(pa.int64()).fill_null(len(array.dictionary)))]
        elif pa.types.is_integer(array.type) and array.type.bit_width <= 16:
            present = array.fill_null(0) if array.null_count else array
            codes = _small_integers(self, str(array.type))[np.asarray(present)]
            if array.null_count:
                codes[np.asarray(array.is_null())] = self.missing_code
        else:
            codes = self._codes(array)
        return np.asarray(codes, dtype=code_type(self.size))

    def decode(self, codes: NDArray[np.integer], generator: np.random.Generator) -> pa.Array:
        """Return a value for each code, uniform within its bin; the code for missing values becomes null."""
        codes = np.asarray(codes).astype(np.int64)
        missing = codes >= self.levels
        values = self._values(np.where(missing, 0, codes), generator)
        return pc.if_else(pa.array(missing), pa.scalar(None, values.type), values)

    def _check_name(self) -> None:
        if not self.name.strip():
            raise ValueError("name must not be empty")
        try:
            _ = self.inputs
        except ValueError as error:
            raise ValueError(f"{self.name!r}: derive: {error}") from None


def code_type(size: int) -> np.dtype[Any]:
    """Return the smallest unsigned type for codes 0 .. size-1."""
    return np.dtype(np.uint8 if size <= 2**8 else np.uint16 if size <= 2**16 else np.uint32)


class Listed(Described, frozen=True, kw_only=True):
    """A column with listed values, compared as numbers or times if possible, else as trimmed text.

    Listed "3" is also 3.0, "03" and 3e0; "true" is also True, "TRUE" and 1; a date is also its midnight in UTC.
    True and 1 are "t" or "T", and false and 0 are "f" or "F", if only the letter is listed.
    Two values that are interpreted as the same cannot both be listed, nor can "nan", which is missing.
    Outside the list: "other" is one more level (or the listed "other"), "missing" treats it as missing,
    `{value = "x"}` uses the listed value x. Missing (also empty text): "level" is one more level, which
    decodes to null; `{value = "x"}` uses x.
    """

    values: Annotated[tuple[str, ...], _OR_FILE]
    outside: Literal["other", "missing"] | Instead[str] = "other"
    missing: Literal["level"] | Instead[str] = "level"

    def __post_init__(self) -> None:
        self._check_name()
        if not self.values:
            raise ValueError(f"{self.name!r}: values must not be empty")
        if any(not value or value != value.strip() for value in self._listed()):
            raise ValueError(f"{self.name!r}: a value must not be empty, and must not begin or end with white space")
        self._check_distinct()
        for rule, choice in (("outside", self.outside), ("missing", self.missing)):
            if isinstance(choice, Instead) and choice.value not in self.values:
                raise ValueError(f"{self.name!r}: the value for {rule} {choice.value!r} must be one of its values")

    def _check_distinct(self) -> None:
        seen: dict[Key, str] = {}
        for value in self._listed():
            key = key_of(value)
            if key is None:
                raise ValueError(f"{self.name!r}: {value!r} means a missing value and cannot be listed")
            if key in seen:
                raise ValueError(f"{self.name!r}: values must be distinct: {seen[key]!r} and {value!r} are the same")
            seen[key] = value

    @property
    def levels(self) -> int:
        """Number of listed values, plus one for "other" if it is not listed."""
        return self.listed + (self.outside == OTHER and OTHER not in self.values)

    @property
    def listed(self) -> int:
        """Number of listed values, and of branches."""
        return len(self._listed())

    @property
    def missing_code(self) -> int:
        """The code that missing values get."""
        return self.levels if self.missing == "level" else self.values.index(self.missing.value)

    def labels(self) -> tuple[str, ...]:
        """Return the values, "other" and "(missing)"."""
        return (*self._texts(), MISSING_LABEL)[: self.size]

    def _listed(self) -> tuple[str, ...]:
        return self.values

    def _texts(self) -> tuple[str, ...]:
        return (*self._listed(), OTHER)[: self.levels]

    @property
    def outside_code(self) -> int:
        """The code of values that are not listed."""
        if self.outside == "missing":
            return self.missing_code
        return self._texts().index(self.outside.value if isinstance(self.outside, Instead) else OTHER)

    def lookup(self) -> Mapping[Key, int]:
        """Return the code of every listed value, by its key (`syndic.data.reading`)."""
        return _listed_keys(self._texts())

    def _codes(self, array: pa.Array) -> NDArray[np.int64]:
        prefix = getattr(self, "prefix", None)
        return _fill(read.places(array, self.lookup(), self.outside_code, prefix), self.missing_code)

    def _values(self, codes: NDArray[np.int64], generator: np.random.Generator) -> pa.Array:  # noqa: ARG002
        return pa.array(self._texts(), pa.string()).take(pa.array(codes))


@final
class Categorical(Listed, frozen=True, kw_only=True, tag_field="kind", tag="categorical"):
    """Values without an order; see `Listed` for the rules.

    With `prefix`, a value that is not listed is looked up by so many of its first characters. `tree` has pairs of a
    value and its branch, and of a branch and the branch above. Branches that are not listed are levels too, after the
    values.
    """

    prefix: int | None = None
    tree: Annotated[tuple[tuple[str, str], ...], _OR_FILE] = ()

    def __post_init__(self) -> None:
        if self.prefix is not None and self.prefix < 1:
            raise ValueError(f"{self.name!r}: prefix ({self.prefix}) must be at least 1")
        check_tree(self.name, self.values, self.tree)
        super().__post_init__()

    def branches(self) -> tuple[int, ...]:
        """Return for each code the code of its branch: "other" where `tree` has none, and itself at the top."""
        texts = self._texts()
        codes = {text: code for code, text in enumerate(texts)}
        up, top = dict(self.tree), codes.get(OTHER)
        found = [codes[up[text]] if text in up else code if top is None else top for code, text in enumerate(texts)]
        return (*found, *range(len(texts), self.size))

    def _listed(self) -> tuple[str, ...]:
        return (*self.values, *branches_of(self.values, self.tree)) if self.tree else self.values


@final
class Ordinal(Listed, frozen=True, kw_only=True, tag_field="kind", tag="ordinal"):
    """Values listed from lowest to highest; see `Listed` for the rules."""


@final
class Boolean(Described, frozen=True, kw_only=True, tag_field="kind", tag="boolean"):
    """True or false, also as 1/0, yes/no, t/f. Anything else is missing: "level" or `{value = false}`."""

    missing: Literal["level"] | Instead[bool] = "level"

    def __post_init__(self) -> None:
        self._check_name()

    @property
    def levels(self) -> int:
        """Two: false is 0, true is 1."""
        return 2

    @property
    def missing_code(self) -> int:
        """The code that missing values get."""
        return 2 if self.missing == "level" else int(self.missing.value)

    def labels(self) -> tuple[str, ...]:
        """Return "false", "true" and "(missing)"."""
        return ("false", "true", MISSING_LABEL)[: self.size]

    def _codes(self, array: pa.Array) -> NDArray[np.int64]:
        return _fill(read.truths(array), self.missing_code)

    def _values(self, codes: NDArray[np.int64], generator: np.random.Generator) -> pa.Array:  # noqa: ARG002
        return pa.array(codes == 1)


@lru_cache(maxsize=512)
def _listed_keys(texts: tuple[str, ...]) -> dict[Key, int]:
    keys = {key: code for code, text in enumerate(texts) if (key := key_of(text)) is not None}
    for letter, truth in TRUTH_LETTERS.items():
        # a database may store a column that contains only F as booleans
        listed = [code for code, text in enumerate(texts) if text.lower() == letter]
        if truth not in keys and len(listed) == 1:
            keys[truth] = listed[0]
    return keys


def _fill(codes: read.Numbers, missing: int) -> NDArray[np.int64]:
    return np.where(np.isnan(codes), missing, codes).astype(np.int64)


@lru_cache(maxsize=512)
def _small_integers(column: Described, kind: str) -> Codes:
    """Return the codes of all values of an 8- or 16-bit type, negative ones last, as numpy indexes them."""
    dtype = np.dtype(kind)
    every = np.arange(2 ** (8 * dtype.itemsize), dtype=np.uint16).astype(dtype)
    codes = column.encode(pa.array(every.astype(np.int32)))
    codes.flags.writeable = False
    return codes
