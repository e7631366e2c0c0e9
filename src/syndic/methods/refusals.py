"""What many methods refuse in the same words: runs beyond the study's limits, rows that are not as many as is public.

Where sizes are public, a wrong one may be said aloud; where they are not, nothing is compared.
"""

from syndic.errors import InputError
from syndic.kernel import Party, Requires, Resources, Terms, member

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


def check_fits(terms: Terms, estimate: Resources, way_out: str, *, replies: int = 1, what: str = "a run") -> None:
    """Raise `InputError` if `what` needs more than the study's limits; the largest message holds so many replies."""
    limits, message = terms.limits, replies * estimate.reply_bytes
    if estimate.memory_bytes > limits.memory_mb * 10**6 or message > limits.message_mb * 10**6:
        raise InputError(
            f"{what} would need about {estimate.memory_bytes / 1e6:,.0f} MB of memory (limit {limits.memory_mb}) and "
            f"messages of {message / 1e6:,.1f} MB (limit {limits.message_mb}): {way_out}"
        )


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
