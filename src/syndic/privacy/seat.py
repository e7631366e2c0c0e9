"""Charges of an organisation that takes part in one study at several places, its seats, with one ledger for all.

The people of different seats are different, except that a person may be at up to `most` of them. Each seat's steps are
charged, but what a person can lose is the cost of `most` seats together (parallel composition). So the ledger charges
of every event as many as the `most` seats that used it most often, whichever seat comes first, and records the others
as `covered`. A covered event counts towards what the seat may use at all, but not towards the cap.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

from syndic.document import Document
from syndic.privacy.chain import DIGEST_LETTERS
from syndic.privacy.event import Event
from syndic.privacy.unit import Budget


class Account(Document, frozen=True, kw_only=True):
    """Under which name a ledger and a memory keep a party's side of a run.

    `seat` is the party's name if its organisation has several, and `beside` are the names of the others' accounts.
    `cap` is that of the seat's own party file: another seat's may declare a higher one in the ledger that they share.
    """

    run: str
    seat: str = ""
    beside: tuple[str, ...] = ()
    most: int = 1
    cap: Budget | None = None

    @property
    def name(self) -> str:
        """The run's digest, followed by the seat if there is one."""
        return f"{self.run} {self.seat}" if self.seat else self.run


def run_of(study: str) -> str:
    """Return the run's digest, where a ledger's entry names a seat after it."""
    return study[:DIGEST_LETTERS] if study[DIGEST_LETTERS:].startswith(" ") else study


def uncovered(
    events: Sequence[Event],
    *,
    own: Iterable[Event],
    others: Iterable[Iterable[Event]],
    charged: Iterable[Event],
    most: int,
) -> tuple[Event, ...]:
    """Return how much of these events of a seat must be charged.

    `own` and `others` are what this seat and each of the others used before, `charged` is what of all that was charged.
    """
    needed = Counter(charge_of(([*own, *events], *others), most)) - Counter(charged)
    asked = set(events)
    return tuple(event for event in needed.elements() if event in asked)


def charge_of(seats: Iterable[Iterable[Event]], most: int) -> tuple[Event, ...]:
    """Return the charge that covers all that a person at `most` of the seats can lose."""
    used = [Counter(each) for each in seats]
    most_used = {
        event: sum(sorted((each[event] for each in used), reverse=True)[:most]) for event in dict.fromkeys(chain(*used))
    }
    return tuple(Counter(most_used).elements())
