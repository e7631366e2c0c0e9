"""Drafting a study in the console: the same text as `syndic init`, edited, confirmed; and nothing leaves the folder."""

import re
import socket
import stat
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from consoles import ORIGIN, Visitor, study_between
from syndic.cli.main import cli
from syndic.federation.coordinator import Coordinator
from syndic.study import Study
from syndic.study.draft_text import READ, unconfirmed

SCRIPT = "<script>alert(1)</script>"
COLUMNS = "schema.columns"


def rows(count: int = 400) -> pa.Table:
    draw = np.random.default_rng(1)
    return pa.table(
        {
            "patient_id": [f"P{place}" for place in range(count)],
            "age": pa.array(draw.integers(18, 94, count), mask=np.arange(count) % 10 == 0),
            "sex": draw.choice(["female", "male"], count),
            "cost": draw.lognormal(8, 1.5, count),
            "day": pa.array(np.datetime64("2020-01-01") + draw.integers(0, 900, count).astype("timedelta64[D]")),
            "remark": [f"wrote {place}" for place in range(count)],
        }
    )


@pytest.fixture
def visitor(tmp_path: Path) -> Visitor:
    _, homes = study_between(tmp_path)
    pq.write_table(rows(), homes["north"].folder / "rows.parquet")
    return Visitor(homes["north"].folder)


def drafted(visitor: Visitor, **given: str) -> str:
    return visitor.get(visitor.post("/draft", 303, action="make", **given))


def edit(visitor: Visitor, name: str, status: int = 303, *, table: str = COLUMNS, **typed: str) -> str:
    given = {key: typed.pop(key, "") for key in ("kind", "source")}
    given |= {f"value-{key}": value for key, value in typed.items()}
    return visitor.post("/draft", status, action="edit", table=table, name=name, card="c1", **given)


def text_of(visitor: Visitor) -> str:
    return (visitor.folder / "study.draft.toml").read_text()


def column(visitor: Visitor, name: str) -> dict[str, str]:
    found = visitor.ask("GET", "/draft")["sections"]
    return dict(next(one["values"] for one in found if (one["table"], one["name"]) == (COLUMNS, name)))


def ticks(page: str) -> dict[str, str]:
    return dict.fromkeys(re.findall('name="(public-[0-9a-f]{16})"', page), "yes")


def everything(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_draft_is_the_one_of_the_command_line(visitor: Visitor) -> None:
    drafted(visitor, target="sex")
    path = visitor.folder / "study.draft.toml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    other = visitor.folder / "other.toml"
    words = ["init", f"north={visitor.folder / 'rows.parquet'}", "--target", "sex", "--out", str(other)]
    assert CliRunner().invoke(cli, words).exit_code == 0
    assert path.read_text() == other.read_text()
    # there is one draft: another needs the first to be discarded
    visitor.post("/draft", 400, action="make")
    visitor.post("/draft", action="discard")
    assert not path.exists()


def test_every_column_has_a_card(visitor: Visitor) -> None:
    page = drafted(visitor)
    for name in ("age", "sex", "cost", "day"):
        assert f"<title>Rows of {name} by level, private</title>" in page
    assert "10 % missing" in page
    assert "it identifies people or records" in page
    assert "free text or an id: most values occur once" in page
    assert page.count("<svg") == 4
    view = visitor.ask("GET", "/draft")
    assert set(view["left_out"]) == {"patient_id", "remark"}
    levels = {one["name"]: one["levels"] for one in view["fit"]["columns"]}
    # 81 ages in 60 bars, and the missing ones
    assert len(levels["age"]) == 61
    assert levels["age"][-1] == {"label": "(missing)", "rows": 40}
    assert sum(one["rows"] for one in levels["age"]) == 400


def test_bins_are_edited_and_drawn_again(visitor: Visitor) -> None:
    drafted(visitor)
    assert edit(visitor, "age", kind="integer", lower="0", upper="99", bins="4").endswith("#c1")
    page = visitor.get("/draft")
    assert [label for label in ("0-24", "25-49", "50-74", "75-99") if f">{label}</text>" in page] == [
        "0-24", "25-49", "50-74", "75-99",
    ]  # fmt: skip
    edit(visitor, "age", kind="integer", edges="0, 18; 65 100")
    assert column(visitor, "age") == {"kind": '"integer"', "lower": "0", "upper": "99", "edges": "[0, 18, 65, 100]"}
    assert ">18-64</text>" in visitor.get("/draft")
    edit(visitor, "day", kind="date", edges="2020-01-01, 2021-01-01, 2023-01-01")
    assert column(visitor, "day")["upper"] == "2022-12-31"
    edit(visitor, "day", 400, kind="date", edges="0001-01-01")
    edit(visitor, "cost", kind="real", scale="symlog", lower="0", bins="8")
    assert column(visitor, "cost")["scale"] == '"symlog"'
    edit(visitor, "cost", kind="real", scale="linear")
    assert "scale" not in column(visitor, "cost")
    edit(visitor, "sex", kind="categorical", values="female\r\nmale\r\nother sex\r\n")
    assert column(visitor, "sex")["values"] == '["female", "male", "other sex"]'
    edit(visitor, "north", table="parties", people="5000")
    assert [party.people for party in Study.loads(text_of(visitor)).parties] == [5000]


def test_kinds_are_changed_and_columns_left_out(visitor: Visitor) -> None:
    drafted(visitor)
    edit(visitor, "sex", kind="left out")
    assert visitor.ask("GET", "/draft")["left_out"]["sex"] == "the owner decided so"
    edit(visitor, "sex", kind="ordinal")
    assert column(visitor, "sex") == {"kind": '"ordinal"', "values": '["female", "male"]'}
    edit(visitor, "age", kind="real")
    assert column(visitor, "age")["lower"] == "15.0"
    # free text stays out: no value of it is frequent
    before = text_of(visitor)
    assert "cannot be categorical" in edit(visitor, "remark", 400, kind="categorical")
    edit(visitor, "height", 400, kind="real")
    edit(visitor, "height", 404)
    assert text_of(visitor) == before


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ({"lower": "900"}, "must not be above upper"),
        ({"bins": "many"}, "bins"),
        ({"edges": "0, 10, 5, 100"}, "edges must increase"),
        ({"edges": "0, ten"}, "edges are numbers or dates"),
        ({"edges": ";"}, "edges are numbers or dates"),
        ({"edges": "2020-01-01, 2021-01-01"}, "edges are numbers or dates"),
        ({"edges": "5"}, "edges must increase"),
        ({"scale": "cubic"}, "cubic"),
        ({"lower": "1\n[budget]\nepsilon = 99"}, "lower"),
        ({"upper": "95\nedges = [1]"}, "upper"),
    ],
)
def test_an_edit_that_is_no_study_changes_nothing(typed: dict[str, str], says: str, visitor: Visitor) -> None:
    drafted(visitor)
    before = text_of(visitor)
    page = edit(visitor, "age", 400, kind="integer", **typed)
    assert says in page
    assert text_of(visitor) == before
    if "scale" not in typed:
        # what was typed is still in the form
        assert next(iter(typed.values())).split("\n")[0] in page


def test_only_confirmed_values_become_a_study_file(visitor: Visitor) -> None:
    page = drafted(visitor)
    given = ticks(page)
    assert len(given) == 5
    for left in given:
        some = {key: value for key, value in given.items() if key != left}
        assert "nothing was written" in visitor.post("/draft", 409, action="confirm", file="study.toml", **some)
        assert not (visitor.folder / "study.toml").exists()
    # a tick is for the values that were shown
    edit(visitor, "age", kind="integer", upper="110")
    assert "age" in visitor.post("/draft", 409, action="confirm", file="study.toml", **given)
    done = visitor.post("/draft", 200, action="confirm", file="study.toml", **ticks(visitor.get("/draft")))
    assert "may be shared" in done
    written = (visitor.folder / "study.toml").read_text()
    assert "#" not in written
    assert Study.loads(written) == Study.loads(text_of(visitor))
    # the draft stays as it is, and no file is overwritten
    assert unconfirmed(text_of(visitor))
    for name in (
        "study.toml",
        "party.toml",
        "study.draft.toml",
        "../study.toml",
        "/etc/study.toml",
        "a/b.toml",
        ".toml",
    ):
        visitor.post("/draft", 400, action="confirm", file=name, **ticks(visitor.get("/draft")))


def test_wide_tables_are_confirmed(visitor: Visitor) -> None:
    table = pa.table({f"c{place}": [place, place + 1, place + 3] * 20 for place in range(90)})
    pq.write_table(table, visitor.folder / "rows.parquet")
    visitor.post("/draft", 200, action="confirm", file="wide.toml", **ticks(drafted(visitor)))
    assert len(Study.load(visitor.folder / "wide.toml").schema.names) == 90


def test_an_edited_value_must_be_confirmed_too(visitor: Visitor) -> None:
    """Whoever edits a public value beside a histogram may have read the new one from it."""
    dictionary = "name,kind,lower,upper\nage,integer,0,110\n"
    (visitor.folder / "columns.csv").write_text(dictionary)
    drafted(visitor, dictionary="columns.csv")
    age = next(one for one in visitor.ask("GET", "/draft")["sections"] if one["name"] == "age")
    assert age["read"] == []
    edit(visitor, "age", kind="integer", upper="93")
    line = next(line for line in text_of(visitor).splitlines() if line.startswith("upper = 93"))
    assert line.endswith(READ)
    edit(visitor, "age", kind="integer", upper="93", lower="0")
    assert f"lower = 0  {READ}" not in text_of(visitor)


def test_programs_do_the_same(visitor: Visitor) -> None:
    pa_csv.write_csv(rows(200), visitor.folder / "2024.csv")
    assert visitor.ask("GET", "/draft/choices")["sources"] == ["2024.csv", "rows.parquet"]
    made = visitor.ask("POST", "/draft", 201, body={"source": "2024.csv", "target": "sex"})
    assert (made["source"], made["fit"]["rows"]) == ("CSV file 2024.csv", 200)
    changed = visitor.ask("PUT", "/draft", body={"name": "age", "values": {"upper": "120"}, "source": "2024.csv"})
    assert "upper = 120" in changed["text"]
    for values in ({"name": '"other"'}, {"lower = 1\nupper": "5"}, {"": "1"}):
        visitor.ask("PUT", "/draft", 400, body={"name": "age", "values": values})
    visitor.ask("POST", "/draft/study", 409, body={"public": []})
    public = [one["key"] for one in changed["sections"]]
    written = visitor.ask("POST", "/draft/study", 201, body={"public": public, "file": "new.toml"})
    assert written["text"] == (visitor.folder / "new.toml").read_text()


def test_rows_without_a_draft_are_told(visitor: Visitor) -> None:
    visitor.ask("GET", "/draft", 404)
    visitor.ask("PUT", "/draft", 404, body={"name": "age"})
    visitor.ask("POST", "/draft/study", 404, body={})
    pq.write_table(pa.table({"age": pa.array([], pa.int64())}), visitor.folder / "rows.parquet")
    assert "no column can be used" in visitor.post("/draft", 400, action="make", target="height")
    assert not (visitor.folder / "study.draft.toml").exists()


def test_a_draft_of_other_rows_is_shown_without_them(visitor: Visitor) -> None:
    drafted(visitor)
    pq.write_table(pa.table({"height": [1.5, 1.6]}), visitor.folder / "rows.parquet")
    assert "were not compared" in visitor.get("/draft")
    (visitor.folder / "study.draft.toml").write_text(text_of(visitor).replace("kind =", "kid ="))
    page = visitor.get("/draft")
    assert "were not compared" in page
    # each error has its own line
    assert re.search(r"4 errors:\n +1\. .*\n +2\. ", page)


def test_rows_of_a_person_are_shown(visitor: Visitor) -> None:
    table = pa.table({"patient": [f"P{place // 4}" for place in range(400)], "flag": [1, 0, 0, 1] * 100})
    pq.write_table(table, visitor.folder / "rows.parquet")
    page = drafted(visitor)
    assert "100 people (private)" in page
    assert "<td>rows = 4</td><td>100 %</td>" in page
    edit(visitor, "", table="unit", rows="2")
    assert Study.loads(text_of(visitor)).unit.rows == 2


# attacks


def test_nobody_drafts_without_the_session(visitor: Visitor) -> None:
    before = everything(visitor.folder)
    for method in ("GET", "POST"):
        answer = visitor.send(method, "/draft", cookie="")
        assert (answer.status, answer.headers["location"]) == (303, "/login")
        assert visitor.send(method, "/api/v1/draft", cookie="").status == 401
    fields = {"action": "make", "source": ""}
    assert visitor.form("/draft", fields).status == 403
    assert visitor.form("/draft", {**fields, "token": "0" * 64}).status == 403
    assert visitor.form("/draft", {**fields, "token": visitor.token}, origin="https://evil.example").status == 403
    kind = "application/json"
    assert visitor.send("POST", "/api/v1/draft", body=b"{}", content_type=kind, origin=ORIGIN).status == 403
    assert everything(visitor.folder) == before
    # nor does a drafted text come out
    drafted(visitor)
    assert "age" not in visitor.send("GET", "/draft", cookie="").text


@pytest.mark.parametrize(
    "name",
    [
        "../south/rows.parquet",
        "..",
        ".",
        "releases/rows.parquet",
        "/etc/passwd",
        "identity.key",
        "ledger.sqlite",
        "link.parquet",
        f"{SCRIPT}.csv",
        "rows.parquet\x00.csv",
    ],
)
def test_no_other_file_is_read(name: str, visitor: Visitor) -> None:
    (visitor.folder / "link.parquet").symlink_to(visitor.folder.parent / "south" / "rows.parquet")
    (visitor.folder / "releases").mkdir(exist_ok=True)
    pq.write_table(rows(), visitor.folder / "releases" / "rows.parquet")
    for field in ("source", "dictionary"):
        page = visitor.post("/draft", 404, action="make", **{field: name})
        assert SCRIPT not in page
        visitor.ask("POST", "/draft", 404, body={field: name})
    assert not (visitor.folder / "study.draft.toml").exists()
    drafted(visitor)
    answer = visitor.send("GET", f"/draft?{urlencode({'source': name})}")
    assert answer.status == 404
    assert SCRIPT not in answer.text
    assert edit(visitor, "sex", 404, table="no such table", values="x")


def test_hostile_names_and_values_stay_text(visitor: Visitor) -> None:
    odd = f'"\n[budget]\nepsilon = 99\n#{SCRIPT}'
    table = pa.table(
        {
            SCRIPT: [f"{SCRIPT}{place % 2}" for place in range(300)],
            "../../up": [odd, "../b", "</textarea>"] * 100,
            odd: [float(place % 7) for place in range(300)],
            f"id {SCRIPT}": [f"'{SCRIPT}{place}" for place in range(300)],
        }
    )
    file = f"{SCRIPT.replace('/', '')}.parquet"
    pq.write_table(table, visitor.folder / file)
    assert "<script>alert" not in visitor.get("/draft")
    page = drafted(visitor, source=file)
    study = Study.loads(text_of(visitor))
    assert study.schema.names == (SCRIPT, "../../up", odd)
    assert study.budget.epsilon == 1
    for name, kind in ((odd, "integer"), (SCRIPT, "ordinal"), ("../../up", "left out")):
        sent = name.replace("\n", "\r\n")
        page += visitor.get(edit(visitor, sent, kind=kind, source=file).partition("#")[0])
    page += edit(visitor, SCRIPT, 400, kind="ordinal", source=file, values=f"{SCRIPT}</textarea>\nnan")
    page += visitor.post("/draft", 200, action="confirm", file="study.toml", **ticks(visitor.get("/draft")))
    assert "<script>alert" not in page
    assert "</textarea>\nnan" not in page
    assert page.count("<script") == page.count('<script src="/assets/console.js" defer></script>')
    assert "&lt;script&gt;alert(1)" in page


def test_nothing_leaves_the_folder(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = visitor.folder.parent
    before = {path: content for path, content in everything(outside).items() if visitor.folder not in path.parents}

    def refuse(*_given: object) -> None:
        raise AssertionError("a draft needs no connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    inside = set(everything(visitor.folder))
    drafted(visitor)
    edit(visitor, "age", kind="integer", upper="110")
    visitor.post("/draft", 200, action="confirm", file="study.toml", **ticks(visitor.get("/draft")))
    after = everything(outside)
    assert {path: content for path, content in after.items() if visitor.folder not in path.parents} == before
    new = {path.name: path for path in set(everything(visitor.folder)) - inside}
    assert set(new) == {"study.draft.toml", "study.toml"}
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in new.values())


def test_a_coordinator_has_no_drafts_and_takes_none(visitor: Visitor, tmp_path: Path) -> None:
    drafted(visitor)
    coordinator = Coordinator.create(tmp_path / "health", name="health", host="127.0.0.1", port=8002)
    other = Visitor(coordinator.folder)
    assert other.send("GET", "/draft").status == 404
    other.ask("GET", "/draft", 404)
    for console in (other, visitor):
        assert "private draft" in console.post("/studies", 409, action="receive", text=text_of(visitor))
    assert not list((coordinator.folder / "studies").glob("*"))
