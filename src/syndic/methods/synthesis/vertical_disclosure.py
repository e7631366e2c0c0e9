"""What the vertical synthesis says about itself before any row is read, and how much traffic its rounds may take."""

from syndic.kernel import Disclosure, Resources, Terms
from syndic.methods.refusals import check_fits
from syndic.methods.synthesis.account import Account
from syndic.methods.synthesis.measure import RoundLimits
from syndic.methods.synthesis.size import Size, most_rows
from syndic.methods.synthesis.vertical_requirements import budgets_of
from syndic.methods.synthesis.vertical_round import PARTNERS, alone
from syndic.privacy import Cost, GaussianEvent

# Of one masked entry of a chunk at a party: as drawn, opened, unpacked and multiplied.
_ENTRY_BYTES = 32
_CHUNK_ENTRIES = 1 << 24


def with_traffic(terms: Terms, size: Size, traffic: int, pairs: int) -> Size:
    """Give the round of pairs what it takes, at most half of the traffic, and the rest evenly to chosen tables.

    The first round is counted at home. `pairs` is what all pairs of columns take.
    """
    whole = traffic * most_rows(terms)
    chosen, second = len(size.rooms) - 2, min(pairs, whole // 2)
    parts = (0, second, *[(whole - second) // chosen] * chosen)
    rooms = tuple(
        RoundLimits(tables=room.tables, cells=room.cells, traffic=part)
        for room, part in zip(size.rooms, parts, strict=True)
    )
    held = _ENTRY_BYTES * min(_CHUNK_ENTRIES, max(parts))
    return Size(rooms=rooms, model_cells=size.model_cells, memory_bytes=size.memory_bytes + held)


def epsilons(terms: Terms, account: Account) -> tuple[float, float]:
    """Return the epsilon against everyone who knows no share of the noise, and against a partner of every table."""
    delta = min(budget.delta for budget in budgets_of(terms))
    times = 1 if account.colluding else PARTNERS
    # of half the noise: twice the mu^2, and four times the slack, which goes with the squared variance
    left = [
        GaussianEvent(mu_squared=times * event.mu_squared, slack=times**2 * event.slack) for event in account.events
    ]
    return float(Cost.of(account.events).epsilon(delta)), float(Cost.of(left).epsilon(delta))


def estimate_of(terms: Terms, size: Size, account: Account) -> Resources:
    """Return memory at the busiest role, bytes of the largest message, and about how long it takes."""
    people, rounds, columns = most_rows(terms), len(size.rooms), len(terms.schema.columns)
    traffic = sum(room.traffic for room in size.rooms)
    largest = max(room.traffic for room in size.rooms)
    noise = account.noise_of(rounds, 1, PARTNERS)
    outside, partner = epsilons(terms, account)
    single, both = alone(account).noise_of(rounds, 1, PARTNERS).variance(1) ** 0.5, noise.variance(PARTNERS) ** 0.5
    return Resources(
        memory_bytes=size.memory_bytes,
        reply_bytes=min(largest, _CHUNK_ENTRIES) + 8 * size.round_cells,
        rounds=6 * rounds,
        seconds=round(2.0 + 6e-8 * traffic + rounds * people / 1e6 + 3e-6 * size.model_cells + columns**2 / 150, 1),
        notes=(
            f"{rounds} rounds; a model of at most {size.model_cells:,} cells; tables across parties take at most "
            f"{traffic / 1e6:,.1f} MB in all",
            f"standard deviation {single:.3g} on every count of a table within a party and {both:.3g} across two, in "
            "the last round for each table that shares it, times the root of their number",
            f"epsilon {outside:.4g} against all but the partners of a table, {partner:.4g} against a partner",
        ),
    )


def check_size(terms: Terms, estimate: Resources) -> None:
    """Raise `InputError` if a run would need more than the study's limits."""
    check_fits(terms, estimate, "set fewer bins, less traffic or larger limits", replies=len(terms.parties) - 1)


def disclosure_of(terms: Terms, account: Account, size: Size) -> Disclosure:
    """State what every role sees."""
    outside, partner = epsilons(terms, account)
    opened = f"the noisy tables of {len(size.rooms)} rounds, the model fitted to them and the rows drawn from it"
    return Disclosure(
        sees={
            "coordinator": f"sealed rows that it cannot read, shares under masks that it lacks, and {opened}",
            "other parties": f"masked rows, which look uniform, what was asked, and {opened}; each knows its own share "
            "of the noise",
            "anyone with the release": opened,
        },
        sensitivity=(
            "replacing one person's values at all parties at once moves two counts by one in every table, so the k "
            "tables of a round by 2 k in squared l2; the noise of a round is made for as many as it asks, within and "
            "across parties alike, and every party is charged for the whole round"
        ),
        not_protected=(
            f"epsilon is {outside:.4g} against all but the partners of a table, {partner:.4g} against a partner, who "
            "can take its own share of the noise off",
            "coordinator and one party together: they can read the rows of that party's partners",
            "a party that does not follow the steps: nothing checks the rows, and one that puts a large number into a "
            "row reads a partner's record of that person",
            "a coordinator that deals wrong triples: it can shift counts by what it chooses, or make a block of rows "
            "wrap where it likes and see whether it did",
            "who the people are and how many, and which rows belong together: aligned rows show it to every party",
            "what is true of groups: a pattern that many people share shows, as it should",
            "the columns, bounds, labels and people, and which combinations of values were declared impossible: they "
            "are public",
        ),
    )
