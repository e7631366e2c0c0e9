"""Networks as flat vectors: how many weights, where they begin, how they descend, and what one person may add.

A network is a chain of linear layers; its weights are one vector, each layer's matrix (outputs x inputs) and then its
offsets. Nothing here needs the library that differentiates: see `syndic.model.gan.networks`.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

Flat = NDArray[np.float32]

BITS: Final = 20
"""A clipped gradient is a whole number of 2^-BITS in every entry."""

_DECAY: Final = 0.99
_TINY: Final = 1e-8
# no weight grows beyond it, so that a rate chosen badly ends in a bad table and not in an error
_LARGEST: Final = 1e6
# clipping in floating point ends a little below the bound, so that rounding never passes it
_BELOW: Final = 1 - 2.0**-30


@final
@dataclass(frozen=True)
class Chain:
    """A chain of linear layers: the number of values before, between and after them."""

    widths: tuple[int, ...]

    @property
    def layers(self) -> tuple[tuple[int, int], ...]:
        """Inputs and outputs of each layer."""
        return tuple(pairwise(self.widths))

    @property
    def length(self) -> int:
        """How many weights there are."""
        return sum(inputs * outputs + outputs for inputs, outputs in self.layers)

    def initial(self, generator: np.random.Generator) -> Flat:
        """Draw weights uniformly within 1 / sqrt(inputs), as is usual for linear layers."""
        parts = [
            generator.uniform(-(inputs**-0.5), inputs**-0.5, inputs * outputs + outputs)
            for inputs, outputs in self.layers
        ]
        return np.concatenate(parts).astype(np.float32)


@final
@dataclass(frozen=True, kw_only=True)
class GanShape:
    """One party's networks: a trunk that all share, its branch of the generator, and its critic.

    `sizes` are the numbers of levels of its columns. The trunk turns `noise` standard normal numbers into features, the
    branch those into a score for each level of each column; the critic judges rows in one-hot form.
    """

    sizes: tuple[int, ...]
    noise: int
    trunk_widths: tuple[int, ...]
    branch_widths: tuple[int, ...]
    critic_width: int

    @property
    def width(self) -> int:
        """The length of a row in one-hot form."""
        return sum(self.sizes)

    @property
    def trunk(self) -> Chain:
        """The layers that all parties share."""
        return Chain((self.noise, *self.trunk_widths))

    @property
    def branch(self) -> Chain:
        """The layers from the shared features to the scores of this party's levels."""
        return Chain((self.trunk_widths[-1], *self.branch_widths, self.width))

    @property
    def critic(self) -> Chain:
        """The two layers of the party's critic."""
        return Chain((self.width, self.critic_width, 1))

    def one_hot(self, codes: NDArray[Any]) -> NDArray[np.float32]:
        """Return rows of codes, a column each, as rows of zeros and ones."""
        rows = np.zeros((len(codes), self.width), dtype=np.float32)
        starts = np.cumsum([0, *self.sizes[:-1]])
        np.put_along_axis(rows, codes.astype(np.int64) + starts, 1.0, axis=1)
        return rows

    def inputs(self, rows: int, generator: np.random.Generator) -> tuple[Flat, Flat]:
        """Draw what the generator needs for some rows: normal numbers, and a Gumbel number for each level."""
        normal = generator.standard_normal((rows, self.noise), dtype=np.float32)
        return normal, self.gumbel(rows, generator)

    def gumbel(self, rows: int, generator: np.random.Generator) -> Flat:
        """Draw a Gumbel number for each level of some rows: the largest sum with the scores is the level drawn."""
        return generator.gumbel(size=(rows, self.width)).astype(np.float32)


def clipped_sum(gradients: Flat) -> NDArray[np.int64]:
    """Return the sum over people of their gradients, each shortened to length 1, in units of 2^-BITS.

    Every entry is rounded towards zero, so no vector gets longer than 2^BITS by rounding, and that is checked in exact
    arithmetic. A vector that is no number counts as zero: nothing that a row holds ends the run.
    """
    finite = np.isfinite(gradients).all(axis=1, keepdims=True)
    wide = np.where(finite, gradients, np.float32(0)).astype(np.float64)
    length = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    wide *= (2.0**BITS * _BELOW / np.maximum(length, 1.0))[:, None]
    np.trunc(wide, out=wide)
    # squares of whole numbers up to 2^20 are added exactly
    wide[np.einsum("ij,ij->i", wide, wide) > 4.0**BITS] = 0.0
    return np.asarray(wide.sum(axis=0), dtype=np.int64)


def descend(weights: Flat, squares: Flat, gradient: NDArray[Any], rate: float) -> tuple[Flat, Flat]:
    """Take one step of RMSprop; return the new weights and the new running mean of squares."""
    step = np.nan_to_num(gradient.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    squares = (_DECAY * squares + (1 - _DECAY) * step * step).astype(np.float32)
    moved = weights - rate * step / (np.sqrt(squares) + _TINY)
    return np.clip(moved, -_LARGEST, _LARGEST).astype(np.float32), squares
