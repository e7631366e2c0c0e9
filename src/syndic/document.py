"""Frozen, self-checking records that people write (TOML, JSON) and programs exchange.

Parsing is strict: unknown keys, wrong types and missing keys are errors that name the place. Fractions are
exact and written as text ("3/10"), so that a number means the same on every machine.
"""

import abc
import re
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar, dataclass_transform

import msgspec

from syndic.errors import InputError

D = TypeVar("D")
# written in a few letters, "1e999999999" has as many digits as would keep a machine busy for hours
_ENDLESS = re.compile(r"[eE][+-]?\d{4}")
# what becomes of the square of a number below it is still a float
_LARGEST = 10**150
_LARGEST_WHOLE = 2**63
# the reader of TOML takes time that grows with the square of the parts of a dotted key
_LONG_KEY = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){40}""")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class DocumentClass(msgspec.StructMeta, abc.ABCMeta):
    """Makes every subclass of `Document` frozen, keyword-only and strict without saying so again."""

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any], **options: Any) -> "DocumentClass":
        """Make a class."""
        strict = {"frozen": True, "kw_only": True, "forbid_unknown_fields": True}
        return super().__new__(cls, name, bases, body, **{**strict, **options})


class Document(msgspec.Struct, metaclass=DocumentClass):
    """Base of every frozen record. Checks of its own go into `__post_init__` and raise `ValueError`."""


def exact(number: float | Fraction | str) -> Fraction:
    """Return the number as written: 0.1 becomes 1/10, not the nearest binary fraction."""
    return number if isinstance(number, Fraction) else Fraction(str(number))


def to_builtins(document: Any) -> Any:
    """Return the document as dicts, lists, strings and numbers."""
    return msgspec.to_builtins(document, enc_hook=_encode_hook)


def to_json(document: Any) -> bytes:
    """Return canonical JSON: sorted keys, no spaces, every default spelled out. Digests are taken of this."""
    return msgspec.json.encode(document, enc_hook=_encode_hook, order="sorted")


def to_readable_json(document: Any) -> bytes:
    """Return indented JSON with the fields in the order of their class, for people."""
    return msgspec.json.format(msgspec.json.encode(document, enc_hook=_encode_hook), indent=2) + b"\n"


def from_builtins(data: Any, kind: type[D], *, where: str) -> D:
    """Read a document of class `kind`; an error names `where` and the place inside."""
    try:
        _check_numbers(data, where, "$")
        return msgspec.convert(data, kind, dec_hook=_decode_hook)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {error}") from None
    except RecursionError:
        raise InputError(f"{where}: lists and tables are nested too deeply") from None


def from_json(text: bytes | str, kind: type[D], *, where: str) -> D:
    """Read a JSON document of class `kind`."""
    try:
        data = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{where}: not valid JSON: {error}") from None
    return from_builtins(data, kind, where=where)


def from_toml(text: str, kind: type[D], *, where: str) -> D:
    """Read a TOML document of class `kind`."""
    if _LONG_KEY.search(text):
        raise InputError(f"{where}: not valid TOML: a key of so many parts is none of a {kind.__name__}")
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # a number of too many digits is a plain ValueError
        raise InputError(f"{where}: not valid TOML: {error}") from None
    return from_builtins(data, kind, where=where)


def from_file(path: str | Path, kind: type[D]) -> D:
    """Read a `.toml` or `.json` file of class `kind`."""
    path = Path(path)
    if path.suffix not in {".toml", ".json"}:
        raise InputError(f"{path.name}: expected a .toml or .json file")
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    return (from_toml if path.suffix == ".toml" else from_json)(text, kind, where=path.name)


def _check_numbers(data: Any, where: str, place: str) -> None:
    """Refuse whole numbers that TOML does not have either: some would fill the memory of whoever counts up to them."""
    if isinstance(data, dict):
        for key, part in data.items():
            _check_numbers(part, where, f"{place}.{key}")
    elif isinstance(data, list | tuple):
        for part in data:
            _check_numbers(part, where, f"{place}[...]")
    elif isinstance(data, int) and not -_LARGEST_WHOLE <= data < _LARGEST_WHOLE:
        raise InputError(f"{where}: Expected a whole number of at most 64 bits - at `{place}`")


def json_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema of a document class."""
    schema = msgspec.json.schema(kind, schema_hook=_schema_hook)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def schema_parts(kinds: list[Any], place: str) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    """Return the JSON Schemas of several classes, and the parts that they share under `place`, as "#/parts/{name}"."""
    schemas, shared = msgspec.json.schema_components(kinds, schema_hook=_schema_hook, ref_template=place)
    return tuple(schemas), shared


def _encode_hook(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} is not part of a document")


def _decode_hook(kind: Any, value: Any) -> Any:
    if kind is Fraction:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError(f"Expected a number, got `{type(value).__name__}`")
        if isinstance(value, str) and _ENDLESS.search(value.replace("_", "")):
            raise ValueError("Expected a number with an exponent of at most three digits")
        try:
            number = exact(value) if not isinstance(value, int) else Fraction(value)
        except (ValueError, ZeroDivisionError):
            raise ValueError(f"Expected a finite number, got {value!r}") from None
        if abs(number) > _LARGEST:
            raise ValueError("Expected a number below 1e150")
        return number
    raise NotImplementedError(f"{kind} is not part of a document")


def _schema_hook(kind: Any) -> dict[str, Any]:
    if kind is Fraction:
        return {"type": ["number", "string"], "description": 'an exact number: 0.1, 3 or "3/10"'}
    raise NotImplementedError(f"{kind} is not part of a document")
