"""Put a mutant into modules that are already imported, by giving functions other code.

Importing everything anew for each mutant takes most of the time. A function's code can be replaced in place, whoever
holds the function. What runs while a module is imported (constants, classes, defaults) cannot: such a mutant is `cold`.
"""

import gc
import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType

_Key = tuple[str, int]


class ColdError(Exception):
    """The change shows only when the module is imported anew."""


Living = dict[_Key, list[FunctionType]]


def living_functions(root: str) -> dict[str, Living]:
    """Return the functions that exist now and came from files under a folder, by file."""
    found: dict[str, Living] = {}
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(root):
            found.setdefault(each.__code__.co_filename, {}).setdefault(_key(each.__code__), []).append(each)
    return found


def put_in(original: CodeType, changed: CodeType, living: Living) -> None:
    """Give the living functions the changed code; `ColdError` if that is not all of the change."""
    for old, new in list(_differing(original, changed)):
        if not living.get(_key(old)):
            raise ColdError
        # also functions that were made inside of it before
        for part, other in [(old, new), *_within(old, new)]:
            _give(living.get(_key(part), []), other)


def _give(functions: list[FunctionType], new: CodeType) -> None:
    for function in functions:
        try:
            function.__code__ = new
        except ValueError:
            raise ColdError from None


def _differing(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Walk over what is run by an import, and return the outermost functions that differ."""
    parts, others = _inner(old), _inner(new)
    if len(parts) != len(others) or _own(old) != _own(new):
        raise ColdError
    for part, other in zip(parts, others, strict=True):
        if part == other:
            continue
        if not part.co_flags & inspect.CO_OPTIMIZED:
            yield from _differing(part, other)
        else:
            yield part, other


def _within(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    parts, others = _inner(old), _inner(new)
    if len(parts) == len(others):
        for part, other in zip(parts, others, strict=True):
            yield part, other
            yield from _within(part, other)


def _inner(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]


def _own(code: CodeType) -> tuple[object, ...]:
    constants = [repr(each) for each in code.co_consts if not isinstance(each, CodeType)]
    return code.co_code, constants, code.co_names


def _key(code: CodeType) -> _Key:
    return code.co_qualname, code.co_firstlineno
