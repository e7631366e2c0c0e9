"""MST and AIM over mbi's inference. Runs as a script in an interpreter that has mbi; imports nothing of Syndic.

The package has inference only. The two methods are written here after their papers: MST (McKenna, Miklau and Sheldon
2021) and AIM (McKenna, Mullins, Sheldon and Miklau 2022, workload of all pairs). AIM's candidates are scored with
numpy, because mbi compiles a program for every set of columns that it is asked for.
"""

import itertools
import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Clique = tuple[int, ...]
Numbers = NDArray[np.float64]


def main(folder: Path) -> dict[str, Any]:
    """Read `rows.npz` and `settings.json`, leave `made.npy`; return CPU seconds and the cliques that were measured."""
    import jax  # noqa: PLC0415 - only in that interpreter

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)
    settings = json.loads((folder / "settings.json").read_text())
    with np.load(folder / "rows.npz") as rows:
        codes, sizes = rows["codes"], rows["sizes"]
    start = time.process_time()
    made, cliques = {"MST": mst, "AIM": aim}[settings["method"]](codes, sizes, settings)
    seconds = time.process_time() - start
    np.save(folder / "made.npy", made)
    return {"seconds": seconds, "cliques": cliques}


def mst(codes: Any, sizes: Any, settings: Any) -> tuple[Any, list[Clique]]:
    """Measure columns, choose a tree of pairs, measure the pairs: a third of rho each."""
    import mbi  # noqa: PLC0415

    draws, d, third = _draws(settings), len(sizes), settings["rho"] / 3
    data = mbi.Dataset(dict(enumerate(codes.T)), mbi.Domain(range(d), sizes))
    sigma = math.sqrt(d / (2 * third))
    singles = [_measured(data, (column,), sigma, draws) for column in range(d)]
    # levels whose noisy count is below three standard deviations become one, as in the published code
    merged = {single.clique[0]: _levels(single.noisy_measurement, 3 * sigma) for single in singles}
    # mbi does not read the number of rows off merged tables
    total = mbi.estimation.minimum_variance_unbiased_total(singles)
    singles = [single.compress(merged, data.domain) for single in singles]
    small, fitter = data.compress(merged), mbi.estimation.MirrorDescent()
    model = fitter.estimate(small.domain, singles, known_total=total, iters=settings["steps"])
    tree = _tree(_gains(small, model), d, math.sqrt(8 * third / (d - 1)), draws)
    pairs = [_measured(small, pair, math.sqrt((d - 1) / (2 * third)), draws) for pair in tree]
    model = fitter.estimate(small.domain, singles + pairs, known_total=total, iters=settings["steps"])
    made = model.synthetic_data(rows=len(codes)).decompress(merged)
    return np.column_stack([made.data[column] for column in range(d)]), tree


def _levels(counts: Any, least: float) -> Any:
    """Return the new code of every level; all rare ones share the last."""
    common = np.asarray(counts) >= least
    return np.where(common, np.cumsum(common) - 1, common.sum())


def _gains(data: Any, model: Any) -> dict[Clique, float]:
    """Return how far every pair's table is from that of independent columns."""
    shares = [np.asarray(model.project((column,)).datavector()) for column in range(len(data.domain))]
    return {
        (a, b): float(np.abs(_count(data, (a, b)) - np.outer(shares[a], shares[b] / model.total)).sum())
        for a, b in itertools.combinations(range(len(shares)), 2)
    }


def _tree(gains: dict[Clique, float], d: int, epsilon: float, draws: np.random.Generator) -> list[Clique]:
    """Choose a spanning tree edge by edge with the exponential mechanism; a gain moves by one with a person."""
    group = list(range(d))
    tree: list[Clique] = []
    while len(tree) < d - 1:
        left = [pair for pair in gains if group[pair[0]] != group[pair[1]]]
        first, second = left[_chosen(epsilon / 2 * np.array([gains[pair] for pair in left]), draws)]
        tree.append((first, second))
        old, new = group[first], group[second]
        group = [new if number == old else number for number in group]
    return tree


def aim(codes: Any, sizes: Any, settings: Any) -> tuple[Any, list[Clique]]:
    """Measure columns, then round by round what the model has worst, until rho is spent."""
    import mbi  # noqa: PLC0415

    draws, d, rho, rounds = _draws(settings), len(sizes), settings["rho"], settings["rounds"]
    data = mbi.Dataset(dict(enumerate(codes.T)), mbi.Domain(range(d), sizes))
    fitter = mbi.estimation.MirrorDescent()
    # by how many columns of how many pairs each would help
    pairs: list[Clique] = list(itertools.combinations(range(d), 2))
    weights: dict[Clique, float] = {(column,): d - 1.0 for column in range(d)}
    weights |= dict.fromkeys(pairs, 2.0 * (d - 1))
    truth = {clique: _count(data, clique) for clique in weights}
    sigma, epsilon = math.sqrt(rounds / (1.8 * rho)), math.sqrt(0.8 * rho / rounds)
    tables = [_measured(data, (column,), sigma, draws) for column in range(d)]
    spent = d / (2 * sigma**2)
    model = fitter.estimate(data.domain, tables, iters=settings["steps"])
    while spent < rho * (1 - 1e-9):
        if rho - spent < 2 * (1 / (2 * sigma**2) + epsilon**2 / 8):
            # what is left goes into a last round
            sigma, epsilon = math.sqrt(1 / (1.8 * (rho - spent))), math.sqrt(0.8 * (rho - spent))
        spent += 1 / (2 * sigma**2) + epsilon**2 / 8
        fits = _small(weights, tables, data.domain, settings["megabytes"] * spent / rho)
        said = Tables(model)
        clique = _worst({each: (weights[each], truth[each], said.of(each)) for each in fits}, sigma, epsilon, draws)
        tables.append(_measured(data, clique, sigma, draws))
        model = fitter.estimate(data.domain, tables, iters=settings["steps"], warm_start=model)
        if np.abs(Tables(model).of(clique) - said.of(clique)).sum() <= _bias(sigma, truth[clique]):
            sigma, epsilon = sigma / 2, epsilon * 2
    made = model.synthetic_data(rows=len(codes))
    return np.column_stack([made.data[column] for column in range(d)]), [table.clique for table in tables]


def _worst(
    fits: dict[Clique, tuple[float, Numbers, Numbers]], sigma: float, epsilon: float, draws: np.random.Generator
) -> Clique:
    """Choose with the exponential mechanism by how far the model is off, less what noise would be, times the weight."""
    scores = [weight * (np.abs(count - said).sum() - _bias(sigma, count)) for weight, count, said in fits.values()]
    moved = max(weight for weight, _, _ in fits.values())
    return list(fits)[_chosen(epsilon / (2 * moved) * np.array(scores), draws)]


def _bias(sigma: float, table: Numbers) -> float:
    return math.sqrt(2 / math.pi) * sigma * table.size


def _small(weights: dict[Clique, float], tables: Sequence[Any], domain: Any, megabytes: float) -> list[Clique]:
    """Return the candidates with which the model stays small; those already measured always do."""
    from mbi import junction_tree  # noqa: PLC0415

    known = [table.clique for table in tables]
    return [
        clique
        for clique in weights
        if any(set(clique) <= set(each) for each in known)
        or junction_tree.hypothetical_model_size(domain, [*known, clique]) <= megabytes
    ]


class Tables:
    """Tables of a fitted model by variable elimination in numpy."""

    def __init__(self, model: Any) -> None:
        from mbi import junction_tree  # noqa: PLC0415

        tree, self._order = junction_tree.make_junction_tree(model.domain, list(model.cliques))
        self._total, cells = float(model.total), {tuple(node): 0.0 for node in tree.nodes}
        sums: dict[Clique, Any] = dict(cells)
        for clique in model.cliques:
            home = next(node for node in sums if set(clique) <= set(node))
            sums[home] = sums[home] + _spread(np.asarray(model.potentials[clique].values), tuple(clique), home)
        # a column that no clique has is even
        self._factors = [
            (node, np.exp(np.broadcast_to(value - np.max(value), [model.domain[name] for name in node])))
            for node, value in sums.items()
        ]
        self._known: dict[Clique, Numbers] = {}

    def of(self, clique: Clique) -> Numbers:
        """Return the expected counts of some columns."""
        if clique not in self._known:
            factors = list(self._factors)
            for name in [name for name in self._order if name not in clique]:
                with_it = [factor for factor in factors if name in factor[0]]
                factors = [factor for factor in factors if name not in factor[0]]
                scope, value = _product(with_it)
                place = scope.index(name)
                value = value.sum(axis=place)
                factors.append((scope[:place] + scope[place + 1 :], value / value.max()))
            scope, value = _product(factors)
            table = _spread(value, scope, clique)
            self._known[clique] = table * (self._total / table.sum())
        return self._known[clique]


def _product(factors: Sequence[tuple[Clique, Numbers]]) -> tuple[Clique, Numbers]:
    scope = tuple(sorted({name for names, _ in factors for name in names}))
    value: Any = 1.0
    for names, each in sorted(factors, key=lambda factor: factor[1].size):
        value = value * _spread(each, names, scope)
    return scope, np.asarray(value)


def _spread(value: Numbers, names: Clique, scope: Clique) -> Numbers:
    """Return a table with an axis for every name of a scope, of length one where it has none."""
    order = sorted(range(len(names)), key=lambda place: scope.index(names[place]))
    sizes = {names[place]: value.shape[place] for place in order}
    return value.transpose(order).reshape([sizes.get(name, 1) for name in scope])


def _measured(data: Any, clique: Clique, sigma: float, draws: np.random.Generator) -> Any:
    import mbi  # noqa: PLC0415

    counts = _count(data, clique).ravel()
    return mbi.LinearMeasurement(counts + draws.normal(0, sigma, counts.size), clique, stddev=sigma)


def _count(data: Any, clique: Clique) -> Numbers:
    sizes = [data.domain[name] for name in clique]
    cells = np.ravel_multi_index([data.data[name] for name in clique], sizes)
    return np.bincount(cells, minlength=math.prod(sizes)).reshape(sizes).astype(np.float64)


def _chosen(exponents: Numbers, draws: np.random.Generator) -> int:
    odds = np.exp(exponents - exponents.max())
    return int(draws.choice(len(odds), p=odds / odds.sum()))


def _draws(settings: Any) -> np.random.Generator:
    # mbi draws its rows from numpy's global generator
    np.random.seed(settings["seed"])  # noqa: NPY002
    return np.random.default_rng(settings["seed"])


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(main(Path(sys.argv[1]))) + "\n")
