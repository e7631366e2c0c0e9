"""Every message that travels: any bytes are read as that message or refused, and what is read can be sent again."""

import types
import typing
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import syndic.federation.run
import syndic.study
from fuzzing import fuzz, nested, outcome, spoiled, spoiled_document, words_of
from syndic.errors import RefusedError
from syndic.kernel import Call, Message, Reply, decode, encode

pytestmark = pytest.mark.fuzz
__all__ = ["syndic"]  # imported for the messages of every method and of the engine


def kinds_of(kind: type[Message]) -> Iterator[type[Message]]:
    """Yield every class of message there is."""
    for below in kind.__subclasses__():
        if below.__module__.startswith("syndic."):
            yield below
        yield from kinds_of(below)


KINDS = sorted(set(kinds_of(Message)), key=lambda kind: f"{kind.__module__}.{kind.__name__}")
SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(),
    str: st.text(max_size=8),
    bytes: st.binary(max_size=40),
    bool: st.booleans(),
    type(None): st.none(),
}


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Return values of an annotation, so that messages need not be written down here one by one."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin is not None:
        return values_of_many(origin, inside)
    if kind in SIMPLE:
        return SIMPLE[kind]
    fields = typing.get_type_hints(kind)
    return st.fixed_dictionaries({name: values_of(fields[name]) for name in kind.__struct_fields__}).map(
        lambda values: _made(kind, values)
    )


def values_of_many(origin: Any, inside: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    """Return values of an annotation that is made of others."""
    if origin is np.ndarray:
        shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
        return hnp.arrays(np.dtype(typing.get_args(inside[1])[0]), shapes)
    if origin is typing.Literal:
        return st.sampled_from(inside)
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*map(values_of, inside))
    if origin is dict:
        return st.dictionaries(values_of(inside[0]), values_of(inside[1]), max_size=3)
    return st.lists(values_of(inside[0]), max_size=3).map(origin)


def _made(kind: Any, values: dict[str, Any]) -> Any:
    if kind is Call:
        return Call(**{**values, "check": None}).checked()
    if kind is Reply:
        return Reply(**{**values, "check": None}).to(values["body"])
    try:
        return kind(**values)
    except ValueError:
        # a document that refuses itself, such as rules for ids that name one twice: nobody can send it
        reject()


@st.composite
def messages(draw: st.DrawFn) -> tuple[type[Message], Message]:
    kind = draw(st.sampled_from(KINDS))
    return kind, draw(values_of(kind))


def read(data: bytes, kind: type[Message]) -> Message | None:
    """Return the message, None where it is refused; what is read can be sent again and is the same then."""
    found = outcome(lambda: decode(data, kind), kinds=(RefusedError,))
    if isinstance(found, Exception):
        return None
    assert isinstance(found, kind)
    again = encode(found)
    assert encode(decode(again, kind)) == again
    return found


def test_the_messages_of_every_layer_are_here() -> None:
    homes = {kind.__module__.split(".")[1] for kind in KINDS}
    assert {"kernel", "mpc", "methods", "runtime"} <= homes


@fuzz()
@given(messages())
def test_what_goes_in_comes_out(case: tuple[type[Message], Message]) -> None:
    kind, message = case
    found = read(encode(message), kind)
    assert found is not None
    assert encode(found) == encode(message)


@fuzz()
@given(messages(), st.data())
def test_spoiled_bytes_are_read_or_refused(case: tuple[type[Message], Message], data: st.DataObject) -> None:
    kind, message = case
    read(data.draw(spoiled(encode(message))), kind)


@fuzz()
@given(messages(), st.data())
def test_spoiled_fields_are_read_or_refused(case: tuple[type[Message], Message], data: st.DataObject) -> None:
    kind, message = case
    tree = msgspec.msgpack.decode(encode(message))
    changed = data.draw(spoiled_document(tree, words_of([tree]))) if tree else data.draw(st.just([tree]))
    try:
        written = msgspec.msgpack.encode(changed)
    except OverflowError:
        # numbers beyond 64 bits cannot even be written
        return
    read(written, kind)


@fuzz()
@given(messages(), st.sampled_from(KINDS))
def test_one_message_is_not_taken_for_another(case: tuple[type[Message], Message], kind: type[Message]) -> None:
    read(encode(case[1]), kind)


@fuzz()
@given(st.binary(max_size=300), st.sampled_from(KINDS))
def test_any_bytes_are_read_or_refused(data: bytes, kind: type[Message]) -> None:
    read(data, kind)


@fuzz()
@given(
    st.integers(0, 255),
    st.lists(
        st.sampled_from([0, 1, 2, 3, 2**31, 2**32, 2**62, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1), max_size=9
    ),
    st.binary(max_size=64),
    st.integers(0, 9),
)
def test_any_header_of_an_array_is_read_or_refused(code: int, shape: list[int], cells: bytes, dimensions: int) -> None:
    header = bytes([code % 9, dimensions % 10]) + b"".join(side.to_bytes(8, "little") for side in shape)
    for kind in (kind for kind in KINDS if kind.__name__ in ("AlignTable", "Zeros")):
        read(msgspec.msgpack.encode({"number": 1, "words": header + cells}), kind)
        read(msgspec.msgpack.encode({"places": header + cells}), kind)


@pytest.mark.parametrize("depth", [10, 500, 5000, 10**6])
def test_nesting_of_any_depth_is_refused(depth: int) -> None:
    for data in (b"\x91" * depth + b"\xc0", b"\x81\xa4body" * depth + b"\xc0", msgspec.msgpack.encode(nested(100))):
        for kind in KINDS:
            assert read(data, kind) is None


@pytest.mark.parametrize(
    "head", [b"\xc6\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xff", b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff"]
)
def test_a_length_that_is_not_there_takes_no_memory(head: bytes) -> None:
    for kind in KINDS:
        assert read(b"\x81\xa4body" + head + b"abc", kind) is None
        assert read(head, kind) is None
