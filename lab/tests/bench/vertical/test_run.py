"""`bench vertical`: columns are cut into parties, bytes are counted once, and figures stand beside the curator's."""

import numpy as np
import pyarrow as pa
import pytest
from made import made_table

from syndic.data import Schema
from syndic.kernel import Exchange
from syndic.methods import Synthesis
from syndic_lab.bench.model.synthesis_data import Coded
from syndic_lab.bench.vertical import binary
from syndic_lab.bench.vertical import plan as vertical_plan
from syndic_lab.bench.vertical.binary import factors, of_binary
from syndic_lab.bench.vertical.run import of_cuts, of_processes, of_table
from syndic_lab.bench.vertical.runs import cut, grid_of, held_by, made_by, sent_once, study_of, vertical

SIZES = {"a": 3, "b": 4, "c": 2, "d": 5, "e": 3}


def coded(count: int = 2000) -> Coded:
    return made_table(SIZES, count)


def test_columns_are_cut_in_order() -> None:
    assert cut(coded(10), 2) == [("a", "b", "c"), ("d", "e")]
    assert cut(coded(10), 5) == [(name,) for name in SIZES]


def test_what_the_coordinator_passes_on_is_counted_once() -> None:
    def line(step: str, asked: int, replied: int) -> Exchange:
        return Exchange(
            round=1,
            step=step,
            party="p0",
            reveals="sealed",
            request_bytes=asked,
            reply_bytes=replied,
            reply_sha256="",
        )

    # 100 bytes of masked rows go up and then come down to the partner, in a request of 120
    assert sent_once([line("product_masked", 10, 100), line("product_proved", 120, 7), line("count", 9, 5)]) == (
        10 + 120 + 9 + 5
    )


@pytest.mark.bench
def test_parties_together_are_near_the_curator_and_far_from_parties_alone() -> None:
    found = {(row.row, row.metric): row for row in of_table(coded(), [0, 1], (2,))}
    together = found["made, epsilon 0.8, 2 parties", "tvd3"]
    alone = found["made, epsilon 0.8, 2 parties, each on its own, side by side", "tvd3"]
    assert together.baseline == found["made, epsilon 0.8, trusted curator", "tvd3"].value
    # the columns hang together across parties, which parties on their own cannot know
    assert alone.value > 3 * together.value
    ratio = found["made, epsilon 0.8, 2 parties", "tvd3 ratio"]
    assert ratio.value == pytest.approx(together.value / (together.baseline or 0))
    assert ratio.value < 3
    worst = found["made, epsilon 0.8, 2 parties", "tvd3 ratio, worst seed"]
    assert worst.value >= ratio.value


def test_binary_columns_follow_one_factor_or_one_for_each_half() -> None:
    for number in (1, 2):
        codes = np.stack(list(factors(number, 4000).codes().values()))
        assert set(codes.ravel()) == {0, 1}
        related = np.atleast_2d(np.corrcoef(codes))
        across = related[:8, 8:]
        assert related[0, 1:8].min() > 0.1
        assert (across.min() > 0.1) if number == 1 else (np.abs(across).max() < 0.1)


@pytest.mark.parametrize("number", [3, 4])
def test_four_servers_find_what_only_three_parties_columns_show(number: int) -> None:
    draws = np.random.default_rng(1)
    codes = {name: draws.integers(0, 2, 3000) for name in "abcde"}
    codes["e"] = codes["a"] ^ codes["c"] ^ (draws.random(3000) < 0.1)
    data = Coded("exclusive or", Schema.from_domain(dict.fromkeys(codes, 2)), pa.table(codes))
    protocol = Synthesis(servers=("p0", "p1", "p2", "p3")[:number])
    held = [("a", "b"), ("c",), ("d",), ("e",)]
    found = made_by(data, study_of(data, "4", held, protocol), 1).found
    assert (("a", "c", "e") in found) == (number == 4)


@pytest.mark.bench
def test_binary_tables_need_no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SYNDIC_DATA", raising=False)
    monkeypatch.setattr(binary, "factors", lambda number: factors(number, 300))
    monkeypatch.setattr(vertical_plan, "of_binary", lambda seeds, parties: of_binary(seeds[:1], parties))
    found = list(vertical_plan.rows(True, ("binary",)))
    assert {row.row.split(", epsilon")[0] for row in found} == {"binary, 1 factor", "binary, 2 factors"}


def test_traffic_stays_within_what_the_study_says() -> None:
    data = coded(20_000)
    # beside it a sixth for parities, and a quarter for the coins of each of three rounds across parties
    most = 60 * 20_000 * (1 + 1 / 6 + 3 / 4) + 200_000
    assert vertical(data, "0.8", 0, 2, traffic=60).sent < most


@pytest.mark.bench
def test_processes_are_measured_too() -> None:
    rows = list(of_processes(coded(600), 5406.0))
    assert [row.metric for row in rows] == ["wall seconds", "tvd3", "tvd4", "tvd5"]
    assert rows[0].value > 0.1
    assert rows[0].published == 5406.0
    assert all(0 < row.value < 1 for row in rows[1:])


@pytest.mark.bench
def test_people_and_columns_are_cut_both_ways() -> None:
    data = coded(600)
    rows = held_by(data, grid_of(data, "0.8", 3, 2, lacking=True))
    assert [len(table) for table in rows.values()] == [200] * 6
    assert rows["g1p0"].equals(data.table.slice(200, 200).select(["a", "b", "c"]))
    assert [rows[name].column_names for name in ("g0p1", "g2p1")] == [["d", "e"], ["d"]]
    found = {(row.row, row.metric): row.value for row in of_cuts(data, [0])}
    assert found["made, epsilon 0.8, 2 x 2 parties", "not covered"] == 0
    assert found["made, epsilon 0.8, 3 x 2 parties, one lacks half of its columns", "not covered"] > 0
    assert ("made, epsilon 0.8, delta 1e-08, 2 x 2 parties in processes", "wall seconds") in found
