"""What every study of aligned rows must say: the same people at all parties, each with columns of its own."""

from syndic.errors import InputError
from syndic.kernel import Terms, budget_of
from syndic.privacy import Budget


def check_aligned(terms: Terms) -> None:
    """Raise `InputError` unless the parties hold different columns of the same people, under `replace`."""
    unit = terms.unit
    if unit.neighbours != "replace" or unit.rows != 1 or unit.parties != 1:
        raise InputError(
            'aligned rows show who is in: the unit must be neighbours = "replace" with one row, and as every '
            "party is charged for the whole release, unit.parties stays 1"
        )
    check_columns_apart(terms)
    if any(budget.delta == 0 for budget in budgets_of(terms)):
        raise InputError("Gaussian noise needs delta above 0: set it in every budget")


def check_columns_apart(terms: Terms) -> None:
    """Raise `InputError` unless all parties have the same number of people, and no two of them a column."""
    people = {party.people for party in terms.parties}
    if len(terms.parties) < 2 or len(people) != 1 or None in people:
        raise InputError("a vertical study needs two or more parties and the same people = n for each of them")
    held = [name for party in terms.parties for name in party.columns or ()]
    if any(not party.columns for party in terms.parties) or sorted(held) != sorted(set(held)):
        raise InputError("every party must say which columns it holds, and no column may be at two parties")


def check_all_held(terms: Terms) -> None:
    """Raise `InputError` unless every column of the schema is at a party."""
    held = {name for party in terms.parties for name in party.columns or ()}
    for name in terms.schema.names:
        if name not in held:
            raise InputError(f"no party holds the column {name}: name it at one, or leave it out of the schema")


def budgets_of(terms: Terms) -> list[Budget]:
    """Return every party's budget."""
    return [budget_of(terms, party.name) for party in terms.parties]
