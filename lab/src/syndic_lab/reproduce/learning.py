"""Jayaraman et al. 2018: Tables 1 and 2, Figures 1 to 9."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from math import sqrt
from typing import Final

import numpy as np

from syndic.model.erm.loss import Logistic
from syndic.report.figure import Curve
from syndic_lab.bench.erm import cost as erm_cost
from syndic_lab.bench.erm import data as erm_data
from syndic_lab.bench.erm import published as erm_published
from syndic_lab.bench.erm import run as erm
from syndic_lab.bench.erm.data import Split
from syndic_lab.bench.erm.experiment import Experiment
from syndic_lab.bench.erm.private import Setting, gradient_noise, local_objective, model_noise
from syndic_lab.bench.row import Row
from syndic_lab.bench.secure import noise as secure_noise
from syndic_lab.bench.secure import sum as secure_sum
from syndic_lab.reproduce.item import COST, Claim, Found, Item, Paper, Rule
from syndic_lab.reproduce.theorems import of_learning

PAPER: Final = Paper("jayaraman-2018", "Jayaraman et al. 2018: distributed learning of linear models in a secure sum")
# noise parameter and deviation over 1000 samples, in thousandths
_TABLE_1: Final = {
    "Pathak": (800.0, 1150.0),
    "Local Out P": (80.0, 112.0),
    "Local Obj P": (8.0, 11.6),
    "Local Grad P": (5.66, 5.63),
    "MPC Out P": (8.0, 12.2),
    "MPC Grad P": (0.57, 0.572),
}


def table_1(quick: bool) -> Iterator[Row]:
    """Yield each method's noise with the table's setting, by formula and drawn 1000 times."""
    del quick
    setting = Setting(
        parties=100,
        records=500,
        dimension=1,
        epsilon=Fraction(1, 2),
        delta=Fraction(1, 1000),
        regularisation=0.01,
        iterations=100,
    )
    draws = np.random.default_rng(2018)
    for name, (parameter, deviation) in _TABLE_1.items():
        scale, drawn = _noise(name, setting, draws)
        for metric, value, published in (
            ("noise parameter", 1e3 * scale, parameter),
            ("sd over 1000 samples", 1e3 * float(drawn.std()), deviation),
        ):
            yield Row(bench="erm", row=f"noise, {name}", metric=metric, value=value, unit="1e-3", published=published)


def _noise(name: str, setting: Setting, draws: np.random.Generator) -> tuple[float, np.ndarray]:
    match name:
        case "Local Grad P" | "MPC Grad P":
            gradient = gradient_noise(name, setting, "as_published")
            return gradient.sigma, gradient.simulate((1000, 1), draws)
        case "Local Obj P":
            # the vector enters the objective divided by the number of records
            own = local_objective(setting, Logistic().smoothness, "as_published").law
            return own.scale / setting.records, own.simulate((1000, 1), draws) / setting.records
        case "Pathak" | "Local Out P" | "MPC Out P":
            noise = model_noise(name, setting, "as_published")
            return noise.law.scale / sqrt(noise.copies), noise.simulate(1000, 1, draws)
    raise KeyError(name)


def curves(quick: bool, *, load: Callable[[], Split], parties: int) -> Iterator[Row | Curve]:
    """Yield gap and loss of every method over the iterations, and for the digitised figure its curves too."""
    experiment = Experiment(split=load(), parties=parties, repeats=3 if quick else 5)
    traces = experiment.measure()
    yield from erm.of_experiment(experiment, traces)
    least = 0.5 / len(experiment.split.test_labels)
    pictures = [
        ("optimality gap", {name: traces[name].gaps for name in erm.FIGURE if name in traces}, 1e-6),
        ("accuracy loss", {name: traces[name].losses for name in erm.FIGURE if name in traces}, least),
    ]
    if experiment.split.name == "KDDCup99" and parties == 1000:
        pictures += [("optimality gap, published", dict(erm_published.GAPS), 1e-6)]
        pictures += [("accuracy loss, published", dict(erm_published.LOSSES), least)]
    for title, lines, floor in pictures:
        yield erm.figure(f"{experiment.name}: {title}", lines, title.split(",")[0], floor)


def table_2(quick: bool) -> Iterator[Row]:
    """Yield the cost of an aggregation with noise: a round, a masked sum, and noise that nobody knows."""
    yield from erm_cost.rows(quick)
    yield from secure_noise.rows(quick)
    yield from secure_sum.over_sockets(parties=100, processes=2, repeats=1 if quick else 3)


def _order(data: str, parties: int) -> Claim:
    def holds(found: Found) -> tuple[bool, str]:
        def gap(name: str) -> float:
            return found.one(f"{data}, m {parties}, {name}", "gap")

        best = min(map(gap, ("Pathak", "Local Out P", "Local Obj P", "Local Grad P")))
        ours = {name: gap(name) for name in ("MPC Grad P", "MPC Out P")}
        seen = ", ".join(f"{name} {value:.2g}" for name, value in ours.items())
        return max(ours.values()) < 0.1 * best, f"gaps as published: {seen}; best baseline {best:.2g}"

    return Claim(text="both MPC methods beat every baseline by orders of magnitude (gap)", holds=holds)


def _steady(data: str, parties: int) -> Claim:
    def holds(found: Found) -> tuple[bool, str]:
        gap = found.one(f"{data}, m {parties}, MPC Grad P", "gap")
        return gap < 0.02, f"gap of MPC Grad P as published {gap:.2g} with {parties} parties"

    return Claim(text="MPC Grad P does not degrade with the number of parties (gap of order 0.01 or less)", holds=holds)


def _figure(number: int, load: Callable[[], Split], parties: int, seconds: tuple[float | None, float]) -> Item:
    data = {"kddcup": "KDDCup99", "kddcup98": "KDDCup98", "adult": "Adult"}[load.__name__]
    needs = {
        "KDDCup99": ("kddcup99_10pct.parquet",),
        "KDDCup98": (erm_data.DONATIONS,),
        "Adult": ("adult_train.parquet", "adult_test.parquet"),
    }
    notes = (
        "Published: Figure 1, digitised, mean of iterations 800 to 1400. Ours: the 10 % file, 118 features, not 122.",
        "Local Obj P adds one random vector that all parties share, so that its gap varies from draw to draw.",
        "Rajkumar-Agarwal: the authors' program takes the epsilon of its random vector from the objective of one party "
        "(50 records: 0.25 is left), which gives four times the published gap. That of the joint objective (50,000 "
        "records: 0.49) gives the published one: tested, both are rows.",
        "MPC Out P: the loss from the central model is four times the published one, because averaged models lose that "
        "much without noise. Tested without effect: an intercept, three other samples, rows of norm 1, standardised "
        "columns, exact local minimisers, lambda 0.002. Measured from the averaged models without noise, the loss is "
        "the published one (a row below); the paper says the central model, so this is likely, not certain.",
        "Losses of MPC Grad P and Rajkumar-Agarwal are below the published ones, by few test rows. Not explained.",
    )
    regression = (
        "Published: Figure 2, digitised, mean of iterations 800 to 1400. How the label was scaled is not printed: ours "
        "are dollars, so orders are compared, not levels.",
    )
    words: tuple[str, ...] = (
        "The appendix prints no numbers and the figure could not be digitised: words are checked.",
    )
    if data == "Adult":
        words += (
            "MPC Grad P's loss of order 1e-4 is not explained. Tested with 1,000 parties: two other samples (0.0010, "
            "0.0012), an intercept (0.0051), rows of norm 1 (0.0016), late iterates averaged (0.0005 to 0.0017).",
        )
    return Item(
        name=f"learning-figure-{number}",
        paper=PAPER,
        where=f"Figure {number}",
        what=f"{data}, {parties:,} parties: optimality gap and accuracy loss over 1500 iterations",
        measure=partial(curves, load=load, parties=parties),
        reason=erm_data.WHERE if data == "KDDCup98" else "",
        needs=needs[data],
        rules=(("gap", Rule(within=0.25)), ("loss", Rule(within=0.5, factor=5.0))),
        claims=(_order(data, parties), _steady(data, parties)) if data != "KDDCup98" else (_order(data, parties),),
        shown=() if number == 1 else ("gap", "loss"),
        notes={1: notes, 2: regression}.get(number, words),
        seconds=seconds,
        benches=("erm.run",),
    )


ITEMS: Final = (
    Item(
        name="learning-table-1",
        paper=PAPER,
        where="Table 1",
        what="noise of each method, 100 parties of 500 records, lambda 0.01, epsilon 0.5, 100 iterations",
        measure=table_1,
        rules=(("", Rule(within=0.1)),),
        notes=(
            "The two Gaussian entries lack the factor 2 sqrt(ln(1/delta)) of the paper's own theorem, 5.3 at delta "
            "0.001; the authors' program has it, and so have we.",
            "Local Obj P: a '1 +' is missing in the authors' program, so that it spends an epsilon of 6.5 instead of "
            "0.5 here; its noise, which is ours too, is a thirteenth of the table's formula.",
        ),
        seconds=(0.5, 0.5),
    ),
    _figure(1, erm_data.kddcup, 1000, (55.0, 90.0)),
    _figure(2, erm_data.kddcup98, 1000, (None, 120.0)),
    _figure(3, erm_data.kddcup, 100, (None, 90.0)),
    _figure(4, erm_data.kddcup, 50_000, (None, 200.0)),
    _figure(5, erm_data.kddcup98, 100, (None, 120.0)),
    _figure(6, erm_data.kddcup98, 50_000, (None, 300.0)),
    _figure(7, erm_data.adult, 100, (None, 70.0)),
    _figure(8, erm_data.adult, 1000, (23.0, 45.0)),
    _figure(9, erm_data.adult, 30_000, (None, 150.0)),
    Item(
        name="learning-table-2",
        timed=True,
        paper=PAPER,
        where="Table 2 (appendix)",
        what="time and traffic of one aggregation of 100 parties' 104 values with noise",
        measure=table_2,
        rules=(("", COST),),
        notes=(
            "Published: two servers in Yao's circuits; KDDCup99 and KDDCup98 differ from Adult by the number of "
            "features only. Ours: masked sums with noise in shares, and two-server noise that nobody knows. Gates are "
            "not counted: there is no circuit.",
        ),
        seconds=(37.0, 120.0),
        benches=("erm.cost", "secure.noise", "secure.sum"),
    ),
    of_learning(PAPER),
)
