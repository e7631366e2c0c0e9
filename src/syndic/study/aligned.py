"""A party's table for a study: as its source has it, or in the order that an earlier alignment found."""

import hashlib
from pathlib import Path
from typing import Any

from syndic.data import Source, Table, open_source
from syndic.data.aligned import AlignedSource, Alignment
from syndic.errors import InputError
from syndic.kernel import decode, schema_of
from syndic.kernel.memory import look_up
from syndic.methods import Align
from syndic.mpc.align.work import ORDER_NAME, StoredOrder
from syndic.study.document import Study


def open_table(
    study: Study, name: str, source: Any, *, ledger: Path, id_columns: tuple[str, ...], seed: int | None
) -> Table:
    """Return the rows of a party; `id_columns` are the columns of people's ids that its owner named, if any.

    Raises:
        InputError: if a column is missing, or the study names an alignment that this party has not.
    """
    try:
        rows = open_source(source)
        return Table(
            schema=schema_of(study, name),
            source=rows if study.alignment is None else _aligned(study.alignment, rows, ledger, id_columns, seed),
            person=study.unit.person,
            rows_per_person=study.unit.rows,
            id_columns=id_columns_of(study, id_columns, ledger, seed),
        )
    except InputError as error:
        raise InputError(f"party '{name}': {error}") from None


def id_columns_of(study: Study, id_columns: tuple[str, ...], ledger: Path, seed: int | None) -> tuple[str, ...]:
    """Return the columns of people's ids that a study reads: none unless it aligns or is aligned."""
    if isinstance(study.protocol, Align):
        return id_columns or study.protocol.id
    return () if study.alignment is None else id_columns or stored_alignment(ledger, study.alignment, seed).columns


def stored_alignment(ledger: Path, alignment: str, seed: int | None) -> Alignment:
    """Return what a party keeps of the alignment with this study digest: of a seeded run that of its own seed first.

    Raises:
        InputError: if it keeps none.
    """
    seeded = [] if seed is None else [hashlib.sha256(f"simulation {seed} of {alignment}".encode()).hexdigest()]
    for digest in (*seeded, alignment):
        value = look_up(ledger, digest, lambda memory: memory.kept(ORDER_NAME))
        if value is not None:
            return decode(value, StoredOrder).alignment
    raise InputError(
        f"the study's people were to be aligned by study {alignment[:12]}, and this party has no such alignment: run "
        "that study first, with the same folder"
    )


def _aligned(
    alignment: str, rows: Source, ledger: Path, id_columns: tuple[str, ...], seed: int | None
) -> AlignedSource:
    stored = stored_alignment(ledger, alignment, seed)
    return AlignedSource(rows, stored, id_columns or stored.columns)
