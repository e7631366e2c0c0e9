"""The account of what was spent on a party's people: durable, append-only, hash-chained, capped.

Spend, then draw: a charge is on disk when `reserve` returns, and it stays spent whatever happens next. A
reply may leave the party only after `commit`, which lets one reply pass for a call even if two processes work
on it.

A data set is the set of people, not a file or a job: give the same name to every table about the same people.
"""

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import inf
from pathlib import Path
from types import TracebackType
from typing import Self, final

from syndic.document import Document, to_builtins, to_json
from syndic.errors import BudgetError, InputError, IntegrityError, RefusedError
from syndic.privacy.chain import Entry, checked
from syndic.privacy.cost import Cost
from syndic.privacy.event import Event
from syndic.privacy.room import fits, largest_fitting, rounded_down
from syndic.privacy.store import Store
from syndic.privacy.unit import Budget


class Reservation(Document, frozen=True, kw_only=True):
    """A charge that is on disk.

    `fresh` is false where the call had been charged before. `reply` is the digest of the answer the call was
    given, if it was: then no noise may be drawn for it again, the stored reply is the answer.
    """

    number: int
    dataset: str
    study: str
    call: str
    door: str
    cost: Cost
    fresh: bool
    reply: str | None = None


class Spending(Document, frozen=True, kw_only=True):
    """What was spent on a data set: `epsilon` at the cap's `delta`, and what is `left` of the cap."""

    dataset: str
    cost: Cost
    epsilon: Fraction | float
    delta: Fraction
    cap: Budget
    left: Fraction


class Called(Document, frozen=True, kw_only=True):
    """A call as the owner's log has it.

    `asked` is the digest of the question, `reply` that of the answer or the code of a refusal. `call` and `step` are
    empty where the question could not be read.
    """

    dataset: str
    study: str
    call: str
    step: str
    asked: str
    reply: str


@final
class Ledger:
    """One party's ledger, in the party's SQLite file. Threads may share it; each process opens its own.

    What is written within `database.writing()` becomes durable together; a charge cannot be among it.
    """

    def __init__(self, store: Store) -> None:
        """Use `Ledger.open`."""
        self.database = store.database
        self._store = store
        self._verified = False

    @classmethod
    def open(cls, path: str | Path, *, patience: float = 30.0, create: bool = True, keep_answers: bool = True) -> Self:
        """Open the ledger, or create it unless `create` is false; wait up to `patience` seconds for other writers.

        The file also holds the answers that a party gave and what it remembers; unless `keep_answers`, those of this
        opening are not written to it.
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
        """Set the cap of a data set, higher or lower than before; the cap in force is not written again.

        Lowering it below what was spent gives nothing back, and refuses every charge from then on.
        """
        _check_names(dataset=dataset)
        with self.database.writing():
            if self._cap(dataset) != cap:
                self._store.append(kind="declare", dataset=dataset, cap=cap, why=why)

    def reserve(
        self,
        *,
        dataset: str,
        study: str,
        call: str,
        door: str,
        events: Sequence[Event],
        why: str,
        limit: Cost | None = None,
    ) -> Reservation:
        """Charge the events to the data set; the charge is on disk on return, before any noise is drawn.

        A call is charged once for each door: asked again with the same content, it gets the same reservation.
        `limit` is the most that this study may cost this data set, so that asking a step again under another
        call id does not spend more than was agreed. `why` is public text. Raises `BudgetError`, with nothing
        spent, where the charge does not fit, and `RefusedError` where the call id stands for something else.
        """
        _check_names(dataset=dataset, study=study, call=call, door=door)
        if not events:
            raise InputError(f"door {door!r} of call {call!r}: there are no events to charge")
        cost, asked = Cost.of(events), (dataset, study, tuple(events))
        with self.database.writing(alone=True):
            self._check_once()
            known = self._known(call, door, asked)
            if known is not None:
                return known
            self._check_cap(dataset, events, cost)
            if limit is not None:
                self._check_limit(dataset, study, events, cost, limit)
            place = {"dataset": dataset, "study": study, "call": call, "door": door}
            entry = self._store.append(kind="reserve", **place, events=tuple(events), cost=cost, why=why)
        return _reservation(entry, fresh=True, reply=None)

    def commit(self, call: str, reply_digest: str) -> None:
        """Record that the call was answered by the reply of this digest; on disk on return.

        The same digest again changes nothing. Another one is refused: that reply must not leave the party.
        """
        _check_names(call=call, reply_digest=reply_digest)
        with self.database.writing():
            self._commit(call, reply_digest)

    def _commit(self, call: str, reply_digest: str) -> None:
        answer = self._store.first(kind="commit", call=call)
        if answer is not None:
            if answer.reply != reply_digest:
                raise RefusedError(f"call {call!r} was answered with another reply: send the stored one")
            return
        charge = self._store.first(kind="reserve", call=call)
        if charge is None:
            raise RefusedError(f"call {call!r} was never charged here: reserve first")
        self._store.append(kind="commit", dataset=charge.dataset, study=charge.study, call=call, reply=reply_digest)

    def log_agreement(self, *, dataset: str, study: str, agreement: str, why: str) -> None:
        """Record that the owner signed an agreement to the study; `agreement` is the digest of what was signed."""
        _check_names(dataset=dataset, study=study, agreement=agreement)
        with self.database.writing():
            self._store.append(kind="agree", dataset=dataset, study=study, reply=agreement, why=why)

    def log_withdrawal(self, *, dataset: str, study: str, why: str) -> None:
        """Record that the owner takes back its agreement to the study. What was spent stays spent."""
        _check_names(dataset=dataset, study=study)
        with self.database.writing():
            self._store.append(kind="withdraw", dataset=dataset, study=study, why=why)

    def standing(self, study: str) -> Entry | None:
        """Return the owner's last word about a study: the entry of its agreement or of its withdrawal."""
        with self.database.reading():
            return self._store.standing(study)

    def agreed(self) -> tuple[str, ...]:
        """Return every study that the owner ever agreed to, whatever it said later."""
        return tuple(dict.fromkeys(entry.study for entry in self._store.each(kind="agree")))

    def log_call(self, called: Called, *, charged: bool = False) -> None:
        """Record a call and what it got; for a call that was `charged`, in one go with `commit`. On disk on return."""
        with self.database.writing():
            if charged:
                self._commit(called.call, called.reply)
            place = {"dataset": called.dataset, "study": called.study, "call": called.call}
            self._store.append(kind="call", **place, asked=called.asked, reply=called.reply, why=called.step)

    def spent(self, dataset: str) -> Spending:
        """Return what was spent on a data set, answered or not."""
        with self.database.reading():
            self._check_once()
            cap = self._cap(dataset)
            cost = self._exact(dataset=dataset)
        if cap is None:
            raise InputError(f"data set {dataset!r} is not in the ledger {self._store.path}: declare its cap")
        return _spending(dataset, cost, cap)

    def check(self, *, dataset: str, study: str, events: Sequence[Event]) -> None:
        """Raise `BudgetError` unless those events fit that the study was not charged for yet. Spends nothing."""
        with self.database.reading():
            self._check_once()
            charged = Counter(self.charged(study, dataset=dataset))
            open_events = tuple((Counter(events) - charged).elements())
            if open_events:
                self._check_cap(dataset, open_events, Cost.of(open_events))

    def charged(self, study: str, **where: str) -> tuple[Event, ...]:
        """Return everything that a study was charged for so far."""
        charges = self._store.each(kind="reserve", study=study, **where)
        return tuple(event for entry in charges for event in entry.events)

    def datasets(self) -> tuple[str, ...]:
        """Return the names of the data sets in the ledger."""
        return self._store.datasets()

    def entries(self, dataset: str | None = None) -> Iterator[Entry]:
        """Return the entries in order, of one data set or of all."""
        return self._store.each() if dataset is None else self._store.each(dataset=dataset)

    def calls(self, study: str) -> tuple[Entry, ...]:
        """Return every call about a study that was answered or refused, in order."""
        return tuple(self._store.each(kind="call", study=study))

    def head(self) -> str:
        """Return the digest of the last entry; it stands for the whole ledger: publish or countersign it."""
        return self._store.head()[1]

    def verify(self, *, published: str | None = None) -> None:
        """Raise `IntegrityError`, naming the first bad entry, unless the ledger is as it was written.

        Found are entries changed, missing or out of order, and a tail cut without rewriting the head. Whoever
        can write the file can also replace all of it, or put back an older copy, with fitting digests: only a
        `published` head, kept by somebody else, shows that. It must then be the digest of some entry.
        Before an opened ledger first counts what was spent it verifies itself.
        """
        with self.database.reading():
            self.database.check()
            self._verify(published)

    def _check_once(self) -> None:
        """Count nothing in a file that was damaged: a charge that cannot be found would be spent again."""
        if not self._verified:
            # the tables that are counted; answers may be as large as the file
            self.database.check("entry", "head")
            self._verify(None)
            self._verified = True

    def _verify(self, published: str | None) -> None:
        number, digest = self._store.head()
        last = (0, digest if number == 0 else "")
        seen = published is None or (number == 0 and published == digest)
        try:
            for entry in checked(self._store.each()):
                last = (entry.number, entry.hash)
                seen = seen or entry.hash == published
        except IntegrityError as error:
            raise IntegrityError(f"{self._store.path}: {error}") from None
        if last != (number, digest):
            raise IntegrityError(
                f"{self._store.path}: the chain ends at entry {last[0]}, its head says entry {number}: "
                f"entry {last[0] + 1 if last[0] < number else last[0]} was cut or replaced"
            )
        if not seen:
            raise IntegrityError(f"{self._store.path}: no entry has the published digest {published}")

    def export(self, path: str | Path) -> None:
        """Write all entries to a `.json` or `.csv` file; an entry holds nothing read from rows."""
        path = Path(path)
        if path.suffix not in {".json", ".csv"}:
            raise InputError(f"{path.name}: expected a .json or .csv file")
        with self.database.reading():
            head, entries = self.head(), list(self._store.each())
        if path.suffix == ".json":
            path.write_bytes(to_json({"head": head, "entries": entries}))
            return
        columns = [name for name in Entry.__struct_fields__ if name != "cost"]
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, [*columns, *Cost.__struct_fields__], extrasaction="ignore")
            writer.writeheader()
            for entry in entries:
                row = to_builtins(entry)
                texts = {name: to_json(row[name]).decode() for name in ("events", "cap")}
                told = {name: _as_text(value) for name, value in row.items() if isinstance(value, str)}
                writer.writerow({**row, **told, **row["cost"], **texts})

    def _known(self, call: str, door: str, asked: tuple[str, str, tuple[Event, ...]]) -> Reservation | None:
        answer = self._store.first(kind="commit", call=call)
        known = self._store.first(kind="reserve", call=call, door=door)
        if known is not None:
            if (known.dataset, known.study, known.events) != asked:
                raise RefusedError(f"call {call!r} was charged for something else: use a new call id")
            return _reservation(known, fresh=False, reply=answer.reply if answer else None)
        if answer is not None:
            raise RefusedError(f"call {call!r} was answered already: use a new call id")
        return None

    def _cap(self, dataset: str) -> Budget | None:
        declared = self._store.last(kind="declare", dataset=dataset)
        return declared.cap if declared else None

    def _exact(self, *more: Event, **where: str) -> Cost:
        """Return the cost of the charges with these values and `more` events, rounded up only once."""
        charges = self._store.each(kind="reserve", **where)
        return Cost.of([*(event for entry in charges for event in entry.events), *more])

    def _check_cap(self, dataset: str, events: Sequence[Event], cost: Cost) -> None:
        cap = self._cap(dataset)
        if cap is None:
            raise BudgetError(f"data set {dataset!r} has no cap in this party's ledger: its owner declares one")
        # sums of charges that were rounded up one by one are quick, and decide unless three thirds make a whole
        if fits(self._store.total(kind="reserve", dataset=dataset) + cost, cap):
            return
        if fits(self._exact(*events, dataset=dataset), cap):
            return
        spent = self._exact(dataset=dataset)
        now, asked = _spending(dataset, spent, cap), cost.epsilon(cap.delta)
        text = (
            f"data set {dataset!r}: spent {float(now.epsilon):.6g} of epsilon {float(cap.epsilon):.6g} "
            f"(delta {float(cap.delta):g}), asked {float(asked):.6g}, left {rounded_down(now.left)}; "
        )
        if asked == inf:
            raise BudgetError(f"{text}this kind of charge needs a larger delta")
        largest = largest_fitting(spent, events, cap)
        told = f"the largest charge of this kind that fits is {rounded_down(largest)}"
        raise BudgetError(text + (told if largest else "no charge of this kind fits"))

    def _check_limit(self, dataset: str, study: str, events: Sequence[Event], cost: Cost, limit: Cost) -> None:
        quick = self._store.total(kind="reserve", dataset=dataset, study=study) + cost
        if not limit.covers(quick) and not limit.covers(self._exact(*events, dataset=dataset, study=study)):
            raise BudgetError(
                f"data set {dataset!r}: with this call, study {study!r} would spend more than it declares; "
                "a step that was answered is not charged again under another call id"
            )


def _check_names(**names: str) -> None:
    for name, value in names.items():
        if not value:
            raise InputError(f"{name} must not be empty")


def _reservation(entry: Entry, *, fresh: bool, reply: str | None) -> Reservation:
    return Reservation(
        number=entry.number,
        dataset=entry.dataset,
        study=entry.study,
        call=entry.call,
        door=entry.door,
        cost=entry.cost,
        fresh=fresh,
        reply=reply,
    )


def _spending(dataset: str, cost: Cost, cap: Budget) -> Spending:
    epsilon = cost.epsilon(cap.delta)
    left = Fraction(max(Fraction(0), cap.epsilon - epsilon)) if epsilon != inf else Fraction(0)
    return Spending(dataset=dataset, cost=cost, epsilon=epsilon, delta=cap.delta, cap=cap, left=left)


def _as_text(value: str) -> str:
    """Return a text as a spreadsheet shows it; the coordinator chooses names of calls, and one may be a formula."""
    return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
