"""Which columns and pairs of columns of a synthetic table can be relied on: an expected error for each.

An error is a total variation distance from the rows behind the table, over the levels that the schema declares: 0 for
the same shares, 1 for nothing in common. A rare value of a long list counts as the branch that it is released as. An
error is computed from what was released (`syndic.methods.synthesis.expected`), so it reads no real row, costs nothing
and may be published.
"""

import math
from collections.abc import Sequence
from typing import Final, Self, final

from syndic.document import Document
from syndic.errors import InputError

POOR: Final = 0.1
"""A larger expected error is poor: of a pair of columns in a release, and of a forecast before a run."""

POOR_SHARE: Final = 0.25
"""A relation is not held well above this share of the strongest that is possible: noise may hide it, however weak."""

LEAST_LIMIT: Final = 0.01
"""Weaker relations than this are not compared with the strongest that is possible: a column has one value only."""

WORST: Final = 10
"""How many pairs are listed, the worst first."""

DIGITS: Final = 5
"""Digits after the point that are kept."""

_NAMED: Final = 3


class ExpectedError(Document):
    """An expected total variation distance, `error`, and its four parts, which add up as squares.

    `noise`: noise on the counts that the model was fitted to. `merged`: values counted as one group have no relation of
    their own to other columns. `model`: the distance of the model from noisy tables that noise does not explain.
    `drawn`: the distance of the drawn rows from the model.
    """

    error: float
    noise: float
    merged: float
    model: float
    drawn: float

    @classmethod
    def of(cls, *, noise: float, merged: float = 0.0, model: float = 0.0, drawn: float = 0.0) -> Self:
        """Add up the parts."""
        return cls(
            error=round(min(1.0, math.hypot(noise, merged, model, drawn)), DIGITS),
            noise=round(noise, DIGITS),
            merged=round(merged, DIGITS),
            model=round(model, DIGITS),
            drawn=round(drawn, DIGITS),
        )

    @property
    def cause(self) -> str:
        """The largest part, in words."""
        parts = {
            "noise": self.noise,
            "merged values": self.merged,
            "what the model leaves out": self.model,
            "the number of drawn rows": self.drawn,
        }
        return max(parts, key=parts.__getitem__)


class ColumnTrust(Document):
    """One column. `merged` is the share of its levels that were counted together with others.

    `width` is the mean width of a counted bin as a share of the range, for numbers and dates: within it, values are
    drawn.
    """

    column: str
    expected: ExpectedError
    merged: float
    width: float | None = None

    @property
    def error(self) -> float:
        """The expected distance, 0 to 1."""
        return self.expected.error


class PairTrust(Document):
    """Two columns. `measured`: a noisy table has both. `held`: the model links them directly.

    `strength` is the distance of the model's table from independent columns, and `limit` the largest that it could be
    with these columns' shares.
    """

    columns: tuple[str, str]
    expected: ExpectedError
    strength: float
    limit: float
    measured: bool
    held: bool

    @property
    def error(self) -> float:
        """The expected distance, 0 to 1."""
        return self.expected.error

    def __str__(self) -> str:
        one, other = self.columns
        reason = f"mostly {self.expected.cause}" if self.measured else "a guess, since no table of both was measured"
        related = f"association in this table {self.strength:.3f} of at most {self.limit:.3f}"
        return f"{one} and {other}: expected error {self.error:.3f}, {reason}; {related}"


@final
class Reliability(Document):
    """The expected error of every column and every pair of columns; `print` it to read it.

    From the release alone: an expectation, not a bound. On made-up tables most true errors are at most 1.5
    times the expected one.
    """

    columns: tuple[ColumnTrust, ...]
    pairs: tuple[PairTrust, ...]
    target: str | None = None

    def column(self, name: str) -> ColumnTrust:
        """Return what is known of a column."""
        for one in self.columns:
            if one.column == name:
                return one
        raise InputError(f"no column '{name}': there are {', '.join(one.column for one in self.columns)}")

    def pair(self, one: str, other: str) -> PairTrust:
        """Return what is known of two columns, in any order."""
        for pair in self.pairs:
            if set(pair.columns) == {one, other}:
                return pair
        raise InputError(f"no pair of the columns '{one}' and '{other}'")

    def worst(self, most: int = WORST) -> tuple[PairTrust, ...]:
        """Return the pairs with the largest expected errors, the worst first."""
        return tuple(sorted(self.pairs, key=lambda pair: -pair.error)[:most])

    def with_target(self) -> tuple[PairTrust, ...]:
        """Return the pairs of the target, the worst first; none if the study names no target."""
        return tuple(pair for pair in self.worst(len(self.pairs)) if self.target in pair.columns)

    @property
    def poor(self) -> tuple[PairTrust, ...]:
        """The pairs that this table does not hold well: those of the target, then the others, each the worst first."""
        poor = [
            pair
            for pair in self.worst(len(self.pairs))
            if pair.error > POOR or (pair.limit >= LEAST_LIMIT and pair.error > POOR_SHARE * pair.limit)
        ]
        return tuple(sorted(poor, key=lambda pair: self.target not in pair.columns))

    @property
    def mean(self) -> float:
        """The mean expected error of all pairs, or of the columns if there are no pairs."""
        errors: Sequence[float] = [one.error for one in self.pairs] or [one.error for one in self.columns]
        return sum(errors) / max(1, len(errors))

    @property
    def sentence(self) -> str:
        """The relations that this table does not hold well, in one sentence."""
        poor, guessed = self.poor, sum(not pair.measured for pair in self.pairs)
        whole = len(self.pairs)
        unknown = f" No table of {guessed} of {whole} pairs was measured: their errors are guesses." if guessed else ""
        if not poor:
            return (
                f"Every relation of two columns has an expected error of at most {POOR:g} (0 to 1) and "
                f"{POOR_SHARE:.0%} of the strongest possible relation.{unknown}"
            )
        named = ", ".join(f"{' and '.join(pair.columns)} ({pair.error:.2f})" for pair in poor[:_NAMED])
        more = f", and {len(poor) - _NAMED} more of {whole} pairs" if len(poor) > _NAMED else ""
        rule = f"expected error above {POOR:g}, 0 to 1, or {POOR_SHARE:.0%} of the strongest possible relation"
        return f"Relations that this table does not hold well ({rule}): {named}{more}.{unknown}"

    def __str__(self) -> str:
        lines = [self.sentence, *(f"  {pair}" for pair in self.worst())]
        if self.target is not None:
            lines += [f"with {self.target}:", *(f"  {pair}" for pair in self.with_target()[:WORST])]
        return "\n".join(lines)
