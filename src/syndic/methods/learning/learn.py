"""Linear models from the rows of all parties, by private empirical risk minimisation (Jayaraman et al. 2018).

"posterior": moments, products and gradients are summed in few rounds (`syndic.model.erm.posterior`). "mpc_grad": in
every round each party sums its records' gradients, each clipped to a public norm, adds its share of one noise and masks
the result (`syndic.mpc.masked_sum`); everybody sees the noisy sum and all iterates. "mpc_out": each party minimises its
own objective, and the average of the models is opened once, with one noise. "local_grad", "local_out": the same with
full noise at every party, so that no masks are needed. "pathak": "mpc_out" with the noise of one party's model.
"newton": as "mpc_grad" in a few rounds, some of which also sum curvatures (`syndic.model.erm.second_order`).

Sound by default. Rows lie inside the unit ball by declared bounds. Sums are whole numbers with exact integer noise. The
intercept is penalised like all weights. Sums are divided by the public number of people, so sensitivities hold for
add/remove and for replace, and no minimum size is needed. Solvers prove how close they are to the minimiser.
Neighbours and what each role sees: module `plan`. The paper's variants that do not hold are in the lab, `bench/erm`.
"""

from pathlib import Path
from typing import ClassVar, Final, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import BudgetError, PartyError, RefusedError
from syndic.kernel import UNDER_MASKS, Message, Method, Party, Requires, Session, Terms, step
from syndic.methods.learning.noise import Noise, RoundNoise
from syndic.methods.learning.plan import LearnPlan, plan_of
from syndic.methods.learning.result import LearnModel, LearnResult, read_model, split_weights
from syndic.methods.learning.scheme import Opened
from syndic.model.erm.loss import SQUARED, Huber, Logistic, Loss, Numbers, Objective, SmoothedHinge, Softmax
from syndic.mpc.masked_sum import SumCoordinator, SumMasked

SchemeName = Literal["posterior", "mpc_grad", "mpc_out", "newton", "local_grad", "local_out", "pathak"]
_MASKED: Final = ("posterior", "mpc_grad", "mpc_out", "newton", "pathak")
_AVERAGED: Final = ("mpc_out", "pathak", "local_out")
# the sums of gradients by default
_ROUNDS: Final = {"posterior": 7, "newton": 24}
# what the scheme "posterior" has no use for, and the defaults
_UNUSED: Final = {"regularisation": 0.001, "clip": 1.0, "rate": None, "scale": "unit", "intercept": True}


class Ask(Message):
    """The number of a round and the public weights (model, feature) at which parties evaluate."""

    common = ("round", "weights")
    round: int
    weights: NDArray[np.float64]


class Sums(Message):
    """One party's noisy numbers, in fixed-point steps."""

    values: NDArray[np.int64]


class _Answered(Message):
    round: int


@final
class Learn(Method, tag="learn"):
    """Parameters of learning.

    `label`, `positive`, `features`: the column to predict, its positive class, and the columns to predict it from.
    `scheme`: see the module. `clip`: the largest norm of one record's gradient. `iterations`, `rate`: of the gradient
    descent. `minimum`: parties with a smaller public number of people abstain. `colluding`, `missing`: how many parties
    may collude, or drop out in a round. `path`: publish every iterate, at no further cost.
    """

    title: ClassVar[str] = "Private learning from distributed rows"
    paper: ClassVar[str] = "Jayaraman, Wang, Evans and Gu 2018, Distributed learning without distress"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "horizontal"
    trust: ClassVar[str] = (
        f"masked schemes (posterior, mpc_grad, mpc_out, newton, pathak): {UNDER_MASKS}. Local schemes: nobody"
    )

    label: str
    positive: str | None = None
    features: tuple[str, ...] = ()
    scheme: SchemeName = "posterior"
    loss: Literal["logistic", "softmax", "hinge", "ridge", "huber"] = "logistic"
    regularisation: float = 0.001
    clip: float = 1.0
    iterations: int | None = None
    rate: float | None = None
    scale: Literal["unit", "symmetric"] = "unit"
    intercept: bool = True
    noise: Noise = "gaussian"
    minimum: int = 1
    colluding: int = 1
    missing: int = 0
    path: bool = False

    def __post_init__(self) -> None:
        """Check the parameters that can be checked without a study."""
        for name in ("regularisation", "clip", "rate"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 2.0**20:
                raise ValueError(f"{name} ({value}) must be positive, and at most a million")
        if self.rounds < 1 or self.minimum < 1:
            raise ValueError(f"iterations ({self.iterations}) and minimum ({self.minimum}) must be at least 1")
        unused = [name for name, default in _UNUSED.items() if getattr(self, name) != default]
        if self.scheme == "posterior" and unused:
            raise ValueError(
                f'the scheme posterior does not use {", ".join(unused)}: remove it, or set scheme = "mpc_grad"'
            )
        if self.colluding < 1 or self.missing < 0:
            raise ValueError("colluding must be at least 1, missing must not be negative")

    @property
    def masked(self) -> bool:
        """Whether all parties add one noise in a masked sum; otherwise each adds all of it."""
        return self.scheme in _MASKED

    @property
    def averages_models(self) -> bool:
        """Whether parties send models once instead of gradients in every round."""
        return self.scheme in _AVERAGED

    @property
    def rounds(self) -> int:
        """How many sums of gradients are opened: as given, by default 100, or few for schemes of few rounds."""
        return self.iterations if self.iterations is not None else _ROUNDS.get(self.scheme, 100)

    @property
    def objective(self) -> Objective:
        """The loss, with slopes clipped to `clip`, and the penalty."""
        losses: dict[str, Loss] = {
            "logistic": Logistic(),
            "softmax": Softmax(),
            "hinge": SmoothedHinge(),
            "huber": Huber(threshold=self.clip),
            # a minimiser needs a loss with bounded slopes; clipping gradients has the same effect in each round
            "ridge": Huber(threshold=self.clip) if self.averages_models else SQUARED,
        }
        return Objective(losses[self.loss], self.regularisation, clip=self.clip)

    @property
    def requires(self) -> Requires:
        """A public number of people, to divide sums by; Gaussian noise needs delta."""
        return Requires(people="bound", delta="Gaussian noise" if self.noise == "gaussian" else "")

    def plan(self, terms: Terms) -> LearnPlan:
        """Plan the features of rows, the query of each round, its noise and the masks."""
        return plan_of(self, terms)

    # The parties' side; keys and openings are those of the masked sums.

    @step(reveals="masked")
    def contribute(self, party: Party[LearnPlan], message: Ask) -> SumMasked:
        """Sum this party's gradients, or fit its model, in fixed point; add a share of the noise; mask the result."""
        noise, sums = _noise(party, message), party.plan.masked_sums
        if sums is None or noise.ring is None:
            raise _other_scheme()
        query = noise.query
        masks = sums.masks_for(party, message.round, query.dimension, noise.ring)
        if party.name not in party.plan.people:
            # this party abstains: it reads no row and adds no noise, since shares are only for those that take part
            return masks.hide(np.zeros(query.dimension, dtype=np.int64))
        values = query.values(party.plan.rows_of(party), message.weights)
        noisy = party.contribute(noise.charged[party.name], values, why=f"noisy sum over all parties, {self.scheme}")
        return masks.hide(noisy)

    @step(reveals="noisy")
    def release(self, party: Party[LearnPlan], message: Ask) -> Sums:
        """Sum this party's gradients, or fit its model, in fixed point, and add noise."""
        noise = _noise(party, message)
        if noise.ring is not None:
            raise _other_scheme()
        before = party.kept("learn answered", _Answered)
        if before is not None and message.round <= before.round:
            raise BudgetError(f"round {message.round} was answered before: the budget covers one answer for each round")
        party.remember("learn answered", _Answered(round=message.round))
        values = noise.query.values(party.plan.rows_of(party), message.weights)
        return Sums(values=party.release(noise.charged[party.name], values, why=f"noisy numbers of {self.scheme}"))

    # The coordinator's side.

    def coordinate(self, session: Session[LearnPlan]) -> LearnResult:
        """Open one noisy sum in each round, and update the model by the scheme."""
        scheme, sums = session.plan.scheme, session.plan.masked_sums
        started = sums.start(session) if sums else None
        iterate, lost = scheme.start(), 0
        path, present = [iterate.weights], tuple[str, ...]()
        for number in range(1, scheme.rounds + 1):
            opened = self._open(session, started, number, scheme.sent(iterate, number))
            if opened is None and number <= scheme.needed:
                raise PartyError("too many parties dropped out of the first sum, which all others need: run it again")
            if opened is None:
                lost += 1
            else:
                iterate, present = scheme.update(iterate, number, opened), opened.present
            path.append(iterate.weights)
        if lost == scheme.rounds:
            raise PartyError("in every round too many parties dropped out to open the sum: run the study again")
        plan, design = session.plan, session.plan.design
        model = LearnModel(
            scheme=self.scheme,
            loss=self.loss,
            label=self.label,
            classes=design.classes,
            regularisation=self.regularisation,
            rounds=scheme.rounds,
            lost=lost,
            people=scheme.people,
            present=present,
            noise=plan.noise[-1].average_deviation(plan.people),
            delta=float(plan.delta),
            guarantee=plan.guarantee,
            **split_weights(iterate.weights, design, scheme.limits(iterate)),
        )
        iterates = np.stack([weights.ravel() for weights in path]) if self.path else None
        return LearnResult(model=model, design=design, path=iterates)

    def _open(
        self, session: Session[LearnPlan], sums: SumCoordinator[Ask] | None, number: int, weights: Numbers
    ) -> Opened | None:
        """Open a round's noisy sum at some weights; None if too many parties dropped out."""
        plan, noise = session.plan, session.plan.noise_at(number)
        if sums is None or noise.ring is None:
            messages = dict.fromkeys(plan.people, Ask(round=number, weights=weights))
            answers = session.ask(self.release, messages, missing=self.missing)
            added = np.sum([answer.values.astype(np.float64) for answer in answers.values()], axis=0)
            return plan.opened(noise, added, tuple(answers))
        count = noise.query.dimension
        total = sums.total(self.contribute, lambda this: Ask(round=this, weights=weights), count=count, ring=noise.ring)
        return None if total is None else plan.opened(noise, total.values.astype(np.float64), total.present)

    def read(self, plan: LearnPlan, folder: Path) -> LearnResult:
        """Read back `model.json` and, if there is one, `path.csv`."""
        return read_model(folder, plan.design)


def _noise(party: Party[LearnPlan], message: Ask) -> RoundNoise:
    """Return the noise and the query of a round; refuse a request that this party's own study does not allow."""
    scheme = party.plan.scheme
    if not 1 <= message.round <= scheme.rounds:
        raise RefusedError(f"round {message.round} was requested; the study has rounds 1 to {scheme.rounds}")
    if message.weights.shape != scheme.asked or not np.isfinite(message.weights).all():
        raise RefusedError(f"the weights of a request must be finite numbers of shape {scheme.asked}")
    return party.plan.noise_at(message.round)


def _other_scheme() -> RefusedError:
    return RefusedError("this step does not belong to the study's scheme")
