"""Counts for pictures, against counting by hand and against scipy."""

from collections import Counter
from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import contingency

from syndic.data import ArrowSource, Boolean, Categorical, Date, Instead, Integer, Ordinal, Real, Schema, Table
from syndic.model.interval.question import read_question
from syndic.report.pictures import association, grouping, own_counts, pair

DECEMBER = tuple(date(2020, 12, day) for day in range(1, 32))
GENERATOR = np.random.default_rng(3)


def test_a_small_column_keeps_its_labels() -> None:
    column = Boolean(name="b")
    codes = np.array([0, 1, 1, 2])
    one = grouping(column, codes, 12)
    assert one.labels == ("false", "true", "(missing)")
    assert one.count(codes).tolist() == [1, 2, 1]


@pytest.mark.parametrize(
    "column",
    [
        Boolean(name="b"),
        Categorical(name="a name", values=("it's", 'a "b"', "c"), missing="level"),
        Categorical(name="c", values=tuple(f"v{place}" for place in range(40)), missing=Instead(value="v1")),
        Integer(name="i", lower=-7, upper=300),
        Integer(name="i", lower=0, upper=1000, bins=77, missing=Instead(value=0)),
        Real(name="r", lower=-1.0, upper=3.0, bins=100),
    ],
    ids=lambda column: type(column).__name__,
)
def test_a_group_is_the_condition_of_a_question(column: Categorical) -> None:
    codes = GENERATOR.integers(0, column.size, 3000)
    one = grouping(column, codes, 12)
    schema, shares = Schema(columns=(column,)), np.bincount(codes, minlength=column.size) / len(codes)
    counts, known = one.count(codes), int((codes < column.levels).sum())
    asked = [one.condition(place) for place in range(len(one.labels))]
    values = [
        None if text is None else read_question(f"mean({text})", schema).estimate(shares).value * known
        for text in asked
    ]
    assert all(found is None or found == pytest.approx(count) for found, count in zip(values, counts, strict=True))
    none = [label for label, text in zip(one.labels, asked, strict=True) if text is None]
    assert all(label == "(missing)" or "other values" in label for label in none)
    assert len(none) <= 1


@pytest.mark.parametrize(
    "column",
    [
        Real(name="r", lower=1.0, upper=1e6, scale="log", bins=60),
        Real(name="r", lower=0.0, upper=100.0, edges=(0.0, *np.linspace(90, 100, 40).tolist())),
        Real(name="r", lower=1e6, upper=1e6 + 1, bins=60),
        Integer(name="i", lower=1, upper=10**6, scale="log", bins=60),
        Integer(name="i", lower=0, upper=999, edges=(0, *range(960, 1001))),
        Date(name="d", lower=date(2000, 1, 1), upper=date(2020, 12, 30), edges=(date(2000, 1, 1), *DECEMBER)),
    ],
    ids=str,
)
def test_the_label_of_a_group_says_the_edges_of_its_bins(column: Real | Integer | Date) -> None:
    one = grouping(column, np.zeros(1, dtype=np.int64), 12)
    first = np.unique(one.groups(np.arange(column.levels)), return_index=True)[1]
    starts, ends = (column.bin_edges[[*place]] for place in (first, (*first[1:], column.levels)))
    for label, start, end in zip(one.labels, starts, ends, strict=False):
        if isinstance(column, Real):
            assert [float(text) for text in label.split(" to ")] == pytest.approx([start, end], rel=1e-3)
            assert len(set(label.split(" to "))) == 2
        else:
            between = " to " if isinstance(column, Date) else "-"
            assert label == (f"{start}{between}{end - 1}" if end - 1 > start or between == " to " else f"{start}")


def test_a_long_list_keeps_the_most_frequent() -> None:
    column = Categorical(name="c", values=tuple(f"v{place}" for place in range(400)), missing="level")
    codes = GENERATOR.zipf(1.3, 5000) % column.size
    one = grouping(column, codes, 12)
    labels = column.labels()
    by_hand = Counter(labels[code] for code in codes)
    shown = dict(zip(one.labels[:-1], one.count(codes)[:-1], strict=True))
    assert len(one.labels) == 12
    assert all(by_hand[text] == count for text, count in shown.items())
    assert min(shown.values()) >= max(count for text, count in by_hand.items() if text not in shown)
    assert one.count(codes).sum() == 5000
    assert one.labels[-1] == f"{len(labels) - 11} other values"


@pytest.mark.parametrize(
    "column",
    [
        Integer(name="i", lower=-7, upper=300),
        Integer(name="i", lower=-7, upper=300, missing=Instead(value=0)),
        Integer(name="i", lower=0, upper=1000, bins=77),
        Real(name="r", lower=-1.0, upper=3.0, bins=100),
        Date(name="d", lower=date(2020, 1, 1), upper=date(2023, 12, 31)),
        Ordinal(name="o", values=tuple(f"o{place:03}" for place in range(130))),
    ],
    ids=lambda column: type(column).__name__,
)
def test_neighbours_are_grouped_in_order(column: Integer) -> None:
    codes = np.arange(column.size)
    one = grouping(column, codes, 24)
    groups = one.groups(codes)
    assert groups[: column.levels].tolist() == sorted(groups[: column.levels])
    assert set(groups.tolist()) == set(range(len(one.labels)))
    sizes = one.count(codes)[:24]
    assert sizes.max() - sizes.min() <= 1
    assert len(set(one.labels)) == len(one.labels)
    labels = column.labels()
    first = int(np.flatnonzero(groups == 5)[0])
    assert one.labels[5].split(" to ")[0].split("-")[0].strip("[") in labels[first].replace(" to ", "-")


def test_labels_of_groups_are_the_values_in_them() -> None:
    column = Integer(name="i", lower=18, upper=117)
    one = grouping(column, np.arange(column.size), 10)
    assert one.labels[0] == "18-27"
    assert one.labels[-2:] == ("108-117", "(missing)")


def test_billions_of_values_need_no_memory() -> None:
    column = Integer(name="i", lower=0, upper=4_000_000_000)
    one = grouping(column, np.array([0]), 24)
    assert one.count(np.array([0, 3_999_999_999, 4_000_000_001])).tolist() == [1, *[0] * 22, 1, 1]
    assert one.labels[0].startswith("0-1")


def test_weights_are_summed() -> None:
    column = Boolean(name="b", missing=Instead(value=False))
    one = grouping(column, np.array([0]), 12)
    assert one.count(np.array([0, 1, 1]), np.array([-1, 1, 1])).tolist()[:2] == [-1, 2]


def test_pairs_and_their_strength() -> None:
    first, second = GENERATOR.integers(0, 3, 900), GENERATOR.integers(0, 2, 900)
    second = np.where(GENERATOR.random(900) < 0.5, first % 2, second)
    left = grouping(Ordinal(name="o", values=("a", "b", "c"), missing=Instead(value="a"), outside="missing"), first, 12)
    right = grouping(Boolean(name="b"), second, 12)
    table = pair(left, first, right, second, None)
    by_hand = Counter(zip(first.tolist(), second.tolist(), strict=True))
    assert {(i, j): int(table[i, j]) for i in range(3) for j in range(2)} == by_hand
    assert association(table) == pytest.approx(contingency.association(table[:, :2], method="cramer"))
    assert association(np.zeros((3, 3), dtype=np.int64)) == 0.0
    assert association(np.diag([5, 5, 5])) == pytest.approx(1.0)


def test_own_rows_are_counted_within_the_unit() -> None:
    schema = Schema(columns=(Integer(name="i", lower=0, upper=99), Boolean(name="b")))
    rows = pa.table(
        {"i": GENERATOR.integers(0, 100, 500), "b": GENERATOR.random(500) < 0.3, "who": np.arange(500) // 2}
    )
    table = Table(schema=schema, source=ArrowSource(rows), person="who", rows_per_person=1)
    groupings = [grouping(column, np.array([0]), 10) for column in schema.columns]
    counts, total = own_counts(table, groupings)
    kept = rows.take(np.arange(0, 500, 2))
    assert total == 250
    assert counts[0].tolist()[:10] == np.bincount(np.asarray(kept["i"]) // 10, minlength=10).tolist()
    assert counts[1][1] == sum(kept["b"].to_pylist())
