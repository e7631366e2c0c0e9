"""What a runtime must do: carry bytes to parties and back. No other layer depends on how it does so."""

import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@typing.final
@dataclass(frozen=True, kw_only=True)
class Delivery:
    """The replies by party, and the reason for every party that gave none."""

    replies: Mapping[str, bytes]
    silent: Mapping[str, str]


class Runtime(typing.Protocol):
    """Carries bytes between a coordinator and parties."""

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        """Send every party its bytes, wait at most `seconds`, and call `arrived` with the number of replies so far."""

    def close(self) -> None:
        """Release processes, sockets and files."""
