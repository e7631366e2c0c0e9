"""What comes after the first release: folders put back from a copy, moved elsewhere, restored by an approval."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from organisations import COORDINATOR, Organisations, agreed_nodes
from syndic.cli.main import cli
from syndic.errors import IntegrityError, RefusedError
from syndic.federation.coordinator import Coordinator
from syndic.federation.party import accept, check_site, connection_of, prepare, workspace_of
from syndic.kernel import Nothing, Reply
from syndic.privacy import Ledger
from syndic.runtime import Local
from syndic.study import PartyFolder, Study
from syndic.study.run import run_study
from syndic.study.study_folder import StudyFolder


@pytest.fixture
def organisations(tmp_path: Path) -> Iterator[Organisations]:
    made = Organisations(tmp_path)
    yield made
    for node in made.open:
        node.close()


def released(organisations: Organisations, study: Study) -> str:
    """Run a study; return the head of north's ledger afterwards."""
    runtime = Local(agreed_nodes(study, organisations.homes))
    try:
        run_study(study, runtime, identity=COORDINATOR)
    finally:
        runtime.close()
    with Ledger.open(organisations.home.ledger) as ledger:
        return ledger.head()


def verified(home: PartyFolder, head: str) -> tuple[int, str]:
    """Return what `syndic ledger verify` says with a head that was noted elsewhere."""
    result = CliRunner().invoke(cli, ["ledger", "verify", str(home.ledger), "--published", head], prog_name="syndic")
    return result.exit_code, f"{result.output}{result.exception or ''}"


def put_back(copy: Path, folder: Path) -> None:
    shutil.rmtree(folder)
    shutil.copytree(copy, folder)


def test_a_ledger_that_is_older_than_a_noted_head_is_noticed(organisations: Organisations, tmp_path: Path) -> None:
    home = organisations.home
    first = released(organisations, organisations.study)
    shutil.copytree(home.folder, tmp_path / "copy")
    second = released(organisations, replace(organisations.study, name="another"))
    assert verified(home, first)[0] == verified(home, second)[0] == 0
    put_back(tmp_path / "copy", home.folder)
    assert verified(home, first)[0] == 0, "the copy is whole, and by itself says nothing"
    code, text = verified(home, second)
    assert code != 0
    assert f"no entry has the published digest {second}" in text


def test_a_ledger_that_is_older_than_its_answers_draws_no_new_noise(
    organisations: Organisations, tmp_path: Path
) -> None:
    home = organisations.home
    nodes = organisations.nodes()
    organisations.meet(nodes)
    for node in nodes.values():
        node.close()
    shutil.copy(home.ledger, tmp_path / "copy")
    assert asked_once(organisations).code == "ok"
    shutil.copy(home.ledger, tmp_path / "newest")
    shutil.copy(tmp_path / "copy", home.ledger)
    before = organisations.entries()
    with pytest.raises(
        RefusedError, match="the ledger of north went back in time: it has 0 answers of this study, 1 were given"
    ):
        home.agreed_node(organisations.run)
    assert organisations.entries() == before, "nothing is charged"
    shutil.copy(tmp_path / "newest", home.ledger)
    assert asked_once(organisations).code == "ok"


@pytest.mark.parametrize("noted", [b"", b"-1", b'{"number": 99999999, "digest": ""}', b'{"number": 0, "digest": "a"}'])
def test_a_note_that_does_not_fit_the_ledger_is_no_permission(organisations: Organisations, noted: bytes) -> None:
    nodes = organisations.nodes()
    for node in nodes.values():
        node.close()
    (StudyFolder.of(organisations.home.folder, organisations.run).folder / "head.json").write_bytes(noted)
    with pytest.raises(RefusedError, match=r"went back in time|head\.json .* is damaged"):
        organisations.home.agreed_node(organisations.run)


def test_a_run_that_was_forgotten_draws_no_new_noise(organisations: Organisations) -> None:
    nodes = organisations.nodes()
    organisations.meet(nodes)
    for node in nodes.values():
        node.close()
    assert asked_once(organisations).code == "ok"
    charged = organisations.entries()
    organisations.home.forget(organisations.run)
    nodes = organisations.nodes()
    organisations.meet(nodes)
    for node in nodes.values():
        node.close()
    again = asked_once(organisations)
    assert (again.code, again.body) == ("refused", b"")
    assert "stored answer was deleted" in again.text
    kinds = [entry.kind for entry in organisations.entries()[len(charged) :]]
    assert set(kinds) == {"agree", "call"}, "the refusal is logged, nothing more is charged"


def test_a_whole_folder_put_back_elsewhere_gives_the_same_answer(organisations: Organisations, tmp_path: Path) -> None:
    nodes = organisations.nodes()
    organisations.meet(nodes)
    for node in nodes.values():
        node.close()
    first = asked_once(organisations)
    charged = [entry for entry in organisations.entries() if entry.kind == "reserve"]
    shutil.move(organisations.home.folder, tmp_path / "elsewhere")
    organisations.home = organisations.homes["north"] = PartyFolder(folder=tmp_path / "elsewhere")
    assert asked_once(organisations) == first
    assert [entry for entry in organisations.entries() if entry.kind == "reserve"] == charged
    assert first.code == "ok"
    assert charged


def asked_once(organisations: Organisations) -> Reply:
    """Open north, ask for its release, and close it."""
    node = organisations.home.agreed_node(organisations.run)
    try:
        return organisations.ask(node, "sanitise", Nothing())
    finally:
        node.close()


@pytest.fixture
def admitted(tmp_path: Path) -> tuple[Coordinator, Path]:
    coordinator = Coordinator.create(tmp_path / "before" / "coordinator", name="health", host="127.0.0.1", port=1)
    home = tmp_path / "before" / "north"
    accept(home, coordinator.approve(prepare(home, name="north")))
    (home / "party.toml").write_text(
        'name = "north"\ndataset = "patients"\nsource = { path = "rows.csv" }\ncap = { epsilon = 1 }\n'
    )
    return coordinator, home


def test_folders_go_elsewhere(admitted: tuple[Coordinator, Path], tmp_path: Path) -> None:
    coordinator, home = admitted
    listed, root = coordinator.admitted(), coordinator.root.read_bytes()
    shutil.move(tmp_path / "before", tmp_path / "after")
    moved = Coordinator.open(tmp_path / "after" / "coordinator")
    assert (moved.admitted(), moved.root.read_bytes()) == (listed, root)
    assert check_site(tmp_path / "after" / "north").party == "north"
    moved.approve(prepare(tmp_path / "after" / home.name, name="north", renew=True))
    files = [path for path in (tmp_path / "after").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if str(tmp_path / "before").encode() in path.read_bytes()]
    resources = (moved.workspace / "local" / "resources.json").read_text()
    assert str(moved.workspace / "relay.sock") in resources


def test_the_servers_kit_is_left_alone_where_it_was_made(admitted: tuple[Coordinator, Path]) -> None:
    resources = admitted[0].workspace / "local" / "resources.json"
    changed = resources.read_text().replace('"max_num_clients": 1000', '"max_num_clients": 7')
    resources.write_text(changed)
    Coordinator.open(admitted[0].folder)
    assert resources.read_text() == changed
    assert '"max_num_clients": 7' in changed


def test_an_approval_accepted_again_restores_the_policy(admitted: tuple[Coordinator, Path]) -> None:
    home = admitted[1]
    startup = workspace_of(home) / "startup"
    before = {path.name: path.read_bytes() for path in startup.iterdir()}
    (workspace_of(home) / "local" / "authorization.json").write_text("{}")
    with pytest.raises(IntegrityError, match="accept the approval again"):
        check_site(home)
    accept(home, connection_of(home))
    assert check_site(home).party == "north"
    assert {path.name: path.read_bytes() for path in startup.iterdir()} == before
