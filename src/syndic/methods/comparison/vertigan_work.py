"""One round of VertiGAN at a party, and rows from the finished generator. Needs torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from syndic.model.gan.networks import critic_gradients, generator_gradient, made_codes, made_rows
from syndic.model.gan.shape import BITS, Flat, GanShape, clipped_sum, descend
from syndic.noise import FineGaussian
from syndic.noise.inverse_cdf import uniform
from syndic.random import Randomness

# batch sizes: people whose gradients are computed together, and rows drawn together
SEATS = 32
_ROWS = 4096


@final
@dataclass(frozen=True, kw_only=True)
class CriticWork:
    """The training of a party's critic; everything but the rows is public."""

    shape: GanShape
    noise: FineGaussian
    steps: int
    batch: int
    rate: float
    penalty: float
    temperature: float

    def trained(
        self,
        critic: tuple[Flat, Flat],
        generator: tuple[Flat, Flat],
        codes: NDArray[Any],
        *,
        noise: Randomness,
        draws: np.random.Generator,
    ) -> tuple[Flat, Flat]:
        """Take the noisy steps of one round; return the critic's weights and running squares.

        `noise` draws the samples and the noise. Generated rows come from `draws` and belong to positions in the table:
        the generated row that a person is compared with does not depend on who else is sampled.
        """
        weights, squares = critic
        people = len(codes)
        for _ in range(self.steps):
            made = made_rows(self.shape, *generator, self.shape.inputs(self.batch, draws), self.temperature)
            between = draws.random(self.batch, dtype=np.float32)
            taken = np.flatnonzero(uniform(people, people, noise) < self.batch)
            total = self.summed(weights, codes, taken, (made, between))
            gradient = self.noise.apply(total, noise) / (2.0**BITS * self.batch)
            weights, squares = descend(weights, squares, gradient, self.rate)
        return weights, squares

    def summed(
        self, weights: Flat, codes: NDArray[Any], taken: NDArray[np.int64], compared: tuple[Flat, Flat]
    ) -> NDArray[np.int64]:
        """Return the sum of the clipped gradients of the people in a sample. Private.

        The last bit of a floating-point result depends on how many rows are computed together and on the row's
        position. So a batch always has `SEATS` rows, empty or not, and a person's position in it follows from their
        position in the table: to the last bit, nobody's gradient depends on who else was sampled.
        """
        total = np.zeros(len(weights), dtype=np.int64)
        for part in seated(taken):
            seats, other = part % SEATS, part % self.batch
            real = np.zeros((SEATS, self.shape.width), dtype=np.float32)
            made, between = np.zeros_like(real), np.zeros(SEATS, dtype=np.float32)
            real[seats], made[seats], between[seats] = (
                self.shape.one_hot(codes[part]),
                compared[0][other],
                compared[1][other],
            )
            gradients = critic_gradients(self.shape, weights, real, made, between, self.penalty)
            total += clipped_sum(gradients[seats])
        return total

    def pushed(self, critic: Flat, generator: tuple[Flat, Flat], draws: np.random.Generator) -> tuple[Flat, Flat]:
        """Return the critic's gradients for trunk and branch, on rows generated from `draws`."""
        inputs = self.shape.inputs(self.batch, draws)
        return generator_gradient(self.shape, *generator, critic, inputs, self.temperature)


def seated(taken: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Split people into batches in which everybody has a distinct position, their table position modulo `SEATS`."""
    ordered = taken[np.argsort(taken % SEATS, kind="stable")]
    seats = ordered % SEATS
    turns = np.arange(len(seats)) - np.searchsorted(seats, seats, side="left")
    return [ordered[turns == turn] for turn in range(int(turns.max(initial=-1)) + 1)]


def drawn_codes(
    shapes: Mapping[str, GanShape], weights: Mapping[str, Flat], trunk: Flat, rows: int, draws: np.random.Generator
) -> dict[str, NDArray[np.int64]]:
    """Return codes of complete rows by party; every branch gets the same normal inputs."""
    parts: dict[str, list[NDArray[np.int64]]] = {
        name: [np.zeros((0, len(shape.sizes)), dtype=np.int64)] for name, shape in shapes.items()
    }
    noise = next(iter(shapes.values())).noise
    for start in range(0, rows, _ROWS):
        count = min(_ROWS, rows - start)
        normal = draws.standard_normal((count, noise), dtype=np.float32)
        for name, shape in shapes.items():
            inputs = normal, shape.gumbel(count, draws)
            parts[name].append(made_codes(shape, trunk, weights[name], inputs))
    return {name: np.concatenate(part) for name, part in parts.items()}
