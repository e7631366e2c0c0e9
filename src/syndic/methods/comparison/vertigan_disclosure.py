"""What VertiGAN says about itself before any row is read."""

from collections.abc import Mapping

from syndic.kernel import Disclosure, Resources, Terms
from syndic.methods.comparison.vertigan_account import TrainingAccount
from syndic.methods.synthesis.vertical_requirements import budgets_of
from syndic.model.gan.shape import GanShape
from syndic.privacy import ApproximateEvent

# of one weight of one person's gradient: as made, widened, squared, rounded
_GRADIENT_BYTES = 48
_PEOPLE = 32
# seconds of processor time for one weight of one person's gradient, for one person drawn or not, for one drawn value
_PER_WEIGHT = 8e-9
_PER_PERSON = 3e-8
_PER_VALUE = 5e-8


def estimate_of(
    terms: Terms,
    account: TrainingAccount,
    shapes: Mapping[str, GanShape],
    *,
    rounds: int,
    critic_steps: int,
    batch: int,
    rows: int | None,
) -> Resources:
    """Return memory at the busiest role, bytes of a message, and about how long all roles work."""
    people = terms.parties[0].people or 0
    drawn = people if rows is None else rows
    critic = max(shape.critic.length for shape in shapes.values())
    message = max(4 * (shape.trunk.length + shape.branch.length) for shape in shapes.values())
    columns, width = len(terms.schema.columns), sum(shape.width for shape in shapes.values())
    steps = rounds * critic_steps
    each = sum(batch * shape.critic.length * _PER_WEIGHT + people * _PER_PERSON + 2e-3 for shape in shapes.values())
    moves = rounds * sum(1e-7 * (shape.trunk.length + shape.branch.length) for shape in shapes.values())
    reads = rounds * people * columns * 3e-8
    return Resources(
        memory_bytes=4 * 10**8 + _PEOPLE * critic * _GRADIENT_BYTES + 64 * people + 8 * columns * (people + 3 * drawn),
        reply_bytes=message + 200,
        rounds=rounds + 2,
        seconds=round(3.0 + steps * each + moves + reads + drawn * width * _PER_VALUE, 1),
        notes=(
            f"{account.steps:,} noisy steps over {len(shapes)} parties; noise {float(account.sigma):.4g} times what "
            f"one person may add, on a sum over about {batch} people",
            f"about {2e-6 * rounds * message:,.0f} MB to and from a party",
            'the method "vertical" makes far better tables, if no party colludes with the coordinator',
        ),
    )


def disclosure_of(terms: Terms, account: TrainingAccount, *, as_printed: bool) -> Disclosure:
    """State what every role sees."""
    seen = "the generator and how each critic would have it change, in every round, and the rows drawn from it"
    return Disclosure(
        sees={
            "coordinator": seen,
            "other parties": "trunk and own branch of the generator in every round, and the release",
            "anyone with the release": "the finished generator and the rows drawn from it",
        },
        sensitivity=(
            "a person adds one gradient of length at most 1, made of their own row alone, to each sum whose sample has "
            f"them, which is by a chance of {float(account.chance):.4g}, drawn anew in each of {account.steps} sums "
            "over all rounds and parties; replacing the person's values at all parties turns that gradient into any "
            "other of length at most 1"
        ),
        not_protected=(
            "who the people are and how many, and which rows belong together: aligned rows show it to every party",
            "what is true of groups: a pattern that many people share shows, as it should",
            "the columns, bounds, labels and people: they are public",
        ),
        departures=_departures(terms, account) if as_printed else (),
    )


def _departures(terms: Terms, account: TrainingAccount) -> tuple[str, ...]:
    claimed = min(budget.epsilon for budget in budgets_of(terms))
    first = account.events[0]
    true = float(first.epsilon) if isinstance(first, ApproximateEvent) else float("nan")
    delta = min(budget.delta for budget in budgets_of(terms))
    return (
        f"the implementation takes sigma {float(account.sigma):g} for epsilon {float(claimed):g} on every table, from "
        f"a list made for one; on this study it costs epsilon {true:.4g} at delta {float(delta):g}",
    )
