"""A step: one request that a party answers."""

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Literal, TypeVar, get_type_hints

from syndic.document import Document
from syndic.kernel.codec import Message

Reveals = Literal["public", "noisy", "masked", "sealed"]
Function = TypeVar("Function", bound=Callable[..., Message])


class Step(Document):
    """The messages a step takes and returns, what it does in one line, and what its reply reveals.

    `public`: does not depend on the rows. `noisy`: a differentially private release, charged by this step. `masked`:
    uniform without the other shares. `sealed`: encrypted for another party. A `fresh` step is computed on every
    request; the answer of any other step is stored, and a repeated request returns the same bytes.
    """

    name: str
    means: str
    reveals: Reveals
    fresh: bool
    takes: type[Message]
    returns: type[Message]


def step(*, reveals: Reveals, fresh: bool = False) -> Callable[[Function], Function]:
    """Mark a method `(self, party, message) -> message` as a step and declare what its reply reveals."""

    def mark(function: Function) -> Function:
        function.reveals, function.fresh = reveals, fresh  # type: ignore[attr-defined]  # marks on our own function
        return function

    return mark


@cache
def steps_of(owner: type) -> Mapping[str, Step]:
    """Return the steps that a class declares, by name, in the order of declaration; base classes come first."""
    found: dict[str, Step] = {}
    for base in reversed(owner.__mro__):
        for name in vars(base):
            function = getattr(owner, name)
            reveals = getattr(function, "reveals", None)
            if name in found or not callable(function) or reveals is None:
                continue
            hints = get_type_hints(function)
            taken = next(hint for key, hint in hints.items() if key not in {"party", "return"})
            found[name] = Step(
                name=name,
                means=(function.__doc__ or "").strip().partition("\n")[0],
                reveals=reveals,
                fresh=function.fresh,
                takes=taken,
                returns=hints["return"],
            )
    return MappingProxyType(found)
