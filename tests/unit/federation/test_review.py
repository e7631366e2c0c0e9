"""Papers and processes of a site, seen by somebody who wants to take another's place or leave no trace."""

import hashlib
import socket
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from organisations import agreed_nodes, homes_for
from support import study_text, two_parties
from syndic.cli.main import cli
from syndic.document import from_json, to_json
from syndic.errors import InputError, IntegrityError, RefusedError
from syndic.federation.coordinator import Coordinator
from syndic.federation.party import prepare
from syndic.federation.requests import Request
from syndic.kernel import Reply, decode
from syndic.privacy import Ledger
from syndic.privacy.audit import AuditLog
from syndic.runtime.frame import receive_frame, send_frame
from syndic.study import Study, serve
from syndic.study.agreement import withdraw


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory: pytest.TempPathFactory) -> Coordinator:
    folder = tmp_path_factory.mktemp("review")
    made = Coordinator.create(folder / "coordinator", name="health", host="127.0.0.1", port=1)
    made.approve(prepare(folder / "north", name="north"))
    return made


@pytest.mark.parametrize("name", ["server", "syndic-server", "Server"])
def test_no_party_is_called_like_the_server(coordinator: Coordinator, tmp_path: Path, name: str) -> None:
    """The engine tells who is the server by these names."""
    with pytest.raises(InputError, match="belongs to the server"):
        prepare(tmp_path, name=name)
    honest = (coordinator.folder.parent / "north" / "request.json").read_text()
    with pytest.raises(InputError, match="belongs to the server"):
        from_json(honest.replace('"north"', f'"{name}"'), Request, where="request.json")


@pytest.mark.parametrize("name", ["north", "North"])
def test_nobody_takes_the_place_of_a_party_on_the_list(coordinator: Coordinator, tmp_path: Path, name: str) -> None:
    before = to_json(coordinator.admitted())
    with pytest.raises(InputError, match="north is admitted with another identity"):
        coordinator.approve(prepare(tmp_path / "other", name=name))
    assert to_json(coordinator.admitted()) == before


def test_a_party_on_the_list_renews(coordinator: Coordinator) -> None:
    (before,) = coordinator.admitted()
    coordinator.approve(prepare(coordinator.folder.parent / "north", name="north", renew=True))
    (after,) = coordinator.admitted()
    assert after.identity == before.identity
    assert after.certificate_sha256 != before.certificate_sha256 == after.former_sha256


def test_a_call_about_a_withdrawn_study_is_in_the_owners_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study, homes = homes_for(Study.loads(study_text()), two_parties(), tmp_path)
    for node in agreed_nodes(study, homes).values():
        node.close()
    withdraw(homes["north"], study.digest, why="asked by the privacy officer")
    here, there = socket.socketpair()
    options = ["--home", str(homes["north"].folder), "--study", study.digest, "--socket", str(there.detach())]
    monkeypatch.setattr(sys, "argv", ["syndic.study.serve", *options])
    with here:
        send_frame(here, b"whatever was asked")
        serve.main()
        answered = receive_frame(here, most=10**6)
    assert answered is not None
    assert (decode(answered, Reply).code, "has withdrawn" in decode(answered, Reply).text) == ("refused", True)
    with Ledger.open(homes["north"].ledger) as ledger:
        ledger.verify()
        (call,) = ledger.calls(study.digest)
    assert (call.asked, call.reply) == (hashlib.sha256(b"whatever was asked").hexdigest(), "refused")
    told = [(one.what, one.allowed, one.why) for one in homes["north"].audit.verify() if one.study == study.digest]
    assert told == [
        ("agree", True, ""),
        ("withdraw", True, "asked by the privacy officer"),
        ("call", False, f"north has withdrawn from study {study.digest[:12]}"),
    ]


def test_a_site_says_that_another_process_took_its_connection(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("nvflare", reason="nvflare is not installed: pip install 'syndic[flare]'")
    from syndic.federation import site  # noqa: PLC0415  # the engine takes seconds to import

    approval = SimpleNamespace(host="127.0.0.1", port=1, party="north")
    monkeypatch.setattr(site, "connection_of", lambda _home: approval)
    made = site.PartySite(str(coordinator.folder.parent / "north"))
    for twice in (False, True):
        monkeypatch.setattr(site, "look", lambda *_, twice=twice, **__: SimpleNamespace(twice=twice))
        made.unheard()
    assert capsys.readouterr().out == ("another process is connected as north, with a copy of this folder: stop one\n")


def test_a_digest_that_only_begins_like_an_agreed_one_starts_no_process(tmp_path: Path) -> None:
    pytest.importorskip("nvflare", reason="nvflare is not installed: pip install 'syndic[flare]'")
    from syndic.federation.site import PartySite  # noqa: PLC0415  # the engine takes seconds to import

    study, homes = homes_for(Study.loads(study_text()), two_parties(), tmp_path)
    for node in agreed_nodes(study, homes).values():
        node.close()
    site = PartySite(str(homes["north"].folder))
    assert site.most(study.digest) == study.limits.message_mb * 10**6
    with pytest.raises(RefusedError, match="north has not agreed"):
        site.most(study.digest[:16] + 48 * "0")
    assert [one.allowed for one in homes["north"].audit.verify()] == [True, False]


def test_a_refused_join_is_recorded_in_a_party_folder_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, home = tmp_path / "plain", tmp_path / "home"
    for folder in (plain, home):
        folder.mkdir()
    for folder in (tmp_path / "none", plain):
        told = CliRunner().invoke(cli, ["join", str(folder)])
        assert "not admitted yet" in str(told.exception)
    assert not list(plain.iterdir())
    (home / "party.toml").write_text("")

    def changed(_home: Path) -> None:
        raise IntegrityError("a file of the kit was changed")

    monkeypatch.setattr("syndic.federation.party.check_site", changed)
    assert isinstance(CliRunner().invoke(cli, ["join", str(home)]).exception, IntegrityError)
    (record,) = AuditLog(home).records()
    assert (record.what, record.allowed, record.why) == ("join", False, "a file of the kit was changed")


def test_a_site_goes_on_when_it_cannot_ask_about_another_process(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread also notices a server with a new key: it must not end with a certificate that is being renewed."""
    pytest.importorskip("nvflare", reason="nvflare is not installed: pip install 'syndic[flare]'")
    from nvflare.fuel.f3.cellnet.defs import ReturnCode  # noqa: PLC0415

    from syndic.federation import site  # noqa: PLC0415  # the engine takes seconds to import

    class Ended(BaseException):
        """Ends the thread's loop."""

    def lost(_self: object) -> None:
        raise Ended

    made = site.PartySite(str(coordinator.folder.parent / "north"))
    monkeypatch.setattr(made, "_cell", SimpleNamespace(get_fqcn=lambda: "north"))
    monkeypatch.setattr(made, "_asked", lambda _on, _about, headers: ReturnCode.OK if headers else ReturnCode.TIMEOUT)
    monkeypatch.setattr(site.PartySite, "lost", lost)
    monkeypatch.setattr("syndic.runtime.flare.site._LOOK_SECONDS", 0.0)
    with pytest.raises(Ended):
        made._stay_known()
