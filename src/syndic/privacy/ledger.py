"""The ledger: the durable, append-only, hash-chained record of what was spent on a party's people, under a cap.

Charge first, then draw noise: a charge is on disk when `reserve` returns, and stays whatever happens next. A reply may
leave the party only after `commit`, which accepts one reply for each call even if two processes work on it.

A data set is a set of people, not a file or a job: give the same name to every table about the same people.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self, final

from syndic.errors import BudgetError, InputError, IntegrityError, RefusedError
from syndic.privacy.chain import DIGEST_LETTERS, Called, Entry, Reservation, checked, write_entries
from syndic.privacy.cost import Cost, Price
from syndic.privacy.covered import Account, checked_cover, run_of, uncovered
from syndic.privacy.event import Event
from syndic.privacy.filter import Charged
from syndic.privacy.room import fits, refusal
from syndic.privacy.spending import Spending, StudySpending, by_study
from syndic.privacy.store import Store
from syndic.privacy.unit import Budget

_RESTORED: Final = "restored"
_CHARGES: Final = ("reserve", "covered")


@final
class Ledger:
    """One party's ledger, in the party's SQLite file. Threads may share it; each process opens its own.

    Everything written within one `database.writing()` becomes durable together. A charge is refused there: it must be
    on disk at once.
    """

    def __init__(self, store: Store) -> None:
        """Use `Ledger.open`."""
        self.database = store.database
        self._store = store
        self._verified = False

    @classmethod
    def open(cls, path: str | Path, *, patience: float = 30.0, create: bool = True, keep_answers: bool = True) -> Self:
        """Open the ledger, or create it unless `create` is false; wait up to `patience` seconds for other writers.

        The file also holds the party's answers and its memory. Without `keep_answers`, they are kept in memory only.
        """
        return cls(Store(Path(path), patience, create=create, keep_answers=keep_answers))

    def close(self) -> None:
        """Close the file."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def declare(self, dataset: str, cap: Budget, *, why: str = "") -> None:
        """Set the cap of a data set, higher or lower than before; nothing is written if it is already in force.

        A cap below what was spent refuses every later charge; it does not undo earlier ones.
        """
        _check_names(dataset=dataset)
        with self.database.writing():
            if self._cap(dataset) != cap:
                self._store.append(kind="declare", dataset=dataset, cap=cap, why=why)

    def reserve(  # noqa: PLR0913  # all by name
        self,
        *,
        dataset: str,
        study: str,
        call: str,
        door: str,
        events: Sequence[Event],
        why: str,
        limit: Cost | None = None,
        stated: Price | None = None,
        beyond_cap: bool = False,
        account: Account | None = None,
    ) -> Reservation:
        """Charge the events to the data set; the charge is on disk on return, before any noise is drawn.

        A study's call is charged once for each `door`, the number of the release within the call; the same call again
        gets the same reservation.

        Args:
            dataset: whose people are charged.
            study: the digest of the run.
            call: the id of the call, unique within the study.
            door: the number of the release within the call.
            events: what is charged.
            why: public text.
            limit: the most that this study may cost this data set. A step asked again under another call id then
                cannot spend more than was agreed.
            stated: the study's cost as stated before it ran, kept with its first charge.
            beyond_cap: charge even if the cap does not cover it, for what was spent already.
            account: of a party whose organisation has several; what their charges cover is not charged again.

        Raises:
            BudgetError: if the charge does not fit under the cap or the limit. Nothing was spent.
            RefusedError: if the call id was used for something else.
        """
        _check_names(dataset=dataset, study=study, call=call, door=door)
        if not events:
            raise InputError(f"call {call!r}: there are no events to charge for release {door}")
        cost, asked = Cost.of(events), (dataset, tuple(events))
        with self.database.writing(alone=True):
            self._check_once()
            known = self._known(study, call, door, asked)
            if known is not None:
                return known
            covered = account is not None and not self._uncovered(dataset, account, events)
            if not beyond_cap and not covered:
                self._check_cap(dataset, study, events, limit or cost, account)
            if limit is not None:
                self._check_limit(dataset, study, events, cost, limit)
            first = self._charge(dataset=dataset, study=study) is None
            place = {"dataset": dataset, "study": study, "call": call, "door": door, "why": why}
            charge = {"events": tuple(events), "cost": cost, "stated": stated if first else None}
            if limit not in {None, cost} and self._first(dataset) is None:
                self._store.append(kind="plan", dataset=dataset, study=study, cost=limit)
            cover = {"kind": "covered", "asked": str(account.most)} if account and covered else {"kind": "reserve"}
            entry = self._store.append(**cover, **place, **charge)
        return Reservation.of(entry, fresh=True, reply=None)

    def commit(self, study: str, call: str, reply_digest: str) -> None:
        """Record that a study's call was answered by the reply with this digest; on disk on return.

        Repeating the same digest changes nothing. Another digest is refused: that reply must not leave the party.
        """
        _check_names(study=study, call=call, reply_digest=reply_digest)
        with self.database.writing():
            self._commit(study, call, reply_digest)

    def _commit(self, study: str, call: str, reply_digest: str) -> None:
        answer = self._store.first(kind="commit", study=study, call=call)
        if answer is not None:
            if answer.reply != reply_digest:
                raise RefusedError(f"call {call!r} was answered with another reply: send the stored one")
            return
        charge = self._charge(study=study, call=call)
        if charge is None:
            raise RefusedError(f"call {call!r} was never charged here: reserve first")
        self._store.append(kind="commit", dataset=charge.dataset, study=study, call=call, reply=reply_digest)

    def log_agreement(self, *, dataset: str, study: str, agreement: str, why: str, stated: Price | None = None) -> None:
        """Record that the owner signed an agreement to the study; `agreement` is the digest of what was signed."""
        _check_names(dataset=dataset, study=study, agreement=agreement)
        with self.database.writing():
            self._store.append(kind="agree", dataset=dataset, study=study, reply=agreement, why=why, stated=stated)

    def log_disclosure(self, *, dataset: str, study: str, call: str, why: str, stated: Price | None = None) -> None:
        """Record that the study shows something exactly, outside any epsilon; on disk on return, once for each call."""
        _check_names(dataset=dataset, study=study, call=call, why=why)
        with self.database.writing(alone=True):
            if self._store.first(kind="disclose", study=study, call=call) is None:
                place = {"dataset": dataset, "study": study, "call": call}
                self._store.append(kind="disclose", **place, why=why, stated=stated)

    def log_withdrawal(self, *, dataset: str, study: str, why: str, restored: bool = False) -> None:
        """Record that the owner withdrew its agreement to the study, for good if the ledger was `restored`."""
        _check_names(dataset=dataset, study=study)
        with self.database.writing():
            door = _RESTORED if restored else ""
            self._store.append(kind="withdraw", dataset=dataset, study=study, why=why, door=door)

    def check_open(self, study: str) -> None:
        """Raise `RefusedError` if the study was withdrawn after a restore: what it asks again may be answered twice."""
        if self._store.first(kind="withdraw", study=study, door=_RESTORED) is not None:
            raise RefusedError(f"study {study[:12]} was withdrawn after a restore: it needs a new edition")

    def standing(self, study: str) -> Entry | None:
        """Return the owner's last decision about a study: the entry of its agreement or of its withdrawal."""
        with self.database.reading():
            return self._store.standing(study)

    def agreed(self) -> tuple[str, ...]:
        """Return every study that the owner ever agreed to, also if it withdrew later."""
        return tuple(dict.fromkeys(entry.study for entry in self._store.each(kind="agree")))

    def agreed_as(self, run: str, dataset: str) -> set[str]:
        """Return the accounts under which the owner ever agreed to a run for a data set."""
        return {entry.study for entry in self._store.each(kind="agree", dataset=dataset) if run_of(entry.study) == run}

    def log_call(self, called: Called, *, charged: bool = False) -> bool:
        """Record a call and its reply; for a call that was `charged`, together with `commit`. On disk on return.

        Return whether it is a new entry.

        A call that got the same reply before is not recorded again. Of refusals the first for each step and reason is
        recorded, of a `fresh` step the first answer: whoever asks a million times does not fill the ledger.
        """
        with self.database.writing():
            if charged:
                self._commit(called.study, called.call, called.reply)
            place = {"dataset": called.dataset, "study": called.study, "why": called.step}
            new = not self._logged(called, place)
            if new:
                which = {"call": called.call, "asked": called.asked, "reply": called.reply}
                last = self._store.last(kind="call", dataset=called.dataset, study=called.study)
                # only a stored answer changes the head: a refusal does not accept a head that went back
                head = self._store.answered(called.study) if called.stored else last.door if last else ""
                self._store.append(kind="call", **place, **which, door=head)
        return new

    def _logged(self, called: Called, place: dict[str, str]) -> bool:
        if called.refused:
            return self._store.first(kind="call", **place, reply=called.reply) is not None
        if called.fresh:
            return any(len(one.reply) == DIGEST_LETTERS for one in self._store.each(kind="call", **place))
        return self._store.first(kind="call", **place, call=called.call, reply=called.reply) is not None

    def check_answers(self, *, dataset: str, study: str) -> None:
        """Raise `RefusedError` unless the stored answers to a study's calls are as new as the last entry of a call."""
        with self.database.reading():
            last = self._store.last(kind="call", dataset=dataset, study=study)
            if last is not None and last.door != self._store.answered(study):
                raise RefusedError(
                    "this party's stored answers are older than its ledger. New noise on an old charge would be a "
                    "second release: its owner restores the newest copy, or runs syndic withdraw --restored for a new "
                    "edition of the study"
                )

    def spent(self, dataset: str) -> Spending:
        """Return what was spent on a data set, whether its calls were answered or not."""
        return self.spent_after(dataset=dataset, study="", events=())

    def spent_after(
        self, *, dataset: str, study: str, events: Sequence[Event], account: Account | None = None
    ) -> Spending:
        """Return what will be spent on a data set once the study has charged all of these events. Spends nothing.

        It is the composition of all charges in the ledger and of those events that are not charged yet.
        """
        with self.database.reading():
            self._check_once()
            cap, rest = self._cap(dataset), self._open_events(dataset, study, events, account)
            charged = self._charged(dataset, study, rest, Cost.of(events))
        if cap is None:
            raise InputError(f"data set {dataset!r} is not in the ledger {self._store.path}: declare its cap")
        return Spending.of(dataset, charged, cap)

    def studies(self) -> tuple[StudySpending, ...]:
        """Return what each study cost: the cost it stated, what was charged, and what was spent after it."""
        with self.database.reading():
            self._check_once()
            caps = {dataset: cap for dataset in self.datasets() if (cap := self._cap(dataset)) is not None}
            return by_study(self._store.each(), caps)

    def check(self, *, dataset: str, study: str, events: Sequence[Event], account: Account | None = None) -> None:
        """Raise `BudgetError` unless the study's uncharged events fit under the cap. Spends nothing."""
        with self.database.reading():
            self._check_once()
            open_events = self._open_events(dataset, study, events, account)
            if open_events:
                self._check_cap(dataset, study, open_events, Cost.of(events), account)

    def _open_events(
        self, dataset: str, study: str, events: Sequence[Event], account: Account | None
    ) -> tuple[Event, ...]:
        if account is None:
            return tuple((Counter(events) - Counter(self.charged(study, dataset=dataset))).elements())
        # the organisation's other parties are charged for the same
        return tuple((Counter([*events] * account.most) - Counter(self._paid(dataset, account))).elements())

    def _paid(self, dataset: str, account: Account) -> list[Event]:
        every = (account.name, *account.beside)
        return [event for study in every for event in self._events(kind="reserve", dataset=dataset, study=study)]

    def _uncovered(self, dataset: str, account: Account, events: Sequence[Event]) -> tuple[Event, ...]:
        """Return how much of a party's events the charges of its organisation's parties do not cover."""
        own, *others = (self.charged(study, dataset=dataset) for study in (account.name, *account.beside))
        paid = self._paid(dataset, account)
        return uncovered(events, own=own, others=others, charged=paid, most=account.most)

    def charged(self, study: str, **where: str) -> tuple[Event, ...]:
        """Return all events that a study has charged so far, and those that charges of other parties cover."""
        return tuple(event for kind in _CHARGES for event in self._events(kind=kind, study=study, **where))

    def _events(self, **where: str) -> Iterator[Event]:
        return (event for entry in self._store.each(**where) for event in entry.events)

    def datasets(self) -> tuple[str, ...]:
        """Return the names of the data sets in the ledger."""
        return self._store.datasets()

    def entries(self, dataset: str | None = None) -> Iterator[Entry]:
        """Yield the entries in order, of one data set or of all."""
        return self._store.each() if dataset is None else self._store.each(dataset=dataset)

    def calls(self, study: str) -> tuple[Entry, ...]:
        """Return every answered or refused call of a study, in order."""
        return tuple(self._store.each(kind="call", study=study))

    def head(self) -> str:
        """Return the digest of the last entry, which covers the whole ledger. Publish it or have it countersigned."""
        return self._store.head()[1]

    def verify(self, *, published: str | None = None) -> None:
        """Raise `IntegrityError`, naming the first bad entry, unless the ledger is as it was written.

        It finds entries that were changed, removed or reordered, a tail that was cut without rewriting the head, and
        `covered` entries that no charge covers.
        Whoever can write the file can also replace all of it, or restore an older copy, with matching digests. Only a
        `published` head, kept by somebody else, reveals that: it must be the digest of some entry.
        A ledger verifies itself before it first counts what was spent.
        """
        with self.database.reading():
            self.database.check()
            self._verify(published)

    def _check_once(self) -> None:
        """Verify the file before the first count: a charge lost by damage would be spent again."""
        if not self._verified:
            # only the tables that are counted: the answers may be as large as the file
            self.database.check("entry", "head")
            self._verify(None)
            self._verified = True

    def _verify(self, published: str | None) -> None:
        number, digest = self._store.head()
        last = (0, digest if number == 0 else "")
        seen = published is None or (number == 0 and published == digest)
        try:
            for entry in checked_cover(checked(self._store.each())):
                last = (entry.number, entry.hash)
                seen = seen or entry.hash == published
        except IntegrityError as error:
            raise IntegrityError(f"{self._store.path}: {error}") from None
        if last != (number, digest):
            raise IntegrityError(
                f"{self._store.path}: the chain ends at entry {last[0]}, but its head names entry {number}: "
                f"entry {last[0] + 1 if last[0] < number else last[0]} was removed or replaced"
            )
        if not seen:
            raise IntegrityError(f"{self._store.path}: no entry has the published digest {published}")

    def export(self, path: str | Path) -> None:
        """Write all entries to a `.json` or `.csv` file; no entry contains anything read from rows."""
        with self.database.reading():
            head, entries = self.head(), list(self._store.each())
        write_entries(Path(path), head, entries)

    def _known(self, study: str, call: str, door: str, asked: tuple[str, tuple[Event, ...]]) -> Reservation | None:
        answer = self._store.first(kind="commit", study=study, call=call)
        known = self._charge(study=study, call=call, door=door)
        if known is not None:
            if (known.dataset, known.events) != asked:
                raise RefusedError(f"call {call!r} was charged for something else: use a new call id")
            return Reservation.of(known, fresh=False, reply=answer.reply if answer else None)
        if answer is not None:
            raise RefusedError(f"call {call!r} was answered already: use a new call id")
        return None

    def _cap(self, dataset: str) -> Budget | None:
        declared = self._store.last(kind="declare", dataset=dataset)
        return declared.cap if declared else None

    def _charge(self, **where: str) -> Entry | None:
        """Return the first charge with these values, or the first that others cover."""
        return next((found for kind in _CHARGES if (found := self._store.first(kind=kind, **where))), None)

    def _first(self, dataset: str) -> Entry | None:
        """Return the entry with all that the first study on a data set may charge."""
        where = {"dataset": dataset}
        return self._store.first(kind="plan", **where) or self._store.first(kind="reserve", **where)

    def _charged(self, dataset: str, study: str, events: Sequence[Event], plan: Cost, *, exact: bool = True) -> Charged:
        """Return all charges to a data set and these events of a study, whose whole cost is `plan`."""
        first = self._first(dataset)
        if first is None:
            return Charged(cost=Cost.of(events), first=plan)
        total = self._store.total(kind="reserve", dataset=dataset)
        alone = (not events or study == first.study) and total == self._store.total(
            kind="reserve", dataset=dataset, study=first.study
        )
        charges = self._events(kind="reserve", dataset=dataset)
        cost = Cost.of([*charges, *events]) if exact else total + Cost.of(events)
        return Charged(cost=cost, first=first.cost, alone=alone)

    def _check_cap(
        self, dataset: str, study: str, events: Sequence[Event], plan: Cost, account: Account | None
    ) -> None:
        cap = self._cap(dataset)
        if cap is None:
            raise BudgetError(f"data set {dataset!r} has no cap in this party's ledger: its owner must declare one")
        self._check_under(cap, dataset, study, events, plan)
        if account is not None and account.cap is not None and account.cap != cap:
            self._check_under(account.cap, dataset, study, events, plan)

    def _check_under(self, cap: Budget, dataset: str, study: str, events: Sequence[Event], plan: Cost) -> None:
        # the sum of charges rounded up one by one is quick and usually enough; only the exact sum may refuse
        if fits(self._charged(dataset, study, events, plan, exact=False), cap):
            return
        after = self._charged(dataset, study, events, plan)
        if not fits(after, cap):
            now = self._charged(dataset, study, (), plan)
            raise BudgetError(refusal(dataset, now, events, cap, alone=after.alone))

    def _check_limit(self, dataset: str, study: str, events: Sequence[Event], cost: Cost, limit: Cost) -> None:
        quick = cost
        for kind in _CHARGES:
            quick = quick + self._store.total(kind=kind, dataset=dataset, study=study)
        if not limit.covers(quick) and not limit.covers(Cost.of([*self.charged(study, dataset=dataset), *events])):
            raise BudgetError(
                f"data set {dataset!r}: with this call, study {study!r} would spend more than it declares; "
                "a step that was answered cannot be charged again under another call id"
            )


def _check_names(**names: str) -> None:
    for name, value in names.items():
        if not value:
            raise InputError(f"{name} must not be empty")
