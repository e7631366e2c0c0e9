"""What a fit shows about one record, by attack: never more than its epsilon, and not much less for the worst record."""

from fractions import Fraction
from math import exp, log, sqrt

import numpy as np
import pytest

from syndic.model.erm.loss import JointObjective, Logistic
from syndic.model.erm.second_order import Newton
from syndic.privacy import Budget, Unit
from syndic.random import SimulationRandomness
from syndic.sklearn.estimator import Account

pytestmark = [pytest.mark.statistical, pytest.mark.slow]

RUNS = 1500
EPSILON, DELTA = 2.0, 1e-3


def test_no_attack_on_the_weights_beats_the_claim() -> None:
    scheme = Newton(objective=JointObjective(Logistic(), 0.05), shape=(1, 2), people=5, rounds=3)
    account = Account(scheme=scheme, budget=Budget.of(EPSILON, DELTA), unit=Unit(neighbours="replace"))
    rows = np.tile([[0.6, 0.0]], (5, 1))
    labels = np.array([[1.0], [-1.0], [1.0], [-1.0], [1.0]])
    other = rows.copy()
    # one record at the far end of the ball, with either label: the largest change that there is
    rows[0], other[0] = [0.0, 1.0], [0.0, -1.0]
    with_it = [account.learn(rows, labels, SimulationRandomness(n, "with"))[0][0, 1] for n in range(RUNS)]
    without = [account.learn(other, labels, SimulationRandomness(n, "without"))[0][0, 1] for n in range(RUNS)]
    # a share of RUNS is off by more than this with chance 1e-8 (Hoeffding); 20 attacks of two shares each: 4e-7
    slack = sqrt(log(2e8) / (2 * RUNS))
    shown = 0.0
    for threshold in np.quantile(np.concatenate([with_it, without]), np.linspace(0.05, 0.95, 10)):
        for sign in (1.0, -1.0):
            hit = float((sign * (np.array(with_it) - threshold) > 0).mean())
            miss = float((sign * (np.array(without) - threshold) > 0).mean())
            assert hit - slack <= exp(EPSILON) * (miss + slack) + DELTA
            shown = max(shown, log(max(hit - DELTA, 1e-9) / max(miss, 1 / RUNS)))
    # an account that is far too careful, or noise that drowns all, would show next to nothing
    assert shown > 0.3
    assert Fraction(0) < account.events[0].mu_squared  # type: ignore[union-attr]  # a Gaussian event
