"""The page: whole, self-contained, escaped, honest about what it protects; the owner's page never gets mixed up."""

import base64
import dataclasses
import hashlib
import re
import sqlite3
import stat
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from support import CASES, Case, rows, study_text, two_parties
from syndic import Release, Study, simulate
from syndic.cli.main import cli
from syndic.data import ReleasedTable, SparseCounts
from syndic.errors import InputError, IntegrityError, RefusedError
from syndic.kernel import Result
from syndic.methods.histogram.homm import MergedTable
from syndic.report import Bars, Section, Series, owner_report, report, write
from syndic.report.svg import number
from syndic.report.write import METHOD_SECTION

VOID = {"meta"}


class Reader(HTMLParser):
    """Reads a page strictly: every tag is closed in order, ids are unique, what is pointed to is there."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == []
        self.text = " ".join(text for _, text in self.texts)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"<{tag}> has an attribute twice"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((self.open[-1] if self.open else "", " ".join(data.split())))

    def of(self, tag: str) -> list[str]:
        return [text for where, text in self.texts if where == tag]


def read(release: Release, folder: Path) -> Reader:
    """Write the report, check what holds for every page, and return it."""
    text = report(release, folder / "page" / "report.html").read_text(encoding="utf-8")
    return checked(text)


def checked(text: str) -> Reader:
    assert text.startswith('<!doctype html>\n<html lang="en">')
    page = Reader(text)
    names = [tag for tag, _ in page.tags]
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & set(names)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name in {"style", "src", "srcset"}]
        if "href" in attributes:
            assert str(attributes["href"]).removeprefix("#") in ids
        if "aria-labelledby" in attributes:
            assert attributes["aria-labelledby"] in ids
        if tag == "svg":
            assert attributes["role"] == "img"
    assert (names.count("h1"), names.count("main"), names.count("head")) == (1, 1, 1)
    assert names.count("table") == names.count("caption")
    assert re.search(r"url\(|@import|https?:", text) is None
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    policy = next(a["content"] for _, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return page


def run(study: Study, sources: Mapping[str, Any], **options: Any) -> Release:
    return simulate(study, sources, **options)


@pytest.fixture(scope="module")
def plain() -> Release:
    """A release that protects."""
    return run(Study.loads(study_text()), two_parties())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_variant_has_a_whole_page(case: Case, tmp_path: Path) -> None:
    release = run(case.study, case.sources, seed=7)
    page = read(release, tmp_path)
    titles = " ".join(page.of("h2"))
    if not isinstance(getattr(release.result, "table", None), ReleasedTable):
        assert {str(value) for value in release.result.summary().values()} <= set(page.of("td"))
    wanted = [
        "What was released",
        "What the study cost",
        "The privacy guarantee. The whole release, all parties together",
        "not protected",
        "assumed",
        "Who saw what",
        "Messages",
        "reproduce",
    ]
    if isinstance(release.result, MergedTable):
        wanted += ["noisy counts", "The columns", "Pairs of columns"]
        assert set(release.study.schema.names) <= set(page.of("figcaption"))
    for part in wanted:
        assert part in titles
    assert "This run protects nobody" in page.of("h2")
    for text in (*release.statement.not_protected, *release.statement.sees.values()):
        assert text[1:] in page.text
    if len(release.transcript) <= 60:
        assert {exchange.reply_sha256[:12] for exchange in release.transcript} <= set(page.of("td"))
    assert release.statement.digest in page.text
    assert "ledger is verified" not in page.text
    assert "OWNER" not in page.text


def test_a_release_that_protects_says_so_in_numbers(plain: Release, tmp_path: Path) -> None:
    page = read(plain, tmp_path)
    assert "protects nobody" not in page.text
    assert "50 % → 73.1 %" in page.of("strong")
    assert "epsilon 1" in page.of("strong")
    assert "for one person at each party, and over the whole release" in page.of("span")
    assert "sum of pure epsilons" in page.text
    assert plain.statement.sensitivity in page.text
    kept = [number(len(counts.cells)) for counts in plain.result.histograms.values()]  # type: ignore[attr-defined]
    assert set(kept) <= set(page.of("td"))


def test_departures_and_foreign_statements_are_warned_of(tmp_path: Path, plain: Release) -> None:
    printed = next(case for case in CASES if case.name == "homm as published")
    page = read(run(printed.study, printed.sources, seed=1), tmp_path)
    assert any(text.startswith("the paper claims") for text in page.of("li"))
    assert "Claims of the paper that are not met" in page.of("h2")
    foreign = dataclasses.replace(plain, statement=msgspec.structs.replace(plain.statement, digest="0" * 64))
    assert "Statement and study do not match" in read(foreign, tmp_path).of("h2")


def test_delta_is_explained_and_its_curve_drawn(tmp_path: Path) -> None:
    gaussian = next(case for case in CASES if case.name == "homm gaussian")
    release = run(gaussian.study, gaussian.sources)
    page = read(release, tmp_path)
    assert "one in 100,000" in page.text
    assert "as stated" in page.text
    curve = next(text for text in page.of("figcaption") if "curve" in text)
    assert curve
    # beliefs other than even odds have no bound of this form where delta is above 0
    assert "Belief about a person before the release, and the largest after it" not in page.of("figcaption")


def test_the_page_follows_from_the_release_alone(plain: Release, tmp_path: Path) -> None:
    plain.write(tmp_path / "release")
    again = Release.load(tmp_path / "release")
    first, second = plain.report(tmp_path / "a.html"), again.report(tmp_path / "b.html")
    assert first.read_text() == second.read_text()


def test_names_cannot_become_markup(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    columns = f"""
[[schema.columns]]
name = "{evil}"
kind = "categorical"
values = ["{evil}a", "\\"><img src=x onerror=alert(1)>", "</svg></style>b"]
[[schema.columns]]
name = "&lt;b&gt;"
kind = "boolean"
"""
    text = study_text(columns=columns, top=f'purpose = "{evil}"').replace('name = "test"', f'name = "{evil}"', 1)
    source = pa.table({evil: [f"{evil}a", "</svg></style>b"], "&lt;b&gt;": [True, False]})
    release = run(Study.loads(text), {"north": source, "south": source})
    page = read(release, tmp_path)
    assert page.of("h1") == [evil]
    assert {evil, "&lt;b&gt;"} <= set(page.of("figcaption"))
    owned = owner_report(release, tmp_path / "o.html", party="north", source=source)
    checked(owned.read_text())


def test_fifty_columns_and_long_lists(tmp_path: Path) -> None:
    columns = "".join(
        f'[[schema.columns]]\nname = "c{place}"\nkind = "boolean"\nmissing = {{ value = false }}\n'
        for place in range(49)
    )
    values = ", ".join(f'"value {place}"' for place in range(500))
    columns += f'[[schema.columns]]\nname = "long"\nkind = "categorical"\nvalues = [{values}]\n'
    study = Study.loads(study_text(columns=columns, protocol='method = "homm"\nat_least = 45'))
    source = pa.table({**{f"c{place}": [place % 2 == 0] * 300 for place in range(49)}, "long": ["value 7"] * 300})
    release = run(study, {"north": source, "south": source}, seed=1)
    assert len(release.table) > 300
    page = read(release, tmp_path)
    captions = page.of("figcaption")
    assert {f"c{place}" for place in range(49)} | {"long", "Association between columns"} <= set(captions)
    assert sum(" and " in text for text in captions) <= 14
    assert "12 of 1,225 pairs" in page.text
    assert "491 other values" in page.text
    assert "value 7" in page.text
    assert (tmp_path / "page" / "report.html").stat().st_size < 2_000_000


def test_no_number_one_column_and_no_rows(tmp_path: Path) -> None:
    study = Study.loads(study_text(columns='[[schema.columns]]\nname = "only"\nkind = "boolean"\n'))
    source = pa.table({"only": [True, None, False]})
    release = run(study, {"north": source, "south": source}, seed=3)
    assert "Pairs of columns" not in " ".join(read(release, tmp_path).of("h2"))
    domain = study.schema.domain
    none = np.array([], dtype=np.int64)
    empty = MergedTable(
        table=ReleasedTable(release.table.to_arrow().slice(0, 0)),
        histograms={name: SparseCounts(domain, none, none) for name in ("north", "south")},
    )
    page = read(dataclasses.replace(release, result=empty), tmp_path)
    assert "0 rows" in page.of("strong")
    assert "No rows." in page.text


class Nothing(Result):
    """A result without a table and without a section of its own."""

    def files(self) -> Mapping[str, Any]:
        return {}

    def summary(self) -> Mapping[str, Any]:
        return {}


def test_methods_without_a_table_and_methods_with_sections(
    plain: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = dataclasses.replace(plain, result=Nothing())
    page = read(bare, tmp_path)
    assert "columns of the synthetic table" not in " ".join(page.of("h2"))
    with pytest.raises(InputError, match="no columns"):
        owner_report(bare, tmp_path / "o.html", party="north", source=rows(5))

    def section(release: Release, result: Nothing) -> Section:
        assert result is release.result
        figure = Bars(title="mine", labels=("x",), series=(Series("s", (1.0,)),))
        return Section(title=f"Own words for {release.statement.study}", figures=(figure,), points=("a <point>",))

    more: dict[type[Result], Any] = {**METHOD_SECTION, Nothing: section}
    monkeypatch.setattr(write, "METHOD_SECTION", more)
    page = read(bare, tmp_path)
    assert any("Own words for test" in text for text in page.of("h2"))
    assert "mine" in page.of("figcaption")
    assert "a <point>" in page.of("li")


def test_many_messages_are_summed(plain: Release, tmp_path: Path) -> None:
    many = dataclasses.replace(plain, transcript=plain.transcript * 40)
    page = read(many, tmp_path)
    cells = page.of("td")
    total = number(
        40 * sum(one.reply_bytes for one in plain.transcript if one.step == "sanitise" and one.party == "north")
    )
    assert total in cells
    assert "by step and party" in page.text


def owned(folder: Path) -> Release:
    study = Study.loads(study_text())
    release = run(study, two_parties(), folder=folder)
    release.write(folder)
    return release


def test_the_owners_page_is_marked_everywhere_and_private(tmp_path: Path) -> None:
    release = owned(tmp_path / "run")
    home = tmp_path / "run" / "parties" / "north"
    path = owner_report(release, home / "own.html", party="north", source=rows(60, 1), ledger=home / "ledger.sqlite")
    text = path.read_text()
    page = checked(text)
    sections = [part for part in re.split(r"<section", text)[1:] if 'id="part-' in part]
    assert len(sections) == 14
    assert all("OWNER ONLY" in part for part in sections)
    assert "OWNER ONLY" in text.partition("<h1>")[0]
    assert "OWNER ONLY" in page.of("title")[0]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    colours = rows(60, 1)["colour"].to_pylist()
    exact = f"{100 * colours.count('green') / 60:.3g}"
    assert f"{exact} %" in page.of("td")
    assert "The ledger is verified: 3 entries" in page.text
    assert "1 charge(s) have this study's digest" in page.text
    # the party's own file says where its rows are, as for `plan` and `simulate`
    pq.write_table(rows(60, 1), tmp_path / "rows.parquet")
    lines = ('name = "north"', 'dataset = "x"', 'source = { path = "rows.parquet" }', "cap = { epsilon = 5 }")
    (tmp_path / "north-party.toml").write_text("\n".join(lines))
    asked = ("report", tmp_path / "run", "--party", "north", "--source", tmp_path / "north-party.toml")
    out = tmp_path / "o.html"
    told = CliRunner().invoke(cli, [*map(str, asked), "--out", str(out)])
    assert told.exit_code == 0, told.exception
    assert f"{exact} %" in checked(out.read_text()).of("td")
    assert "noisy full histogram" in page.of("td")
    public = read(release, tmp_path)
    assert "noisy full histogram" not in public.text
    assert "north, exact" not in public.text


def test_the_owners_page_stays_out_of_release_folders(tmp_path: Path) -> None:
    release = owned(tmp_path / "run")
    for place in ("own.html", "deeper/own.html", "parties/own.html", "parties/north/../../own.html"):
        with pytest.raises(RefusedError, match="must not be written"):
            owner_report(release, tmp_path / "run" / place, party="north", source=rows(60, 1))
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "run", target_is_directory=True)
    with pytest.raises(RefusedError, match="must not be written"):
        owner_report(release, link / "own.html", party="north")
    assert not list((tmp_path / "run").rglob("own.html"))
    assert owner_report(release, tmp_path / "own.html", party="north").exists()


def test_what_an_owner_gets_wrong_is_said(tmp_path: Path) -> None:
    release = owned(tmp_path / "run")
    with pytest.raises(InputError, match="'west' is not a party"):
        owner_report(release, tmp_path / "o.html", party="west")
    with pytest.raises(InputError, match="no such ledger"):
        owner_report(release, tmp_path / "o.html", party="north", ledger=tmp_path / "none.sqlite")
    with pytest.raises(InputError, match="are missing"):
        owner_report(release, tmp_path / "o.html", party="north", source=pa.table({"colour": ["red"]}))
    book = tmp_path / "run" / "parties" / "north" / "ledger.sqlite"
    with sqlite3.connect(book) as connection:
        tables = [name for (name,) in connection.execute("select name from sqlite_master where type = 'trigger'")]
        for name in tables:
            connection.execute(f'drop trigger "{name}"')
        table = next(
            name
            for (name,) in connection.execute("select name from sqlite_master where type = 'table'")
            if "entr" in name
        )
        connection.execute(f"delete from {table} where rowid = 2")
    connection.close()
    with pytest.raises(IntegrityError):
        owner_report(release, tmp_path / "o.html", party="north", ledger=book)
    assert not (tmp_path / "o.html").exists()


def test_a_place_that_cannot_be_written_is_named(plain: Release, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        report(plain, tmp_path / "file" / "report.html")
