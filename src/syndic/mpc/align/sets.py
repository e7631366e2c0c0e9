"""Alignments of several sets of parties in one study, one after the other: who is at which parties.

For each set, in the study's order, its parties find the people that all of them hold. A party leaves the people that it
found in an earlier set out of the later ones: a person is in the first set that finds it. So the people of two sets
that share a party are different. Those of two sets without a common party may be the same: nobody sees both.

A party works on one set at a time, the first of its own that it has not finished. It decides that itself, by what it
stored, and no message names a set: a coordinator that asks for sets in another order is refused or gets boxes that do
not open, since keys, seals and stored names have the set's name in them.

*Who learns what.* As in one set, for each set that a party is in. Points are padded to the same bound in every set, so
nobody learns how many people were found elsewhere. What an absence means changes: a person that a party of a later set
does not find is held by not all of them, or was found by one of them in an earlier set.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any

from syndic.data.aligned import NAME_BYTES, name_of
from syndic.errors import RefusedError
from syndic.kernel import Nothing, Party, Session, SubProtocol, step
from syndic.mpc.align.steps import PrivateIntersection
from syndic.mpc.align.table import add
from syndic.mpc.align.work import (
    AlignBox,
    AlignDone,
    AlignTable,
    AlignTurn,
    StoredOrder,
    inboxes_of,
    passed_on,
)
from syndic.mpc.order import Stage
from syndic.mpc.seal import Mail
from syndic.mpc.secret import SharedSecret

_DONE = "align sets"


class PrivateIntersections(SubProtocol):
    """The intersections of one or more `sets` of parties, and the `secret` of all parties that they start with."""

    sets: tuple[PrivateIntersection, ...]
    secret: SharedSecret

    def rounds(self, collect: str) -> tuple[str, ...]:
        """Return the names of the steps, including the method's own step, in order."""
        powers = ("align_blind", "align_raise", "align_finish")
        tables = () if all(each.two for each in self.sets) else ("align_table", "align_match")
        return (*self.secret.rounds, collect, *powers, *tables, "align_vouch", "align_confirm", "align_done")

    def run(self, session: Session, collect: Callable[[Any, Nothing], Nothing]) -> dict[str, AlignDone]:
        """Run all steps of all sets and return the result of each, by its name."""
        self.secret.run(session)
        return {each.name: self._run(each, session, collect) for each in self.sets}

    def _run(self, one: PrivateIntersection, session: Session, collect: Callable[[Any, Nothing], Nothing]) -> AlignDone:
        """Carry boxes round, add up tables, and return the common result of one set."""
        names = one.names
        session.ask(collect, dict.fromkeys(names, Nothing()))
        for number in range(one.chunks):
            session.progress("chunks of ids", number, one.chunks)
            mail = session.ask(self.align_blind, dict.fromkeys(names, AlignTurn(number=number)))
            for hop in range(1, len(names)):
                mail = session.ask(self.align_raise, passed_on(names, mail, number, hop))
            session.ask(self.align_finish, passed_on(names, mail, number, len(names)))
        session.progress("chunks of ids", one.chunks, one.chunks)
        for number in range(one.parts):
            tables = session.ask(self.align_table, dict.fromkeys(names, AlignTurn(number=number)))
            total = reduce(add, (table.words for table in tables.values()))
            session.ask(self.align_match, dict.fromkeys(names, AlignTable(number=number, words=total)))
        vouched = session.ask(self.align_vouch, dict.fromkeys(names, Nothing()))
        confirmed = session.ask(self.align_confirm, inboxes_of(vouched))
        return next(iter(session.ask(self.align_done, inboxes_of(confirmed)).values()))

    def turn(self, party: Party) -> PrivateIntersection:
        """Return the set that this party works on: the first of its own that is not finished, or else its last."""
        own = self._own(party)
        return own[min(self._finished(party), len(own) - 1)]

    def check_columns(self, party: Party, columns: tuple[str, ...]) -> None:
        """Refuse other id columns than an earlier set's: a person found there would be found again."""
        earlier = [party.recall(each.order_name, StoredOrder) for each in self._own(party)[: self._finished(party)]]
        if any(each.alignment.columns != columns for each in earlier):
            raise RefusedError(
                f"the id columns of {party.name} are not those of its earlier sets: name these in its party.toml"
            )

    def new_ids(self, party: Party, ids: list[bytes]) -> list[bytes]:
        """Return the ids that this party did not find in an earlier set. Private."""
        for earlier in self._own(party)[: self._finished(party)]:
            order = party.recall(earlier.order_name, StoredOrder).alignment
            starts = range(0, len(order.names), NAME_BYTES)
            found = {order.names[start : start + NAME_BYTES] for start in starts}
            ids = [each for each in ids if name_of(each, order.key) not in found]
        return ids

    def _own(self, party: Party) -> list[PrivateIntersection]:
        return [each for each in self.sets if party.name in each.bounds]

    def _finished(self, party: Party) -> int:
        kept = party.kept(_DONE, Stage)
        return 0 if kept is None else kept.done

    @step(reveals="sealed")
    def align_blind(self, party: Party, message: AlignTurn) -> Mail:
        """Blind a chunk of this party's points and seal it for the next party."""
        return self.turn(party).align_blind(party, message)

    @step(reveals="sealed")
    def align_raise(self, party: Party, message: AlignBox) -> Mail:
        """Raise another party's blinded points to this party's secret power, and seal them for the next party."""
        return self.turn(party).align_raise(party, message)

    @step(reveals="sealed")
    def align_finish(self, party: Party, message: AlignBox) -> Nothing:
        """Replace the blinding of this party's points by its own power, and store the labels. Sends nothing."""
        return self.turn(party).align_finish(party, message)

    @step(reveals="masked")
    def align_table(self, party: Party, message: AlignTurn) -> AlignTable:
        """Encode this party's shares as a table: uniform without the secret of every pair of parties."""
        return self.turn(party).align_table(party, message)

    @step(reveals="sealed")
    def align_match(self, party: Party, message: AlignTable) -> Nothing:
        """Store for which of this party's ids the sum of all tables is zero. Sends nothing."""
        return self.turn(party).align_match(party, message)

    @step(reveals="sealed")
    def align_vouch(self, party: Party, message: Nothing) -> Mail:
        """Order and store the common people, and seal a blinded digest of the order for every other party."""
        return self.turn(party).align_vouch(party, message)

    @step(reveals="sealed")
    def align_confirm(self, party: Party, message: Mail) -> Mail:
        """Derive a key with every other party, equal if the results are equal, and seal a proof of knowing it."""
        return self.turn(party).align_confirm(party, message)

    @step(reveals="public")
    def align_done(self, party: Party, message: Mail) -> AlignDone:
        """Check that all parties found the same; then store the order and return the number, if it is told."""
        done = self.turn(party).align_done(party, message)
        party.remember(_DONE, Stage(done=self._finished(party) + 1))
        return done
