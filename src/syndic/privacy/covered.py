"""Charges of an organisation that takes part in one study as several parties, with one ledger for all of them.

The people of these parties are different, except that a person may be at up to `most` of them. Each party's steps are
charged, but what a person can lose is the cost of `most` parties together (parallel composition). So the ledger charges
of every event as many as the `most` parties that used it most often, whichever comes first, and records the others as
`covered`. A covered event counts towards what the party may use at all, but not towards the cap.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from syndic.document import Document
from syndic.errors import IntegrityError
from syndic.privacy.chain import DIGEST_LETTERS, Entry
from syndic.privacy.event import Event
from syndic.privacy.unit import Budget


class Account(Document, frozen=True, kw_only=True):
    """Under which name a ledger and a memory keep a party's side of a run.

    `party` is its name if its organisation has several, and `beside` are the names of the others' accounts.
    `cap` is that of the party's own file: another party's may declare a higher one in the ledger that they share.
    """

    run: str
    party: str = ""
    beside: tuple[str, ...] = ()
    most: int = 1
    cap: Budget | None = None

    @property
    def name(self) -> str:
        """The run's digest, followed by the party's name if its organisation has several."""
        return f"{self.run} {self.party}" if self.party else self.run


def run_of(study: str) -> str:
    """Return the run's digest, where a ledger's entry names a party after it."""
    return study[:DIGEST_LETTERS] if study[DIGEST_LETTERS:].startswith(" ") else study


def checked_cover(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield the entries of a ledger; raise `IntegrityError` at the first that charges before it do not cover.

    An entry of another organisation's party in the same ledger would be one of another data set.
    """
    used: dict[tuple[str, str], dict[str, list[Event]]] = {}
    paid: dict[tuple[str, str], Counter[Event]] = {}
    for entry in entries:
        yield entry
        if entry.kind not in {"reserve", "covered"}:
            continue
        place = (entry.dataset, run_of(entry.study))
        used.setdefault(place, {}).setdefault(entry.study, []).extend(entry.events)
        if entry.kind == "reserve":
            paid.setdefault(place, Counter()).update(entry.events)
            continue
        # an entry without the number is of an earlier version; one party is the least that was ever charged
        asked = entry.asked[:9]
        most = max(1, int(asked)) if asked.isdecimal() else 1
        lacking = Counter(charge_of(used[place].values(), most)) - paid.get(place, Counter())
        if any(event in lacking for event in entry.events):
            raise IntegrityError(
                f"entry {entry.number} says that charges of the organisation's other parties cover it, and they do not"
            )


def uncovered(
    events: Sequence[Event],
    *,
    own: Iterable[Event],
    others: Iterable[Iterable[Event]],
    charged: Iterable[Event],
    most: int,
) -> tuple[Event, ...]:
    """Return how much of these events of a party must be charged.

    `own` and `others` are what this party and each of the others used before, `charged` is what was charged of it.
    """
    needed = Counter(charge_of(([*own, *events], *others), most)) - Counter(charged)
    asked = set(events)
    return tuple(event for event in needed.elements() if event in asked)


def charge_of(parties: Iterable[Iterable[Event]], most: int) -> tuple[Event, ...]:
    """Return the charge that covers all that a person at `most` of the parties can lose."""
    used = [Counter(each) for each in parties]
    most_used = {
        event: sum(sorted((each[event] for each in used), reverse=True)[:most]) for event in dict.fromkeys(chain(*used))
    }
    return tuple(Counter(most_used).elements())
