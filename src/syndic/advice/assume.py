"""Hold what is assumed about the people, since no row is read. Public, and printed with every advice.

Defaults: a number has its mean at 40 % of its range and a standard deviation of a sixth of it; of listed values the
first is the most frequent, the second half as frequent, the third a third as frequent. They are neither centred nor
equal on purpose: rows made of noise are uniform over the grid, so with a centred or uniform population noise would
look like information.
"""

import datetime
import math
from pathlib import Path
from typing import Self, final

import msgspec
import numpy as np
from numpy.typing import NDArray

from syndic.advice.scale import bounds_of, listed, scale_of
from syndic.data import Boolean, Schema
from syndic.data.schema import Column
from syndic.document import Document, from_builtins, from_file, to_builtins
from syndic.errors import InputError
from syndic.study import Study

MEAN_PLACE = 0.4
SD_PART = 1 / 6


class ColumnAssumption(Document):
    """Assumptions about one column: `mean` and `sd` of a number (`mean` of a boolean is the share of true), `shares`.

    `shares` are those of the listed values, or of a number's bins, which gives its shape. `say` is this column's
    weight in what the columns explain of an outcome, relative to the other columns; 1 by default.
    """

    mean: float | datetime.date | None = None
    sd: float | None = None
    shares: tuple[float, ...] | None = None
    say: float = 1.0

    def __post_init__(self) -> None:
        if self.sd is not None and not (math.isfinite(self.sd) and self.sd > 0):
            raise ValueError(f"sd ({self.sd}) must be above 0")
        if self.shares is not None and (min(self.shares, default=-1.0) < 0 or sum(self.shares) <= 0):
            raise ValueError("shares must be at least 0, and one of them above 0")
        if not (math.isfinite(self.say) and self.say >= 0):
            raise ValueError(f"say ({self.say}) must be at least 0")


@final
class Assumptions(Document):
    """Assumptions about each column, and the share of an outcome's variance that the other columns explain (`r2`)."""

    columns: dict[str, ColumnAssumption] = msgspec.field(default_factory=dict)
    r2: float = 0.3

    def __post_init__(self) -> None:
        if not 0 <= self.r2 < 1:
            raise ValueError(f"r2 ({self.r2}) must be at least 0 and below 1")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a `.toml` or `.json` file."""
        return from_file(path, cls)

    @classmethod
    def of(cls, texts: tuple[str, ...]) -> Self:
        """Read "age.mean=44", "age.sd=12", "colour.shares=5/3/2", "age.say=2", "r2=0.2" or a file; the last wins."""
        found: dict[str, object] = {}
        columns: dict[str, dict[str, object]] = {}
        for text in texts:
            if "=" not in text:
                read = cls.load(text)
                found["r2"] = read.r2
                kept = to_builtins(read.columns).items()
                columns |= {name: {key: one for key, one in each.items() if one is not None} for name, each in kept}
                continue
            key, _, value = text.partition("=")
            column, _, field = key.strip().rpartition(".")
            if not column:
                found[field] = _value(field, value)
            else:
                columns.setdefault(column, {})[field] = _value(field, value)
        return from_builtins({**found, "columns": columns}, cls, where="assumptions")

    def check(self, schema: Schema) -> None:
        """Raise `InputError` if an assumption does not fit the schema."""
        schema.domain.axes(self.columns)
        for name in self.columns:
            column = schema[name]
            (shares_of if listed(column) else moments_of)(column, self)


def check_public(study: Study, assumptions: Assumptions) -> int:
    """Return the public number of all people.

    Raises:
        InputError: if the study cannot run, a party's number of people is missing, or an assumption does not fit.
    """
    study.check()
    unknown = [party.name for party in study.parties if party.people is None]
    if unknown or study.people is None:
        raise InputError(
            f"advise needs every party's public number of people: set people for {', '.join(unknown)} in the study"
        )
    assumptions.check(study.schema)
    return study.people


def declared_words(study: Study, assumptions: Assumptions) -> tuple[str, ...]:
    """Return in words which columns' assumptions were declared."""
    declared = [name for name in study.schema.names if name in assumptions.columns]
    return (f"declared: {', '.join(declared)}",) if declared else ()


def moments_of(column: Column, assumptions: Assumptions) -> tuple[float, float]:
    """Return the assumed mean and standard deviation of a number or a date (in days since 1970-01-01)."""
    declared = assumptions.columns.get(column.name, ColumnAssumption())
    lower, upper = bounds_of(column)
    usual_mean, usual_sd = _usual(column, assumptions)
    mean = usual_mean if declared.mean is None else _number(declared.mean)
    if not lower < mean < upper:
        raise InputError(f"assumptions: '{column.name}': mean ({declared.mean}) must be within the column's bounds")
    largest = math.sqrt((mean - lower) * (upper - mean))
    if declared.sd is not None and declared.sd >= largest:
        raise InputError(
            f"assumptions: '{column.name}': sd ({declared.sd:g}) is too large for values within the bounds and this "
            f"mean: it must be below {largest:.4g}"
        )
    return mean, min(usual_sd, 0.6 * largest) if declared.sd is None else declared.sd


def _usual(column: Column, assumptions: Assumptions) -> tuple[float, float]:
    """Return mean and standard deviation by the declared shares of bins, or else the defaults."""
    shares = bin_shares_of(column, assumptions)
    lower, upper = bounds_of(column)
    if shares is None:
        return lower + MEAN_PLACE * (upper - lower), (upper - lower) * SD_PART
    scale = scale_of(column)
    middle, within = scale.middle[: shares.size], scale.variance[: shares.size]
    centre = float(shares @ middle)
    return centre, math.sqrt(float(shares @ (within + (middle - centre) ** 2)))


def bin_shares_of(column: Column, assumptions: Assumptions) -> NDArray[np.float64] | None:
    """Return the declared share of each bin of a number or a date, normalised to 1; None if none is declared."""
    declared = assumptions.columns.get(column.name, ColumnAssumption())
    if declared.shares is None:
        return None
    bins = int(scale_of(column).valid.sum())
    if len(declared.shares) != bins:
        raise InputError(f"assumptions: '{column.name}' has {bins} bins, but {len(declared.shares)} shares are given")
    return np.array(declared.shares) / sum(declared.shares)


def shares_of(column: Column, assumptions: Assumptions) -> NDArray[np.float64]:
    """Return the assumed share of each listed value (of a boolean: false, true), normalised to 1."""
    declared = assumptions.columns.get(column.name, ColumnAssumption())
    count = len(listed(column))
    if declared.sd is not None:
        raise InputError(f"assumptions: '{column.name}' has listed values: declare shares, not sd")
    if declared.mean is not None:
        if not isinstance(column, Boolean) or not 0 < _number(declared.mean) < 1:
            raise InputError(f"assumptions: '{column.name}': mean is for booleans, the share of true, between 0 and 1")
        return np.array([1 - _number(declared.mean), _number(declared.mean)])
    shares = declared.shares or tuple(1 / rank for rank in range(1, count + 1))
    if len(shares) != count:
        raise InputError(f"assumptions: '{column.name}' lists {count} values, but {len(shares)} shares are given")
    return np.array(shares) / sum(shares)


def _number(value: float | datetime.date) -> float:
    epoch = datetime.date(1970, 1, 1)
    return float((value - epoch).days) if isinstance(value, datetime.date) else value


def _value(field: str, text: str) -> object:
    if field == "shares":
        return [_value("share", part) for part in text.split("/")]
    try:
        return float(text)
    except ValueError:
        return text.strip()
