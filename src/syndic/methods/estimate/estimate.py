"""Parameters of a distribution from distributed sources (Chen and Sung): CSaA, DSaA, CSSA, DSSA, and a masked sum.

DSSA: every party adds up a sufficient statistic, clipped to public bounds, and adds noise; the mean gives the
maximum likelihood estimate. DSaA: every party averages bias-corrected estimates of blocks of rows and adds noise.
"masked": the statistics of DSSA in a masked sum, with one copy of noise on the sum over all parties.

*Any cut*: in a group of people whose columns are at several parties, the first that holds the column sums it up; the
others are not asked, and charged nothing. With "masked" they add zeros and their share of the noise, and are charged.

*Neighbours*: one row is replaced, at each of up to `unit.parties` parties. Under add/remove a party draws as many rows
as the study says, so that adding or removing a person replaces at most one of them. *Cost*: one release, of this
party's sums or of the sum over all. *Who sees what*: everybody sees the noisy sums, of each party, or with "masked" of
all parties together. Sensitivity and trust: the disclosure of the plan.

Sound by default: whole numbers with exact integer noise; the exact diameter of what a row can add (l1 or l2, as the
noise needs); block estimates moved into the public set after correction; rows assigned to blocks independently of
their values. `as_published` is the paper's own noise, for simulation.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.document import from_file
from syndic.errors import InputError, RefusedError
from syndic.kernel import (
    UNDER_MASKS,
    Message,
    Method,
    Nothing,
    Party,
    Requires,
    Session,
    Terms,
    groups_of,
    member,
    people_of,
    step,
)
from syndic.kernel.cut import granted
from syndic.methods.estimate.plan import FINE, EstimatePlan, Law, Layout, layout_of
from syndic.methods.estimate.result import (
    Estimates,
    EstimatesResult,
    Group,
    GroupEstimate,
    NoisyMean,
    PublishedLaplace,
    members_of,
    parts_of,
)
from syndic.methods.histogram.marginals_plan import share_of
from syndic.model import AnyFamily
from syndic.model.families.estimate import Correction, Setting, best_blocks, block_estimates, blocks_of, printed_blocks
from syndic.mpc.graph import sum_graph
from syndic.mpc.masked_sum import MaskedSum, SumMasked
from syndic.mpc.ring import OVERFLOW, ring_for
from syndic.noise import DiscreteGaussian, DiscreteLaplace
from syndic.privacy import Budget, rho_for
from syndic.privacy.concentrated import part_of
from syndic.random import generator


class NoisySums(Message):
    """One party's noisy sums, in fixed-point steps: of statistics over rows, or of estimates over blocks."""

    values: NDArray[np.int64]


@final
class Estimate(Method, tag="estimate"):
    """Parameters of the estimates.

    `column`, `family`: what is estimated. `scheme`: see the module. `least`, `most`: the public set of parameters.
    `blocks`: for block schemes, by default the best number for each party's public size. `bits`: a value is rounded to
    one of 2^bits between its bounds (fewer whole numbers stay exact). `groups`: a hierarchy of parties, every group
    with an estimate of its own; with "masked" a sum opens for each set of parties with the same groups. `differ`:
    whether parties may have different parameters, by default if there are groups. `colluding`, `missing`: for "masked".
    """

    title: ClassVar[str] = "Private estimates from distributed sources"
    paper: ClassVar[str] = "Chen and Sung, Differentially private parameter estimation from distributed sources"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "horizontal"
    trust: ClassVar[str] = f'nobody: each party trusts only itself. With scheme = "masked", {UNDER_MASKS}'

    column: str
    family: AnyFamily
    scheme: Literal["dssa", "dsaa", "cssa", "csaa", "masked"] = "dssa"
    noise: Literal["laplace", "gaussian"] = "laplace"
    bits: int = 12
    least: tuple[float, ...] = ()
    most: tuple[float, ...] = ()
    blocks: int | None = None
    correction: Correction = "analytic"
    confidence: float = 0.95
    groups: tuple[Group, ...] = ()
    differ: bool | None = None
    colluding: int = 1
    missing: int = 0
    as_published: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= 12:
            raise ValueError(f"bits ({self.bits}) must be from 1 to 12")
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence ({self.confidence}) must be between 0 and 1")
        if self.blocks is not None and (self.blocks < 1 or not (self.in_blocks or self.as_published)):
            raise ValueError("blocks must be at least 1, and only the schemes dsaa and csaa use them: leave it out")
        if self.colluding < 1 or self.missing < 0:
            raise ValueError("colluding must be at least 1, missing must not be negative")
        if self.as_published and (self.scheme == "masked" or self.noise != "laplace"):
            raise ValueError("as_published is the paper's Laplace noise: neither gaussian noise nor masked is allowed")

    @property
    def in_blocks(self) -> bool:
        """Whether parties average estimates of blocks instead of statistics of rows."""
        return self.scheme in ("dsaa", "csaa")

    @property
    def requires(self) -> Requires:
        """A public number of people with one row each; Gaussian noise needs delta, published noise public sizes."""
        return Requires(
            people="bound",
            delta="gaussian noise" if self.noise == "gaussian" else "",
            neighbours="replace" if self.as_published else None,
            rows=1,
            because="means are divided by a public number of rows, one for each person",
            any_cut=True,
        )

    def counting(self, terms: Terms) -> tuple[str, ...]:
        """Return the parties that sum up the column: the one that it is read from, in every group of people."""
        found = {party for group in groups_of(terms) for party in group.read_from.get(self.column, ())}
        return tuple(party.name for party in terms.parties if party.name in found)

    def plan(self, terms: Terms) -> EstimatePlan:
        """Make the fixed-point table of the column, and calibrate the noise to the change by one replaced row."""
        counting = self.counting(terms)
        if self.scheme in ("cssa", "csaa") and len(counting) > 1:
            raise InputError(f'scheme "{self.scheme}" is for one party: use "d{self.scheme[1:]}" for several parties')
        if self.in_blocks and self.family.unbounded and not (self.least and self.most):
            raise InputError("block estimates of this family have no natural bounds: set least and most")
        members_of(self.groups, counting)
        layout = layout_of(terms.schema, self.column, self.family, self.bits, self.least, self.most)
        return self.plan_from(layout, terms)

    def plan_from(self, layout: Layout, terms: Terms) -> EstimatePlan:
        """Return the plan with a table that was computed before; the table does not depend on budget or scheme."""
        names = self.counting(terms)
        blocks = {name: self.blocks_at(terms, name) for name in names} if self.in_blocks else {}
        differ = bool(self.groups) if self.differ is None else self.differ
        if self.scheme == "masked":
            if self.missing >= len(names):
                raise InputError(
                    f"only {', '.join(names)} can sum up '{self.column}', and without them nothing is estimated: set "
                    f"missing = {len(names) - 1} or less"
                )
            graph = sum_graph(len(terms.parties), colluding=self.colluding, missing=self.missing)
            parts = parts_of(self.groups, names)
            count = layout.dimension * len(parts)
            who = {"parties": len(terms.parties), "colluding": self.colluding, "missing": self.missing}
            share = share_of(self.noise, terms, layout.l1, layout.l2_squared, dimension=count, **who)
            # room for the statistics of all rows, and for the noise
            largest = (people_of(terms) or 0) * int(layout.steps.max())
            ring = ring_for(largest + share.tail(OVERFLOW / count, share.parties))
            masked_sum = MaskedSum(label="statistics", graph=graph, count=count, ring=ring)
            return EstimatePlan(
                terms=terms, layout=layout, counting=names, blocks=blocks, noise={}, share=share,
                masked_sum=masked_sum, parts=parts, differ=differ,
            )  # fmt: skip
        noise = self._noise(layout, terms)
        return EstimatePlan(terms=terms, layout=layout, counting=names, blocks=blocks, noise=noise, differ=differ)

    def blocks_at(self, terms: Terms, party: str) -> int:
        """Return the number of blocks at one party, from public numbers."""
        people = member(terms, party).people or 1
        epsilon = float(min(budget.epsilon for budget in granted(terms)[party]))
        if self.blocks is not None:
            return min(self.blocks, people)
        if self.as_published:
            return printed_blocks(people, epsilon)
        # the bias of a block of one row is taken to be as wide as the set, so the formula has no unit
        setting = Setting(parties=len(self.counting(terms)), people=people, epsilon=epsilon, information=1.0)
        return best_blocks(setting, diameter=1.0)

    # The parties' side.

    @step(reveals="noisy")
    def answer(self, party: Party[EstimatePlan], message: Nothing) -> NoisySums:
        """Sum statistics of rows or estimates of blocks, in fixed point, and add noise."""
        del message
        if party.name not in party.plan.counting:
            raise RefusedError(
                f"{party.name} does not sum up '{self.column}': another party of its group does, or none"
            )
        codes = self._codes(party)
        sums = self._block_sums(party, codes) if self.in_blocks else party.plan.layout.sums(codes)
        law = party.plan.noise[party.name]
        return NoisySums(values=party.release(law, sums, why=f"noisy sums for an estimate by {self.scheme}"))

    @step(reveals="masked")
    def add(self, party: Party[EstimatePlan], message: Nothing) -> SumMasked:
        """Sum statistics of rows in fixed point, add this party's share of the noise, and mask the result."""
        del message
        masked_sum, share = party.plan.masked
        masks = masked_sum.masks(party)
        # a party's rows count in its own part; its share of the noise is in all parts
        sums = np.zeros((len(party.plan.parts), party.plan.layout.dimension), dtype=np.int64)
        for place, part in enumerate(party.plan.parts):
            if party.name in part:
                sums[place] = party.plan.layout.sums(self._codes(party))
        noisy = party.contribute(share, sums.ravel(), why="noisy statistics, one sum over all parties")
        return masks.hide(noisy)

    def _codes(self, party: Party[EstimatePlan]) -> NDArray[np.int64]:
        """Return the fine codes of as many rows as the study says.

        Under `replace` the table has this many. Under `add_remove` the size is a minimum: this many rows are drawn, and
        if there are fewer, the rest get the middle code. Couple the draws with and without one person: then adding or
        removing the person replaces at most one row.
        """
        layout = party.plan.layout
        batches = [batch[self.column].astype(np.int64) for batch in party.table.coded_by(layout.schema).batches()]
        codes = np.concatenate(batches) if batches else np.zeros(0, dtype=np.int64)
        if party.terms.unit.neighbours == "replace":
            return codes
        people = member(party.terms, party.name).people or 0
        if len(codes) >= people:
            return generator(party.key_randomness("people")).permutation(codes)[:people]
        return np.concatenate([codes, np.full(people - len(codes), len(layout.steps) // 2, dtype=np.int64)])

    def _block_sums(self, party: Party[EstimatePlan], codes: NDArray[np.int64]) -> NDArray[np.int64]:
        layout, blocks = party.plan.layout, party.plan.blocks[party.name]
        block = blocks_of(len(codes), blocks)
        if not self.as_published:
            # if rows were sorted by value, one row could move all others to other blocks
            block = generator(party.key_randomness("blocks")).permutation(block)
        estimates = block_estimates(layout.model, layout.statistics(codes), block, blocks, self.correction)
        steps = layout.loose_steps(estimates) if self.as_published else layout.block_steps(estimates)
        return np.asarray(steps.sum(axis=0))

    # The coordinator's side.

    def coordinate(self, session: Session[EstimatePlan]) -> EstimatesResult:
        """Collect noisy sums, or open one sum over all parties, and estimate."""
        plan = session.plan
        if plan.masked_sum is not None:
            total = plan.masked_sum.open(session, self.add)
            present = total.present
            means = {
                part: plan.mean_of_all(present, values, part)
                for part, values in zip(plan.parts, total.values.reshape(len(plan.parts), -1), strict=True)
                if not set(part).isdisjoint(present)
            }
        else:
            answers = session.ask(self.answer, dict.fromkeys(plan.counting, Nothing()))
            present = tuple(answers)
            means = {(name,): plan.mean_of(name, answer.values) for name, answer in answers.items()}
        alone = {part[0]: part for part in means if len(part) == 1} if len(means) > 1 else {}
        members = members_of(self.groups, plan.counting)
        named = {**alone, **{name: inside for name, inside in members.items() if not set(inside).isdisjoint(present)}}
        return EstimatesResult(
            estimates=Estimates(
                column=self.column,
                family=str(self.family.__struct_config__.tag),
                scheme=self.scheme,
                parameters=plan.layout.family.parameters,
                confidence=self.confidence,
                present=present,
                together=self._estimate("all", plan, tuple(means.values())),
                groups=tuple(
                    self._estimate(name, plan, tuple(mean for part, mean in means.items() if set(part) <= set(inside)))
                    for name, inside in named.items()
                ),
            )
        )

    def _estimate(self, name: str, plan: EstimatePlan, means: tuple[NoisyMean, ...]) -> GroupEstimate:
        """Return the estimate of a group of parties, with its intervals."""
        found = plan.combined(means)
        lower, upper = found.interval(self.confidence, plan.layout.model)
        return GroupEstimate(
            of=name,
            people=sum(one.people for one in means),
            estimate=tuple(found.theta.tolist()),
            standard_error=tuple(found.standard_error.tolist()),
            lower=tuple(lower.tolist()),
            upper=tuple(upper.tolist()),
        )

    def read(self, plan: EstimatePlan, folder: Path) -> EstimatesResult:
        """Read back `estimates.json`."""
        del plan
        return EstimatesResult(estimates=from_file(folder / "estimates.json", Estimates))

    # The noise.

    def _noise(self, layout: Layout, terms: Terms) -> Mapping[str, Law | PublishedLaplace]:
        """Return the noise on each party's sums; a person at several parties is charged a part at each of them.

        The people of a group are those of all its parties, each of which may grant them less.
        """
        every = granted(terms)
        budgets = {name: every[name] for name in self.counting(terms)}
        if self.as_published:
            published = _published_block_noise if self.in_blocks else _published_noise
            return {
                name: published(
                    layout,
                    member(terms, name).people or 1,
                    self.blocks_at(terms, name),
                    min(budget.epsilon for budget in own),
                )
                for name, own in budgets.items()
            }
        # one row changes one line of the table, or one block's estimate, to anything within the box
        size = len(layout.least)
        l1, squared = (size * FINE, size * FINE**2) if self.in_blocks else (layout.l1, layout.l2_squared)

        def law(budgets: frozenset[Budget]) -> Law:
            if self.noise == "laplace":
                epsilon = min(budget.epsilon for budget in budgets)
                return DiscreteLaplace(sensitivity=l1, epsilon=part_of(epsilon, terms.unit.parties))
            rho = part_of(min(rho_for(budget.epsilon, budget.delta) for budget in budgets), terms.unit.parties)
            return DiscreteGaussian(sensitivity_squared=Fraction(squared), rho=rho)

        laws = {own: law(own) for own in set(budgets.values())}
        return {name: laws[own] for name, own in budgets.items()}


def _published_noise(layout: Layout, people: int, blocks: int, epsilon: Fraction) -> PublishedLaplace:
    """Return CSSA's published noise on the sum over all rows: Euclidean diameter / (k epsilon) on the mean."""
    scale = people * math.sqrt(layout.l2_squared) / (blocks * float(epsilon))
    return PublishedLaplace(scale=scale, sensitivity=float(layout.l1))


def _published_block_noise(layout: Layout, people: int, blocks: int, epsilon: Fraction) -> PublishedLaplace:
    """Return CSaA's published noise on the sum of block estimates, and the true change of a corrected estimate.

    A corrected estimate leaves the set by up to sup |b1| / t on either side, t being the rows of the smallest block.
    """
    smallest = max(1, people // blocks)
    beyond = 2 * _largest_bias(layout) / (layout.block_unit * smallest)
    scale = FINE * math.sqrt(len(beyond)) / float(epsilon)
    return PublishedLaplace(scale=scale, sensitivity=float((FINE + beyond).sum()))


def _largest_bias(layout: Layout) -> NDArray[np.float64]:
    """Return the largest |b1| on a fine grid over the set, for each parameter."""
    model, size = layout.model, len(layout.least)
    if size > 2:  # estimates of category shares have no bias
        return np.zeros(size)
    shares = np.linspace(0, 1, 257 if size == 1 else 17)
    corners = np.stack(np.meshgrid(*([shares] * size)), axis=-1).reshape(-1, size)
    theta = model.least + corners * (model.most - model.least)
    return np.asarray(np.abs(model.family.first_bias(theta)).max(axis=0))
