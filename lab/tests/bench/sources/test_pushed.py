import pytest

from syndic_lab.bench.postgres_server import is_installed
from syndic_lab.bench.sources import pushed as sources_pushed


@pytest.mark.bench
def test_both_ways_are_measured_on_a_server_of_its_own() -> None:
    pytest.importorskip("ibis", reason="ibis is not installed: pip install 'syndic[ibis]'")
    if not is_installed():
        pytest.skip("PostgreSQL is not installed: apt install postgresql")
    rows = list(sources_pushed.rows({"c0": 3, "c1": 2, "c2": 4}, 2_000, 1))
    assert [row.row.rpartition("PostgreSQL, ")[2] for row in rows[::2]] == [
        *["3 two-way tables, pushed down"] * 2,
        *["3 one-way tables, pushed down"] * 2,
    ]
    assert all(row.value >= 0 for row in rows)
    assert [row.baseline for row in rows[::2]] == [row.value for row in rows[1::2]]


def test_ways_that_disagree_are_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = iter([1.0, 2.0])
    monkeypatch.setattr(
        sources_pushed, "_measured", lambda *_: {"seconds": 1.0, "cpu seconds": 1.0, "digest": next(digests)}
    )
    with pytest.raises(RuntimeError, match="disagree"):
        list(sources_pushed._compared(None, None, [], "what", 1))  # type: ignore[arg-type]
