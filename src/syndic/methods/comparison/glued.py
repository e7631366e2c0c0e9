"""Glued synthesis: every party makes rows of its own columns, and the coordinator puts them side by side.

*Neighbours*: one person's values are replaced, at all parties at once; who is in and how many are public. *Cost*: one
account of Gaussian privacy over all parties: a person is at each of them, so their parts add up, and each party has an
equal part. Every party is charged for all parts, so that one ledger by itself tells what the release costs.
*Sensitivity*: one person moves two counts by one in each table, so the k tables of a round by 2 k in squared l2; at one
party those are its own tables only.

*Who sees what*: everybody sees each party's noisy tables and the rows drawn from them. No party needs another one, so
nobody is trusted and there is no cryptography. What is lost is everything between columns of different parties: their
rows are put side by side in random order. It is the floor that a method for aligned rows must stay above.

Each party selects its tables as in PrivMRF (Cai et al. 2021) and AIM (McKenna et al. 2022), from noisy tables only.
"""

from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import decode_codes
from syndic.errors import InputError
from syndic.kernel import (
    Disclosure,
    Message,
    Nothing,
    Party,
    Resources,
    Session,
    Terms,
    TermsMethod,
    member,
    step,
)
from syndic.methods.comparison.glued_own import OwnCounts, charged, own_account, own_terms
from syndic.methods.comparison.glued_result import PublishedRows, RowsNote, notes_of, read_rows
from syndic.methods.synthesis.account import Account, account_of
from syndic.methods.synthesis.size import Size, check_choices, choosing, size_of
from syndic.methods.synthesis.vertical_requirements import check_aligned, check_all_held
from syndic.model.markov import Adaptive, Measurement
from syndic.privacy import Event
from syndic.random import generator


class OwnTable(Message):
    """A noisy table of a party's own columns, over groups of levels."""

    names: tuple[str, ...]
    values: NDArray[np.float64]
    variance: float


class OwnRows(Message):
    """A party's synthetic rows by column, the noisy tables behind them, and the group of every level it used."""

    codes: dict[str, NDArray[np.uint32]]
    tables: tuple[OwnTable, ...]
    groups: dict[str, tuple[int, ...]]


class GluedNote(RowsNote):
    """`groups`: for each column the group of every level, which tables after a party's first round count."""

    groups: dict[str, tuple[int, ...]]


@final
class Glued(TermsMethod, tag="glued"):
    """Parameters of the glued synthesis.

    `selector`, `rounds`, `model_cells` and `rows` are as in the synthesis of rows, for each party by itself; `rows` is
    by default the public number of people.
    """

    title: ClassVar[str] = "Every party's own synthesis, put side by side"
    paper: ClassVar[str] = "none: the floor for methods on aligned rows; Cai et al. 2021 and McKenna et al. 2022 inside"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "vertical"
    trust: ClassVar[str] = "nobody: each party trusts only itself; no cryptography is needed"

    selector: Literal["adaptive", "one_shot"] = "one_shot"
    rounds: int | None = None
    model_cells: int | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        check_choices(selector=self.selector, rounds=self.rounds, model_cells=self.model_cells, rows=self.rows)

    @property
    def simulation_only(self) -> bool:
        """It keeps its promise."""
        return False

    # The parties' side.

    @step(reveals="noisy")
    def synthesise(self, party: Party, message: Nothing) -> OwnRows:
        """Measure own columns round by round, fit a model to the noisy tables, draw rows from it."""
        del message
        terms, parties = party.terms, len(party.terms.parties)
        size, account = self.size_of(terms, party.name), self.account_of(terms)
        own = own_account(account, own_terms(terms, party.name).schema.domain, parties)
        people = member(terms, party.name).people or 0
        counts = OwnCounts(party, own, size.rooms, charged(account, parties), people)
        fitted = self.choosing(size.model_cells).run(counts, own.whole)
        drawn = fitted.sample(self._drawn(terms), generator(party.key_randomness("rows")))
        measured = [table for one in fitted.rounds for table in one]
        return OwnRows(
            codes={name: codes.astype(np.uint32) for name, codes in drawn.items()},
            tables=tuple(OwnTable(names=one.names, values=one.values, variance=one.variance) for one in measured),
            groups=dict(zip(own.domain.names, fitted.grouping.groups, strict=True)),
        )

    # The coordinator's side.

    def coordinate(self, session: Session) -> PublishedRows:
        """Put every party's rows side by side, each party's in a random order of its own."""
        schema, draws = session.terms.schema, generator(session.randomness)
        answers = session.ask(self.synthesise, Nothing())
        codes: dict[str, NDArray[np.uint32]] = {}
        for answer in answers.values():
            order = draws.permutation(self._drawn(session.terms))
            codes |= {name: column[order] for name, column in answer.codes.items()}
        try:
            table = decode_codes(schema, codes, draws)
        except (ValueError, IndexError):
            raise InputError("a party answered with rows that are not of its columns") from None
        tables = tuple(
            Measurement(one.names, one.values, one.variance) for answer in answers.values() for one in answer.tables
        )
        groups = {name: found for answer in answers.values() for name, found in answer.groups.items()}
        note = GluedNote(tables=notes_of(tables), groups=groups)
        return PublishedRows(table=table, tables=tables, note=note)

    def read_result(self, terms: Terms, folder: Path) -> PublishedRows:
        """Read back the rows and the noisy tables."""
        del terms
        return read_rows(folder, GluedNote)

    # What is known before any row is read.

    def choosing(self, cells: int) -> Adaptive:
        """Return what chooses the tables of a model of so many cells."""
        return choosing(self.selector, self.rounds, cells)

    def size_of(self, terms: Terms, party: str) -> Size:
        """Return how large a party's own model may be; raises `InputError` if nothing fits."""
        return _size_of(self, terms, party)  # type: ignore[arg-type]  # a study is frozen: it has a hash

    def account_of(self, terms: Terms) -> Account:
        """Return what every round of every party costs, one party after the other: the strictest budget in parts."""
        return _account_of(self, terms)  # type: ignore[arg-type]  # a study is frozen: it has a hash

    def check(self, terms: Terms) -> None:
        """Refuse what cannot work, with what to change."""
        check_aligned(terms)
        check_all_held(terms)
        for party in terms.parties:
            self.size_of(terms, party.name)

    def spends(self, terms: Terms, party: str) -> tuple[Event, ...]:
        """One event a round, the same for every party: each is charged for the rounds of all."""
        member(terms, party)
        return charged(self.account_of(terms), len(terms.parties))

    def estimate(self, terms: Terms) -> Resources:
        """Memory of the largest party, bytes of its reply, time to fit."""
        sizes = [self.size_of(terms, party.name) for party in terms.parties]
        rows, rounds = self._drawn(terms), len(sizes[0].rooms)
        columns = max(len(party.columns or ()) for party in terms.parties)
        own = own_account(self.account_of(terms), terms.schema.domain, len(terms.parties))
        deviation = own.noise_of(rounds, 1, 1).variance(1) ** 0.5
        return Resources(
            memory_bytes=max(one.memory_bytes for one in sizes),
            reply_bytes=4 * rows * columns + 8 * max(sum(room.cells for room in one.rooms) for one in sizes),
            seconds=round(1.0 + rounds * rows / 1e6 + 3e-6 * max(one.model_cells for one in sizes), 1),
            notes=(
                f"{rounds} rounds at each party, on its own; standard deviation {deviation:.3g} on every count of the "
                "last round for each table that shares it, times the root of their number",
            ),
        )

    def disclosure(self, terms: Terms) -> Disclosure:
        """State what every role sees."""
        opened = "every party's noisy tables of its own columns, and rows drawn from models fitted to them"
        parties = len(terms.parties)
        return Disclosure(
            sees={"coordinator": opened, "other parties": opened, "anyone with the release": opened},
            sensitivity=(
                "replacing one person's values at all parties at once moves two counts by one in every table, so the k "
                f"tables of one party's round by 2 k in squared l2; the rounds of all {parties} parties are on one "
                "account, an equal part for each, and every party is charged for all of them"
            ),
            not_protected=(
                "how columns of different parties hang together is not protected because it is not used: the rows say "
                "nothing about it",
                "who the people are and how many: parties that line up their rows know it",
                "what is true of groups: a pattern that many people share shows, as it should",
                "the columns, bounds and labels: they are public",
            ),
        )

    def _drawn(self, terms: Terms) -> int:
        return self.rows if self.rows is not None else terms.parties[0].people or 0


@lru_cache(maxsize=32)
def _size_of(protocol: Glued, terms: Terms, party: str) -> Size:
    own = own_terms(terms, party)
    account = own_account(protocol.account_of(terms), own.schema.domain, len(terms.parties))
    return size_of(own, account, protocol.choosing, (), model_cells=protocol.model_cells, rows=protocol.rows)


@lru_cache(maxsize=32)
def _account_of(protocol: Glued, terms: Terms) -> Account:
    budgets, parties = protocol.choosing(1).budgets, len(terms.parties)
    return account_of(
        terms,
        lambda whole: [part / parties for part in budgets(whole)] * parties,
        (),
        colluding=0,
        missing=0,
        shares=1,
    )
