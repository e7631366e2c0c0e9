"""The way of an owner through the console: a study arrives, is read, agreed to, run; the ledger; programs."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from consoles import Visitor, agree_all, run_between, study_between, study_file
from organisations import COORDINATOR
from support import COLUMNS
from syndic.document import to_builtins
from syndic.privacy import Ledger
from syndic.study import PartyFolder, Release, Study
from syndic.study.agreement import studies, withdraw
from syndic.study.party_folder import run_digest

Place = tuple[Study, dict[str, PartyFolder], Release, Visitor]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A study that north's owner agreed to by the console and that was run."""
    study, homes = study_between(tmp_path_factory.mktemp("finished"))
    visitor = Visitor(homes["north"].folder)
    place = visitor.post("/studies", action="receive", text=study_file(study))
    assert place == f"/studies/{study.digest}"
    agreed = visitor.post(place, action="agree", typed=f" {study.digest[:10].upper()} ", days="30", read="yes")
    assert agreed == place
    agree_all(study, {name: home for name, home in homes.items() if name != "north"})
    release = run_between(study, homes)
    release.write(homes["north"].folder / "releases" / "first")
    return study, homes, release, visitor


def test_a_study_arrives_and_is_pending(tmp_path: Path) -> None:
    study, homes = study_between(tmp_path)
    home = homes["north"]
    visitor = Visitor(home.folder)
    assert "No study waits" in visitor.get("/studies")
    place = visitor.post("/studies", action="receive", text=study_file(study))
    assert [(one.run, one.state) for one in studies(home)] == [(study.digest, "pending")]
    assert "1 study waits" in visitor.get("/studies")
    page = visitor.get(place)
    cost = "after it 1 of your cap 50 is spent"
    for wanted in (study.digest, "epsilon 1", cost, "nobody: each party trusts only itself"):
        assert wanted in page
    # the owner's own fingerprint and those of the others
    fingerprints = {one["fingerprint"] for one in visitor.ask("GET", f"/studies/{study.digest}")["members"]}
    assert len(fingerprints) == 3
    assert all(one in page for one in fingerprints)
    with Ledger.open(home.ledger) as ledger:
        assert [entry.kind for entry in ledger.entries()] == ["declare"]


def test_a_file_that_is_no_study_is_refused_and_shown_again(tmp_path: Path) -> None:
    study, homes = study_between(tmp_path)
    visitor = Visitor(homes["north"].folder)
    page = visitor.post("/studies", 400, action="receive", text='name = "half"')
    assert "study file" in page
    assert "half" in page
    bare = replace(study, parties=tuple(replace(one, identity=None) for one in study.parties))
    assert "identity" in visitor.post("/studies", 400, action="receive", text=study_file(bare))
    assert studies(homes["north"]) == ()


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"typed": "00000000"}, "first 8 letters"),
        ({"typed": "DIGEST7"}, "first 8 letters"),
        ({"read": "no"}, "tick"),
        ({"days": "0"}, "days"),
        ({"days": "many"}, "whole number"),
        ({"rehearsal": "x"}, "whole number"),
        ({"action": "sign"}, "no action"),
    ],
    ids=str,
)
def test_an_agreement_needs_the_digest_and_the_tick(changed: dict[str, str], says: str, tmp_path: Path) -> None:
    study, homes = study_between(tmp_path)
    visitor = Visitor(homes["north"].folder)
    place = visitor.post("/studies", action="receive", text=study_file(study))
    fields = {"action": "agree", "typed": study.digest[:8], "days": "90", "read": "yes", **changed}
    fields["typed"] = fields["typed"].replace("DIGEST7", study.digest[:7])
    assert says in visitor.post(place, 400, **fields)
    assert [one.state for one in studies(homes["north"])] == ["pending"]


def test_the_agreement_holds_as_long_as_was_said(finished: Place) -> None:
    study, homes, _, visitor = finished
    (standing,) = studies(homes["north"])
    assert standing.run == study.digest
    assert standing.expires is not None
    assert timedelta(days=29) < standing.expires - datetime.now(UTC) < timedelta(days=31)
    # the list has the day of the agreement and its last day
    assert standing.since is not None
    page = visitor.get("/studies")
    assert f"<td>{standing.since:%Y-%m-%d %H:%M}</td>" in page
    assert f"<td>{standing.expires:%Y-%m-%d %H:%M} UTC</td>" in page


def test_decline_keeps_the_reason_and_can_be_thought_over(tmp_path: Path) -> None:
    study, homes = study_between(tmp_path)
    visitor = Visitor(homes["north"].folder)
    place = visitor.post("/studies", action="receive", text=study_file(study))
    visitor.post(place, action="decline", why="not now")
    assert visitor.ask("GET", "/studies")[0]["state"] == "declined"
    (kept,) = homes["north"].folder.glob("studies/*/declined.json")
    assert json.loads(kept.read_bytes())["why"] == "not now"
    visitor.post(place, action="agree", typed=study.digest[:8], days="9", read="yes")
    assert visitor.ask("GET", "/studies")[0]["state"] == "agreed"
    visitor.post(place, 409, action="decline", why="")
    assert visitor.ask("GET", "/studies")[0]["state"] == "agreed"


def test_withdraw_is_in_the_ledger(tmp_path: Path) -> None:
    study, homes = study_between(tmp_path)
    visitor = Visitor(homes["north"].folder)
    place = visitor.post("/studies", action="receive", text=study_file(study))
    visitor.post(place, action="agree", typed=study.digest[:8], days="9", read="yes")
    visitor.post(place, 400, action="withdraw", typed="12345678")
    visitor.post(place, action="withdraw", typed=study.digest[:8], why="the board")
    with Ledger.open(homes["north"].ledger) as ledger:
        last = ledger.standing(study.digest)
    assert last is not None
    assert (last.kind, last.why) == ("withdraw", "the board")
    assert "withdrawn" in visitor.get("/studies")


def test_a_rehearsal_is_a_run_of_its_own(tmp_path: Path) -> None:
    study, homes = study_between(tmp_path)
    visitor = Visitor(homes["north"].folder)
    place = visitor.post("/studies", action="receive", text=study_file(study))
    other = visitor.post(place, action="agree", typed=study.digest[:8], days="9", read="yes", rehearsal="7")
    assert other == f"/studies/{run_digest(study, 7)}"
    assert "protects nobody" in visitor.get(other)
    assert {one["state"] for one in visitor.ask("GET", "/studies")} == {"pending", "agreed"}


def test_a_new_edition_shows_what_changed(finished: Place) -> None:
    study, homes, _, visitor = finished
    second = replace(study, edition=2, purpose="again")
    assert homes["north"].folder == visitor.folder
    place = visitor.post("/studies", action="receive", text=study_file(second))
    found = visitor.ask("GET", f"/studies/{second.digest}")["earlier"]
    assert found["other"] == study.digest
    assert {(one["key"], one["before"], one["after"]) for one in found["changes"]} == {
        ("edition", "1", "2"),
        ("purpose", "", "again"),
    }
    assert "2 differences" in visitor.get(place)
    assert "2 differences" in visitor.get(f"{place}/difference?other={study.digest}")
    backwards = visitor.ask("GET", f"/studies/{study.digest}/difference/{second.digest}")
    assert ("edition", "2", "1") in {(one["key"], one["before"], one["after"]) for one in backwards["changes"]}
    visitor.get(f"{place}/difference?other=none", 404)


def test_the_run_is_told_from_the_ledger(finished: Place) -> None:
    study, homes, _, visitor = finished
    told = visitor.ask("GET", f"/studies/{study.digest}/progress")
    assert told["state"] == "finished"
    assert [(one["step"], one["answered"], one["refused"]) for one in told["steps"]] == [
        ("ready", 1, 0),
        ("meet", 1, 0),
        ("sanitise", 1, 0),
    ]
    said = re.fullmatch("answers of ([0-9,]+) bytes", told["said"])
    assert said
    assert int(said[1].replace(",", "")) > 100
    assert "3 of 3 steps" in visitor.get(f"/studies/{study.digest}/progress")
    assert homes["north"].ledger.exists()


def test_a_refused_call_is_told(tmp_path: Path) -> None:
    study, homes = study_between(tmp_path)
    agree_all(study, homes)
    nodes = {name: home.agreed_node(study.digest) for name, home in homes.items()}
    withdraw(homes["north"], study.digest)
    from syndic.errors import PartyError  # noqa: PLC0415
    from syndic.runtime import Local  # noqa: PLC0415
    from syndic.study.run import run_study  # noqa: PLC0415

    with pytest.raises(PartyError, match="withdrawn"):
        run_study(study, Local(nodes), identity=COORDINATOR)
    for node in nodes.values():
        node.close()
    told = Visitor(homes["north"].folder).ask("GET", f"/studies/{study.digest}/progress")
    assert sum(one["refused"] for one in told["steps"]) == 1
    south = Visitor(homes["south"].folder).ask("GET", f"/studies/{study.digest}/progress")
    assert (south["state"], south["waiting"]) == ("running", ["the coordinator's next question"])


def test_the_ledger_is_what_the_ledger_says(finished: Place) -> None:
    _, homes, _, visitor = finished
    told = visitor.ask("GET", "/ledger")
    with Ledger.open(homes["north"].ledger) as ledger:
        spent = ledger.spent("people of north")
        entries = list(ledger.entries())
        head = ledger.head()
    assert told["sets"] == [to_builtins(spent)]
    assert (told["total"], told["head"]) == (len(entries), head)
    assert [(one["epsilon"], one["cap"]) for one in told["history"]["people of north"]] == [(0.0, 50.0), (1.0, 50.0)]
    page = visitor.get("/ledger")
    assert head in page
    assert "<svg" in page
    assert visitor.ask("GET", "/ledger/export.json")["head"] == head
    assert visitor.ask("GET", "/ledger/export.csv").count(b"\n") == len(entries) + 1


def test_verify_finds_what_was_changed(tmp_path: Path) -> None:
    import sqlite3  # noqa: PLC0415

    study, homes = study_between(tmp_path)
    agree_all(study, homes)
    visitor = Visitor(homes["north"].folder)
    assert "The ledger is verified" in visitor.post("/ledger", 200, action="verify")
    head = visitor.ask("GET", "/ledger")["head"]
    assert visitor.ask("POST", "/ledger/verification", body={"published": head})["whole"] is True
    assert visitor.ask("POST", "/ledger/verification", body={"published": "0" * 64})["whole"] is False
    with sqlite3.connect(homes["north"].ledger) as file:
        file.execute("DROP TRIGGER entry_update")
        file.execute("UPDATE entry SET why = 'never said' WHERE number = 2")
    file.close()
    told = visitor.ask("POST", "/ledger/verification", body={})
    assert told["whole"] is False
    assert "entry 2" in told["words"]
    assert str(tmp_path) not in told["words"]
    assert "entry 2" in visitor.post("/ledger", 200, action="verify")


def test_the_advisor_is_asked(finished: Place) -> None:
    study, _, _, visitor = finished
    advice = visitor.ask("GET", f"/studies/{study.digest}/advice")
    assert advice["verdict"] in {"share", "some", "do not share"}
    assert advice["people"] == 180
    assert visitor.ask("GET", f"/studies/{study.digest}")["warning"].startswith("poor: tables of two columns")
    assert 'id="forecast">The forecast is poor: ' in visitor.get(f"/studies/{study.digest}")


def test_where_the_advisor_knows_nothing_it_says_so(tmp_path: Path) -> None:
    bare = "".join(f'[[parties]]\nname = "{name}"\n' for name in ("north", "south", "east"))
    study, homes = study_between(tmp_path, parties=bare)
    visitor = Visitor(homes["north"].folder)
    place = visitor.post("/studies", action="receive", text=study_file(study))
    assert "set people" in visitor.get(f"{place}/advice")
    visitor.ask("GET", f"/studies/{study.digest}/advice", 400)
    assert 'id="forecast"' not in visitor.get(place)


def test_advice_that_does_not_compare_parties_is_read_on_the_page(tmp_path: Path) -> None:
    study, homes = study_between(
        tmp_path, protocol='method = "marginals"', budget="epsilon = 1\ndelta = 1e-6", unit='neighbours = "replace"'
    )
    visitor = Visitor(homes["north"].folder)
    place = visitor.post("/studies", action="receive", text=study_file(study))
    assert "forecast   poor: tables of 2 columns" in visitor.get(f"{place}/advice")
    assert "does not compare parties" in visitor.ask("GET", f"/studies/{study.digest}/advice", 400)["error"]


def test_a_study_that_was_damaged_stands_in_nobodys_way(finished: Place, tmp_path: Path) -> None:
    study, homes = study_between(tmp_path)
    visitor = Visitor(homes["north"].folder)
    visitor.post("/studies", action="receive", text=study_file(study))
    damaged = homes["north"].folder / "studies" / ("0" * 16)
    damaged.mkdir()
    (damaged / "study.json").write_text("{")
    assert {one["state"] for one in visitor.ask("GET", "/studies")} == {"pending", "damaged"}
    assert "damaged" in visitor.get("/studies")
    assert "not valid JSON" in visitor.get(f"/studies/{'0' * 16}")


def test_overview_counts(finished: Place) -> None:
    _, _, _, visitor = finished
    told = visitor.ask("GET", "/overview")
    assert (told["role"], told["name"]) == ("party", "north")
    assert told["studies"]["finished"] == 1


def test_rows_that_fit_poorly_need_a_second_yes(tmp_path: Path) -> None:
    columns = COLUMNS.replace('"red", "green", "blue"', '"Red", "Green", "Blue"').replace(
        'value = "red"', 'value = "Red"'
    )
    study, homes = study_between(tmp_path, columns=columns)
    home = homes["north"]
    visitor = Visitor(home.folder)
    place = visitor.post("/studies", action="receive", text=study_file(study))
    page = visitor.get(f"{place}/fit")
    for wanted in ("How your rows fit", "for you only", "instead of", "100 %"):
        assert wanted in page
    assert visitor.ask("GET", f"/studies/{study.digest}/fit")["poor"]
    answer = {"action": "agree", "typed": study.digest[:8], "days": "5", "read": "yes"}
    page = visitor.post(place, 409, **answer)
    assert "nothing was signed" in page
    assert "green" not in page
    visitor.ask("POST", f"/studies/{study.digest}/agreement", 409, body={"typed": study.digest[:8]})
    assert [one.state for one in studies(home)] == ["pending"]
    visitor.post(place, 303, **answer, despite_fit="yes")
    assert [one.state for one in studies(home)] == ["agreed"]


def test_rows_that_fit_or_cannot_be_read_need_one_yes(tmp_path: Path) -> None:
    study, homes = study_between(tmp_path)
    visitor = Visitor(homes["north"].folder)
    place = visitor.post("/studies", action="receive", text=study_file(study))
    assert "Most values of every column fit" in visitor.get(f"{place}/fit")
    (homes["north"].folder / "rows.parquet").unlink()
    assert "Your rows were not compared" in visitor.get(f"{place}/fit")
    visitor.ask("GET", f"/studies/{study.digest}/fit", 400)
    visitor.post(place, action="agree", typed=study.digest[:8], days="5", read="yes")
    assert [one.state for one in studies(homes["north"])] == ["agreed"]
