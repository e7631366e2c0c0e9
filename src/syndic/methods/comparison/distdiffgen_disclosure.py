"""What a two-party specialisation says about itself before any row is read, and what studies it refuses."""

from collections.abc import Sequence

from syndic.errors import InputError
from syndic.kernel import Disclosure, Resources, Terms
from syndic.methods.comparison.distdiffgen_plan import MOST_LEAVES, MOST_SIDE, Plan
from syndic.methods.synthesis.vertical_requirements import budgets_of
from syndic.methods.synthesis.vertical_round import PARTNERS
from syndic.privacy import Cost, GaussianEvent

_CHUNK_BYTES = 1 << 24


def check_terms(terms: Terms, label: str, trees: Sequence[str]) -> None:
    """Raise `InputError` unless two parties hold different columns of the same people, and both the label."""
    unit, people = terms.unit, {party.people for party in terms.parties}
    if unit.neighbours != "replace" or unit.rows != 1 or unit.parties != 1:
        raise InputError(
            'aligned rows show who is in: the unit must be neighbours = "replace" with one row, and as every '
            "party is charged for the whole release, unit.parties stays 1"
        )
    if len(terms.parties) != PARTNERS or len(people) != 1 or None in people:
        raise InputError("this method is for exactly two parties, with the same people = n for both")
    held = [tuple(party.columns or ()) for party in terms.parties]
    if any(label not in columns for columns in held):
        raise InputError(f"label ({label}) must be among the columns of both parties: both score their columns by it")
    apart = [name for columns in held for name in columns if name != label]
    if sorted(apart) != sorted(set(terms.schema.names) - {label}) or any(len(columns) < PARTNERS for columns in held):
        raise InputError(
            "every column of the schema but the label must be at exactly one party, and each party must have one"
        )
    if terms.schema[label].size < PARTNERS:
        raise InputError(f"label ({label}) must have two levels or more")
    unknown = [name for name in trees if name not in apart]
    if unknown:
        raise InputError(f"taxonomies: {unknown[0]} is no column of a party, or it is the label")
    if any(budget.delta == 0 for budget in budgets_of(terms)):
        raise InputError("Gaussian noise needs delta above 0: set it in every budget")


def epsilons(terms: Terms, plan: Plan, colluding: int) -> tuple[float, float]:
    """Return the epsilon against everyone who knows no share of the noise, and against one of the parties."""
    delta = min(budget.delta for budget in budgets_of(terms))
    scores, leaves = plan.account.events
    times = 1 if colluding else PARTNERS
    # of half the noise: twice the mu^2, and four times the slack, which goes with the squared variance
    left = GaussianEvent(mu_squared=times * leaves.mu_squared, slack=times**2 * leaves.slack)
    return float(Cost.of([scores, leaves]).epsilon(delta)), float(Cost.of([scores, left]).epsilon(delta))


def estimate_of(terms: Terms, plan: Plan, times: int, colluding: int) -> Resources:
    """Return memory at the busiest role, bytes of the largest message, and about how long it takes."""
    people = terms.parties[0].people or 1
    most = max((len(below) for tree in plan.every().values() for below in tree.children), default=1)
    leaves = min(MOST_LEAVES, plan.classes * most ** min(times, 20))
    side = min(MOST_SIDE, leaves)
    # a chunk of masked rows takes no more of a message than its part
    chunk = min(_CHUNK_BYTES, terms.limits.message_mb * 10**6 // (4 * PARTNERS), 8 * people * side)
    outside, partner = epsilons(terms, plan, colluding)
    noise = plan.account.noise_of(2, 1, 2)
    return Resources(
        memory_bytes=2 * 10**8 + 32 * chunk + 256 * leaves + 32 * people * len(terms.schema.columns),
        reply_bytes=chunk + 16 * leaves,
        rounds=6,
        seconds=round(1.0 + people * side * 8e-8 + people * leaves * 2e-10, 1),
        notes=(
            f"{plan.scores:,} groups of values are scored, with standard deviation "
            f"{plan.scored.variance(1) ** 0.5:.3g}; {times} of them are specialised, to at most {leaves:,} leaves",
            f"standard deviation {noise.variance(PARTNERS) ** 0.5:.3g} on the count of a leaf",
            f"epsilon {outside:.4g} against all but the parties, {partner:.4g} against one of them",
        ),
    )


def disclosure_of(terms: Terms, plan: Plan, colluding: int) -> Disclosure:
    """State what every role sees."""
    outside, partner = epsilons(terms, plan, colluding)
    opened = "the noisy scores of groups of values, which groups were specialised, and the noisy counts of the leaves"
    moved = sum(tree.moved for tree in plan.every().values())
    return Disclosure(
        sees={
            "coordinator": f"sealed rows that it cannot read, shares under masks that it lacks, and {opened}",
            "other parties": f"masked rows, which look uniform, and {opened}; each knows its own share of the noise",
            "anyone with the release": opened,
        },
        sensitivity=(
            f"replacing one person's values at both parties at once moves at most {moved} of {plan.scores} scores by "
            "one, those of groups on the paths of the old and the new values, and two leaves by one; both parties are "
            "charged for all of it"
        ),
        not_protected=(
            f"epsilon is {outside:.4g} against all but the parties, {partner:.4g} against one of them, who can take "
            "its own share of the noise off",
            "everybody's class is known to both parties before they begin",
            "coordinator and one party together: they can read in which groups the other party's values are",
            "a party that does not follow the steps: nothing checks the rows, and one that puts a large number into a "
            "row reads the other's record of that person",
            "a coordinator that deals wrong triples: it can shift counts by what it chooses, or make a block of rows "
            "wrap where it likes and see whether it did",
            "who the people are and how many, and which rows belong together: aligned rows show it to both parties",
            "what is true of groups: a pattern that many people share shows, as it should",
            "the columns, bounds, labels, taxonomies and people: they are public",
        ),
    )
