"""Whole runs on long tables, where every person has cells, or a row, of their own: each is a trial by itself.

One run on each of two tables then shows as much as thousands: everybody is there, or has one value, in the first, and
nobody, or has another value, in the second. This takes noise and masks of different entries to be independent, which
the laws of mechanisms and the looks at masks show; nothing is taken for granted about their size.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from syndic.methods import Homm, Marginals, Mixing
from syndic.methods.histogram.marginals_plan import MarginalsPlan
from syndic.privacy import Budget, Unit, default_delta
from syndic.random import Randomness
from syndic.study import Study
from syndic_lab.audit.horizontal import ADD, APPROXIMATE, PURE, REPLACE, THREE
from syndic_lab.audit.mechanisms import Draws
from syndic_lab.audit.observation import Neighbours, Trial
from syndic_lab.audit.rehearsal import Run, Stage
from syndic_lab.audit.setting import COALITION, RELEASE, rows_of, study_of

Looks = Mapping[str, Callable[[Run], NDArray[np.float64]]]
_ROWS: Final = 20


def long() -> Iterator[tuple[str, Draws]]:
    """Yield the audits, with the part that carries them in their names."""
    yield "long table, homm gaussian", _counts
    for law in ("gaussian", "skellam", "laplace"):
        yield f"long table, masked sum {law}", _summed(law)
    yield "long table, secure product", _products
    yield "long table, noisy columns", _columns


def _trials(
    study: Study, tables: Sequence[Mapping[str, Any]], looks: Looks, randomness: Randomness, cuts: tuple[float, ...]
) -> list[Trial]:
    """Run on both tables and compare what every look shows, entry by entry."""
    seeds = randomness.words(2) >> np.uint64(8)
    one, other = (Stage(study, table).run(int(seed)) for table, seed in zip(tables, seeds, strict=True))
    return [
        Neighbours(view=view, one=sees(one), other=sees(other), cost=study.joint, delta=float(study.delta), cuts=cuts)
        for view, sees in looks.items()
    ]


def _counts(count: int, randomness: Randomness) -> list[Trial]:
    """Count everybody in a cell of their own, or nobody."""
    cells = count // 10

    def sees(run: Run) -> NDArray[np.float64]:
        found = np.zeros(cells)
        found[run.result.histograms["a"].cells] = run.result.histograms["a"].counts
        return found

    protocol = Homm(noise="gaussian", clamp=False)
    # people is a public bound that no noise depends on
    study = study_of(protocol, columns=(("x", cells),), parties={"a": (2, None)}, unit=ADD, budget=APPROXIMATE)
    tables = [{"a": rows_of(x=places)} for places in (range(cells), range(0))]
    return _trials(study, tables, {RELEASE: sees}, randomness, (0.5,))


def _summed(law: Literal["gaussian", "skellam", "laplace"]) -> Draws:
    def draws(count: int, randomness: Randomness) -> list[Trial]:
        """Count twenty rows of everybody in a cell of their own under masks, or nobody's."""
        cells = count // (40 if law == "laplace" else 20)
        protocol = Marginals(noise=law, cliques=(("x",),), cell_cap=cells)
        unit = Unit(neighbours="add_remove", rows=_ROWS)
        budget = PURE if law == "laplace" else APPROXIMATE
        study = study_of(protocol, columns=(("x", cells),), parties=THREE, unit=unit, budget=budget)
        share, empty = study.plan_as(MarginalsPlan).noise, rows_of(x=[])
        everybody = rows_of(x=np.repeat(np.arange(cells), _ROWS).tolist())
        tables = [{"a": own, "b": empty, "c": empty} for own in (everybody, empty)]

        def opened(run: Run) -> NDArray[np.float64]:
            return np.asarray(run.result.tables[0].values.ravel(), dtype=np.float64)

        looks: Looks = {RELEASE: opened, COALITION: lambda run: opened(run) - run.own_noise("b", share, cells)}
        return _trials(study, tables, looks, randomness, (_ROWS / 2,))

    return draws


def _products(count: int, randomness: Randomness) -> list[Trial]:
    """Give everybody a level of their own at one party, and one of two values at the other."""
    people = min(1500, count // 400)
    parties = {"a": (people, ("x",)), "b": (people, ("y",))}
    budget = Budget.of(4, default_delta(people))
    protocol = Marginals(cliques=(("x", "y"),))
    study = study_of(protocol, columns=(("x", people), ("y", 2)), parties=parties, unit=REPLACE, budget=budget)
    noise = study.plan_as(MarginalsPlan).noise
    tables = [{"a": rows_of(x=range(people)), "b": rows_of(y=[value] * people)} for value in (1, 0)]

    def lean(values: NDArray[Any]) -> NDArray[np.float64]:
        table = values.reshape(people, 2).astype(np.float64)
        return np.asarray(table[:, 1] - table[:, 0])

    def opened(run: Run) -> NDArray[Any]:
        return np.asarray(run.result["x", "y"].values)

    looks: Looks = {
        RELEASE: lambda run: lean(opened(run)),
        COALITION: lambda run: lean(opened(run).ravel() - run.own_noise("b", noise, 2 * people)),
    }
    return _trials(study, tables, looks, randomness, (0.0,))


def _columns(count: int, randomness: Randomness) -> list[Trial]:
    """Let every value of everybody be at one bound, or at the other, at four parties."""
    people = min(50_000, count // 20)
    names = [f"c{place}" for place in range(4)]
    study = study_of(
        Mixing(scheme="dgm"),
        columns=[(name, 2) for name in names],
        parties={f"p{place}": (people, (name,)) for place, name in enumerate(names)},
        unit=Unit(neighbours="replace", parties=len(names)),
        budget=Budget.of(4, default_delta(people)),
    )
    tables = [
        {f"p{place}": rows_of(**{name: [value] * people}) for place, name in enumerate(names)} for value in (1, 0)
    ]
    return _trials(
        study, tables, {RELEASE: lambda run: run.result.numbers.sum(axis=1).astype(float)}, randomness, (0.0,)
    )
