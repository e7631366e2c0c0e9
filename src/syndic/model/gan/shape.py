"""Networks as flat vectors: sizes, initial weights, update steps, and clipping of one person's gradient.

A network is a chain of linear layers; its weights are one vector, each layer's matrix (outputs x inputs) and then its
offsets. Nothing here needs torch; differentiation is in `syndic.model.gan.networks`.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

Flat = NDArray[np.float32]

BITS: Final = 20
"""Every entry of a clipped gradient is a whole multiple of 2^-BITS."""

_DECAY: Final = 0.99
_TINY: Final = 1e-8
# weights are limited to this, so that a badly chosen rate gives a bad table instead of an error
_LARGEST: Final = 1e6
# clipping in floating point stays slightly below the bound, so that rounding never exceeds it
_BELOW: Final = 1 - 2.0**-30


@final
@dataclass(frozen=True)
class Chain:
    """A chain of linear layers, given by the number of values before, between and after them."""

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
    """One party's networks: the shared trunk, its branch of the generator, and its critic.

    `sizes` are the numbers of levels of its columns. The trunk maps `noise` standard normal numbers to features, the
    branch maps features to a score for each level of each column; the critic scores rows in one-hot form.
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
        """Return rows of codes in one-hot form."""
        rows = np.zeros((len(codes), self.width), dtype=np.float32)
        starts = np.cumsum([0, *self.sizes[:-1]])
        np.put_along_axis(rows, codes.astype(np.int64) + starts, 1.0, axis=1)
        return rows

    def inputs(self, rows: int, generator: np.random.Generator) -> tuple[Flat, Flat]:
        """Draw the generator's inputs for some rows: normal numbers, and a Gumbel number for each level."""
        normal = generator.standard_normal((rows, self.noise), dtype=np.float32)
        return normal, self.gumbel(rows, generator)

    def gumbel(self, rows: int, generator: np.random.Generator) -> Flat:
        """Draw a Gumbel number for each level of some rows: the largest sum with the scores is the level drawn."""
        return generator.gumbel(size=(rows, self.width)).astype(np.float32)


def clipped_sum(gradients: Flat) -> NDArray[np.int64]:
    """Return the sum over people of their gradients, each clipped to length 1, in units of 2^-BITS.

    Every entry is rounded towards zero, so rounding makes no vector longer than 2^BITS, and that is checked in exact
    arithmetic. A gradient that is not finite counts as zero: no row can make the run fail.
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
