"""Distances against brute force, and what reads rows in pieces against what reads them at once."""

from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from syndic.data import ReleasedTable, Schema, Table, open_source
from syndic.evaluation import distance
from syndic.evaluation import rows as row_module
from syndic.evaluation.distance import all_sets, column_sets, distances, k_marginal, passes, tvd, way_distances
from syndic.evaluation.rows import Clique, Rows, independent, kept, pooled, released, resampled, thinned
from syndic.evaluation.scores import FULL

SIZES = {"a": 3, "b": 5, "c": 2, "d": 4}
SCHEMA = Schema.from_domain(SIZES)


def table(count: int, seed: int) -> pa.Table:
    """Return codes that go together: b follows a, d follows c."""
    draws = np.random.default_rng(seed)
    a, c = draws.integers(0, 3, count), draws.integers(0, 2, count)
    b = np.where(draws.random(count) < 0.6, a, draws.integers(0, 5, count))
    d = np.where(draws.random(count) < 0.5, c, draws.integers(0, 4, count))
    return pa.table({"a": a, "b": b, "c": c, "d": d})


def rows(arrow: pa.Table, schema: Schema = SCHEMA) -> Rows:
    return pooled([Table(schema, open_source(arrow))])


def brute_tvd(real: pa.Table, other: pa.Table, clique: Clique) -> float:
    """Return the distance by counting tuples one by one."""
    counts = [Counter(tuple(row[name] for name in clique) for row in one.to_pylist()) for one in (real, other)]
    cells = set(counts[0]) | set(counts[1])
    return sum(abs(counts[0][cell] / len(real) - counts[1][cell] / len(other)) for cell in cells) / 2


def test_distances_are_those_of_brute_force() -> None:
    real, other = table(400, 1), table(250, 2)
    wanted = [clique for way in (1, 2, 3) for clique in combinations(SIZES, way)]
    found = distances(rows(real), {"other": rows(other)}, wanted)["other"]
    assert set(found) == set(wanted)
    for clique in wanted:
        assert found[clique] == pytest.approx(brute_tvd(real, other, clique), abs=1e-12)


def test_bounded_memory_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    real, other = rows(table(400, 1)), {"other": rows(table(250, 2))}
    wanted = [clique for way in (1, 2, 3) for clique in combinations(SIZES, way)]
    whole = distances(real, other, wanted)["other"]
    monkeypatch.setattr(distance, "PASS_CELLS", 30)
    monkeypatch.setattr(distance, "DENSE_CELLS", 25)
    # 3 + 5 + 15 cells fit in a pass of 30, 8 more do not
    assert list(passes(SCHEMA.domain, [("a",), ("b",), ("a", "b"), ("c", "d")])) == [
        [("a",), ("b",), ("a", "b")],
        [("c", "d")],
    ]
    pieces = distances(real, other, wanted)["other"]
    assert pieces == pytest.approx(whole, abs=1e-12)


def test_a_copy_scores_zero_and_a_thousand() -> None:
    real = table(300, 1)
    found = distances(
        rows(real),
        {"copy": rows(real)},
        [clique for each in all_sets(SCHEMA.names, FULL.sets).values() for clique in each],
    )
    ways = way_distances(found["copy"], all_sets(SCHEMA.names, FULL.sets))
    assert [(way.columns, way.sets, way.mean, way.worst) for way in ways] == [(1, 4, 0, 0), (2, 6, 0, 0), (3, 4, 0, 0)]
    assert k_marginal(ways[1].mean) == 1000


def test_nothing_in_common_scores_one() -> None:
    real, other = pa.table({"a": [0, 0, 1]}), pa.table({"a": [2, 2]})
    schema = Schema.from_domain({"a": 3})
    assert distances(rows(real, schema), {"other": rows(other, schema)}, [("a",)])["other"]["a",] == 1
    assert k_marginal(1.0) == 0


@pytest.mark.parametrize(
    ("counts", "other", "wanted"),
    [
        ([0, 0], [0, 0], 0.0),
        ([0, 0], [1, 0], 1.0),
        ([1, 3], [0, 0], 1.0),
        ([1, 3], [2, 6], 0.0),
        ([1, 3], [3, 1], 0.5),
        ([1, 3, 0], [2, 6, -5], 0.0),
    ],
)
def test_tvd_by_hand(counts: list[int], other: list[int], wanted: float) -> None:
    assert tvd(np.array(counts), np.array(other)) == wanted


def test_ways_name_the_worst_set_and_count_repeated_sets() -> None:
    found: dict[Clique, float] = {("a", "b"): 0.1, ("a", "c"): 0.4}
    (way,) = way_distances(found, {2: [("a", "b"), ("a", "c"), ("a", "b")]})
    assert (way.sets, way.worst, way.worst_set) == (3, 0.4, ("a", "c"))
    assert way.mean == pytest.approx(0.2)


def test_few_sets_are_all_taken_and_many_are_the_published_draws() -> None:
    assert column_sets(("x", "y", "z"), 2) == [("x", "y"), ("x", "z"), ("y", "z")]
    assert column_sets(("x", "y"), 3) == []
    names = tuple(f"c{number}" for number in range(15))
    assert len(column_sets(names, 2)) == 105
    drawn = column_sets(names, 3)
    generator = np.random.default_rng([2024, 3])
    places = [sorted(generator.choice(15, 3, replace=False)) for _ in range(300)]
    assert drawn == [tuple(f"c{place}" for place in row) for row in places]


def test_negative_weights_are_taken_off() -> None:
    arrow = pa.table({"a": [0, 0, 1, 1, 2], "weight": pa.array([1, 1, 1, -1, 1], pa.int8())})
    signed = released(ReleasedTable(arrow), Schema.from_domain({"a": 3}))
    assert signed.marginals([("a",)])[0].values.tolist() == [2, 0, 1]
    assert signed.cells(("a",)).dense().values.tolist() == [2, 0, 1]
    assert signed.size() == 3


def collected(source: Rows, names: Clique) -> np.ndarray[Any, Any]:
    return np.concatenate([np.column_stack([batch[name] for name in names]) for batch in source.read(names)])


class InPieces:
    """An Arrow table that hands out its rows in batches of another size each time."""

    def __init__(self, arrow: pa.Table) -> None:
        self.arrow, self.turn = arrow, 0

    def names(self) -> tuple[str, ...]:
        return tuple(self.arrow.column_names)

    def batches(self, columns: Any) -> Any:
        self.turn += 1
        yield from self.arrow.select(list(columns)).to_batches(max_chunksize=17 * self.turn)

    def describe(self) -> str:
        return "pieces"


def test_halves_share_no_row_and_are_the_same_each_time() -> None:
    arrow = pa.table({"a": np.arange(2000) % 3, "number": np.arange(2000)})
    schema = Schema.from_domain({"a": 3, "number": 2000})
    whole = pooled([Table(schema, InPieces(arrow))])
    first, second = (thinned(whole, seed=1, label="x", lower=low, upper=low + 0.5) for low in (0.0, 0.5))
    left, right = set(collected(first, ("number",)).ravel()), set(collected(second, ("number",)).ravel())
    assert left | right == set(range(2000))
    assert not left & right
    assert set(collected(first, ("a", "number"))[:, 1]) == left
    assert 800 < len(left) < 1200


def test_a_bootstrap_repeats_rows_by_poisson_numbers() -> None:
    schema = Schema.from_domain({"number": 5000})
    whole = rows(pa.table({"number": np.arange(5000)}), schema)
    copies = np.bincount(resampled(whole, seed=3, label="b").cells(("number",)).counts, minlength=4)
    never = 5000 - copies.sum()
    # chance of 0, 1, 2 copies is exp(-1), exp(-1), exp(-1) / 2; five standard deviations are at most 171
    for found, chance in ((never, 1.0), (copies[1], 1.0), (copies[2], 0.5)):
        assert abs(found - 5000 * chance * np.exp(-1)) < 171


def test_independent_columns_keep_frequencies_and_lose_what_goes_together() -> None:
    real = rows(table(20_000, 1))
    alone = independent(real, seed=1, label="i")
    assert alone.size() == 20_000
    found = distances(real, {"alone": alone}, [("a",), ("b",), ("a", "b"), ("a", "c")])["alone"]
    counts = real.marginals([("a", "b")])[0].values
    product = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / 20_000
    exact = tvd(counts, product)
    assert exact > 0.3
    assert found["a", "b"] == pytest.approx(exact, abs=0.02)
    assert max(found["a",], found["b",], found["a", "c"]) < 0.02


def test_a_sample_is_a_subset_without_repetition() -> None:
    schema = Schema.from_domain({"number": 3000})
    whole = rows(pa.table({"number": np.arange(3000)}), schema)
    taken = whole.take(100, seed=1, label="t")["number"]
    assert len(set(taken.tolist())) == 100
    assert taken.tolist() != sorted(taken.tolist())
    assert abs(taken.mean() - 1499.5) < 6 * 866 / 10
    assert sorted(whole.take(10_000, seed=1, label="t")["number"].tolist()) == list(range(3000))


def test_no_rows_are_far_from_some(monkeypatch: pytest.MonkeyPatch) -> None:
    real, empty = rows(table(10, 1)), rows(table(0, 1))
    assert distances(real, {"empty": empty}, [("a",)])["empty"]["a",] == 1
    monkeypatch.setattr(distance, "DENSE_CELLS", 1)
    assert distances(real, {"empty": empty}, [("a",)])["empty"]["a",] == 1
    assert independent(empty, seed=1, label="i").size() == 0
    assert distance.WAYS == (1, 2, 3)


def test_rows_in_memory_are_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    source = InPieces(table(500, 1))
    streamed = pooled([Table(SCHEMA, source)])
    held = kept(streamed)
    turns = source.turn
    assert (collected(held, ("d", "a")) == collected(rows(table(500, 1)), ("d", "a"))).all()
    assert (
        held.marginals([("a", "b")])[0].values.tolist()
        == rows(table(500, 1)).marginals([("a", "b")])[0].values.tolist()
    )
    assert source.turn == turns  # the source was not read again
    monkeypatch.setattr(row_module, "KEPT_BYTES", 100)
    assert kept(streamed) is streamed
