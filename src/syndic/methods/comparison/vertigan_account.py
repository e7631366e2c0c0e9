"""What the training of critics costs one person, and the noise that the study's budget buys.

A person is a row at every party, and every party takes so many noisy steps in every round: all of them add up. The cost
of so many steps is known for the whole only, so the whole is charged in the first round, before any noise is drawn;
every later round is charged one unit of the ledger, 1e-12, so that its noise passes a door too. A run that ends early
has then paid for more than it drew, never for less.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import floor
from typing import Final, final

from syndic.errors import InputError
from syndic.kernel import Terms
from syndic.methods.synthesis.vertical_requirements import budgets_of
from syndic.model.gan.shape import BITS
from syndic.noise import FineGaussian
from syndic.privacy import ApproximateEvent, Event, PureEvent
from syndic.privacy.concentrated import PICO
from syndic.privacy.gaussian import ATTO
from syndic.privacy.sampled import LEAST_SIGMA, sampled_epsilon, sampled_sigma

PRINTED_SIGMA: Final = {
    Fraction(2, 5): Fraction(21, 10),
    Fraction(4, 5): Fraction(6, 5),
    Fraction(8, 5): Fraction(22, 25),
    Fraction(16, 5): Fraction(7, 10),
}
"""The noise that a public implementation takes for these epsilons, whatever the table."""

_MARK: Final = Fraction(1, PICO)


@final
@dataclass(frozen=True, kw_only=True)
class TrainingAccount:
    """The noise of every step, as a multiple of what one person may add, and what is charged in each round."""

    sigma: Fraction
    chance: Fraction
    steps: int
    events: tuple[Event, ...]

    def noise(self, length: int) -> FineGaussian:
        """Return the noise of one step on a critic of so many weights, in units of 2^-BITS."""
        return _noise(self.sigma, length)


@lru_cache(maxsize=64)
def account_of(
    terms: Terms, *, rounds: int, critic_steps: int, batch: int, longest: int, as_printed: bool
) -> TrainingAccount:
    """Return the account of the strictest budget; `longest` is the number of weights of the largest critic."""
    epsilon = min(budget.epsilon for budget in budgets_of(terms))
    delta = Fraction(floor(min(budget.delta for budget in budgets_of(terms)) * ATTO), ATTO)
    steps = rounds * critic_steps * len(terms.parties)
    chance = Fraction(batch, terms.parties[0].people or 1)
    marks = (rounds - 1) * _MARK
    if as_printed:
        if epsilon not in PRINTED_SIGMA:
            known = ", ".join(f"{float(one):g}" for one in PRINTED_SIGMA)
            raise InputError(f"as_printed has noise for epsilon {known} only, not for {float(epsilon):g}")
        sigma = PRINTED_SIGMA[epsilon]
        whole = sampled_epsilon(sigma, delta, chance, steps)
    else:
        whole = Fraction(floor(epsilon * PICO), PICO) - marks
        if whole <= 0:
            raise InputError(f"epsilon ({float(epsilon):g}) is too small for {rounds} rounds: use fewer rounds")
        # at the least noise there is, which bounds it for all larger
        slack = steps * _noise(LEAST_SIGMA, longest).event.slack
        sigma = sampled_sigma(whole, delta, chance, steps, slack)
    first = ApproximateEvent(
        epsilon=whole,
        delta=delta,
        what=f"{steps} sums over samples with Gaussian noise, sigma {float(sigma):g}, over all rounds and parties",
    )
    later = PureEvent(epsilon=_MARK, what="a later round, paid for in the first")
    return TrainingAccount(sigma=sigma, chance=chance, steps=steps, events=(first, *[later] * (rounds - 1)))


def _noise(sigma: Fraction, length: int) -> FineGaussian:
    return FineGaussian(sensitivity_squared=Fraction(4**BITS), mu_squared=1 / sigma**2, changed=length, fraction_bits=0)
