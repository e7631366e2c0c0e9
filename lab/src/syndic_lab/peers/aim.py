"""AIM (McKenna, Mullins, Sheldon and Miklau 2022) as its authors configure it, over Syndic's inference.

One curator with all rows: candidates are scored with the true counts by the exponential mechanism, which parties that
do not pool their rows cannot do. 16 rounds for each column, a workload of pairs and triples. Noise is floating-point,
from a seed: sufficient to compare, not to publish.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.model.markov import MarkovField, Measurement, fit, plan_tree

Clique = tuple[str, ...]
Numbers = NDArray[np.float64]

ROUNDS_PER_COLUMN: Final = 16
MEASURED_SHARE: Final = 0.9
"""Share of a round's budget for its table; the rest chooses it."""

_BETWEEN: Final = 50
_LAST: Final = 1000


@final
@dataclass(frozen=True)
class Settings:
    """rho of zCDP, the most megabytes of the model, the largest sets of columns in the workload."""

    rho: float
    megabytes: float = 8.0
    ways: int = 3


def aim(codes: Mapping[str, NDArray[np.int64]], domain: Domain, settings: Settings, seed: int) -> MarkovField:
    """Measure columns, then round by round the table that the model has worst, until rho is spent."""
    draws, rho = np.random.default_rng(seed), settings.rho
    rounds = ROUNDS_PER_COLUMN * len(domain)
    weights = weights_of(domain, settings.ways)
    truth = {names: _count(codes, domain, names) for names in weights}
    sigma = math.sqrt(rounds / (2 * MEASURED_SHARE * rho))
    epsilon = math.sqrt(8 * (1 - MEASURED_SHARE) * rho / rounds)
    tables = [_measure(truth[(name,)], (name,), sigma, draws) for name in domain.names]
    spent = len(tables) / (2 * sigma**2)
    model = fit(domain, tables, target=0, iterations=_BETWEEN).field
    while spent < rho * (1 - 1e-9):
        if rho - spent < 2 * (1 / (2 * sigma**2) + epsilon**2 / 8):
            # what is left goes into a last round
            left = rho - spent
            sigma, epsilon = math.sqrt(1 / (2 * MEASURED_SHARE * left)), math.sqrt(8 * (1 - MEASURED_SHARE) * left)
        spent += 1 / (2 * sigma**2) + epsilon**2 / 8
        fits = _small(weights, tables, domain, settings.megabytes * min(1.0, spent / rho))
        expected = dict(zip(fits, (one.values for one in model.marginals(fits)), strict=True))
        chosen = _worst(weights, truth, expected, (sigma, epsilon), draws)
        tables.append(_measure(truth[chosen], chosen, sigma, draws))
        model = fit(domain, tables, start=model, target=0, iterations=_BETWEEN).field
        moved = float(np.abs(model.marginal(chosen).values - expected[chosen]).sum())
        if moved <= math.sqrt(2 / math.pi) * sigma * truth[chosen].size:
            sigma, epsilon = sigma / 2, epsilon * 2
    return fit(domain, tables, start=model, target=0, iterations=_LAST).field


def weights_of(domain: Domain, ways: int) -> dict[Clique, float]:
    """Return every candidate with its weight: the sum of the columns it shares with each set of the workload."""
    columns = range(len(domain))
    workload = [set(names) for size in range(2, ways + 1) for names in itertools.combinations(columns, size)]
    weights: dict[Clique, float] = {}
    for size in range(1, ways + 1):
        # by symmetry all candidates of a size weigh the same
        weight = float(sum(len(set(range(size)) & names) for names in workload))
        weights |= dict.fromkeys(itertools.combinations(domain.names, size), weight)
    return weights


def _worst(
    weights: Mapping[Clique, float],
    truth: Mapping[Clique, Numbers],
    expected: Mapping[Clique, Numbers],
    noise: tuple[float, float],
    draws: np.random.Generator,
) -> Clique:
    """Choose with the exponential mechanism by how far the model is off, less what noise would be, times the weight."""
    sigma, epsilon = noise
    bias = math.sqrt(2 / math.pi) * sigma
    scores = [
        weights[names] * (float(np.abs(truth[names] - table).sum()) - bias * table.size)
        for names, table in expected.items()
    ]
    exponents = epsilon / (2 * max(weights[names] for names in expected)) * np.array(scores)
    odds = np.exp(exponents - exponents.max())
    return list(expected)[int(draws.choice(len(odds), p=odds / odds.sum()))]


def _small(
    weights: Mapping[Clique, float], tables: Sequence[Measurement], domain: Domain, megabytes: float
) -> list[Clique]:
    """Return the candidates with which the model stays small; those already measured always do."""
    known = list(dict.fromkeys(one.names for one in tables))
    held = [set(names) for names in known]
    most = megabytes * 2**20 / 8
    return [
        names
        for names in weights
        if any(set(names) <= each for each in held) or plan_tree(domain, [*known, names]).cells <= most
    ]


def _measure(counts: Numbers, names: Clique, sigma: float, draws: np.random.Generator) -> Measurement:
    return Measurement(names, counts + draws.normal(0, sigma, counts.shape), sigma**2)


def _count(codes: Mapping[str, NDArray[np.int64]], domain: Domain, names: Clique) -> Numbers:
    part = domain.project(names)
    cells = np.ravel_multi_index([codes[name] for name in names], part.sizes)
    return np.bincount(cells, minlength=part.size).reshape(part.sizes).astype(np.float64)
