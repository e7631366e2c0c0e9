"""PrivMRF: a trusted curator measures tables chosen by noisy scores (Cai, Lei, Wei and Xiao, VLDB 2021).

Unit: one row. Neighbours: add/remove or replace, as the curator is set up. Trust: the curator sees all rows; its
releases have Gaussian noise, in one account of mu^2:

- the number of rows, sensitivity 1 (public under replace);
- R-scores of all pairs of columns: distance from independence, sensitivity 2, under replace 3, in rows;
- l1 distances of candidate tables from the model, sensitivity 1, under replace 2;
- the chosen tables, squared sensitivity 1 each, under replace 2.

The authors' program releases the number of rows with a hundredth of the noise that its share of the budget requires,
adds up R-scores of wrong pairs, and lowers the weight of candidates by their place in a list instead of their score.
These errors, which cost many times the budget, are corrected here.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import final

import numpy as np

from syndic.document import Document
from syndic.model.markov.field import MarkovField
from syndic.model.markov.fit import fit
from syndic.model.markov.measurement import Impossible, Measurement
from syndic.model.markov.tree import plan_tree
from syndic.model.selection.counts import Names, Synthesis
from syndic.model.selection.curator import Curator
from syndic.model.selection.grouping import Grouping
from syndic.model.selection.privmrf_tables import Scores, attribute_graph, candidate_weights, initial_tables
from syndic.model.selection.score import MEAN_ABSOLUTE, pairs_of

# shares of the budget for the number of rows and the R-scores, and for distances of candidate tables from the model
STRUCTURE_SHARE, DISTANCE_SHARE = Fraction(1, 10), Fraction(1, 10)
# part of the structure's share that is for the number of rows
PEOPLE_SHARE = Fraction(1, 100)
# a table is allowed if its mean count is more than this many times the mean absolute noise
USEFULNESS = 6.0
# the most columns of a candidate table, and the most candidates that are scored in a step
MOST_COLUMNS, MOST_SCORED = 6, 400
# shares of the noise's loss at which fits stop
TARGET, LAST_TARGET = 1.2, 0.7


@final
class PrivMRF(Document):
    """The method with its published settings, except for smaller models (its program allows 10^7 and 5 * 10^7 cells).

    Args:
        refined: Tables chosen by distance, for each column.
        largest_clique: The most cells of a clique.
        cells: The most cells of all cliques.
        iterations: The most passes of the last fit; fits in between take a third.
    """

    refined: Fraction = Fraction(4, 5)
    largest_clique: int = 200_000
    cells: int = 1_000_000
    iterations: int = 600

    def run(
        self,
        curator: Curator,
        mu_squared: Fraction,
        generator: np.random.Generator,
        *,
        zeros: Sequence[Impossible] = (),
    ) -> Synthesis:
        """Measure, choose and fit; `generator` makes random choices that privacy does not depend on."""
        return _Run(self, curator, mu_squared, generator, zeros).synthesis()


class _Run:
    """One run: what was measured so far, and the model fitted to it."""

    def __init__(
        self,
        settings: PrivMRF,
        curator: Curator,
        mu_squared: Fraction,
        generator: np.random.Generator,
        zeros: Sequence[Impossible],
    ) -> None:
        self.settings, self.curator, self.mu_squared = settings, curator, mu_squared
        self.generator, self.zeros = generator, tuple(zeros)
        self.domain, self.plain = curator.domain, Grouping.none(curator.domain)
        self.total, self.scores = self.structure_scores()
        sets = attribute_graph(
            self.scores, [zero.names for zero in zeros], largest=settings.largest_clique, most_cells=settings.cells
        )
        self.tree = plan_tree(self.domain, sets)
        self.rounds: list[list[Measurement]] = []

    def structure_scores(self) -> tuple[float, Scores]:
        """Return the number of rows and the R-scores, charged to the structure's share."""
        share = STRUCTURE_SHARE * self.mu_squared
        people = share * PEOPLE_SHARE if self.curator.people is None else Fraction(0)
        total = max(1.0, self.curator.noisy_people(people))
        pairs = pairs_of(self.domain.names)
        noisy = self.curator.associations(pairs, share - people) / total if pairs else np.zeros(0)
        found = {frozenset(names): float(score) for names, score in zip(pairs, noisy, strict=True)}
        return total, Scores(self.domain, found)

    def synthesis(self) -> Synthesis:
        """Measure first tables, then refine step by step with the tables furthest from the model."""
        settings, columns = self.settings, len(self.domain)
        pairs = 1 if columns > 1 else 0
        left = self.mu_squared * (1 - STRUCTURE_SHARE * pairs - DISTANCE_SHARE)
        if not pairs and self.curator.people is None:
            left -= self.mu_squared * STRUCTURE_SHARE * PEOPLE_SHARE
        refined = int(settings.refined * columns)
        first_limit = self.total / (USEFULNESS * self.deviation(left, columns + refined))
        first = initial_tables(self.scores, self.tree.cliques, first_limit, self.generator)
        weights, refined = self.candidates(left, len(first), refined)
        number = len(first) + refined
        distances = DISTANCE_SHARE * self.mu_squared
        if not refined:
            left += distances
        self.measure(first, left * len(first) / number)
        field = self.fitted(None, last=not refined)
        quotas = quotas_of(refined, max(1, min(columns // 2, 8)))
        for step, quota in enumerate(quotas):
            chosen = self.furthest(field, weights, quota, distances / len(quotas))
            self.measure(chosen, left * len(chosen) / number)
            field = self.fitted(field, last=step + 1 == len(quotas))
        one_way = {name: np.zeros(self.domain[name]) for name in self.domain.names}
        return Synthesis(field, self.plain, one_way, tuple(tuple(one) for one in self.rounds))

    def deviation(self, left: Fraction, number: int) -> float:
        """Return the standard deviation of a cell if this many tables share the remaining budget."""
        return math.sqrt(self.curator.variance(left / number))

    def candidates(self, left: Fraction, first: int, refined: int) -> tuple[dict[Names, float], int]:
        """Return the allowed tables with their weights, and the number to be measured."""
        noise = self.deviation(left, first + refined) * MEAN_ABSOLUTE
        limit = self.total / (USEFULNESS * noise)
        weights = candidate_weights(self.domain, self.tree.cliques, limit, MOST_COLUMNS)
        return weights, min(refined, len(weights))

    def furthest(self, field: MarkovField, weights: dict[Names, float], quota: int, budget: Fraction) -> list[Names]:
        """Return the candidates with the largest noisy distance from the model, and remove them from `weights`."""
        names = list(weights)
        if len(names) > MOST_SCORED:
            shares = np.array([weights[one] for one in names])
            drawn = self.generator.choice(len(names), MOST_SCORED, p=shares / shares.sum())
            names = [names[place] for place in np.unique(drawn)]
        expected = [table.values for table in field.marginals(names)]
        distances = self.curator.distances(names, expected, budget)
        order = [names[place] for place in np.argsort(-distances, kind="stable")]
        chosen = order[:quota]
        for one in order[len(order) // 2 :]:
            weights[one] /= 2
        for one in chosen:
            del weights[one]
        return chosen

    def measure(self, tables: Sequence[Names], budget: Fraction) -> None:
        """Measure tables and store them."""
        self.rounds.append(self.curator.measure(tables, budget, self.plain))

    def fitted(self, start: MarkovField | None, *, last: bool = False) -> MarkovField:
        """Fit the model to all tables; the last time more closely than the noise justifies, as in the paper."""
        return fit(
            self.domain,
            [one for measured in self.rounds for one in measured],
            tree=self.tree,
            start=start,
            total=self.total,
            zeros=self.zeros,
            iterations=self.settings.iterations if last else self.settings.iterations // 3,
            target=LAST_TARGET if last else TARGET,
        ).field


def quotas_of(number: int, steps: int) -> list[int]:
    """Distribute this many tables over steps, the remainder to the first; empty steps are omitted."""
    return [quota for step in range(steps) if (quota := number // steps + (step < number % steps))]
