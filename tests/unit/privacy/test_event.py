from fractions import Fraction
from typing import Any

import pytest

from syndic.document import from_builtins, to_builtins, to_json
from syndic.errors import InputError
from syndic.privacy.event import ApproximateEvent, ConcentratedEvent, Event, GaussianEvent, PureEvent

EVENTS: list[tuple[Event, dict[str, str]]] = [
    (
        PureEvent(epsilon=Fraction(1, 2), what="discrete Laplace, scale 2"),
        {"kind": "pure", "epsilon": "1/2", "what": "discrete Laplace, scale 2"},
    ),
    (ConcentratedEvent(rho=Fraction(3)), {"kind": "concentrated", "rho": "3", "what": ""}),
    (
        ApproximateEvent(epsilon=Fraction(1), delta=Fraction(1, 10**6)),
        {"kind": "approximate", "epsilon": "1", "delta": "1/1000000", "what": ""},
    ),
    (
        GaussianEvent(mu_squared=Fraction(1, 18), slack=Fraction(1, 10**12), what="Gaussian, mu 0.236"),
        {"kind": "gaussian", "mu_squared": "1/18", "slack": "1/1000000000000", "what": "Gaussian, mu 0.236"},
    ),
]


@pytest.mark.parametrize(("event", "plain"), EVENTS)
def test_an_event_is_read_back_by_its_kind(event: Event, plain: dict[str, str]) -> None:
    assert to_builtins(event) == plain
    assert from_builtins([plain], tuple[Event, ...], where="here") == (event,)


def test_events_of_different_kind_but_equal_numbers_differ() -> None:
    events: list[Event] = [PureEvent(epsilon=Fraction(1)), ConcentratedEvent(rho=Fraction(1))]
    assert len(set(events)) == 2
    assert to_json(PureEvent(epsilon=Fraction(2, 4))) == to_json(PureEvent(epsilon=Fraction(1, 2)))


@pytest.mark.parametrize(
    ("plain", "text"),
    [
        ({"kind": "pure", "epsilon": 0}, r"epsilon \(0\) must be positive and finite"),
        ({"kind": "pure", "epsilon": -0.5}, r"epsilon \(-1/2\) must be positive and finite"),
        ({"kind": "pure", "epsilon": "inf"}, "expected a finite number"),
        ({"kind": "concentrated", "rho": 0}, r"rho \(0\) must be positive and finite"),
        ({"kind": "approximate", "epsilon": 0, "delta": 0.1}, r"epsilon \(0\) must be positive"),
        ({"kind": "approximate", "epsilon": 1, "delta": 0}, r"delta \(0\) must be positive"),
        ({"kind": "approximate", "epsilon": 1, "delta": 1}, r"delta \(1\) must be in \(0, 1\)"),
        ({"kind": "gaussian", "mu_squared": 0}, r"mu_squared \(0\) must be positive"),
        ({"kind": "gaussian", "mu_squared": 1, "slack": -1}, r"slack \(-1\) must be a Fraction in \[0, 1\)"),
        ({"kind": "gaussian", "mu_squared": 1, "slack": 1}, r"slack \(1\) must be a Fraction in \[0, 1\)"),
        ({"kind": "guess", "rho": 1}, "'guess' is not a kind; use one of"),
        ({"kind": "pure", "epsilon": 1, "delta": 1}, "unknown field 'delta'"),
    ],
)
def test_bad_events_are_refused_with_the_place(plain: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text) as caught:
        from_builtins(plain, Event, where="study.toml")  # type: ignore[arg-type]
    assert str(caught.value).startswith("study.toml: ")


@pytest.mark.parametrize("number", [1, 0.1, float("inf"), float("nan"), True])
def test_inexact_numbers_are_refused(number: Any) -> None:
    with pytest.raises(ValueError, match="must be a Fraction"):
        PureEvent(epsilon=number)
    with pytest.raises(ValueError, match="must be a Fraction"):
        GaussianEvent(mu_squared=Fraction(1), slack=number)


def test_a_gaussian_event_may_be_exact() -> None:
    assert GaussianEvent(mu_squared=Fraction(1), slack=Fraction(0)) == GaussianEvent(mu_squared=Fraction(1))
