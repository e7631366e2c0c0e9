"""Learning as a study: the method `learn` itself, with masks, ledgers and exact integer noise, on Adult.

A study takes columns and bounds as declared. Here the lists of categories are read off the public file, as if it were
the register that everybody agreed to.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from syndic.data import Categorical, Instead, Integer, Schema, Table, open_source
from syndic.kernel import Member
from syndic.methods import Learn
from syndic.methods.learning.plan import LearnPlan
from syndic.methods.learning.result import LearnResult, LinearPredictor
from syndic.model.erm.loss import Logistic, Objective
from syndic.model.erm.solve import minimise
from syndic.privacy import Budget, Unit
from syndic.study import Study, simulate
from syndic_lab.bench.erm.data import read
from syndic_lab.bench.row import Row

PARTIES: Final = 5
_BOUNDS: Final = {
    "age": (17, 90),
    "education-num": (1, 16),
    "hours-per-week": (1, 99),
    "capital-gain": (0, 99_999),
    "capital-loss": (0, 4_356),
}
_LABEL: Final = "income"
_POSITIVE: Final = ">50K"
_PENALTY: Final = 0.001


def rows(quick: bool) -> Iterator[Row]:
    """Yield test accuracy and processor seconds of some schemes; the baseline is one curator without privacy."""
    data = adult()
    best = data.best_accuracy()
    schemes: list[dict[str, Any]] = [{"scheme": "newton"}, {"scheme": "mpc_out"}, {"scheme": "local_out"}]
    if not quick:
        schemes += [{"scheme": "mpc_grad", "iterations": 200}, {"scheme": "local_grad", "iterations": 200}]
    for options in schemes:
        start = time.process_time()
        result = data.learn(options)
        spent = time.process_time() - start
        what = f"study, Adult, m {PARTIES}, epsilon 0.5, {options['scheme']}, {result.model.rounds} sums"
        right = data.accuracy(result)
        yield Row(bench="erm", row=what, metric="accuracy", value=right, unit="share", baseline=best)
        yield Row(bench="erm", row=what, metric="cpu seconds", value=spent, unit="s")


@final
@dataclass(frozen=True, eq=False)
class StudyData:
    """Rows to learn from, in equal parts, rows to test on, and the columns."""

    train: pa.Table
    test: pa.Table
    schema: Schema

    def study(self, options: dict[str, Any]) -> Study:
        """Return the study of a scheme."""
        people = self.train.num_rows // PARTIES
        return Study(
            name="Adult",
            unit=Unit(neighbours="replace"),
            budget=Budget.of(0.5, 1e-7),
            protocol=Learn(label=_LABEL, positive=_POSITIVE, regularisation=_PENALTY, **options),
            parties=tuple(Member(name=f"p{number}", people=people) for number in range(PARTIES)),
            schema=self.schema,
        )

    def learn(self, options: dict[str, Any]) -> LearnResult:
        """Run the study with all parties here."""
        people = self.train.num_rows // PARTIES
        parts = {f"p{number}": self.train.slice(number * people, people) for number in range(PARTIES)}
        result = simulate(self.study(options), parts, seed=1).result
        assert isinstance(result, LearnResult)  # noqa: S101 (what this method returns)
        return result

    def accuracy(self, result: LearnResult) -> float:
        """Return the share of test rows on the right side."""
        said = np.asarray(LinearPredictor(result.model, result.design).decision_function(self.test)[:, 0] > 0)
        return float((said == np.asarray(pc.equal(self.test[_LABEL], _POSITIVE))).mean())

    def best_accuracy(self) -> float:
        """Return the share of test rows that the minimiser over all rows, without privacy, has right."""
        design = self.study({"scheme": "newton"}).plan_as(LearnPlan).design
        x, y = design.matrix(Table(schema=self.schema, source=open_source(self.train)))
        weights = minimise(Objective(Logistic(), _PENALTY), x, y[:, 0], tolerance=1e-7).weights
        tests, truth = design.matrix(Table(schema=self.schema, source=open_source(self.test)))
        return float((np.where(tests @ weights > 0, 1.0, -1.0) == truth[:, 0]).mean())


def adult() -> StudyData:
    """Return Adult, shuffled once."""
    train, test = (_clean(read(f"adult_{part}.parquet")) for part in ("train", "test"))
    order = np.random.default_rng(0).permutation(train.num_rows)[: train.num_rows // PARTIES * PARTIES]
    columns: list[Integer | Categorical] = []
    for name in train.column_names:
        if name in _BOUNDS:
            least, most = _BOUNDS[name]
            bins = min(100, most - least + 1)
            columns.append(Integer(name=name, lower=least, upper=most, bins=bins, missing=Instead(value=least)))
        else:
            values = tuple(sorted({value for value in train[name].to_pylist() if value != "?"}))
            columns.append(Categorical(name=name, values=values, missing=Instead(value=values[0])))
    return StudyData(train.take(order), test, Schema(columns=tuple(columns)))


def _clean(table: pa.Table) -> pa.Table:
    place = table.column_names.index(_LABEL)
    label = pc.utf8_rtrim(table[_LABEL], characters=".")
    return table.set_column(place, _LABEL, label).drop_columns(["fnlwgt"])
