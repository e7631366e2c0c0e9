"""Survival statistics from counts: against lifelines without noise, and the variance that noise adds."""

import numpy as np
import pytest
from numpy.typing import NDArray

from syndic.model.survival import RiskSets, incidence, log_rank, proportional_hazards, risk_sets, survival

PEOPLE = np.arange(60)
TIME = 1 + (PEOPLE * 7 + PEOPLE * PEOPLE % 11) % 12
EVENT = (PEOPLE * 5 % 7 > 2).astype(int)
ARM, DOSE = (PEOPLE % 3 == 0).astype(int), PEOPLE % 4
ENTRY = np.minimum(PEOPLE * 3 % 5, TIME - 1)
LENGTH = 13

# Of lifelines 0.30.3 on these 60 people (KaplanMeierFitter, restricted_mean_survival_time, multivariate_logrank_test,
# CoxPHFitter); `syndic bench survival` compares with the installed one.
AT = [3, 6, 9]
KAPLAN_MEIER = [0.83958042, 0.68578341, 0.44907752]
GREENWOOD = [0.04909769, 0.06353142, 0.07371515]
ENTERED = [0.66397849, 0.532664, 0.34880901]
COX = ([0.29562794, 0.00683478], [0.36838150, 0.16918036])
COX_ENTERED = ([0.30066041, -0.02569315], [0.36888133, 0.17067080])


def counted(*by: NDArray[np.int64], entered: bool = False, kinds: NDArray[np.int64] = EVENT) -> NDArray[np.float64]:
    """Return counts of the 60 people: groups x entries x times x kinds."""
    sizes = [int(one.max()) + 1 for one in by]
    group = np.ravel_multi_index(by, sizes) if by else np.zeros(60, dtype=np.int64)
    counts = np.zeros((int(np.prod(sizes, dtype=np.int64)), LENGTH if entered else 1, LENGTH, int(kinds.max()) + 1))
    np.add.at(counts, (group, ENTRY if entered else 0 * ENTRY, TIME, kinds), 1)
    return counts


def sets_of(counts: NDArray[np.float64], variance: float = 0.0, *, whole: bool = True) -> RiskSets:
    return risk_sets(counts, np.arange(LENGTH, dtype=float), variance, whole=whole, entered=counts.shape[1] > 1)


def at(times: NDArray[np.float64], values: NDArray[np.float64]) -> list[float]:
    return [float(values[list(times).index(time)]) for time in AT]


def test_a_curve_is_that_of_lifelines() -> None:
    curve = survival(sets_of(counted()))
    assert at(curve.times, curve.raw) == pytest.approx(KAPLAN_MEIER, abs=1e-7)
    assert at(curve.times, curve.deviation) == pytest.approx(GREENWOOD, abs=1e-7)
    assert curve.quantile().value == 8
    assert curve.restricted_mean(10).value == pytest.approx(7.560615357518583)
    lower, upper = curve.interval()
    assert all(lower < curve.values)
    assert all(curve.values <= upper)
    assert upper.max() <= 1


def test_people_who_enter_late_are_at_risk_from_then_on() -> None:
    curve = survival(sets_of(counted(entered=True)))
    assert at(curve.times, curve.raw) == pytest.approx(ENTERED, abs=1e-7)


def test_the_comparison_of_groups_is_that_of_lifelines() -> None:
    found = log_rank(sets_of(counted(DOSE)))
    assert found is not None
    assert (found.statistic, found.p_value) == pytest.approx((2.1571083754652873, 0.5404460173472061))
    assert sum(found.excess) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(("entered", "known"), [(False, COX), (True, COX_ENTERED)])
def test_hazard_ratios_are_those_of_lifelines(entered: bool, known: tuple[list[float], list[float]]) -> None:
    design = np.array([[arm, dose] for arm in range(2) for dose in range(4)], dtype=float)
    found = proportional_hazards(sets_of(counted(ARM, DOSE, entered=entered)), design)
    assert found is not None
    assert found.coefficients.tolist() == pytest.approx(known[0], abs=2e-3)
    assert found.deviation.tolist() == pytest.approx(known[1], abs=2e-3)


def test_incidences_of_all_causes_and_survival_add_up() -> None:
    kinds = EVENT * (1 + PEOPLE % 2)
    sets = sets_of(counted(kinds=kinds))
    alive, one, other = survival(sets), incidence(sets, 0), incidence(sets, 1)
    assert alive.raw + one.raw + other.raw == pytest.approx(np.ones(alive.times.size))
    # by hand: who is still there, times who has this cause now
    left, total = 1.0, 0.0
    for time in range(1, 7):
        here, there = np.sum((time == TIME) & (kinds == 1)), np.sum(time <= TIME)
        total += left * here / there
        left *= 1 - np.sum((time == TIME) & (kinds > 0)) / there
    assert one.raw[list(one.times).index(6)] == pytest.approx(total)
    # the error of a share that nobody else competes with is that of survival
    alone = incidence(sets_of(counted()), 0)
    assert alone.deviation == pytest.approx(survival(sets_of(counted())).deviation)


def test_in_intervals_the_censored_are_at_risk_for_half() -> None:
    sets = sets_of(counted(), whole=False)
    ended, censored = np.sum(TIME >= 3), np.sum((TIME == 3) & (EVENT == 0))
    assert sets.at_risk[0, 3] == ended - censored / 2
    entered = sets_of(counted(entered=True), whole=False)
    assert entered.at_risk[0, 3] < sets.at_risk[0, 3]
    assert entered.events.sum() == EVENT.sum()


def test_noise_has_the_announced_variance() -> None:
    """Every statistic moves under noise on the counts as its own formula says."""
    rng, deviation, draws = np.random.default_rng(3), 3.0, 200
    group, time = np.repeat([0, 1], 3000), rng.integers(1, LENGTH, 6000)
    counts = np.zeros((2, 1, LENGTH, 3))
    np.add.at(counts, (group, 0 * time, time, rng.choice(3, 6000, p=[0.5, 0.3, 0.2])), 1)
    kept = {name: [] for name in ("survival", "incidence", "excess", "ratio")}  # type: dict[str, list[float]]
    design = np.array([[0.0], [1.0]])
    for _ in range(draws):
        sets = sets_of(counts + np.round(rng.normal(0, deviation, counts.shape)), deviation**2)
        whole = sets.merged([[0, 1]])
        test, fitted = log_rank(sets), proportional_hazards(sets, design)
        assert test is not None
        assert fitted is not None
        for name, value in zip(
            kept,
            (survival(whole).raw[8], incidence(whole, 1).raw[8], test.excess[0], fitted.coefficients[0]),
            strict=True,
        ):
            kept[name].append(float(value))
    exact = sets_of(counts, deviation**2)
    whole, fitted = exact.merged([[0, 1]]), proportional_hazards(exact, design)
    assert fitted is not None
    expected = {
        "survival": survival(whole).noise[8, 8],
        "incidence": incidence(whole, 1).noise[8, 8],
        "ratio": (fitted.covariance - fitted.sampling)[0, 0],
    }
    for name, variance in expected.items():
        assert np.var(kept[name]) == pytest.approx(variance, rel=0.35), name
    plain, noisy = log_rank(sets_of(counts)), log_rank(exact)
    assert plain is not None
    assert noisy is not None
    sampled = plain.excess[0] ** 2 / plain.statistic
    assert np.var(kept["excess"]) == pytest.approx(noisy.excess[0] ** 2 / noisy.statistic - sampled, rel=0.35)


def test_risk_sets_end_where_noise_hides_them() -> None:
    counts = counted()
    assert survival(sets_of(counts)).times.size > survival(sets_of(counts, 4.0)).times.size
    nothing = sets_of(np.zeros_like(counts), 25.0)
    assert survival(nothing).times.size == 0
    assert survival(nothing).values.size == 0
    assert survival(nothing).quantile().value is None
    assert survival(nothing).restricted_mean(5).value is None
    assert log_rank(sets_of(np.zeros((2, 1, LENGTH, 2)), 25.0)) is None
    assert proportional_hazards(sets_of(np.zeros((2, 1, LENGTH, 2)), 25.0), np.array([[0.0], [1.0]])) is None
