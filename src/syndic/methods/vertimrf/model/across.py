"""CarEst: tables of columns at different parties, from what the parties encoded."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.methods.vertimrf.sketch.cells import cell_table
from syndic.methods.vertimrf.sketch.estimate import cell_error
from syndic.methods.vertimrf.sketch.oracle import decoded_table
from syndic.methods.vertimrf.sketch.plan import SketchPlan
from syndic.noise.response import RandomisedResponse

Names = tuple[str, ...]
Floats = NDArray[np.float64]


class Across(Protocol):
    """Tables over bins that follow from encodings."""

    def table(self, names: Names) -> Floats:
        """Return unbiased counts, unrounded and perhaps negative."""
        ...

    def variance(self, names: Names) -> float:
        """Return about the variance of one of their cells."""
        ...


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class SketchTables:
    """Sketches by key and column: a key for each pair of columns, or one for all, then called ()."""

    plan: SketchPlan
    people: float
    ranks: Mapping[tuple[Names, str], NDArray[np.uint16]]

    def table(self, names: Names) -> Floats:
        """Return everybody less the union of complements, by the likeliest number of elements."""
        key = () if ((), names[0]) in self.ranks else names
        if any((key, name) not in self.ranks for name in names):
            raise InputError(f"the columns {list(names)} were not encoded under one key")
        return cell_table([self.ranks[key, name] for name in names], self.plan, self.people)

    def variance(self, names: Names) -> float:
        """Return the variance by Fisher's information."""
        key = () if ((), names[0]) in self.ranks else names
        sketches = sum(self.ranks[key, name].shape[1] - 1 for name in names)
        people = max(1, round(self.people))
        # where next to nothing can be told the error is infinite, and any large number says so
        return min(cell_error(self.plan, people=people, sketches=sketches), 1e4 * people) ** 2


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class OracleTables:
    """Everybody's randomised responses, an array for each column."""

    responses: Mapping[str, RandomisedResponse]
    codes: Mapping[str, NDArray[np.integer]]

    def table(self, names: Names) -> Floats:
        """Return the counts of the responses, decoded axis by axis."""
        columns = [self.codes[name].astype(np.int64) for name in names]
        return decoded_table([self.responses[name] for name in names], columns)

    def variance(self, names: Names) -> float:
        """Return the variance if every response were equally frequent, which small epsilons make them nearly."""
        return self.factor(names) * len(self.codes[names[0]])

    def factor(self, names: Names) -> float:
        """Return what each person adds to that variance."""
        each = 1.0
        for name in names:
            response = self.responses[name]
            other = (1 - response.kept) / response.size
            square = ((1 - other) ** 2 + (response.size - 1) * other**2) / response.size
            each *= square / response.kept**2
        return each
