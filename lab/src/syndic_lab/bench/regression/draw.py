"""The figures of `syndic bench regression`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from syndic.report.figure import Bars, Curve, Figure, Line, Series
from syndic_lab.bench.regression import published as regression_published
from syndic_lab.bench.regression.published import EPSILONS, SIZES
from syndic_lab.bench.regression.synthetic import METHODS, PRINTED, Found
from syndic_lab.bench.regression.table import PRIVATE, PUBLIC, Losses

FOLDER: Final = Path("bench-results")
_DOTS: Final = 300
# the true coefficients are so long on average: what coefficients of zero are off by
_NOTHING: Final = regression_published.BGM_MEAN


def save(what: str, picture: Figure) -> str:
    """Write one figure into `bench-results`, and say so."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"regression-{what}.svg"
    path.write_text(picture.to_svg(), encoding="utf-8")
    return f"wrote {path}"


def distances(epsilon: float, found: Mapping[int, Mapping[str, Found]]) -> Iterator[tuple[str, Curve]]:
    """Yield mean distances over the number of people, and RMGM's chances beside the published ones, named."""
    last = {method: one.mean for method, one in found[max(found)].items()}
    said = ", ".join(f"{name} {value:.2g}" for name, value in sorted(last.items(), key=lambda item: item[1]))
    yield (
        f"distance-{epsilon:g}",
        Curve(
            title=f"Mean distance from the true coefficients, epsilon {epsilon:g}",
            description=f"At {max(found)} people: {said}. Coefficients of zero are off by {_NOTHING}.",
            width=900,
            lines=tuple(
                Line(method, tuple((float(n), found[n][method].mean) for n in found), dots=True)
                for method in METHODS
                # least squares without privacy are off by the ridge only, at every size
                if method != "ols"
            ),
            x_axis="people",
            y_axis="distance",
            x_log=True,
            y_log=True,
        ),
    )
    ours = tuple((float(n), found[n]["rmgm"].beyond(0.2)) for n in found)
    read = regression_published.RMGM[epsilon, 0.2]
    yield (
        f"chance-{epsilon:g}",
        Curve(
            title=f"RMGM as published: chance to be more than 0.2 off, epsilon {epsilon:g}",
            description="; ".join(f"{n:.0f} people: {share:.2f}" for n, share in ours),
            width=900,
            lines=(
                Line("ours", ours, dots=True),
                Line("published", tuple((float(n), share) for n, share in zip(SIZES, read, strict=True)), dots=True),
            ),
            x_axis="people",
            y_axis="share",
            x_log=True,
            y_least=0.0,
        ),
    )


def eigenvalues(name: str, found: Mapping[str, Found]) -> Curve:
    """Return distances over the Hessian's least absolute eigenvalue, draw by draw, from small to large."""
    lines = []
    for method in PRINTED:
        order = np.argsort(found[method].eigenvalues[:_DOTS])
        points = zip(found[method].eigenvalues[order], found[method].distances[order], strict=True)
        lines.append(Line(method, tuple((float(x), float(y)) for x, y in points), dots=True))
    least = min(line.points[0][0] for line in lines)
    return Curve(
        title=f"Distance over the least eigenvalue, {name}, epsilon 1",
        description=f"The least eigenvalue of {_DOTS} draws is {least:.2g}; DGM's distances grow as it shrinks.",
        width=900,
        lines=tuple(lines),
        x_axis="least absolute eigenvalue",
        y_axis="distance",
        x_log=True,
        y_log=True,
    )


def losses(name: str, found: Losses) -> Bars:
    """Return one data set's losses, a group of bars for each method."""
    public = [found.losses[method, 0.0].mean for method in PUBLIC]
    series = tuple(
        Series(f"epsilon {epsilon:g}", (*public, *(min(1.0, found.losses[method, epsilon].mean) for method in PRIVATE)))
        for epsilon in EPSILONS
    )
    gram = ", ".join(f"{found.losses['gram', epsilon].mean:.3g} at {epsilon:g}" for epsilon in EPSILONS)
    return Bars(
        title=f"Test loss on {name}",
        description=f"Gram matrix: {gram}. Predicting zero: {public[1]:.3g}, the mean: {public[2]:.3g}. Cut at 1.",
        width=900,
        labels=(*PUBLIC, *PRIVATE),
        series=series,
        lying=True,
    )
