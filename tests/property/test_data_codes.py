"""Codes and values of columns, for columns and values of every kind."""

import bisect
import collections
import datetime
import itertools
import math
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syndic.data import (
    Boolean,
    Categorical,
    Column,
    Date,
    Domain,
    Instead,
    Integer,
    Ordinal,
    Real,
    SparseCounts,
    counting,
)
from syndic.data.counting import CellCounter, DenseCounter, cover, covered_cells
from syndic.data.reading import key_of

TEXTS = st.text(min_size=1, max_size=5).filter(lambda text: text == text.strip() and key_of(text) is not None)
DATES = st.dates(datetime.date(1800, 1, 1), datetime.date(2200, 1, 1))


@st.composite
def columns(draw: st.DrawFn, kinds: tuple[Any, ...] = (Categorical, Ordinal, Boolean, Integer, Real, Date)) -> Column:
    kind = draw(st.sampled_from(kinds))
    level = draw(st.booleans())
    if kind is Boolean:
        return Boolean(name="c", missing="level" if level else Instead(value=draw(st.booleans())))
    if kind in (Categorical, Ordinal):
        values = tuple(draw(st.lists(TEXTS | st.just("other"), min_size=1, max_size=6, unique_by=key_of)))
        put: Instead[str] = Instead(value=draw(st.sampled_from(values)))
        rules: list[Any] = ["other", "missing", put]
        rule = draw(st.sampled_from(rules))
        listed: Column = kind(name="c", values=values, outside=rule, missing="level" if level else put)
        return listed
    outside: Literal["clip", "missing"] = "clip" if draw(st.booleans()) else "missing"
    if kind is Integer:
        lower = draw(st.integers(-(2**53) + 1, 2**53 - 1))
        upper = draw(st.integers(lower, min(lower + 2**40, 2**53 - 1)))
        bins = draw(st.integers(1, min(upper - lower + 1, 300)))
        return Integer(name="c", lower=lower, upper=upper, bins=bins, outside=outside,
                       missing="level" if level else Instead(value=upper))  # fmt: skip
    if kind is Date:
        first, last = sorted(draw(st.lists(DATES, min_size=2, max_size=2, unique=True)))
        days = draw(st.none() | st.integers(1, min((last - first).days + 1, 300)))
        return Date(name="c", lower=first, upper=last, bins=days, outside=outside)
    low = draw(st.floats(-1e12, 1e12))
    width = draw(st.floats(max(1e-3, abs(low) * 1e-9), 1e12))
    return Real(name="c", lower=low, upper=low + width, bins=draw(st.integers(1, 300)), outside=outside,
                missing="level" if level else Instead(value=low))  # fmt: skip


@given(column=columns(), seed=st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_decoded_values_encode_to_the_same_codes(column: Column, seed: int) -> None:
    codes = np.repeat(np.arange(min(column.size, 2000)), 5)
    values = column.decode(codes, np.random.default_rng(seed))
    np.testing.assert_array_equal(column.encode(values), codes)
    # and through the text a CSV file would hold; null stands for the missing level only
    np.testing.assert_array_equal(column.encode(values.cast(pa.string())), codes)


@given(column=columns())
@settings(max_examples=100, deadline=None)
def test_there_is_a_distinct_label_for_every_code(column: Column) -> None:
    labels = column.labels()
    assert len(labels) == column.size
    if not isinstance(column, Real):  # narrow bins may print alike
        assert len(set(labels)) == len(labels) or "(missing)" in getattr(column, "values", ())


@given(column=columns((Integer, Real)), value=st.floats() | st.integers(-(2**63), 2**63 - 1))
@settings(max_examples=120, deadline=None)
def test_numbers_fall_where_the_rules_say(column: Integer | Real, value: float) -> None:
    array = pa.array([value], pa.int64() if isinstance(value, int) else pa.float64())
    assert int(column.encode(array)[0]) == expected_code(column, value)


def expected_code(column: Integer | Real, value: float) -> int:
    """The rule said again, one value at a time, in exact arithmetic."""
    if math.isnan(value):
        return column.missing_code
    if isinstance(column, Integer) and math.isfinite(value):
        value = math.floor(value)
    if not column.lower <= value <= column.upper:
        if column.outside == "missing":
            return column.missing_code
        value = column.lower if value < column.lower else column.upper
    return min(bisect.bisect_right(column.bin_edges.tolist(), value) - 1, column.levels - 1)


JUNK: st.SearchStrategy[Any] = st.text(max_size=8) | st.sampled_from(
    ["1", "-1.5", "1e5", "inf", "NaN", "2020-02-29", "2021-02-29", "true", "other", "1e-400", "+.5", "5."]
)


@given(column=columns(), values=st.lists(JUNK | st.none(), max_size=12))
@settings(max_examples=300, deadline=None)
def test_a_text_is_coded_alike_alone_and_among_others(column: Column, values: list[str | None]) -> None:
    together = column.encode(pa.array(values, pa.string())).tolist()
    alone = [int(column.encode(pa.array([value], pa.string()))[0]) for value in values]
    as_bytes = column.encode(pa.array([None if v is None else v.encode() for v in values], pa.binary())).tolist()
    assert together == alone == as_bytes
    assert all(code < column.size for code in together)


DOMAINS = st.lists(st.integers(1, 9), min_size=1, max_size=6).map(
    lambda sizes: Domain.of({f"c{place}": size for place, size in enumerate(sizes)})
)


@given(domain=DOMAINS, data=st.data())
@settings(max_examples=100, deadline=None)
def test_counters_agree_with_counting_one_by_one(domain: Domain, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.tuples(*(st.integers(0, size - 1) for size in domain.sizes)), max_size=30))
    cliques = data.draw(
        st.lists(st.lists(st.sampled_from(domain.names), unique=True).map(tuple), min_size=1, max_size=6)
    )
    dense, sparse = DenseCounter(domain, cliques), CellCounter(domain)
    for part in (rows[:7], rows[7:]):
        columns = list(zip(*part, strict=True)) or [()] * len(domain)
        batch = {name: np.array(codes, dtype=np.uint8) for name, codes in zip(domain.names, columns, strict=True)}
        dense.add(batch)
        sparse.add(batch)
    for clique, factor in zip(cliques, dense.factors(), strict=True):
        axes = domain.axes(clique)
        assert factor.domain == domain.project(clique)
        counted = collections.Counter(tuple(row[axis] for axis in axes) for row in rows)
        for cell in itertools.product(*map(range, factor.domain.sizes)):
            assert factor.values[cell] == counted[cell]
        if clique:
            np.testing.assert_array_equal(sparse.counts().project(clique).dense().values, factor.values)
    assert int(sparse.counts().counts.sum()) == len(rows)
    assert isinstance(sparse.counts(), SparseCounts)


@given(domain=DOMAINS, data=st.data())
@settings(max_examples=100, deadline=None)
def test_a_cover_contains_every_clique(domain: Domain, data: st.DataObject) -> None:
    cliques = data.draw(st.lists(st.lists(st.sampled_from(domain.names), unique=True).map(tuple), max_size=20))
    groups, homes = cover(domain, cliques)
    assert all(set(clique) <= set(groups[home]) for clique, home in zip(cliques, homes, strict=True))
    assert len(groups) <= max(len(cliques), 1)


@pytest.mark.parametrize("columns", [12, 40, 70])
def test_groups_of_all_pairs_take_no_more_cells_than_is_announced(columns: int) -> None:
    domain = Domain.of({f"c{place}": (2, 3, 5, 10, 20, 50)[place % 6] for place in range(columns)})
    pairs = list(itertools.combinations(domain.names, 2))
    groups, _ = cover(domain, pairs)
    assert {pair for group in groups for pair in itertools.combinations(group, 2)} >= set(pairs)
    taken = sum(domain.project(group).size for group in groups)
    assert taken <= covered_cells(sum(domain.project(pair).size for pair in pairs))


def test_counts_do_not_depend_on_the_size_of_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    domain, draws = Domain.of({f"c{place}": 3 + place for place in range(6)}), np.random.default_rng(1)
    batch = {name: draws.integers(0, size, 500) for name, size in zip(domain.names, domain.sizes, strict=True)}
    cliques = [*itertools.combinations(domain.names, 2), domain.names[1:4]]

    def counted() -> list[Any]:
        counter = DenseCounter(domain, cliques)
        counter.add(batch)
        return [one.values.tolist() for one in counter.factors()]

    large, few = counted(), len(cover(domain, cliques)[0])
    monkeypatch.setattr(counting, "MOST_GROUP_CELLS", 1)
    assert len(cover(domain, cliques)[0]) > few
    assert counted() == large
