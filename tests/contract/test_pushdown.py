"""A study releases the same whether a party's rows are streamed or counted by its own engine."""

from pathlib import Path
from typing import Any

import pytest

from support import CASES
from syndic.study.simulate import simulate

ibis = pytest.importorskip("ibis", reason="ibis is not installed: pip install 'syndic[ibis]'")
Pushdown = pytest.importorskip("syndic.data.sources.pushdown").Pushdown

SEED = 11
COUNTED = (
    "homm laplace",
    "homm sparse",
    "average",
    "marginals overlap",
    "synthesis adaptive",
    "marginals across",
    "synthesis across",
    "dplt",
    "distdiffgen",
)
BY_NAME = {case.name: case for case in CASES}


def written(study: Any, sources: Any, folder: Path) -> dict[str, bytes]:
    paths = simulate(study, sources, seed=SEED).write(folder)
    return {path.name: path.read_bytes() for path in paths}


@pytest.mark.parametrize("name", COUNTED)
def test_the_release_is_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = BY_NAME[name]
    backend = ibis.duckdb.connect()
    for party, rows in case.sources.items():
        backend.con.register(f"rows_{party}", rows)
        backend.con.execute(f"CREATE TABLE {party} AS SELECT * FROM rows_{party}")
    pushed = {party: backend.table(party) for party in case.sources}
    counted = []
    for way in ("marginals", "cells", "sums"):
        original = getattr(Pushdown, way)

        def watched(self: Any, *given: Any, original: Any = original) -> Any:
            counted.append(original(self, *given))
            return counted[-1]

        monkeypatch.setattr(Pushdown, way, watched)
    expected = written(case.study, case.sources, tmp_path / "streamed")
    assert not counted
    assert written(case.study, pushed, tmp_path / "pushed") == expected
    assert counted
    assert all(answer is not None for answer in counted)
    backend.disconnect()
