"""The plan of an estimate: the fixed-point table of its column, the noise, and how to read noisy sums. All public.

A value becomes a code on a fine public grid, and the code's statistic is looked up. So every row adds one line of the
table to a sum, and the distance between two lines is exact: it needs no argument about rounding.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import msgspec
import numpy as np
from numpy.typing import NDArray

from syndic.data import Boolean, Categorical, Integer, Ordinal, Real, Schema
from syndic.data.coding import bins_of
from syndic.errors import InputError
from syndic.kernel import (
    ALIGNED,
    GROUPS,
    PROCESS_BYTES,
    Disclosure,
    Plan,
    Resources,
    beyond_unit,
    everybody,
    groups_of,
    member,
    not_covered,
    people_of,
    picture,
    shared_people,
)
from syndic.kernel.cut import granted
from syndic.methods.estimate.result import NoisyMean, PublishedLaplace, stacked
from syndic.methods.histogram.marginals_plan import Share
from syndic.model import AnyFamily, Multinomial
from syndic.model.families.estimate import Estimated, Model, estimate_by_blocks, estimate_by_statistics
from syndic.model.families.family import Array
from syndic.mpc.masked_sum import MaskedSum
from syndic.noise import DiscreteGaussian, DiscreteLaplace, LaplaceShare
from syndic.privacy import Event

FINE = 2**16
"""Steps over the range of a statistic or a parameter: so fine that rounding is negligible beside any noise."""

_MOST_COMPARED = 2**28
_UNREAD = (
    "that a person is in the data there: sums of a partner are of the people whom the alignment found, and only the "
    "partner is charged for them"
)


@final
@dataclass(frozen=True, kw_only=True)
class Layout:
    """Public. `steps`: the statistic of every code, in `unit`s from `start`. Noise is added to sums of steps.

    `least`, `most`: the set of parameters. `l1`, `l2_squared`: the largest distance between two lines of `steps`, which
    is the sensitivity to replacing a row. The arrays follow from schema and family, so these identify the layout.
    """

    schema: Schema
    family: AnyFamily
    least: tuple[float, ...]
    most: tuple[float, ...]
    l1: int
    l2_squared: int
    steps: NDArray[np.int64] = field(compare=False)
    start: Array = field(compare=False)
    unit: Array = field(compare=False)

    @cached_property
    def model(self) -> Model:
        """The family with the set of parameters."""
        return Model(family=self.family, least=np.array(self.least), most=np.array(self.most))

    @property
    def dimension(self) -> int:
        """The number of sums."""
        return int(self.steps.shape[1])

    @property
    def block_unit(self) -> Array:
        """The length of a step of a block estimate: `FINE` of them span the set of parameters."""
        return np.asarray((self.model.most - self.model.least) / FINE)

    def statistics(self, codes: NDArray[Any]) -> Array:
        """Return the statistics that the codes stand for."""
        return np.asarray(self.start + self.unit * self.steps[codes])

    def sums(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the exact sums of all rows' steps."""
        return np.asarray(np.bincount(codes, minlength=len(self.steps)) @ self.steps)

    def block_steps(self, estimates: Array) -> NDArray[np.int64]:
        """Return block estimates as whole steps, rounded first and clipped last: from 0 to `FINE`."""
        return np.clip(self.loose_steps(self.model.inside(estimates)), 0, FINE)

    def loose_steps(self, estimates: Array) -> NDArray[np.int64]:
        """Return block estimates as whole steps, without clipping."""
        return np.asarray(np.rint((estimates - self.model.least) / self.block_unit).astype(np.int64))


def layout_of(
    schema: Schema,
    name: str,
    family: AnyFamily,
    bits: int,
    least: tuple[float, ...] = (),
    most: tuple[float, ...] = (),
) -> Layout:
    """Return the fixed-point table of a column; raise `InputError` if the column does not fit the family."""
    column = schema.select([name]).columns[0]
    fine, values, step = _grid(column, bits, isinstance(family, Multinomial))
    lower, upper = float(values[0]), float(values[-1])
    try:
        if not isinstance(family, Multinomial):
            family.check_values(lower, upper)
    except ValueError as error:
        raise InputError(f"column '{name}' does not fit the family {family.__struct_config__.tag}: {error}") from None
    suited = family.suited(lower, upper, fine.labels())
    low, high = _parameters(suited, suited.span(lower, upper, step), least, most)
    steps, start, unit = _fixed_point(suited.statistic(values))
    l1, l2_squared = _diameters(steps, name)
    return Layout(
        schema=Schema(columns=(fine,)),
        family=suited,
        least=low,
        most=high,
        l1=l1,
        l2_squared=l2_squared,
        steps=steps,
        start=start,
        unit=unit,
    )


def _parameters(
    family: AnyFamily, span: tuple[Array, Array], least: tuple[float, ...], most: tuple[float, ...]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    low, high = (np.array(given or found) for given, found in zip((least, most), span, strict=True))
    names = family.parameters
    if low.shape != (len(names),) or high.shape != (len(names),):
        raise InputError(f"least and most need one number for each of: {', '.join(names)}")
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise InputError(f"least must be below most, both finite, for each of: {', '.join(names)}")
    return tuple(low.tolist()), tuple(high.tolist())


def _grid(column: Any, bits: int, categories: bool) -> tuple[Any, Array, float]:
    """Return the column with a fine grid, the value of every code, and the distance between values."""
    if categories:
        return column, np.arange(column.size, dtype=np.float64), 1.0
    if column.missing == "level":
        raise InputError(
            f"column '{column.name}': an estimate needs a value in place of missing ones: set missing.value"
        )
    if isinstance(column, Boolean | Categorical | Ordinal):
        return column, np.arange(column.size, dtype=np.float64), 1.0
    if not isinstance(column, Integer | Real):
        raise InputError(f"column '{column.name}' is a date: estimates need a number, a boolean or categories")
    whole = isinstance(column, Integer)
    bins = min(2**bits, column.upper - column.lower + 1) if whole else 2**bits
    fine = msgspec.structs.replace(column, bins=int(bins), edges=None, scale="linear")
    values, lower, upper = bins_of(fine)
    return fine, values, (upper + whole - lower) / len(values)


def _fixed_point(statistics: Array) -> tuple[NDArray[np.int64], Array, Array]:
    """Return statistics as whole steps from 0 to `FINE` or less; small whole numbers stay as they are."""
    start, end = statistics.min(axis=0), statistics.max(axis=0)
    whole = bool((statistics == np.rint(statistics)).all()) and float((end - start).max()) <= FINE
    unit = np.ones_like(start) if whole else np.where(end > start, (end - start) / FINE, 1.0)
    steps = np.clip(np.rint((statistics - start) / unit), 0, FINE).astype(np.int64)
    return steps, start, unit


def _diameters(steps: NDArray[np.int64], name: str) -> tuple[int, int]:
    """Return the largest l1 and squared l2 distance between two lines, by comparing all pairs."""
    lines = np.unique(steps, axis=0)
    if lines.shape[1] == 1:
        reach = int(lines[-1, 0] - lines[0, 0])
        return max(1, reach), max(1, reach**2)
    if lines.shape[0] * lines.size > _MOST_COMPARED:
        raise InputError(
            f"column '{name}': {lines.shape[0]} levels are too many for this family: use fewer levels or fewer bits"
        )
    l1 = l2 = 1
    for line in lines:
        apart = np.abs(lines - line)
        l1 = max(l1, int(apart.sum(axis=1).max()))
        l2 = max(l2, int((apart**2).sum(axis=1).max()))
    return l1, l2


Law = DiscreteLaplace | DiscreteGaussian


@final
class EstimatePlan(Plan):
    """The table of the column, and the noise: on each party's sums, or shares of one noise on the masked sum.

    `counting`: the parties that sum up the column, one of each group of people where somebody holds it. `blocks`: the
    number of blocks at each of them, if estimates of blocks are summed instead of statistics of rows.
    `parts`: the parties whose masked sums open together; `differ`: whether the parties' distributions may differ.
    """

    layout: Layout
    counting: tuple[str, ...]
    blocks: Mapping[str, int]
    noise: Mapping[str, Law | PublishedLaplace]
    share: Share | None = None
    masked_sum: MaskedSum | None = None
    parts: tuple[tuple[str, ...], ...] = ()
    differ: bool = False

    @property
    def masked(self) -> tuple[MaskedSum, Share]:
        """The masked sum and a party's share of its noise; `InputError` for other schemes."""
        if self.masked_sum is None or self.share is None:
            raise InputError("this scheme has no masked sum")
        return self.masked_sum, self.share

    @property
    def rounds(self) -> tuple[str, ...]:
        """The steps of a masked sum, or one noisy answer from each party."""
        return ("answer",) if self.masked_sum is None else self.masked_sum.rounds("add")

    def events(self, party: str) -> tuple[Event, ...]:
        """One release: of this party's sums, if it has any, or of the sum over all parties, charged in full to each."""
        self.check_party(party)
        if self.share is None and party not in self.counting:
            return ()
        return ((self.noise[party] if self.share is None else self.share).event,)

    @property
    def held(self) -> tuple[str, ...]:
        """Who holds the column, where groups of people have several parties or lack it."""
        groups = groups_of(self.terms)
        several = shared_people(self.terms) or len(self.counting) < len(groups)
        return picture(groups, self.layout.schema.names) if several else ()

    @property
    def uncovered(self) -> tuple[str, ...]:
        """Whether the column is summed up for a part of the people only."""
        return not_covered(groups_of(self.terms), self.layout.schema.names) if self.held else ()

    @cached_property
    def resources(self) -> Resources:
        """Memory for one column's codes and statistics, time to read them, and the size of the noise."""
        largest, numbers = max(party.people or 0 for party in self.terms.parties), self.layout.dimension
        masked = self.masked_sum
        return Resources(
            memory_bytes=PROCESS_BYTES + largest * (16 + (48 * numbers if self.blocks else 0)),
            reply_bytes=8 * numbers + 64 if masked is None else masked.message_bytes,
            rounds=1 + len(self.rounds),
            seconds=round(1.0 + (people_of(self.terms) or 0) / 1e6, 1),
            notes=self._notes(),
        )

    def _notes(self) -> tuple[str, ...]:
        nothing, parties = np.zeros(self.layout.dimension, dtype=np.int64), [one.name for one in self.terms.parties]
        if self.share is not None:
            what, several = "standard deviation of the noise on the mean statistic", len(self.parts) > 1
            spreads = [(part, self.mean_of_all(tuple(parties), nothing, part).noise ** 0.5) for part in self.parts]
            return tuple(f"{what}{f' of {len(part)} parties' * several}: {_listed(one)}" for part, one in spreads)
        notes = []
        for name in self.counting:
            what = f"{self.blocks[name]} blocks, noise" if self.blocks else "noise"
            spread = self.mean_of(name, nothing).noise ** 0.5
            notes.append(f"{name}: {what} of standard deviation {_listed(spread)} on its mean")
        return tuple(notes)

    too_large = ("the largest party", "raise memory_mb")

    # How to read noisy sums; all of it is public.

    def mean_of_all(self, present: tuple[str, ...], values: NDArray[np.int64], part: Sequence[str] = ()) -> NoisyMean:
        """Return the mean statistic of the parties in an opened sum, or of a part, and the distribution of its noise.

        All parties in the sum add noise to every part of it.
        """
        layout, share = self.layout, self.masked[1]
        found = [name for name in self.counting if name in present and (not part or name in part)]
        people = sum(member(self.terms, name).people or 0 for name in found)
        peaked = 3 * share.honest / len(present) if isinstance(share, LaplaceShare) else 0.0
        noise = share.total_variance(len(present)) * (layout.unit / people) ** 2
        mean = layout.start + layout.unit * values / people
        return NoisyMean(mean=mean, people=people, noise=noise, peaked=peaked)

    def mean_of(self, party: str, values: NDArray[np.int64]) -> NoisyMean:
        """Return one party's noisy mean of statistics or of block estimates, and the distribution of its noise."""
        layout, people, law = self.layout, member(self.terms, party).people or 1, self.noise[party]
        count, unit, start = people, layout.unit, layout.start
        if self.blocks:
            count, unit, start = self.blocks[party], layout.block_unit, layout.model.least
        noise = law.variance * (unit / count) ** 2
        peaked = 0.0 if isinstance(law, DiscreteGaussian) else 3.0
        return NoisyMean(mean=start + unit * values / count, people=people, noise=noise, peaked=peaked)

    def combined(self, means: tuple[NoisyMean, ...]) -> Estimated:
        """Return the estimate from several noisy means."""
        if self.blocks:
            return estimate_by_blocks(self.layout.model, stacked(means, self.layout.block_unit), differ=self.differ)
        return estimate_by_statistics(self.layout.model, stacked(means, self.layout.unit), differ=self.differ)

    # Who sees what, in words.

    @property
    def disclosure(self) -> Disclosure:
        """What every role sees."""
        unit, masked = self.terms.unit, self.masked_sum is not None
        every = "all parties" if len(self.parts) < 2 else "each set of parties with the same groups"
        shared = shared_people(self.terms)
        some = len(self.counting) < len(self.terms.parties)
        each = f"the noisy sums of {' and of '.join(self.counting)}" if some else "every party's noisy sums"
        groups = [group.parties for group in groups_of(self.terms) if {*group.parties} & {*self.counting}]
        unread = [name for parties in groups for name in parties if name not in self.counting and not masked]
        noisy = f"the noisy sums of {every} together" if masked else each
        sees = f"{noisy}, and the estimates and intervals computed from them"
        masks = {
            "coordinator": f"every party's masked sums, which look uniform, who dropped out, {sees}",
            "other parties": f"public keys, and {sees}; each knows its own sums and share of the noise",
        }
        least = unit.neighbours == "add_remove"
        sizes = "the minimum size that the study states for each party" if least else "each party's size"
        pooled = "against more colluding parties than stated, or more that omit their noise: less noise remains"
        return Disclosure(
            sees={**everybody(sees), **(masks if masked else {})},
            sensitivity=self._sensitivity(),
            not_protected=(
                GROUPS,
                f"people in more than {unit.parties} of the groups" if shared else beyond_unit(unit),
                f"{sizes}, the column, its bounds and the set of parameters: they are public",
                "against a wrong family: intervals are valid only for the named distribution, of clipped values",
                *((pooled,) if masked else ()),
                *((ALIGNED,) if shared else ()),
                *((f"by the ledger of {' or '.join(unread)}: {_UNREAD}",) if unread else ()),
            ),
            departures=self._departures(),
        )

    def _sensitivity(self) -> str:
        unit, size = self.terms.unit, len(self.layout.least)
        change = (
            f"replacing one row changes the sums by the difference of two lines of a public table: at most "
            f"{self.layout.l1} steps in l1 and {self.layout.l2_squared} in squared l2"
        )
        if self.blocks:
            change = (
                f"replacing one row changes the estimate of one block, by at most {FINE} steps in each of {size} "
                f"parameter(s): {size * FINE} in l1, {size * FINE**2} in squared l2. Rows are assigned to "
                "blocks independently of their values"
            )
        if unit.neighbours == "add_remove":
            change += (
                ". A party draws as many rows as the study says, so that adding or removing a person replaces at most "
                "one of them"
            )
        noise = "each party's noise" if self.masked_sum is None else "the noise of the one sum"
        where = "in no more than {} of the groups" if shared_people(self.terms) else "at no more than {} of the parties"
        return f"{change}. A person is {where.format(unit.parties)}; {noise} is calibrated to that"

    def _departures(self) -> tuple[str, ...]:
        """Return the claims of the paper that the published variant does not meet."""
        claimed = {party: min(one.epsilon for one in own) for party, own in granted(self.terms).items()}
        published = {party: law.event for party, law in self.noise.items() if isinstance(law, PublishedLaplace)}
        if not published:
            return ()
        factor = float(max(event.epsilon / claimed[party] for party, event in published.items()))
        euclidean = "the Euclidean diameter is used where independent Laplace noise needs the l1 diameter"
        rows = f"noise for k block means is n / k times what the mean of all rows needs, and {euclidean}"
        estimates = (
            f"corrected block estimates leave the set to whose diameter the noise is calibrated, and {euclidean}"
        )
        order = "blocks are consecutive rows: if rows are sorted by value, one row can move all others to other blocks"
        return (
            estimates if self.blocks else rows,
            f"for this unit the true cost, in real arithmetic, is {factor * self.terms.unit.parties:.3g} times the "
            "stated epsilon",
            *((order,) if self.blocks else ()),
            "the noise is drawn in floating point, for which no guarantee is proven",
        )


def _listed(numbers: Array) -> str:
    """Return numbers to three digits."""
    return ", ".join(f"{number:.3g}" for number in numbers)
