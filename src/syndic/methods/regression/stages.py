"""The stages of a noisy Gram matrix: counts to rescale numbers by, if any, then sums of products; and their noise."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data.coding import Coding, Feature
from syndic.document import exact
from syndic.errors import InputError
from syndic.kernel import Group, Message, Terms, strictest_mu_squared
from syndic.methods.table_noise import TableNoise
from syndic.model.gram.matrix import halved_sensitivity_squared, places_of, sensitivity_squared, squares_of
from syndic.model.gram.rows import MOST_BITS, Clip, clip_of
from syndic.model.gram.scaling import Scale, Scaling, scaling_of
from syndic.mpc.ring import OVERFLOW, Ring, ring_for
from syndic.noise import FineGaussian, FineGaussianShare
from syndic.privacy import GaussianEvent

Lengths = tuple[tuple[int, Fraction], ...]

SCALING: Final = 0.2
"""The default share of the budget for the counts, where people are many. Less is as good there."""


class Scales(Message):
    """Centre and width of the number columns, from noisy counts; empty if numbers are scaled by their bounds."""

    common = ("scales",)
    scales: tuple[Scale, ...] = ()


@final
@dataclass(frozen=True, kw_only=True)
class Stages:
    """What one person can change and the noise of both stages; `scaling` and `first` are None if there is only one.

    `clips` are the parties whose rows are shortened. `first` is the noise of the counts: a share, or the whole where
    one party counts each column.
    """

    scaling: Scaling | None
    clips: Mapping[str, Clip]
    sensitivity: Fraction
    first: FineGaussian | FineGaussianShare | None
    noise: FineGaussianShare

    @property
    def events(self) -> tuple[GaussianEvent, ...]:
        """The events of both stages: every party is charged for all of it."""
        return (self.noise.event,) if self.first is None else (self.first.event, self.noise.event)

    @property
    def shortened(self) -> bool:
        """Whether rows are shortened so much that intervals are biased."""
        scaling = self.scaling
        return bool(self.clips) if scaling is None else not all(map(scaling.exact, self.clips.values()))

    @property
    def no_intervals(self) -> str:
        """Why regressions have no intervals, and what gives them some; nothing if rows are whole."""
        if not self.shortened:
            return ""
        if self.scaling is None:
            return "rows are shortened by `norm`, which biases estimates. For intervals set `norm = 1`"
        without = "set `scaling = 0`" + (" without `target`" if self.scaling.target else "")
        return (
            "the people are so few at this epsilon that long rows are shortened, which biases estimates. For intervals "
            f"use more people or a larger epsilon, or {without}: they are then wide"
        )

    @property
    def unit(self) -> str:
        """What a number counts as in a sum, in words."""
        if self.scaling is None:
            return "by their bounds numbers count from -1 to 1"
        found = self.scaling
        target = f" ({found.target}: by {float(found.spread / found.finer):.3g})" if found.target else ""
        return (
            "a number counts as its distance from its column's mean, divided by "
            f"{found.spread:.3g} standard deviations of the column{target}; both are estimated from noisy counts"
        )

    @property
    def changes(self) -> str:
        """What one person changes, in words."""
        sums = f"the {self.noise.dimension} sums by at most {float(self.sensitivity):.6g} in squared l2"
        if self.scaling is None:
            return f"{sums}, for z in [-1, 1]"
        found = self.scaling
        target = f", in which {found.target} counts as {float(found.finer**2):.3g}" if found.target else ""
        weight = f" ({found.target}'s by {found.weight})" if found.weight > 1 else ""
        return (
            f"{2 * found.columns} counts by 1 each{weight}, and {sums}: rows are shortened to a mean square of "
            f"{float(found.length):.3g}{target}, and squares are opened as two halves"
        )

    @property
    def released(self) -> str:
        """What is published, in words."""
        counts = "" if self.scaling is None else "; centre and width of each number column, by noisy counts"
        return f"the noisy sums of products{counts}"

    @property
    def longest(self) -> Fraction:
        """The largest absolute value of a feature."""
        return Fraction(1) if self.scaling is None else max(Fraction(1), self.scaling.reach * self.scaling.finer)

    def flags(self, codings: tuple[Coding, ...]) -> int:
        """Return how many levels for missing values count as blocks of their own, beside rescaled numbers."""
        return 0 if self.scaling is None else sum(len(each.features) > 1 for each in codings if each.numbers == 1)

    def check_room(self, people: int, bits: int) -> int:
        """Return the largest sum and its noise together; refuse it if 64 bits have no room for it."""
        noise = self.noise
        most = people * int(self.longest * 2**bits) ** 2 + noise.tail(OVERFLOW / noise.dimension, noise.parties)
        if most.bit_length() + 1 > MOST_BITS:
            raise InputError(
                f"sums of {most.bit_length() + 1} bits leave no room for noise in 64 bits: set bits below {bits}"
            )
        return most

    def counts_ring(self, people: int) -> Ring:
        """Return the ring of the sum of counts: it has room for all people in one bin, and for the noise."""
        first, scaling = self.first, self.scaling
        if first is None or scaling is None:
            return ring_for(0)
        rare = OVERFLOW / (scaling.columns * scaling.bins)
        tail = first.tail(rare, first.parties) if isinstance(first, FineGaussianShare) else first.tail(rare)
        return ring_for(scaling.weight * people * first.scale + tail)

    def first_at(self, own: NDArray[np.bool_]) -> FineGaussianShare | TableNoise:
        """Return the noise that a party adds to the counts, of which it has `own`."""
        first = self.first
        assert first is not None  # noqa: S101 (numbers are rescaled)
        if isinstance(first, FineGaussianShare):
            return first
        return TableNoise(first.event, first, first, np.zeros_like(own), own, first.scale)

    def coded(self, codings: tuple[Coding, ...], scales: tuple[Scale, ...]) -> tuple[Coding, ...]:
        """Return some codings as they are in the second stage."""
        return codings if self.scaling is None else self.scaling.rescaled(codings, scales)

    def allowed(self, codings: tuple[Coding, ...], scales: tuple[Scale, ...]) -> bool:
        """Return whether these are scales of the columns; without a scaling there must be none."""
        return not scales if self.scaling is None else self.scaling.allowed(codings, scales)

    def split(self, values: NDArray[np.int64], features: tuple[Feature, ...]) -> NDArray[np.int64]:
        """Return the values to open: with a scaling, squares of numbers as two halves, the second halves last."""
        if self.scaling is None:
            return values
        squares, parts = squares_of(features), values.copy()
        parts[squares] //= 2
        return np.concatenate([parts, parts[squares]])

    def joined(self, opened: NDArray[np.int64], features: tuple[Feature, ...]) -> NDArray[np.int64]:
        """Return the sums from what was opened."""
        if self.scaling is None:
            return opened
        squares = squares_of(features)
        sums = opened[: len(opened) - len(squares)].copy()
        sums[squares] += opened[len(sums) :]
        return sums


def check_share(scaling: float) -> None:
    """Refuse a share of the budget outside [0, 0.5]."""
    if not 0 <= scaling <= 0.5:
        raise ValueError(f"scaling ({scaling}) must be from 0 to 0.5: the share of the budget that rescales numbers")


def stages_of(  # noqa: PLR0913  # all by name
    terms: Terms,
    codings: tuple[Coding, ...],
    features: tuple[Feature, ...],
    *,
    groups: Sequence[Group],
    held: Mapping[str, tuple[Coding, ...]],
    presences: int,
    scaling: float,
    norm: float,
    exempt: tuple[str, ...],
    target: str | None,
    colluding: int,
    missing: int,
) -> Stages:
    """Return the stages for the strictest budget.

    A party clips what it has of a row, `held`. A person is in one group, so the sensitivity is the largest of a group.
    In one group each column is counted by one party, with the whole noise. Products of columns, people that may be
    absent and a `norm` below 1 have one stage, without a target.
    """
    share = exact(scaling)
    if presences or norm < 1 or any(len(block.columns) > 1 for block in codings):
        share = Fraction(0)
    parties, people = len(terms.parties), sum(group.people for group in groups)
    count = int(places_of(features).max()) + 1
    shares = partial(FineGaussianShare, parties=parties, colluding=colluding, missing=missing)

    def noise_on(count: int, square: Fraction, mu_squared: Fraction) -> FineGaussianShare:
        square *= 16 ** codings[0].bits
        return shares(
            sensitivity_squared=square, mu_squared=mu_squared, changed=count, dimension=count, fraction_bits=0
        )

    def made(slack: Fraction) -> Stages:
        mu_squared = strictest_mu_squared(terms, slack)
        alone = len(groups) == 1
        excess = Fraction(1) if alone else Fraction(parties, parties - colluding - missing)
        rescale = partial(scaling_of, codings, people, share=share, excess=excess, target=target)
        found = rescale(mu_squared=mu_squared) if share else None
        if found is None:
            clips, lengths = _clipped(held, groups, lambda blocks: clip_of(blocks, exact(norm), exempt))
            square = max(sensitivity_squared(codings, presences, one) for one in lengths)
            noise = noise_on(count, square, mu_squared)
            return Stages(scaling=None, clips=clips, sensitivity=square, first=None, noise=noise)
        clips, lengths = _clipped(held, groups, found.clip)
        square = max(halved_sensitivity_squared(codings, one) for one in lengths)
        changed, budget = 2 * found.columns, found.share * mu_squared
        moved, places = Fraction(found.moved), found.columns * found.bins
        return Stages(
            scaling=found,
            clips=clips,
            sensitivity=square,
            first=FineGaussian(sensitivity_squared=moved, mu_squared=budget, changed=changed)
            if alone
            else shares(sensitivity_squared=moved, mu_squared=budget, changed=changed, dimension=places),
            noise=noise_on(count + len(squares_of(features)), square, mu_squared - budget),
        )

    # including the slack adds noise, which lowers the slack: twice the first value is always enough
    return made(2 * sum((event.slack for event in made(Fraction(0)).events), Fraction(0)))


def _clipped(
    held: Mapping[str, tuple[Coding, ...]],
    groups: Sequence[Group],
    clip: Callable[[tuple[Coding, ...]], Clip | None],
) -> tuple[dict[str, Clip], set[Lengths]]:
    """Return the clips of all parties, and their blocks and lengths in every kind of group."""
    known = {blocks: clip(blocks) for blocks in set(held.values())}
    clips = {name: found for name, blocks in held.items() if (found := known[blocks]) is not None}
    owners = ([clips[name] for name in group.parties if name in clips] for group in groups)
    return clips, {tuple((one.blocks, one.length) for one in own) for own in owners}
