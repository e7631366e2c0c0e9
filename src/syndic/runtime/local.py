"""All parties in this process, for simulations, tests and notebooks."""

from collections.abc import Callable, Mapping
from typing import final

from syndic.errors import InputError
from syndic.kernel import Delivery, Node, answer


@final
class Local:
    """Passes the same bytes that a network would carry directly to the nodes."""

    def __init__(self, nodes: Mapping[str, Node], *, reopen: Callable[[str], Node] | None = None) -> None:
        """Serve these nodes, by party name; `reopen` opens a party's node from its own folder."""
        self._nodes = dict(nodes)
        self._reopen = reopen

    def restart(self, party: str) -> None:
        """Close a party's node and open it again, as after its process was stopped between two calls."""
        if self._reopen is None:
            raise InputError(f"{party} cannot be restarted: this runtime was created without `reopen`")
        self._nodes[party].close()
        self._nodes[party] = self._reopen(party)

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        """Answer for one party after another; `seconds` is ignored by the local runtime."""
        del seconds
        replies: dict[str, bytes] = {}
        for party, data in calls.items():
            replies[party] = answer(self._nodes[party], data)
            arrived(len(replies))
        return Delivery(replies=replies, silent={})

    def close(self) -> None:
        """Close all ledgers."""
        for node in self._nodes.values():
            node.close()
