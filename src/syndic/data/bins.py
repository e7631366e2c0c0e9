"""Bins of columns with bounds: their edges on a linear or logarithmic scale, and draws from them."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

MOST_BINS = 2**24
MOST_SCALED_BINS = 2**16
FINE_BINS = 64
"""Number of bins of a real column, or of one on a logarithmic scale, if the study does not set it."""

T = TypeVar("T", np.int64, np.float64)
Scale = Literal["linear", "log", "symlog"]
# "symlog" is linear up to this share of the larger bound, and logarithmic beyond
_LINEAR_SHARE = 1e-4


def _onto_scale(
    numbers: NDArray[Any] | tuple[float, float], bounds: tuple[float, float], scale: Scale
) -> NDArray[np.float64]:
    """Return numbers on a scale on which bins have equal width."""
    places = np.asarray(numbers, dtype=np.float64)
    if scale == "linear":
        return places
    return np.asarray(np.log(places) if scale == "log" else np.arcsinh(places / _linear_part(bounds)), np.float64)


def _off_scale(places: NDArray[np.float64], bounds: tuple[float, float], scale: Scale) -> NDArray[np.float64]:
    if scale == "linear":
        return places
    return np.asarray(np.exp(places) if scale == "log" else np.sinh(places) * _linear_part(bounds), np.float64)


def _linear_part(bounds: tuple[float, float]) -> float:
    return _LINEAR_SHARE * max(abs(bounds[0]), abs(bounds[1]))


def draw_between(
    low: NDArray[Any], high: NDArray[Any], bounds: tuple[float, float], scale: Scale, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Draw a number from each bin, uniform on the scale."""
    begin, end = (_onto_scale(one, bounds, scale) for one in (low, high))
    return _off_scale(begin + generator.random(len(begin)) * (end - begin), bounds, scale)


@lru_cache(maxsize=256)
def whole_edges(lower: int, count: int, bins: int, scale: Scale) -> NDArray[np.int64]:
    """Return the first whole number of every bin, then the one after the last."""
    # i * count // bins without overflow: bins and count are below 2^32 and 2^54
    places = np.arange(bins + 1, dtype=np.int64)
    edges = lower + places * (count // bins) + places * (count % bins) // bins
    if scale != "linear":
        bounds = (float(lower), float(lower + count))
        begin, end = _onto_scale(bounds, bounds, scale)
        near = np.rint(_off_scale(np.linspace(begin, end, bins + 1), bounds, scale)).astype(np.int64)
        edges = np.unique(np.clip(np.append(near, (lower, lower + count)), lower, lower + count))
    edges.flags.writeable = False
    return edges


@lru_cache(maxsize=256)
def given_edges(given: tuple[float, ...], kind: type[T]) -> NDArray[T]:
    """Return the declared edges."""
    edges = np.array(given, dtype=kind)
    edges.flags.writeable = False
    return edges


@lru_cache(maxsize=256)
def real_edges(lower: float, upper: float, bins: int, scale: Scale) -> NDArray[np.float64]:
    """Return the edges of bins of equal width on a scale."""
    bounds = (lower, upper)
    begin, end = _onto_scale(bounds, bounds, scale)
    edges = _off_scale(np.linspace(begin, end, bins + 1), bounds, scale)
    edges[0], edges[-1] = bounds
    edges.flags.writeable = False
    return edges


def apart(numbers: Sequence[float], digits: int) -> list[str]:
    """Return increasing numbers to so many digits, or to as many more as make all texts different."""
    for more in range(digits, 17):
        texts = [f"{one:.{more}g}" for one in numbers]
        if len(set(texts)) == len(texts):
            return texts
    return [f"{one:.17g}" for one in numbers]
