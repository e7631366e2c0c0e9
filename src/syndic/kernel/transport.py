"""What a runtime must do: carry bytes to parties and back. Nothing above this knows how."""

import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@typing.final
@dataclass(frozen=True, kw_only=True)
class Delivery:
    """What came back: replies by party, and for every party that gave none the reason."""

    replies: Mapping[str, bytes]
    silent: Mapping[str, str]


class Runtime(typing.Protocol):
    """Carries bytes between a coordinator and parties."""

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        """Send every party its bytes, wait at most `seconds`, tell `arrived` how many have answered."""
        ...

    def close(self) -> None:
        """Let go of processes, sockets and files."""
        ...
