"""A party's table for a study: as its source has it, or in the order that an earlier alignment found."""

import hashlib
from pathlib import Path
from typing import Any

from syndic.data import Source, Table, open_source
from syndic.data.aligned import AlignedSource, Alignment
from syndic.errors import InputError
from syndic.kernel import Memory, decode, schema_of
from syndic.methods import Align
from syndic.mpc.align.work import ORDER_NAME, StoredOrder
from syndic.study.document import Study
from syndic.study.study_folder import StudyFolder


def open_table(
    study: Study, name: str, source: Any, *, home: Path, id_columns: tuple[str, ...], seed: int | None
) -> Table:
    """Return the rows of a party; `id_columns` are the columns of people's ids that its owner named, if any.

    Raises:
        InputError: if a column is missing, or the study names an alignment that this home has not.
    """
    try:
        rows = open_source(source)
        return Table(
            schema=schema_of(study, name),
            source=rows if study.alignment is None else _aligned(study.alignment, rows, home, id_columns, seed),
            person=study.unit.person,
            rows_per_person=study.unit.rows,
            id_columns=id_columns_of(study, id_columns, home, seed),
        )
    except InputError as error:
        raise InputError(f"party '{name}': {error}") from None


def id_columns_of(study: Study, id_columns: tuple[str, ...], home: Path, seed: int | None) -> tuple[str, ...]:
    """Return the columns of people's ids that a study reads: none unless it aligns or is aligned."""
    if isinstance(study.protocol, Align):
        return id_columns or study.protocol.id
    return () if study.alignment is None else id_columns or stored_alignment(home, study.alignment, seed).columns


def stored_alignment(home: Path, alignment: str, seed: int | None) -> Alignment:
    """Return what this home keeps of the alignment with this study digest: of a seeded run that of its own seed first.

    Raises:
        InputError: if it keeps none.
    """
    seeded = [] if seed is None else [hashlib.sha256(f"simulation {seed} of {alignment}".encode()).hexdigest()]
    for digest in (*seeded, alignment):
        for path in (StudyFolder.of(home, digest).memory, home / "memory.sqlite"):
            value = Memory.look_up(path, digest, ORDER_NAME)
            if value is not None:
                return decode(value, StoredOrder).alignment
    raise InputError(
        f"the study's people were to be aligned by study {alignment[:12]}, and this party has no such alignment: run "
        "that study first, with the same folder"
    )


def _aligned(alignment: str, rows: Source, home: Path, id_columns: tuple[str, ...], seed: int | None) -> AlignedSource:
    stored = stored_alignment(home, alignment, seed)
    return AlignedSource(rows, stored, id_columns or stored.columns)
