"""Composition against closed forms and the accounting library."""

from math import exp

import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
from scipy import stats

from syndic.errors import InputError
from syndic.methods.vertimrf.sketch.encode import SketchPlan
from syndic.methods.vertimrf.sketch.loss import Bracket, delta_above, delta_below, loss_law

ENDS = (delta_below, delta_above)


def delta_of(chances: np.ndarray, losses: np.ndarray, *, repetitions: int, epsilon: float) -> Bracket:
    """Return both ends."""
    lower, upper = (
        end((chances, losses), repetitions=repetitions, epsilon=epsilon) for end in (delta_below, delta_above)
    )
    return Bracket(lower, upper)


def response(epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the losses of randomised response between two codes."""
    likely = 1 / (1 + exp(-epsilon))
    return np.array([likely, 1 - likely]), np.array([epsilon, -epsilon])


@pytest.mark.parametrize(("one", "count", "at"), [(0.1, 50, 1.0), (0.013, 2000, 0.4), (0.5, 15, 3.75), (2.0, 3, 0.0)])
def test_randomised_response_is_binomial(one: float, count: int, at: float) -> None:
    ones = np.arange(count + 1)
    sums = one * (2 * ones - count)
    chances = stats.binom.pmf(ones, count, 1 / (1 + exp(-one)))
    wanted = float(np.sum(chances * np.maximum(0, -np.expm1(at - sums))))
    found = delta_of(*response(one), repetitions=count, epsilon=at)
    assert found.lower <= wanted * (1 + 1e-9)
    assert wanted <= found.upper * (1 + 1e-9)
    assert found.upper - found.lower < 0.02 * wanted + 2e-8


def test_losses_beyond_reach_are_within_the_bracket() -> None:
    chances, losses = np.array([0.989, 0.001, 0.01]), np.array([-0.01, 15.0, 0.3])
    wanted = 0.0
    for big in range(4):
        for small in range(4 - big):
            count = 3 - big - small
            ways = stats.multinomial.pmf([count, big, small], 3, chances)
            total = float(np.dot([count, big, small], losses))
            wanted += float(ways) * max(0.0, -np.expm1(0.2 - total))
    found = delta_of(chances, losses, repetitions=3, epsilon=0.2)
    assert found.lower <= wanted <= found.upper
    assert found.upper - found.lower < 0.001 * wanted


def test_the_accounting_library_agrees_about_sketches() -> None:
    plan = SketchPlan(phantoms=2146, floor=12, repetitions=2000)
    chances, losses = loss_law(plan, 2).added()
    step = 1e-5
    # rounding up 200 losses by a step at most shifts epsilon by 0.002
    masses: dict[int, float] = {}
    for chance, loss in zip(chances, losses, strict=True):
        if loss < 4:
            place = int(np.ceil(loss / step))
            masses[place] = masses.get(place, 0.0) + float(chance)
    infinite = 1 - sum(masses.values())
    library = PrivacyLossDistribution.create_from_rounded_probability(masses, max(0.0, infinite), step)
    above = library.self_compose(200)
    found = delta_of(chances, losses, repetitions=200, epsilon=0.4)
    assert found.upper <= above.get_delta_for_epsilon(0.4) * (1 + 1e-6)
    # losses above 4 are infinite there, which adds at most exp(-3.6) of them
    assert above.get_delta_for_epsilon(0.402) <= found.upper * 1.03


def test_bad_requests_are_refused() -> None:
    with pytest.raises(InputError, match="epsilon"):
        delta_of(*response(0.1), repetitions=3, epsilon=-1.0)
    with pytest.raises(InputError, match="repetitions"):
        delta_of(*response(0.1), repetitions=0, epsilon=1.0)
