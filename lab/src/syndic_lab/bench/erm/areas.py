"""The method `learn` at its defaults: area under the curve and log loss, mean and worst over seeds.

Bank, Adult, and three made-up tables: 500 people, 80 columns that follow three, and an outcome that few have. Five
parties, exact integer noise, neighbours by adding or removing a person. The baseline is the scheme `newton`, at its
defaults, in the same run, with three seeds; the log loss has that of the constant, without privacy, beside it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from syndic.data import Categorical, Instead, Integer, Schema
from syndic.kernel import Member
from syndic.methods import Learn
from syndic.privacy import Budget, Unit
from syndic.study import Study, simulate
from syndic_lab.bench.erm.data import read
from syndic_lab.bench.erm.study import PARTIES, adult
from syndic_lab.bench.row import Row
from syndic_lab.bench.target import NUMBERS, TESTED

EPSILONS: Final = (1.0, 0.3, 0.1)
_DELTA: Final = 1e-7


@final
@dataclass(frozen=True, eq=False)
class Data:
    """Rows to learn from, in equal parts, rows to test on, the columns, and the class to predict."""

    name: str
    train: pa.Table
    test: pa.Table
    schema: Schema
    label: str
    positive: str

    def study(self, epsilon: float, options: dict[str, Any]) -> Study:
        """Return the study at one epsilon."""
        people = self.train.num_rows // PARTIES
        return Study(
            name=self.name,
            unit=Unit(neighbours="add_remove"),
            budget=Budget.of(epsilon, _DELTA),
            protocol=Learn(label=self.label, positive=self.positive, **options),
            parties=tuple(Member(name=f"p{number}", people=people) for number in range(PARTIES)),
            schema=self.schema,
        )

    def scores(self, epsilon: float, options: dict[str, Any], seed: int) -> tuple[float, float]:
        """Return the area under the curve and the log loss of one run on the test rows."""
        people = self.train.num_rows // PARTIES
        parts = {f"p{number}": self.train.slice(number * people, people) for number in range(PARTIES)}
        release = simulate(self.study(epsilon, options), parts, seed=seed)
        chance = release.model.predict_proba(self.test)[:, 1]
        return area(self.truth, chance), log_loss(self.truth, chance)

    @property
    def truth(self) -> NDArray[np.bool_]:
        """Whether each test row is of the class."""
        return np.asarray(pc.equal(self.test[self.label], self.positive))


def rows(quick: bool) -> Iterator[Row]:
    """Yield mean and worst over ten seeds (three if quick) of the default scheme, beside newton's."""
    seeds = {"posterior": range(1, 4 if quick else 11), "newton": range(1, 4)}
    for data in (tiny(), correlated(), rare(), bank(), adult_data()):
        share = float(data.truth.mean())
        constant = -share * np.log(share) - (1 - share) * np.log(1 - share)
        for epsilon in EPSILONS:
            found = {
                scheme: np.array([data.scores(epsilon, {"scheme": scheme}, seed) for seed in some])
                for scheme, some in seeds.items()
            }
            (best, least), (old, older) = ((one.mean(axis=0), one) for one in found.values())
            name = f"{data.name}, m {PARTIES}, epsilon {epsilon:g}"
            for metric, value, baseline in (
                ("AUC, mean", best[0], old[0]),
                ("AUC, worst", least[:, 0].min(), older[:, 0].min()),
                ("log loss, mean", best[1], constant),
                ("log loss, worst", least[:, 1].max(), constant),
            ):
                yield Row(
                    bench="learn", row=name, metric=metric, value=float(value), unit="1", baseline=float(baseline)
                )


def bank() -> Data:
    """Return Bank: 36,210 customers to learn from, 9,000 to test on."""
    table = read("bank_marketing.parquet")
    order = np.random.default_rng(1).permutation(table.num_rows)
    columns: list[Integer | Categorical] = []
    for name in table.column_names:
        if name in NUMBERS:
            least, most = NUMBERS[name]["lower"], NUMBERS[name]["upper"]
            bins = min(1000, most - least + 1)
            columns.append(Integer(name=name, lower=least, upper=most, bins=bins, missing=Instead(value=least)))
        else:
            values = tuple(sorted(set(table[name].to_pylist())))
            columns.append(Categorical(name=name, values=values, missing=Instead(value=values[0])))
    train, test = table.take(order[TESTED:]), table.take(order[:TESTED])
    return Data("Bank", train, test, Schema(columns=tuple(columns)), "y", "yes")


def adult_data() -> Data:
    """Return Adult as published: its own rows to test on."""
    data = adult()
    return Data("Adult", data.train, data.test, data.schema, "income", ">50K")


def tiny() -> Data:
    """Return 500 people to learn from with eight columns, made up: at epsilon 0.1 only the share of a class is seen."""
    return _made("made up, 500 x 8", 500, numbers=5, lists=3, shared=0)


def correlated() -> Data:
    """Return 5,000 people to learn from with 80 numbers, made up, that follow three others."""
    return _made("made up, 5000 x 80 correlated", 5000, numbers=80, lists=0, shared=3)


def rare() -> Data:
    """Return 10,000 people to learn from with six columns, made up, of whom 3 % have the outcome."""
    return _made("made up, 10000 x 6, 3 %", 10_000, numbers=5, lists=1, shared=0, scores=(2.5, -6.0))


def _made(
    name: str, people: int, *, numbers: int, lists: int, shared: int, scores: tuple[float, float] = (1.5, -0.5)
) -> Data:
    """Return made-up rows, 10,000 of them to test on; half of the columns matter to the label.

    `scores`: the deviation and the mean of its log odds.
    """
    draws = np.random.default_rng(7)
    rows = people + 10_000
    values = draws.normal(size=(rows, numbers))
    if shared:
        values = draws.normal(size=(rows, shared)) @ draws.normal(size=(shared, numbers)) + 0.3 * values
    values /= values.std(axis=0)
    codes = draws.integers(0, 4, size=(rows, lists))
    found = values @ (draws.normal(size=numbers) * (draws.random(numbers) < 0.5))
    found += draws.normal(size=(lists, 4))[np.arange(lists), codes].sum(axis=1)
    found = scores[0] * (found - found.mean()) / found.std() + scores[1]
    label = draws.random(rows) < 1 / (1 + np.exp(-found))
    cut = np.clip(np.rint(250 * values), -1000, 1000).astype(np.int64)
    table = pa.table(
        {f"n{place}": cut[:, place] for place in range(numbers)}
        | {f"c{place}": [f"v{code}" for code in codes[:, place]] for place in range(lists)}
        | {"y": np.where(label, "yes", "no")}
    )
    levels = tuple(f"v{code}" for code in range(4))
    columns: list[Integer | Categorical] = [
        Integer(name=f"n{place}", lower=-1000, upper=1000, bins=1000, missing=Instead(value=-1000))
        for place in range(numbers)
    ]
    columns += [
        Categorical(name=f"c{place}", values=levels, missing=Instead(value=levels[0])) for place in range(lists)
    ]
    columns.append(Categorical(name="y", values=("no", "yes"), missing=Instead(value="no")))
    return Data(name, table.slice(0, people), table.slice(people), Schema(columns=tuple(columns)), "y", "yes")


def area(truth: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
    """Return the area under the curve: how often a row of the class is above another, ties by half."""
    values, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    del values
    rank = (np.cumsum(count) - (count - 1) / 2)[place]
    positive = int(truth.sum())
    return float((rank[truth].sum() - positive * (positive + 1) / 2) / (positive * (len(truth) - positive)))


def log_loss(truth: NDArray[np.bool_], chance: NDArray[np.float64]) -> float:
    """Return the mean of minus the logarithm of the chance that was given to what is true."""
    return float(-np.log(np.clip(np.where(truth, chance, 1 - chance), 1e-300, 1.0)).mean())
