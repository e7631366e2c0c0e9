"""What a method says before it runs: who sees what, why the noise is enough, what is not protected.

Sentences that hold for many methods stand here once.
"""

import msgspec

from syndic.document import Document
from syndic.privacy import Unit

GROUPS = "what is true of groups: a pattern that many people share shows, as it should"
MADE_UP = "the total against a party that puts in made-up numbers: nothing checks them"
ALIGNED = "who the people are and how many, and which rows belong together: aligned rows show it to every party"


class Disclosure(Document):
    """What each role sees, why the stated sensitivity holds, and what is not protected.

    `against` has the epsilon against adversaries other than the one that the cost is stated for. `discloses` lists what
    the method shows exactly, outside any epsilon. `departures` is for published variants: which claim of the paper is
    not met, and what holds instead.
    """

    sees: dict[str, str]
    sensitivity: str
    not_protected: tuple[str, ...]
    departures: tuple[str, ...] = ()
    against: dict[str, float] = msgspec.field(default_factory=dict)
    discloses: tuple[str, ...] = ()


def everybody(what: str) -> dict[str, str]:
    """Return the disclosure of a method whose every message is public: all roles see the same."""
    return dict.fromkeys(("coordinator", "other parties", "anyone with the release"), what)


def against_partners(outside: float, partner: float) -> dict[str, float]:
    """Return the epsilons of a method in which the two partners of a table each know a share of its noise."""
    return {
        "all but the partners of a table": outside,
        "a partner of a table, which can take its own share of the noise off": partner,
    }


def beyond_unit(unit: Unit) -> str:
    """Say who has more data than the unit covers."""
    return f"people with more than {unit.rows} row(s) at a party, or at more than {unit.parties} of the parties"


def change_of(unit: Unit) -> str:
    """Return what turns a data set into a neighbouring one, as the beginning of a sentence."""
    return "adding or removing" if unit.neighbours == "add_remove" else "replacing"
