"""Draw an artificial population that fits the assumptions. No row of any party is read."""

from dataclasses import dataclass
from math import exp, sqrt
from typing import Final, Literal, final

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator
from scipy.optimize import brentq, least_squares
from scipy.special import expit

from syndic.advice.assume import Assumptions, ColumnAssumption, bin_shares_of, moments_of, shares_of
from syndic.advice.scale import Numbers, bounds_of, listed
from syndic.data import Categorical, Date, Integer, Ordinal, Real, Schema
from syndic.data.schema import Column

PEOPLE = 100_000
Shape = Literal["beta", "gamma", "humps"]


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Population:
    """People drawn once, from which parties draw theirs. For each column: codes, and numbers (ranks if listed)."""

    schema: Schema
    codes: tuple[NDArray[np.int64], ...]
    numbers: tuple[Numbers, ...]


def draw_population(
    schema: Schema,
    assumptions: Assumptions,
    generator: np.random.Generator,
    *,
    outcome: str | None = None,
    shape: Shape = "beta",
) -> Population:
    """Return people with independent columns; the column `outcome` depends on all others, to the extent of r2.

    Numbers have the assumed mean and standard deviation, and the declared shares of bins or else one of three shapes:
    a beta distribution over their bounds, a gamma distribution from the nearer bound, or two modes.
    """
    numbers = [_draw(column, assumptions, generator, shape) for column in schema.columns]
    if outcome is not None:
        place = schema.names.index(outcome)
        others = [other for other in range(len(numbers)) if other != place]
        declared = [assumptions.columns.get(schema.names[other], ColumnAssumption()) for other in others]
        score = _score([numbers[other] for other in others], [one.say for one in declared])
        numbers[place] = _dependent(schema.columns[place], numbers[place], score, assumptions, generator)
    codes = tuple(codes_of(column, values) for column, values in zip(schema.columns, numbers, strict=True))
    return Population(schema=schema, codes=codes, numbers=tuple(numbers))


def codes_of(column: Column, numbers: Numbers) -> NDArray[np.int64]:
    """Return the bins of numbers within the bounds; ranks are codes."""
    if isinstance(column, Real | Integer | Date):
        return np.searchsorted(column.borders(), numbers, side="right")
    return numbers.astype(np.int64)


def _draw(column: Column, assumptions: Assumptions, generator: np.random.Generator, shape: Shape) -> Numbers:
    if listed(column):
        shares = shares_of(column, assumptions)
        return generator.choice(shares.size, PEOPLE, p=shares).astype(np.float64)
    lower, upper = bounds_of(column)
    if lower == upper:
        return np.full(PEOPLE, lower)
    in_bins = bin_shares_of(column, assumptions)
    if in_bins is not None:
        return _over_bins(column, in_bins, assumptions, generator)
    mean, sd = moments_of(column, assumptions)
    place, spread = (mean - lower) / (upper - lower), sd / (upper - lower)
    mirrored = place > 1 / 2
    parts = np.clip(_shaped(shape, 1 - place if mirrored else place, spread, generator), 0, 1)
    values = lower + (upper - lower) * (1 - parts if mirrored else parts)
    return values if isinstance(column, Real) else np.rint(values)


def _over_bins(column: Column, shares: Numbers, assumptions: Assumptions, generator: np.random.Generator) -> Numbers:
    """Return numbers with the declared shares of bins, and the declared mean and sd if both are declared."""
    declared = assumptions.columns[column.name]
    whole = isinstance(column, Integer | Date)
    edges = column.bin_edges.astype(np.int64).astype(np.float64) if whole else column.bin_edges  # type: ignore[union-attr]
    mean, sd = moments_of(column, assumptions)
    # an integer is drawn as the interval from it to the next one
    moments = None if declared.mean is None or declared.sd is None else (mean + whole / 2, sd)
    values = draw_over_bins(np.asarray(edges), shares, moments, PEOPLE, generator)
    return np.minimum(np.floor(values), edges[-1] - 1) if whole else values


def _shaped(shape: Shape, mean: float, sd: float, generator: np.random.Generator) -> Numbers:
    if shape == "beta":
        total = mean * (1 - mean) / sd**2 - 1
        return generator.beta(mean * total, (1 - mean) * total, PEOPLE)
    if shape == "gamma":
        return generator.gamma((mean / sd) ** 2, sd**2 / mean, PEOPLE)
    # two thirds are around a lower mode, a third around a higher one; each has half the overall sd
    high = generator.random(PEOPLE) < 1 / 3
    return mean + sd * (np.where(high, sqrt(1.5), -sqrt(0.375)) + generator.standard_normal(PEOPLE) / 2)


def _score(predictors: list[Numbers], says: list[float]) -> Numbers:
    """Return the standardised sum of the predictors, each weighted in variance by its `say`."""
    score = np.zeros(PEOPLE)
    for values, say in zip(predictors, says, strict=True):
        if values.std() > 0:
            score += sqrt(say) * (values - values.mean()) / values.std()
    return np.asarray(score / score.std()) if score.std() > 0 else score


def _dependent(
    column: Column, values: Numbers, score: Numbers, assumptions: Assumptions, generator: np.random.Generator
) -> Numbers:
    """Return the same values, ordered so that the score explains r2 of their variance."""
    if isinstance(column, Categorical | Ordinal) and len(listed(column)) != 2:
        return values
    if len(listed(column)) == 2:
        chances = _chances(score, float(shares_of(column, assumptions)[1]), assumptions.r2)
        return (generator.random(PEOPLE) < chances).astype(np.float64)
    noise = generator.standard_normal(PEOPLE)
    latent = sqrt(assumptions.r2) * score + sqrt(1 - assumptions.r2) * noise
    result = np.empty(PEOPLE)
    result[np.argsort(latent)] = np.sort(values)
    return result


def _chances(score: Numbers, share: float, explained: float) -> Numbers:
    """Return logistic probabilities with this mean that explain this share of the outcome's variance."""
    some = score[: PEOPLE // 10]

    def level(slope: float) -> float:
        return float(brentq(lambda start: float(expit(start + slope * some).mean()) - share, -200, 200))

    def surplus(log_slope: float) -> float:
        slope = exp(log_slope)
        return float(expit(level(slope) + slope * some).var()) - explained * share * (1 - share)

    lowest, highest = -7.0, 3.0
    if surplus(highest) <= 0 or surplus(lowest) >= 0:
        slope = exp(highest if explained > 0.5 else lowest)
    else:
        slope = exp(float(brentq(surplus, lowest, highest, xtol=1e-3)))
    return np.asarray(expit(level(slope) + slope * score))


_PIECES: Final = 64
_STEEPEST: Final = 40.0


def draw_over_bins(
    edges: Numbers, shares: Numbers, moments: tuple[float, float] | None, count: int, generator: np.random.Generator
) -> Numbers:
    """Return numbers with these shares between the edges and, as far as possible, this mean and standard deviation."""
    places = np.arange(_PIECES * shares.size + 1) / _PIECES
    fine = np.interp(places, np.arange(edges.size), edges)
    sums = PchipInterpolator(edges, np.concatenate([[0.0], shares.cumsum()]))(fine)
    pieces = np.diff(sums).reshape(shares.size, _PIECES)
    if moments is not None:
        pieces = _bent(pieces, ((fine[:-1] + fine[1:]) / 2).reshape(pieces.shape), moments)
    sums = np.concatenate([[0.0], pieces.ravel().cumsum()])
    return np.asarray(np.interp(generator.random(count) * sums[-1], sums, fine))


def _bent(pieces: Numbers, middles: Numbers, moments: tuple[float, float]) -> Numbers:
    """Return the pieces of every bin times exp(a x + b x^2), with a and b chosen to match the two moments."""
    mean, sd = moments
    standard = (middles - mean) / sd
    total = pieces.sum(axis=1, keepdims=True)

    def bent(slopes: Numbers) -> Numbers:
        power = slopes[0] * standard + slopes[1] * standard**2
        tilted = pieces * np.exp(power - power.max(axis=1, keepdims=True))
        own = tilted.sum(axis=1, keepdims=True)
        return np.asarray(tilted * np.where(own > 0, total / np.where(own > 0, own, 1), 0))

    def off(slopes: Numbers) -> Numbers:
        found = bent(slopes)
        return np.array([(found * standard).sum(), (found * standard**2).sum() - 1])

    # bounded: moments that are impossible with these shares are matched as closely as possible
    return bent(least_squares(off, np.zeros(2), bounds=(-_STEEPEST, _STEEPEST)).x)
