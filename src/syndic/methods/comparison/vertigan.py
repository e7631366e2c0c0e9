"""VertiGAN: one generator of all columns, a critic at every party (Jiang, Zhang, Zhou and Grossklags, PoPETs 2023).

The coordinator has a generator with a shared trunk and a branch for each party. Each party has a critic, which
distinguishes its own columns from the output of its branch and never leaves the party. In each round a party gets
trunk, branch and a seed, trains its critic by noisy gradients, and answers with gradients for trunk and branch. The
seed is the same for all parties: rows generated from the same numbers link the columns of different parties.

*Neighbours*: one person's values are replaced, at all parties at once; which people are in the data is public. *Only
the critics see rows*, and only through noisy sums over random samples: every person is sampled independently with the
same probability in every step of every party. A person's gradient depends only on their own row, is clipped to length 1
and rounded towards zero to whole numbers; integer Gaussian noise is added to the sum over the sample. Everything a
party answers follows from such sums. *Cost*: steps of all rounds and all parties add up, by the privacy loss of noisy
sums over samples (`syndic.privacy.sampled`); every party is charged for the whole.

*Who sees what*: everybody may see every weight and every gradient that is sent. Nobody needs to be trusted.

The published implementation is corrected here: its gradient penalty was one mean over a batch, so that a person's
gradient depended on others, and its noise came from a list made for another table.
"""

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError, MissingExtraError, RefusedError
from syndic.kernel import SAME_PEOPLE, Message, Method, Nothing, Party, Session, Terms, schema_of, step
from syndic.methods.comparison.vertigan_plan import GanTable, VertiganPlan, plan_training, read_gan
from syndic.model.gan.shape import Flat, GanShape, descend
from syndic.mpc.order import advance
from syndic.random import SimulationRandomness, generator

if TYPE_CHECKING:
    from syndic.methods.comparison.vertigan_work import CriticWork

_TRAINING = "training of the critic"
_CRITIC = "critic"
_SEED_BITS = 62


class GanRound(Message):
    """The current generator, as 32-bit floats, and the seed of this round's rows. Public."""

    number: int
    trunk: bytes
    branch: bytes
    seed: int


class GanPush(Message):
    """The critic's gradients for trunk and branch, as 32-bit floats."""

    trunk: bytes
    branch: bytes


class _Critic(Message):
    weights: bytes
    squares: bytes


@final
class Vertigan(Method, tag="vertigan"):
    """Parameters of VertiGAN.

    `rounds`: the number of generator updates. `critic_steps`: noisy steps of each critic before each update. `batch`:
    the mean number of people in a sample, and the number of generated rows it is compared with. `rate`: the learning
    rate of RMSprop, for all networks. `penalty`: the weight of the gradient penalty in the critic's loss.
    `temperature`: of the softmax that gradients pass through. `trunk`, `branch`, `critic`: sizes of hidden layers.
    `noise`: the number of normal inputs for a row; by default the number of levels of all columns. `rows`: of the
    synthetic table, by default the number of people.
    """

    title: ClassVar[str] = "VertiGAN, a generator trained against a critic at every party"
    paper: ClassVar[str] = (
        "Jiang et al., Distributed GAN-based privacy-preserving publication of vertically-partitioned data, PoPETs 2023"
    )
    partition: ClassVar[Literal["horizontal", "vertical"]] = "vertical"
    trust: ClassVar[str] = "nobody: each party adds all the noise that its own critic needs"

    rounds: int = 100
    critic_steps: int = 10
    batch: int = 100
    rate: float = 1e-4
    penalty: float = 10.0
    temperature: float = 0.5
    trunk: tuple[int, ...] = (128, 256)
    branch: tuple[int, ...] = (256, 128)
    critic: int = 128
    noise: int | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        counts = {name: getattr(self, name) for name in ("rounds", "critic_steps", "batch", "critic", "noise")}
        for name, value in counts.items():
            if value is not None and value < 1:
                raise ValueError(f"{name} ({value}) must be at least 1")
        for name, sizes in (("trunk", self.trunk), ("branch", self.branch)):
            if not sizes or min(sizes) < 1:
                raise ValueError(f"{name} ({list(sizes)}) must have one or more sizes of at least 1")
        for name in ("rate", "temperature"):
            if not 0 < getattr(self, name) < 1e6:
                raise ValueError(f"{name} ({getattr(self, name)}) must be positive and below 1e6")
        if not 0 <= self.penalty < 1e6:
            raise ValueError(f"penalty ({self.penalty}) must be at least 0 and below 1e6")
        if self.rows is not None and self.rows < 0:
            raise ValueError(f"rows ({self.rows}) must not be negative")

    # the same people at every party, each with columns of its own
    requires = SAME_PEOPLE

    def plan(self, terms: Terms) -> VertiganPlan:
        """Size the networks and calibrate the noise of every step."""
        people = terms.parties[0].people or 0
        if self.batch > people:
            raise InputError(f"batch ({self.batch}) must be at most the number of people ({people})")
        return plan_training(terms, self._shapes(terms), self.rounds, self.critic_steps, self.batch, self.rows)

    @step(reveals="public")
    def begin(self, party: Party[VertiganPlan], message: Nothing) -> Nothing:
        """Draw random initial weights for this party's critic."""
        _check_torch()
        advance(party, _TRAINING, 1)
        weights = party.plan.shapes[party.name].critic.initial(generator(party.key_randomness(_CRITIC)))
        party.remember(_CRITIC, _Critic(weights=_sent(weights), squares=_sent(np.zeros_like(weights))))
        return message

    @step(reveals="noisy")
    def train(self, party: Party[VertiganPlan], message: GanRound) -> GanPush:
        """Train the critic by noisy gradients on samples of rows, and return gradients for the generator."""
        work = self._work(party.plan, party.name)
        if not 1 <= message.number <= self.rounds:
            raise RefusedError(f"round {message.number} was requested; the study has rounds 1 to {self.rounds}")
        advance(party, _TRAINING, message.number + 1)
        shape, kept = work.shape, party.recall(_CRITIC, _Critic)
        network = _received(message.trunk, shape.trunk.length), _received(message.branch, shape.branch.length)
        critic = _received(kept.weights, shape.critic.length), _received(kept.squares, shape.critic.length)
        codes = _codes(party)
        event = party.plan.charges[message.number - 1]
        why = f"round {message.number} of {self.rounds}: {self.critic_steps} noisy sums over samples of rows"
        noise = party.charge(event, why=why)
        draws = generator(SimulationRandomness(message.seed, f"critic {party.name}"))
        weights, squares = work.trained(critic, network, codes, noise=noise, draws=draws)
        party.remember(_CRITIC, _Critic(weights=_sent(weights), squares=_sent(squares)))
        pushed = work.pushed(weights, network, generator(SimulationRandomness(message.seed, "common rows")))
        return GanPush(trunk=_sent(pushed[0]), branch=_sent(pushed[1]))

    def coordinate(self, session: Session[VertiganPlan]) -> GanTable:
        """Update the generator by the critics' gradients, round by round; then draw rows from it."""
        _check_torch()
        plan, shapes = session.plan, session.plan.shapes
        draws = generator(session.randomness)
        trunk = _fresh(shapes[session.parties[0]].trunk.initial(draws))
        branches = {name: _fresh(shape.branch.initial(draws)) for name, shape in shapes.items()}
        session.ask(self.begin, Nothing())
        for number in range(1, self.rounds + 1):
            session.progress("train", number - 1, self.rounds)
            seed = int(draws.integers(1 << _SEED_BITS))
            asked = {
                name: GanRound(number=number, trunk=_sent(trunk[0]), branch=_sent(branches[name][0]), seed=seed)
                for name in session.parties
            }
            answers = session.ask(self.train, asked)
            pushes = [_received(answers[name].trunk, len(trunk[0])) for name in session.parties]
            trunk = descend(*trunk, np.sum(pushes, axis=0), self.rate)
            for name in session.parties:
                push = _received(answers[name].branch, len(branches[name][0]))
                branches[name] = descend(*branches[name], push, self.rate)
        session.progress("train", self.rounds, self.rounds)
        model = plan.generator(trunk[0], {name: one[0] for name, one in branches.items()})
        return GanTable(table=model.sample(plan.rows, generator=draws), model=model, note=plan.note)

    def read(self, plan: VertiganPlan, folder: Path) -> GanTable:
        """Read back the synthetic table and the generator."""
        return read_gan(plan, folder)

    def _shapes(self, terms: Terms) -> dict[str, GanShape]:
        """Return the networks of each party."""
        domains = {party.name: schema_of(terms, party.name).domain for party in terms.parties}
        noise = self.noise or sum(sum(domain.sizes) for domain in domains.values())
        return {
            name: GanShape(
                sizes=domain.sizes,
                noise=noise,
                trunk_widths=self.trunk,
                branch_widths=self.branch,
                critic_width=self.critic,
            )
            for name, domain in domains.items()
        }

    def _work(self, plan: VertiganPlan, party: str) -> "CriticWork":
        """Return the training procedure of a party's critic."""
        _check_torch()
        from syndic.methods.comparison.vertigan_work import CriticWork  # noqa: PLC0415 (torch is an extra)

        shape = plan.shapes[party]
        return CriticWork(
            shape=shape,
            noise=plan.noise(shape.critic.length),
            steps=self.critic_steps,
            batch=self.batch,
            rate=self.rate,
            penalty=self.penalty,
            temperature=self.temperature,
        )


def _codes(party: Party) -> NDArray[np.int32]:
    """Return the party's rows as codes, a column each. Private."""
    names = schema_of(party.terms, party.name).names
    batches = party.table.batches(names)
    parts = [np.stack([batch[name].astype(np.int32) for name in names], axis=1) for batch in batches]
    return np.concatenate([np.zeros((0, len(names)), dtype=np.int32), *parts])


def _check_torch() -> None:
    try:
        from syndic.model.gan import networks as gan  # noqa: F401, PLC0415  # torch is an extra
    except ImportError:
        # a party reports this to the coordinator with the usual message of a missing extra
        raise RefusedError(str(MissingExtraError("torch", "gan"))) from None


def _fresh(weights: Flat) -> tuple[Flat, Flat]:
    return weights, np.zeros_like(weights)


def _sent(values: Flat) -> bytes:
    return values.astype("<f4").tobytes()


def _received(data: bytes, length: int) -> Flat:
    """Return the numbers of a message; refuse anything but `length` finite numbers."""
    if len(data) != 4 * length:
        raise RefusedError(f"a network of {length} weights must have {4 * length} bytes, not {len(data)}")
    values = np.frombuffer(data, dtype="<f4").astype(np.float32)
    if not np.isfinite(values).all():
        raise RefusedError("a network's weights must be finite numbers")
    return values
