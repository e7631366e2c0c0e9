"""Draw artificial people with associated columns, for advice on vertical studies. No row of any party is read.

Each person belongs to one of a few kinds. In each column a person has, with some probability, the value of its kind,
and otherwise one drawn by the column's shares. Columns differ in that probability, as in real tables: some are nearly
copies of each other, some are independent. They also differ in how evenly values are spread: the share of a value
falls as 1 / rank^e, with e at least 0.
"""

from dataclasses import dataclass
from statistics import fmean
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.advice.assume import Assumptions
from syndic.advice.population import draw_population
from syndic.advice.scale import listed, scale_of
from syndic.data import Domain, Schema
from syndic.evaluation.distance import tvd

Codes = dict[str, NDArray[np.int64]]
KINDS: Final = 30


@final
@dataclass(frozen=True)
class Crowd:
    """An artificial population: `tied` is the mean probability over columns, `uneven` the largest exponent e."""

    tied: float
    uneven: float


CROWDS: Final = (Crowd(0.85, 4.5), Crowd(0.55, 3.5), Crowd(0.5, 2.0))
"""From easy to hard to synthesise, chosen so that distances measured on Adult and Fire, both public, lie within."""

IN_WORDS: Final = (
    "three artificial populations, by association of columns and unevenness of values: "
    + "; ".join(f"{one.tied:g} and {one.uneven:g}" for one in CROWDS),
    "real tables have other shapes: plan with the range, not with the middle",
)


def made_up(schema: Schema, crowd: Crowd, people: int, assumptions: Assumptions, draws: np.random.Generator) -> Codes:
    """Return the codes of artificial people."""
    weights = 1 / np.arange(1, KINDS + 1)
    kind = draws.choice(KINDS, people, p=weights / weights.sum())
    found = {}
    # probabilities are spread evenly over columns, so that populations differ only as intended
    chances = _even(len(schema.columns), draws) ** ((1 - crowd.tied) / crowd.tied)
    for chance, (name, shares) in zip(chances, _shares(schema, crowd, assumptions, draws).items(), strict=True):
        typical = draws.choice(len(shares), KINDS, p=shares)
        alike = draws.random(people) < chance
        found[name] = np.where(alike, typical[kind], draws.choice(len(shares), people, p=shares))
    return found


def distance(one: Codes, other: Codes, domain: Domain, sets: list[tuple[str, ...]]) -> float:
    """Return the mean total variation distance of two tables over sets of columns."""
    apart = []
    for names in sets:
        part = domain.project(names)
        cells = [part.index([codes[name] for name in names]) for codes in (one, other)]
        apart.append(tvd(*(np.bincount(each, minlength=part.size) for each in cells)))
    return fmean(apart)


def _even(columns: int, draws: np.random.Generator) -> NDArray[np.float64]:
    """Return numbers that are evenly spread over 0 to 1, in random order."""
    return (draws.permutation(columns) + 0.5) / columns


def _shares(
    schema: Schema, crowd: Crowd, assumptions: Assumptions, draws: np.random.Generator
) -> dict[str, NDArray[np.float64]]:
    """Return the shares of every column's codes: as declared, or as uneven as the population."""
    usual = draw_population(schema, assumptions, draws).codes if assumptions.columns else ()
    found = {}
    shares: NDArray[np.float64]
    exponents = crowd.uneven * _even(len(schema.columns), draws)
    for place, column in enumerate(schema.columns):
        if column.name in assumptions.columns:
            shares = np.bincount(usual[place]).astype(np.float64)
        else:
            values = len(listed(column)) or int(scale_of(column).valid.sum())
            shares = np.arange(1, values + 1, dtype=np.float64) ** -exponents[place]
        whole = np.zeros(column.size)
        whole[: len(shares)] = shares
        found[column.name] = whole / whole.sum()
    return found
