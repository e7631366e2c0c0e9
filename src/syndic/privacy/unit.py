"""The protected unit and its privacy budget."""

from fractions import Fraction
from math import isqrt
from typing import Final, Literal, Self

import msgspec

from syndic.document import Document, exact
from syndic.errors import InputError
from syndic.privacy.event import check_positive

WHOLE: Final = 2520
"""Units of a count that make one row if rows are weighted: 1 to 10 divide it, so up to 10 rows weigh the same."""
MOST_WEIGHTED: Final = WHOLE // 10
"""The most rows of a person that may share one weight; their weights differ by a tenth at most."""


class Unit(Document, frozen=True, kw_only=True):
    """One protected person: at most `rows` rows at each of at most `parties` parties.

    `add_remove`: neighbouring tables differ by the presence of the person, so table sizes are private too.
    `replace`: the person's rows take any other values at the same parties, and table sizes are public.
    `person` names the public column that links the rows of a person; without it each row is a person.
    `choose` says which of a person's rows count if there are more than `rows`: the first or last of the source, or
    random ones. Each choice depends only on the person's own rows and private coins, so every sensitivity is the same.
    With "weighted" the first `rows` count, together as one row: each of k rows counts about 1/k. Counts stay integers
    by being made in units of 1/`WHOLE` row: the weights of a person's rows are non-negative and add up to `WHOLE`.
    """

    neighbours: Literal["add_remove", "replace"]
    rows: int = 1
    parties: int = 1
    person: str | None = None
    choose: Literal["first", "last", "random", "weighted"] = "first"

    def __post_init__(self) -> None:
        if self.neighbours not in ("add_remove", "replace"):
            raise ValueError(f"neighbours ({self.neighbours}) must be 'add_remove' or 'replace'")
        if self.rows < 1:
            raise ValueError(f"rows ({self.rows}) must be at least 1")
        if self.parties < 1:
            raise ValueError(f"parties ({self.parties}) must be at least 1")
        if self.choose not in ("first", "last", "random", "weighted"):
            raise ValueError(f"choose ({self.choose}) must be 'first', 'last', 'random' or 'weighted'")
        if self.choose == "weighted" and not 2 <= self.rows <= MOST_WEIGHTED:
            raise ValueError(f"rows ({self.rows}) must be from 2 to {MOST_WEIGHTED} if choose is 'weighted'")
        if self.choose != "first" and self.person is None:
            raise ValueError(f"choose ({self.choose}) needs person: the column that links the rows of a person")

    @property
    def sizes_are_public(self) -> bool:
        """Whether a party's number of rows is public: under `replace`, if a person has one row."""
        return self.neighbours == "replace" and self.rows == 1

    @property
    def scale(self) -> int:
        """How many units of a count make one row: 1, or `WHOLE` if rows are weighted."""
        return WHOLE if self.choose == "weighted" else 1

    @property
    def most(self) -> int:
        """The most that one person adds to one party's counts, in units of 1/`scale` row."""
        return WHOLE if self.choose == "weighted" else self.rows

    @property
    def whole_rows(self) -> int:
        """The most rows that one person counts for at one party: `rows`, or 1 if rows are weighted."""
        return self.most // self.scale

    @property
    def unweighted(self) -> "Unit":
        """The unit of whole rows with the same expected counts: one random row stands for all that share a weight."""
        return msgspec.structs.replace(self, rows=1, choose="random") if self.choose == "weighted" else self

    def l1_of_counts(self) -> int:
        """Return the l1 sensitivity of one party's histogram over disjoint cells, in units of 1/`scale` row.

        Each row adds its weight, 1 unless rows are weighted, to one cell, and a person's weights add up to at most
        m = `most`: removing them moves the counts by m, replacing takes m and puts m back. So weighted rows together
        have the sensitivity of one row.
        """
        return self.most if self.neighbours == "add_remove" else 2 * self.most

    def l2_squared_of_counts(self) -> int:
        """Return the squared l2 sensitivity of one party's histogram over disjoint cells, in squared such units.

        Removed rows u and added rows v are non-negative with l1 at most m, so |u|^2 <= m^2 (all in one cell)
        and |v - u|^2 <= |u|^2 + |v|^2 <= 2 m^2 (all in one cell, then all in another).
        """
        return self.most**2 if self.neighbours == "add_remove" else 2 * self.most**2


LARGEST_EPSILON: Final = 10**6
"""The largest epsilon, far below the limit of a ledger's sums."""


class Budget(Document, frozen=True, kw_only=True):
    """The most that may be spent on one unit: `epsilon` at `delta`."""

    epsilon: Fraction
    delta: Fraction = msgspec.field(default_factory=Fraction)

    @classmethod
    def of(cls, epsilon: float | str | Fraction, delta: float | str | Fraction = 0) -> Self:
        """Return the budget with numbers as written: 0.1 is 1/10."""
        try:
            return cls(epsilon=exact(epsilon), delta=exact(delta))
        except (ValueError, ZeroDivisionError) as error:
            raise InputError(f"budget: {error}") from None

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)
        if self.epsilon > LARGEST_EPSILON:
            raise ValueError(
                f"epsilon ({float(self.epsilon):g}) must be at most {LARGEST_EPSILON:g}: it protects nobody"
            )
        if self.delta != 0:
            check_positive("delta", self.delta)
        if self.delta >= 1:
            raise ValueError(f"delta ({self.delta}) must be in [0, 1)")


def check_delta(delta: Fraction, people: int) -> None:
    """Raise `InputError` unless delta is at most 1e-2 / `people`, a public bound on the number of people.

    With delta = 1 / n, publishing the record of one random person would count as private.
    """
    largest = largest_delta(people)
    if delta > largest:
        raise InputError(
            f"delta ({float(delta):g}) must be at most 0.01 / people = {float(largest):g} "
            f"for {people} people: set it to {float(default_delta(people)):g}, for example"
        )


def default_delta(people: int) -> Fraction:
    """Return people^-1.5, but at most 1e-2 / people, rounded down to one digit such as 1e-07."""
    largest = largest_delta(people)
    power = 1
    while True:
        # the digit of people^-1.5 at this place: the largest d with d^2 people^3 <= 100^power
        digit = min(isqrt(100**power // people**3), int(largest * 10**power))
        if digit:
            return Fraction(digit, 10**power)
        power += 1


def largest_delta(people: int) -> Fraction:
    """Return the largest delta that `check_delta` accepts."""
    if people < 1:
        raise InputError(f"people ({people}) must be at least 1")
    return Fraction(1, 100 * people)
