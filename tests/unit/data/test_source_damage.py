"""Damaged files of rows: refused before their columns are read, never a crash and never fewer rows in silence."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from syndic.data import Categorical, Schema, Table, open_source
from syndic.data.source import reading
from syndic.errors import InputError

SCHEMA = Schema(columns=(Categorical(name="c", values=("a", "b")),))


def codes(path: Path) -> list[int]:
    return [int(code) for batch in Table(SCHEMA, open_source(path)).batches() for code in batch["c"]]


def written(path: Path, array: pa.Array) -> Path:
    with pa.ipc.new_file(path, pa.schema([("c", array.type)])) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays([array], ["c"]))
    return path


def beyond(kind: pa.DataType, width: int) -> pa.Array:
    """Return two texts of which the first ends far behind its buffer."""
    offsets = b"".join(place.to_bytes(width, "little") for place in (0, 2**30, 2))
    return pa.Array.from_buffers(kind, 2, [None, pa.py_buffer(offsets), pa.py_buffer(b"ab")])


TEXTS = pa.array(["a", "b"])
DAMAGED = {
    "text": beyond(pa.string(), 4),
    "long text": beyond(pa.large_string(), 8),
    "bytes": beyond(pa.binary(), 4),
    "index": pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int8()), TEXTS, safe=False),
    "negative index": pa.DictionaryArray.from_arrays(pa.array([-1, 0], pa.int8()), TEXTS, safe=False),
    "empty dictionary": pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), TEXTS[:0], safe=False),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_columns_that_point_beyond_their_buffers_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Arrow file rows\.arrow: cannot be read"):
        codes(written(tmp_path / "rows.arrow", DAMAGED[name]))


def test_values_of_whole_columns_are_never_refused(tmp_path: Path) -> None:
    invalid = pa.array([b"a", b"\xff", None], pa.binary()).view(pa.string())
    assert codes(written(tmp_path / "rows.arrow", invalid)) == [0, 2, 3]
    nothing = pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int8()), TEXTS[:0])
    assert codes(written(tmp_path / "rows.arrow", nothing)) == [3, 3]
    runs = pa.RunEndEncodedArray.from_arrays([2, 3], TEXTS)
    assert codes(written(tmp_path / "rows.arrow", runs)) == [0, 0, 1]


@pytest.mark.parametrize("change", [0x01, 0x80, 0xFF])
def test_a_changed_byte_of_a_parquet_file_loses_no_row(change: int, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"c": ["a", "b", "a"], "d": [1, 2, 3]}), path, compression="none")
    whole = path.read_bytes()
    refused = 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ change]) + whole[place + 1 :])
        try:
            assert len(codes(path)) == 3
        except InputError:
            refused += 1
    assert refused > 30


def test_an_interrupt_while_arrow_reads_is_an_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt), reading("rows.csv"):
        raise pa.ArrowCancelled("Operation cancelled. Detail: received signal 2")
