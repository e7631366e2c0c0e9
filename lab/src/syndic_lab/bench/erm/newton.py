"""The few-round method beside the others: at the published settings, at other epsilons, for more than two classes."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.model.erm.loss import JointObjective, Logistic, Loss, Softmax, one_against_others
from syndic.model.erm.second_order import UNIT, Newton, follow
from syndic_lab.bench.erm import data as erm_data
from syndic_lab.bench.erm.noise_law import gaussian_sigma
from syndic_lab.bench.row import Row

Numbers = NDArray[np.float64]
DELTA: Final = Fraction(1, 1000)
EPSILONS: Final = (Fraction(1, 10), Fraction(1))
# long enough to be at the minimum, with noise as good as none
_EXACT_ROUNDS: Final = 60


def newton_models(
    scheme: Newton, rows: Numbers, labels: Numbers, deviation: float, generator: np.random.Generator
) -> Numbers:
    """Return the last weights (model, feature); `deviation` is that of noise at sensitivity 1 for the whole budget.

    Drawn in floating point: it protects nobody.
    """

    def ask(number: int, weights: Numbers) -> tuple[Numbers, float]:
        noise = float(scheme.reach(number)) * UNIT * deviation / sqrt(scheme.share(number))
        exact = scheme.sums(number, weights, rows, labels) * UNIT
        return np.asarray(exact + generator.normal(0.0, noise, len(exact)), dtype=np.float64), noise

    return follow(scheme, ask)[-1]


@final
@dataclass(frozen=True, eq=False)
class Kinds:
    """Four kinds of connections of NSL-KDD told apart, at epsilon 0.5 and the published delta."""

    split: erm_data.Split
    codes: Numbers
    test_codes: Numbers
    repeats: int
    regularisation: float = 0.001

    def rows(self) -> Iterator[Row]:
        """Yield gap and accuracy loss of softmax and one-versus-rest; the baseline always says the commonest kind."""
        train, labels = self.split.rows.toarray(), one_against_others(self.codes, len(erm_data.KINDS))
        losses: dict[str, Loss] = {"softmax": Softmax(), "one versus rest": Logistic()}
        commonest = float(np.bincount(self.codes.astype(np.int64)).argmax())
        for name, loss in losses.items():
            objective = JointObjective(loss, self.regularisation)
            shape = (labels.shape[1], train.shape[1])
            exact = Newton(objective=objective, shape=shape, people=len(train), rounds=_EXACT_ROUNDS)
            generator = np.random.default_rng(0)
            best = newton_models(exact, train, labels, 1e-9, generator)
            least, right = objective.value(best, train, labels), self._accuracy(best)
            scheme = Newton(objective=objective, shape=shape, people=len(train))
            sigma = gaussian_sigma(Fraction(1, 2), DELTA)
            found = [newton_models(scheme, train, labels, sigma, generator) for _ in range(self.repeats)]
            gap = float(np.mean([objective.value(each, train, labels) - least for each in found]))
            loss_of = float(np.mean([right - self._accuracy(each) for each in found]))
            constant = right - float((self.test_codes == commonest).mean())
            where = f"NSL-KDD, four kinds, Newton in {scheme.rounds} rounds, {name}"
            zero = objective.value(np.zeros(shape), train, labels) - least
            yield Row(bench="erm", row=where, metric="gap", value=gap, unit="nats", baseline=zero)
            yield Row(bench="erm", row=where, metric="loss", value=loss_of, unit="share", baseline=constant)

    def _accuracy(self, weights: Numbers) -> float:
        predicted = np.argmax(self.split.test_rows @ weights.T, axis=1)
        return float((predicted == self.test_codes).mean())
