"""A party's rows as whole numbers, so that sums over them do not depend on order or on rounding.

Features are multiples of 2^-16, rounded towards zero, which never makes a row longer: a row inside the unit ball stays
inside. Slopes are rounded likewise. Products and sums of such numbers are exact in double precision up to 2^53, in any
library, so that one record changes a sum by its own term and by nothing else.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Table
from syndic.data.design import Design
from syndic.model.erm.loss import Loss, Numbers, joint_slope, shortening
from syndic.model.erm.second_order import LARGEST_NORM, STEPS, WEIGHT_STEPS, exact_rows, within_norm

# rows at a time: sums of as many terms of 2^32 stay below 2^53
_CHUNK: Final = 2**16
ROOM: Final = 2
"""Times the declared rows: a party's model gets smaller beyond the declared ones and is zero from here on."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Rows:
    """Features in steps of 2^-16 (whole numbers) and a label for each model. Private."""

    features: Numbers = field(repr=False)  # rows are private, also in logs
    labels: Numbers = field(repr=False)

    def __len__(self) -> int:
        return len(self.features)

    @property
    def plain(self) -> Numbers:
        """The features as real numbers."""
        return np.asarray(self.features / STEPS)

    def gradient_steps(self, weights: Numbers, loss: Loss, clip: float) -> NDArray[np.int64]:
        """Return the sum of the records' gradients (model, feature), in steps of 2^-32.

        All models' gradients of a record together have norm at most `clip` 2^32.
        """
        # far larger than any penalty allows, and small enough for exact predictions
        shorter = within_norm(weights, LARGEST_NORM)
        whole = np.rint(shorter * WEIGHT_STEPS)
        predictions = (self.features @ whole.T) / (STEPS * WEIGHT_STEPS)
        slopes = loss.slope(predictions, self.labels)
        lengths = np.linalg.norm(self.plain, axis=1) * np.linalg.norm(slopes, axis=1)
        steps = np.trunc(slopes * shortening(lengths, clip)[:, None] * STEPS)
        total = np.zeros(weights.shape, dtype=np.int64)
        size = exact_rows(Fraction(min(clip, joint_slope(loss, len(weights)))))
        for start in range(0, len(steps), size):
            part = slice(start, start + size)
            total += np.rint(steps[part].T @ self.features[part]).astype(np.int64)
        return total


def batches(design: Design, table: Table) -> Iterator[Rows]:
    """Yield a table's rows a batch at a time. Private."""
    for coded in table.batches(design.schema.names):
        features, labels = design.rows(coded), design.labels(coded[design.label])
        for start in range(0, len(features), _CHUNK):
            part = slice(start, start + _CHUNK)
            yield Rows(features=np.trunc(features[part] * STEPS), labels=labels[part])


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class PartyRows:
    """One party's rows. Public: its number of people, the most rows of one person, its part of all people."""

    table: Table
    design: Design
    people: int
    rows: int
    share: float

    @property
    def declared(self) -> int:
        """The public bound on the number of rows. A source may have more."""
        return self.people * self.rows

    def batches(self) -> Iterator[Rows]:
        """Yield the rows in batches."""
        return batches(self.design, self.table)

    def matrix(self) -> tuple[Numbers, Numbers]:
        """Return features and labels at once, reading no more than `ROOM` times the declared rows. Private."""
        models, features = self.design.shape
        rows, labels, left = [np.empty((0, features))], [np.empty((0, models))], ROOM * self.declared
        for batch in self.batches():
            rows.append(batch.plain[:left])
            labels.append(batch.labels[:left])
            left -= len(rows[-1])
            if not left:
                break
        return np.concatenate(rows), np.concatenate(labels)
