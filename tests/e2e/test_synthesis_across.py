"""A synthetic table of two organisations' columns, each in a process of its own: from files to a report."""

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from support import COLUMNS, THREE_VERTICAL, charges, synthesis_across
from syndic import Study, simulate
from syndic.cli.main import main
from syndic.document import to_json
from syndic.errors import PartyError
from syndic.mpc.dealer import deal_products

COUNT = 2000


def written(folder: Path, study: Study) -> dict[str, str]:
    """Write one file for each party; the score's sign follows the colour, which another party has."""
    draws = np.random.default_rng(1)
    red = draws.random(COUNT) < 0.5
    table = pa.table(
        {
            "colour": np.where(red, "red", "blue"),
            "age": draws.integers(0, 100, COUNT),
            "score": np.where(red, 1, -1) * draws.uniform(0.1, 1, COUNT),
        }
    )
    for party in study.parties:
        pa.csv.write_csv(table.select(list(party.columns or ())), folder / f"{party.name}.csv")
    return {party.name: str(folder / f"{party.name}.csv") for party in study.parties}


def study() -> Study:
    parties = THREE_VERTICAL.replace("people = 60", f"people = {COUNT}")
    return synthesis_across(parties=parties, columns=COLUMNS, budget="epsilon = 2\ndelta = 1e-6")


def test_columns_of_three_processes_become_one_table(tmp_path: Path) -> None:
    agreed = study()
    release = simulate(agreed, written(tmp_path, agreed), runtime="processes", folder=tmp_path)
    assert release.statement.protects
    for party in agreed.parties:
        found = [event for entry in charges(tmp_path, party.name) for event in entry.events]
        assert found == list(agreed.plan.events(party.name))
    made = release.table.to_arrow()
    assert made.num_rows == COUNT
    known = [pair for pair in zip(made["colour"].to_pylist(), made["score"].to_pylist(), strict=True) if pair[1]]
    assert np.mean([(colour == "red") == (score > 0) for colour, score in known]) > 0.9


def test_the_command_line_writes_a_table_and_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agreed = study()
    (tmp_path / "study.json").write_bytes(to_json(agreed))
    given = [word for name, path in written(tmp_path, agreed).items() for word in ("-s", f"{name}={path}")]
    out = tmp_path / "run"
    monkeypatch.setattr("sys.argv", ["syndic", "simulate", str(tmp_path / "study.json"), *given, "--out", str(out)])
    main()
    assert {"synthetic.parquet", "model.npz", "tables.parquet", "synthesis.json", "report.html"} <= {
        path.name for path in out.iterdir()
    }


@pytest.mark.parametrize("multiplied", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_party_that_dies_stops_the_run_and_the_next_one_goes_on(
    multiplied: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before or after the rows were multiplied; a coordinator that starts again deals the same seeds."""
    agreed = study()
    sources, spends = written(tmp_path, agreed), list(agreed.plan.events("north"))

    def charged() -> list[list[Any]]:
        return [[one for entry in charges(tmp_path, party.name) for one in entry.events] for party in agreed.parties]

    def deal(session: Any, *given: Any) -> None:
        if multiplied:
            deal_products(session, *given)
        os.kill(session._runtime._worker("east").process.pid, signal.SIGKILL)
        if not multiplied:
            deal_products(session, *given)

    monkeypatch.setattr("syndic.methods.synthesis.synthesis.deal_products", deal)
    with pytest.raises(PartyError, match="east"):
        simulate(agreed, sources, runtime="processes", folder=tmp_path)
    first = charged()
    assert all(found[:1] == spends[:1] and len(found) <= 2 for found in first)
    monkeypatch.setattr("syndic.methods.synthesis.synthesis.deal_products", deal_products)
    release = simulate(agreed, sources, runtime="processes", folder=tmp_path)
    assert release.table.to_arrow().num_rows == COUNT
    assert charged() == [list(agreed.plan.events(party.name)) for party in agreed.parties]
