"""What one round of learning asks for: whole numbers against plain arithmetic, and how far one person moves them."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from support import COLUMNS, rows, study_text
from syndic import Study
from syndic.data import Table, open_source
from syndic.data.design import Design, into_ball
from syndic.errors import InputError
from syndic.methods.learning import query as query_module
from syndic.methods.learning.query import ModelQuery, PartyRows, Rows, gradient_query, model_query
from syndic.model.erm.loss import SQUARED, Huber, Logistic, Loss, Objective, SmoothedHinge
from syndic.model.erm.second_order import STEPS
from syndic.model.erm.solve import Solution, minimise

Numbers = NDArray[np.float64]
SCHEMA = Study.loads(study_text(columns=COLUMNS)).schema


def table_of(data: pa.Table) -> Table:
    return Table(schema=SCHEMA, source=open_source(data))


def design(label: str = "colour", **more: Any) -> Design:
    return Design(schema=SCHEMA, label=label, **more)


def some_rows(count: int, models: int, seed: int, width: int = 5) -> Rows:
    draws = np.random.default_rng(seed)
    features = into_ball(draws.normal(size=(count, width)), 1.0)
    labels = np.where(draws.random((count, models)) < 0.5, -1.0, 1.0)
    return Rows(features=np.trunc(features * STEPS), labels=labels)


@pytest.mark.parametrize("loss", [Logistic(), SmoothedHinge(), Huber(threshold=0.7), SQUARED])
@pytest.mark.parametrize("clip", [0.3, 1.0])
def test_one_models_gradient_is_the_plain_one_to_steps(loss: Loss, clip: float) -> None:
    part, weights = some_rows(200, 1, 0), np.random.default_rng(1).normal(size=(1, 5))
    found = part.gradient_steps(weights, loss, clip)[0] / STEPS**2
    plain = Objective(loss, 0.1, clip=clip).record_gradients(weights[0], part.plain, part.labels[:, 0]).sum(axis=0)
    # each of 200 slopes is cut by less than a step
    assert found == pytest.approx(plain, abs=200 * 2 / STEPS)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    models=st.integers(1, 4),
    clip=st.floats(0.01, 3.0),
    size=st.sampled_from([0.0, 1.0, 30.0, 1e9]),
)
def test_a_records_whole_numbers_are_no_longer_than_clip(seed: int, models: int, clip: float, size: float) -> None:
    part = some_rows(3, models, seed)
    weights = size * np.random.default_rng(seed + 1).normal(size=(models, 5))
    for loss in (Logistic(), SQUARED, SmoothedHinge()):
        for place in range(3):
            one = Rows(features=part.features[place : place + 1], labels=part.labels[place : place + 1])
            steps = one.gradient_steps(weights, loss, clip)
            # in whole numbers of any size: no rounding in the test
            assert sum(int(step) ** 2 for step in steps.ravel()) <= Fraction(clip) ** 2 * STEPS**4


def test_the_sum_is_that_of_the_records_in_any_order() -> None:
    part, weights = some_rows(4000, 2, 3), np.random.default_rng(4).normal(size=(2, 5))
    whole = part.gradient_steps(weights, Logistic(), 0.8)
    order = np.random.default_rng(5).permutation(4000)
    mixed = Rows(features=part.features[order], labels=part.labels[order]).gradient_steps(weights, Logistic(), 0.8)
    assert np.array_equal(whole, mixed)
    without = Rows(features=part.features[1:], labels=part.labels[1:]).gradient_steps(weights, Logistic(), 0.8)
    first = Rows(features=part.features[:1], labels=part.labels[:1]).gradient_steps(weights, Logistic(), 0.8)
    assert np.array_equal(whole - without, first)


@pytest.mark.parametrize("clip", [1e3, 1e5])
def test_the_sum_is_exact_at_large_clips_too(clip: float) -> None:
    part, weights = some_rows(30_000, 1, 3), np.full((1, 5), 2.0**13)
    # few rows at a time are far from what double precision has room for
    pieces = [
        Rows(features=part.features[start : start + 10], labels=part.labels[start : start + 10])
        for start in range(0, 30_000, 10)
    ]
    expected = sum(piece.gradient_steps(weights, SQUARED, clip) for piece in pieces)
    assert np.array_equal(part.gradient_steps(weights, SQUARED, clip), expected)


def test_rows_stay_in_the_unit_ball_and_labels_say_each_class() -> None:
    data = rows(300, 1)
    batches = list(query_module.batches(design(), table_of(data)))
    features = np.concatenate([batch.features for batch in batches]).astype(np.int64)
    labels = np.concatenate([batch.labels for batch in batches])
    assert (features**2).sum(axis=1).max() <= STEPS**2
    assert design().classes == ("red", "green", "blue")
    assert [("red", "green", "blue")[place] for place in labels.argmax(axis=1)] == data["colour"].to_pylist()
    assert np.all(labels.sum(axis=1) == -1)


def test_classes_follow_from_the_label() -> None:
    assert design("colour", positive="green").shape == (1, 4)
    assert design("age").classes == ()
    two = COLUMNS.replace('values = ["red", "green", "blue"]', 'values = ["red", "green"]')
    schema = Study.loads(study_text(columns=two)).schema
    assert Design(schema=schema, label="colour").classes == ("green",)


@dataclass(frozen=True)
class Fixed:
    """A design and a table whose rows are given."""

    data: Rows
    label: str = "y"

    @property
    def schema(self) -> Any:
        return SimpleNamespace(names=("y",))

    @property
    def shape(self) -> tuple[int, int]:
        return self.data.labels.shape[1], self.data.features.shape[1]

    def batches(self, names: Any) -> Iterator[dict[str, None]]:
        yield dict.fromkeys(names)

    def rows(self, coded: Any) -> Numbers:
        del coded
        return self.data.plain

    def labels(self, codes: Any) -> Numbers:
        del codes
        return self.data.labels


def holding(data: Rows, *, people: int, total: int) -> PartyRows:
    fixed: Any = Fixed(data)
    return PartyRows(table=fixed, design=fixed, people=people, rows=1, share=people / total)


def one_query(
    data: Rows, loss: Loss, people: dict[str, int], records: int, penalty: float = 0.01, *, sized: bool = False
) -> ModelQuery:
    fixed: Any = Fixed(data)
    return model_query(fixed, Objective(loss, penalty), people=people, records=records, rows=1, sized=sized)


def test_the_model_is_the_minimiser_of_the_sum_over_public_people() -> None:
    data = some_rows(40, 2, 7)
    query = one_query(data, Logistic(), {"p": 50, "q": 70}, 1)
    steps = query.values(holding(data, people=50, total=120), np.zeros(0)).reshape(2, 5) * query.unit
    for place in range(2):
        # 40 rows over 50 people: the mean loss has a penalty of 50 / 40
        exact = minimise(Objective(Logistic(), 0.01 * 50 / 40), data.plain, data.labels[:, place], tolerance=1e-9)
        assert steps[place] == pytest.approx(exact.weights * 50 / 120, abs=query.tolerances[50] / 0.01)


def sorted_out(loss: Loss, count: int, seed: int) -> Rows:
    part = some_rows(count, 1, seed)
    return part if not isinstance(loss, Huber) else Rows(features=part.features, labels=0.3 * part.labels)


@pytest.mark.parametrize("loss", [Logistic(), SmoothedHinge(), Huber()])
@pytest.mark.parametrize("seed", range(6))
def test_one_record_moves_a_model_no_further_than_reach(loss: Loss, seed: int) -> None:
    data, sizes = sorted_out(loss, 30, seed), {"p": 30, "q": 20}
    extreme = Rows(features=np.array([[STEPS, 0.0, 0.0, 0.0, 0.0]]), labels=np.array([[1.0]]))
    opposite = Rows(features=extreme.features, labels=-extreme.labels)

    def with_first(first: Rows) -> Rows:
        return Rows(
            features=np.concatenate([first.features, data.features]), labels=np.concatenate([first.labels, data.labels])
        )

    added, replaced = (one_query(data, loss, sizes, records, penalty=0.003) for records in (1, 2))
    plain, one, other = (
        added.values(holding(part, people=30, total=50), np.zeros(0))
        for part in (data, with_first(extreme), with_first(opposite))
    )
    assert 0 < np.linalg.norm(one - plain) <= added.reach
    assert replaced.unit >= added.unit
    assert np.linalg.norm(one - other) * added.unit <= float(replaced.reach) * replaced.unit


@pytest.mark.parametrize("loss", [Logistic(), SmoothedHinge()])
def test_one_record_of_a_party_far_above_its_declared_size_moves_no_model_further_than_reach(
    loss: Loss, monkeypatch: pytest.MonkeyPatch
) -> None:
    people, nothing = 1000, Rows(features=np.zeros((1, 1)), labels=np.ones((1, 1)))
    query, sized = (one_query(nothing, loss, {"p": people}, 1, 0.001, sized=sized) for sized in (False, True))

    def steps(count: int) -> NDArray[np.int64]:
        same = Rows(features=np.full((count, 1), float(STEPS)), labels=np.ones((count, 1)))
        return query.values(holding(same, people=people, total=people), np.zeros(0))

    for count in (0, 10, 999, 1000, 1001, 1500, 1998, 1999, 2000, 2001, 10**6):
        assert np.linalg.norm(steps(count + 1) - steps(count)) <= query.reach, count
    assert [steps(count).any() for count in (1, 1000, 1999, 2000, 10**6)] == [True, True, True, False, False]
    # the factor costs 5 % at this penalty
    assert float(query.reach) * query.unit <= 1.06 * float(sized.reach) * sized.unit
    # without it, the solver gives up at some number of rows, about 500,000, and one more row there moves the model by
    # all its length; here it gives up earlier
    monkeypatch.setattr(query_module, "minimise", minimise_few)
    assert np.array_equal(steps(MOST_SOLVED + 1), steps(MOST_SOLVED))
    monkeypatch.setattr(query_module, "ROOM", 10**9)
    assert np.linalg.norm(steps(MOST_SOLVED + 1) - steps(MOST_SOLVED)) > query.reach


MOST_SOLVED = 10_000


def minimise_few(objective: Objective, rows: Numbers, labels: Numbers, *, tolerance: float) -> Solution:
    if len(rows) > MOST_SOLVED:
        raise InputError("the solver did not reach its tolerance")
    return minimise(objective, rows, labels, tolerance=tolerance)


def test_reach_is_nearly_attained() -> None:
    """One record among none: with a penalty that keeps weights small every slope is near a half of the largest."""
    extreme = Rows(features=np.array([[float(STEPS), 0.0]]), labels=np.array([[1.0]]))
    query = one_query(extreme, Logistic(), {"p": 10}, 1, penalty=50.0, sized=True)
    moved = query.values(holding(extreme, people=10, total=10), np.zeros(0))
    assert np.linalg.norm(moved) >= 0.45 * float(query.reach)


def test_a_party_without_rows_has_the_zero_model() -> None:
    data = some_rows(4, 1, 0)
    empty = Rows(features=data.features[:0], labels=data.labels[:0])
    query = one_query(data, Logistic(), {"p": 4}, 1)
    assert not query.values(holding(empty, people=4, total=4), np.zeros(0)).any()


def test_gradient_reach_counts_records_and_values_are_cut_to_their_bound() -> None:
    data = some_rows(50, 1, 2)
    fixed: Any = Fixed(data)
    query = gradient_query(fixed, Logistic(), clip=0.5, records=4, rounds=7)
    assert query.reach == 4 * Fraction(1, 2) * STEPS**2
    # fifty rows of a party that says it has one person: only the bound for one is sent
    few = query.values(holding(data, people=1, total=1), np.zeros((1, 5)))
    assert np.abs(few).max() <= query.largest(1, 1) == STEPS**2 // 2


def test_the_solver_is_near_enough_for_the_tolerance_it_states() -> None:
    data = some_rows(2000, 1, 9)
    query = one_query(data, Logistic(), {"p": 2000}, 1, penalty=0.001, sized=True)
    # a thousandth of one record, twice: the sensitivity grows by 0.2 %
    moved = float(query.reach) * query.unit
    assert moved <= 1.003 / (2000 * 0.001)
    assert moved >= 1.0 / (2000 * 0.001)
    assert sqrt(2 * 1.25 / 0.001) == query.radius


@pytest.mark.parametrize("seed", range(8))
def test_a_loss_with_corners_and_hardly_any_penalty_is_solved_too(seed: int) -> None:
    draws = np.random.default_rng(seed)
    features = np.trunc(into_ball((draws.random((50, 104)) < 0.1).astype(np.float64), 1.0) * STEPS)
    data = Rows(features=features, labels=np.ones((50, 1)))
    query = one_query(data, SmoothedHinge(), {"p": 50}, 1, penalty=2.5e-5)
    model = query.model(holding(data, people=50, total=50))
    # not the public point that stands for a failure, and a gradient as short as was stated
    gradient = Objective(SmoothedHinge(), 2.5e-5).gradient(model[0], data.plain, data.labels[:, 0])
    assert 0 < np.linalg.norm(gradient) <= query.tolerances[50]
    assert np.linalg.norm(model) > 1
