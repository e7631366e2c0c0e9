"""VertiGAN's networks, what the training of all critics costs one person, who sees what, and what is published.

A person has a row at every party, and every party takes noisy steps in every round: all of them add up. The cost of so
many steps is only known in total, so all of it is charged in the first round, before any noise is drawn. Every later
round is charged one unit of the ledger, 1e-12, because noise is drawn only after a charge. A run that ends early is
then charged for more than it used, never for less.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from syndic.data import ReleasedTable, Schema, decode_codes
from syndic.document import Document, from_file
from syndic.errors import InputError, MissingExtraError
from syndic.kernel import ALIGNED, GROUPS, Disclosure, Plan, Resources, Result, Terms, read_table, schema_of, strictest
from syndic.kernel.result import unreadable
from syndic.model.gan.shape import BITS, Flat, GanShape
from syndic.noise import FineGaussian
from syndic.privacy import ApproximateEvent, Event, PureEvent
from syndic.privacy.concentrated import PICO
from syndic.privacy.gaussian import ATTO
from syndic.privacy.sampled import LEAST_SIGMA, sampled_sigma
from syndic.random import SystemRandomness
from syndic.random import generator as new_generator

_MARK: Final = Fraction(1, PICO)
# bytes of one weight of one person's gradient: as computed, widened, squared, rounded
_GRADIENT_BYTES = 48
_PEOPLE = 32
# seconds of processor time for one weight of one person's gradient, for one person drawn or not, for one drawn value
_PER_WEIGHT, _PER_PERSON, _PER_VALUE = 8e-9, 3e-8, 5e-8


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ReleasedGenerator:
    """A trained generator. Its weights are released: anyone may draw from it, at no cost.

    `columns` are those of each party, in the order of its branch.
    """

    schema: Schema
    columns: Mapping[str, tuple[str, ...]]
    shapes: Mapping[str, GanShape]
    trunk: Flat
    branches: Mapping[str, Flat]

    def sample(self, rows: int, *, generator: np.random.Generator | None = None) -> ReleasedTable:
        """Draw rows; pass a seeded `generator` for a reproducible draw. It need not be secret."""
        try:
            from syndic.methods.comparison.vertigan_work import drawn_codes  # noqa: PLC0415 (torch is an extra)
        except ImportError:
            raise MissingExtraError("torch", "gan") from None
        if rows < 0:
            raise InputError(f"rows ({rows}) must not be negative")
        generator = new_generator(SystemRandomness()) if generator is None else generator
        drawn = drawn_codes(self.shapes, self.branches, self.trunk, rows, generator)
        codes = {
            column: drawn[party][:, place]
            for party, names in self.columns.items()
            for place, column in enumerate(names)
        }
        return decode_codes(self.schema, codes, generator)

    def save(self, path: Path) -> None:
        """Write the weights as `.npz`."""
        branches = {f"branch {name}": weights for name, weights in self.branches.items()}
        np.savez(path, trunk=self.trunk, **branches)  # type: ignore[arg-type]


class GanNote(Document):
    """How the table was made. Public. `sigma` is the noise on a sum, as a multiple of what one person can add."""

    rounds: int
    critic_steps: int
    batch: int
    sigma: float
    noisy_steps: int


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class GanTable(Result):
    """The synthetic table and its generator. All of it is released."""

    table: ReleasedTable
    model: ReleasedGenerator
    note: GanNote

    def files(self) -> Mapping[str, Any]:
        """Return `synthetic.parquet`, the weights `generator.npz`, and `vertigan.json`."""
        return {"synthetic.parquet": self.table, "generator.npz": self.model, "vertigan.json": self.note}

    def summary(self) -> Mapping[str, Any]:
        """Return a few facts about the table and the training."""
        return {
            "rows": len(self.table),
            "columns": len(self.table.names),
            "rounds": self.note.rounds,
            "noisy steps of all critics": self.note.noisy_steps,
            "sigma": round(self.note.sigma, 4),
        }


@final
class VertiganPlan(Plan):
    """The networks of each party; the noise of a step, as a multiple of the clipping norm; the charge of each round.

    `chance`: the sampling probability of a person. `steps`: noisy sums over all rounds and parties. `rows`: to draw.
    """

    shapes: Mapping[str, GanShape]
    critic_steps: int
    batch: int
    rows: int
    sigma: Fraction
    chance: Fraction
    steps: int
    charges: tuple[Event, ...]

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns of each party, in the order of its branch."""
        return {party.name: schema_of(self.terms, party.name).names for party in self.terms.parties}

    def generator(self, trunk: Flat, branches: Mapping[str, Flat]) -> ReleasedGenerator:
        """Return the generator with these weights."""
        return ReleasedGenerator(
            schema=self.terms.schema, columns=self.columns, shapes=self.shapes, trunk=trunk, branches=branches
        )

    @property
    def note(self) -> GanNote:
        """How the table is made."""
        return GanNote(
            rounds=len(self.charges),
            critic_steps=self.critic_steps,
            batch=self.batch,
            sigma=float(self.sigma),
            noisy_steps=self.steps,
        )

    def noise(self, length: int) -> FineGaussian:
        """Return the noise of one step on a critic of this many weights, in units of 2^-BITS."""
        return _noise(self.sigma, length)

    # new critics, then the rounds of training
    rounds = ("begin", "train")

    def events(self, party: str) -> tuple[Event, ...]:
        """The whole cost in the first round, and one ledger unit in every later one; the same for every party."""
        self.check_party(party)
        return self.charges

    @property
    def resources(self) -> Resources:
        """Memory at the busiest role, bytes of a message, and the approximate time of all roles."""
        people, shapes, rounds = self.terms.parties[0].people or 0, self.shapes.values(), len(self.charges)
        critic = max(shape.critic.length for shape in shapes)
        message = max(4 * (shape.trunk.length + shape.branch.length) for shape in shapes)
        columns, width = len(self.terms.schema.columns), sum(shape.width for shape in shapes)
        each = sum(self.batch * shape.critic.length * _PER_WEIGHT + people * _PER_PERSON + 2e-3 for shape in shapes)
        moves = sum(1e-7 * (shape.trunk.length + shape.branch.length) for shape in shapes)
        seconds = rounds * (self.critic_steps * each + moves + people * columns * 3e-8)
        return Resources(
            memory_bytes=4 * 10**8
            + _PEOPLE * critic * _GRADIENT_BYTES
            + 64 * people
            + 8 * columns * (people + 3 * self.rows),
            reply_bytes=message + 200,
            rounds=rounds + 2,
            seconds=round(3.0 + seconds + self.rows * width * _PER_VALUE, 1),
            notes=(
                f"{self.steps:,} noisy steps over {len(shapes)} parties; noise {float(self.sigma):.4g} times what "
                f"one person can add, on a sum over about {self.batch} people",
                f"about {2e-6 * rounds * message:,.0f} MB to and from each party",
                'the method "synthesis" makes much more accurate tables, if no party colludes with the coordinator',
            ),
        )

    too_large = ("a run", "use smaller networks")

    @property
    def disclosure(self) -> Disclosure:
        """What every role sees."""
        return Disclosure(
            sees={
                "coordinator": (
                    "the generator and each critic's gradients for it, in every round, and the rows drawn from it"
                ),
                "other parties": "the trunk and their own branch of the generator in every round, and the release",
                "anyone with the release": "the finished generator and the rows drawn from it",
            },
            sensitivity=(
                "a person adds one gradient of length at most 1, computed from their own row alone, to each sum whose "
                f"sample contains them, with probability {float(self.chance):.4g}, sampled anew for each of "
                f"{self.steps} sums over all rounds and parties; replacing the person's values at all parties turns "
                "that gradient into any other of length at most 1"
            ),
            not_protected=(ALIGNED, GROUPS, "the columns, bounds, labels and the number of people: they are public"),
        )


def plan_training(
    terms: Terms, shapes: Mapping[str, GanShape], rounds: int, critic_steps: int, batch: int, rows: int | None
) -> VertiganPlan:
    """Calibrate the noise of every step to the strictest budget."""
    budget = strictest(terms)
    epsilon, delta = budget.epsilon, Fraction(floor(budget.delta * ATTO), ATTO)
    people = terms.parties[0].people or 1
    steps, chance = rounds * critic_steps * len(terms.parties), Fraction(batch, people)
    whole = Fraction(floor(epsilon * PICO), PICO) - (rounds - 1) * _MARK
    if whole <= 0:
        raise InputError(f"epsilon ({float(epsilon):g}) is too small for {rounds} rounds: use fewer rounds")
    # at the smallest noise, which bounds it for all larger noise
    longest = max(shape.critic.length for shape in shapes.values())
    sigma = sampled_sigma(whole, delta, chance, steps, steps * _noise(LEAST_SIGMA, longest).event.slack)
    what = f"{steps} sums over samples with Gaussian noise, sigma {float(sigma):g}, over all rounds and parties"
    later = PureEvent(epsilon=_MARK, what="a later round, charged in the first")
    return VertiganPlan(
        terms=terms,
        shapes=shapes,
        critic_steps=critic_steps,
        batch=batch,
        rows=people if rows is None else rows,
        sigma=sigma,
        chance=chance,
        steps=steps,
        charges=(ApproximateEvent(epsilon=whole, delta=delta, what=what), *[later] * (rounds - 1)),
    )


def _noise(sigma: Fraction, length: int) -> FineGaussian:
    return FineGaussian(sensitivity_squared=Fraction(4**BITS), mu_squared=1 / sigma**2, changed=length, fraction_bits=0)


def read_gan(plan: VertiganPlan, folder: Path) -> GanTable:
    """Read back what a `GanTable` wrote."""
    shapes = plan.shapes
    if from_file(folder / "vertigan.json", GanNote) != plan.note:
        raise InputError(f"{folder.name}: vertigan.json does not belong to this study")
    table = read_table(folder, "synthetic.parquet")
    try:
        with np.load(folder / "generator.npz", allow_pickle=False) as found:
            trunk = np.asarray(found["trunk"], dtype=np.float32)
            branches = {name: np.asarray(found[f"branch {name}"], dtype=np.float32) for name in shapes}
    except (OSError, ValueError, KeyError) as error:
        raise unreadable(folder, error) from None
    first = next(iter(shapes.values()))
    fits = all(weights.shape == (shapes[name].branch.length,) for name, weights in branches.items())
    if trunk.shape != (first.trunk.length,) or not fits:
        raise InputError(f"{folder.name}: generator.npz does not have the networks of this study")
    return GanTable(table=ReleasedTable(table), model=plan.generator(trunk, branches), note=plan.note)
