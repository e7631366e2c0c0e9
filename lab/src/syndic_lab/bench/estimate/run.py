"""MSE x M x N x I of private estimates against N, M and epsilon, beside printed and corrected formulas.

1 is the Cramer-Rao bound: what all rows together would give without noise. In a row, the baseline is the corrected
formula and the published value the printed one. Geometric law, chance 0.3, values 0 to 40.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy import stats

from syndic.data import Instead, Integer, Schema
from syndic.methods.estimate.plan import FINE, Layout, layout_of
from syndic.model import Geometric
from syndic.model.families.estimate import Setting, best_blocks, blocks_error
from syndic.noise import DiscreteLaplace, LaplaceShare
from syndic.random import SystemRandomness
from syndic.report.figure import Curve, Line
from syndic_lab.bench.estimate.accuracy import (
    blocks_error_printed,
    masked_error,
    statistics_error,
    statistics_error_printed,
)
from syndic_lab.bench.estimate.runs import Runs, chances_of, error_of_squares, squared_error
from syndic_lab.bench.row import Row

FOLDER = Path("bench-results")
_CHANCE = 0.3
_UPPER = 40
_LEAST, _MOST = 0.05, 0.95
_SCHEMES = ("dssa", "dsaa", "masked")
_BLOCK_DRAWS = 1_000_000
# which number moves, its symbol, its points
SWEEPS: Mapping[str, tuple[str, tuple[float, ...]]] = {
    "people": ("N", (100, 400, 1600, 6400)),
    "parties": ("M", (1, 4, 16, 64)),
    "epsilon": ("epsilon", (0.03, 0.1, 0.3, 1.0, 3.0)),
}


def rows(quick: bool) -> Iterator[Row]:
    """Yield, for each scheme and point, the measured ratio to the bound beside the corrected and printed formula."""
    for word in SWEEPS:
        for part in sweep(word, quick):
            if isinstance(part, Row):
                yield part
                continue
            FOLDER.mkdir(exist_ok=True)
            (FOLDER / f"estimate-{word}.svg").write_text(part.to_svg(), encoding="utf-8")


def sweep(word: str, quick: bool) -> Iterator[Row | Curve]:
    """Yield the rows of one moving number, then their figure."""
    symbol, points = SWEEPS[word]
    repeats = 4000 if quick else 40_000
    information = 1 / (_CHANCE**2 * (1 - _CHANCE))
    middle = Setting(parties=10, people=1600, epsilon=0.3, information=information)
    settings = [_moved(middle, word, point) for point in points]
    measured = {scheme: [_ratio(scheme, at, repeats) for at in settings] for scheme in _SCHEMES}
    for scheme in _SCHEMES:
        for point, at, value in zip(points, settings, measured[scheme], strict=True):
            corrected, printed = formulas(scheme, at)
            yield Row(
                bench="estimate",
                row=f"{scheme}, {symbol} = {point:g}",
                metric="MSE x M x N x I",
                value=value[0],
                unit="",
                baseline=corrected,
                published=printed,
                error=value[1],
                runs=value[2],
            )
    means = {scheme: [value for value, _, _ in found] for scheme, found in measured.items()}
    yield figure(symbol, points, settings, means)


def formulas(scheme: str, at: Setting) -> tuple[float, float | None]:
    """Return corrected and printed error over the Cramer-Rao bound; the masked sum was not printed.

    The corrected formula of DSaA has its bias term for a bias as wide as the set, which is an upper bound.
    """
    slope, diameter = _CHANCE**2, float(_UPPER)
    if scheme == "masked":
        return masked_error(at, slope=slope, diameter=diameter) / at.bound, None
    if scheme == "dssa":
        corrected = statistics_error(at, slope=slope, diameter=diameter)
        return corrected / at.bound, statistics_error_printed(at, diameter=diameter) / at.bound
    blocks, span = _blocks(at), _MOST - _LEAST
    corrected = blocks_error(at, blocks=blocks, diameter=span, bias=span**2)
    return corrected / at.bound, blocks_error_printed(at, blocks=blocks, diameter=span) / at.bound


def figure(
    symbol: str, points: Sequence[float], settings: Sequence[Setting], measured: dict[str, list[float]]
) -> Curve:
    """Return measured ratios and formulas as curves."""
    lines = []
    for scheme in _SCHEMES:
        lines.append(Line(scheme, tuple(zip(points, measured[scheme], strict=True))))
        corrected, printed = zip(*(formulas(scheme, at) for at in settings), strict=True)
        lines.append(Line(f"{scheme}, formula", tuple(zip(points, corrected, strict=True))))
        if printed[0] is not None:
            lines.append(Line(f"{scheme}, printed", tuple(zip(points, printed, strict=True))))
    return Curve(
        title=f"How far from efficient, against {symbol}",
        description="Mean squared error over the Cramer-Rao bound; 1 is efficient.",
        lines=tuple(lines),
        x_axis=symbol,
        y_axis="MSE x M x N x I",
        x_log=True,
        y_log=True,
        width=560,
    )


def _moved(setting: Setting, word: str, point: float) -> Setting:
    if word == "epsilon":
        return dataclasses.replace(setting, epsilon=point)
    if word == "people":
        return dataclasses.replace(setting, people=int(point))
    return dataclasses.replace(setting, parties=int(point))


def _layout() -> Layout:
    column = Integer(name="failures", lower=0, upper=_UPPER, missing=Instead(value=0))
    return layout_of(Schema(columns=(column,)), "failures", Geometric(), 12, (_LEAST,), (_MOST,))


def _blocks(at: Setting) -> int:
    """Return the default number of blocks, made a divisor of N."""
    best = best_blocks(at, diameter=1.0)
    return max(each for each in range(1, best + 1) if at.people % each == 0)


def _ratio(scheme: str, at: Setting, repeats: int) -> tuple[float, float, int]:
    """Return the mean squared error over the bound, its standard error and the number of runs."""
    layout, epsilon = _layout(), Fraction(str(at.epsilon))
    blocks = _blocks(at)
    if scheme == "dsaa":
        repeats = max(100, min(repeats, _BLOCK_DRAWS // (at.parties * blocks)))
    runs = Runs(
        layout=layout,
        chances=chances_of(layout.schema.columns[0], stats.geom(_CHANCE, loc=-1)),
        parties=at.parties,
        people=at.people,
        repeats=repeats,
        draws=np.random.default_rng(1),
        randomness=SystemRandomness(),
    )
    if scheme == "dssa":
        found = runs.by_statistics(DiscreteLaplace(sensitivity=layout.l1, epsilon=epsilon))
    elif scheme == "dsaa":
        found = runs.by_blocks(DiscreteLaplace(sensitivity=FINE, epsilon=epsilon), blocks)
    else:
        found = runs.masked(LaplaceShare(sensitivity=layout.l1, epsilon=epsilon, parties=at.parties, dimension=1))
    mean, error = (of(found, np.array([_CHANCE])) for of in (squared_error, error_of_squares))
    return float(mean[0]) / at.bound, float(error[0]) / at.bound, repeats
