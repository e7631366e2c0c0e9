"""AIM (McKenna, Mullins, Sheldon and Miklau 2022) as its authors configure it, over Syndic's inference; and AIM-GDP.

One curator with all rows: candidates are scored with the true counts, which parties that do not pool their rows cannot
do. AIM chooses by the exponential mechanism and spends zCDP. AIM-GDP of google/dpsynth scores the 16 most promising
candidates with Gaussian noise, so that all of it is one Gaussian mechanism and is accounted exactly, as Syndic's noise
is. 16 rounds for each column, a workload of pairs and triples. Noise is floating-point, from a seed: sufficient to
compare, not to publish.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations, islice
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.model.markov import MarkovField, Measurement, fit, plan_tree

Clique = tuple[str, ...]
Codes = Mapping[str, NDArray[np.int64]]
Numbers = NDArray[np.float64]

ROUNDS_PER_COLUMN: Final = 16
MEASURED_SHARE: Final = 0.9
"""Share of a round's budget for its table; the rest chooses it."""
COLUMNS_SHARE: Final = 0.1
"""AIM-GDP: share of the budget for the tables of one column."""
SCORED: Final = 16
"""AIM-GDP: candidates that are scored again in a round."""

_BETWEEN: Final = 50
_LAST: Final = 1000


@final
@dataclass(frozen=True)
class Settings:
    """rho, the most megabytes of the model, the largest sets of columns in the workload.

    `gaussian`: AIM-GDP, and rho is half of mu squared. Else AIM, and rho is that of zCDP.
    """

    rho: float
    gaussian: bool = False
    megabytes: float = 8.0
    ways: int = 3


def aim(codes: Codes, domain: Domain, settings: Settings, seed: int) -> MarkovField:
    """Measure columns, then round by round the table that the model has worst, until rho is spent."""
    draws, rho = np.random.default_rng(seed), settings.rho
    weights = weights_of(domain, settings.ways)
    truth = {names: count(codes, domain, names) for names in weights}
    each = rho / (ROUNDS_PER_COLUMN * len(domain))
    spent = COLUMNS_SHARE * rho if settings.gaussian else MEASURED_SHARE * each * len(domain)
    tables = [measure(truth[(name,)], (name,), spent / len(domain), draws) for name in domain.names]
    model = fit(domain, tables, target=0, iterations=_BETWEEN).field
    errors: dict[Clique, float] = {}
    if settings.gaussian:
        errors = noisy_errors(truth, model, list(truth), each / 2, draws)
        spent += each / 2
    while spent < rho * (1 - 1e-9):
        if rho - spent < 2 * each:
            # what is left goes into a last round
            each = rho - spent
        spent += each
        measured, chooses = MEASURED_SHARE * each, (1 - MEASURED_SHARE) * each
        bias = math.sqrt(2 / math.pi) * sigma_of(measured)
        known = tuple(dict.fromkeys(one.names for one in tables))
        small = partial(_is_small, domain, known, settings.megabytes * min(1.0, spent / rho) * 2**20 / 8)
        if settings.gaussian:
            promising = _ranked(_scores(weights, truth, errors, bias))
            now = noisy_errors(truth, model, list(islice(filter(small, promising), SCORED)), chooses, draws)
            errors |= now
            chosen = _ranked(_scores(weights, truth, now, bias))[0]
        else:
            now = errors_of(truth, model, list(filter(small, weights)))
            sensitivity = max(weights[names] for names in now)
            chosen = _exponential(_scores(weights, truth, now, bias), math.sqrt(8 * chooses), sensitivity, draws)
        before = model.marginal(chosen).values
        tables.append(measure(truth[chosen], chosen, measured, draws))
        model = fit(domain, tables, start=model, target=0, iterations=_BETWEEN).field
        if np.abs(model.marginal(chosen).values - before).sum() <= bias * truth[chosen].size:
            # nothing new at this noise: half of it, for four times the budget
            each *= 4
    return fit(domain, tables, start=model, target=0, iterations=_LAST).field


def weights_of(domain: Domain, ways: int) -> dict[Clique, float]:
    """Return every candidate with its weight: the sum of the columns it shares with each set of the workload."""
    columns = range(len(domain))
    workload = [set(names) for size in range(2, ways + 1) for names in combinations(columns, size)]
    weights: dict[Clique, float] = {}
    for size in range(1, ways + 1):
        # by symmetry all candidates of a size weigh the same
        weight = float(sum(len(set(range(size)) & names) for names in workload))
        weights |= dict.fromkeys(combinations(domain.names, size), weight)
    return weights


def errors_of(truth: Mapping[Clique, Numbers], model: MarkovField, sets: Sequence[Clique]) -> dict[Clique, float]:
    """Return how far the model's table is from the true one; a person moves each by at most one."""
    expected = model.marginals(sets)
    return {names: float(np.abs(truth[names] - one.values).sum()) for names, one in zip(sets, expected, strict=True)}


def noisy_errors(
    truth: Mapping[Clique, Numbers], model: MarkovField, sets: Sequence[Clique], rho: float, draws: np.random.Generator
) -> dict[Clique, float]:
    """Return the same with Gaussian noise: all of them together cost rho."""
    sigma = sigma_of(rho / len(sets))
    return {names: off + draws.normal(0, sigma) for names, off in errors_of(truth, model, sets).items()}


def sigma_of(rho: float) -> float:
    """Return the standard deviation of Gaussian noise that costs rho, half of mu squared, at sensitivity one."""
    return math.sqrt(1 / (2 * rho))


def measure(counts: Numbers, names: Clique, rho: float, draws: np.random.Generator) -> Measurement:
    """Return a table with noise that costs rho."""
    sigma = sigma_of(rho)
    return Measurement(names, counts + draws.normal(0, sigma, counts.shape), sigma**2)


def count(codes: Codes, domain: Domain, names: Clique) -> Numbers:
    """Return the true table of some columns."""
    part = domain.project(names)
    cells = part.index([codes[name] for name in names])
    return np.bincount(cells, minlength=part.size).reshape(part.sizes).astype(np.float64)


def _scores(
    weights: Mapping[Clique, float], truth: Mapping[Clique, Numbers], errors: Mapping[Clique, float], bias: float
) -> dict[Clique, float]:
    """Return how far the model is off, less what noise would be, times the weight."""
    return {names: weights[names] * (off - bias * truth[names].size) for names, off in errors.items()}


def _ranked(scores: Mapping[Clique, float]) -> list[Clique]:
    return sorted(scores, key=lambda names: scores[names], reverse=True)


def _exponential(
    scores: Mapping[Clique, float], epsilon: float, sensitivity: float, draws: np.random.Generator
) -> Clique:
    """Choose with the exponential mechanism."""
    exponents = epsilon / (2 * sensitivity) * np.array(list(scores.values()))
    odds = np.exp(exponents - exponents.max())
    return list(scores)[int(draws.choice(len(odds), p=odds / odds.sum()))]


def _is_small(domain: Domain, known: tuple[Clique, ...], cells: float, names: Clique) -> bool:
    """Return whether a model with this table, too, has few cells; one that is measured already always fits."""
    return any(set(names) <= set(each) for each in known) or _cells(domain, known, names) <= cells


@lru_cache(maxsize=4096)
def _cells(domain: Domain, known: tuple[Clique, ...], names: Clique) -> int:
    return plan_tree(domain, [*known, names]).cells
