"""Root and issuing authority: passphrases, a root that is elsewhere, other authorities, replaced keys, tokens."""

import json
import ssl
import subprocess
import threading
from itertools import count
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from syndic.cli.main import cli
from syndic.errors import InputError
from syndic.federation import certificate as certificates
from syndic.federation import coordinator as coordinators
from syndic.federation.authority import TokenKey
from syndic.federation.coordinator import Coordinator
from syndic.federation.party import accept, check_site, prepare, workspace_of
from syndic.federation.requests import Request
from syndic.study.study_folder import write_whole

PARTY = 'name = "{}"\ndataset = "people"\nsource = {{ path = "rows.csv" }}\ncap = {{ epsilon = 2, delta = 1e-6 }}\n'
SOFTHSM = next((path for path in Path("/usr/lib").glob("**/libsofthsm2.so")), None)


POOL: list[rsa.RSAPrivateKey] = []


@pytest.fixture(autouse=True)
def small_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small keys, the same in every test and never twice in one: most of the time here is spent making them."""
    taken = count()

    def take() -> rsa.RSAPrivateKey:
        place = next(taken)
        if place == len(POOL):
            POOL.append(rsa.generate_private_key(public_exponent=65537, key_size=2048))
        return POOL[place]

    monkeypatch.setattr(certificates, "_KEY_BITS", 2048)
    monkeypatch.setattr(certificates, "new_key", take)


@pytest.fixture
def coordinator(tmp_path: Path) -> Coordinator:
    return Coordinator.create(tmp_path / "c", name="health", host="127.0.0.1", port=8002)


def admitted(coordinator: Coordinator, home: Path) -> Path:
    accept(home, coordinator.approve(prepare(home, name=home.name)))
    (home / "party.toml").write_text(PARTY.format(home.name))
    return workspace_of(home) / "startup"


def connects(server: Path, site: Path) -> bool:
    """Return whether the two trust each other in a TLS handshake with certificates on both sides."""
    ours, theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    ours.load_cert_chain(server / "server.crt", server / "server.key")
    theirs.load_cert_chain(site / "client.crt", site / "client.key")
    ours.load_verify_locations(server / "rootCA.pem")
    theirs.load_verify_locations(site / "rootCA.pem")
    ours.verify_mode = ssl.CERT_REQUIRED
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [ours.wrap_bio(up, down, server_side=True), theirs.wrap_bio(down, up, server_hostname="127.0.0.1")]
    try:
        for _ in range(6):
            for end in ends:
                try:
                    end.do_handshake()
                except ssl.SSLWantReadError:
                    continue
    except ssl.SSLError:
        return False
    return ends[0].getpeercert() is not None


def test_a_root_key_with_a_passphrase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Coordinator.create(tmp_path / "c", name="health", host="127.0.0.1", port=1, passphrase="long enough")
    key = (tmp_path / "c" / "authority" / "root.key").read_text()
    assert "ENCRYPTED PRIVATE KEY" in key
    request = prepare(tmp_path / "north", name="north")
    with pytest.raises(InputError, match="SYNDIC_PASSPHRASE"):
        Coordinator.open(made.folder).approve(request)
    with pytest.raises(InputError, match="passphrase is wrong"):
        Coordinator.open(made.folder, ask=lambda _what: "no").approve(request)
    monkeypatch.setenv("SYNDIC_PASSPHRASE", "long enough")
    accept(tmp_path / "north", Coordinator.open(made.folder).approve(request))


def test_the_root_key_can_be_elsewhere(coordinator: Coordinator, tmp_path: Path) -> None:
    """An issuing authority signs; it is replaced by another; what the first one signed still counts."""
    server = coordinator.workspace / "startup"
    key = coordinator.folder / "authority" / "root.key"
    old = admitted(coordinator, tmp_path / "old")
    coordinator.appoint()
    away = key.rename(tmp_path / "safe.key")
    coordinator.renew()
    one = admitted(coordinator, tmp_path / "one")
    assert len(certificates.read_chain((one / "client.crt").read_bytes(), "it")) == 2
    with pytest.raises(InputError, match="bring it back"):
        coordinator.appoint()
    away.rename(key)
    coordinator.appoint()
    key.unlink()
    coordinator.renew()
    two = admitted(coordinator, tmp_path / "two")
    for site in (old, one, two):
        check_site(site.parents[1])
        assert connects(server, site)
    # each was signed by another authority under the same root
    leaves = [certificates.read_certificate((site / "client.crt").read_bytes(), "it") for site in (old, one, two)]
    kind = x509.AuthorityKeyIdentifier
    assert len({leaf.extensions.get_extension_for_class(kind).value.key_identifier for leaf in leaves}) == 3
    stranger = Coordinator.create(tmp_path / "d", name="health", host="127.0.0.1", port=1)
    assert not connects(stranger.workspace / "startup", one)
    assert not connects(server, admitted(stranger, tmp_path / "three"))


def test_another_authority_signs_the_issuing_one(coordinator: Coordinator, tmp_path: Path) -> None:
    """An organisation's own authority, by openssl; possible until the first party trusts the root that is there."""
    folder = coordinator.folder / "authority"
    syndic = CliRunner()
    made = syndic.invoke(cli, ["coordinator", "authority", str(coordinator.folder), "--request"])
    assert made.exit_code == 0
    own = tmp_path / "own"
    own.mkdir()
    (own / "ca.cnf").write_text("basicConstraints=critical,CA:TRUE,pathlen:0\nkeyUsage=critical,keyCertSign,cRLSign\n"
                                "subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n")  # fmt: skip
    for command in (
        "req -x509 -newkey rsa:2048 -nodes -keyout root.key -out root.crt -days 9 -subj /CN=Hospital"
        " -addext keyUsage=critical,keyCertSign,cRLSign",
        f"x509 -req -in {folder}/issuing.csr -CA root.crt -CAkey root.key -days 9 -extfile ca.cnf -out issuing.crt",
    ):
        subprocess.run(["openssl", *command.split()], cwd=own, check=True, capture_output=True)
    chain = own / "chain.pem"
    chain.write_bytes((own / "issuing.crt").read_bytes() + (own / "root.crt").read_bytes())
    install = ["coordinator", "authority", str(coordinator.folder), "--chain", str(chain)]
    entry = coordinator.folder / "parties" / "early.json"
    approval = coordinator.approve(prepare(tmp_path / "early", name="early"))
    assert isinstance(syndic.invoke(cli, install).exception, InputError)
    accept(tmp_path / "early", approval)
    entry.unlink()
    assert syndic.invoke(cli, install).exit_code == 0
    (folder / "root.key").unlink()
    coordinator.renew()
    assert connects(coordinator.workspace / "startup", admitted(coordinator, tmp_path / "north"))
    # who trusted the first root does not follow to the second one by itself
    with pytest.raises(InputError, match="another root"):
        accept(tmp_path / "early", coordinator.approve(prepare(tmp_path / "early", name="early", renew=True)))


def test_no_chain_that_is_not_one_is_used(coordinator: Coordinator, tmp_path: Path) -> None:
    authority, root = coordinator.authority, coordinator.authority.certificate
    root_key = certificates.read_key(authority.folder / "root.key")
    authority.request("health")
    mine = certificates.read_key(authority.folder / "next.key")
    other = certificates.new_key()

    def issuing(key: rsa.RSAPrivateKey, above: x509.Certificate, signer: rsa.RSAPrivateKey, days: int = 9) -> bytes:
        signed = certificates.make_issuing("health issuing", key.public_key(), root=above, root_key=signer, days=days)
        return certificates.pem(signed).encode()

    site = certificates.make_certificate("x", mine.public_key(), root=root, root_key=root_key, host=None, days=9)
    below = certificates.read_certificate(issuing(other, root, root_key), "")
    for chain, told in (
        (issuing(other, root, root_key), "another key"),
        (issuing(mine, root, other), "not signed by"),
        (issuing(mine, root, root_key, days=0), "check the clock"),
        (certificates.pem(site).encode(), "may not sign"),
        # an issuing authority appoints no other one
        (issuing(mine, below, other) + certificates.pem(below).encode(), "may not sign"),
        (authority.root.read_bytes(), "root alone"),
        (b"nothing", "not a certificate"),
    ):
        with pytest.raises(InputError, match=told):
            authority.install(chain, new_root=False)
    authority.install(issuing(mine, root, root_key), new_root=False)


def test_a_site_signs_no_other_site(coordinator: Coordinator, tmp_path: Path) -> None:
    """A party's own certificate does not make it an authority, in our check and in the handshake."""
    startup = admitted(coordinator, tmp_path / "north")
    mine = certificates.read_certificate((startup / "client.crt").read_bytes(), "")
    key = certificates.read_key(startup / "client.key")
    request: Request = prepare(tmp_path / "south", name="south")
    approval = coordinator.approve(request)
    public = certificates.read_request(request.certificate_request, name="south")
    forged = certificates.make_certificate("south", public, root=mine, root_key=key, host=None, days=9)
    chain = certificates.pem(forged) + certificates.pem(mine)
    root = coordinator.authority.certificate
    with pytest.raises(InputError, match="may not sign"):
        certificates.check_chain(certificates.read_chain(chain.encode(), ""), root, name="south")
    accept(tmp_path / "south", approval)
    south = workspace_of(tmp_path / "south") / "startup"
    assert connects(coordinator.workspace / "startup", south)
    (south / "client.crt").write_text(chain)
    assert not connects(coordinator.workspace / "startup", south)


@pytest.fixture
def token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TokenKey:
    pytest.importorskip("pkcs11", reason="python-pkcs11 is not installed")
    if SOFTHSM is None:
        pytest.skip("SoftHSM is not installed")
    (tmp_path / "tokens").mkdir()
    (tmp_path / "softhsm2.conf").write_text(f"directories.tokendir = {tmp_path}/tokens\n")
    monkeypatch.setenv("SOFTHSM2_CONF", str(tmp_path / "softhsm2.conf"))
    command = ["softhsm2-util", "--init-token", "--free", "--label", "hospital", "--pin", "1234", "--so-pin", "4321"]
    subprocess.run(command, check=True, capture_output=True)
    return TokenKey(module=str(SOFTHSM), token="hospital")


def test_a_root_key_in_a_token(token: TokenKey, tmp_path: Path) -> None:
    made = Coordinator.create(
        tmp_path / "c", name="health", host="127.0.0.1", port=1, token=token, ask=lambda _what: "1234"
    )
    assert not (made.folder / "authority" / "root.key").exists()
    startup = admitted(made, tmp_path / "north")
    assert connects(made.workspace / "startup", startup)
    made.appoint()
    away = Coordinator.open(made.folder)  # nobody has a PIN, and the issuing authority needs none
    assert connects(made.workspace / "startup", admitted(away, tmp_path / "south"))
    with pytest.raises(InputError, match="PIN"):
        Coordinator.open(made.folder, ask=lambda _what: "9999").appoint()
    (made.folder / "authority" / "token.json").write_text('{"module": "/nowhere.so", "token": "x", "label": "y"}')
    with pytest.raises(InputError, match="check the module"):
        made.appoint()


def test_what_nobody_would_accept_is_not_signed(coordinator: Coordinator, tmp_path: Path) -> None:
    """An issuing authority that has expired, or whose key was taken for another one's, signs nothing."""
    startup, folder = coordinator.workspace / "startup", coordinator.folder / "authority"
    before = (startup / "server.crt").read_bytes()
    coordinator.appoint()
    good = (folder / "issuing.crt").read_bytes(), (folder / "issuing.key").read_bytes()
    root_key = certificates.read_key(folder / "root.key")
    mine = certificates.read_key(folder / "issuing.key")
    old = certificates.make_issuing(
        "health issuing", mine.public_key(), root=coordinator.authority.certificate, root_key=root_key, days=0
    )
    (folder / "issuing.crt").write_text(certificates.pem(old))
    for told in ("check the clock", "not signed by"):
        with pytest.raises(InputError, match=told):
            coordinator.renew()
        with pytest.raises(InputError, match=told):
            coordinator.approve(prepare(tmp_path / "north", name="north"))
        assert (startup / "server.crt").read_bytes() == before
        assert coordinator.admitted() == ()
        (folder / "issuing.crt").write_bytes(good[0])
        (folder / "issuing.key").write_bytes((folder / "root.key").read_bytes())
    (folder / "issuing.key").write_bytes(good[1])
    coordinator.renew()


def test_no_certificate_outlives_the_one_that_signed_it(coordinator: Coordinator, tmp_path: Path) -> None:
    """The list of parties and `doctor` show when a party must renew: not a day on which it is refused already."""
    coordinator.appoint(days=3)
    leaf, issuing = certificates.read_chain(
        coordinator.approve(prepare(tmp_path / "north", name="north"), days=365).certificate.encode(), ""
    )
    assert leaf.not_valid_after_utc == issuing.not_valid_after_utc
    assert coordinator.admitted()[0].expires == f"{issuing.not_valid_after_utc:%Y-%m-%d}"


def test_an_empty_passphrase_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNDIC_PASSPHRASE", "")
    words = ["coordinator", "init", str(tmp_path / "c"), "--name", "health", "--host", "127.0.0.1", "--passphrase"]
    assert isinstance(CliRunner().invoke(cli, words).exception, InputError)
    assert not (tmp_path / "c").exists()


def test_who_is_removed_while_another_is_admitted_stays_removed(
    coordinator: Coordinator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One administrator approves while another removes: the list that is written last is right."""
    coordinator.approve(prepare(tmp_path / "evil", name="evil"))
    request = prepare(tmp_path / "north", name="north")
    removing = threading.Thread(target=coordinator.remove, args=("evil",))

    def slowly(path: Path, content: bytes) -> None:
        if path.name == "admitted.json" and not removing.ident:
            removing.start()
            removing.join(timeout=1)
        write_whole(path, content)

    monkeypatch.setattr(coordinators, "write_whole", slowly)
    coordinator.approve(request)
    removing.join()
    assert list(json.loads((coordinator.workspace / "admitted.json").read_text())) == ["north"]
