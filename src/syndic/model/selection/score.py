"""The distance of a model from the data, and the tables inside its cliques that lower the expected error most.

Both are estimated from noisy tables only.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.model.markov.field import MarkovField
from syndic.model.markov.measurement import Measurement, in_groups
from syndic.model.selection.counts import Countable, Names, Room, Sent

Floats = NDArray[np.float64]
# mean absolute value of a standard normal variable
MEAN_ABSOLUTE = math.sqrt(2 / math.pi)
# cells that the model considers empty may still be wrong: each counts as this share of a uniform distribution
EVEN_SHARE = 0.1
# standard errors by which a pair must differ from the model to be more than noise
STANDS_OUT = 3.0
# prices of what is sent, as shares of what it brought on average when it had none
PRICES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)


def noisy_distance(noisy: Floats, expected: Floats, variance: float, errors: float = 0.0) -> float:
    """Estimate the l1 distance between the table behind `noisy` and `expected`, in rows; negative if noise explains it.

    The squared deviation of a cell is assumed to be c times its expected count. c is estimated by least squares from
    squared deviations minus the variance of the noise, so that large, informative cells count more than small ones.
    `errors`: how many standard errors of c, as noise alone would have them, are subtracted.
    """
    weights = np.maximum(expected, 0.0)
    weights = weights + EVEN_SHARE * max(float(weights.sum()), 1.0) / weights.size
    excess = np.square(noisy - expected) - variance
    squares = float(np.square(weights).sum())
    factor = float((weights * excess).sum()) / squares - errors * variance * math.sqrt(2 / squares)
    return math.copysign(MEAN_ABSOLUTE * math.sqrt(abs(factor)) * float(np.sqrt(weights).sum()), factor)


def association(noisy: Floats, expected: Floats, variance: float, errors: float = 0.0) -> float:
    """Estimate the l1 distance of a pair's table from `expected` beyond that of its margins, in rows; or negative.

    Row and column means are taken out of the difference: a model has the margins already, so they would add noise only.
    """
    apart = noisy - expected
    apart = apart - apart.mean(axis=0) - apart.mean(axis=1, keepdims=True) + apart.mean()
    left = math.prod(size - 1 for size in apart.shape) / apart.size
    return noisy_distance(expected + apart, expected, left * variance, errors)


def outside_scores(field: MarkovField, pairs: Mapping[Names, Measurement], errors: float = 0.0) -> dict[Names, float]:
    """Return the model's distance from each measured pair of columns that no clique contains, in rows.

    `errors`: how many standard errors of it are subtracted.
    """
    outside = [one for names, one in pairs.items() if field.tree.home(names) is None]
    return dict(zip((one.names for one in outside), _associations(field, outside, errors), strict=True))


def _associations(field: MarkovField, tables: Sequence[Measurement], errors: float = 0.0) -> list[float]:
    """Return the distance of each noisy pair from the model, in rows."""
    expected = field.marginals([one.names for one in tables])
    return [
        association(one.values, in_groups(table.values, one.groups), one.variance, errors)
        for one, table in zip(tables, expected, strict=True)
    ]


def strengths(field: MarkovField, pairs: Iterable[Names]) -> dict[Names, float]:
    """Return the l1 distance of each pair's table in the model from the product of its margins, in rows."""
    found = {}
    for names, table in zip(pairs := list(pairs), field.marginals(pairs), strict=True):
        product = np.outer(table.values.sum(axis=1), table.values.sum(axis=0)) / max(field.total, 1.0)
        found[names] = float(np.abs(table.values - product).sum())
    return found


def pairs_of(names: Sequence[str]) -> list[Names]:
    """Return all pairs, in order."""
    return list(combinations(names, 2))


# Assumed dependence of three columns beyond their pairs, as a share of the geometric mean of the pairs' strengths.
BEYOND_PAIRS = 0.25


@final
@dataclass(frozen=True, eq=False)
class Parts:
    """Pairs and triples of columns that count for the error: the loss without them, and their cells in the model."""

    names: list[Names]
    strength: Floats
    cells: Floats
    expected: list[Floats]

    def effective(self, deviation: float) -> Floats:
        """Return the effective number of cells of each part for noise of this size; an empty cell hardly counts."""
        return np.array([np.minimum(table / deviation, 1.0).sum() for table in self.expected])


def parts_of(field: MarkovField, measured: Mapping[Names, Measurement]) -> Parts:
    """Return all pairs and triples of columns inside cliques."""
    pairs, triples = (_subsets(field, size) for size in (2, 3))
    strength = strengths(field, pairs)
    inside = [measured[pair] for pair in pairs if pair in measured]
    # a fit stops when all tables together are as far off as noise: the model may lack an association that stands out
    for one, apart in zip(inside, _associations(field, inside, STANDS_OUT), strict=True):
        strength[one.names] += max(0.0, apart)
    beyond = [BEYOND_PAIRS * _geometric_mean([strength[pair] for pair in combinations(one, 2)]) for one in triples]
    names = [*pairs, *triples]
    expected = [table.values.reshape(-1) for table in field.marginals(names)]
    return Parts(
        names, np.array([*strength.values(), *beyond]), np.array([float(table.size) for table in expected]), expected
    )


def choose_tables(
    field: MarkovField,
    precision: Mapping[Names, float],
    variances: Mapping[int, float],
    counts: Countable,
    measured: Mapping[Names, Measurement] | None = None,
    *,
    usefulness: float,
    most_columns: int,
    most_cells: int,
) -> list[Names]:
    """Return the tables to measure next. `variances` maps each allowed number of tables to the variance of their noise.

    The error of a part is modelled as s e / (s + e): s is its strength, the loss if it is not measured at all, and e
    the mean absolute noise of its effective cells, from all tables that contain it. Tables are added greedily; the
    number of tables with the smallest total error is used. `counts` says which tables can be counted, how well, and
    if there is room beside those chosen before; `measured` are the noisy pairs. All follows from noisy tables.

    Where a table finds no room, what tables send is given prices too, and the choice with the smallest error is used.
    """
    parts = parts_of(field, measured or {})
    domains = {names: field.domain.project(names) for names in _subsets(field, *range(2, most_columns + 1))}
    noisy = {names: counts.noisier(domain) for names, domain in domains.items()}
    candidates = [names for names, times in noisy.items() if times is not None]
    if not candidates:
        return []
    cells = np.array([float(domains[names].size) for names in candidates])
    times = np.array([noisy[names] for names in candidates], dtype=np.float64)
    inside = _inside(parts, candidates)
    before = np.array([precision.get(names, 0.0) for names in parts.names])
    sends = [counts.sends(domains[names]) for names in candidates]
    best = _Choice(math.inf, ())
    for number, variance in variances.items():
        limit = field.total / (usefulness * MEAN_ABSOLUTE * math.sqrt(variance))
        fitting = np.flatnonzero(cells <= np.minimum(most_cells, limit / np.sqrt(times)))
        if len(fitting):
            lowered = _Lowered(parts, before, inside[fitting], variance * (times * cells)[fitting], variance)
            some, sent = [candidates[row] for row in fitting], _sent_by([sends[row] for row in fitting])
            found = _at_any_price(lowered, some, sent, number, partial(counts.room, number, field.domain))
            best = min(best, found, key=lambda one: one.error)
    return list(best.tables)


def _inside(parts: Parts, candidates: Sequence[Names]) -> NDArray[np.int64]:
    """Return a line for each candidate: the parts inside it, then one that is none."""
    place = {names: row for row, names in enumerate(parts.names)}
    inside = [[place[part] for size in (2, 3) for part in combinations(one, size)] for one in candidates]
    width = max(len(rows) for rows in inside)
    return np.array([[*one, *[len(parts.names)] * (width - len(one))] for one in inside])


@final
@dataclass(frozen=True)
class _Choice:
    """Chosen tables, the modelled error with them, how much they send, and whether others found no room."""

    error: float
    tables: tuple[Names, ...]
    sent: int = 0
    refused: bool = False


def _at_any_price(
    lowered: "_Lowered", candidates: Sequence[Names], sends: "_Sends", number: int, room: Callable[[], Room]
) -> _Choice:
    """Return the best choice of so many candidates: first, what is sent has no price."""
    free = _greedy(lowered, candidates, sends, number, room(), 0.0)
    if not (free.refused and free.sent):
        return free
    worth = (lowered.total(lowered.precision) - free.error) / free.sent
    priced = [_greedy(lowered, candidates, sends, number, room(), price * worth) for price in PRICES]
    return min((free, *priced), key=lambda one: one.error)


def _greedy(
    lowered: "_Lowered", candidates: Sequence[Names], sends: "_Sends", number: int, room: Room, price: float
) -> _Choice:
    """Return one candidate after another that lowers the error most, less the price of what is sent for it."""
    (own, width), rows = sends, lowered.rows
    width, precision = width.copy(), lowered.precision.copy()
    gain = lowered.gains(precision, np.arange(len(rows)))
    chosen, left, sent, refused = list[int](), np.ones(len(rows), dtype=np.bool_), 0, False
    while len(chosen) < number and left.any():
        worth = np.where(left, gain - price * width[own].sum(axis=1), -np.inf)
        best = int(np.argmax(worth))
        if price and worth[best] <= 0:
            break
        left[best] = False
        if not room(candidates[best]):
            refused = True
            continue
        chosen.append(best)
        sent += int(width[own[best]].sum())
        width[own[best]] = 0
        precision[rows[best]] += lowered.added[best]
        touched = lowered.touched(best)
        gain[touched] = lowered.gains(precision, touched)
    return _Choice(lowered.total(precision), tuple(candidates[row] for row in chosen), sent, refused)


_Sends = tuple[NDArray[np.int64], NDArray[np.int64]]


def _sent_by(sends: Sequence[Sent]) -> _Sends:
    """Return the places of what each candidate sends, a line each, and how much every place has; the last has 0."""
    much = {one: size for sent in sends for one, size in sent.items()}
    place = {one: row for row, one in enumerate(much)}
    own = np.full((len(sends), max(map(len, sends))), len(much))
    for row, sent in enumerate(sends):
        own[row, : len(sent)] = [place[one] for one in sent]
    return own, np.array([*much.values(), 0], dtype=np.int64)


@final
class _Lowered:
    """How much each candidate lowers the modelled error, given the precision with which parts are known.

    `rows` has the parts of each candidate; `spread` is its variance times its cells. One more part, of strength zero,
    pads the lines.
    """

    def __init__(
        self, parts: Parts, precision: Floats, rows: NDArray[np.int64], spread: Floats, variance: float
    ) -> None:
        none = len(parts.names)
        self.rows = np.ascontiguousarray(rows[:, : int((rows < none).sum(axis=1).max())])
        self.precision = np.append(precision, 0.0)
        self._strength = np.append(parts.strength, 0.0)
        self._noise = np.append(MEAN_ABSOLUTE * parts.effective(math.sqrt(variance)), 1.0)
        # a cell of a part is the sum of (cells / part cells) cells of the table: its variance is that many times larger
        self.added = np.append(parts.cells, 1.0)[self.rows] / spread[:, None]
        # for each part the candidates that contain it
        self._order = np.argsort(self.rows, axis=None, kind="stable")
        self._ends = np.searchsorted(self.rows.ravel()[self._order], np.arange(none + 1))

    def total(self, precision: Floats) -> float:
        """Return the modelled error of all parts."""
        return float(_error(self._strength, self._noise, precision).sum())

    def gains(self, precision: Floats, which: NDArray[np.int64]) -> Floats:
        """Return by how much some candidates lower it."""
        rows = self.rows[which]
        now, own, loud = precision[rows], self._strength[rows], self._noise[rows]
        return np.asarray((_error(own, loud, now) - _error(own, loud, now + self.added[which])).sum(axis=1))

    def touched(self, row: int) -> NDArray[np.int64]:
        """Return the candidates that share a part with one: only their gains change when it is chosen."""
        own = self.rows[row][self.rows[row] < len(self._ends) - 1]
        changed = np.concatenate([self._order[self._ends[part] : self._ends[part + 1]] for part in own])
        return np.unique(changed // self.rows.shape[1])


def _error(strength: Floats, noise: Floats, precision: Floats) -> Floats:
    deviation = noise / np.sqrt(np.maximum(precision, 1e-12))
    return strength * deviation / np.maximum(strength + deviation, 1e-9)


def _subsets(field: MarkovField, *sizes: int) -> list[Names]:
    """Return the sets of these numbers of columns inside cliques, each once."""
    found: Iterable[Names] = (
        names for clique in field.tree.cliques for size in sizes for names in combinations(clique, size)
    )
    return list(dict.fromkeys(found))


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(math.log(max(value, 1.0)) for value in values) / len(values))
