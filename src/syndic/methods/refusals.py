"""What many methods require and refuse alike: aligned rows, and rows that are not as many as is public.

Where sizes are public, a wrong one may be said aloud; where they are not, nothing is compared.
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
    because="aligned rows show who is in, and every party is charged for the whole release",
    least_parties=2,
)
"""What a method of aligned rows with Gaussian noise requires: different columns of the same people at all parties."""


def sizes_are_public(terms: Terms) -> bool:
    """Return whether the number of rows of every party is no secret: under `replace`, if a person is one row."""
    return terms.unit.neighbours == "replace" and terms.unit.rows == 1


def check_people(party: Party, *found: int) -> None:
    """Raise `InputError` unless each of these numbers of rows, where sizes are public, is the one in the study."""
    people = member(party.terms, party.name).people
    if sizes_are_public(party.terms) and any(one != people for one in found):
        raise wrong_size(party.name, people)


def wrong_size(party: str, people: int | None) -> InputError:
    """Return the refusal of a source that holds other people than is public."""
    return InputError(f"party '{party}': its source does not hold the {people} people that the study says")
