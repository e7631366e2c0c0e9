"""Su and Liu 2020: Table I and the panels of Figure 1."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from syndic.report.figure import Curve
from syndic_lab.bench.homm import run as homm
from syndic_lab.bench.homm.experiment import Experiment
from syndic_lab.bench.row import Row
from syndic_lab.reproduce.item import Claim, Found, Item, Paper, Rule
from syndic_lab.reproduce.theorems import of_homm

PAPER: Final = Paper("su-liu-2020", "Su and Liu 2020: HOMM, a sanitised merged table of parties with the same columns")
# a threshold is a point of a grid, and the paper does not say how many bins it has
RULES: Final = (
    # the largest epsilon of the grid does not reach it: no number to compare
    ("threshold epsilon is above", Rule(within=0.0, factor=1.0)),
    ("threshold", Rule(within=0.01, factor=2.0)),
    ("", Rule(within=0.1)),
)
NOTES: Final = (
    "Published thresholds are read from the text, which gives no bins, no bounds and no grid of epsilons; a factor of "
    "two is one or two steps of ours. The baseline is the threshold with the noise as published.",
)
# parties and people of Table I
_TABLE: Final = {"1": (5, 370), "2": (10, 1000), "3": (10, 650), "4, linear model": (13, 900), "5": (9, 300)}


def table_1(quick: bool) -> Iterator[Row]:
    """Yield the sizes of Table I as our experiments have them."""
    del quick
    for make in (homm.mean_of_normal, homm.linear_model, homm.logistic_model, homm.medical_costs,
                 homm.social_network_ads):  # fmt: skip
        one = make()
        row, ours = f"experiment {one.number}", (len(one.sizes), sum(one.sizes))
        for metric, value, published in zip(("parties", "people"), ours, _TABLE[one.number], strict=True):
            yield Row(bench="homm", row=row, metric=metric, value=value, unit="", published=published)


def panel(quick: bool, *, make: Callable[[], Experiment]) -> Iterator[Row | Curve]:
    """Yield one experiment's curves, thresholds and figure."""
    experiment = make()
    outcome = experiment.measure(quick=quick)
    yield from homm.of_experiment(experiment, outcome)
    yield homm.figure(experiment, outcome)


def _late(number: str) -> Claim:
    def holds(found: Found) -> tuple[bool, str]:
        row = f"experiment {number}, average party"
        at = found.values.get((row, "threshold epsilon"))
        if at is None:
            return False, "never better than the average party on the grid"
        return at > 1.0, f"better than the average party from epsilon {at:g}; experiment 2 from 1"

    return Claim(text="the same pattern as in experiment 2, at a relatively larger epsilon", holds=holds)


def _item(
    number: str,
    make: Callable[[], Experiment],
    seconds: tuple[float, float],
    what: str,
    file: str | None = None,
    claims: tuple[Claim, ...] = (),
) -> Item:
    return Item(
        name=f"homm-figure-1-{number.replace(', ', '-').replace(' ', '-')}",
        paper=PAPER,
        where=f"Figure 1, experiment {number}",
        what=what,
        measure=partial(panel, make=make),
        needs=() if file is None else (file,),
        libraries=("sklearn",),
        rules=RULES,
        claims=claims,
        shown=("threshold",),
        notes=NOTES,
        seconds=seconds,
        benches=("homm.run",),
    )


ITEMS: Final = (
    Item(
        name="homm-table-1",
        paper=PAPER,
        where="Table I",
        what="the five experiments: parties and people",
        measure=table_1,
        needs=("insurance.csv", "Social_Network_Ads.csv"),
        libraries=("sklearn",),
        rules=(("", Rule(within=0.0)),),
        notes=("Sizes of single parties are ours, between the printed extremes; a quick run repeats less often.",),
        seconds=(1.0, 1.0),
    ),
    _item("1", homm.mean_of_normal, (12.0, 50.0), what="mean of a normal variable: error over epsilon"),
    _item("2", homm.linear_model, (12.0, 30.0), what="linear model, simulated: prediction error over epsilon"),
    _item("3", homm.logistic_model, (19.0, 50.0), what="logistic regression, simulated: share misclassified"),
    _item(
        "4, linear model",
        homm.medical_costs,
        (8.0, 70.0),
        what="medical costs, linear model: prediction error over epsilon",
        file="insurance.csv",
        claims=(_late("4, linear model"),),
    ),
    _item(
        "4, random forest",
        homm.medical_costs_forest,
        (9.0, 160.0),
        what="medical costs, random forest: prediction error over epsilon",
        file="insurance.csv",
        claims=(_late("4, random forest"),),
    ),
    _item(
        "5",
        homm.social_network_ads,
        (10.0, 25.0),
        what="social network ads, logistic regression: share misclassified",
        file="Social_Network_Ads.csv",
    ),
    of_homm(PAPER),
)
