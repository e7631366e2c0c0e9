"""What a method states before it runs: who sees what, why the noise suffices, what is not protected.

Sentences that several methods share are defined here.
"""

import msgspec

from syndic.document import Document
from syndic.privacy import Unit

GROUPS = "group-level patterns: anything shared by many people remains visible, by design"
MADE_UP = "the total against a party that submits invented numbers: nothing checks them"
UNDER_MASKS = (
    "the coordinator may do anything; at most `colluding` parties, which follow the protocol, collude with it or with "
    "each other. Unless the study lists identities, the coordinator must pass on keys unchanged"
)
"""Whom to trust where only sums under masks open (`syndic.mpc.masked_sum`)."""
ALIGNED = (
    "who the people are, how many there are, and which rows belong together: every party learns this from the alignment"
)
TOGETHER = "against the coordinator and one party together"
DEALER_AND_PARTY = f"{TOGETHER}: they can read the rows of that party's partners"
UNCHECKED_ROWS = (
    "against a party that deviates from the protocol: nothing checks the rows, so a party that enters a large number "
    "in a row can read a partner's record of that person"
)
SHOWN_RECORD = (
    "against a party that deviates while the coordinator only looks: the party can show the coordinator a partner's "
    "records of several people"
)
WRONG_TRIPLES = "against a coordinator that deals wrong triples: it can shift counts by amounts it chooses"


class Disclosure(Document):
    """What each role sees, why the stated sensitivity is correct, and what is not protected.

    `against` has the epsilon against adversaries other than the one that the cost is stated for. `discloses` lists what
    the method shows exactly, outside any epsilon. `departures` is for published variants: which claim of the paper does
    not hold, and what holds instead. `trust` is what the study assumes about the roles, if the method's own sentence
    does not hold for this study.
    """

    sees: dict[str, str]
    sensitivity: str
    not_protected: tuple[str, ...]
    departures: tuple[str, ...] = ()
    against: dict[str, float] = msgspec.field(default_factory=dict)
    discloses: tuple[str, ...] = ()
    trust: str = ""


def everybody(what: str) -> dict[str, str]:
    """Return the same text for every role, for a method whose messages are all public."""
    return dict.fromkeys(("coordinator", "other parties", "anyone with the release"), what)


def product_sees(release: str) -> dict[str, str]:
    """Return who sees what of a secure product."""
    return {
        "coordinator": f"sealed rows that it cannot read, shares under masks it does not know, and {release}",
        "other parties": f"masked rows, which look uniform, and {release}; each knows its share of the noise",
        "anyone with the release": release,
    }


def of_products(*, proven: bool, servers: tuple[str, ...] = (), what: str = "counts") -> tuple[str, ...]:
    """Return what is not protected where tables of two parties' columns are secure products, with or without proofs."""
    if servers:
        named = ", ".join(servers)
        return (
            f"against two of the servers {named} together, though one only looks: they can read all parties' rows",
            "the correctness of the tables: a party, server or coordinator that deviates can shift them",
        )
    return DEALER_AND_PARTY, SHOWN_RECORD if proven else UNCHECKED_ROWS, WRONG_TRIPLES.replace("counts", what)


def trust_with_groups(
    colluding: int, *, proven: bool, servers: tuple[str, ...] = (), what: str = "tables", noise: bool = False
) -> str:
    """Return what a study assumes about the roles where one sum opens and parties of a group multiply for it.

    `noise`: whether the coordinator shares the noise.
    """
    dealer = "the coordinator, who deals the triples, colludes with no party of a group that has several"
    if noise:
        dealer = "the coordinator, who deals the triples, colludes with no party, and adds its share of the noise"
    active = (
        f"either may deviate from the protocol: they learn only the noisy {what}, plus shifts that they chose, and can "
        "stop or falsify the run"
    )
    return (
        f"at most {colluding} parties collude; {'two servers never collude' if servers else dealer}; "
        f"{active if proven else 'every role follows the protocol'}. Unless the study lists identities, the "
        "coordinator must not forge keys"
    )


def without_coordinator(outside: float, parties: float) -> dict[str, float]:
    """Return the epsilons of a method whose coordinator shares the noise."""
    return {
        "everyone, if the coordinator adds its share of the noise; if not, everyone but the parties": outside,
        "colluding parties, or a single one, if the coordinator omits its share": parties,
    }


def of_coordinator(shares: int) -> str:
    """Return what is not protected where a coordinator adds one of the shares, of which `shares` are enough.

    With 0 the cost grows faster than shares are fewer, as with Laplace noise.
    """
    times = f"mu^2 or rho is then {shares}/{shares - 1} times as large as stated"
    return (
        "against parties, if the coordinator omits its share of the noise, which nobody can see: "
        f"{times if shares else 'epsilon is then several times as large, as given against them'}"
    )


def beyond_unit(unit: Unit) -> str:
    """Return a description of the people whose data exceed the unit of protection."""
    return f"people with more than {unit.rows} row(s) at a party, or at more than {unit.parties} of the parties"


def units_of(unit: Unit) -> str:
    """Return in which units changes of counts are stated, if they are not rows."""
    return f", in units of 1/{unit.scale} row" if unit.scale > 1 else ""


def change_of(unit: Unit) -> str:
    """Return the operation that makes a neighbouring data set, as the beginning of a sentence."""
    return "adding or removing" if unit.neighbours == "add_remove" else "replacing"
