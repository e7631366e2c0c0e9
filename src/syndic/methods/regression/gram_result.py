"""What a study of a Gram matrix publishes."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from syndic.data.coding import Feature
from syndic.document import Document, from_file
from syndic.errors import InputError
from syndic.kernel import Result, read_table
from syndic.kernel.result import unreadable
from syndic.model.gram.consistent import consistent
from syndic.model.gram.matrix import GramMatrix, places_of
from syndic.model.gram.scaling import Scale


class GramNote(Document):
    """The features, the number of people, the noise of a sum in units of z, and the fraction bits of a feature.

    `shortened` says whether so many rows were clipped that intervals are biased. `scales`: those of rescaled numbers.
    """

    rows: int
    bits: int
    sigma: float
    shortened: bool
    features: tuple[Feature, ...]
    scales: tuple[Scale, ...] = ()


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class GramResult(Result):
    """Noisy sums of products of two features. They are released: anyone may see them."""

    note: GramNote
    sums: NDArray[np.int64]

    @cached_property
    def gram(self) -> GramMatrix:
        """The matrix, in units of z: regressions, correlations and components follow from it without further cost.

        The sums are projected to the totals that levels of a categorical column must have, which removes some noise.
        """
        return consistent(self.opened)

    @property
    def opened(self) -> GramMatrix:
        """The matrix as it was opened."""
        values = self.sums / 4.0**self.note.bits
        note = self.note
        return GramMatrix(
            features=note.features,
            rows=note.rows,
            values=values,
            sigma=note.sigma,
            shortened=note.shortened,
            halved=bool(note.scales),
        )

    def files(self) -> Mapping[str, Any]:
        """Return `gram.parquet`, a row for each opened sum in whole units of 4^-bits, and `gram.json`."""
        names = np.array([feature.name for feature in self.note.features])
        places = places_of(self.note.features)
        first, second = np.array([np.argwhere(np.triu(places == place))[0] for place in range(len(self.sums))]).T
        sums = pa.table({"first": names[first], "second": names[second], "sum": self.sums})
        return {"gram.parquet": sums, "gram.json": self.note}

    def summary(self) -> Mapping[str, Any]:
        """Return the number of features, sums and people, and the noise of a sum."""
        return {
            "features": len(self.note.features),
            "sums": len(self.sums),
            "people": self.note.rows,
            f"noise of a sum, for {'rescaled values' if self.note.scales else 'values in [-1, 1]'}": round(
                self.note.sigma, 3
            ),
        }


def read_gram(folder: Path) -> GramResult:
    """Read back `gram.parquet` and `gram.json`."""
    note = from_file(folder / "gram.json", GramNote)
    try:
        sums = np.asarray(read_table(folder, "gram.parquet")["sum"], dtype=np.int64)
    except KeyError as error:
        raise unreadable(folder, error) from None
    if len(sums) != int(places_of(note.features).max()) + 1:
        raise InputError(f"{folder.name}: gram.parquet does not have the sums of the features in gram.json")
    return GramResult(note=note, sums=sums)
