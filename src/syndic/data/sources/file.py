"""Rows in Parquet and Arrow files, read in batches by Arrow, and the choice of reader by file type."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from syndic.data.source import BATCH_ROWS, Source, check_columns, reading
from syndic.data.sources.csv import CsvSource
from syndic.errors import InputError

_AS_BYTES = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}
# Arrow holds about ten bytes for each value of a batch
_BATCH_VALUES = 1 << 20
_LEAST_ROWS = 1 << 12
SUFFIXES = ".csv, .csv.gz, .tsv, .parquet, .arrow, .feather, .ipc"


def open_path(path: Path, *, multiline: bool = False) -> Source:
    """Return the source of a file, or of the Parquet files in a folder; `multiline` is for CSV files."""
    name = path.name.lower()
    if multiline and not name.endswith((".csv", ".csv.gz", ".tsv", ".tsv.gz")):
        raise InputError(f"{path.name}: multiline is for .csv and .tsv files")
    if path.is_dir():
        files = tuple(sorted(path.glob("*.parquet")))
        if not files:
            raise InputError(f"{path.name}: this folder has no .parquet file")
        return ParquetSource(files=files)
    if not path.exists():
        raise InputError(f"{path.name}: no such file")
    if name.endswith((".csv", ".csv.gz")):
        return CsvSource(path=path, delimiter=",", multiline=multiline)
    if name.endswith((".tsv", ".tsv.gz")):
        return CsvSource(path=path, delimiter="\t", multiline=multiline)
    if name.endswith((".parquet", ".pq")):
        return ParquetSource(files=(path,))
    if name.endswith((".arrow", ".feather", ".ipc")):
        return IpcSource(path=path)
    raise InputError(
        f"{path.name}: unknown file type '{path.suffix}'; expected {SUFFIXES}, or a party file, whose name must end in "
        "party.toml"
    )


@final
@dataclass(frozen=True, kw_only=True)
class ParquetSource:
    """One or more Parquet files, read one after another."""

    files: tuple[Path, ...]

    def names(self) -> tuple[str, ...]:
        """Return the names of the columns that every file has."""
        found = []
        for file in self.files:
            with reading(f"Parquet file {file.name}"):
                found.append(pq.read_schema(file).names)
        return tuple(name for name in found[0] if all(name in names for names in found))

    def batches(self, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
        """Yield slices of row groups."""
        columns = check_columns(self, columns)
        rows = min(BATCH_ROWS, max(_LEAST_ROWS, _BATCH_VALUES // max(1, len(columns))))
        for file in self.files:
            with reading(f"Parquet file {file.name}"):
                schema = pq.read_schema(file)
                # texts stay dictionaries, so that each is interpreted once and not once per row
                texts = [name for name in columns if pa.types.is_string(schema.field(name).type)]
                with pq.ParquetFile(file, read_dictionary=texts) as reader:
                    left = reader.metadata.num_rows
                    for groups in _groups(reader.metadata, rows):
                        for batch in reader.iter_batches(rows, row_groups=groups, columns=columns):
                            left -= batch.num_rows
                            yield _sound(batch.select(columns))
                if left:
                    # Arrow silently stops at the shortest column of a damaged file
                    raise pa.ArrowInvalid("there are fewer rows than the file says")

    def describe(self) -> str:
        """Return the kind and the first file's name."""
        more = f" and {len(self.files) - 1} more" if len(self.files) > 1 else ""
        return f"Parquet file {self.files[0].name}{more}"


def _groups(file: pq.FileMetaData, rows: int) -> Iterator[list[int]]:
    """Yield row groups, several at once if they are small: Arrow keeps all that it reads at once in memory."""
    groups, found = list[int](), 0
    for place in range(file.num_row_groups):
        groups.append(place)
        found += file.row_group(place).num_rows
        if found >= rows:
            yield groups
            groups, found = [], 0
    if groups:
        yield groups


@final
@dataclass(frozen=True, kw_only=True)
class IpcSource:
    """An Arrow IPC file (Feather version 2), mapped into memory."""

    path: Path

    def names(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        with reading(self.describe()), pa.memory_map(str(self.path)) as file:
            return tuple(pa.ipc.open_file(file).schema.names)

    def batches(self, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
        """Yield slices of the file's batches."""
        columns = check_columns(self, columns)
        with reading(self.describe()), pa.memory_map(str(self.path)) as file:
            reader = pa.ipc.open_file(file)
            for place in range(reader.num_record_batches):
                batch = _sound(reader.get_batch(place).select(columns))
                yield from pa.Table.from_batches([batch]).to_batches(max_chunksize=BATCH_ROWS)

    def describe(self) -> str:
        """Return the kind and the file's name."""
        return f"Arrow file {self.path.name}"


def _sound(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch; raise `pa.ArrowInvalid` if reading its columns would go beyond their buffers.

    Arrow trusts a file's metadata. Values may be anything, including text that is not UTF-8.
    """
    for column in batch.columns:
        _check_array(column)
    return batch


def _check_array(array: pa.Array) -> None:
    kind = array.type
    array.validate()
    if isinstance(kind, pa.BaseExtensionType):
        _check_array(array.storage)
    elif pa.types.is_dictionary(kind):
        _check_array(array.dictionary)
        # of this type only the indices are left to check
        array.indices.validate(full=True)
        found = pc.min_max(array.indices.cast(pa.int64()))
        if array.null_count < len(array) and not 0 <= found["min"].as_py() <= found["max"].as_py() < len(
            array.dictionary
        ):
            raise pa.ArrowInvalid("an index is beyond its dictionary")
    elif pa.types.is_run_end_encoded(kind):
        array.run_ends.validate(full=True)
        _check_array(array.values)
    elif kind in _AS_BYTES:
        array.view(_AS_BYTES[kind]).validate(full=True)
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        array.validate(full=True)
