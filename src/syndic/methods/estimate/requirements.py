"""What follows from the public terms of an estimate: fixed-point table, blocks, noise, and what noisy sums mean."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from syndic.kernel import Terms, budget_of, member, people_of
from syndic.methods.estimate.layout import FINE, Layout, layout_of
from syndic.methods.estimate.noise import (
    Law,
    Noise,
    PrintedLaplace,
    Share,
    law_for,
    printed_blocks_law,
    printed_statistics,
    share_for,
)
from syndic.methods.estimate.result import Group, NoisyMean, stacked
from syndic.model import AnyFamily
from syndic.model.families.accuracy import Setting, best_blocks, printed_blocks
from syndic.model.families.estimate import Correction, Estimated, estimate_by_blocks, estimate_by_statistics
from syndic.mpc.graph import SumPlan, plan_sum
from syndic.mpc.ring import Ring, ring_for
from syndic.mpc.sum import UsesMaskedSum

# The noise of one value exceeds what the ring has room for with a chance below this over all values.
_OVERFLOW = 2.0**-64


class EstimationTerms(UsesMaskedSum):
    """The parameters of an estimate and all that is known before any row is read; see `Estimation`."""

    column: str
    family: AnyFamily
    scheme: Literal["dssa", "dsaa", "cssa", "csaa", "masked"] = "dssa"
    noise: Noise = "laplace"
    bits: int = 12
    least: tuple[float, ...] = ()
    most: tuple[float, ...] = ()
    blocks: int | None = None
    correction: Correction = "analytic"
    confidence: float = 0.95
    groups: tuple[Group, ...] = ()
    colluding: int = 1
    missing: int = 0
    as_printed: bool = False

    def __post_init__(self) -> None:
        """Check what needs no study."""
        if not 1 <= self.bits <= 12:
            raise ValueError(f"bits ({self.bits}) must be from 1 to 12")
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence ({self.confidence}) must be between 0 and 1")
        if self.blocks is not None and (self.blocks < 1 or not (self.in_blocks or self.as_printed)):
            raise ValueError("blocks must be at least 1 and are for the schemes dsaa and csaa: statistics need none")
        if self.colluding < 1 or self.missing < 0:
            raise ValueError("colluding must be at least 1, missing must not be negative")
        if self.as_printed and (self.scheme == "masked" or self.noise != "laplace"):
            raise ValueError("as_printed is the paper's Laplace noise at every party: not gaussian, not masked")
        if self.scheme == "masked" and self.groups:
            raise ValueError("with scheme = masked only the sum over all parties is seen: there can be no groups")

    @property
    def simulation_only(self) -> bool:
        """The printed variants never meet real parties."""
        return self.as_printed

    @property
    def in_blocks(self) -> bool:
        """Whether parties average estimates of blocks, not statistics of rows."""
        return self.scheme in ("dsaa", "csaa")

    def layout_of(self, terms: Terms) -> Layout:
        """Return the fixed-point table of the column."""
        return layout_of(terms.schema, self.column, self.family, self.bits, self.least, self.most)

    def blocks_at(self, terms: Terms, party: str) -> int:
        """Return the number of blocks at one party, from public numbers."""
        people, epsilon = member(terms, party).people or 1, float(budget_of(terms, party).epsilon)
        if self.blocks is not None:
            return min(self.blocks, people)
        if self.as_printed:
            return printed_blocks(people, epsilon)
        # the bias of a block of one row is taken to be as wide as the set, which leaves no unit in the formula
        setting = Setting(parties=len(terms.parties), people=people, epsilon=epsilon, information=1.0)
        return best_blocks(setting, diameter=1.0)

    def law_of(self, terms: Terms, party: str) -> Law | PrintedLaplace:
        """Return the noise on one party's sums."""
        if self.as_printed:
            return self.printed_of(terms, party)
        layout = self.layout_of(terms)
        l1, l2_squared = layout.l1, layout.l2_squared
        if self.in_blocks:
            # one row moves one block's estimate, anywhere within the box
            l1, l2_squared = (len(layout.model.least) * FINE**power for power in (1, 2))
        return law_for(self.noise, budget_of(terms, party), terms.unit.parties, l1, l2_squared)

    def printed_of(self, terms: Terms, party: str) -> PrintedLaplace:
        """Return the paper's noise on one party's sums."""
        printed = printed_blocks_law if self.in_blocks else printed_statistics
        people, blocks = member(terms, party).people or 1, self.blocks_at(terms, party)
        return printed(self.layout_of(terms), people=people, blocks=blocks, epsilon=budget_of(terms, party).epsilon)

    def share_of(self, terms: Terms) -> Share:
        """Return every party's share of the noise on the sum over all parties."""
        budgets = tuple(dict.fromkeys(party.budget or terms.budget for party in terms.parties))
        who = {"parties": len(terms.parties), "colluding": self.colluding, "missing": self.missing}
        return share_for(self.noise, budgets, self.layout_of(terms), apart=terms.unit.parties, who=who)

    def sum_plan(self, terms: Terms) -> SumPlan:
        """Return who masks with whom: a graph that cannot fail, so that nothing is charged for it."""
        return plan_sum(len(terms.parties), colluding=self.colluding, missing=self.missing, certain=True)

    def ring_of(self, terms: Terms) -> Ring:
        """Return the ring that has room for the statistics of all rows, and for the noise."""
        share, layout = self.share_of(terms), self.layout_of(terms)
        largest = (people_of(terms) or 0) * int(layout.steps.max())
        return ring_for(largest + share.tail(_OVERFLOW / layout.dimension, share.parties))

    # What noisy sums mean, all of it public.

    def noisy_total(self, terms: Terms, present: tuple[str, ...], values: NDArray[np.int64]) -> NoisyMean:
        """Return the mean statistic of the parties that are in an opened sum, and the law of its noise."""
        layout, share = self.layout_of(terms), self.share_of(terms)
        people = sum(member(terms, name).people or 0 for name in present)
        peaked = 3 * share.honest / len(present) if self.noise == "laplace" else 0.0
        noise = share.total_variance(len(present)) * (layout.unit / people) ** 2
        mean = layout.start + layout.unit * values / people
        return NoisyMean(mean=mean, people=people, noise=noise, peaked=peaked)

    def noisy_mean(self, terms: Terms, name: str, values: NDArray[np.int64]) -> NoisyMean:
        """Return what one party's noisy sums say: a mean of statistics or of block estimates, and its noise's law."""
        layout, people = self.layout_of(terms), member(terms, name).people or 1
        count, unit, start = people, layout.unit, layout.start
        if self.in_blocks:
            count, unit, start = self.blocks_at(terms, name), layout.block_unit, layout.model.least
        noise = self.law_of(terms, name).variance * (unit / count) ** 2
        peaked = 3.0 if self.noise == "laplace" else 0.0
        return NoisyMean(mean=start + unit * values / count, people=people, noise=noise, peaked=peaked)

    def combined(self, terms: Terms, means: tuple[NoisyMean, ...]) -> Estimated:
        """Return the estimate from several noisy means, with the best weights."""
        layout = self.layout_of(terms)
        unit = layout.block_unit if self.in_blocks else layout.unit
        return (estimate_by_blocks if self.in_blocks else estimate_by_statistics)(layout.model, stacked(means, unit))
