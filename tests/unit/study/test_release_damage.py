"""Files of a release that were damaged on their way."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support import study_text, two_parties
from syndic import Study
from syndic.errors import InputError
from syndic.study import Release, simulate


@pytest.mark.parametrize(
    "damaged",
    [
        pa.table({"party": ["north"], "cell": [10**6], "count": [1]}),
        pa.table({"party": ["north", "north"], "cell": [2, 1], "count": [1, 1]}),
        pa.table({"party": ["north"], "cell": ["x"], "count": [1]}),
        pa.table({"party": ["north"]}),
    ],
)
def test_a_damaged_release_is_refused(damaged: pa.Table, tmp_path: Path) -> None:
    simulate(Study.loads(study_text()), two_parties(), seed=1).write(tmp_path)
    assert Release.load(tmp_path).table.to_arrow().num_rows
    pq.write_table(damaged, tmp_path / "cells.parquet")
    with pytest.raises(InputError, match="its release cannot be read"):
        Release.load(tmp_path)
