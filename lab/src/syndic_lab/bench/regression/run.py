"""Multi-party linear regression (Wu et al., UAI 2022): Figures 2 and 3, Table 1, and what the secure Gram matrix gives.

A method's plain name is the authors' own variant, (epsilon, 1e-5) for each party by itself; "sound" and "gram" are
(epsilon, 1e-5) for a person over all parties. Rows of the Gram matrix have RMGM's loss of the same run as baseline.
"""

import sys
from collections.abc import Iterator, Mapping
from math import sqrt

from msgspec.structs import replace

from syndic.errors import InputError
from syndic.report.figure import Curve, Figure
from syndic_lab.bench.regression import draw as regression_draw
from syndic_lab.bench.regression import published as regression_published
from syndic_lab.bench.regression import secure as regression_secure
from syndic_lab.bench.regression import speed as regression_speed
from syndic_lab.bench.regression.data import LOADERS, Data
from syndic_lab.bench.regression.published import DISTANCES, EPSILONS, SIZES
from syndic_lab.bench.regression.synthetic import PRINTED, Found, Synthetic
from syndic_lab.bench.regression.table import PRIVATE, Losses, eigenvalues, measure
from syndic_lab.bench.row import Row

# splits for each data set, quick and in full
_SPLITS = {
    "insurance": (300, 2000),
    "bike": (300, 2000),
    "superconductor": (25, 200),
    "gpu": (50, 300),
    "music": (25, 200),
}
# draws for Figure 2, those of sound methods, and those with the signs themselves
_DRAWS, _FULL_DRAWS = (2500, 60, 60), (5000, 300, 500)
_SCATTERED = (1000, 10_000)


def rows(quick: bool) -> Iterator[Row]:
    """Yield speed, distances, probabilities and losses; figures go to `bench-results`."""
    yield from regression_speed.rows(quick)
    yield from synthetic(quick)
    yield from _scattered("synthetic", Synthetic(1_000_000, scattered(quick), 1).measure(1.0))
    for load in LOADERS:
        try:
            data = load()
        except InputError as error:
            _tell(f"skipped: {error}")
            continue
        losses = measure(data, splits(data, quick))
        yield from of_table(data, losses)
        _save(f"losses-{data.name}", regression_draw.losses(data.name, losses))
        if data.name == "insurance":
            yield from _scattered(data.name, eigenvalues(data, scattered(quick), 1.0))
    yield from regression_secure.rows(quick)


def splits(data: Data, quick: bool) -> int:
    """Return how often a data set of Table 1 is split."""
    return _SPLITS[data.name][0 if quick else 1]


def scattered(quick: bool) -> int:
    """Return how many draws Figure 3 has."""
    return _SCATTERED[0 if quick else 1]


def synthetic(quick: bool) -> Iterator[Row]:
    """Yield Figure 2, and draw it."""
    for part in figure_2(quick):
        if isinstance(part, Row):
            yield part
        else:
            _save(*part)


def figure_2(quick: bool) -> Iterator[Row | tuple[str, Curve]]:
    """Yield Figure 2, named curves between rows; signs are mixed for up to 30,000 people, in full for up to 100,000."""
    draws, sound, signs = _DRAWS if quick else _FULL_DRAWS
    sizes = SIZES[:3] if quick else SIZES
    for epsilon in EPSILONS:
        found = {people: Synthetic(people, draws, sound).measure(epsilon) for people in sizes}
        for people, methods in found.items():
            for method, one in methods.items():
                yield from of_draws(people, epsilon, method, one)
            if people < (100_000 if quick else 300_000):
                checked = Synthetic(people, draws, sound).signs(epsilon, signs)
                yield from of_signs(people, epsilon, checked, methods["rmgm"])
        yield from regression_draw.distances(epsilon, found)


def of_draws(people: int, epsilon: float, method: str, found: Found) -> Iterator[Row]:
    """Yield mean distance and, for printed methods, the chances that Figure 2 shows."""
    name = f"synthetic, n {people}, epsilon {epsilon:g}, {method}"
    mean = _row(name, "distance", found.mean, "length", published=_published_mean(people, epsilon, method))
    yield replace(mean, error=found.error, runs=len(found.distances))
    yield _row(name, "distance, standard error", found.error, "length")
    if method not in PRINTED:
        return
    for distance in DISTANCES:
        published = _published_share(people, epsilon, method, distance)
        share = found.beyond(distance)
        error = sqrt(share * (1 - share) / len(found.distances))
        row = _row(name, f"P(distance > {distance:g})", share, "share", published=published)
        yield replace(row, error=error, runs=len(found.distances))


def of_signs(people: int, epsilon: float, found: Found, limit: Found) -> Iterator[Row]:
    """Yield distances of RMGM with the signs themselves, fewer draws, beside those of the limit of many people."""
    name = f"synthetic, n {people}, epsilon {epsilon:g}, rmgm with signs"
    yield _row(name, "distance", found.mean, "length", baseline=limit.mean)
    yield _row(name, "distance, standard error", found.error, "length", baseline=limit.error)
    for distance in DISTANCES:
        shares = found.beyond(distance), limit.beyond(distance)
        yield _row(name, f"P(distance > {distance:g})", shares[0], "share", baseline=shares[1])


def singular(name: str, methods: Mapping[str, Found]) -> Iterator[Row]:
    """Yield Figure 3 at epsilon 1: how often DGM's Hessian is nearly singular, and what that does."""
    for method in PRINTED:
        found = methods[method]
        small = found.eigenvalues < 0.01
        title = f"figure 3, {name}, epsilon 1, {method}"
        yield _row(title, "eigenvalue below 0.01", float(small.mean()), "share")
        if small.any():
            share = float((found.distances[small] > 10).mean())
            yield _row(title, "P(distance > 10) where it is", share, "share")


def _scattered(name: str, methods: Mapping[str, Found]) -> Iterator[Row]:
    yield from singular(name, methods)
    _save(f"eigenvalues-{name}", regression_draw.eigenvalues(name, methods))


def _save(what: str, picture: Figure) -> None:
    _tell(regression_draw.save(what, picture))


def of_table(data: Data, found: Losses) -> Iterator[Row]:
    """Yield one data set's part of Table 1, and how the Gram matrix compares."""
    zero, ols = found.losses["predict zero", 0.0].mean, found.losses["ols", 0.0].mean
    for method in ("ols", "predict zero", "predict mean"):
        published = regression_published.OLS[data.name] if method == "ols" else None
        loss = found.losses[method, 0.0]
        row = _row(f"{data.name}, {method}", "loss", loss.mean, published=published)
        yield replace(row, error=loss.error, runs=loss.runs)
    for epsilon in EPSILONS:
        for method in PRIVATE:
            name, loss = f"{data.name}, {method}, epsilon {epsilon:g}", found.losses[method, epsilon]
            published = regression_published.loss(data.name, method, epsilon) if method in PRINTED else None
            baseline = found.losses["rmgm", epsilon].mean if method == "gram" else zero
            row = _row(name, "loss", loss.mean, baseline=baseline, published=published)
            yield replace(row, error=loss.error, runs=loss.runs)
            yield _row(name, "loss, standard error", loss.error)
        yield _row(f"{data.name}, rmgm, epsilon {epsilon:g}", "best k on the test rows", found.mixes[epsilon], "mixes")
        gram, printed = found.losses["gram", epsilon].mean, regression_published.loss(data.name, "rmgm", epsilon)
        yield _row(f"{data.name}, gram, epsilon {epsilon:g}", "loss over ols", gram / ols, "ratio")
        yield _row(f"{data.name}, gram, epsilon {epsilon:g}", "loss over rmgm as published", gram / printed, "ratio")


def _published_mean(people: int, epsilon: float, method: str) -> float | None:
    if method == "bgm":
        return regression_published.BGM_MEAN
    return regression_published.MEANS.get((epsilon, people)) if method == "rmgm" else None


def _published_share(people: int, epsilon: float, method: str, distance: float) -> float:
    place = SIZES.index(people)
    if method == "dgm":
        return regression_published.DGM
    if method == "bgm":
        return regression_published.BGM[distance][place]
    return regression_published.RMGM[epsilon, distance][place]


def _row(
    name: str,
    metric: str,
    value: float,
    unit: str = "loss",
    *,
    baseline: float | None = None,
    published: float | None = None,
) -> Row:
    return Row(
        bench="regression", row=name, metric=metric, value=value, unit=unit, baseline=baseline, published=published
    )


def _tell(text: str) -> None:
    sys.stderr.write(text + "\n")
