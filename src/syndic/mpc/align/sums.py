"""What hides the sum of all tables from the coordinator, and tests that it is the sum.

The sum is zero at the keys of common people. A polynomial's zeros can be counted, so a coordinator that saw the sum
would know how many people are common. The first party adds uniform numbers, its cover, which all parties take off.

A coordinator that changes the sum would leave people out at all parties alike, unseen. So each party keeps a sum of its
table under secret weights, and one of what it got. Before the results are compared, parties tell each other the former,
under seal: these add up to the latter, or the run ends. A wrong sum passes with probability 2^-61.

Cover and weights come from the secret of all parties of the study: a party that helps the coordinator gives them away.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

from syndic.errors import RefusedError
from syndic.kernel import Message, Party
from syndic.mpc.align.table import FIELD, TableShape, Words, add, field_words, subtract, weighed
from syndic.mpc.key import context
from syndic.mpc.mask import stream

SUM_BYTES = 8
"""Bytes of a weighted sum."""


class Sums(Message):
    """Weighted sums of a part of this party's table, and of the sum of all tables that it got. Private."""

    sent: int
    got: int = 0


@final
@dataclass(frozen=True, kw_only=True)
class TableSums:
    """A party's side of the sum: the `label` of what it stores, the tables' `shape`, and a `key` of all parties."""

    party: Party
    label: str
    shape: TableShape
    key: bytes

    def sent(self, number: int, words: Words, is_first: bool) -> Words:
        """Return a part of this party's table as it is sent, covered by the first party; store its weighted sum."""
        words = add(words, self.drawn("cover", number)) if is_first else words
        self._remember(number, Sums(sent=weighed(words, self.drawn("weights", number))))
        return words

    def got(self, number: int, words: Words) -> Words:
        """Return a part of the sum without its cover; refuse what is no such sum, and store its weighted sum."""
        if words.shape != (len(self.shape.parts()[number]), self.shape.points) or (words >= FIELD).any():
            raise RefusedError(
                "the sum of the tables does not have the shape or the range of numbers that the study defines"
            )
        own = self.party.recall(self._name(number), Sums).sent
        self._remember(number, Sums(sent=own, got=weighed(words, self.drawn("weights", number))))
        return subtract(words, self.drawn("cover", number))

    def proof(self) -> bytes:
        """Return the weighted sum of this party's table, for the other parties."""
        return (sum(each.sent for each in self._kept()) % FIELD).to_bytes(SUM_BYTES, "little")

    def check(self, proofs: Iterable[bytes]) -> None:
        """Refuse unless the tables of all parties add up to what this party got."""
        others = sum(int.from_bytes(proof, "little") for proof in proofs)
        if (others + sum(each.sent - each.got for each in self._kept())) % FIELD:
            raise RefusedError("the tables do not add up to the sum that the coordinator sent: set a new edition")

    def drawn(self, what: str, number: int) -> Words:
        """Return uniform numbers for a part of a table, the same at all parties."""
        size = (len(self.shape.parts()[number]), self.shape.points)
        return field_words(stream(self.key, context(what, number), 8 * size[0] * size[1])).reshape(size)

    def _kept(self) -> list[Sums]:
        return [self.party.recall(self._name(number), Sums) for number in range(len(self.shape.parts()))]

    def _remember(self, number: int, sums: Sums) -> None:
        self.party.remember(self._name(number), sums)

    def _name(self, number: int) -> str:
        return f"{self.label} sums {number}"
