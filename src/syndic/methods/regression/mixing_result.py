"""What a study of noisy, perhaps mixed, columns publishes."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from syndic.data.coding import INTERCEPT, Feature
from syndic.document import Document, from_file, to_readable_json
from syndic.errors import InputError
from syndic.kernel import Result
from syndic.methods.regression.mixing_layout import Bounds, Scheme
from syndic.model.gram.mixed import LeastSquares, Mixed, least_squares


class MixedNote(Document):
    """How to read the numbers: divide them by 2^fraction_bits and, where rows are mixed, by sqrt(`mixes`).

    `seed` is what the signs were made of, in hexadecimal digits; `tau` the noise of a value in [-1, 1].
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
    """Noisy rows, a column for each feature, and the intercept without noise. Anyone may see them."""

    note: MixedNote
    numbers: NDArray[np.int64]
    ones: NDArray[np.int64]

    @property
    def mixed(self) -> Mixed:
        """The rows in units of values in [-1, 1]; `mixed.gram()` is the way to regressions that allow for the noise."""
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
        """Return the scheme's own regression, for values in the study's `bounds`; any label, any features."""
        rows = self.mixed.in_unit() if self.note.bounds == "unit" else self.mixed
        return least_squares(rows, label, features, debias=self.note.scheme == "dgm")

    def write(self, folder: Path) -> list[Path]:
        """Write `mixed.parquet`, whole numbers, and `mixed.json`."""
        columns = {INTERCEPT: self.ones}
        columns |= {each.name: self.numbers[:, place] for place, each in enumerate(self.note.features)}
        pq.write_table(pa.table(columns), folder / "mixed.parquet")
        (folder / "mixed.json").write_bytes(to_readable_json(self.note))
        return [folder / "mixed.parquet", folder / "mixed.json"]

    def summary(self) -> Mapping[str, Any]:
        """Return how much was published and how noisy it is."""
        return {
            "rows": len(self.numbers),
            "features": len(self.note.features),
            "people": self.note.people,
            "noise of a value in [-1, 1]": round(self.note.tau, 3),
        }


def read_mixed(folder: Path) -> MixedResult:
    """Read back `mixed.parquet` and `mixed.json`."""
    note = from_file(folder / "mixed.json", MixedNote)
    names = [INTERCEPT, *(each.name for each in note.features)]
    try:
        table = pq.read_table(folder / "mixed.parquet", columns=names)
        if any(table[name].type != pa.int64() or table[name].null_count for name in names):
            raise InputError(f"{folder.name}: mixed.parquet must hold whole numbers only")
        columns = [np.asarray(table[name], dtype=np.int64) for name in names]
    except (OSError, pa.ArrowInvalid, KeyError) as error:
        raise InputError(f"{folder.name}: its release cannot be read: {type(error).__name__}") from None
    if len(columns[0]) != (note.mixes or note.people):
        raise InputError(f"{folder.name}: mixed.parquet does not have the rows that mixed.json says")
    return MixedResult(note=note, numbers=np.column_stack(columns[1:]), ones=columns[0])
