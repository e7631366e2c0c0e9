"""What sketches really cost: the published table's true values, and who is refused."""

from fractions import Fraction

import msgspec
import numpy as np
import pytest

from syndic.errors import InputError
from syndic.methods.vertimrf.sketch.cost import phantoms_needed, sketch_cost, sketch_delta
from syndic.methods.vertimrf.sketch.encode import SketchPlan, printed_plan
from syndic.methods.vertimrf.sketch.loss import mixed_law, replaced_laws
from syndic.privacy import ApproximateEvent

HALF = Fraction(2, 5)
# the true delta at epsilon 0.4 of sketches that claim (0.4, 1e-5), 2,000 repetitions, found by an audit of its own
TRUE = {
    "1": {2: 6.4e-4, 3: 0.0203, 5: 0.0844, 8: 0.141, 15: 0.196},
    "3/10": {2: 1.8e-3, 3: 0.0467, 5: 0.141, 8: 0.205, 15: 0.222},
    "1/10": {2: 5.3e-3, 3: 0.0969, 5: 0.204, 8: 0.260, 15: 0.255},
}


@pytest.mark.slow
@pytest.mark.parametrize(("gamma", "columns"), [(gamma, columns) for gamma in TRUE for columns in TRUE[gamma]])
def test_the_printed_claim_is_wrong_by_orders(gamma: str, columns: int) -> None:
    plan = printed_plan(epsilon=0.4, delta=1e-5, columns=columns, gamma=Fraction(gamma))
    found = sketch_delta(plan, columns=columns, epsilon=0.4, points=2**20)
    assert found.upper - found.lower < 0.02 * found.upper
    assert (found.lower + found.upper) / 2 == pytest.approx(TRUE[gamma][columns], rel=0.02)


def test_one_column_keeps_its_promise() -> None:
    plan = printed_plan(epsilon=0.4, delta=1e-5, columns=1)
    assert sketch_delta(plan, columns=1, epsilon=0.4).upper < 1e-7


@pytest.mark.parametrize(
    ("epsilon", "true"), [(0.1, 0.021), (0.2, 0.041), (0.4, 0.079), (0.8, 0.149), (1.6, 0.270), (3.2, 0.450)]
)
def test_smaller_epsilons_do_not_help(epsilon: float, true: float) -> None:
    """NLTCS: 16 columns, 21,574 people; the sketches get 36 % of epsilon and half of delta = 1 / n."""
    plan = printed_plan(epsilon=0.36 * epsilon, delta=0.5 / 21574, columns=16)
    found = sketch_delta(plan, columns=16, epsilon=0.36 * epsilon, points=2**19)
    assert found.lower * 0.995 < true < found.upper * 1.02


@pytest.mark.parametrize(("columns", "gamma", "others", "true"), [(15, "1", 11300, 0.062), (2, "3/10", 1000, 8e-4)])
def test_other_people_in_the_same_values_do_not_hide_it(columns: int, gamma: str, others: int, true: float) -> None:
    plan = printed_plan(epsilon=0.4, delta=1e-5, columns=columns, gamma=Fraction(gamma))
    with_others = msgspec.structs.replace(plan, phantoms=plan.phantoms + others)
    found = sketch_delta(with_others, columns=columns, epsilon=0.4, points=2**20)
    assert found.lower == pytest.approx(true, rel=0.02)


@pytest.mark.parametrize(("columns", "needed"), [(2, 1.7e4), (15, 6.3e7)])
def test_phantoms_really_needed(columns: int, needed: float) -> None:
    start = SketchPlan(phantoms=1, floor=0, repetitions=2000)
    plan = phantoms_needed(start, columns=columns, epsilon=0.4, delta=1e-5, points=2**18)
    assert plan.phantoms == pytest.approx(needed, rel=0.03)
    fewer = msgspec.structs.replace(plan, phantoms=int(plan.phantoms * 0.95))
    assert sketch_delta(plan, columns=columns, epsilon=0.4, points=2**18).upper <= 1e-5
    assert sketch_delta(fewer, columns=columns, epsilon=0.4, points=2**20).lower > 1e-5


def test_a_key_for_each_pair_and_a_cap_are_charged() -> None:
    plan = SketchPlan(phantoms=5600, floor=13, repetitions=2000, cap=17)
    event = sketch_cost(plan, columns=2, epsilon=HALF, delta=Fraction(1, 10**5), neighbours="add_remove", keys=56)
    assert isinstance(event, ApproximateEvent)
    assert event.epsilon == HALF
    assert Fraction(1, 10**6) < event.delta <= Fraction(1, 10**5)
    with pytest.raises(InputError, match=r"delta 0\.\d+ at epsilon 0.4"):
        sketch_cost(
            msgspec.structs.replace(plan, cap=None),
            columns=2, epsilon=HALF, delta=Fraction(1, 10**5), neighbours="add_remove", keys=56,
        )  # fmt: skip


def test_the_printed_plan_is_refused_with_its_delta() -> None:
    plan = printed_plan(epsilon=0.4, delta=1e-5, columns=15)
    with pytest.raises(InputError, match=r"delta 0\.197 at epsilon 0\.4, not 1e-05"):
        sketch_cost(plan, columns=15, epsilon=HALF, delta=Fraction(1, 10**5), neighbours="add_remove")


def test_replacing_costs_more_than_adding_and_less_than_removing_and_adding() -> None:
    plan = SketchPlan(phantoms=5600, floor=13, repetitions=2000, cap=17)
    replaced = sketch_delta(plan, columns=2, epsilon=0.4, neighbours="replace", keys=56, points=2**18)
    added = sketch_delta(plan, columns=2, epsilon=0.4, keys=56, points=2**18)
    halved = sketch_delta(plan, columns=2, epsilon=0.2, keys=56, points=2**18)
    assert added.upper < replaced.lower <= replaced.upper < halved.lower
    # the charge at (., 1e-6): 0.965 by way of the table without the person
    million = Fraction(1, 10**6)
    event = sketch_cost(plan, columns=2, epsilon=Fraction(67, 100), delta=million, neighbours="replace", keys=56)
    assert event.delta <= million
    with pytest.raises(InputError, match="have delta"):
        sketch_cost(plan, columns=2, epsilon=Fraction(62, 100), delta=million, neighbours="replace", keys=56)


@pytest.mark.parametrize(("columns", "changed"), [(1, 1), (2, 2), (2, 1)])
def test_an_attacker_with_the_likelihood_ratio_gains_what_the_bracket_says(columns: int, changed: int) -> None:
    """Every outcome of the sketches of old, new and kept values is enumerated, one repetition, any rank."""
    plan = SketchPlan(phantoms=3, floor=2, repetitions=1, cap=6)
    old, new = _outcomes(plan, columns, changed)
    true = float(np.maximum(old - np.exp(0.3) * new, 0).sum())
    found = sketch_delta(plan, columns=columns, epsilon=0.3, neighbours="replace", points=2**16)
    assert true <= found.upper
    worst = max(_advantage(plan, columns, each) for each in range(1, columns + 1))
    assert found.lower <= worst <= found.upper < 1.02 * worst


@pytest.mark.parametrize(
    ("plan", "epsilon"),
    [
        (SketchPlan(phantoms=2, floor=17, repetitions=1, cap=19, gamma=Fraction(1, 50)), 2.77575977968),
        (SketchPlan(phantoms=4, floor=25, repetitions=1, cap=28, gamma=Fraction(1, 50)), 1.951643347404),
        (SketchPlan(phantoms=1, floor=13, repetitions=1, cap=15, gamma=Fraction(1, 20)), 4.737008119426),
    ],
)
def test_a_person_may_change_in_one_column_of_a_key_and_in_both_of_another(plan: SketchPlan, epsilon: float) -> None:
    """Of columns a, b and c under keys for (a, b) and (a, c), a and b change: both of one key, one of the other."""
    (first, gained), (second, more) = replaced_laws(plan, 2)
    true = float(
        np.outer(first, second).ravel() @ np.maximum(-np.expm1(epsilon - np.add.outer(gained, more).ravel()), 0)
    )
    for points in (2**16, 2**20):
        found = sketch_delta(plan, columns=2, keys=2, epsilon=epsilon, neighbours="replace", points=points)
        assert true <= found.upper


def test_mixed_changes_cost_nothing_more_where_a_change_of_both_columns_is_the_worst() -> None:
    both, one = replaced_laws(SketchPlan(phantoms=5600, floor=13, repetitions=2000, cap=17), 2)
    chances, losses = mixed_law(both, one)
    assert chances[-1] < 1e-18
    assert losses[-1] == np.inf


def _advantage(plan: SketchPlan, columns: int, changed: int) -> float:
    old, new = _outcomes(plan, columns, changed)
    return float(np.maximum(old - np.exp(0.3) * new, 0).sum())


def _outcomes(plan: SketchPlan, columns: int, changed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities of all outcomes if the rank is in the old values' sketches, and in the new ones'."""
    both = []
    for mine in (range(changed), range(changed, 2 * changed)):
        kept = range(2 * changed, columns + changed)
        total = np.zeros((plan.top - plan.floor + 1,) * (columns + changed))
        for rank in range(1, 60):
            joint = np.ones(())
            for sketch in range(columns + changed):
                own = rank if sketch in mine or sketch in kept else 0
                joint = np.multiply.outer(joint, _shown(plan, own))
            total += 2.0**-rank * joint
        both.append(total)
    return both[0], both[1]


def _shown(plan: SketchPlan, rank: int) -> np.ndarray:
    """Return the distribution of a sketch of the phantoms and one person of this rank, 0 for nobody."""
    most = np.arange(plan.floor, plan.top + 1)
    upto = np.where(most >= rank, (1 - 2.0**-most) ** plan.phantoms, 0.0)
    upto[-1] = 1.0
    return np.diff(upto, prepend=0.0)


def test_no_number_of_phantoms_is_found_where_there_is_none() -> None:
    with pytest.raises(InputError, match="delta"):
        phantoms_needed(SketchPlan(phantoms=1, floor=0, repetitions=5), columns=2, epsilon=0.4, delta=0.0)
    with pytest.raises(InputError, match="no number of phantoms"):
        # delta is below what the arithmetic can prove
        phantoms_needed(
            SketchPlan(phantoms=1, floor=0, repetitions=5), columns=2, epsilon=0.4, delta=1e-30, points=2**10
        )
