"""Sessions end by themselves; the description of the interface is whole; addresses; pictures hold only text."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from consoles import Visitor, study_between
from syndic.console import access
from syndic.console.access import role_of
from syndic.console.endpoints import ENDPOINTS, description
from syndic.console.ledgers import spending_figure
from syndic.console.releases import comparison_figure
from syndic.console.serve import hosts_of
from syndic.console.views import Point
from syndic.errors import InputError
from syndic.study.differences import ColumnDistance


def test_a_session_ends_when_it_is_not_used_and_after_half_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("syndic.console.access.time.monotonic", lambda: now[0])
    sessions = access.Sessions()
    name = sessions.begin()
    first = sessions.find(name)
    assert first is not None
    for _ in range(13):
        now[0] += 3500
        if now[0] - 1000 < 12 * 3600:
            assert sessions.find(name) is not None
    assert sessions.find(name) is None
    other = sessions.begin()
    now[0] += 3601
    assert sessions.find(other) is None
    assert sessions.find("") is None


def test_sessions_have_names_and_tokens_of_their_own() -> None:
    sessions = access.Sessions()
    names = [sessions.begin() for _ in range(100)]
    assert len(set(names)) == 100
    alive = [visit for name in names if (visit := sessions.find(name))]
    # the oldest made room
    assert len(alive) == 64
    assert len({visit.token for visit in alive}) == 64
    assert sessions.find(names[0]) is None
    sessions.end(names[-1])
    assert sessions.find(names[-1]) is None


def references(part: Any) -> set[str]:
    if isinstance(part, dict):
        own = {part["$ref"]} if isinstance(part.get("$ref"), str) else set()
        return own.union(*(references(one) for one in part.values()))
    return set().union(*(references(one) for one in part)) if isinstance(part, list) else set()


@pytest.mark.parametrize("role", ["party", "coordinator"])
def test_the_description_is_whole(role: Any) -> None:
    told = json.loads(json.dumps(description(role)))
    assert told["openapi"] == "3.1.0"
    described = {(method, path) for path, methods in told["paths"].items() for method in methods}
    assert described == {(one.method.lower(), f"/api/v1{one.path}") for one in ENDPOINTS[role]}
    names = [operation["operationId"] for methods in told["paths"].values() for operation in methods.values()]
    assert len(set(names)) == len(names)
    schemas = {f"#/components/schemas/{name}" for name in told["components"]["schemas"]}
    assert references(told) <= schemas
    for path, methods in told["paths"].items():
        for operation in methods.values():
            given = {one["name"] for one in operation.get("parameters", [])}
            assert given == set(re.findall(r"{(\w+)}", path))


def test_addresses() -> None:
    assert hosts_of("127.0.0.1", 1) == ["127.0.0.1:1", "localhost:1"]
    assert hosts_of("::1", 1) == ["127.0.0.1:1", "[::1]:1", "localhost:1"]
    assert hosts_of("10.0.0.5", 80) == ["10.0.0.5:80"]
    for host in ("0.0.0.0", "::", ""):
        with pytest.raises(InputError, match="address"):
            hosts_of(host, 80)


def test_what_kind_of_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither"):
        role_of(tmp_path)
    (tmp_path / "party.toml").touch()
    assert role_of(tmp_path) == "party"


def test_pictures_hold_no_markup_of_others() -> None:
    script = "</text><script>alert(1)</script>"
    column = ColumnDistance(column=script, distance=0.5, labels=(script, "b"), first=(0.5, 0.5), second=(0.0, 1.0))
    for picture in (
        comparison_figure(column, (script, script)),
        spending_figure(script, (Point(number=1, time="2026-01-01T00:00:00+00:00", epsilon=0.0, cap=1.0),)),
    ):
        assert "<script" not in picture
        assert "style=" not in picture


def test_a_home_whose_party_file_is_broken_is_told(tmp_path: Path) -> None:
    _, homes = study_between(tmp_path)
    visitor = Visitor(homes["north"].folder)
    (homes["north"].folder / "party.toml").write_text("name = 3")
    assert "party.toml" in visitor.get("/studies", 400)
    assert "party.toml" in visitor.ask("GET", "/ledger", 400)["error"]
