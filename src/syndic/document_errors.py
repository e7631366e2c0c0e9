"""Find every error of a document at once: where it is, what was found, what is allowed, and the nearest valid name.

Used only after a document was refused, so that reading a valid one costs nothing. A text quotes names of fields and
words that stand where one of a few is allowed; of any other value it gives the type only.
"""

import datetime
import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Annotated, Any, Final

import msgspec
from msgspec import inspect

from syndic.document import LARGEST_WHOLE, ChecksError, run_checks
from syndic.errors import SyndicError

Hook = Callable[[Any, Any], Any]

MOST_ERRORS: Final = 50
_MOST_LETTERS: Final = 40
_FAILED: Final = object()
_NESTED: Final = (inspect.CollectionType, inspect.TupleType, inspect.DictType)

# what other tools and other people call the fields and words of a study
_SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = {
    word: tuple(names.split())
    for words, names in {
        "min minimum low lowest from start first begin": "lower",
        "max maximum high highest to end last stop": "upper",
        "type dtype datatype": "kind method",
        "algorithm mechanism protocol": "method",
        "method": "protocol",
        "categories levels choices options labels codes enum": "values",
        "nbins n_bins bin buckets intervals": "bins",
        "null nulls na nan default": "missing",
        "other clip": "outside",
        "cols fields variables features": "columns schema",
        "table data": "schema",
        "title label id": "name",
        "eps privacy_budget": "epsilon budget",
        "privacy": "budget unit",
        "n rows size count number persons patients subjects individuals n_people": "people",
        "max_rows rows_per_person": "rows",
        "person_id patient patient_id subject subject_id user user_id": "person",
        "neighbors adjacency neighbouring neighboring": "neighbours",
        "party sites site members clients owners organisations organizations": "parties",
        "version revision round": "edition",
        "description goal why": "purpose",
        "int int32 int64 whole": "integer",
        "float float64 double numeric number decimal continuous": "real",
        "string str text category categorial nominal factor object": "categorical",
        "bool binary flag logical": "boolean",
        "datetime timestamp day time": "date",
        "ordered rank": "ordinal",
        "timezone time_zone tz": "zone",
        "granularity precision": "resolution",
        "unbounded presence add add-remove": "add_remove",
        "bounded substitute substitution swap change": "replace",
    }.items()
    for word in words.split()
}

_EXPECTED: Final[Mapping[type, tuple[Any, str]]] = {
    inspect.IntType: (int, "a whole number"),
    inspect.FloatType: (float, "a number"),
    inspect.StrType: (str, "text in quotes"),
    inspect.BoolType: (bool, "true or false"),
    inspect.NoneType: (None, "nothing"),
    inspect.DateType: (datetime.date, "a date such as 2020-01-31"),
    inspect.BytesType: (bytes, "bytes in base64"),
}


def find_errors(data: Any, kind: Any, hook: Hook) -> tuple[str, ...]:
    """Return every error that keeps `data` from being a document of class `kind`, in the order of the document."""
    search = _Search(hook)
    with suppress(_TooManyError):
        for place in _large_numbers(data, ""):
            search.add(place, "expected a whole number of at most 64 bits, found a larger one")
        search.value(data, inspect.type_info(kind), "")
    return tuple(search.errors)


def listed(errors: Sequence[str]) -> str:
    """Return the errors as one text: a single one as it is, several as a numbered list."""
    if len(errors) == 1:
        return errors[0]
    number = f"more than {MOST_ERRORS} errors; the first" if len(errors) > MOST_ERRORS else f"{len(errors)} errors"
    return f"{number}:" + "".join(f"\n  {place}. {text}" for place, text in enumerate(errors[:MOST_ERRORS], 1))


def nearest(name: object, names: Iterable[str]) -> str | None:
    """Return the one of `names` that was probably meant: a common synonym, or else one with a similar spelling."""
    names = tuple(names)
    if not isinstance(name, str) or len(name) > _MOST_LETTERS:
        return None
    word = name.strip().lower()
    same = [each for each in names if each.lower() == word.replace("-", "_").replace(" ", "_")]
    known = [each for each in _SYNONYMS.get(word, ()) if each in names]
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.65)
    return next(iter([*same, *known, *close]), None)


def suggestion(name: object, names: Iterable[str]) -> str:
    """Return " (did you mean ...?)", or nothing if no name is near."""
    found = nearest(name, names)
    return f" (did you mean '{found}'?)" if found else ""


class _TooManyError(Exception):
    """There are more errors than anybody reads."""


class _Search:
    """Walks a document along its class, and converts on the way, so that a class can check its own fields."""

    def __init__(self, hook: Hook) -> None:
        self.errors: list[str] = []
        self._hook = hook
        self._names: list[str] = []

    def add(self, place: str, text: str) -> Any:
        """Note an error, and return what stands for a value that cannot be made."""
        # a list counts from 0, and people know its members by their names
        name = next((each for each in self._names[-1:] if each and f"'{each}'" not in text), "")
        where = f"{place} ('{name}')" if name and place else place
        self.errors.append(f"{where}: {text}" if where else text)
        if len(self.errors) > MOST_ERRORS:
            raise _TooManyError
        return _FAILED

    def value(self, data: Any, kind: Any, place: str) -> Any:
        """Return `data` as a value of `kind`, or `_FAILED` after noting why not."""
        if isinstance(kind, inspect.UnionType):
            return self._union(data, kind, place)
        if isinstance(kind, inspect.StructType):
            return self._tagged(data, (kind,), place) if kind.tag_field else self._struct(data, kind, place)
        if isinstance(kind, inspect.CollectionType | inspect.TupleType):
            return self._list(data, kind, place)
        if isinstance(kind, inspect.DictType):
            return self._table(data, kind, place)
        if isinstance(kind, inspect.LiteralType):
            return self._word(data, kind, place)
        return self._leaf(data, kind, place)

    def _leaf(self, data: Any, kind: Any, place: str) -> Any:
        known = isinstance(kind, inspect.AnyType | inspect.CustomType | inspect.DateTimeType) or type(kind) in _EXPECTED
        if not known or (isinstance(data, int) and not -LARGEST_WHOLE <= data < LARGEST_WHOLE):
            return _FAILED  # no type that documents have is unknown, and large numbers were noted before
        try:
            return msgspec.convert(data, _python_type(kind), dec_hook=self._hook)
        except msgspec.ValidationError as error:
            if isinstance(kind, inspect.CustomType):
                number = isinstance(data, int | float | str) and not isinstance(data, bool)
                return self.add(place, str(error) if number else f"{error}, found {_type_of(data)}")
            time = isinstance(data, str) and isinstance(kind, inspect.DateType | inspect.DateTimeType)
            return self.add(place, f"expected {_expected(kind)}, found {'other text' if time else _type_of(data)}")

    def _word(self, data: Any, kind: inspect.LiteralType, place: str, others: str = "") -> Any:
        if not isinstance(data, list | dict) and data in kind.values:
            return data
        words = [str(value) for value in kind.values]
        found = f"{_quoted(data)} is not allowed" if isinstance(data, str) else f"found {_type_of(data)}"
        return self.add(place, f"{found}; use {_one_of(words)}{others}{suggestion(data, words)}")

    def _list(self, data: Any, kind: Any, place: str) -> Any:
        if not isinstance(data, list | tuple):
            return self.add(place, f"expected a list, found {_type_of(data)}")
        fixed = isinstance(kind, inspect.TupleType)
        if fixed and len(kind.item_types) != len(data):
            return self.add(place, f"expected a list of {len(kind.item_types)}, found one of {len(data)}")
        made = []
        for number, part in enumerate(data):
            name = part.get("name") if isinstance(part, Mapping) else None
            self._names.append(name if isinstance(name, str) and len(name) <= _MOST_LETTERS else "")
            made.append(self.value(part, kind.item_types[number] if fixed else kind.item_type, f"{place}[{number}]"))
            self._names.pop()
        return _FAILED if any(part is _FAILED for part in made) else tuple(made)

    def _table(self, data: Any, kind: inspect.DictType, place: str) -> Any:
        if not isinstance(data, Mapping):
            return self.add(place, f"expected a table, found {_type_of(data)}")
        made = {key: self.value(part, kind.value_type, _join(place, key)) for key, part in data.items()}
        return _FAILED if any(part is _FAILED for part in made.values()) else made

    def _union(self, data: Any, kind: inspect.UnionType, place: str) -> Any:
        if data is None and _optional(kind):
            return None
        structs = tuple(each for each in kind.types if isinstance(each, inspect.StructType))
        rest = [each for each in kind.types if not isinstance(each, inspect.NoneType | inspect.StructType)]
        if structs and (isinstance(data, Mapping) or not rest):
            return self._tagged(data, structs, place) if structs[0].tag_field else self._struct(data, structs[0], place)
        nested = isinstance(data, list | tuple | Mapping)
        alike = [each for each in rest if isinstance(each, _NESTED) == nested]
        if len(alike) == 1 and (nested or len(kind.types) == len(alike) + _optional(kind)):
            return self.value(data, alike[0], place)
        # lists and tables have one type each, so these are of simple types
        made = (_Search(self._hook).value(data, each, place) for each in alike)
        found = next((each for each in made if each is not _FAILED), _FAILED)
        return self._none_of(data, structs, rest, place) if found is _FAILED else found

    def _none_of(self, data: Any, structs: tuple[inspect.StructType, ...], rest: list[Any], place: str) -> Any:
        inside = ", ".join(f"{field.encode_name} = ..." for each in structs[:1] for field in each.fields)
        table = f" or a table {{{inside}}}" if structs else ""
        if len(rest) == 1 and isinstance(rest[0], inspect.LiteralType):
            return self._word(data, rest[0], place, f",{table}" if table else "")
        return self.add(place, f"expected {' or '.join(map(_expected, rest))}{table}, found {_type_of(data)}")

    def _tagged(self, data: Any, kinds: tuple[inspect.StructType, ...], place: str) -> Any:
        """Choose the class that the tag names; with a wrong tag go on as the nearest one, to find the other errors."""
        if not isinstance(data, Mapping):
            return self._struct(data, kinds[0], place)
        tag = str(kinds[0].tag_field)
        known = {str(kind.tag): kind for kind in kinds}
        if tag in data and isinstance(data[tag], str) and data[tag] in known:
            return self._struct(data, known[data[tag]], place)
        given = tag if tag in data else next((str(key) for key in data if nearest(key, [tag]) == tag), None)
        if given is None:
            return self.add(_join(place, tag), f"required, but missing; use {_one_of(known)}")
        if given != tag:
            self.add(place, f"unknown field {_quoted(given)} (did you mean '{tag}'?)")
        word = data[given]
        if not (isinstance(word, str) and word in known):
            found = f"{_quoted(word)} is not a {tag}" if isinstance(word, str) else f"found {_type_of(word)}"
            self.add(_join(place, given), f"{found}; use {_one_of(known)}{suggestion(word, known)}")
            word = nearest(word, known)
        if word in known:
            self._struct({key: part for key, part in data.items() if key != given}, known[word], place)
        return _FAILED

    def _struct(self, data: Any, kind: inspect.StructType, place: str) -> Any:
        if not isinstance(data, Mapping):
            return self.add(place, f"expected a table, found {_type_of(data)}")
        fields = {field.encode_name: field for field in kind.fields}
        required = {name for name, field in fields.items() if field.required and name not in data}
        made: dict[str, Any] = {}
        for key, part in data.items():
            if key in fields:
                made[fields[key].name] = self.value(part, fields[key].type, _join(place, key))
            elif key != kind.tag_field and kind.forbid_unknown_fields:
                free = [name for name in fields if name not in data]
                required.discard(nearest(key, free) or "")
                allowed = ", ".join([*([kind.tag_field] if kind.tag_field else []), *fields])
                made[""] = self.add(
                    place, f"unknown field {_quoted(key)}{suggestion(key, free)}; allowed here: {allowed}"
                )
        for name in fields:
            if name in required:
                made[""] = self.add(_join(place, name), "required, but missing")
        return self._made(kind.cls, made, place)

    def _made(self, kind: Any, fields: dict[str, Any], place: str) -> Any:
        """Make the document, or with fields missing run those of its checks that need none of them."""
        valid = {name: value for name, value in fields.items() if name and value is not _FAILED}
        try:
            if len(valid) == len(fields):
                return kind(**fields)
            run_checks(SimpleNamespace(**valid), map(_where_it_can, getattr(kind, "checks", ())))
        except ChecksError as error:
            for text in error.texts:
                self.add(place, text)
        except (ValueError, TypeError, SyndicError) as error:
            self.add(place, str(error))
        return _FAILED


def _where_it_can(check: Callable[[Any], None]) -> Callable[[Any], None]:
    def run(document: Any) -> None:
        try:
            check(document)
        except AttributeError:
            return  # it reads a field that could not be made

    return run


def _large_numbers(data: Any, place: str) -> Iterator[str]:
    if isinstance(data, Mapping):
        for key, part in data.items():
            yield from _large_numbers(part, _join(place, key))
    elif isinstance(data, list | tuple):
        for number, part in enumerate(data):
            yield from _large_numbers(part, f"{place}[{number}]")
    elif isinstance(data, int) and not -LARGEST_WHOLE <= data < LARGEST_WHOLE:
        yield place


def _join(place: str, key: object) -> str:
    name = str(key) if len(str(key)) <= _MOST_LETTERS and str(key).isprintable() else _quoted(key)
    return f"{place}.{name}" if place else name


def _quoted(word: object) -> str:
    text = str(word)
    return repr(text if len(text) <= _MOST_LETTERS else text[:_MOST_LETTERS] + "...")


def _one_of(words: Iterable[str]) -> str:
    words = sorted(words)
    return f"one of {', '.join(words)}" if len(words) > 1 else words[0]


def _optional(kind: inspect.UnionType) -> bool:
    return any(isinstance(each, inspect.NoneType) for each in kind.types)


def _python_type(kind: Any) -> Any:
    if isinstance(kind, inspect.DateTimeType):
        return Annotated[datetime.datetime, msgspec.Meta(tz=kind.tz)]
    if isinstance(kind, inspect.CustomType):
        return kind.cls
    return Any if isinstance(kind, inspect.AnyType) else _EXPECTED[type(kind)][0]


def _expected(kind: Any) -> str:
    if isinstance(kind, inspect.LiteralType):
        return _one_of(map(str, kind.values))
    if isinstance(kind, _NESTED):
        return "a table" if isinstance(kind, inspect.DictType) else "a list"
    if isinstance(kind, inspect.DateTimeType):
        return "a date and time such as 2020-01-31T12:00:00Z"
    return _EXPECTED.get(type(kind), (None, "a number"))[1]


def _type_of(data: Any) -> str:
    names: tuple[tuple[Any, str], ...] = (
        (bool, "true or false"),
        (int, "a whole number"),
        (float, "a number that is not whole"),
        (str, "text"),
        (datetime.datetime, "a date and time"),
        (datetime.date, "a date"),
        (Mapping, "a table"),
        (list | tuple, "a list"),
    )
    return next((text for kind, text in names if isinstance(data, kind)), "nothing")
