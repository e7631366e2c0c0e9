"""`syndic.run` in Python: what `syndic run` does, here with the parties' nodes in this process in place of sites."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

import syndic as sy
from organisations import agreed_nodes, named
from support import study_text, two_parties
from syndic.errors import InputError, PartyError
from syndic.federation.coordinator import Coordinator
from syndic.federation.party import accept, prepare
from syndic.federation.run import read_state
from syndic.kernel import Delivery
from syndic.runtime import Local
from syndic.study import PartyFolder
from syndic.study.party_folder import run_digest

PARTY = """
name = "{name}"
dataset = "people of {name}"
source = {{ path = "rows.parquet" }}
cap = {{ epsilon = 20, delta = 1e-4 }}
"""


class Sites:
    """Stands for the coordinator's server and the sites that are connected to it."""

    def __init__(self, runtime: Local | None) -> None:
        self.runtime = runtime
        self.opened: list[dict[str, Any]] = []

    def open(self, socket: Path, **options: Any) -> "Sites":
        self.opened.append({"socket": socket, **options})
        return self

    def connected(self) -> tuple[str, ...]:
        return () if self.runtime is None else ("north", "south")

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        assert self.runtime is not None
        return self.runtime.send(calls, seconds=seconds, arrived=arrived)

    def close(self) -> None:
        return


@pytest.fixture
def study(tmp_path: Path) -> sy.Study:
    """A study of two parties that one coordinator has admitted; both agree to a rehearsal with seed 7."""
    coordinator = Coordinator.create(tmp_path / "federation", name="health", host="127.0.0.1", port=9)
    for name, table in two_parties().items():
        accept(tmp_path / name, coordinator.approve(prepare(tmp_path / name, name=name), days=30))
        pq.write_table(table, tmp_path / name / "rows.parquet")
        (tmp_path / name / "party.toml").write_text(PARTY.format(name=name))
    known = {one.party: one.identity for one in coordinator.admitted()}
    agreed = sy.Study.loads(study_text())
    members = tuple(replace(one, identity=known[one.name]) for one in agreed.parties)
    return named(replace(agreed, parties=members), coordinator.identity)


def test_the_release_is_returned_and_progress_is_reported(
    study: sy.Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes = {party.name: PartyFolder(folder=tmp_path / party.name) for party in study.parties}
    local = Local(agreed_nodes(study, homes, rehearsal=7))
    sites = Sites(local)
    monkeypatch.setattr("syndic.federation.run.Flare", sites.open)
    steps: list[str] = []
    try:
        release = sy.run(
            study,
            folder=str(tmp_path / "federation"),
            rehearsal=7,
            progress=lambda what, _done, _total: steps.append(what),
            patience=5.0,
        )
    finally:
        local.close()
    assert isinstance(release, sy.Release)
    assert not release.statement.protects
    assert release.table.to_arrow().num_rows
    assert steps[0] == "connected"
    assert len(set(steps)) > 1
    assert sites.opened[0]["patience"] == 5.0
    assert sites.opened[0]["study"] == run_digest(study, 7)
    state = read_state(tmp_path / "federation", run_digest(study, 7))
    assert state is not None
    assert state.state == "finished"
    # a run that ended gives its release again, from the coordinator's folder
    again = sy.run(study, folder=tmp_path / "federation", rehearsal=7)
    assert again.table.to_arrow() == release.table.to_arrow()


def test_nothing_is_asked_where_no_run_is_possible(
    study: sy.Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("syndic.federation.run.Flare", Sites(None).open)
    with pytest.raises(PartyError, match="no party is connected"):
        sy.run(study, folder=tmp_path / "federation", patience=0.0)
    with pytest.raises(InputError, match="coordinator init"):
        sy.run(study, folder=tmp_path / "north")
    strangers = replace(study, parties=tuple(replace(one, name=f"{one.name}2") for one in study.parties))
    with pytest.raises(InputError, match="not admitted by this coordinator"):
        sy.run(strangers, folder=tmp_path / "federation")
