"""Files that this account may not read: it is told so, and not that they are damaged."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from syndic.data import Source, SourceSpec, open_source
from syndic.errors import InputError

_NOBODY = 65534
ROWS = pa.table({"colour": ["red", "blue"]})


@pytest.fixture
def denied() -> Iterator[Path]:
    """Return a folder with a file of each kind, which the account of the test may not read, also where it is root."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o755)
        pa.csv.write_csv(ROWS, folder / "rows.csv")
        pq.write_table(ROWS, folder / "rows.parquet")
        with pa.ipc.new_file(folder / "rows.arrow", ROWS.schema) as writer:
            writer.write_table(ROWS)
        with duckdb.connect(str(folder / "rows.duckdb")) as connection:
            connection.execute("CREATE TABLE t (colour VARCHAR)")
        specs(folder)["duckdb"].names()
        for file in folder.iterdir():
            file.chmod(0)
        root = os.geteuid() == 0
        if root:
            os.seteuid(_NOBODY)
        yield folder
        if root:
            os.seteuid(0)


def specs(folder: Path) -> dict[str, Source]:
    paths = {kind: SourceSpec(path=str(folder / f"rows.{kind}")) for kind in ("csv", "parquet", "arrow")}
    found = {**paths, "duckdb": SourceSpec(duckdb=str(folder / "rows.duckdb"), table="t")}
    return {kind: open_source(spec) for kind, spec in found.items()}


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow", "duckdb"])
def test_a_file_without_permission_is_not_called_damaged(kind: str, denied: Path) -> None:
    source = specs(denied)[kind]
    for read in (source.names, lambda: list(source.batches(["colour"]))):
        with pytest.raises(InputError, match=rf"file rows\.{kind}: permission denied: let the account"):
            read()
