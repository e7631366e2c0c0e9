"""Documents that nobody writes by hand: refused with the place, at once, and before anything is computed."""

from fractions import Fraction
from typing import Any

import pytest

from syndic.document import Document, exact, from_json, from_toml
from syndic.errors import InputError


class Thing(Document):
    """A number of each kind, and whatever else."""

    exact: Fraction = Fraction(0)
    whole: int = 0
    rest: Any = None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"exact = 1{'0' * 400}", "thing: exact: expected a whole number of at most 64 bits"),
        (f"whole = -1{'0' * 19}", "whole: expected a whole number of at most 64 bits"),
        (f"rest = [1, {{ a = {2**63} }}]", r"rest\[1\]\.a: expected a whole number"),
        ("exact = '1e400'", "exact: expected a number below 1e150"),
        ("exact = '-1e151'", "below 1e150"),
        ("a" + ".a" * 40 + " = 1", "too many parts"),
        ("""["a" . 'b'.c""" + ". a" * 40 + "]", "too many parts"),
        ("rest = " + "[" * 500 + "]" * 500, "not valid TOML|nested too deeply"),
    ],
)
def test_what_would_keep_a_machine_busy_is_refused(text: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        from_toml(text, Thing, where="thing")


def test_large_numbers_and_long_texts_are_read() -> None:
    read = from_toml(f"exact = '1e150'\nwhole = {2**63 - 1}\nrest = '{'a.b ' * 1000}'", Thing, where="thing")
    assert (read.exact, read.whole, len(read.rest)) == (Fraction(10**150), 2**63 - 1, 4000)


def test_json_of_any_depth_is_read_or_refused() -> None:
    for depth in (10, 900, 5000, 10**5):
        try:
            assert from_json('{"rest":' + "[" * depth + "]" * depth + "}", Thing, where="thing").rest is not None
        except InputError as error:
            told = str(error)
        else:
            told = "nested"
        assert "JSON" in told or "nested" in told


@pytest.mark.parametrize("text", ["1e10000000", "-2E+99_99", "1e-10000000"])
def test_a_number_too_long_to_write_out_is_refused_at_once(text: str) -> None:
    """`Fraction("1e10000000")` computes ten million digits."""
    with pytest.raises(ValueError, match="exponent of at most three digits"):
        exact(text)
