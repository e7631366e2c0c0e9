"""What the synthesis says about itself before any row is read."""

from collections.abc import Sequence

from syndic.kernel import Disclosure, Resources, Terms, people_of
from syndic.methods.synthesis.account import Account
from syndic.methods.synthesis.measure import Question, RoundLimits
from syndic.methods.synthesis.size import Size
from syndic.mpc.graph import SumPlan


def disclosure_of(terms: Terms, rooms: Sequence[RoundLimits], plan: SumPlan | None) -> Disclosure:
    """State what every role sees; `plan` is that of the masks, None for a single party."""
    unit = terms.unit
    opened = f"the noisy tables of {len(rooms)} rounds, the model fitted to them and the rows drawn from it"
    change = "adding or removing" if unit.neighbours == "add_remove" else "replacing"
    masked = "every party's answers under masks, which look uniform, who fell silent, and " if plan else ""
    return Disclosure(
        sees={
            "coordinator": f"{masked}{opened}",
            **(
                {"other parties": f"{opened}, and what was asked; each knows its own counts and share of noise"}
                if plan
                else {}
            ),
            "anyone with the release": opened,
        },
        sensitivity=(
            f"{change} one person's {unit.rows} row(s) at one party changes each table by at most "
            f"{unit.l2_squared_of_counts()} in squared l2; the noise of a "
            f"round is made for as many as it asks; at up to {unit.parties} of the parties the changes add up in the "
            f"same sum, so the noise is made for {unit.parties} time(s) that, and each of these parties is charged "
            f"1/{unit.parties} of the round's part of the budget"
        ),
        not_protected=(
            "what is true of groups: a pattern that many people share shows, as it should",
            f"people with more than {unit.rows} row(s) at a party, or at more than {unit.parties} of the parties",
            *_of_masks(plan),
            "the columns, bounds, labels and people, and which combinations of values were declared impossible: they "
            "are public",
        ),
    )


def estimate_of(terms: Terms, size: Size, account: Account, plan: SumPlan | None) -> Resources:
    """Return memory at the coordinator, bytes of the largest reply, and about how long it takes."""
    parties, people, rounds = len(terms.parties), people_of(terms) or 0, len(account.events)
    one = Question(number=rounds, tables=((terms.schema.names[0],),))
    noise = account.noise(one)
    bits = noise.ring(people * terms.unit.rows, size.round_cells).bits if plan else 64
    columns = len(terms.schema.columns)
    # a round may ask up to round_cells, but what helps at this noise is far less: a tenth of a count a cell
    typical = min(size.round_cells, int(10 * people * terms.unit.rows / noise.variance(parties) ** 0.5) + 1000)
    masked = parties * plan.neighbours * typical * 2e-8 if plan else 0.0
    return Resources(
        memory_bytes=size.memory_bytes,
        reply_bytes=typical * bits // 8 + 64,
        rounds=rounds + (3 if plan else 1),
        seconds=round(2.0 + rounds * (people / 1e6 + masked) + 3e-6 * size.model_cells + columns**2 / 150, 1),
        notes=(
            f"{rounds} rounds; a model of at most {size.model_cells:,} cells, rounds of at most {size.round_cells:,}",
            f"standard deviation {noise.variance(parties) ** 0.5:.3g} times the root of the number of tables on every "
            "count of the last round",
            *((f"{plan.neighbours} neighbours a party",) if plan else ()),
        ),
    )


def _of_masks(plan: SumPlan | None) -> tuple[str, ...]:
    if plan is None:
        return ()
    shares = plan.parties - plan.missing
    return (
        f"against more than {plan.colluding} parties that pool their shares of the noise, or more than {plan.missing} "
        "that leave theirs out: less noise is left than stated",
        *(
            (f"against the parties: each can take its own share off, and mu^2 is then {shares}/{shares - 1}",)
            if plan.colluding == 0
            else ()
        ),
        *plan.not_protected,
        "the tables against a party that puts in made-up numbers: nothing checks them",
        "which parties take part or fall silent",
    )
