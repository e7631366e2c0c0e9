"""The pieces of HOMM's experiments, each against something simpler."""

import math
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from syndic import Budget, Homm, Member, Study, Unit
from syndic.data import Schema, SparseCounts, Table, open_source
from syndic.document import exact
from syndic.errors import InputError, MissingExtraError
from syndic_lab.bench.homm import data as homm_data
from syndic_lab.bench.homm import model as homm_model
from syndic_lab.bench.homm import run as homm
from syndic_lab.bench.homm.experiment import Experiment, threshold
from syndic_lab.bench.open_party import merge_openly

INSURANCE = """age,sex,bmi,children,smoker,region,charges
19,female,27.9,0,yes,southwest,16884.924
18,male,33.77,1,no,southeast,1725.5523
40,male,30,3,no,northeast,9000
"""


def grid() -> Schema:
    return homm_data.schema_of(homm_data.real("x", -1, 1, 4), homm_data.coded("z", 3))


def study(epsilon: float, parties: int) -> Study:
    return Study(
        name="open",
        unit=Unit(neighbours="add_remove"),
        budget=Budget(epsilon=exact(epsilon)),
        protocol=Homm(),
        parties=tuple(Member(name=f"p{place}") for place in range(parties)),
        schema=grid(),
    )


def counted(
    x: np.ndarray[tuple[int], np.dtype[np.float64]], z: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> SparseCounts:
    return Table(grid(), open_source(pa.table({"x": x, "z": z}))).cells()


def test_open_parties_release_the_counts_where_noise_is_nothing() -> None:
    draws = np.random.default_rng(1)
    tables = {f"p{place}": (draws.uniform(-1, 1, 50), draws.integers(0, 3, 50)) for place in range(2)}
    merged = merge_openly(
        Homm(), study(60.0, 2), {name: counted(x, z) for name, (x, z) in tables.items()}, "one"
    ).table.to_arrow()
    bins = [np.linspace(-1, 1, 5), np.arange(4) - 0.5]
    x, z = (np.concatenate([rows[place] for rows in tables.values()]) for place in (0, 1))
    wanted = np.histogramdd((x, z), bins)[0]
    found = np.histogramdd((np.asarray(merged["x"]), np.asarray(merged["z"])), bins)[0]
    assert (found == wanted).all()
    assert not np.isin(np.asarray(merged["x"]), x).any()  # drawn within bins, not copied


@pytest.mark.bench
@pytest.mark.statistical
def test_open_parties_add_the_noise_of_the_protocol() -> None:
    empty = counted(np.empty(0), np.empty(0, dtype=np.int64))
    runs, cells, epsilon = 400, 12 * 3, 0.7
    agreed, tables = study(epsilon, 3), {f"p{place}": empty for place in range(3)}
    rows = [len(merge_openly(Homm(), agreed, tables, str(place)).table) for place in range(runs)]
    ratio = math.exp(-epsilon)
    # discrete Laplace above 0: chance a / (1 + a) of a geometric number with mean 1 / (1 - a)
    mean = cells * ratio / (1 - ratio**2)
    second = ratio / (1 - ratio) ** 2
    spread = math.sqrt(cells * (second - (ratio / (1 - ratio**2)) ** 2) / runs)
    assert abs(np.mean(rows) - mean) < 5 * spread


def test_the_same_labels_repeat_and_others_do_not() -> None:
    tables = {"p0": counted(np.zeros(9), np.zeros(9, dtype=np.int64))}
    first, again, other = (
        merge_openly(Homm(), study(0.5, 1), tables, label).table.to_arrow() for label in ("a", "a", "b")
    )
    assert first.equals(again)
    assert not first.equals(other)


@pytest.mark.parametrize(
    ("losses", "reference", "found"),
    [
        ((3, 2, 1), 2.5, 2.0),
        ((3, 2, 1), 9.0, 1.0),
        ((3, 2, 1), 1.0, None),
        ((1, 3, 1), 2.0, 3.0),  # below, above, below: only the last stays
        ((3, 2, 2), 2.0, None),  # equal is not below
    ],
)
def test_threshold(losses: tuple[float, ...], reference: float, found: float | None) -> None:
    assert threshold(dict(zip((1.0, 2.0, 3.0), losses, strict=True)), reference) == found


def test_threshold_agrees_with_its_definition() -> None:
    draws = np.random.default_rng(2)
    for _ in range(200):
        curve = {float(epsilon): float(loss) for epsilon, loss in enumerate(draws.integers(0, 4, 6), start=1)}
        wanted = [e for e in curve if all(loss < 2 for other, loss in curve.items() if other >= e)]
        assert threshold(curve, 2.0) == min(wanted, default=None)


def test_linear_model_finds_an_exact_relation_and_misses_noise_by_its_size() -> None:
    draws = np.random.default_rng(3)
    x, kind = draws.normal(size=400), draws.integers(0, 3, 400).astype(float)
    rows = {"x": x, "kind": kind, "y": 2 + 3 * x + np.array([0.0, 5.0, -1.0])[kind.astype(int)]}
    loss = homm_model.least_squares("y", {"kind": 3})
    train, test = ({name: values[part] for name, values in rows.items()} for part in (slice(200), slice(200, None)))
    assert loss(train, test) < 1e-9
    assert homm_model.least_squares("y", {})(train, test) > 1  # codes are no numbers
    test["y"] = test["y"] + np.where(np.arange(200) % 2, 4.0, -4.0)
    assert loss(train, test) == pytest.approx(4.0)


def test_logistic_regression_finds_a_border() -> None:
    x = np.linspace(-1, 1, 201)
    rows = {"x": x, "y": (x > 0.3).astype(float)}
    loss = homm_model.misclassification("y", {})
    assert loss(rows, rows) < 0.03
    assert loss(rows, {"x": x, "y": 1 - rows["y"]}) > 0.97


def test_one_answer_only_is_predicted_everywhere_and_no_rows_as_zero() -> None:
    loss = homm_model.misclassification("y", {})
    test = {"x": np.zeros(4), "y": np.array([1.0, 1.0, 1.0, 0.0])}
    assert loss({"x": np.array([1.0, 2.0]), "y": np.ones(2)}, test) == 0.25
    assert loss({"x": np.empty(0), "y": np.empty(0)}, test) == 0.75
    assert homm_model.squared_error_of_mean({"y": np.empty(0)}, {}) == homm_data.MEAN**2


def test_forest_learns_what_a_line_cannot() -> None:
    draws = np.random.default_rng(4)
    x = draws.uniform(-1, 1, 600)
    rows = {"x": x, "y": np.abs(x)}
    assert homm_model.forest("y", ["x"])(rows, rows) < 0.05 < homm_model.least_squares("y", {})(rows, rows)


@pytest.mark.parametrize(
    ("make", "parties", "smallest", "largest", "total"),
    [
        (homm.mean_of_normal, 5, 20, 150, 370),
        (homm.linear_model, 10, 50, 275, 1000),
        (homm.logistic_model, 10, 50, 80, 650),
    ],
)
def test_party_sizes_are_the_published_ones(
    make: Callable[[], Experiment], parties: int, smallest: int, largest: int, total: int
) -> None:
    experiment = make()
    split = experiment.draw(np.random.default_rng(1))
    sizes = [len(rows["y"]) for rows in split.parties]
    assert (len(sizes), sizes[0], sizes[-1], sum(sizes)) == (parties, smallest, largest, total)
    assert sizes == sorted(sizes) == list(experiment.sizes)


def test_simulated_answers_follow_the_model() -> None:
    split = homm_data.linear([40_000], test=10, weight=0.5)(np.random.default_rng(5))
    rows = split.parties[0]
    weights = np.linalg.lstsq(np.column_stack([np.ones(40_000), rows["x1"], rows["x2"]]), rows["y"], rcond=None)[0]
    assert weights == pytest.approx([1, 0.5, 0.5], abs=0.1)
    assert rows["y"].var() == pytest.approx(0.25 * 1.25 + 3, abs=0.25)
    binary = homm_data.logistic([40_000], test=10)(np.random.default_rng(5)).parties[0]
    high = (binary["x1"] > 0.9) & (binary["x1"] < 1.1) & (binary["x2"] == 1)
    assert binary["y"][high].mean() == pytest.approx(1 / (1 + math.exp(-2.5)), abs=0.06)


def test_shuffled_rows_are_dealt_out_once_each() -> None:
    rows = {"a": np.arange(30.0), "b": np.arange(30.0) * 2}
    split = homm_data.shuffled(rows, (5, 10))(np.random.default_rng(1))
    assert [len(part["a"]) for part in (*split.parties, split.test)] == [5, 10, 15]
    everything = np.concatenate([part["a"] for part in (*split.parties, split.test)])
    assert sorted(everything) == list(range(30))
    assert everything.tolist() != list(range(30))
    assert all((part["b"] == 2 * part["a"]).all() for part in (*split.parties, split.test))


def test_insurance_is_read_as_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "insurance.csv").write_text(INSURANCE)
    monkeypatch.setenv("SYNDIC_DATA", str(tmp_path))
    rows = homm_data.insurance()
    assert rows["smoker"].tolist() == [1, 0, 0]
    assert rows["region"].tolist() == [3, 2, 0]
    assert rows["charges"].tolist() == [16884.924, 1725.5523, 9000]


def test_absent_data_say_where_they_are_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SYNDIC_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"Social_Network_Ads.csv was not found: set SYNDIC_DATA"):
        homm_data.ads()


def test_missing_scikit_learn_is_said_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtraError, match=r"scikit-learn is not installed: pip install 'syndic\[bench\]'"):
        next(homm.rows(quick=True))
