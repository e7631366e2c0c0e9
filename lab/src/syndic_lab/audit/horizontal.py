"""Audits of counts, averages, estimates and sums of products whose parties hold different people.

Budgets are such that a hundred runs show something and a thousand show half of a charge or more.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from syndic.methods import Average, Estimate, Gram, Homm, Marginals
from syndic.methods.estimate.plan import FINE, EstimatePlan
from syndic.methods.histogram.marginals_plan import MarginalsPlan
from syndic.model.families.discrete import Multinomial, Poisson
from syndic.privacy import Budget, Unit
from syndic_lab.audit.masked import MaskedSum, masked_gram
from syndic_lab.audit.rehearsal import Run
from syndic_lab.audit.setting import RELEASE, Setting, gaussian_lean, laplace_lean, rows_of, study_of

REPLACE: Final = Unit(neighbours="replace")
ADD: Final = Unit(neighbours="add_remove")
PURE: Final = Budget.of(2)
LOUD: Final = Budget.of(4)
"""For Laplace noise where runs are few."""
APPROXIMATE: Final = Budget.of(12, "0.0002")
"""For Gaussian noise: few runs show the largest part of a charge where two tables are about three deviations apart."""

BIT: Final = (("x", 2),)
ONE_PARTY: Final = {"a": (2, None)}
THREE: Final = {"a": (2, None), "b": (2, None), "c": (2, None)}
ROWS: Final = 20
Lean = Callable[[Any, Any, Any], float]


def horizontal() -> Iterator[Setting]:
    """Yield a setting for every sound variant of counts, averages, estimates and sums of products."""
    yield from _homm()
    yield from _marginals()
    yield from _average()
    yield from _estimate()
    yield _gram()


# Noisy counts of each party.


def _counts(run: Run, party: str) -> NDArray[np.int64]:
    histogram = run.result.histograms[party]
    counts = np.zeros(histogram.domain.size, dtype=np.int64)
    counts[histogram.cells] = histogram.counts
    return counts


def _one_count(lean: Lean, run: Run) -> float:
    return lean(_counts(run, "a")[1], 1, 0)


def _homm() -> Iterator[Setting]:
    for name, protocol, budget, lean in (
        ("homm laplace", Homm(), PURE, laplace_lean),
        ("homm unclamped", Homm(clamp=False), PURE, laplace_lean),
        ("homm gaussian", Homm(noise="gaussian"), APPROXIMATE, gaussian_lean),
    ):
        yield Setting(
            name=name,
            study=study_of(protocol, columns=BIT, parties=ONE_PARTY, unit=ADD, budget=budget),
            one={"a": rows_of(x=[1, 0])},
            other={"a": rows_of(x=[0])},
            views={RELEASE: partial(_one_count, lean)},
            quick=300,
            full=2000,
        )
    yield Setting(
        name="homm replace",
        study=study_of(Homm(), columns=BIT, parties=ONE_PARTY, unit=REPLACE, budget=PURE),
        one={"a": rows_of(x=[1, 0])},
        other={"a": rows_of(x=[0, 0])},
        views={RELEASE: lambda run: laplace_lean(_counts(run, "a"), [1, 1], [2, 0])},
        quick=300,
        full=2000,
    )
    yield _homm_overlap()
    yield _homm_sparse()


def _homm_overlap() -> Setting:
    """Return a person with two rows at each of two parties."""
    parties = {"a": (4, None), "b": (4, None)}
    unit = Unit(neighbours="add_remove", parties=2, rows=2)
    return Setting(
        name="homm overlap",
        study=study_of(Homm(), columns=BIT, parties=parties, unit=unit, budget=LOUD),
        one={name: rows_of(x=[1, 1]) for name in parties},
        other={name: rows_of(x=[]) for name in parties},
        views={RELEASE: lambda run: laplace_lean([_counts(run, name)[1] for name in parties], 2, 0)},
        quick=200,
        full=2000,
    )


def _homm_sparse() -> Setting:
    """Return one cell of 10^12 that is given out more often if a person's forty rows are in it."""
    names, full = [f"c{place}" for place in range(6)], 720

    def seen(run: Run) -> float:
        histogram = run.result.histograms["a"]
        found = histogram.counts[histogram.cells == 0]
        return laplace_lean(float(found[0]) if found.size else 0.0, full, full - 40)

    unit = Unit(neighbours="add_remove", rows=40)
    parties = {"a": (800, None)}
    columns = [(name, 100) for name in names]
    return Setting(
        name="homm sparse",
        study=study_of(Homm(at_least=700), columns=columns, parties=parties, unit=unit, budget=LOUD),
        one={"a": rows_of(**{name: [0] * full for name in names})},
        other={"a": rows_of(**{name: [0] * (full - 40) for name in names})},
        views={RELEASE: seen},
        quick=100,
        full=2000,
    )


# Counts summed under masks.


def _marginals() -> Iterator[Setting]:
    laws: tuple[Literal["gaussian", "laplace", "skellam"], ...] = ("gaussian", "laplace", "skellam")
    one = {"a": rows_of(x=[1] * ROWS), "b": rows_of(x=[1]), "c": rows_of(x=[0])}
    other = {**one, "a": rows_of(x=[])}
    # shares of noise have a least size, which a person of many rows is far above
    unit = Unit(neighbours="add_remove", rows=ROWS)
    for law in laws:
        budget = LOUD if law == "laplace" else APPROXIMATE
        protocol = Marginals(noise=law, cliques=(("x",),))
        study = study_of(protocol, columns=BIT, parties=THREE, unit=unit, budget=budget)
        masked = MaskedSum(
            study=study,
            tables=(one, other),
            opened=_first_table,
            share=study.plan_as(MarginalsPlan).noise,
            colluding=("b",),
        )
        yield Setting(
            name=f"marginals {law}",
            study=study,
            one=one,
            other=other,
            views=masked.laplace if law == "laplace" else {},
            gaussian={} if law == "laplace" else masked.gaussian,
        )


def _first_table(run: Run) -> Any:
    return run.result.tables[0].values.ravel()


# Averages with noise that nobody knows.


def _average() -> Iterator[Setting]:
    protocol = Average(servers=("a", "b"), columns=("x",), bits=1)
    yield Setting(
        name="average",
        study=study_of(protocol, columns=BIT, parties=THREE, unit=REPLACE, budget=APPROXIMATE),
        one={"a": rows_of(x=[0, 1]), "b": rows_of(x=[0, 1]), "c": rows_of(x=[1, 1])},
        other={"a": rows_of(x=[0, 1]), "b": rows_of(x=[0, 1]), "c": rows_of(x=[0, 1])},
        views={RELEASE: lambda run: gaussian_lean(6 * run.result.averages.averages[0], 4, 3)},
        quick=50,
    )


# Estimates from noisy statistics.


def _estimate() -> Iterator[Setting]:
    poisson, multinomial = Poisson(), Multinomial()
    for name, protocol, unit, budget, tables in (
        ("dssa", Estimate(column="x", family=poisson), REPLACE, PURE, ([1, 0], [0, 0])),
        # with a least size, a row that is not there stands in the middle of the public set: here it counts as 1
        ("least sizes", Estimate(column="x", family=poisson), ADD, PURE, ([0, 0], [0])),
        (
            "gaussian",
            Estimate(column="x", family=multinomial, noise="gaussian"),
            REPLACE,
            APPROXIMATE,
            ([1, 0], [0, 0]),
        ),
    ):
        study = study_of(protocol, columns=BIT, parties=ONE_PARTY, unit=unit, budget=budget)
        layout = study.plan_as(EstimatePlan).layout
        sums = [layout.sums(np.array([*codes, 1][:2])) for codes in tables]
        lean = gaussian_lean if protocol.noise == "gaussian" else laplace_lean

        def said(run: Run, sums: Any = sums, lean: Any = lean) -> float:
            return float(lean(run.replies("answer")["a"].values, *sums))

        yield Setting(
            name=f"estimate {name}",
            study=study,
            one={"a": rows_of(x=tables[0])},
            other={"a": rows_of(x=tables[1])},
            views={RELEASE: said},
            quick=300,
            full=2000,
        )
    yield from _estimate_others()


def _estimate_others() -> Iterator[Setting]:
    one, other = {"a": rows_of(x=[1, 0])}, {"a": rows_of(x=[0, 0])}
    blocks = Estimate(column="x", family=Poisson(), scheme="dsaa", blocks=2)
    yield Setting(
        name="estimate dsaa",
        study=study_of(blocks, columns=BIT, parties=ONE_PARTY, unit=REPLACE, budget=PURE),
        one=one,
        other=other,
        views={RELEASE: lambda run: laplace_lean(run.replies("answer")["a"].values, FINE, 0)},
        quick=200,
        full=2000,
    )
    masked = Estimate(column="x", family=Poisson(), scheme="masked")
    large = 1000
    yield Setting(
        name="estimate masked",
        study=study_of(masked, columns=(("x", large),), parties=THREE, unit=REPLACE, budget=LOUD),
        one={"a": rows_of(x=[large - 1, 0]), "b": rows_of(x=[0, 1]), "c": rows_of(x=[0, 1])},
        other={"a": rows_of(x=[0, 0]), "b": rows_of(x=[0, 1]), "c": rows_of(x=[0, 1])},
        views={RELEASE: lambda run: 6 * run.result.estimates.together.estimate[0] - large / 2},
        quick=70,
    )


# Sums of products.


def _gram() -> Setting:
    study = study_of(
        Gram(bits=4, scaling=0.0), columns=(("x", 2), ("y", 2)), parties=THREE, unit=REPLACE, budget=APPROXIMATE
    )
    one = dict.fromkeys(THREE, rows_of(x=[1, 0], y=[1, 0]))
    other = {**one, "a": rows_of(x=[0, 0], y=[1, 0])}
    masked = masked_gram(study, one, other, "b")
    return Setting(name="gram of rows", study=study, one=one, other=other, gaussian=masked.gaussian)
