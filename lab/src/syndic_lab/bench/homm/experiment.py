"""One experiment of HOMM: each party alone, their average, everything merged, and the sanitised merge over epsilon."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from syndic.data import Schema, SparseCounts, Table, open_source
from syndic.document import exact
from syndic.kernel import Member
from syndic.methods import Homm
from syndic.privacy import Budget, Unit
from syndic.study import Study
from syndic_lab.bench.homm.data import Columns, Draw
from syndic_lab.bench.homm.model import Loss
from syndic_lab.bench.open_party import merge_openly

LIKE = 1.01
"""A loss of at most 1.01 times the original's is called like the original."""


@final
@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Losses of one experiment. Curves are from epsilon to loss; `originals` has the original's of every repeat."""

    parties: NDArray[np.float64]
    original: float
    originals: NDArray[np.float64]
    sanitised: Mapping[float, float]
    printed: Mapping[float, float]

    @property
    def average(self) -> float:
        """The mean of the parties' losses."""
        return float(self.parties.mean())


Reference = Callable[[Outcome], float]


@final
@dataclass(frozen=True, kw_only=True)
class Mark:
    """Something that the sanitised merge is held against, and the epsilon at which the paper says it gets there."""

    name: str
    reference: Reference
    published: float | None = None


@final
@dataclass(frozen=True, kw_only=True)
class Experiment:
    """What is drawn, released, fitted and compared; parties are ordered by size, the smallest first.

    `squared` says that losses are squared errors, to be averaged over repeats before the root is taken.
    """

    number: str
    title: str
    metric: str
    unit: str
    sizes: tuple[int, ...]
    schema: Schema
    draw: Draw
    loss: Loss
    epsilons: tuple[float, ...]
    repeats: int
    quick_repeats: int
    marks: tuple[Mark, ...]
    squared: bool = False

    def study(self, epsilon: float, *, as_published: bool = False) -> Study:
        """Return the study that is run at one epsilon, the same for every party, under add/remove as in the paper."""
        return Study(
            name=f"HOMM, experiment {self.number}",
            unit=Unit(neighbours="add_remove"),
            budget=Budget(epsilon=exact(epsilon)),
            protocol=Homm(as_published=as_published),
            parties=tuple(Member(name=_name(place), people=size) for place, size in enumerate(self.sizes)),
            schema=self.schema,
        )

    def measure(self, *, quick: bool = False) -> Outcome:
        """Run all repeats. The same rows serve every epsilon, and both kinds of noise."""
        studies = {
            (epsilon, kind): self.study(epsilon, as_published=kind) for epsilon in self.epsilons for kind in KINDS
        }
        for study in studies.values():
            study.check()
        generator = np.random.default_rng([2020, sum(self.number.encode())])
        repeats = [self._repeat(place, studies, generator) for place in range(self.repeats_of(quick))]
        parties, originals, curves = zip(*repeats, strict=True)
        return Outcome(
            parties=self._over_repeats(np.array(parties)),
            original=float(self._over_repeats(np.array(originals))),
            originals=np.array(originals),
            sanitised={e: float(self._over_repeats(np.array([c[e, False] for c in curves]))) for e in self.epsilons},
            printed={e: float(self._over_repeats(np.array([c[e, True] for c in curves]))) for e in self.epsilons},
        )

    def repeats_of(self, quick: bool) -> int:
        """Return how often the experiment is repeated."""
        return self.quick_repeats if quick else self.repeats

    def _repeat(
        self, place: int, studies: Mapping[tuple[float, bool], Study], generator: np.random.Generator
    ) -> tuple[list[float], float, dict[tuple[float, bool], float]]:
        split = self.draw(generator)
        counts = {_name(k): _counted(self.schema, rows) for k, rows in enumerate(split.parties)}
        losses = {
            (epsilon, kind): self.loss(
                _merged(Homm(as_published=kind), study, counts, self.number, str(place), str(epsilon), str(kind)),
                split.test,
            )
            for (epsilon, kind), study in studies.items()
        }
        pooled = {name: np.concatenate([rows[name] for rows in split.parties]) for name in self.schema.names}
        return [self.loss(rows, split.test) for rows in split.parties], self.loss(pooled, split.test), losses

    def _over_repeats(self, losses: NDArray[np.float64]) -> NDArray[np.float64]:
        mean = losses.mean(axis=0)
        return np.asarray(np.sqrt(mean) if self.squared else mean)


KINDS = (False, True)
"""Sound noise, and the noise as published."""


def threshold(curve: Mapping[float, float], reference: float) -> float | None:
    """Return the smallest epsilon from which the curve stays below the reference; None if it ends above."""
    found = None
    for epsilon in sorted(curve, reverse=True):
        if curve[epsilon] >= reference:
            break
        found = epsilon
    return found


def smallest_party(outcome: Outcome) -> float:
    """Return the loss of the first party."""
    return float(outcome.parties[0])


def largest_party(outcome: Outcome) -> float:
    """Return the loss of the last party."""
    return float(outcome.parties[-1])


def best_party(outcome: Outcome) -> float:
    """Return the lowest loss of a party."""
    return float(outcome.parties.min())


def average_party(outcome: Outcome) -> float:
    """Return the mean loss of the parties."""
    return outcome.average


def like_original(outcome: Outcome) -> float:
    """Return what counts as like the original."""
    return LIKE * outcome.original


def _merged(protocol: Homm, study: Study, counts: Mapping[str, SparseCounts], *labels: str) -> Columns:
    table = merge_openly(protocol, study, counts, *labels).table.to_arrow()
    return {name: np.asarray(table[name], dtype=np.float64) for name in study.schema.names}


def _counted(schema: Schema, rows: Columns) -> SparseCounts:
    return Table(schema, open_source(pa.table({name: rows[name] for name in schema.names}))).cells()


def _name(place: int) -> str:
    return f"party{place + 1}"
