"""Files of a release that were damaged on their way."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support import study_text, two_parties
from syndic import Study
from syndic.errors import InputError
from syndic.study import Release, simulate


@pytest.mark.parametrize(
    "damaged",
    [
        pa.table({"party": ["north"], "cell": [10**6], "count": [1]}),
        pa.table({"party": ["north", "north"], "cell": [2, 1], "count": [1, 1]}),
        pa.table({"party": ["north"], "cell": ["x"], "count": [1]}),
        pa.table({"party": ["north"]}),
    ],
)
def test_a_damaged_release_is_refused(damaged: pa.Table, tmp_path: Path) -> None:
    simulate(Study.loads(study_text()), two_parties(), seed=1).write(tmp_path)
    assert Release.load(tmp_path).table.to_arrow().num_rows
    pq.write_table(damaged, tmp_path / "cells.parquet")
    with pytest.raises(InputError, match="its release cannot be read"):
        Release.load(tmp_path)


def test_studies_in_one_folder_keep_their_releases(tmp_path: Path) -> None:
    first, second = (
        simulate(Study.loads(study_text(top=f"edition = {edition}")), two_parties(), seed=1) for edition in (1, 2)
    )
    first.write(tmp_path)
    first.report(tmp_path / "report.html")
    (tmp_path / "notes.txt").write_text("the analyst's own")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    first.write(tmp_path)  # the same run again
    assert not (tmp_path / "earlier").exists()
    second.write(tmp_path)
    kept = tmp_path / "earlier" / first.study.digest[:16]
    assert {path.name: path.read_bytes() for path in kept.iterdir()} | {"notes.txt": before["notes.txt"]} == before
    assert Release.load(tmp_path).statement == second.statement
    assert (tmp_path / "notes.txt").exists()
    assert not (tmp_path / "report.html").exists()


def test_runs_of_one_study_with_several_seeds_keep_their_releases(tmp_path: Path) -> None:
    """Their statements are the same, their rows are not."""
    study = Study.loads(study_text())
    releases = [simulate(study, two_parties(), seed=seed) for seed in (1, 2, 3)]
    rows = []
    for one in releases:
        one.write(tmp_path)
        rows.append((tmp_path / "cells.parquet").read_bytes())
    assert len(set(rows)) == 3
    kept = [tmp_path / "earlier" / f"{study.digest[:16]}{end}" for end in ("", "-2")]
    assert [(place / "cells.parquet").read_bytes() for place in kept] == rows[:2]
    assert all(Release.load(place).statement == releases[0].statement for place in kept)


def test_a_digest_that_somebody_wrote_names_no_folder_elsewhere(tmp_path: Path) -> None:
    first, second = (
        simulate(Study.loads(study_text(top=f"edition = {edition}")), two_parties(), seed=1) for edition in (1, 2)
    )
    first.write(tmp_path / "a" / "b")
    statement = tmp_path / "a" / "b" / "statement.json"
    statement.write_text(statement.read_text().replace(first.study.digest, "../../../else"))
    second.write(tmp_path / "a" / "b")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a" / "b" / "earlier" / first.study.digest[:16] / "study.json").is_file()


def test_a_release_that_cannot_be_read_is_kept(tmp_path: Path) -> None:
    """Such as one of another version of Syndic."""
    first, second = (
        simulate(Study.loads(study_text(top=f"edition = {edition}")), two_parties(), seed=1) for edition in (1, 2)
    )
    first.write(tmp_path)
    for file, kept in (("study.json", "unread"), ("statement.json", "unread-2")):
        (tmp_path / file).write_bytes((tmp_path / file).read_bytes().replace(b"{", b'{"of a later version": 1,', 1))
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
        second.write(tmp_path)
        assert {path.name: path.read_bytes() for path in (tmp_path / "earlier" / kept).iterdir()} == before
        assert Release.load(tmp_path).statement == second.statement
        first, second = second, first
