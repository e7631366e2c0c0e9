"""A party's rows as a study reads them: from its source, in the order of an alignment where there is one."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from syndic.data import Schema, Source, Table, open_source
from syndic.data.aligned import AlignedSource, Alignment
from syndic.data.sources.csv import CsvSource
from syndic.data.sources.ibis import IbisSource
from syndic.errors import InputError
from syndic.kernel import decode, member, owner_of, parties_of, schema_of
from syndic.kernel.memory import look_up
from syndic.kernel.terms import table_of
from syndic.methods import Align
from syndic.mpc.align.work import ORDER_NAME, StoredOrder, order_name
from syndic.study.document import Study, alignment_of, seeded_digest


def open_table(
    study: Study,
    name: str,
    source: Any,
    *,
    ledger: Path,
    id_columns: tuple[str, ...],
    seed: int | None,
    key: bytes = b"",
) -> Table:
    """Return the rows of a party; `id_columns` are the id columns that its owner named, if any.

    `key` chooses the rows of people if the unit says that they are random.

    Raises:
        InputError: if a column is missing, if this party does not have the alignment that the study names, or if one
            person's value can move rows that are matched by their places.
    """
    try:
        rows, alignment = open_source(source), alignment_of(study, name)
        ids = id_columns_of(study, name, id_columns, ledger, seed)
        if not id_columns:
            check_ids(rows, ids)
        if study.by_place and alignment is None:
            rows = _placed(rows, schema_of(study, name))
        if alignment is not None:
            rows = _aligned(study, name, rows, ledger, id_columns, seed)
        return table_of(study, name, rows, key=key, id_columns=ids)
    except InputError as error:
        elsewhere = error.elsewhere and f"party '{name}': {error.elsewhere}"
        raise InputError(f"party '{name}': {error}", elsewhere=elsewhere) from None


def _placed(rows: Source, schema: Schema) -> Source:
    """Return a source whose rows no value of the study moves: all others would be matched to wrong people.

    Raises:
        InputError: if the party file says otherwise. Where its `order` is not unique, columns of the study do not
            break ties.
    """
    if isinstance(rows, CsvSource) and rows.multiline:
        raise InputError(
            "multiline: a wrong quote moves all rows after it, and rows of this study are matched by their places: "
            "leave out such fields, or align the people"
        )
    if not isinstance(rows, IbisSource):
        return rows
    studied = (*schema.names, *schema.inputs)
    values = [name for name in rows.order if name in studied]
    if values:
        raise InputError(
            f"order: {values[0]!r} is a column of the study, whose rows are matched by their places: order them by an "
            "id, or align the people"
        )
    return replace(rows, fixed=studied)


def id_columns_of(
    study: Study, party: str, id_columns: tuple[str, ...], ledger: Path, seed: int | None
) -> tuple[str, ...]:
    """Return the id columns that a study reads: none unless it aligns people or uses an alignment."""
    if isinstance(study.protocol, Align):
        return id_columns or study.protocol.id
    alignment = alignment_of(study, party)
    if alignment is None or id_columns:
        return () if alignment is None else id_columns
    return order_of(study, party, ledger, seed).columns


def check_ids(rows: Source, ids: tuple[str, ...]) -> None:
    """Raise `InputError` if a source lacks id columns whose names are not this party's own."""
    absent = [name for name in ids if name not in rows.names()]
    if absent:
        # an earlier alignment may have been by columns whose names only this party knows
        text = (
            f"{rows.describe()}: the id columns {absent} are missing: name this party's own with `id` in its party.toml"
        )
        raise InputError(text, elsewhere="id columns are missing")


def stored_alignment(
    ledger: Path, alignment: str, seed: int | None, group: str | None = None, *, only_set: bool = False
) -> Alignment:
    """Return a party's stored alignment by the digest of its study; a seeded run looks for that of its seed first.

    Where that study aligned several sets of parties, it is the one of the set called `group`. Without `only_set`, it
    may also be the one order of a study without sets.

    Raises:
        InputError: if there is none.
    """
    seeded = [] if seed is None else [seeded_digest(alignment, seed)]
    names = (order_name(group or ""), *(() if only_set else (ORDER_NAME,)))
    for digest in (*seeded, alignment):
        value = look_up(ledger, digest, lambda memory: next(filter(None, map(memory.kept, names)), None))
        if value is not None:
            return decode(value, StoredOrder).alignment
    text = (
        f"the study uses the alignment of study {alignment[:12]}, which this party does not have: run that study "
        "first, with the same folder"
    ) + (f". If that study has sets, one of this party must be called '{group}', as its `group`" if group else "")
    raise InputError(text, elsewhere=text)


def _aligned(
    study: Study, name: str, rows: Source, ledger: Path, id_columns: tuple[str, ...], seed: int | None
) -> AlignedSource:
    stored = order_of(study, name, ledger, seed)
    if _several(study, name) and id_columns not in {(), stored.columns}:
        # by other columns a person could be in several of its groups, which are charged as different people
        raise InputError(
            f"id: the people of this organisation's groups were aligned by {', '.join(stored.columns)}, and all its "
            "parties read them by that: name the same in party.toml, or leave `id` out"
        )
    return AlignedSource(rows, stored, id_columns or stored.columns)


def order_of(study: Study, name: str, ledger: Path, seed: int | None) -> Alignment:
    """Return the order in which a party reads its rows; raise `InputError` if it does not have it."""
    own = member(study, name)
    # groups of one organisation are charged as different people, which only sets of one alignment are
    several = _several(study, name)
    return stored_alignment(ledger, own.alignment or study.alignment or "", seed, own.group, only_set=several)


def _several(study: Study, name: str) -> bool:
    """Return whether the organisation of a party takes part as several."""
    return len(parties_of(study, owner_of(member(study, name)))) > 1
