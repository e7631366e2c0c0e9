"""The bench of estimates: its formulas, its chances, its figure."""

import numpy as np
import pytest
from scipy import stats

from syndic.data import Boolean, Integer, Real
from syndic.model.families.estimate import Setting
from syndic_lab.bench.estimate import run as estimate
from syndic_lab.bench.estimate.runs import chances_of

AT = Setting(parties=10, people=1600, epsilon=0.3, information=1 / (0.09 * 0.7))


def test_chances_are_those_of_the_law_with_clipped_tails() -> None:
    counts = chances_of(Integer(name="x", lower=1, upper=4), stats.poisson(3.0))
    np.testing.assert_allclose(counts[1:3], stats.poisson(3.0).pmf([2, 3]))
    assert counts[0] == pytest.approx(stats.poisson(3.0).cdf(1))
    assert counts[-1] == pytest.approx(stats.poisson(3.0).sf(3))
    parts = chances_of(Real(name="x", lower=-1.0, upper=1.0, bins=4), stats.norm())
    np.testing.assert_allclose(parts, np.diff(stats.norm().cdf([-np.inf, -0.5, 0, 0.5, np.inf])))
    with pytest.raises(TypeError, match="Boolean"):
        chances_of(Boolean(name="x"), stats.norm())


def test_formulas_over_the_bound() -> None:
    # 1 + 2 c^2 L^2 I / (N epsilon^2), c = p^2
    excess = 2 * 0.3**4 * 40**2 * AT.information / (1600 * 0.09)
    assert estimate.formulas("dssa", AT)[0] == pytest.approx(1 + excess)
    masked, nothing = estimate.formulas("masked", AT)
    assert masked == pytest.approx(1 + excess / 10)
    assert nothing is None
    corrected, printed = estimate.formulas("dsaa", AT)
    assert printed is not None
    assert corrected > printed > 1


@pytest.mark.parametrize("scheme", ["dssa", "masked"])
def test_a_measured_ratio_is_near_its_formula(scheme: str) -> None:
    # 4,000 squared errors: 4.9 standard deviations are 17 % at the most
    assert estimate._ratio(scheme, AT, 4000)[0] == pytest.approx(estimate.formulas(scheme, AT)[0], rel=0.17)


def test_figure_has_measured_and_formula_lines() -> None:
    drawn = estimate.figure("N", (1600.0, 3200.0), (AT, AT), {name: [2.0, 1.5] for name in ("dssa", "dsaa", "masked")})
    assert [line.name for line in drawn.lines] == [
        *("dssa", "dssa, formula", "dssa, printed", "dsaa", "dsaa, formula", "dsaa, printed", "masked"),
        "masked, formula",
    ]
    assert drawn.to_svg().startswith("<svg")
