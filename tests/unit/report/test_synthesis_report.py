"""The synthesis' own section of the report."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from support import study_text, two_parties
from syndic import Study, simulate
from syndic.errors import InputError
from syndic.methods.synthesis.result import SyntheticTable
from syndic.report import Bars, report
from syndic.report.figure import Heat
from syndic.report.pictures import coded, columns_section, in_map, left_out
from syndic.report.synthetic import reliability_section
from syndic.report.write import method_section
from syndic.study import Release


@pytest.fixture(scope="module")
def release() -> Release:
    study = Study.loads(study_text(protocol='method = "synthesis"', budget="epsilon = 4.0\ndelta = 1e-5"))
    return simulate(study, two_parties(), seed=1)


def test_it_says_what_was_opened_and_how_well_the_model_follows(release: Release) -> None:
    section, relied = method_section(release), reliability_section(release.reliability)
    assert section is not None
    assert relied.title == "Which relations can be relied on"
    assert len(relied.points) == len(release.reliability.worst())
    assert isinstance(release.result, SyntheticTable)
    opened = sum(len(one.tables) for one in release.result.note.rounds)
    assert f"{opened} tables" in section.paragraphs[0]
    means, groups, rounds, tables = section.tables
    assert {name for columns, _ in groups.rows for name in columns.split(", ")} == {"colour", "age", "score"}
    assert sum(int(cells.replace(",", "")) for _, cells in groups.rows) == release.result.note.cells
    # noise explains what is left between noisy tables and a model of three columns
    assert all(0 < float(row[3]) < 3 for row in tables.rows)
    assert len(means.rows) == 3
    assert [row[1] for row in rounds.rows[:2]] == ["3 tables", "3 tables"]
    assert len(tables.rows) == min(20, opened)


def test_it_is_part_of_the_page_and_of_a_release_that_was_read_back(release: Release, tmp_path: Path) -> None:
    release.write(tmp_path / "run")
    pages = []
    for place, one in enumerate((release, Release.load(tmp_path / "run"))):
        pages.append(report(one, tmp_path / f"{place}.html").read_text())
    assert pages[0] == pages[1]
    assert "Groups of columns of the model" in pages[0]
    assert re.search(r"there are about \d+ rows \(95 % interval: \d+ to \d+\)", pages[0])
    # every bar of a known value comes with its interval, unless it was counted in a group with others
    assert re.search(r"<title>red: [\d,.]+ \([\d,.]+ to [\d,.]+\)</title>", pages[0])
    table = coded(release)
    assert table is not None
    assert isinstance(release.result, SyntheticTable)
    groups = dict(zip(release.study.schema.names, release.result.note.groups, strict=True))
    for figure in columns_section(table, release).figures:
        assert isinstance(figure, Bars)
        own = groups[figure.title]
        merged = [own.count(group) > 1 or label == "(missing)" for group, label in zip(own, figure.labels, strict=True)]
        assert [span is None for span in figure.spans] == merged


def test_it_is_of_a_synthesis_only() -> None:
    other = simulate(Study.loads(study_text()), two_parties(), seed=1)
    own = method_section(other)
    assert own is not None
    assert own.title == "How the table was made: noisy counts"
    with pytest.raises(InputError, match="publishes no model"):
        _ = other.model


def test_a_map_of_errors_has_numbers_and_an_outline() -> None:
    values = ((0.01, 0.2), (0.2, 0.001))
    heat = Heat(title="t", rows=("a", "b"), columns=("a", "b"), values=values, hundredths=True, marked="b")
    drawn = "".join(heat.draw())
    assert all(f">{text}</text>" in drawn for text in ("20", "1", "&lt;1", "b"))
    assert drawn.count('class="axis"') == 2
    assert "axis" not in "".join(replace(heat, marked="c").draw())


def test_maps_of_many_columns_show_those_with_the_most_to_show() -> None:
    names = [f"c{place}" for place in range(200)]
    ranked = [(names[-1], names[0]), (names[-1], names[5]), *zip(names[10:], names[20:], strict=False)]
    shown = in_map(names, ranked)
    assert len(shown) == 60
    assert {"c0", "c5", "c199"} < set(shown)
    assert shown == [name for name in names if name in shown]
    assert left_out(shown, 200) == " The 60 of 200 columns with the most to show."
    assert (in_map(names[:3], [names[:2], names[1:3]]), left_out(names[:3], 3)) == (names[:3], "")
