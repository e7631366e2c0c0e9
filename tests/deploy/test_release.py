"""Between processes under mutual TLS the release is the one of a run in one process, and so are the ledgers."""

from pathlib import Path

import pyarrow as pa
import pytest

from federation import SEED, Federation, alike, average, horizontal, same, split, vertical
from syndic import Study
from syndic.errors import PartyError
from syndic.study import PartyFolder
from syndic.study.agreement import agree, withdraw
from syndic.study.party_folder import run_digest


@pytest.mark.parametrize(
    ("study", "tables"),
    [
        (horizontal('method = "homm"'), alike()),
        (average(), alike()),
        (vertical(), split()),
    ],
    ids=["homm", "average", "vertical"],
)
def test_the_release_is_that_of_one_process(
    federation: Federation, tmp_path: Path, study: Study, tables: dict[str, pa.Table]
) -> None:
    federation.put(tables)
    study = federation.identified(study)
    federation.agree(study, SEED)
    expected = federation.local(study, SEED, tmp_path / "homes")
    release = federation.run(study, SEED)
    same(release, expected, tmp_path)
    for party in study.parties:
        charged = [event for entry in federation.charges(study, SEED, party.name) for event in entry.events]
        assert sorted(map(str, charged)) == sorted(map(str, study.plan.events(party.name)))
    again = federation.run(study, SEED)
    same(again, expected, tmp_path)


def test_a_real_run_is_not_the_rehearsal(federation: Federation) -> None:
    federation.put(alike())
    study = federation.identified(horizontal('method = "homm"', name="real"))
    federation.agree(study, None)
    release = federation.run(study, None)
    assert release.statement.protects
    assert len(federation.charges(study, None, "north")) == 1


def test_a_study_that_one_party_did_not_agree_to_is_refused(federation: Federation) -> None:
    federation.put(alike())
    study = federation.identified(horizontal('method = "homm"', name="not by all"))
    for name in ("north", "south"):
        agree(PartyFolder(folder=federation.home(name)), study, rehearsal=SEED)
    with pytest.raises(PartyError, match="east has not agreed"):
        federation.run(study, SEED)
    assert all(federation.charges(study, SEED, name) == [] for name in ("north", "south", "east"))
    agree(PartyFolder(folder=federation.home("east")), study, rehearsal=SEED)
    assert federation.run(study, SEED).transcript
    withdraw(PartyFolder(folder=federation.home("east")), run_digest(study, SEED))
    (federation.coordinator.folder / "studies" / f"{run_digest(study, SEED)[:16]}.sqlite").unlink()
    with pytest.raises(PartyError, match="east has withdrawn"):
        federation.run(study, SEED)
