"""What a method states before it runs: who sees what, why the noise suffices, what is not protected.

Sentences that several methods share are defined here.
"""

from syndic.document import Document
from syndic.privacy import Unit

GROUPS = "group-level patterns: anything shared by many people remains visible, by design"
MADE_UP = "the total against a party that submits invented numbers: nothing checks them"
ALIGNED = (
    "who the people are, how many there are, and which rows belong together: every party learns this from the alignment"
)


class Disclosure(Document):
    """What each role sees, why the stated sensitivity is correct, and what is not protected.

    `departures` is for published variants: which claim of the paper does not hold, and what holds instead.
    """

    sees: dict[str, str]
    sensitivity: str
    not_protected: tuple[str, ...]
    departures: tuple[str, ...] = ()


def everybody(what: str) -> dict[str, str]:
    """Return the same text for every role, for a method whose messages are all public."""
    return dict.fromkeys(("coordinator", "other parties", "anyone with the release"), what)


def beyond_unit(unit: Unit) -> str:
    """Return a description of the people whose data exceed the unit of protection."""
    return f"people with more than {unit.rows} row(s) at a party, or at more than {unit.parties} of the parties"


def change_of(unit: Unit) -> str:
    """Return the operation that makes a neighbouring data set, as the beginning of a sentence."""
    return "adding or removing" if unit.neighbours == "add_remove" else "replacing"
