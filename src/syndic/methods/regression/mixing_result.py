"""What a study of noisy, perhaps mixed, columns publishes."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from syndic.data.coding import INTERCEPT, Feature
from syndic.document import Document, from_file
from syndic.errors import InputError
from syndic.kernel import Result, read_table
from syndic.model.gram.mixed import LeastSquares, Mixed, least_squares

Scheme = Literal["rmgm", "dgm", "bgm"]
Bounds = Literal["symmetric", "unit"]


class MixedNote(Document):
    """How to read the numbers: divide them by 2^fraction_bits and, if rows are mixed, by sqrt(`mixes`).

    `seed` is the seed of the signs, in hexadecimal; `tau` the noise of a value in [-1, 1].
    """

    scheme: Scheme
    people: int
    mixes: int | None
    fraction_bits: int
    bounds: Bounds
    tau: float
    seed: str
    features: tuple[Feature, ...]


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class MixedResult(Result):
    """Noisy rows, one column per feature, and the intercept without noise. They are released: anyone may see them."""

    note: MixedNote
    numbers: NDArray[np.int64]
    ones: NDArray[np.int64]

    @property
    def mixed(self) -> Mixed:
        """The rows in units of values in [-1, 1]; use `mixed.gram()` for regressions that correct for the noise."""
        scale = 2.0**self.note.fraction_bits * (self.note.mixes or 1) ** 0.5
        return Mixed(
            features=self.note.features,
            people=self.note.people,
            table=self.numbers / scale,
            ones=self.ones / scale,
            noise=np.full(len(self.note.features), self.note.tau),
            mixed=self.note.mixes is not None,
        )

    def least_squares(self, label: str, features: tuple[str, ...] | None = None) -> LeastSquares:
        """Return the scheme's published regression, for values in the study's `bounds`; any label, any features."""
        rows = self.mixed.in_unit() if self.note.bounds == "unit" else self.mixed
        return least_squares(rows, label, features, debias=self.note.scheme == "dgm")

    def files(self) -> Mapping[str, Any]:
        """Return `mixed.parquet`, whole numbers, and `mixed.json`."""
        columns = {INTERCEPT: self.ones}
        columns |= {each.name: self.numbers[:, place] for place, each in enumerate(self.note.features)}
        return {"mixed.parquet": pa.table(columns), "mixed.json": self.note}

    def summary(self) -> Mapping[str, Any]:
        """Return the number of rows and features, and the noise of a value."""
        return {
            "rows": len(self.numbers),
            "features": len(self.note.features),
            "people": self.note.people,
            "noise of a value in [-1, 1]": round(self.note.tau, 3),
        }


def read_mixed(folder: Path) -> MixedResult:
    """Read back `mixed.parquet` and `mixed.json`."""
    note, table = from_file(folder / "mixed.json", MixedNote), read_table(folder, "mixed.parquet")
    names = [INTERCEPT, *(each.name for each in note.features)]
    whole = all(name in table.column_names and table[name].type == pa.int64() for name in names)
    if not whole or any(table[name].null_count for name in names):
        raise InputError(f"{folder.name}: mixed.parquet must have only whole numbers, for every feature")
    columns = [np.asarray(table[name], dtype=np.int64) for name in names]
    if len(columns[0]) != (note.mixes or note.people):
        raise InputError(f"{folder.name}: mixed.parquet does not have the number of rows that mixed.json states")
    return MixedResult(note=note, numbers=np.column_stack(columns[1:]), ones=columns[0])
