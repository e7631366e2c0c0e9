"""Several runs in one folder: a ledger that was lost stays lost, and what is refused leaves the folder as it was."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from support import charges, study_text, two_parties
from syndic import Study, simulate
from syndic.errors import IntegrityError, PartyError
from syndic.study import PartyFolder
from syndic.study.study_folder import linked, write_whole


def study(edition: int = 1) -> Study:
    return Study.loads(study_text(top=f"edition = {edition}"))


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of the parties, but for their logs and databases."""
    return {str(path): path.read_bytes() for path in folder.glob("parties/*/*.json*")}


def party_file(folder: Path, name: str, cap: float) -> Path:
    """Write a party's rows and its party file."""
    pq.write_table(two_parties()[name], folder / f"{name}.parquet")
    path = folder / f"{name}-party.toml"
    path.write_text(
        f'name = "{name}"\ndataset = "people of {name}"\nsource = {{ path = "{name}.parquet" }}\n'
        f"cap = {{ epsilon = {cap} }}\n"
    )
    return path


@pytest.mark.parametrize("edition", [1, 2])
@pytest.mark.parametrize("left", [None, b""])
@pytest.mark.parametrize("journal", [True, False])
def test_a_lost_ledger_is_not_replaced(edition: int, left: bytes | None, journal: bool, tmp_path: Path) -> None:
    simulate(study(), two_parties(), folder=tmp_path)
    ledger = tmp_path / "parties" / "south" / "ledger.sqlite"
    for path in [ledger, *([] if journal else tmp_path.glob("coordinator/*"))]:
        path.unlink()
    if left is not None:
        ledger.write_bytes(left)
    before = contents(tmp_path)
    with pytest.raises(IntegrityError, match=r"south/ledger\.sqlite: the ledger .* missing or empty: restore"):
        simulate(study(edition), two_parties(), folder=tmp_path)
    assert contents(tmp_path) == before
    with pytest.raises(IntegrityError, match="missing or empty"):
        PartyFolder(folder=ledger.parent).node(seed=None)
    assert len(charges(tmp_path, "north")) == 1


@pytest.mark.parametrize("file", ["study.json", "party.json"])
def test_a_first_run_that_was_killed_begins_again(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(path: Path, content: bytes | Path) -> bool:
        if path.parent.name == "south" and path.name == file:
            raise KeyboardInterrupt
        if isinstance(content, Path):
            return linked(path, content)
        write_whole(path, content)
        return True

    for writes in ("write_whole", "linked"):
        monkeypatch.setattr(f"syndic.study.party_folder.{writes}", killed)
    with pytest.raises(KeyboardInterrupt):
        simulate(study(), two_parties(), folder=tmp_path)
    monkeypatch.undo()
    simulate(study(), two_parties(), folder=tmp_path)
    assert len(charges(tmp_path, "south")) == 1


@pytest.mark.parametrize("links", [True, False])
def test_a_refused_study_leaves_the_parties_files(links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not links:
        monkeypatch.setattr("syndic.study.party_folder.linked", lambda *_: False)
    simulate(study(), two_parties(), folder=tmp_path)
    before = contents(tmp_path)
    with pytest.raises(PartyError, match="the cap is used up"):
        simulate(study(2), two_parties(), folder=tmp_path)
    assert contents(tmp_path) == before


def test_a_cap_that_was_declared_for_a_refused_study_is_known_later(tmp_path: Path) -> None:
    def given(*caps: float) -> dict[str, Path]:
        return {name: party_file(tmp_path, name, cap) for name, cap in zip(("north", "south"), caps, strict=True)}

    simulate(study(), given(3, 1), folder=tmp_path)
    with pytest.raises(PartyError, match="south"):
        simulate(study(2), given(1.5, 1), folder=tmp_path)
    # the owner's last word is 1.5; to say 3 again changes the cap, and is not taken for the old file
    north = PartyFolder(folder=tmp_path / "parties" / "north")
    assert PartyFolder.cap(north, "people of north") == north.known().cap  # type: ignore[union-attr]
    simulate(study(2), given(3, 2), folder=tmp_path)
    assert len(charges(tmp_path, "north")) == 2
