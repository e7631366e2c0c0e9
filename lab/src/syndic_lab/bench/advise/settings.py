"""Studies drawn by a seed, with true populations that `advise` is not told: it hears a rounded mean and spread."""

from dataclasses import dataclass
from math import exp, log
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from syndic.advice import Assumptions, Task
from syndic.advice.assume import ColumnAssumption
from syndic.data import Boolean, Categorical, Instead, Real, Schema
from syndic.data.schema import Column
from syndic.document import exact
from syndic.kernel import Member
from syndic.methods import Homm
from syndic.privacy import Budget, Unit
from syndic.study import Study

Numbers = NDArray[np.float64]
PLAIN_SHAPES = ("normal", "skewed beta", "uniform", "mixture")
ALL_SHAPES = (*PLAIN_SHAPES, "lognormal", "triangular", "spiked")
_LEVELS = ("a", "b", "c")
_MANY = 200_000


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    """A study, the question, and the truth: the shape of numbers, shares of values, and how y depends on the rest."""

    number: int
    study: Study
    task: Task
    shape: str
    shares: Numbers
    strength: float

    @property
    def words(self) -> str:
        """The setting in a line."""
        study = self.study
        sizes = ", ".join(
            f"{party.people} at {float((party.budget or study.budget).epsilon):.3g}" for party in study.parties
        )
        protocol: Any = study.protocol
        rule = f"{protocol.noise}{'' if protocol.clamp else ' unclamped'}, {study.unit.neighbours}"
        return (
            f"{self.number}: {self.task.name}, {self.shape}, {study.schema.domain.size} cells, {rule}, people {sizes}"
        )

    def people(self, count: int, generator: np.random.Generator) -> list[Numbers]:
        """Draw people: numbers of every column, ranks where values are listed."""
        columns = self.study.schema.columns
        drawn = [_draw(column, self.shape, self.shares, count, generator) for column in columns]
        if self.task.kind in ("linear", "classify"):
            drawn[-1] = self._outcome(drawn[:-1], generator)
        return drawn

    def assumptions(self, *, bins: bool = False) -> Assumptions:
        """Return what people would declare: mean and spread to two digits, r2 too, shares to one percent.

        With `bins` what a published table says: mean and spread to three digits, the shares of every number's bins to
        one in a thousand, the says of columns to one percent.
        """
        drawn = self.people(_MANY, np.random.default_rng(self.number))
        explained, parts = _explained(drawn)
        says = [*(round(part, 2) for part in parts), 1.0] if bins else [1.0] * len(drawn)
        told = {
            column.name: self._told(column, values, say, bins=bins)
            for column, values, say in zip(self.study.schema.columns, drawn, says, strict=True)
        }
        return Assumptions(columns=told, r2=float(f"{explained:.2g}"))

    def _told(self, column: Column, values: Numbers, say: float, *, bins: bool) -> ColumnAssumption:
        if isinstance(column, Boolean):
            return ColumnAssumption(mean=float(np.clip(values.mean().round(2), 0.01, 0.99)), say=say)
        if not isinstance(column, Real):
            return ColumnAssumption(shares=tuple(self.shares.round(2)), say=say)
        mean, sd = (float(f"{value:.{3 if bins else 2}g}") for value in (values.mean(), values.std()))
        shares = tuple((np.histogram(values, column.bin_edges)[0] / values.size).round(3)) if bins else None
        return ColumnAssumption(mean=mean, sd=sd, shares=shares, say=say)

    def _outcome(self, others: list[Numbers], generator: np.random.Generator) -> Numbers:
        """Return an outcome that follows the first columns more than the last ones."""
        parts = [(values - 0.5) / 0.29 / (place + 1) for place, values in enumerate(others)]
        score = np.sum(parts, axis=0)
        slope = np.sqrt(self.strength / (1 - self.strength))
        if self.task.kind == "classify":
            return np.asarray(generator.random(score.size) < expit(1.8 * slope * score - 0.5), dtype=np.float64)
        noise = generator.standard_normal(score.size)
        return np.asarray(
            np.clip(0.45 + 0.15 * (np.sqrt(self.strength) * score + np.sqrt(1 - self.strength) * noise), 0, 1)
        )


def settings(seed: int, count: int, shapes: tuple[str, ...] = ALL_SHAPES) -> list[Setting]:
    """Return settings that the seed alone decides."""
    generator = np.random.default_rng(seed)
    return [_setting(number, generator, shapes) for number in range(count)]


def _setting(number: int, generator: np.random.Generator, shapes: tuple[str, ...]) -> Setting:
    kind = ("mean", "linear", "mean", "classify", "mean")[number % 5]
    numbers = int(generator.integers(1, 3)) if kind == "mean" else 1
    columns: list[Column] = [
        Real(name=f"x{place}", lower=0.0, upper=1.0, bins=int(generator.integers(4, 11)), missing=Instead(value=0.5))
        for place in range(numbers)
    ]
    if generator.random() < 0.5:
        values = Categorical(name="c", values=_LEVELS, outside=Instead(value="a"), missing=Instead(value="a"))
        columns.append(values)
    if kind == "linear":
        columns.append(
            Real(name="y", lower=0.0, upper=1.0, bins=int(generator.integers(4, 11)), missing=Instead(value=0.5))
        )
    if kind == "classify" or (kind == "mean" and generator.random() < 0.5):
        columns.append(Boolean(name="y", missing=Instead(value=False)))
    return Setting(
        number=number,
        study=_study(number, tuple(columns), generator, free=kind != "classify"),
        task=Task(kind=kind, column="x0" if kind == "mean" else "y"),  # type: ignore[arg-type]
        shape=shapes[int(generator.integers(len(shapes)))],
        shares=generator.dirichlet(np.full(3, 2.0)),
        strength=float(generator.uniform(0.15, 0.6)),
    )


def _study(number: int, columns: tuple[Column, ...], generator: np.random.Generator, *, free: bool) -> Study:
    sizes = [int(exp(generator.uniform(log(20), log(600)))) for _ in range(int(generator.integers(2, 7)))]
    epsilon = exact(f"{exp(generator.uniform(log(0.15), log(5))):.2g}")
    form = generator.choice(["laplace", "laplace", "laplace", "gaussian", "unclamped"])
    delta = exact("1e-6") if form == "gaussian" else exact(0)
    parts = [exact(str(part)) for part in generator.choice(["1", "1", "0.5", "0.25"], len(sizes))]
    return Study(
        name=f"setting {number}",
        unit=Unit(neighbours="replace" if generator.random() < 0.3 else "add_remove"),
        budget=Budget(epsilon=epsilon, delta=delta),
        protocol=Homm(noise="gaussian" if form == "gaussian" else "laplace", clamp=not (free and form == "unclamped")),
        parties=tuple(
            Member(name=f"p{place}", people=size, budget=Budget(epsilon=epsilon * part, delta=delta))
            for place, (size, part) in enumerate(zip(sizes, parts, strict=True))
        ),
        schema=Schema(columns=columns),
    )


def _draw(column: Column, shape: str, shares: Numbers, count: int, generator: np.random.Generator) -> Numbers:
    if isinstance(column, Boolean):
        return np.asarray(generator.random(count) < shares[0], dtype=np.float64)
    if not isinstance(column, Real):
        return generator.choice(shares.size, count, p=shares).astype(np.float64)
    if shape == "normal":
        values = generator.normal(0.45, 0.15, count)
    elif shape == "skewed beta":
        values = generator.beta(1.5, 5.0, count)
    elif shape == "uniform":
        values = generator.uniform(0.1, 0.8, count)
    elif shape == "mixture":
        values = np.where(
            generator.random(count) < 0.7, generator.normal(0.3, 0.07, count), generator.normal(0.75, 0.1, count)
        )
    elif shape == "triangular":
        values = generator.triangular(0.0, 0.2, 0.9, count)
    elif shape == "spiked":
        values = np.where(generator.random(count) < 0.3, 0.2, generator.uniform(0.0, 0.9, count))
    else:
        values = 0.25 * np.exp(0.5 * generator.standard_normal(count))
    return np.asarray(np.clip(values, 0.0, 1.0))


def _explained(columns: list[Numbers]) -> tuple[float, Numbers]:
    """Return the part of the last column's variance that a linear fit to the others explains, and their says in it."""
    design = np.column_stack([np.ones(columns[0].size), *columns[:-1]])
    slopes = np.linalg.lstsq(design, columns[-1], rcond=None)[0]
    parts = slopes[1:] ** 2 * design[:, 1:].var(axis=0)
    explained = float((design @ slopes).var() / columns[-1].var())
    return explained, np.asarray(parts / (parts.sum() or 1.0))
