"""Who is not admitted: strangers, wrong keys, expired and replaced certificates, plain text, removed parties."""

import json
import shutil
import socket
import ssl
import time
from pathlib import Path

import psutil
import pytest
from cryptography.hazmat.primitives.hashes import SHA256

from federation import Federation, wait_until
from syndic.errors import InputError, IntegrityError
from syndic.federation import certificate as certificates
from syndic.federation.coordinator import Coordinator
from syndic.federation.doctor import examine
from syndic.federation.party import accept, check_site, prepare, workspace_of

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"


def greeted(federation: Federation, certificate: Path | None, key: Path | None) -> bool:
    """Tell whether the server speaks to somebody with this certificate: its first frame comes unasked."""
    root = workspace_of(federation.home("north")) / "startup" / "rootCA.pem"
    context = ssl.create_default_context(cafile=str(root))
    context.set_alpn_protocols(["h2"])
    if certificate is not None:
        context.load_cert_chain(certificate, key)
    try:
        with (
            socket.create_connection((federation.host, federation.port), timeout=60) as plain,
            context.wrap_socket(plain, server_hostname=federation.host) as line,
        ):
            line.sendall(PREFACE)
            return len(line.recv(9)) == 9
    except (ssl.SSLError, ConnectionError):
        return False


def refused_twice(federation: Federation, name: str) -> None:
    """Wait until the server has refused a site twice more."""
    refused = f"a site that calls itself '{name}' was refused"
    before = federation.log("server").count(refused)
    wait_until(lambda: federation.log("server").count(refused) >= before + 2)


def issued(coordinator: Coordinator, folder: Path, *, days: int = 30, name: str = "north") -> tuple[Path, Path]:
    """A certificate that this coordinator's root signs."""
    key = certificates.new_key()
    signed = certificates.make_certificate(
        name,
        key.public_key(),
        root=certificates.read_certificate(coordinator.root.read_bytes(), "root"),
        root_key=certificates.read_key(coordinator.folder / "authority" / "root.key"),
        host=None,
        days=days,
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "made.crt").write_text(certificates.pem(signed))
    certificates.write_key(folder / "made.key", key)
    return folder / "made.crt", folder / "made.key"


def test_a_certificate_of_the_root_is_greeted(federation: Federation, tmp_path: Path) -> None:
    assert greeted(federation, *issued(federation.coordinator, tmp_path))


def test_a_site_of_another_root_is_refused(federation: Federation, tmp_path: Path) -> None:
    other = Coordinator.create(tmp_path / "other", name="health", host="127.0.0.1", port=1)
    assert not greeted(federation, *issued(other, tmp_path))


def test_a_site_without_a_certificate_is_refused(federation: Federation) -> None:
    assert not greeted(federation, None, None)


def test_an_expired_certificate_is_refused(federation: Federation, tmp_path: Path) -> None:
    # made an hour ago by its dates, and over since half of it
    certificate, key = issued(federation.coordinator, tmp_path, days=0)
    assert not greeted(federation, certificate, key)


def test_a_certificate_with_another_key_is_refused(federation: Federation, tmp_path: Path) -> None:
    certificate, _ = issued(federation.coordinator, tmp_path / "one")
    _, other = issued(federation.coordinator, tmp_path / "two")
    with pytest.raises(ssl.SSLError, match="KEY_VALUES_MISMATCH"):
        greeted(federation, certificate, other)
    # and a site with such a pair does not start
    home = tmp_path / "home"
    shutil.copytree(federation.home("south"), home, ignore=shutil.ignore_patterns("tmp", "*.log*", "*.sqlite*"))
    shutil.copy(other, workspace_of(home) / "startup" / "client.key")
    found = {one.what: one for one in examine(home)}
    assert found["kit, key and policy"].state == "bad"


def test_plain_text_is_refused(federation: Federation) -> None:
    sites = [psutil.Process(federation.processes[name].pid) for name in ("server", "north")]
    ports = {one.laddr.port for site in sites for one in site.net_connections("tcp") if one.status == "LISTEN"}
    assert federation.port in ports
    for port in ports:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as line:
            line.sendall(PREFACE)
            line.settimeout(5)
            try:
                heard = line.recv(1000)
            except (ConnectionError, TimeoutError):
                heard = b""
        # at most a TLS alert: record type 21
        assert not heard or heard[0] == 21, f"port {port} answered in plain text"


def test_the_engine_writes_inside_its_own_folder(federation: Federation) -> None:
    for name, folder in (("server", federation.coordinator.folder), ("north", federation.home("north"))):
        files = psutil.Process(federation.processes[name].pid).open_files()
        written = [Path(one.path) for one in files if one.mode != "r"]
        assert written
        output = federation.folder / f"{name}.out"
        assert [path for path in written if folder not in path.parents and path != output] == []


def test_a_changed_policy_keeps_the_site_from_starting(federation: Federation) -> None:
    local = workspace_of(federation.home("south")) / "local"
    resources = local / "resources.json"
    before = resources.read_text()
    changed = json.loads(before)
    changed["allow_log_streaming"] = True
    try:
        resources.write_text(json.dumps(changed))
        with pytest.raises(IntegrityError, match="is not as `syndic party accept` wrote it"):
            check_site(federation.home("south"))
    finally:
        resources.write_text(before)
    extra = local / "more__resources.json"
    extra.write_text("{}")
    try:
        with pytest.raises(IntegrityError, match="this file is not ours"):
            check_site(federation.home("south"))
    finally:
        extra.unlink()
    assert check_site(federation.home("south")).party == "south"


def test_a_removed_party_is_dropped_and_refused_and_can_be_admitted_again(federation: Federation) -> None:
    federation.coordinator.remove("east")
    try:
        wait_until(lambda: "east" not in federation.connected())
        with pytest.raises(InputError, match="is not admitted"):
            federation.coordinator.remove("east")
        # it comes back by itself, again and again: the list refuses it although its certificate is good
        refused_twice(federation, "east")
        assert "east" not in federation.connected()
    finally:
        federation.admit("east", renew=True)
        federation.restart("east")
    assert "east" in federation.connected()


def test_a_renewed_certificate_takes_over_from_the_old_one(federation: Federation) -> None:
    startup = workspace_of(federation.home("south")) / "startup"
    old = (startup / "client.crt").read_bytes()
    request = prepare(federation.home("south"), name="south", renew=True)
    assert (startup / "client.crt").read_bytes() == old, "the old one serves until the new one is accepted"
    approval = federation.coordinator.approve(request, days=30)
    time.sleep(12)
    assert "south" in federation.connected(), "more than a heartbeat later"
    accept(federation.home("south"), approval)
    federation.restart("south")
    assert "south" in federation.connected()
    listed = json.loads((federation.coordinator.workspace / "admitted.json").read_text())["south"]
    new = certificates.read_certificate((startup / "client.crt").read_bytes(), "new")
    assert listed == [
        new.fingerprint(SHA256()).hex(),
        certificates.read_certificate(old, "old").fingerprint(SHA256()).hex(),
    ]


def test_after_a_removal_the_old_certificate_stays_refused(federation: Federation) -> None:
    federation.coordinator.remove("south")
    request = prepare(federation.home("south"), name="south", renew=True)
    approval = federation.coordinator.approve(request, days=30)
    # the site goes on with its old certificate and its old token: the name is listed, they are not
    refused_twice(federation, "south")
    assert "south" not in federation.connected()
    accept(federation.home("south"), approval)
    federation.restart("south")
    assert "south" in federation.connected()
