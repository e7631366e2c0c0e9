"""Several parties in one process, each on its own socket: `python -m syndic_lab.bench.sum_worker HOME=DESCRIPTOR ...`.

A hundred Python processes would measure how two cores start them. The bytes, the ledgers and the files are the same.
"""

import selectors
import socket
import sys
from contextlib import ExitStack
from pathlib import Path

from syndic.kernel import answer
from syndic.runtime.frame import receive_frame, send_frame
from syndic.study.party_folder import PartyFolder

_MOST_BYTES = 10**9


def main() -> None:
    """Answer on every socket, in the order of arrival, until all are closed."""
    with ExitStack() as stack, selectors.DefaultSelector() as waiting:
        for each in sys.argv[1:]:
            folder, descriptor = each.rsplit("=", 1)
            home = PartyFolder(folder=Path(folder))
            node = home.node(seed=None)
            stack.callback(node.close)
            stack.enter_context(home.logging(node.name))
            connection = stack.enter_context(socket.socket(fileno=int(descriptor)))
            waiting.register(connection, selectors.EVENT_READ, (node, connection))
        while waiting.get_map():
            for key, _ in waiting.select():
                node, connection = key.data
                data = receive_frame(connection, most=_MOST_BYTES)
                if data is None:
                    waiting.unregister(connection)
                else:
                    send_frame(connection, answer(node, data))


if __name__ == "__main__":
    main()
