"""Columns that identify people: found by their names, and by how often their values repeat."""

import re
from collections.abc import Iterable
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from syndic.data import values as read

_PERSON: Final = frozenset({
    "account", "case", "client", "customer", "employee", "encounter", "household", "member", "participant", "patient",
    "person", "record", "respondent", "row", "student", "subject", "user", "visit",
})  # fmt: skip
_ID: Final = frozenset({
    "email", "guid", "iban", "id", "identifier", "ids", "key", "mrn", "phone", "pid", "pseudonym", "ssn", "uid", "uuid",
})  # fmt: skip
_NUMBER: Final = frozenset({"index", "nbr", "no", "nr", "num", "number"})
_CODE: Final = frozenset({
    "category", "class", "code", "codes", "diag", "diagnosis", "icd", "icd10", "icd9", "plz", "postcode", "region",
    "type", "zip",
})  # fmt: skip
_JOINED: Final = re.compile(rf"({'|'.join(sorted(_PERSON))})_?({'|'.join(sorted(_ID | _NUMBER))})$")
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+[0-9]*|[0-9]+|[^\W\d_]+")


def named_as_id(name: str) -> bool:
    """Return whether a column's name says that it identifies people or records: `patient_id`, `caseNo`, `customer`."""
    words = _words(name)
    if not words:
        return False
    if words[-1] in _ID or (len(words) == 1 and words[0] in _PERSON):
        return True
    return bool(_JOINED.search(name.lower())) or (len(words) > 1 and words[-1] in _NUMBER and words[0] in _PERSON)


def named_as_code(name: str) -> bool:
    """Return whether a column's name says that its numbers are codes: `zip_code`, `admission_type_id`."""
    return bool(_CODE.intersection(_words(name)))


def rows_of_people(chunks: Iterable[pa.Array]) -> NDArray[np.int64]:
    """Return the number of rows of each person, by an id column; rows without an id are left out. Private."""
    found = [ids_of(chunk) for chunk in chunks]
    if not found:
        return np.zeros(0, dtype=np.int64)
    counts = pa.chunked_array(found, pa.large_string()).drop_null().value_counts()
    return np.asarray(counts.field("counts")).astype(np.int64)


def ids_of(array: pa.Array) -> pa.Array:
    """Return ids as text, null where missing or of a type that holds no ids."""
    array = read.plain(array)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    known = read.is_text(array.type) or read.is_number(array.type) or read.is_time(array.type)
    return read.ids(array).cast(pa.large_string()) if known else pa.nulls(len(array), pa.large_string())


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]
