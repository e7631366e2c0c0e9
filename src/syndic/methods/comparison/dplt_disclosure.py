"""What the latent tree says about itself before any row is read."""

from syndic.kernel import Disclosure, Resources, Terms
from syndic.methods.comparison.dplt_plan import GAP_SENSITIVITY, Plan
from syndic.methods.synthesis.vertical_requirements import budgets_of
from syndic.methods.synthesis.vertical_round import PARTNERS
from syndic.privacy import Cost, GaussianEvent

_ENTRY_BYTES = 32


def epsilons(terms: Terms, plan: Plan, colluding: int) -> tuple[float, float]:
    """Return the epsilon against everyone who knows no share of the noise, and against a partner of every table."""
    delta = min(budget.delta for budget in budgets_of(terms))
    learning, tables = plan.events
    times = 1 if colluding else PARTNERS
    # of half the noise: twice the mu^2, and four times the slack, which goes with the squared variance
    left = GaussianEvent(mu_squared=times * tables.mu_squared, slack=times**2 * tables.slack)
    return float(Cost.of(plan.events).epsilon(delta)), float(Cost.of([learning, left]).epsilon(delta))


def estimate_of(terms: Terms, plan: Plan, colluding: int) -> Resources:
    """Return memory at the busiest role, bytes of the largest message, and about how long it takes."""
    sizes, layout = plan.round.sizes, plan.round.layout
    widths = [sum(each) for each in layout.widths.values()]
    chunk = sizes.small.packed_bytes(sizes.chunk * max(widths))
    groups = sum(len(found) for found in plan.packed.values())
    cells = sum(layout.size(names) for names in layout.tables)
    largest = max(plan.most_cells, *terms.schema.domain.sizes)
    people, (outside, partner) = sizes.rows, epsilons(terms, plan, colluding)
    deviation = plan.counted.variance(1) ** 0.5
    return Resources(
        memory_bytes=2 * 10**8
        + _ENTRY_BYTES * sizes.chunk * sum(widths)
        + 64 * cells
        + groups * largest * (16 + 24 * plan.levels)
        + 32 * people * len(terms.schema.columns),
        reply_bytes=max(chunk, 8 * cells, 16 * groups * largest) + 1000,
        rounds=4 + 2 * sizes.chunks,
        seconds=round(1.0 + 6e-8 * layout.traffic(sizes) + groups * largest * plan.levels * 2e-5 + people / 2e5, 1),
        notes=(
            f"{groups} groups of at most {plan.most_cells:,} combinations of values; {plan.levels} latent levels; "
            f"{len(layout.tables)} tables of latent pairs take about {layout.traffic(sizes) / 1e6:,.1f} MB",
            f"standard deviation {deviation:.3g} on every count of a group, "
            f"{plan.round.within.variance(1) ** 0.5:.3g} on those of latent pairs within a party and "
            f"{plan.round.across.variance(PARTNERS) ** 0.5:.3g} across two",
            f"epsilon {outside:.4g} against all but the partners of a table, {partner:.4g} against a partner",
        ),
    )


def disclosure_of(terms: Terms, plan: Plan, colluding: int) -> Disclosure:
    """State what every role sees."""
    outside, partner = epsilons(terms, plan, colluding)
    pairs = sum(len(domain) * (len(domain) - 1) // 2 for domain in plan.domains.values())
    groups, tables = sum(len(found) for found in plan.packed.values()), len(plan.round.layout.tables)
    opened = (
        "the noisy scores of pairs of columns, the noisy tables of groups and of pairs of latent attributes, what each "
        "latent level means, and rows drawn from the tree"
    )
    return Disclosure(
        sees={
            "coordinator": f"sealed rows that it cannot read, shares under masks that it lacks, and {opened}",
            "other parties": f"masked rows, which look uniform, and {opened}; each knows its own share of the noise",
            "anyone with the release": opened,
        },
        sensitivity=(
            f"replacing one person's values at all parties at once moves each of {pairs} scores by at most "
            f"{GAP_SENSITIVITY} rows, two counts by one in each of {groups} tables of groups, and two counts by one in "
            f"each of {tables} tables of latent pairs; every party is charged for all of it"
        ),
        not_protected=(
            f"epsilon is {outside:.4g} against all but the partners of a table, {partner:.4g} against a partner, who "
            "can take its own share of the noise off",
            "coordinator and one party together: they can read the latent levels of that party's partners",
            "a party that does not follow the steps: nothing checks the rows, and one that puts a large number into a "
            "row reads a partner's record of that person",
            "a coordinator that deals wrong triples: it can shift counts by what it chooses, or make a block of rows "
            "wrap where it likes and see whether it did",
            "who the people are and how many, and which rows belong together: aligned rows show it to every party",
            "what is true of groups: a pattern that many people share shows, as it should",
            "the columns, bounds, labels and people: they are public",
        ),
    )
