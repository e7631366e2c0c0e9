"""Every party in this process: for simulation, tests and notebooks."""

from collections.abc import Callable, Mapping
from typing import final

from syndic.kernel import Delivery, Node, answer


@final
class Local:
    """Answers calls by calling the nodes directly, with the same bytes that would travel."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        """Serve these nodes, by party name."""
        self._nodes = nodes

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        """Answer one party after the other; `seconds` has no hold over code in this process."""
        del seconds
        replies: dict[str, bytes] = {}
        for party, data in calls.items():
            replies[party] = answer(self._nodes[party], data)
            arrived(len(replies))
        return Delivery(replies=replies, silent={})

    def close(self) -> None:
        """Close ledgers and memories."""
        for node in self._nodes.values():
            node.close()
