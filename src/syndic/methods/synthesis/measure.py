"""What one round of the synthesis asks: tables over public sets of columns, levels perhaps put into public groups.

One round may ask for parities instead, one number a set (`syndic.model.selection.parity`).

A question comes from the coordinator, so every party checks it against its own study before it counts: known columns,
few enough tables and cells, groups that are groups of levels. The size of the noise follows from the study and from how
many tables are asked, never from anything that travels.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain, Table
from syndic.document import Document
from syndic.errors import RefusedError
from syndic.kernel import Message, encode
from syndic.model.selection import Grouping
from syndic.model.selection.parity import SIZES, parity_sums


class Question(Message):
    """Round `number`, from 1: the tables to count. Public.

    `groups` has for each column of the schema the group of every level, 0, 1, ...: tables count groups, and a row is
    in one cell of a table as it was before. Empty where every level counts by itself. With `parity` columns have one or
    two groups, of the signs +1 and -1, and each table is one number: the sum over rows of the product of its signs.
    """

    common = ("number", "tables", "groups", "parity")
    number: int
    tables: tuple[tuple[str, ...], ...]
    groups: tuple[tuple[int, ...], ...] = ()
    parity: bool = False

    @property
    def digest(self) -> bytes:
        """What the products of the round are bound to."""
        return hashlib.sha256(encode(self)).digest()

    @property
    def parities(self) -> tuple[tuple[str, ...], ...]:
        """The sets of columns whose parities are asked, if they are."""
        return self.tables if self.parity else ()

    def grouping(self, domain: Domain) -> Grouping:
        """Return the groups of a question that was checked."""
        return Grouping(domain, self.groups) if self.groups else Grouping.none(domain)

    def domains(self, domain: Domain) -> list[Domain]:
        """Return the domain of each table, in groups."""
        grouped = self.grouping(domain).domain_of_groups
        return [grouped.project(names) for names in self.tables]

    def dimension(self, domain: Domain) -> int:
        """Return how many counts or parities answer it."""
        return len(self.tables) if self.parity else sum(one.size for one in self.domains(domain))


class RoundLimits(Document):
    """What one round may ask: the most tables, and the most cells of all of them together.

    `traffic`: how many bytes its tables across parties may take, where parties hold different columns. `parity`:
    whether it asks for parities.
    """

    tables: int
    cells: int
    traffic: int = 0
    parity: bool = False


def check_question(question: Question, domain: Domain, room: RoundLimits) -> None:
    """Raise `RefusedError` unless the study lets this be asked in its round."""
    where = f"round {question.number}"
    if question.parity != room.parity:
        raise RefusedError(f"{where}: the study has {'parities' if room.parity else 'tables'} in this round only")
    if not 1 <= len(question.tables) <= room.tables:
        raise RefusedError(f"{where}: {len(question.tables)} tables were asked, and it has room for 1 to {room.tables}")
    known = set(domain.names)
    for names in question.tables:
        if not names or len(set(names)) != len(names) or not known.issuperset(names):
            raise RefusedError(f"{where}: a table must be of different columns of the schema, and of at least one")
    if len({frozenset(names) for names in question.tables}) != len(question.tables):
        raise RefusedError(f"{where}: the same table was asked twice: it would be charged twice")
    if question.parity and max(map(len, question.tables)) > max(SIZES):
        # its signs are summed from a table of 2^columns cells
        raise RefusedError(f"{where}: a parity is of at most {max(SIZES)} columns")
    _check_groups(question, domain, where)
    cells = question.dimension(domain)
    if cells > room.cells:
        raise RefusedError(f"{where}: the tables have {cells} cells together, and the study allows {room.cells}")


def _check_groups(question: Question, domain: Domain, where: str) -> None:
    if question.groups and len(question.groups) != len(domain):
        raise RefusedError(f"{where}: groups must be given for all {len(domain)} columns, or for none")
    for levels, size in zip(question.groups, domain.sizes, strict=False):
        # numbers as large as anybody likes may come: none is counted up to before it is known to be small
        small = len(levels) == size and 0 <= min(levels) <= max(levels) < size
        if not small or len(set(levels)) != max(levels) + 1:
            raise RefusedError(f"{where}: the groups of a column must number its {size} levels 0, 1, ... without gaps")
        if question.parity and max(levels) > 1:
            raise RefusedError(f"{where}: signs are of one or two groups of levels")
    if question.parity and not question.groups:
        raise RefusedError(f"{where}: parities need groups of levels")


def answer_of(question: Question, table: Table, most: int) -> NDArray[np.int64]:
    """Return the exact counts or parities of a party's rows, cut to `most`, a public bound on its rows. Private.

    Clipping never increases the distance between the answers of two neighbouring tables.
    """
    grouping = question.grouping(table.schema.domain)
    if question.parity:
        sums = parity_sums(grouping, question.tables, lambda tables: table.marginals(tables, grouping))
        return np.clip(sums, -most, most)
    counted = table.marginals(question.tables, grouping)
    counts: NDArray[np.int64] = np.concatenate([one.values.ravel() for one in counted])
    return np.minimum(counts, most)


def split(question: Question, domain: Domain, values: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Cut an answer into tables, each of its domain's shape."""
    domains = question.domains(domain)
    ends = np.cumsum([one.size for one in domains])[:-1]
    return [part.reshape(one.sizes) for one, part in zip(domains, np.split(values, ends), strict=True)]
