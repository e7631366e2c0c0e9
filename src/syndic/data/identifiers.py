"""Columns that identify people, found by their names."""

import re
from typing import Final

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


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]
