"""Frozen records that check themselves: people write them (TOML, JSON) and programs exchange them.

Parsing is strict: unknown keys, wrong types and missing keys are errors that name the place. All errors of a document
are reported together. Fractions are exact and written as text ("3/10"), so that a number is the same on every machine.
"""

import abc
import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, TypeVar, dataclass_transform

import msgspec

from syndic.errors import InputError

D = TypeVar("D")
Prepare = Callable[[Any], Any]
LARGEST_WHOLE = 2**63
# "1e999999999" is short to write, but its digits would take hours to compute
_ENDLESS = re.compile(r"[eE][+-]?\d{4}")
# the square of a number below this is still a float
_LARGEST = 10**150
# parsing a dotted TOML key takes time quadratic in the number of its parts
_LONG_KEY = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){40}""")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class DocumentClass(msgspec.StructMeta, abc.ABCMeta):
    """Make every subclass of `Document` frozen, keyword-only and strict by default."""

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any], **options: Any) -> "DocumentClass":
        """Create the class with these options."""
        strict = {"frozen": True, "kw_only": True, "forbid_unknown_fields": True}
        return super().__new__(cls, name, bases, body, **{**strict, **options})


class Document(msgspec.Struct, metaclass=DocumentClass):
    """Base of every frozen record. A subclass checks its fields in `__post_init__` and raises `ValueError`.

    A subclass may list methods in `checks` and pass them to `run_checks`. When some fields are not valid, the checks
    that do not read these fields still run, so that all errors are reported together.
    """

    checks: ClassVar[tuple[Callable[[Any], None], ...]] = ()


class ChecksError(ValueError):
    """Several errors of one document, each found by one of its checks."""

    def __init__(self, texts: Sequence[str]) -> None:
        """Keep each text; the error itself reads as all of them."""
        super().__init__("; ".join(texts))
        self.texts = tuple(texts)


def run_checks(document: Any, checks: Iterable[Callable[[Any], None]]) -> None:
    """Run all checks of a document and raise `ValueError` with everything that they object to."""
    texts = []
    for check in checks:
        try:
            check(document)
        except ValueError as error:
            texts.append(str(error))
    if texts:
        raise ChecksError(texts)


def exact(number: float | Fraction | str) -> Fraction:
    """Return the number as written: 0.1 becomes 1/10, not the nearest binary fraction.

    Raises:
        ValueError: if it is not a number, or if its exponent has more than three digits.
    """
    if isinstance(number, str) and _ENDLESS.search(number.replace("_", "")):
        raise ValueError("expected a number with an exponent of at most three digits")
    return number if isinstance(number, Fraction) else Fraction(str(number))


def to_builtins(document: Any) -> Any:
    """Return the document as dicts, lists, strings and numbers."""
    return msgspec.to_builtins(document, enc_hook=_encode_hook)


def to_json(document: Any) -> bytes:
    """Return canonical JSON: sorted keys, no spaces, every default included. Digests are computed from it."""
    return msgspec.json.encode(document, enc_hook=_encode_hook, order="sorted")


def to_readable_json(document: Any) -> bytes:
    """Return indented JSON for people, with fields in the order of their class."""
    return msgspec.json.format(msgspec.json.encode(document, enc_hook=_encode_hook), indent=2) + b"\n"


def from_builtins(data: Any, kind: type[D], *, where: str) -> D:
    """Read a document of class `kind`.

    Raises:
        InputError: with all errors of the document; each names its place, and the text begins with `where`.
    """
    try:
        if _numbers_fit(data):
            return msgspec.convert(data, kind, dec_hook=_decode_hook)
        first = "a whole number has more than 64 bits"
    except msgspec.ValidationError as error:
        first = str(error)
    except RecursionError:
        raise _too_deep(where) from None
    raise _all_errors(data, kind, where, first)


def from_json(text: bytes | str, kind: type[D], *, where: str, prepare: Prepare | None = None) -> D:
    """Read a JSON document of class `kind`; `prepare` changes the content before it is checked."""
    try:
        data = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{where}: not valid JSON: {error}") from None
    return _prepared(data, kind, where, prepare)


def from_toml(text: str, kind: type[D], *, where: str, prepare: Prepare | None = None) -> D:
    """Read a TOML document of class `kind`; `prepare` changes the content before it is checked."""
    if _LONG_KEY.search(text):
        raise InputError(f"{where}: not valid TOML: a dotted key has too many parts for a {kind.__name__}")
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # a number with too many digits raises a plain ValueError
        raise InputError(f"{where}: not valid TOML: {error}") from None
    return _prepared(data, kind, where, prepare)


def _prepared(data: Any, kind: type[D], where: str, prepare: Prepare | None) -> D:
    try:
        data = data if prepare is None else prepare(data)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    return from_builtins(data, kind, where=where)


def from_file(path: str | Path, kind: type[D], *, prepare: Prepare | None = None) -> D:
    """Read a `.toml` or `.json` file of class `kind`; `prepare` changes the content before it is checked."""
    path = Path(path)
    if path.suffix not in {".toml", ".json"}:
        raise InputError(f"{path.name}: unknown file type '{path.suffix}'; expected a .toml or .json file")
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    return (from_toml if path.suffix == ".toml" else from_json)(text, kind, where=path.name, prepare=prepare)


def _all_errors(data: Any, kind: Any, where: str, first: str) -> InputError:
    """Return one error with everything that is wrong in a document that was refused; `first` is what msgspec said."""
    from syndic.document_errors import MOST_ERRORS, find_errors, listed  # noqa: PLC0415  # most documents have no errors

    try:
        errors = find_errors(data, kind, _decode_hook) or (first,)
    except RecursionError:
        return _too_deep(where)
    return InputError(f"{where}: {listed(errors)}", errors=errors[:MOST_ERRORS])


def _too_deep(where: str) -> InputError:
    return InputError(f"{where}: lists and tables are nested too deeply")


def _numbers_fit(data: Any) -> bool:
    """Return whether all whole numbers have 64 bits, as TOML demands: counting up to a larger one may fill memory."""
    if isinstance(data, dict):
        return all(map(_numbers_fit, data.values()))
    if isinstance(data, list | tuple):
        return all(map(_numbers_fit, data))
    return not isinstance(data, int) or -LARGEST_WHOLE <= data < LARGEST_WHOLE


def json_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema of a document class."""
    schema = msgspec.json.schema(kind, schema_hook=_schema_hook)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def schema_parts(kinds: list[Any], place: str) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    """Return the JSON Schemas of several classes, and their shared parts, referred to by `place` ("#/parts/{name}")."""
    schemas, shared = msgspec.json.schema_components(kinds, schema_hook=_schema_hook, ref_template=place)
    return tuple(schemas), shared


def _encode_hook(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} cannot be part of a document")


def _decode_hook(kind: Any, value: Any) -> Any:
    if kind is Fraction:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError('expected a number such as 0.5 or "1/3"')
        if isinstance(value, str) and _ENDLESS.search(value.replace("_", "")):
            raise ValueError("expected a number with an exponent of at most three digits")
        try:
            number = exact(value) if not isinstance(value, int) else Fraction(value)
        except (ValueError, ZeroDivisionError):
            raise ValueError(f'expected a finite number such as 0.5 or "1/3", found {str(value)[:40]!r}') from None
        if abs(number) > _LARGEST:
            raise ValueError("expected a number below 1e150")
        return number
    raise NotImplementedError(f"{kind} cannot be part of a document")


def _schema_hook(kind: Any) -> dict[str, Any]:
    if kind is Fraction:
        return {"type": ["number", "string"], "description": 'an exact number: 0.1, 3 or "3/10"'}
    raise NotImplementedError(f"{kind} cannot be part of a document")
