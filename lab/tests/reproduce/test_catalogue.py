"""Every published table and figure is accounted for, and every published number of the benches belongs to one."""

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import syndic_lab.bench
from syndic.errors import InputError
from syndic_lab.bench.erm import published as erm_published
from syndic_lab.bench.erm import run as erm
from syndic_lab.bench.erm.experiment import CHECKPOINTS, Trace
from syndic_lab.bench.regression import published as regression_published
from syndic_lab.bench.regression.data import Data
from syndic_lab.bench.regression.published import EPSILONS
from syndic_lab.bench.regression.table import PRIVATE, PUBLIC, Loss, Losses
from syndic_lab.bench.row import Row
from syndic_lab.reproduce import CATALOGUE, PAPERS, chosen, learning, regression
from syndic_lab.reproduce.catalogue import NOT_PUBLISHED

# what the five papers print, written down apart from the catalogue
PRINTED = {
    "su-liu-2020": ["Table I", "Figure 1", "Theorems 1 to 4"],
    "wu-2022": ["Figure 2", "Figure 3", "Table 1", "Theorems 1 and 2, Lemma 2"],
    "jayaraman-2018": [
        *("Table 1", "Table 2", "Theorems 3.2, 3.3, 3.6 and 3.7, Lemma A.3"),
        *(f"Figure {number}" for number in range(1, 10)),
    ],
    "zhao-2024": [
        *("Table 1", "Table 2", "Theorem 4", "Theorem 5, Lemma 3", "Algorithm 4, line 7", "Figure 6, NLTCS"),
        *(f"Figure {number}" for number in range(3, 10)),
    ],
    "chen-sung": ["Theorem", "Figure 1"],
}


def test_every_published_table_and_figure_is_in_the_catalogue() -> None:
    assert [paper.key for paper in PAPERS] == list(PRINTED)
    for paper, printed in PRINTED.items():
        for where in printed:
            assert any(item.paper.key == paper and item.where.startswith(where) for item in CATALOGUE), (paper, where)


def test_items_are_run_or_say_why_not() -> None:
    assert len({item.name for item in CATALOGUE}) == len(CATALOGUE)
    for item in CATALOGUE:
        assert item.measure is not None or item.reason, item.name
        if item.measure is not None:
            quick, full = item.seconds
            assert full > 0, item.name
            assert quick is None or 0 < quick <= full, item.name
            assert full / max(1, len(item.pieces)) <= 3600, item.name


def test_a_quick_run_is_expected_to_fit_into_ten_minutes() -> None:
    # processor seconds on one core: the second core is reserve
    assert sum(item.expected(quick=True) or 0.0 for item in CATALOGUE) <= 600


def test_every_bench_with_published_numbers_belongs_to_an_item() -> None:
    home = Path(syndic_lab.bench.__file__).parent
    modules = {".".join(path.relative_to(home).with_suffix("").parts): path for path in home.rglob("*.py")}
    found = {
        name
        for name, path in modules.items()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and any(word.arg == "published" and not _nothing(word.value) for word in node.keywords)
    }
    covered = {name for item in CATALOGUE for name in item.benches}
    assert len(found) >= 10  # the search itself works
    assert found <= covered | set(NOT_PUBLISHED) <= set(modules)
    assert not covered & set(NOT_PUBLISHED)


def _nothing(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def published(parts: Any) -> list[float]:
    return [part.published for part in parts if isinstance(part, Row) and part.published is not None]


@pytest.mark.parametrize("name", list(regression_published.LOSSES))
def test_table_1_of_the_regression_paper_is_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [*((method, 0.0) for method in PUBLIC), *((method, epsilon) for method in PRIVATE for epsilon in EPSILONS)]
    losses = Losses(dict.fromkeys(keys, Loss(0.5, 0.01)), dict.fromkeys(EPSILONS, 100))
    monkeypatch.setattr(regression, "measure", lambda *_: losses)
    item = next(one for one in CATALOGUE if one.name == f"regression-table-1-{name}")
    rows = list(regression.table_1(quick=True, load=lambda: Data(name, np.zeros((5, 3)), 5)))
    cells = [loss for at in regression_published.LOSSES[name] for loss in at]
    assert sorted(published(rows)) == sorted([regression_published.OLS[name], *cells])
    assert len(item.verdicts([part for part in rows if isinstance(part, Row)])) == 11


class Fixed:
    """An experiment whose methods all have a gap of 1 and a loss of 0.1."""

    def __init__(self, split: Any, parties: int, repeats: int) -> None:
        assert repeats >= 3
        self.repeats = repeats
        self.split, self.parties, self.name, self.reference = split, parties, f"{split.name}, m {parties}", None

    def measure(self) -> dict[str, Trace]:
        names = [*erm.FIGURE, *(f"{one}, sound" for one in ("Pathak", "Local Out P", "Local Obj P", "Local Grad P"))]
        return dict.fromkeys(names, Trace((1.0,) * len(CHECKPOINTS), (0.1,) * len(CHECKPOINTS)))

    def objective(self, _weights: None) -> float:
        return 0.5

    accuracy = objective

    def seconds(self) -> float:
        return 1.0


def test_figure_1_of_the_learning_paper_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "Experiment", Fixed)
    split = SimpleNamespace(name="KDDCup99", test_labels=np.zeros(100), regression=False)
    parts = list(learning.curves(quick=True, load=lambda: split, parties=1000))  # type: ignore[arg-type, return-value]
    figures = (erm_published.GAPS, erm_published.LOSSES)
    wanted = [np.mean(curve[7:]) for curves in figures for curve in curves.values()]
    # with the epsilon of one party's objective, and of the joint one
    wanted += [np.mean(curves["Rajkumar-Agarwal"][7:]) for curves in figures]
    assert sorted(published(parts)) == pytest.approx(sorted(wanted))
    assert len([part for part in parts if not isinstance(part, Row)]) == 4


def test_table_1_of_the_learning_paper_by_hand() -> None:
    rows = {(row.row, row.metric): row for row in learning.table_1(quick=True)}
    assert len(rows) == 12
    # 2 / (500 x 0.01 x 0.5), a tenth of it over 100 parties, a hundredth inside a sum
    for name, scale in (("Pathak", 800), ("Local Out P", 80), ("MPC Out P", 8)):
        assert rows[f"noise, {name}", "noise parameter"].value == pytest.approx(scale)
        assert rows[f"noise, {name}", "sd over 1000 samples"].value == pytest.approx(2**0.5 * scale, rel=0.2)


def test_names_choose_items_by_their_beginning() -> None:
    assert chosen(()) == CATALOGUE
    assert {item.paper.key for item in chosen(("homm", "estimation-people"))} == {"su-liu-2020", "chen-sung"}
    with pytest.raises(InputError, match=r"--only nothing: no table or figure has a name .* names begin with homm"):
        chosen(("homm", "nothing"))
