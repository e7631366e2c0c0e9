"""Everyday statistics: scipy's figures and hand formulas without noise; calibrated tests and intervals with it."""

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from scipy.stats import contingency
from sklearn.linear_model import LogisticRegression

from support import across_study
from syndic import simulate
from syndic.errors import InputError
from syndic.model.describe import (
    ChiSquared,
    Comparison,
    Kind,
    Sums,
    compare,
    deviation,
    equal_means,
    independence,
    mean,
    mean_difference,
    quantile,
    regression,
    share,
    standardised_difference,
    trend,
)
from syndic.model.describe.sums import NORMAL, Floats

EXACT = np.zeros((2, 2))
TABLE = np.array([[40.0, 60.0, 35.0], [55.0, 45.0, 90.0]])
STRATA = np.array([[[30.0, 70.0], [45.0, 60.0]], [[60.0, 25.0], [80.0, 20.0]], [[25.0, 90.0], [30.0, 55.0]]])


def numbers(seed: int = 1, people: int = 400) -> list[Floats]:
    rng = np.random.default_rng(seed)
    return [rng.gamma(4, 2, people), rng.gamma(4, 2.2, people + 100)]


def sums_of(groups: list[Floats], noise: Floats | None = None) -> Sums:
    cells = np.array([[one.size, one.sum(), (one**2).sum()] for one in groups], dtype=np.float64)
    shapes = [(float(stats.skew(one)), float(stats.kurtosis(one, fisher=False))) for one in groups]
    return Sums.of_numbers(cells, np.zeros((3, 3)) if noise is None else noise, shapes)


def test_a_share_has_wilsons_interval() -> None:
    found = share(np.array([30.0, 170.0]), np.zeros(2))
    plain = stats.binomtest(30, 200).proportion_ci(method="wilson")
    assert (found.lower, found.upper) == pytest.approx((plain.low, plain.high))
    assert found.value == pytest.approx(0.15)
    noisy = share(np.array([30.0, 170.0]), np.array([100.0, 100.0]))
    assert noisy.widened is not None
    assert noisy.widened > 1


def test_the_chi_squared_test_is_pearsons() -> None:
    plain = stats.chi2_contingency(TABLE, correction=False)
    test = independence(TABLE[None], 0.0)
    assert test is not None
    assert (test.statistic, test.degrees, test.p_value) == pytest.approx((plain.statistic, plain.dof, plain.pvalue))
    empty = np.column_stack([TABLE, np.zeros(2)])
    again = independence(empty[None], 0.0)
    assert again is not None
    assert again.statistic == pytest.approx(plain.statistic), "a value that nobody has adds nothing"


def test_the_trend_test_is_that_of_cochran_and_armitage() -> None:
    groups, scores = np.indices(TABLE.shape)
    times = TABLE.astype(int).ravel()
    correlation = np.corrcoef(np.repeat(groups.ravel(), times), np.repeat(scores.ravel(), times))[0, 1]
    test = trend(TABLE[None], 0.0, np.arange(2.0), np.arange(3.0))
    assert test is not None
    assert test.statistic == pytest.approx(TABLE.sum() * correlation**2)


def test_the_stratified_test_is_that_of_cochran_mantel_and_haenszel() -> None:
    n, one, first = STRATA.sum(axis=(1, 2)), STRATA[:, 0, 0], STRATA[:, 0].sum(axis=1)
    having = STRATA[:, :, 0].sum(axis=1)
    excess = (one - first * having / n).sum()
    spread = (first * (n - first) * having * (n - having) / (n**2 * (n - 1))).sum()
    test = independence(STRATA, 0.0)
    assert test is not None
    assert test.statistic == pytest.approx(excess**2 / spread)


def test_ratios_of_one_table_are_the_usual_ones() -> None:
    (a, b), (c, d) = STRATA[0]
    odds, risk, apart = (compare(how, STRATA[:1], EXACT) for how in ("odds ratio", "risk ratio", "difference"))
    width = 1.959964 * np.sqrt(1 / a + 1 / b + 1 / c + 1 / d)
    assert odds.value == pytest.approx(a * d / (b * c))
    assert odds.upper == pytest.approx(a * d / (b * c) * np.exp(width))
    plain = contingency.relative_risk(int(a), int(a + b), int(c), int(c + d))
    interval = plain.confidence_interval()
    assert (risk.value, risk.lower, risk.upper) == pytest.approx((plain.relative_risk, interval.low, interval.high))
    p, q = a / (a + b), c / (c + d)
    assert apart.value == pytest.approx(p - q)
    reach = 1.959964 * np.sqrt(p * (1 - p) / (a + b) + q * (1 - q) / (c + d))
    assert apart.upper == pytest.approx(p - q + reach)


def test_strata_are_pooled_by_mantel_and_haenszel() -> None:
    n = STRATA.sum(axis=(1, 2))
    a, b, c, d = STRATA.reshape(3, 4).T
    odds, risk = (compare(how, STRATA, EXACT) for how in ("odds ratio", "risk ratio"))
    assert odds.value == pytest.approx((a * d / n).sum() / (b * c / n).sum())
    assert risk.value == pytest.approx((a * (c + d) / n).sum() / (c * (a + b) / n).sum())
    # the variance of Robins, Breslow and Greenland is another estimate of the same
    r, s, p, q = a * d / n, b * c / n, (a + d) / n, (b + c) / n
    parts = (p * r).sum() / r.sum() ** 2, (p * s + q * r).sum() / (r.sum() * s.sum()), (q * s).sum() / s.sum() ** 2
    assert odds.lower is not None
    assert odds.value is not None
    assert np.log(odds.value / odds.lower) / 1.959964 == pytest.approx(np.sqrt(sum(parts) / 2), rel=0.02)


def test_numbers_are_described_as_numpy_does() -> None:
    one, other = groups = numbers()
    sums = sums_of(groups)
    found = mean(sums, 0, middle=3.0)
    assert found.value == pytest.approx(one.mean() + 3)
    assert found.upper == pytest.approx(one.mean() + 3 + 1.959964 * one.std() / np.sqrt(one.size))
    assert deviation(sums, 1).value == pytest.approx(other.std(ddof=1))
    welch = np.sqrt(one.var() / one.size + other.var() / other.size)
    apart = mean_difference(sums, 1, 0)
    assert apart.value == pytest.approx(other.mean() - one.mean())
    assert apart.p_value == pytest.approx(2 * stats.norm.sf(abs(other.mean() - one.mean()) / welch))
    test = equal_means(sums, 2)
    assert test is not None
    assert test.p_value == pytest.approx(apart.p_value), "two groups: the same question"
    pooled = np.sqrt((one.var(ddof=1) + other.var(ddof=1)) / 2)
    assert standardised_difference(sums, 1, 0).value == pytest.approx((other.mean() - one.mean()) / pooled)


def test_the_interval_of_a_standard_deviation_knows_the_kurtosis() -> None:
    """Compared with the deviation over many samples of a heavy-tailed number."""
    rng = np.random.default_rng(3)
    drawn = np.log([rng.gamma(1, 1, 500).std(ddof=1) for _ in range(1000)]).std()
    found = deviation(sums_of([rng.gamma(1, 1, 200_000)]), 0)
    assert found.upper is not None
    assert found.value is not None
    told = np.log(found.upper / found.value) / 1.959964 * np.sqrt(200_000 / 500)
    assert told == pytest.approx(drawn, rel=0.1)
    normal = Sums.of_numbers(np.array([[500.0, 0.0, 500.0]]), np.zeros((3, 3)), [NORMAL])
    plain = deviation(normal, 0)
    assert plain.upper is not None
    assert plain.value is not None
    assert ((plain.upper / plain.value) ** 2 - 1) / 1.959964 == pytest.approx(np.sqrt(2 / 500), rel=0.01)


def test_a_quantile_is_where_the_share_below_reaches_it() -> None:
    rng = np.random.default_rng(5)
    values = rng.gamma(4, 2, 5000)
    edges = np.linspace(0, 40, 41)
    counts = np.histogram(values, edges)[0].astype(np.float64)
    found = quantile(counts, 5000.0, 0.0, edges, 0.5, whole=False)
    assert found.value == pytest.approx(np.quantile(values, 0.5), abs=0.05)
    low, high = np.quantile(values, [0.5 - 0.98 / np.sqrt(5000), 0.5 + 0.98 / np.sqrt(5000)])
    assert (found.lower, found.upper) == pytest.approx((low, high), abs=0.06)
    noisy = quantile(counts, 5000.0, 400.0, edges, 0.5, whole=False)
    assert noisy.lower is not None
    assert found.lower is not None
    assert noisy.lower < found.lower


@pytest.mark.parametrize("kind", ["linear", "logistic", "poisson"])
def test_regressions_have_the_sandwich_of_single_rows(kind: Kind) -> None:
    rng = np.random.default_rng(7)
    x = np.column_stack([np.ones(3000), rng.integers(0, 2, 3000), rng.integers(0, 5, 3000)])
    linear = x @ (0.2, 0.5, -0.2)
    y = {
        "linear": linear + rng.normal(0, 1 + x[:, 1]),
        "logistic": (rng.random(3000) < 1 / (1 + np.exp(-linear))).astype(float),
        "poisson": rng.poisson(np.exp(linear)).astype(float),
    }[kind]
    rows, group = np.unique(x, axis=0, return_inverse=True)
    sums = [np.bincount(group, weights=weight) for weight in (np.ones(3000), y, y**2)]
    cells = np.column_stack(sums).astype(np.float64)
    fitted = regression(kind, cells, np.zeros((3, 3)), rows)
    assert fitted is not None
    b = fitted.coefficients
    expected = {"linear": x @ b, "logistic": 1 / (1 + np.exp(-x @ b)), "poisson": np.exp(x @ b)}[kind]
    slope = {"linear": np.ones(3000), "logistic": expected * (1 - expected), "poisson": expected}[kind]
    assert x.T @ (y - expected) == pytest.approx(np.zeros(3), abs=1e-6), "the score is 0"
    bread = np.linalg.inv((x * slope[:, None]).T @ x)
    meat = (x * ((y - expected) ** 2)[:, None]).T @ x
    assert fitted.covariance == pytest.approx(bread @ meat @ bread)
    if kind == "linear":
        assert b == pytest.approx(np.linalg.lstsq(x, y, rcond=None)[0])
    if kind == "logistic":
        plain = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000).fit(x[:, 1:], y)
        assert b[1:] == pytest.approx(plain.coef_[0], abs=1e-4)


def test_columns_at_different_parties_are_tested_from_their_noisy_table() -> None:
    rng = np.random.default_rng(17)
    columns = "".join(
        f'[[schema.columns]]\nkind = "integer"\nname = "{name}"\nlower = 0\nupper = {most}\n'
        for name, most in (("arm", 1), ("grade", 3), ("other", 1))
    )
    parties = (
        '[[parties]]\nname = "p0"\npeople = 4000\ncolumns = ["arm"]\n'
        '[[parties]]\nname = "p1"\npeople = 4000\ncolumns = ["grade", "other"]\n'
    )
    cliques, budget = 'cliques = [["arm", "grade"], ["arm", "other"]]', "epsilon = 2000\ndelta = 1e-7"
    study = across_study("marginals", cliques, parties=parties, columns=columns, budget=budget)
    arm = rng.integers(0, 2, 4000)
    grade = np.minimum(rng.integers(0, 4, 4000) + arm * (rng.random(4000) < 0.3), 3)
    held = {"p0": pa.table({"arm": arm}), "p1": pa.table({"grade": grade, "other": arm})}
    release = simulate(study, held, seed=1)
    table = np.histogram2d(arm, grade, bins=(2, 4))[0]
    test, ordered = (release.chi_squared("arm", "grade", linear=linear) for linear in (False, True))
    assert test is not None
    assert ordered is not None
    plain = stats.chi2_contingency(table, correction=False).statistic
    assert test.statistic == pytest.approx(plain, rel=0.15)
    assert ordered.statistic == pytest.approx(4000 * np.corrcoef(arm, grade)[0, 1] ** 2, rel=0.15)
    with pytest.raises(InputError, match="no noisy table has both grade and other"):
        release.chi_squared("grade", "other")


def test_what_noise_hides_is_not_shown() -> None:
    small = np.array([[[5.0, 20.0], [4.0, 30.0]]])
    loud = np.full((2, 2), 400.0)
    for how in ("odds ratio", "risk ratio", "difference"):
        assert compare(how, small, loud).value is None
    assert share(np.array([3.0, 10.0]), np.full(2, 400.0)).value is None
    assert mean(sums_of(numbers(people=10), np.eye(3) * 400.0), 0).value is None
    assert quantile(np.array([3.0, 4.0]), 7.0, 400.0, np.arange(3.0), 0.5, whole=False).value is None
    cells = np.array([[20.0, 10.0, 10.0], [-3.0, 5.0, 5.0]])
    fitted = regression("logistic", cells, np.eye(3) * 400.0, np.array([[1.0, 0.0], [1.0, 1.0]]))
    assert fitted is None or fitted.hidden[1]


def rejected(test: ChiSquared | None) -> bool:
    return test is not None and test.p_value < 0.05


def test_tests_reject_five_percent_where_nothing_differs() -> None:
    """Noise larger than the sampling error: most tables would be rejected if its variance were left out."""
    rng = np.random.default_rng(11)
    shares = np.outer((0.5, 0.3, 0.2), (0.4, 0.3, 0.2, 0.1)).ravel()
    noise = 20.0
    hits, naive = [], []
    for turn in range(1000):
        table = (rng.multinomial(1000, shares) + np.round(rng.normal(0, noise, 12))).reshape(1, 3, 4)
        hits.append(
            (
                rejected(independence(table, noise**2)),
                rejected(trend(table, noise**2, np.arange(3.0), np.arange(4.0))),
            )
        )
        if turn < 100:
            naive.append(rejected(independence(table, 0.0)))
    chi, ordered = np.mean(hits, axis=0)
    assert 0.036 <= chi <= 0.064, "within two standard deviations"
    assert 0.036 <= ordered <= 0.064
    assert np.mean(naive) > 0.5


@pytest.mark.parametrize("how", ["difference", "risk ratio", "odds ratio"])
def test_pooled_comparisons_cover(how: Comparison) -> None:
    rng = np.random.default_rng(13)
    shares, sizes, noise = np.array([[0.3, 0.2], [0.5, 0.4], [0.6, 0.5]]), (800, 600, 400), 12.0
    exact = np.array([[[p, 1 - p] for p in row] for row in shares]) * np.array(sizes)[:, None, None] * 1e4
    real = compare(how, exact, EXACT).value
    assert real is not None
    hits = []
    for _ in range(400):
        drawn = [[rng.multinomial(n, (p, 1 - p)) for p in row] for n, row in zip(sizes, shares, strict=True)]
        found = compare(how, np.array(drawn) + rng.normal(0, noise, (3, 2, 2)), np.full((2, 2), noise**2))
        assert found.lower is not None
        assert found.upper is not None
        hits.append(found.lower <= real <= found.upper)
    assert 0.925 <= np.mean(hits) <= 0.975


def test_a_ratio_near_the_noise_is_shown_whatever_its_own_noise_is() -> None:
    """The smaller count is 3.5 deviations above 0: shown only where noise raised it above 4, 87 % would cover."""
    rng, noise, hits = np.random.default_rng(17), 27.0, []
    for _ in range(400):
        counts = np.array([[rng.multinomial(1000, (p, 1 - p)) for p in (0.189, 0.0945)]])
        found = compare("risk ratio", counts + rng.normal(0, noise, counts.shape), np.full((2, 2), noise**2))
        if found.lower is not None and found.upper is not None:
            hits.append(found.lower <= 2 <= found.upper)
    assert len(hits) > 0.85 * 400
    assert np.mean(hits) > 0.92


@pytest.mark.parametrize(("deviation", "shown"), [(3.0, True), (8.0, False)])
def test_a_rate_is_hidden_by_the_noise_of_its_outcomes(deviation: float, *, shown: bool) -> None:
    """The smaller group has 200 events: of noise of 68 it would be shown too large if its own sum decided."""
    rng, design = np.random.default_rng(5), np.array([[1.0, 0.0], [1.0, 1.0]])
    noise = np.array([[1.0, 6.0, 36.0], [6.0, 72.0, 400.0], [36.0, 400.0, 4000.0]]) * deviation**2
    exact, root = np.array([[800.0, 1120.0, 2700.0], [100.0, 200.0, 600.0]]), np.linalg.cholesky(noise)
    every = [regression("poisson", exact + rng.normal(size=(2, 3)) @ root.T, noise, design) for _ in range(100)]
    assert [one is not None and not one.hidden[1] for one in every] == [shown] * 100
