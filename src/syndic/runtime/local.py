"""All parties in this process, for simulations, tests and notebooks."""

from collections.abc import Callable, Mapping
from typing import Final, final

from syndic.errors import InputError, SyndicError
from syndic.kernel import Delivery, Head, Node, answer

MOST_OPEN: Final = 64
"""How many parties' ledgers are open at once, with three files each; systems allow a process 256 or more."""


@final
class Local:
    """Passes the same bytes that a network would carry directly to the nodes."""

    def __init__(
        self, nodes: Mapping[str, Node], *, reopen: Callable[[str], Node] | None = None, most: int = MOST_OPEN
    ) -> None:
        """Serve these nodes, by party name; `reopen` opens a party's node from its own folder when it is called.

        Then at most so many stay open. A party that was closed answers like one that was not: all that it knows is in
        its file, and that this file is not put back to an older one is checked here too.
        """
        self._nodes = dict(nodes)
        self._reopen = reopen
        self._most = most
        self._heads: dict[str, Head] = {}

    def restart(self, party: str) -> None:
        """Close a party's node until its next call, as if its process was stopped between two calls."""
        if self._reopen is None:
            raise InputError(f"{party} cannot be restarted: this runtime was created without `reopen`")
        if party in self._nodes:
            self._nodes.pop(party).close()
        self._heads.pop(party, None)

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        """Answer for one party after another; `seconds` is ignored by the local runtime."""
        del seconds
        replies: dict[str, bytes] = {}
        silent: dict[str, str] = {}
        for party, data in calls.items():
            try:
                node = self._node(party)
            except SyndicError as error:
                silent[party] = str(error)
            else:
                replies[party] = answer(node, data)
                arrived(len(replies))
        return Delivery(replies=replies, silent=silent)

    def _node(self, party: str) -> Node:
        """Return a party's node; open it if necessary, and close another one if too many are open."""
        if party not in self._nodes and self._reopen is not None:
            while len(self._nodes) >= self._most:
                # every step asks all parties in the same order: the last one is not asked again for the longest time
                name, last = self._nodes.popitem()
                self._heads[name] = last.state.memory.last
                last.close()
            self._nodes[party] = self._reopen(party)
            self._nodes[party].state.memory.last = self._heads.pop(party, Head())
        return self._nodes[party]

    def close(self) -> None:
        """Close all ledgers."""
        for node in self._nodes.values():
            node.close()
