"""Long lists of values: read from files beside a study, cut to a prefix, and their branches."""

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support import study_text
from syndic.data import Categorical, Instead, Schema
from syndic.data.lists import MOST_BYTES, with_lists
from syndic.document import from_builtins
from syndic.errors import InputError
from syndic.study import Study

ICD = "code,parent\nE10.9,E10\nE11.9,E11\nE10,E\nE11,E\nE,\nI10,I\nZ00,Z\n"
PAIRS = (("E10.9", "E10"), ("E10", "E"), ("E11.9", "E11"), ("E11", "E"), ("I10", "I"))


def column(folder: Path | None, lines: str) -> Categorical:
    """Return the column of a study in a folder; without one, of TOML text."""
    text = study_text(columns=f'[[schema.columns]]\nname = "code"\nkind = "categorical"\n{lines}\n')
    if folder is None:
        found = Study.loads(text).schema["code"]
    else:
        (folder / "study.toml").write_text(text)
        found = Study.load(folder / "study.toml").schema["code"]
    assert isinstance(found, Categorical)
    return found


def codes(one: Categorical, values: list[Any], kind: pa.DataType | None = None) -> list[str]:
    labels = one.labels()
    return [labels[code] for code in one.encode(pa.array(values, kind))]


def test_a_list_in_a_file_is_part_of_the_study_and_its_digest(tmp_path: Path) -> None:
    (tmp_path / "codes.csv").write_text('\ufeffvalue\nE10\n"a, b"\n\n I10 \n')
    one = column(tmp_path, 'values = "codes.csv"')
    assert one == column(None, 'values = ["E10", "a, b", "I10"]')
    study = Study.load(tmp_path / "study.toml")
    assert study.digest == Study.loads(study_text(columns=_columns('values = ["E10", "a, b", "I10"]'))).digest
    (tmp_path / "codes.csv").write_text("value\nE10\nE11\n")
    assert Study.load(tmp_path / "study.toml").digest != study.digest
    (tmp_path / "schema.json").write_text(
        json.dumps({"columns": [{"kind": "ordinal", "name": "o", "values": "codes.csv"}]})
    )
    assert Schema.load(tmp_path / "schema.json")["o"].labels() == ("E10", "E11", "other", "(missing)")


def _columns(lines: str) -> str:
    return f'[[schema.columns]]\nname = "code"\nkind = "categorical"\n{lines}\n'


def test_unused_keys_do_not_change_a_digest() -> None:
    plain = Study.loads(study_text(columns=_columns('values = ["a"]')))
    assert Study.loads(study_text(columns=_columns('values = ["a"]\ntree = []'))).digest == plain.digest
    for line in ("prefix = 1", 'tree = [["a", "b"]]'):
        assert Study.loads(study_text(columns=_columns(f'values = ["a"]\n{line}'))).digest != plain.digest


def test_a_tree_in_a_file_has_the_branches_above_the_values(tmp_path: Path) -> None:
    (tmp_path / "icd.csv").write_text(ICD)
    assert column(tmp_path, 'tree = "icd.csv"').values == ("E10.9", "E11.9", "I10", "Z00")
    some = column(tmp_path, 'values = ["E10.9", "E11.9", "I10", "X"]\ntree = "icd.csv"')
    assert some.tree == PAIRS
    assert some.labels() == ("E10.9", "E11.9", "I10", "X", "E10", "E", "E11", "I", "other", "(missing)")
    assert some.branches() == (4, 6, 7, 8, 5, 8, 5, 8, 8, 9)
    # a row may have a branch itself
    assert codes(some, ["E11", "I10", "X", "Q", None]) == ["E11", "I10", "X", "other", "(missing)"]
    # without "other", what has no branch is at the top
    assert column(tmp_path, 'values = ["I10", "X"]\noutside = "missing"\ntree = "icd.csv"').branches() == (2, 1, 2, 3)


def test_a_tree_of_prefixes() -> None:
    one = column(None, 'values = ["E10.9", "E11", "I1", "Z"]\ntree = [3, 1]')
    assert one.tree == (("E10.9", "E10"), ("E10", "E"), ("E11", "E"), ("I1", "I"))
    assert one.labels()[4:7] == ("E10", "E", "I")


def test_values_are_looked_up_whole_and_then_cut() -> None:
    one = Categorical(name="c", values=("008", "250", "E11", "nan1"), prefix=3, tree=(("E11", "E00-E99"),))
    texts = ["008.45", " 250.83 ", "E11.9", "E1", "250", "other", "E00-E99", "nancy", "", None, "25 0"]
    expected = [
        "008", "250", "E11", "other", "250", "other", "E00-E99", "other", "(missing)", "(missing)", "other",
    ]  # fmt: skip
    assert codes(one, texts) == expected
    assert codes(one, [250.83, 250.0, 8.0, 8.45, np.nan]) == ["250", "250", "008", "other", "(missing)"]
    assert codes(one, [25083, 250, -7], pa.int16()) == ["250", "250", "other"]
    assert codes(one, [Decimal("250.830")]) == ["250"]
    # dates and times are not cut
    assert codes(Categorical(name="c", values=("2024",), prefix=4), [datetime.date(2024, 5, 1)]) == ["other"]
    # what is released is read as itself
    assert codes(one, one.decode(np.arange(one.size), np.random.default_rng(1)).to_pylist()) == list(one.labels())


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ('values = "none.csv"', "no file 'none.csv' beside the study"),
        ('values = "../codes.csv"', "expected a list, or a .csv file beside the study with the heading value"),
        ('values = "/etc/passwd"', "expected a list"),
        ('values = "codes.txt"', "expected a list"),
        ('values = "rows.csv"', "heading value"),
        ('tree = "rows.csv"', "heading code,parent"),
        ('values = "one.csv"', "heading value"),
        ('values = "odd.csv"', "cannot be read as CSV"),
        ('values = "long.csv"', "at most 4,000,000 bytes"),
        ('values = ["a"]\nprefix = 0', "prefix (0) must be at least 1"),
        ('values = ["a"]\ntree = [["a", "b"], ["a", "c"]]', "one branch for each value"),
        ('values = ["a"]\ntree = [["b", "c"]]', "'b', which is neither"),
        ('values = ["a"]\ntree = [["a", "b"], ["b", "a"]]', "back to itself"),
        ('values = ["a", "other"]\ntree = [["other", "b"]]', 'must not have "other"'),
        ('values = ["a"]\ntree = [["a", "other"]]', 'must not have "other"'),
        ('values = ["a"]\ntree = "twice.csv"', "a code has more than one line"),
        ('values = ["3"]\ntree = [["3", "3.0"]]', "'3' and '3.0' are the same"),
        ('values = ["a"]\ntree = [["a", " "]]', "must not be empty"),
    ],
)
def test_a_study_cannot_read_rows_or_other_files_into_itself(tmp_path: Path, lines: str, error: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for where, text in {
        "../codes.csv": "value\nSECRET\n",
        "codes.txt": "value\nSECRET\n",
        "rows.csv": "code,sex\nSECRET,f\nSECRET,m\n",
        "one.csv": "code\nSECRET\n",
        "twice.csv": "code,parent\nSECRET,S\nSECRET,T\n",
        "odd.csv": 'value\n"SECRET\n',
        "long.csv": "value\n" + "SECRET\n" * (MOST_BYTES // 6),
    }.items():
        (home / where).write_text(text)
    with pytest.raises(InputError) as raised:
        column(home, lines)
    assert error in str(raised.value)
    assert "SECRET" not in str(raised.value)


def test_text_has_no_files() -> None:
    with pytest.raises(InputError, match="beside the study"):
        column(None, 'values = "codes.csv"')


@pytest.mark.parametrize(
    "content",
    [
        [],
        {"columns": 3},
        {"columns": [3, {"name": [[]], "values": 3, "tree": {}}]},
        {"columns": [{"values": [[], 3], "tree": [1, 2]}]},
        {"schema": []},
        {"schema": {"schema": {"columns": [{"values": "codes.csv"}]}}},
    ],
)
def test_odd_content_is_left_to_the_document(content: Any) -> None:
    assert with_lists(content, None) is not None
    with pytest.raises(InputError):
        from_builtins(with_lists(content, None), Schema, where="test")


def test_missing_values_may_be_a_listed_value() -> None:
    one = Categorical(name="c", values=("a", "b"), tree=(("a", "x"),), missing=Instead(value="b"))
    assert (one.branches(), one.missing_code, one.size) == ((2, 3, 3, 3), 1, 4)
