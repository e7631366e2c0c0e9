"""Checks that several methods share: aligned rows, and the public number of rows.

Where sizes are public, an error may report a wrong one; where they are not, nothing is compared.
"""

from syndic.errors import InputError
from syndic.kernel import Party, Requires, Terms, member

SAME_PEOPLE = Requires(
    people="same",
    columns="apart",
    delta="Gaussian noise",
    neighbours="replace",
    rows=1,
    parties=1,
    because="aligned rows show which people are in the data, and every party is charged for the whole release",
    least_parties=2,
)
"""Requirements of a method on aligned rows with Gaussian noise: the same people, different columns at each party."""


def sizes_are_public(terms: Terms) -> bool:
    """Return whether every party's number of rows is public: under `replace`, if a person has one row."""
    return terms.unit.neighbours == "replace" and terms.unit.rows == 1


def check_people(party: Party, *found: int) -> None:
    """Raise `InputError` if sizes are public and one of these numbers of rows is not the one in the study."""
    people = member(party.terms, party.name).people
    if sizes_are_public(party.terms) and any(one != people for one in found):
        raise wrong_size(party.name, people)


def wrong_size(party: str, people: int | None) -> InputError:
    """Return the error for a source whose number of people is not the public one."""
    return InputError(f"party '{party}': its source does not hold the {people} people that the study states")
