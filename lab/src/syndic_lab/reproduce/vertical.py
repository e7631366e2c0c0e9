"""Zhao et al. 2024: Tables 1 and 2, Figures 3 to 9, and the promise of its sketches."""

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from itertools import chain, pairwise
from math import log10
from typing import Any, Final

from syndic.errors import InputError
from syndic.report.figure import Bars, Curve, Line, Series
from syndic_lab.bench.model import synthesis as model_synthesis
from syndic_lab.bench.model.synthesis_data import ASKED, Coded, load, load_asked
from syndic_lab.bench.row import Row
from syndic_lab.bench.sketch import run as sketch
from syndic_lab.bench.vertical import gan as vertical_gan
from syndic_lab.bench.vertical import plan as vertical_plan
from syndic_lab.bench.vertical.claims import apart, claim, mean, of_distance, smaller
from syndic_lab.bench.vertical.methods import CURATOR, GAN, ORACLE_PRINTED, SHARES, SKETCH_PRINTED, found
from syndic_lab.bench.vertical.run import EPSILON
from syndic_lab.bench.vertical.svm import of_svm
from syndic_lab.reproduce.item import COST, SAID, Claim, Found, Item, Measure, Paper, Rule
from syndic_lab.reproduce.theorems import of_sketches

PAPER: Final = Paper("zhao-2024", "Zhao et al. 2024: VertiMRF, one synthetic table from parties with other columns")
_ADULT: Final = ("adult_coded.parquet", "adult_coded-domain.json")
_FIRE: Final = ("fire.parquet", "fire-domain.json")
# the benches' own plan reads both
_BOTH: Final = (*_ADULT, *_FIRE)
# records, attributes, and the order of the number of possible rows
_TABLE_1: Final = {
    "adult": (45_222, 15, 4e14),
    "fire": (305_119, 15, 1e15),
    "nltcs": (21_574, 16, 6e4),
    "br2000": (38_000, 13, 3e9),
}
_OF_THE_PAPER: Final = (SKETCH_PRINTED, ORACLE_PRINTED, GAN, CURATOR)
_WORDS: Final = (
    ("as published", SAID),
    ("seconds", COST),
    ("megabytes", COST),
    ("wall seconds", COST),
)
_NO_NUMBERS: Final = (
    "The figure prints no numbers: what the text says of it is checked, 1 if it is so here. VertiMRF runs as published."
)
_INSTEAD: Final = "The paper shows NLTCS: see the item that ends with its name. This is Adult."
_PARTS_FOR_LOCAL: Final = (
    "Read as the part of each of two parties, a fifth is best here too: the paper's other experiments give local "
    "models 40 %, which would not be its own best choice if it meant all parties together. Tested with sketches on "
    "three made-up tables of NLTCS' size, four seeds each: the distance at 0.2 for all parties is 0.059, 0.041, 0.051, "
    "at 0.4 0.042, 0.023, 0.043, at 0.6 0.049, 0.031, 0.044. Weights of the fit, delta, consistency, the decoder and "
    "budgets that are not divided by the number of parties do not move the best part to 0.2."
)


Measured = Callable[..., Iterator[Any]]


def table_1(quick: bool) -> Iterator[Row]:
    """Yield the sizes of the data sets that there are."""
    del quick
    for name, (records, attributes, size) in _TABLE_1.items():
        try:
            data = _data(name)
        except InputError:
            continue
        for metric, value, published in (
            ("records", float(data.table.num_rows), float(records)),
            ("attributes", float(len(data.domain)), float(attributes)),
            ("possible rows, decimal logarithm", log10(data.domain.size), log10(size)),
        ):
            yield Row(bench="vertical", row=name, metric=metric, value=value, unit="", published=published)


def _data(name: str) -> Coded:
    if name in ASKED:
        return load_asked(name)
    return load(name, "adult_coded" if name == "adult" else name)


def experiment(quick: bool, *, names: tuple[str, ...], on: str = "adult") -> Iterator[Row | Curve | Bars]:
    """Yield experiments of the bench on a table, then their distances of three columns as a picture."""
    rows = []
    for row in vertical_plan.rows_of(vertical_plan.Plan(_data(on), None, quick), names):
        rows.append(row)
        yield row
    yield from pictures(rows)


def over_epsilon(quick: bool, *, on: str, epsilons: tuple[str, ...] = ()) -> Iterator[Row | Curve | Bars]:
    """Yield distances over epsilon; of large tables by the methods of the paper only."""
    plan = vertical_plan.Plan(_data(on), None, quick)
    methods = [name for name in plan.methods if on != "fire" or name in _OF_THE_PAPER]
    rows = list(of_distance(plan.data, epsilons or plan.epsilons, plan.seeds, methods))
    yield from rows
    yield from pictures(rows)


def classified(quick: bool, *, on: str, epsilons: tuple[str, ...] = ()) -> Iterator[Row | Curve | Bars]:
    """Yield what a classifier trained on releases gets wrong; NLTCS has no label, so every column is one."""
    plan = vertical_plan.Plan(_data(on), None, quick)
    names = plan.data.domain.names
    labels = names if on == "nltcs" else ("ALS Unit",) if on == "fire" else names[-1:]
    methods = [name for name in plan.classified if on == "adult" or name in _OF_THE_PAPER]
    parts = (
        of_svm(plan.data, label, epsilon, methods, folds=3) for epsilon in epsilons or plan.epsilons for label in labels
    )
    rows = list(chain(*parts))
    yield from rows
    yield from pictures(rows)


def by_epsilon(measure: Measured, on: str) -> tuple[tuple[str, Measure], ...]:
    """Return a full run as pieces, one for each epsilon."""
    return tuple((epsilon, partial(measure, on=on, epsilons=(epsilon,))) for epsilon in vertical_plan.EPSILONS)


def figure_5(quick: bool, *, on: str = "adult") -> Iterator[Row | Curve]:
    """Yield distances over the number of parties, and whether they grow."""
    data = _data(on)
    numbers = (2, 5) if quick else (2, 3, 5, len(data.domain))
    lines = []
    for method in (ORACLE_PRINTED,) if quick else (SKETCH_PRINTED, ORACLE_PRINTED, SHARES):
        runs = {number: [found(data, method, EPSILON, seed, number) for seed in range(3)] for number in numbers}
        for number, some in runs.items():
            yield from apart(f"{data.name}, epsilon {EPSILON}, {number} parties, {method}", some)
        means = [mean(runs[number]) for number in numbers]
        if method != SHARES:
            text = f"{data.name}, epsilon {EPSILON}, {method}: distances grow with the number of parties"
            # falling anywhere beyond the errors refutes it; growing from first to last beyond them shows it
            falls = any(smaller(runs[more], runs[less]) for less, more in pairwise(numbers))
            grows = smaller(runs[numbers[0]], runs[numbers[-1]])
            yield claim(text, False if falls else grows or None)
        lines.append(Line(method, tuple((float(n), value) for n, value in zip(numbers, means, strict=True)), dots=True))
    yield Curve(
        title=f"Distance over the number of parties, {data.name}",
        description="Means over sets of 3, 4 and 5 columns.",
        width=700,
        lines=tuple(lines),
        x_axis="parties",
        y_axis="distance",
        y_least=0.0,
    )


def table_2(quick: bool) -> Iterator[Row]:
    """Yield time and traffic of every method, of real processes, and of one party's sketches."""
    parts = [vertical_plan.rows(quick, only=("cost", "processes")), sketch.times(quick), sketch.many_repetitions()]
    if not quick and find_spec("torch"):
        parts.append(vertical_gan.gan_rows(load("adult", "adult_coded"), range(1), 2, epsilons=("0.8",)))
    return chain(*parts)


def centralised(quick: bool) -> Iterator[Row]:
    """Yield a trusted curator's distances beside the best of public programs, measured on the same table."""
    data = load("adult", "adult_coded")
    for epsilon in ("0.8",) if quick else ("0.8", "3.2"):
        yield from model_synthesis.of_epsilon(data, epsilon, range(3), parties=())


def pictures(rows: list[Row]) -> Iterator[Bars]:
    """Yield the distances of three columns as bars, or misclassification where there is none."""
    for metric, words in (("tvd3", "distance of three columns"), ("misclassified", "share misclassified")):
        some = [row for row in rows if row.metric == metric]
        if some:
            yield Bars(
                title=words[0].upper() + words[1:],
                width=900,
                labels=tuple(row.row for row in some),
                series=(Series(words, tuple(row.value for row in some)),),
                lying=True,
            )


def _errors(measured: Found, epsilon: str) -> dict[str, float]:
    """Return misclassification by method at one epsilon."""
    begin = f"adult, epsilon {epsilon}, 2 parties, SVM of "
    return {row.rpartition("' on ")[2]: value for (row, metric), value in measured.values.items()
            if row.startswith(begin) and metric == "misclassified"}  # fmt: skip


def _best_sketches(measured: Found) -> tuple[bool, str]:
    others = {}
    for epsilon in ("0.8", "3.2"):
        errors = _errors(measured, epsilon)
        others[epsilon] = (errors[SKETCH_PRINTED], min(errors[ORACLE_PRINTED], errors[GAN]))
    seen = ", ".join(f"{one:.3f} and {other:.3f} at epsilon {epsilon}" for epsilon, (one, other) in others.items())
    return all(one < other for one, other in others.values()), f"sketches and the better of the others: {seen}"


def _bad_gan(measured: Found) -> tuple[bool, str]:
    error = _errors(measured, "3.2")[GAN]
    return error >= 0.35, f"{error:.3f}"


def _shown(
    name: str,
    where: str,
    what: str,
    experiments: tuple[str, ...],
    seconds: tuple[float | None, float],
    notes: tuple[str, ...] = (_NO_NUMBERS,),
    claims: tuple[Claim, ...] = (),
    on: str = "adult",
) -> Item:
    asked = ASKED.get(on)
    pieced: dict[tuple[str, ...], Measured] = {("distance",): over_epsilon, ("svm",): classified}
    return Item(
        name=f"vertimrf-{name}",
        paper=PAPER,
        where=where,
        what=what,
        measure=partial(experiment, names=experiments, on=on),
        reason="" if asked is None else asked.where,
        needs=_ADULT if asked is None else (asked.file,),
        libraries=("sklearn",) if "svm" in experiments else (),
        rules=_WORDS,
        claims=claims,
        shown=("tvd3", "tvd5", "misclassified"),
        notes=notes,
        seconds=seconds,
        benches=("vertical.claims",),
        pieces=by_epsilon(pieced[experiments], on) if experiments in pieced else (),
    )


def _asked(name: str, number: int) -> Item:
    """Return figure 3, 4 or 5 on a table that one has to ask for."""
    measures: dict[int, Measured] = {3: over_epsilon, 4: classified, 5: figure_5}
    words = {
        3: "distances over epsilon",
        4: "misclassification over epsilon",
        5: "distances over the number of parties",
    }
    measure = measures[number]
    pieces = () if number == 5 else by_epsilon(measure, name)
    return Item(
        name=f"vertimrf-figure-{number}-{name}",
        paper=PAPER,
        where=f"Figure {number}, {name.upper()}",
        what=words[number],
        measure=partial(measure, on=name),
        reason=ASKED[name].where,
        needs=(ASKED[name].file,),
        libraries=("sklearn",) if number == 4 else (),
        rules=_WORDS,
        shown=("tvd3", "tvd5", "misclassified"),
        notes=(_NO_NUMBERS, "Processor seconds are an estimate: the table may not be passed on with the program."),
        seconds=(None, 3000.0),
        pieces=pieces,
    )


_fire = partial(Item, paper=PAPER, needs=_FIRE, rules=_WORDS)

ITEMS: Final = (
    Item(
        name="vertimrf-table-1",
        paper=PAPER,
        where="Table 1",
        what="records, attributes and possible rows of the data sets",
        measure=table_1,
        needs=_BOTH,
        rules=(("possible", Rule(within=0.05)), ("", Rule(within=0.0))),
        notes=(
            "Fire has 4e15 possible rows, the product of its sizes; printed: 1e15. BR2000 has 14 columns; printed: 13.",
        ),
        seconds=(1.0, 1.0),
    ),
    _shown(
        "figure-3-adult",
        "Figure 3, Adult",
        "distances over epsilon: VertiMRF with sketches and randomised response, VertiGAN, a trusted curator",
        ("distance",),
        seconds=(80.0, 4000.0),
    ),
    _fire(
        name="vertimrf-figure-3-fire",
        where="Figure 3, Fire",
        what="distances over epsilon",
        measure=partial(over_epsilon, on="fire"),
        pieces=by_epsilon(over_epsilon, "fire"),
        shown=("tvd3", "tvd5"),
        notes=(_NO_NUMBERS, "The order of Fire's columns is not known: ours is alphabetical."),
        seconds=(None, 15_000.0),
    ),
    _asked("nltcs", 3),
    _asked("br2000", 3),
    _shown(
        "figure-4-adult",
        "Figure 4, Adult",
        "misclassification of a support vector machine trained on the release",
        ("svm",),
        notes=(
            "Only one number is printed, VertiGAN's. Ours trains on four folds, on 4,000 rows at most, and tests on "
            "the fifth; the published program trains on all five.",
        ),
        claims=(
            Claim(text="sketches are better than randomised response and VertiGAN", holds=_best_sketches),
            Claim(text="VertiGAN gets as much as 40 % wrong even at epsilon 3.2", holds=_bad_gan),
        ),
        seconds=(None, 3600.0),
    ),
    _asked("nltcs", 4),
    _asked("br2000", 4),
    _fire(
        name="vertimrf-figure-4-fire",
        where="Figure 4, Fire",
        what="misclassification over epsilon",
        measure=partial(classified, on="fire"),
        pieces=by_epsilon(classified, "fire"),
        libraries=("sklearn",),
        shown=("misclassified",),
        notes=("The figure prints no numbers. Trained on 4,000 rows at most.",),
        seconds=(None, 12_000.0),
    ),
    Item(
        name="vertimrf-figure-5",
        paper=PAPER,
        where="Figure 5, Adult",
        what="distances over the number of parties at epsilon 0.8",
        measure=figure_5,
        needs=_ADULT,
        rules=_WORDS,
        shown=("tvd3", "tvd5"),
        notes=(_NO_NUMBERS, "'Shares' is a method of ours, beside it."),
        seconds=(None, 900.0),
    ),
    _asked("nltcs", 5),
    _shown("figure-6", "Figure 6", "part of the budget for local models: best at a fifth", ("budget",),
           notes=(_NO_NUMBERS, _INSTEAD, _PARTS_FOR_LOCAL), seconds=(60.0, 500.0)),
    _shown("figure-6-nltcs", "Figure 6, NLTCS", "part of the budget for local models: best at a fifth", ("budget",),
           notes=(_NO_NUMBERS, _PARTS_FOR_LOCAL), seconds=(None, 200.0), on="nltcs"),
    _shown("figure-7", "Figure 7", "with and without local models", ("local",),
           notes=(_NO_NUMBERS, _INSTEAD), seconds=(30.0, 150.0)),
    _shown("figure-7-nltcs", "Figure 7, NLTCS", "with and without local models", ("local",), seconds=(None, 60.0),
           on="nltcs"),
    _shown("figure-8", "Figure 8", "histogram recovery against even values", ("recovery",), seconds=(33.0, 300.0)),
    _shown("figure-9", "Figure 9", "consistent tables on and off", ("consistency",), seconds=(35.0, 700.0)),
    Item(
        name="vertimrf-table-2",
        timed=True,
        paper=PAPER,
        where="Table 2",
        what="time and traffic on Adult",
        measure=table_2,
        needs=_BOTH,
        rules=_WORDS,
        notes=(
            "Published seconds are of one party and the server together; ours are processor seconds of all roles. The "
            "printed 4.9 Mb with 40 threads is left out: threads do not change traffic.",
        ),
        seconds=(35.0, 400.0),
        benches=("vertical.run", "vertical.plan", "vertical.claims", "vertical.gan", "sketch.run"),
    ),
    Item(
        name="vertimrf-centralised",
        paper=PAPER,
        where="the method 'Centralized' of Figure 3",
        what="a trusted curator on Adult beside PrivMRF, AIM and MST",
        measure=centralised,
        needs=_ADULT,
        rules=(("tvd", Rule(within=0.1, factor=2.0)),),
        notes=(
            "Not printed in the paper: the best distance of PrivMRF's own program, AIM and MST, as measured on this "
            "table with those programs.",
        ),
        seconds=(25.0, 60.0),
        benches=("model.synthesis",),
    ),
    *of_sketches(PAPER),
)  # fmt: skip
