"""What VertiGAN publishes: a synthetic table and the generator that it was drawn from."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from syndic.data import ReleasedTable, Schema, decode_codes
from syndic.document import Document, from_file
from syndic.errors import InputError, MissingExtraError
from syndic.kernel import Result, read_table
from syndic.kernel.result import unreadable
from syndic.model.gan.shape import Flat, GanShape
from syndic.random import SystemRandomness
from syndic.random import generator as new_generator


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ReleasedGenerator:
    """A trained generator. Its weights are released: anyone may draw from it, at no cost.

    `columns` are those of each party, in the order of its branch.
    """

    schema: Schema
    columns: Mapping[str, tuple[str, ...]]
    shapes: Mapping[str, GanShape]
    trunk: Flat
    branches: Mapping[str, Flat]

    def sample(self, rows: int, *, generator: np.random.Generator | None = None) -> ReleasedTable:
        """Draw rows; pass a seeded `generator` for a reproducible draw. It need not be secret."""
        try:
            from syndic.methods.comparison.vertigan_work import drawn_codes  # noqa: PLC0415 (torch is an extra)
        except ImportError:
            raise MissingExtraError("torch", "gan") from None
        if rows < 0:
            raise InputError(f"rows ({rows}) must not be negative")
        generator = new_generator(SystemRandomness()) if generator is None else generator
        drawn = drawn_codes(self.shapes, self.branches, self.trunk, rows, generator)
        codes = {
            column: drawn[party][:, place]
            for party, names in self.columns.items()
            for place, column in enumerate(names)
        }
        return decode_codes(self.schema, codes, generator)

    def save(self, path: Path) -> None:
        """Write the weights as `.npz`."""
        branches = {f"branch {name}": weights for name, weights in self.branches.items()}
        np.savez(path, trunk=self.trunk, **branches)  # type: ignore[arg-type]


class GanNote(Document):
    """How the table was made. Public. `sigma` is the noise on a sum, as a multiple of what one person can add."""

    rounds: int
    critic_steps: int
    batch: int
    sigma: float
    noisy_steps: int


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class GanTable(Result):
    """The synthetic table and its generator. All of it is released."""

    table: ReleasedTable
    model: ReleasedGenerator
    note: GanNote

    def files(self) -> Mapping[str, Any]:
        """Return `synthetic.parquet`, the weights `generator.npz`, and `vertigan.json`."""
        return {"synthetic.parquet": self.table, "generator.npz": self.model, "vertigan.json": self.note}

    def summary(self) -> Mapping[str, Any]:
        """Return a few facts about the table and the training."""
        return {
            "rows": len(self.table),
            "columns": len(self.table.names),
            "rounds": self.note.rounds,
            "noisy steps of all critics": self.note.noisy_steps,
            "sigma": round(self.note.sigma, 4),
        }


def read_gan(
    schema: Schema, columns: Mapping[str, tuple[str, ...]], shapes: Mapping[str, GanShape], folder: Path
) -> GanTable:
    """Read back what a `GanTable` wrote."""
    note = from_file(folder / "vertigan.json", GanNote)
    table = read_table(folder, "synthetic.parquet")
    try:
        with np.load(folder / "generator.npz", allow_pickle=False) as found:
            trunk = np.asarray(found["trunk"], dtype=np.float32)
            branches = {name: np.asarray(found[f"branch {name}"], dtype=np.float32) for name in shapes}
    except (OSError, ValueError, KeyError) as error:
        raise unreadable(folder, error) from None
    first = next(iter(shapes.values()))
    fits = all(weights.shape == (shapes[name].branch.length,) for name, weights in branches.items())
    if trunk.shape != (first.trunk.length,) or not fits:
        raise InputError(f"{folder.name}: generator.npz does not have the networks of this study")
    model = ReleasedGenerator(schema=schema, columns=columns, shapes=shapes, trunk=trunk, branches=branches)
    return GanTable(table=ReleasedTable(table), model=model, note=note)
