"""Read the owners' files for a draft: which columns they share, and who is in them. Private."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from syndic.data import Source, open_source
from syndic.data.bins import round_up
from syndic.data.dictionary import Declared
from syndic.data.people import rows_of_people
from syndic.data.profile import ColumnProfile, bins_for, named_as_id, profile_column, scale_for
from syndic.data.source import check_columns
from syndic.errors import InputError

MOST_ROWS: Final = 1_000_000
"""The first rows of a file, which are described; later ones are only counted."""

_KEPT: Final = 0.8  # share of the rows that the bound on a person's rows keeps
_NEARLY_ALL: Final = 0.95  # share of the people of whom it keeps all rows, if that takes little more
_LITTLE_MORE: Final = 1.25
_MOST_OF_A_PERSON: Final = 10
_ALIKE: Final = 0.5  # files with this share of their columns in common have different people


@final
@dataclass(frozen=True, kw_only=True)
class PartyRows:
    """The rows of one party. Private."""

    name: str
    columns: Mapping[str, list[pa.Array]] = field(repr=False)
    repeated: frozenset[str]
    rows: int


@final
@dataclass(frozen=True, kw_only=True)
class Layout:
    """How the parties' files belong together. `holder` is the party of each column of the same people; else empty."""

    columns: tuple[ColumnProfile, ...]
    people: Mapping[str, int]
    holder: Mapping[str, str] = field(default_factory=dict)
    person: str | None = None
    rows: int = 1
    notes: tuple[str, ...] = ()


def read_parties(sources: Mapping[str, Any]) -> tuple[PartyRows, ...]:
    """Read the first rows of every party's source, and count the others."""
    return tuple(_read(name, open_source(thing)) for name, thing in sources.items())


def read_column(thing: Any, name: str) -> list[pa.Array]:
    """Return the first rows of one column of a source."""
    chunks, rows = [], 0
    source = open_source(thing)
    for batch in source.batches(check_columns(source, [name])):
        chunks.append(batch.column(name))
        rows += len(batch)
        if rows >= MOST_ROWS:
            break
    return chunks


def lay_out(parties: Sequence[PartyRows], known: Mapping[str, Declared]) -> Layout:
    """Describe all columns, and whether the files have different people or different columns of the same people."""
    if not parties:
        columns = [_declared(name, column) for name, column in known.items()]
        return Layout(columns=tuple(columns), people={})
    names = list(dict.fromkeys(name for party in parties for name in party.columns))
    absent = [name for name in known if name not in names and not known[name].left_out]
    if absent:
        raise InputError(f"the dictionary has columns that no file has: {', '.join(map(repr, absent))}")
    shared = [name for name in names if all(name in party.columns for party in parties)]
    columns = [_profile(name, parties, known.get(name)) for name in names]
    ids = [column.name for column in columns if column.identifies and column.name in shared]
    notes = [
        f"only the first {MOST_ROWS:,} rows of {one.name} were described" for one in parties if one.rows > MOST_ROWS
    ]
    if _vertical(parties, names, shared, ids):
        return _vertical_layout(parties, columns, ids, notes)
    if not shared:
        raise InputError(
            "the files have no column in common, no common id and different numbers of rows. If their people differ, "
            "give columns of the same meaning the same name. If they are the same people, add an id column of the same "
            "name to each file: `syndic init` then drafts a study of rows that `align` puts in order"
        )
    columns = [
        replace(one, kind=None, reason="not in every file") if one.name not in shared and one.kind else one
        for one in columns
    ]
    person, rows = _person(parties, ids)
    people = {party.name: _bound(party, person) for party in parties}
    if person is not None:
        columns = [
            replace(one, reason="it identifies people: unit.person") if one.name == person else one for one in columns
        ]
        notes.append(f"people have several rows: rows = {rows} keeps the first {rows} of a person")
    return Layout(columns=tuple(columns), people=people, person=person, rows=rows, notes=tuple(notes))


def _read(name: str, source: Source) -> PartyRows:
    header = source.names()
    repeated = frozenset(column for column in header if header.count(column) > 1 or not column.strip())
    wanted = [column for column in dict.fromkeys(header) if column not in repeated]
    columns: dict[str, list[pa.Array]] = {column: [] for column in wanted}
    rows = 0
    for batch in source.batches(wanted) if wanted else ():
        if rows < MOST_ROWS:
            for column in wanted:
                columns[column].append(batch.column(column))
        rows += len(batch)
    return PartyRows(
        name=name, columns={**columns, **{column: [] for column in repeated}}, repeated=repeated, rows=rows
    )


def _profile(name: str, parties: Sequence[PartyRows], known: Declared | None) -> ColumnProfile:
    if any(name in party.repeated for party in parties):
        reason = "its name appears more than once" if name.strip() else "it has no name"
        return ColumnProfile(name=name, kind=None, reason=reason)
    if known is not None and known.left_out:
        return ColumnProfile(name=name, kind=None, reason=known.left_out)
    chunks = [chunk for party in parties for chunk in party.columns.get(name, ())]
    found = profile_column(name, chunks, None if known is None else known.kind)
    return found if known is None else _with(found, known)


def _with(found: ColumnProfile, known: Declared) -> ColumnProfile:
    """Return what rows say about a column, replaced by what is publicly known."""
    kind = known.kind or found.kind
    if kind is None or (found.kind is None and not is_complete(known)):
        return found
    lower = found.lower if known.lower is None else known.lower
    upper = found.upper if known.upper is None else known.upper
    rows = found.rows or None
    scale = known.scale or (
        "linear" if known.bins is not None else scale_for(kind, lower, upper, found.quantiles, rows)
    )
    return replace(
        found,
        kind=kind,
        reason="",
        identifies=False,
        lower=lower,
        upper=upper,
        values=known.values or found.values,
        unlisted=0 if known.values else found.unlisted,
        bins=known.bins if known.bins is not None else bins_for(kind, lower, upper, scale, rows),
        scale=scale,
    )


def is_complete(known: Declared) -> bool:
    """Return whether a dictionary describes a column without the rows."""
    return (
        known.kind == "boolean"
        or (known.kind in {"categorical", "ordinal"} and bool(known.values))
        or (known.kind in {"integer", "real", "date"} and None not in (known.lower, known.upper))
    )


def _declared(name: str, known: Declared) -> ColumnProfile:
    if known.left_out or not is_complete(known):
        reason = known.left_out or "the dictionary has no kind with bounds or values for it"
        return ColumnProfile(name=name, kind=None, reason=reason)
    return _with(ColumnProfile(name=name, kind=None), known)


def _vertical(parties: Sequence[PartyRows], names: list[str], shared: list[str], ids: list[str]) -> bool:
    """Return whether the files have different columns of the same people."""
    others = [name for name in names if name not in ids]
    common = [name for name in shared if name not in ids]
    if len(parties) == 1 or (others and len(common) >= _ALIKE * len(others)):
        return False
    return bool(ids) or len({party.rows for party in parties}) == 1


def _vertical_layout(
    parties: Sequence[PartyRows], columns: Sequence[ColumnProfile], ids: list[str], notes: list[str]
) -> Layout:
    holder = {name: party.name for party in reversed(parties) for name in party.columns}
    used = {column.name for column in columns if column.kind is not None}
    for party in parties:
        if not any(holder[name] == party.name for name in used & set(party.columns)):
            raise InputError(f"party {party.name!r} has no usable column of its own for a vertical study")
    notes.append("different columns of the same people: rows must be in the same order at every party")
    if ids:
        notes.append(
            f"`align` first, by the id {ids[0]!r}, unless they are; people is then the number of common people"
        )
    twice = [name for name in sorted(used) if sum(name in party.columns for party in parties) > 1]
    notes += [f"{name!r} is in several files: it is taken from {holder[name]}" for name in twice]
    people = {party.name: max(1, min(each.rows for each in parties)) for party in parties}
    return Layout(columns=tuple(columns), people=people, holder=holder, notes=tuple(notes))


def _person(parties: Sequence[PartyRows], ids: list[str]) -> tuple[str | None, int]:
    """Return the id column whose values repeat, and a bound on a person's rows that keeps most of them."""
    found: list[tuple[int, str, int]] = []
    for name in ids:
        counts = np.concatenate([_rows_of_each(party, name) for party in parties])
        if named_as_id(name) and len(counts) and counts.max() > 1:
            kept = (
                rows for rows in range(1, _MOST_OF_A_PERSON) if np.minimum(counts, rows).sum() >= _KEPT * counts.sum()
            )
            rows, most = next(kept, _MOST_OF_A_PERSON), int(np.quantile(counts, _NEARLY_ALL))
            # a little more keeps nearly everybody's last rows too: of a panel each person has as many
            found.append((len(counts), name, most if rows <= most <= _LITTLE_MORE * rows else rows))
    # of several, the one with the fewest values: a person has several visits
    return min(found)[1:] if found else (None, 1)


def _rows_of_each(party: PartyRows, person: str) -> NDArray[np.int64]:
    rows, _ = rows_of_people(party.columns[person])
    return np.array(list(rows.values()), dtype=np.int64)


def _bound(party: PartyRows, person: str | None) -> int:
    """Return a round number of people above the exact one."""
    people = party.rows
    if person is not None and people <= MOST_ROWS:
        people = len(_rows_of_each(party, person))
    return max(10, int(round_up(people + 1)))
