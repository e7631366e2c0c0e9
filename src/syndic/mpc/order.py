"""Steps that are answered once and in order: a second answer could reveal what a single answer hides."""

from syndic.errors import RefusedError
from syndic.kernel import Message, Party


class Stage(Message):
    """How many steps, or sets, a party has finished."""

    done: int


def advance(party: Party, what: str, to: int) -> None:
    """Record that step `to` (1, 2, ...) of `what` is being answered; refuse if it is not the next one.

    A call that is delivered twice never gets here: the kernel returns the stored answer.
    """
    done = finished(party, what)
    if done != to - 1:
        raise RefusedError(
            f"step {to} of the {what} was requested after step {done}: each is answered once, in order; "
            "set a new edition to start again"
        )
    party.remember(_name(what), Stage(done=to))


def finished(party: Party, what: str) -> int:
    """Return how many steps of `what` a party has answered."""
    stage = party.kept(_name(what), Stage)
    return 0 if stage is None else stage.done


def _name(what: str) -> str:
    return f"{what} stage"
