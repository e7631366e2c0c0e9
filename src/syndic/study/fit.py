"""How an owner's own rows fit a study: values that are outside, clipped, missing or unknown, and rows that are cut.

Everything here is computed from rows and is for the owner only. It is shown to the owner, sent to nobody and stored
nowhere: it enters no study, agreement, message, ledger or log, and no error.
"""

import difflib
from collections import Counter
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace
from numpy.typing import NDArray

from syndic.data import Column, Instead, Schema, Source, open_source
from syndic.data.aligned import AlignedSource
from syndic.data.column import Categorical, Listed
from syndic.data.people import rows_of_people
from syndic.data.ranged import Ranged
from syndic.data.reading import key_of, text_of
from syndic.data.source import check_columns
from syndic.document import Document
from syndic.errors import InputError, MissingExtraError, printable
from syndic.kernel import member, schema_of
from syndic.methods import Align
from syndic.privacy import Unit
from syndic.study.document import Study, alignment_of
from syndic.study.fit_people import (
    CUT,
    PRIVATE,
    BoundLine,
    IdFit,
    bounds_of,
    fit_ids,
    number_of_rows,
    percent,
    rows_cut,
)
from syndic.study.party_folder import PartyFile, PartyFolder, party_file
from syndic.study.party_rows import check_ids, order_of

_MOST: Final = 0.5
"""The share of a column's values above which agreeing needs a second yes."""
_FEW: Final = 5
"""A value of the rows is named only if it occurs so often; a level with fewer rows is rare."""
_MANY_LEVELS: Final = 50
_LEVELS_COUNTED: Final = 2**16
_LEVELS_SHOWN: Final = 60
_TEXTS_COUNTED: Final = 10_000
_TEXTS_COMPARED: Final = 200
_ALIKE: Final = 0.8
_SUGGESTED: Final = 3


class LevelLine(Document):
    """A level of a column and the exact number of rows in it. Private."""

    label: str
    rows: int


@final
class ColumnFit(Document):
    """How the owner's rows fit one column: numbers of values. Private.

    `missing` are empty or cannot be read; `unknown` are not in the list; `clipped` are moved to a bound; `outside` are
    beyond the bounds and count as missing. `empty` levels have no row. `poor`: more than half of the values do not fit.
    """

    name: str
    kind: str
    values: int
    missing: int
    unknown: int
    clipped: int
    outside: int
    empty: int
    levels: tuple[LevelLine, ...]
    poor: bool
    advice: tuple[str, ...]

    @property
    def lost(self) -> int:
        """The number of values that the study does not take as they are."""
        return self.missing + self.unknown + self.clipped + self.outside

    def row(self) -> tuple[str, ...]:
        """Return the cells of this column in a table with the head `COLUMN_HEAD`."""
        parts = (self.missing, self.unknown, self.clipped, self.outside)
        return (self.name, *(percent(part, self.values) for part in parts))


@final
class Fit(Document):
    """How the owner's rows fit a study. Private. `poor`: agreeing needs a second yes.

    With a `person` column, `people` are linked by it, `nobody` rows have no person, and `bounds` shows what each bound
    would keep. `ids`: what an alignment study would do with the ids.
    """

    party: str
    source: str
    rows: int
    columns: tuple[ColumnFit, ...]
    people: int
    nobody: int
    bounds: tuple[BoundLine, ...]
    poor: bool
    advice: tuple[str, ...]
    ids: IdFit | None = None

    @property
    def worst(self) -> tuple[ColumnFit, ...]:
        """The columns with values that do not fit, the worst first."""
        return tuple(sorted((one for one in self.columns if one.lost), key=lambda one: -one.lost))

    def bound_rows(self) -> list[tuple[str, ...]]:
        """Return the cells of a table with the head `BOUND_HEAD`."""
        return [
            (one.label, percent(one.rows_kept, self.rows), percent(one.people_kept, self.people)) for one in self.bounds
        ]


COLUMN_HEAD: Final[tuple[str, ...]] = ("column", "missing", "not in the list", "clipped", "outside, so missing")


def fit_of(study: Study, name: str, source: Any) -> Fit:
    """Compare the rows of a party with the study; `source` may also be the path of its party.toml. Private.

    Raises:
        InputError: if the source cannot be read or lacks a column of the study. It names no value.
    """
    try:
        # the people of an alignment are compared by their ids
        by_ids = isinstance(study.protocol, Align) or alignment_of(study, name) is not None
        people = None if by_ids else member(study, name).people
        own = source if isinstance(source, PartyFile) else party_file(source)
        opened = open_source(source if own is None else own.source)
        found = fit(schema_of(study, name), opened, unit=study.unit, people=people, party=name)
        if not isinstance(study.protocol, Align):
            return replace(found, advice=(*found.advice, *_beside(study, name, source)))
        if own is None or not own.id_columns:
            check_ids(opened, study.protocol.id)
        ids = fit_ids(
            opened,
            (own.id_columns if own else ()) or study.protocol.id,
            study.protocol.rule,
            member(study, name).people or 0,
        )
        return replace(found, ids=ids, poor=found.poor or ids.poor, advice=(*found.advice, *ids.advice))
    except InputError as error:
        raise InputError(f"party '{name}': {error}") from None


def own_fit(home: PartyFolder, study: Study, *, seed: int | None = None) -> tuple[Fit | None, str]:
    """Return how the rows of a party folder fit, or why they cannot be read: then no step could read them either.

    `seed` is that of a rehearsal.
    """
    party = home.owner()
    try:
        missing = _order_missing(study, party.name, home.ledger, seed)
        found = fit_of(study, party.name, party)
        texts, lacking = ([], False) if missing else _common(home, study, party, seed)
        return replace(found, poor=found.poor or lacking, advice=(*found.advice, *missing, *texts)), ""
    except (InputError, MissingExtraError) as error:
        return None, str(error)


def fit(schema: Schema, source: Source, *, unit: Unit | None = None, people: int | None = None, party: str = "") -> Fit:
    """Compare the rows of a source with a schema, a unit and the declared `people`, in one pass. Private."""
    person = None if unit is None else unit.person
    people_in = () if person is None else (person,)
    check_columns(source, dict.fromkeys([*schema.inputs, *people_in]))
    tallies = [_Tally(column) for column in schema.columns]
    ids: Counter[object] = Counter()
    rows = nobody = 0
    for batch in schema.derived(source).batches([*schema.names, *people_in]):
        rows += len(batch)
        for tally in tallies:
            tally.add(batch.column(tally.column.name))
        if person is not None:
            found, without = rows_of_people([batch.column(person)])
            ids.update(found)
            nobody += without
    columns = tuple(tally.fit() for tally in tallies)
    bounds = () if unit is None or person is None else bounds_of(ids, unit.rows)
    counting = rows if unit is None or person is None else sum(min(had, unit.whole_rows) for had in ids.values())
    cut = [*rows_cut(bounds, unit, rows, nobody), *number_of_rows(unit, people, counting)]
    return Fit(
        party=party,
        source=source.describe(),
        rows=rows,
        columns=columns,
        people=len(ids),
        nobody=nobody,
        bounds=bounds,
        poor=any(one.poor for one in columns) or bool(cut),
        advice=(*(text for one in columns for text in one.advice), *cut, *([] if rows else ["the source has no rows"])),
    )


@final
class _Tally:
    """Counts how the values of one column fit."""

    def __init__(self, column: Column) -> None:
        self.column = column
        # both have a level for missing values; values outside are missing in the first one only
        self._strict: Column = replace(column, missing="level")
        self._lenient = self._strict
        if isinstance(column, Listed | Ranged):
            inside: Any = Instead(value=column.values[0]) if isinstance(column, Listed) else "clip"
            self._lenient = replace(self._strict, outside=inside)
            self._strict = replace(self._strict, outside="missing")
        self._counts = np.zeros(column.size if column.size <= _LEVELS_COUNTED else 0, dtype=np.int64)
        self._texts: Counter[str] = Counter()
        self._listed = np.zeros(self._strict.levels if isinstance(column, Listed) else 0, dtype=np.int64)
        self._values = self._missing = self._below = self._above = self._outside = 0

    def add(self, values: pa.Array) -> None:
        """Count the values of a batch."""
        codes = self.column.encode(values)
        self._values += len(codes)
        if len(self._counts):
            self._counts += np.bincount(codes, minlength=len(self._counts))
        taken = self._strict.encode(values)
        odd = taken == self._strict.missing_code
        if len(self._listed):
            self._listed += np.bincount(taken[~odd], minlength=len(self._listed))
        if not odd.any():
            return
        some = values.filter(pa.array(odd))
        places = self._lenient.encode(some)
        missing = places == self._lenient.missing_code
        self._missing += int(missing.sum())
        self._outside += int((~missing).sum())
        if isinstance(self.column, Ranged) and self.column.levels > 1:
            self._below += int((places == 0).sum())
            self._above += int((places == self.column.levels - 1).sum())
        elif isinstance(self.column, Listed) and not missing.all():
            self._note(some.filter(pa.array(~missing)))

    def _note(self, values: pa.Array) -> None:
        for pair in pc.value_counts(values).to_pylist():
            text = text_of(pair["values"])
            if text is not None and (text in self._texts or len(self._texts) < _TEXTS_COUNTED):
                self._texts[text.strip()] += pair["counts"]

    def fit(self) -> ColumnFit:
        """Return the numbers, and what to do about them."""
        column, outside = self.column, self._outside
        unknown = outside if isinstance(column, Listed) else 0
        clipped = outside if isinstance(column, Ranged) and column.outside == "clip" else 0
        lost = self._missing + outside
        tag: Any = column.__struct_config__.tag
        return ColumnFit(
            name=column.name,
            kind=str(tag),
            values=self._values,
            missing=self._missing,
            unknown=unknown,
            clipped=clipped,
            outside=outside - unknown - clipped,
            empty=int((self._counts == 0).sum()),
            levels=_levels(column, self._counts) if len(self._counts) else (),
            poor=lost > _MOST * self._values,
            advice=tuple(f"{column.name}: {text} {PRIVATE}" for text in self._advice(str(tag))),
        )

    def _advice(self, kind: str) -> list[str]:
        column, values = self.column, self._values
        texts = []
        if isinstance(column, Listed):
            alike = _alike(column, self._texts, self._listed)
            if alike or self._outside > CUT * values:
                meant = alike or _instead(column, self._texts)
                texts.append(f"{percent(self._outside, values)} of the values are not in the list{meant}")
            rare = int((self._counts < _FEW).sum())
            if column.levels >= _MANY_LEVELS and 2 * rare > column.levels:
                texts.append(
                    f"{rare} of {column.size} levels have fewer than {_FEW} rows here: noise hides them. List groups "
                    'of them, or set `tree`: a synthesis releases rare values as their branch, otherwise as "other"'
                )
        elif isinstance(column, Ranged) and self._outside > CUT * values:
            side = "above the upper bound" if self._above > self._below else "below the lower bound"
            side = side if self._below + self._above else "outside the bounds"
            fate = "are moved to the nearer one" if column.outside == "clip" else "count as missing"
            texts.append(
                f"{percent(self._outside, values)} of the values are outside the bounds and {fate}, most of them "
                f"{side}: ask for other bounds"
            )
        if self._missing > CUT * values:
            unread = "" if isinstance(column, Listed) else f" or cannot be read as {kind}"
            texts.append(f"{percent(self._missing, values)} of the values are empty{unread}")
        return texts


def _levels(column: Column, counts: NDArray[np.int64]) -> tuple[LevelLine, ...]:
    """Return the rows of every level; of very many levels, neighbouring bins and the last listed values are joined."""
    labels, levels = column.labels(), column.levels
    most = min(levels, _LEVELS_SHOWN)
    starts = [place * levels // most if isinstance(column, Ranged) else place for place in range(most)]
    lines = []
    for first, end in zip(starts, [*starts[1:], levels], strict=True):
        joined = f"{labels[first]} to {labels[end - 1]}" if isinstance(column, Ranged) else f"{end - first} more values"
        label = labels[first] if end == first + 1 else joined
        lines.append(LevelLine(label=label, rows=int(counts[first:end].sum())))
    return (*lines, *(LevelLine(label=labels[code], rows=int(counts[code])) for code in range(levels, column.size)))


def _alike(column: Listed, texts: Counter[str], counts: NDArray[np.int64]) -> str:
    """Return what to do about values of the rows that look like listed ones. Each occurs at least a few times."""
    folded = {text.casefold(): text for text, times in reversed(texts.most_common(_TEXTS_COMPARED)) if times >= _FEW}
    listed = {value.casefold() for value in column.values}
    meant: list[str] = []
    beside: list[str] = []
    for place, value in enumerate(column.values[:_TEXTS_COMPARED]):
        same, occurs = folded.get(value.casefold()), counts[place] >= _FEW
        if same is None and not occurs:
            # values that differ in a digit are different codes
            others = [text for text in folded if text not in listed and _digits(text) == _digits(value)]
            near = difflib.get_close_matches(value.casefold(), others, n=1, cutoff=_ALIKE)
            same = folded[near[0]] if near else None
        if same is not None:
            both = f"'{printable(same)[:40]}'", f"'{printable(value)[:40]}'"
            (beside if occurs else meant).append((" beside " if occurs else " instead of ").join(both))
    named = f"; did you mean {', '.join(meant[:_SUGGESTED])}?" if meant else ""
    if beside:
        named += f"; rows also have {', '.join(beside[:_SUGGESTED])}: spell them alike in your rows, or list both"
    return named


def _digits(text: str) -> list[str]:
    return [letter for letter in text if letter.isdigit()]


def _instead(column: Listed, texts: Counter[str]) -> str:
    """Return what to do about values that are not listed: cut them if that makes most of them listed."""
    length, known = max(map(len, column.values)), column.lookup()
    cut = sum(times for text, times in texts.items() if key_of(text[:length].strip()) in known)
    if isinstance(column, Categorical) and cut > _MOST * texts.total():
        return f": most are after `prefix = {length}`"
    long = '; `values = "FILE.csv"` reads a long public list'
    return f": list them, or groups of them{long if len(texts) > _MANY_LEVELS else ''}"


def _order_missing(study: Study, name: str, ledger: Path, seed: int | None) -> list[str]:
    """Return what to say if a party does not have the order in which it would read its rows; it may come later."""
    try:
        if alignment_of(study, name) is not None:
            order_of(study, name, ledger, seed)
    except InputError as error:
        return [str(error)]
    return []


def _beside(study: Study, name: str, source: Any) -> list[str]:
    """Return what to say about the order of a party whose file is in its folder, with a ledger."""
    if not isinstance(source, str | Path) or Path(source).name != "party.toml":
        return []
    ledger = PartyFolder(folder=Path(source).parent).ledger
    return _order_missing(study, name, ledger, None) if ledger.is_file() else []


def _common(home: PartyFolder, study: Study, party: PartyFile, seed: int | None) -> tuple[list[str], bool]:
    """Return what to say about common people of an alignment, and whether missing values stand for some of them."""
    if alignment_of(study, party.name) is None:
        return [], False
    stored = order_of(study, party.name, home.ledger, seed)
    columns, people = party.id_columns or stored.columns, member(study, party.name).people or 0
    batches = AlignedSource(open_source(party.source), stored, columns).batches(columns[:1])
    absent, texts = sum(batch.column(0).null_count for batch in batches), []
    if absent:
        what = "have no row of their own in your source: they count as missing values"
        texts.append(f"{absent:,} of the common people {what} {PRIVATE}")
    if people != stored.people:
        fate = "the others are left out" if people < stored.people else "rows of missing values are added"
        texts.append(f"{stored.people:,} people are common, and the study says people = {people}: {fate} {PRIVATE}")
    return texts, absent > 0 or people > stored.people
