"""Requests, approvals, certificates, kits and the doctor, without a running engine."""

import datetime
import json
import stat
import time
from pathlib import Path
from typing import Self

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.hashes import SHA256
from msgspec.structs import replace

from organisations import named
from support import study_text
from syndic.cli.main import cli
from syndic.document import from_json, to_json
from syndic.errors import InputError, IntegrityError
from syndic.federation import certificate as certificates
from syndic.federation.coordinator import Coordinator
from syndic.federation.doctor import examine
from syndic.federation.flare_config import SITE_CLASS
from syndic.federation.party import accept, check_site, prepare, workspace_of
from syndic.federation.requests import Request
from syndic.federation.run import check_list
from syndic.study import Study
from syndic.study.draft_text import READ

PARTY = 'name = "north"\ndataset = "patients"\nsource = { path = "rows.csv" }\ncap = { epsilon = 1 }\n'


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Coordinator, Path]:
    """A coordinator and a party that it has admitted."""
    folder = tmp_path_factory.mktemp("papers")
    coordinator = Coordinator.create(folder / "coordinator", name="health", host="127.0.0.1", port=1)
    home = folder / "north"
    accept(home, coordinator.approve(prepare(home, name="north")))
    (home / "party.toml").write_text(PARTY)
    return coordinator, home


def test_only_the_public_half_travels(made: tuple[Coordinator, Path]) -> None:
    coordinator, home = made
    key = certificates.read_key(workspace_of(home) / "startup" / "client.key")
    secret = key.private_numbers().d.to_bytes(384).hex()
    sent = (home / "request.json").read_text() + (home / "connection.json").read_text()
    assert "PRIVATE" not in sent
    everything = b"".join(path.read_bytes() for path in coordinator.folder.rglob("*") if path.is_file())
    assert secret not in sent
    assert (workspace_of(home) / "startup" / "client.key").read_bytes() not in everything
    identity = json.loads((home / "identity.key").read_text())
    assert identity["signing"] not in sent
    assert identity["signing"].encode() not in everything


def test_private_files_are_the_owners_alone(made: tuple[Coordinator, Path]) -> None:
    coordinator, home = made
    keys = [coordinator.folder / "authority" / "root.key", coordinator.workspace / "startup" / "server.key"]
    keys += [workspace_of(home) / "startup" / "client.key", home / "identity.key"]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in keys)
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o700 for path in (coordinator.folder, home, workspace_of(home)))


def test_the_certificate_says_who_and_nothing_else(made: tuple[Coordinator, Path]) -> None:
    coordinator, home = made
    signed = certificates.read_certificate((workspace_of(home) / "startup" / "client.crt").read_bytes(), "it")
    root = certificates.read_certificate(coordinator.root.read_bytes(), "root")
    signed.verify_directly_issued_by(root)
    assert signed.subject.rfc4514_string() == "CN=north"
    entry = coordinator.admitted()[0]
    assert entry.certificate_sha256 == signed.fingerprint(SHA256()).hex()


def test_a_request_is_for_its_own_name_and_key(made: tuple[Coordinator, Path], tmp_path: Path) -> None:
    coordinator, _ = made
    request = prepare(tmp_path / "south", name="south")
    with pytest.raises(InputError, match="is not for 'north'"):
        coordinator.approve(replace(request, party="north"))
    lines = request.certificate_request.splitlines()
    lines[3] = lines[3][::-1]
    with pytest.raises(InputError, match="certificate request"):
        coordinator.approve(replace(request, certificate_request="\n".join(lines)))
    with pytest.raises(InputError, match="identity"):
        from_json(to_json(request).replace(b"sy1-", b"sy1-a"), type(request), where="request")
    assert [one.party for one in coordinator.admitted()] == ["north"]


def test_an_approval_for_another_key_or_root_is_not_accepted(made: tuple[Coordinator, Path], tmp_path: Path) -> None:
    coordinator, _ = made
    home = tmp_path / "south"
    first = coordinator.approve(prepare(home, name="south"))
    prepare(home, name="south")
    with pytest.raises(InputError, match="another key"):
        accept(home, first)
    accept(home, coordinator.approve(from_json((home / "request.json").read_bytes(), Request, where="it")))
    with pytest.raises(InputError, match="add --renew"):
        prepare(home, name="south")
    other = Coordinator.create(tmp_path / "other", name="health", host="127.0.0.1", port=1)
    with pytest.raises(InputError, match="another root"):
        accept(home, other.approve(prepare(home, name="south", renew=True)))
    with pytest.raises(InputError, match="never overwritten"):
        Coordinator.create(tmp_path / "other", name="health", host="127.0.0.1", port=1)
    coordinator.remove("south")


def test_the_policy_is_checked_at_every_start(made: tuple[Coordinator, Path]) -> None:
    _, home = made
    assert check_site(home).party == "north"
    local = workspace_of(home) / "local"
    resources = json.loads((local / "resources.json").read_text())
    assert resources["class_allow_list"] == [SITE_CLASS]
    assert resources["allow_log_streaming"] is False
    policy = json.loads((local / "authorization.json").read_text())
    assert set(policy["permissions"].values()) == {"none"}
    text = (local / "authorization.json").read_text()
    (local / "authorization.json").write_text(text.replace('"none"', '"any"'))
    with pytest.raises(IntegrityError, match="authorization"):
        check_site(home)
    (local / "authorization.json").write_text(text)
    (local / "custom").mkdir()
    with pytest.raises(IntegrityError, match="custom"):
        check_site(home)
    (local / "custom").rmdir()


def test_the_doctor_names_what_is_wrong(made: tuple[Coordinator, Path]) -> None:
    coordinator, home = made
    found = {one.what: one for one in examine(home)}
    assert found["port"].state == "bad"
    assert found["certificate"].state == found["kit, key and policy"].state == "good"
    (home / "party.toml").write_text(PARTY.replace("north", "south"))
    assert "belongs to 'south'" in {one.what: one for one in examine(home)}["kit, key and policy"].found
    (home / "party.toml").write_text(PARTY)
    server = {one.what: one for one in examine(coordinator.folder)}
    assert server["server"].state == "bad"
    assert "not running" in server["server"].found
    with pytest.raises(InputError, match="neither"):
        examine(home / "flare")


def test_the_doctor_names_an_unknown_host_and_a_wrong_clock(
    made: tuple[Coordinator, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator, _ = made
    home = tmp_path / "west"
    approval = coordinator.approve(prepare(home, name="west"))
    accept(home, replace(approval, host="no-such-host.invalid"))
    coordinator.remove("west")
    assert "does not resolve" in {one.what: one for one in examine(home)}["name"].found

    class Yesterday(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Self:
            return cls.fromtimestamp(time.time() - 86400, tz)

    monkeypatch.setattr("syndic.federation.doctor.datetime.datetime", Yesterday)
    clock = {one.what: one for one in examine(home)}["clock"]
    assert clock.state == "bad"
    assert clock.advice == "set this machine's clock"


@pytest.mark.parametrize(("days", "state"), [(0, "bad"), (10, "look")])
def test_the_doctor_sees_dates(made: tuple[Coordinator, Path], days: int, state: str) -> None:
    coordinator, home = made
    accept(home, coordinator.approve(prepare(home, name="north", renew=True), days=10))
    signed = certificates.make_certificate(
        "north",
        certificates.read_key(workspace_of(home) / "startup" / "client.key").public_key(),
        root=certificates.read_certificate(coordinator.root.read_bytes(), "root"),
        root_key=certificates.read_key(coordinator.folder / "authority" / "root.key"),
        host=None,
        days=days,
    )
    (workspace_of(home) / "startup" / "client.crt").write_text(certificates.pem(signed))
    assert {one.what: one for one in examine(home)}["certificate"].state == state
    if state == "bad":
        with pytest.raises(InputError, match="renew"):
            check_site(home)


def test_a_study_with_strangers_or_other_identities_is_not_run(made: tuple[Coordinator, Path]) -> None:
    coordinator, _ = made
    study = Study.loads(study_text())
    with pytest.raises(InputError, match="south: not admitted by this coordinator"):
        check_list(study, coordinator)
    alone = replace(study, parties=(study.parties[0],))
    with pytest.raises(InputError, match="identity that was approved"):
        check_list(alone, coordinator)
    known = coordinator.admitted()[0].identity
    identified = replace(alone, parties=(replace(study.parties[0], identity=known),))
    with pytest.raises(InputError, match="must name its coordinator"):
        check_list(identified, coordinator)
    with pytest.raises(InputError, match=f"names another coordinator.*{coordinator.identity.public}"):
        check_list(named(identified), coordinator)
    check_list(named(identified, coordinator.identity), coordinator)


ALIKE = study_text(parties="") + '\n[coordinator]\nidentity = "another"\n'
SPLIT = study_text(
    unit='neighbours = "replace"',
    budget="epsilon = 10\ndelta = 1e-5",
    protocol='method = "synthesis"',
    parties='[[parties]]\nname = "west"\npeople = 60\n# its own\nbudget = { epsilon = 5, delta = 1e-6 }\n',
)


def test_a_study_is_filled_with_the_parties_that_joined(
    made: tuple[Coordinator, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator, _ = made
    coordinator.approve(prepare(tmp_path / "west", name="west"))
    known = {one.party: one.identity for one in coordinator.admitted()}
    monkeypatch.chdir(tmp_path)

    def fill(draft: str, *words: str) -> Study:
        Path("draft.toml").write_text(draft)
        Path("study.toml").unlink(missing_ok=True)
        command = ["coordinator", "fill", "draft.toml", "--home", str(coordinator.folder), *words]
        CliRunner().invoke(cli, command, catch_exceptions=False)
        filled = Study.load("study.toml")
        check_list(filled, coordinator)
        return filled

    try:
        # different people: all who joined
        alike = fill(ALIKE, "--people", "north=1500")
        assert {one.name: (one.people, one.identity) for one in alike.parties} == {
            "north": (1500, known["north"]),
            "west": (None, known["west"]),
        }
        # same people: the draft's own parties keep what they have
        split = fill(SPLIT, "--people", "north=60", "--columns", "north=age,score", "--columns", "west=colour")
        assert [(one.name, one.people, one.columns) for one in split.parties] == [
            ("west", 60, ("colour",)),
            ("north", 60, ("age", "score")),
        ]
        assert split.parties[0].budget is not None
        assert fill(Path("study.toml").read_text()) == split
        with pytest.raises(InputError, match=r"study\.toml exists"):
            CliRunner().invoke(
                cli,
                ["coordinator", "fill", "draft.toml", "--home", str(coordinator.folder)],
                catch_exceptions=False,
            )
        Path("draft.toml").write_bytes(b"\x8a")
        with pytest.raises(InputError, match="not UTF-8"):
            CliRunner().invoke(
                cli, ["coordinator", "fill", "draft.toml", "--home", str(coordinator.folder)], catch_exceptions=False
            )
        for text, words, told in (
            (ALIKE, ("--people", "east=9"), "east: not admitted"),
            ("", (), "name"),
            (SPLIT.replace("people = 60", f"people = 60  {READ}"), (), "private draft"),
            (f"parties = []\n{ALIKE}", (), "must be tables|cannot be read or filled"),
            (SPLIT.replace("# its own", 'columns = [\n  "age",\n]'), ("--columns", "west=colour"), "stand on one line"),
        ):
            with pytest.raises(InputError, match=told):
                fill(text, *words)
    finally:
        coordinator.remove("west")
