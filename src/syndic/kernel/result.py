"""What a method publishes: tables, models and a note, each as a file, and how to write and read them."""

import abc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from syndic.data import ReleasedTable
from syndic.document import to_readable_json
from syndic.errors import InputError


class Result(abc.ABC):
    """What a method publishes. It is computed from released values only: anyone may see it."""

    @abc.abstractmethod
    def files(self) -> Mapping[str, Any]:
        """Return the published contents by file name.

        The content of a `.parquet` file is a released or an Arrow table, that of a `.json` file a document, and that
        of any other file a text or an object with `save(path)`.
        """

    @abc.abstractmethod
    def summary(self) -> Mapping[str, Any]:
        """Return a few public facts for the terminal and the statement."""

    def write(self, folder: Path) -> list[Path]:
        """Write the result's files into `folder` and return their paths."""
        for name, content in self.files().items():
            path = folder / name
            if path.suffix == ".parquet":
                pq.write_table(content.table if isinstance(content, ReleasedTable) else content, path)
            elif path.suffix == ".json":
                path.write_bytes(to_readable_json(content))
            elif isinstance(content, str):
                path.write_text(content, encoding="utf-8")
            else:
                content.save(path)
        return [folder / name for name in self.files()]


def read_table(folder: Path, name: str) -> pa.Table:
    """Read a `.parquet` file of a result."""
    try:
        return pq.read_table(folder / name)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(folder, error) from None


def unreadable(folder: Path, error: Exception) -> InputError:
    """Return the error for a release whose files are damaged or missing."""
    return InputError(
        f"{folder.name}: the release cannot be read; a file is damaged or missing ({type(error).__name__})"
    )
