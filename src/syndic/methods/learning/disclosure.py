"""What every role of learning sees, in words."""

from typing import Final

from syndic.kernel import Disclosure
from syndic.privacy import Unit

PRINTED: Final[dict[str, str]] = {
    "mpc_out": "Laplace coordinates by an l2 sensitivity: sqrt(dimension) times the stated epsilon holds",
    "pathak": "Laplace coordinates by one party's l2 sensitivity, on the average of all",
    "local_out": "Laplace coordinates by an l2 sensitivity: sqrt(dimension) times the stated epsilon holds",
    "mpc_grad": "the authors' conversion draws about a third more noise than the stated epsilon needs",
    "local_grad": "the authors' conversion draws about a third more noise than the stated epsilon needs",
    "local_obj": "a term is missing in the authors' epsilon, coordinates are Laplace, and all parties share one vector",
    "rajkumar_agarwal": "fresh Laplace coordinates cost sqrt(dimension) times epsilon in EVERY iteration",
}
CURVED: Final = (
    ". Rounds that ask for curvatures add, for each record, a positive matrix of Frobenius norm at most the loss's "
    "largest curvature; one noise covers both, whose changes add in squares"
)
SIMULATED: Final[dict[str, str]] = {
    "local_obj": "objective perturbation is proven for continuous noise and exact minimisers: computers have neither",
    "rajkumar_agarwal": "a third party that everybody trusts sees every party's exact gradients",
    "distributed": "no noise at all: the average of the parties' models",
    "central": "no noise at all: descent on the rows of all parties",
}


def words(
    *, masked: bool, numbers: str, sensitivity: str, unit: Unit, who: tuple[int, int], departures: tuple[str, ...]
) -> Disclosure:
    """Return the disclosure of `numbers`; `who` is how many parties may collude and be missing."""
    whose = "the noisy sum over all parties of their" if masked else "every party's noisy"
    sees = f"{whose} {numbers}, the model and all iterates made of them"
    masks = {
        "coordinator": f"every party's numbers under masks, which look uniform, who fell silent in which round, {sees}",
        "other parties": f"public keys, and {sees}; each knows its own numbers and its shares of the noise",
    }
    plain = {"coordinator": sees, "other parties": sees}
    return Disclosure(
        sees={**(masks if masked else plain), "anyone with the release": sees},
        sensitivity=sensitivity,
        not_protected=(
            "what is true of groups: a pattern that many people share shows, as it should",
            f"people with more than {unit.rows} row(s) at a party, or at more than {unit.parties} of the parties",
            "the columns, their bounds, the classes, the people of each party: they are public",
            *(
                (
                    f"against more than {who[0]} parties that pool their shares of the noise, or more than {who[1]} "
                    "that leave theirs out: less noise is left than stated",
                    "the model against a party that puts in made-up numbers: nothing checks them",
                )
                if masked
                else ()
            ),
        ),
        departures=departures,
    )


def model_words(*, change: str, records: int, clip: float, parties: int) -> str:
    """Return why one person moves the average of models no further than stated."""
    return (
        f"{change} one person's rows changes the gradient of one party's objective by at most {records} x {clip:g} / "
        "its public number of people, so its minimiser, every weight being penalised, by at most that over the "
        "penalty; the solver's proven distance at both neighbours and the rounding to steps are added. Times the "
        f"party's part of all people this is the same at every party; noise is made for {parties} of the parties"
    )


def gradient_words(*, change: str, records: int, clip: float, rounds: int, parties: int) -> str:
    """Return why one person moves a sum of gradients no further than stated."""
    return (
        f"rows lie in the unit ball by public bounds, and each record's gradient, all classes together, is cut to "
        f"norm {clip:g} in whole steps; {change} one person's rows changes a sum by at most {records} such gradients "
        f"at any weights, and noise is made for {parties} of the parties, {rounds} round(s) of it"
    )
