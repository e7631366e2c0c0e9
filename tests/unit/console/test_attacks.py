"""What the console refuses: strangers, other sites, other hosts, paths that lead out, too much, and script."""

import json
import stat
from pathlib import Path

import pytest

from consoles import HOST, ORIGIN, Visitor, study_between, study_file
from support import COLUMNS
from syndic.console.web import COOKIE, MOST_BYTES
from syndic.study import PartyFolder, Study
from syndic.study.agreement import receive, studies


@pytest.fixture(scope="module")
def organisation(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, PartyFolder]:
    study, homes = study_between(tmp_path_factory.mktemp("attacked"))
    receive(homes["north"], study)
    return study, homes["north"]


@pytest.fixture(scope="module")
def visitor(organisation: tuple[Study, PartyFolder]) -> Visitor:
    return Visitor(organisation[1].folder)


def agreeing(study: Study, token: str) -> dict[str, str]:
    return {"action": "agree", "typed": study.digest[:8], "days": "1", "read": "yes", "token": token}


def is_pending(home: PartyFolder) -> bool:
    return [one.state for one in studies(home)] == ["pending"]


def test_nobody_sees_anything_without_the_secret(visitor: Visitor, organisation: tuple[Study, PartyFolder]) -> None:
    run = organisation[0].digest
    for page in ("/studies", f"/studies/{run}", "/ledger", "/draft", "/releases", f"/studies/{run}/progress"):
        answer = visitor.send("GET", page, cookie="")
        assert (answer.status, answer.headers["location"]) == (303, "/login")
    for path in ("/studies", "/ledger", "/ledger/export.csv", "/openapi.json", "/draft"):
        assert visitor.send("GET", f"/api/v1{path}", cookie="").status == 401
        assert visitor.send("GET", f"/api/v1{path}", cookie="", authorization="Bearer wrong").status == 401
        assert visitor.send("GET", f"/api/v1{path}", cookie=f"{COOKIE}={'0' * 64}").status == 401


def test_a_wrong_secret_opens_nothing(visitor: Visitor) -> None:
    for offered in ("", "0" * 64, visitor.secret[:-1], visitor.secret + "0"):
        answer = visitor.form("/login", {"secret": offered}, cookie="")
        assert answer.status == 401
        assert answer.cookies == []


def test_the_secret_is_not_in_the_home_and_its_digest_is_private(visitor: Visitor) -> None:
    path = visitor.folder / "users.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    written = b"".join(file.read_bytes() for file in visitor.folder.rglob("*") if file.is_file())
    assert visitor.secret.encode() not in written
    assert bytes.fromhex(visitor.secret) not in written


def test_the_cookie_is_kept_from_scripts_and_other_sites(visitor: Visitor) -> None:
    cookie = visitor.form("/login", {"secret": visitor.secret}, cookie="").cookies[0].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert visitor.secret not in cookie


def test_a_new_secret_ends_the_old_one(tmp_path: Path) -> None:
    _, homes = study_between(tmp_path)
    old = Visitor(homes["north"].folder)
    new = Visitor(homes["north"].folder)
    assert old.form("/login", {"secret": old.secret}).status == 401
    assert new.form("/login", {"secret": new.secret}).status == 303


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": f"https://{HOST}"},
        {"origin": "", "sec_fetch_site": "cross-site"},
        {"origin": ORIGIN, "sec_fetch_site": "same-site"},
    ],
    ids=str,
)
def test_another_origin_is_refused(
    headers: dict[str, str], visitor: Visitor, organisation: tuple[Study, PartyFolder]
) -> None:
    study, home = organisation
    answer = visitor.form(f"/studies/{study.digest}", agreeing(study, visitor.token), **headers)
    assert answer.status == 403
    assert is_pending(home)


@pytest.mark.parametrize("host", ["evil.example:8765", "evil.example", "127.0.0.1", "127.0.0.1:80", "", "[::1]:8765"])
def test_another_host_is_refused(host: str, visitor: Visitor) -> None:
    """A name of the attacker's that leads to this machine (DNS rebinding) is not a name of the console."""
    for path in ("/studies", "/login", "/api/v1/studies", "/assets/console.js"):
        assert visitor.send("GET", path, host=host).status == 403


@pytest.mark.parametrize("token", ["", "0" * 64, "é"])
def test_a_form_without_its_token_is_refused(
    token: str, visitor: Visitor, organisation: tuple[Study, PartyFolder]
) -> None:
    study, home = organisation
    assert visitor.form(f"/studies/{study.digest}", agreeing(study, token)).status == 403
    body = json.dumps({"typed": study.digest[:8]}).encode()
    answer = visitor.send(
        "POST",
        f"/api/v1/studies/{study.digest}/agreement",
        body=body,
        content_type="application/json",
        x_syndic_token=token.encode().decode("latin-1"),
    )
    assert answer.status == 403
    assert is_pending(home)


def test_the_token_of_another_session_is_refused(visitor: Visitor, organisation: tuple[Study, PartyFolder]) -> None:
    study, home = organisation
    other = visitor.form("/login", {"secret": visitor.secret}, cookie="").cookies[0].partition(";")[0]
    assert visitor.form(f"/studies/{study.digest}", agreeing(study, visitor.token), cookie=other).status == 403
    assert is_pending(home)


def test_signing_out_ends_the_session(visitor: Visitor) -> None:
    other = Visitor.__new__(Visitor)
    other.__dict__.update(visitor.__dict__)
    # a browser of its own: signing in ends the session before
    other.cookie = ""
    other.sign_in()
    assert other.post("/logout") == "/login"
    assert other.send("GET", "/studies").status == 303


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/releases/..%2F..%2Fparty.toml",
        "/api/v1/releases/../files/identity.key",
        "/api/v1/releases/%2e%2e/files/identity.key",
        "/api/v1/releases/good/files/..%2F..%2F..%2Fidentity.key",
        "/api/v1/releases/good/files/%2e%2e%2fidentity.key",
        "/api/v1/releases/good/files/leak.json",
        "/api/v1/releases/linked",
        "/api/v1/studies/..%2F..%2F..%2F..%2Fetc",
        "/api/v1/studies/................",
        "/assets/..%2Fviews.py",
        "/assets/%2e%2e/web.py",
        "/releases/..%2F..%2Fnorth",
        "/studies/..%2f..%2f",
    ],
)
def test_no_path_leads_out_of_its_place(path: str, visitor: Visitor) -> None:
    place = visitor.folder / "releases" / "good"
    place.mkdir(parents=True, exist_ok=True)
    (place / "statement.json").write_text("{}")
    if not (place / "leak.json").is_symlink():
        (place / "leak.json").symlink_to(visitor.folder / "identity.key")
        (visitor.folder / "releases" / "linked").symlink_to(visitor.folder.parent / "south")
        (visitor.folder.parent / "south" / "statement.json").write_text("{}")
    answer = visitor.send("GET", path)
    assert answer.status == 404
    secret = json.loads((visitor.folder / "identity.key").read_bytes())["signing"]
    assert secret not in answer.text


@pytest.mark.parametrize("honest", [True, False])
def test_too_large_is_refused(honest: bool, visitor: Visitor) -> None:
    """Also where the length is not said, or said wrong: what arrives is counted."""
    body = b"text=" + b"x" * (MOST_BYTES + 1)
    length = str(len(body)) if honest else "10"
    kind = "application/x-www-form-urlencoded"
    answer = visitor.send("POST", "/studies", body=body, origin=ORIGIN, content_type=kind, content_length=length)
    assert answer.status == 413


@pytest.mark.parametrize("length", ["-1", "1e9", "abc"])
def test_a_length_that_is_no_number_is_refused(length: str, visitor: Visitor) -> None:
    assert visitor.send("POST", "/studies", body=b"", content_length=length).status == 400


def test_every_answer_carries_the_policy(visitor: Visitor, organisation: tuple[Study, PartyFolder]) -> None:
    paths = [
        "/login",
        "/studies",
        f"/studies/{organisation[0].digest}",
        "/nothing",
        "/api/v1/studies",
        "/assets/console.js",
    ]
    for path in paths:
        for host in (HOST, "evil.example"):
            headers = visitor.send("GET", path, host=host).headers
            assert headers["x-frame-options"] == "DENY"
            policy = headers["content-security-policy"]
            assert "frame-ancestors 'none'" in policy
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "same-origin"
            assert headers["cache-control"] == "no-store"


SCRIPT = "<script>alert(1)</script>"
COLUMN_SCRIPT = f"""
[[schema.columns]]
name = '{SCRIPT}"><img src=x onerror=alert(2)>'
kind = "categorical"
values = ["{SCRIPT}", "' onmouseover='alert(3)"]
"""


def test_script_in_a_study_is_shown_as_text(tmp_path: Path) -> None:
    study, homes = study_between(tmp_path, columns=COLUMN_SCRIPT + COLUMNS, top=f"purpose = '{SCRIPT}'")
    visitor = Visitor(homes["north"].folder)
    place = visitor.post("/studies", action="receive", text=study_file(study))
    page = visitor.get(place)
    assert SCRIPT not in page
    assert "<img" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 3
    # a text that is sent back after an error is text too
    again = visitor.post("/studies", 400, action="receive", text=f"</textarea>{SCRIPT}")
    assert SCRIPT not in again
    assert "&lt;/textarea&gt;" in again


def test_an_internal_error_tells_nothing(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_home: object) -> None:
        raise ValueError("a value of a row")

    monkeypatch.setattr("syndic.study.agreement.studies", broken)
    answer = visitor.send("GET", "/studies")
    assert answer.status == 500
    assert "row" not in answer.text
