"""Releases in a home: read, passed on as archives, taken in, compared; and archives that are none."""

import io
import json
import zipfile

import pytest
from msgspec.structs import replace

from consoles import Visitor, agree_all, run_between, study_between
from syndic.study import PartyFolder, Release, Study

Place = tuple[Study, dict[str, PartyFolder], Release, Visitor]


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Place:
    study, homes = study_between(tmp_path_factory.mktemp("released"))
    agree_all(study, homes)
    release = run_between(study, homes)
    release.write(homes["north"].folder / "releases" / "first")
    second = replace(study, edition=2)
    agree_all(second, homes)
    run_between(second, homes).write(homes["north"].folder / "releases" / "second")
    return study, homes, release, Visitor(homes["north"].folder)


def packed(files: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return target.getvalue()


def unpacked(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_a_release_is_listed_and_read(released: Place) -> None:
    study, _, release, visitor = released
    lines = visitor.ask("GET", "/releases")
    assert [(one["name"], one["agreed"], one["protects"]) for one in lines] == [
        ("first", True, True),
        ("second", True, True),
    ]
    view = visitor.ask("GET", "/releases/first")
    assert view["statement"]["digest"] == study.digest
    assert "synthetic.parquet" in view["files"]
    page = visitor.get("/releases/first")
    assert release.statement.unit_in_words.replace("'", "&#39;") in page
    file = visitor.ask("GET", "/releases/first/files/synthetic.parquet")
    assert file == (visitor.folder / "releases" / "first" / "synthetic.parquet").read_bytes()


def test_the_report_runs_no_script_and_has_its_style(released: Place) -> None:
    visitor = released[3]
    answer = visitor.send("GET", "/releases/first/report")
    assert answer.status == 200
    policy = answer.headers["content-security-policy"]
    assert "sandbox" in policy
    assert "style-src 'sha256-" in policy
    assert "script-src" not in policy
    assert "default-src 'none'" in policy
    assert answer.headers["x-frame-options"] == "DENY"


def test_an_archive_goes_from_one_home_to_another(released: Place) -> None:
    study, homes, _, visitor = released
    content = visitor.ask("GET", "/releases/first/archive")
    files = unpacked(content)
    assert set(files) >= {"study.json", "statement.json", "transcript.json", "synthetic.parquet"}
    south = Visitor(homes["south"].folder)
    line = south.ask("POST", "/releases", 201, body=content)
    assert (line["digest"], line["agreed"]) == (study.digest, True)
    again = south.ask("GET", f"/releases/{line['name']}/archive")
    assert unpacked(again) == files
    south.ask("POST", "/releases", 400, body=content)


def test_what_is_no_release_is_not_taken(released: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syndic.console.releases._UNPACKED_BYTES", 3 * 10**6)
    _, homes, _, visitor = released
    east = Visitor(homes["east"].folder)
    files = unpacked(visitor.ask("GET", "/releases/first/archive"))
    changed = json.loads(files["study.json"]) | {"edition": 9}
    bad = [
        b"no archive",
        packed({**files, "../../identity.key": b"mine"}),
        packed({**files, "/etc/passwd": b"root"}),
        packed({**files, "run.sh": b"rm"}),
        packed({**files, "folder/": b""}),
        packed({f"f{number}.json": b"{}" for number in range(65)}),
        packed({name: content for name, content in files.items() if name != "study.json"}),
        packed({**files, "synthetic.parquet": b"not a table"}),
        packed({**files, "study.json": json.dumps(changed).encode()}),
        packed({**files, "big.json": bytes(3 * 10**6)}),
        visitor.ask("GET", "/releases/first/archive")[:-40],
    ]
    for content in bad:
        east.ask("POST", "/releases", 400, body=content)
    assert east.ask("GET", "/releases") == []
    assert list((east.folder / "releases").iterdir()) == []
    assert b"mine" not in (east.folder / "identity.key").read_bytes()


def test_a_report_that_came_along_is_not_shown(released: Place) -> None:
    _, homes, _, visitor = released
    east = Visitor(homes["east"].folder)
    files = unpacked(visitor.ask("GET", "/releases/second/archive"))
    line = east.ask("POST", "/releases", 201, body=packed({**files, "report.html": b"<script>alert(1)</script>"}))
    assert "report.html" not in east.ask("GET", f"/releases/{line['name']}")["files"]
    assert "alert(1)" not in east.get(f"/releases/{line['name']}/report")


def test_two_releases_are_compared(released: Place) -> None:
    visitor = released[3]
    found = visitor.ask("GET", "/releases/first/comparison/second")
    assert {one["key"] for one in found["changes"]} == {"digest", "edition"}
    assert {one["column"] for one in found["columns"]} == {"colour", "age", "score"}
    for one in found["columns"]:
        assert sum(one["first"]) == pytest.approx(1)
        apart = sum(abs(a - b) for a, b in zip(one["first"], one["second"], strict=True)) / 2
        assert one["distance"] == pytest.approx(apart)
    same = visitor.ask("GET", "/releases/first/comparison/first")
    assert same["changes"] == []
    assert {one["distance"] for one in same["columns"]} == {0.0}
    page = visitor.get("/releases/first/compare?other=second")
    assert page.count("<svg") == 3
    visitor.get("/releases/first/compare?other=third", 404)
    visitor.get("/releases/first/compare", 404)
