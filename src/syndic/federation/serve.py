"""The process of one study at a site: `python -m syndic.federation.serve --home FOLDER --study DIGEST --socket N`."""

import argparse
import socket
from pathlib import Path

from syndic.errors import RefusedError
from syndic.kernel import Reply, encode
from syndic.runtime import serve
from syndic.runtime.frame import receive_frame, send_frame
from syndic.study import PartyFolder

_MOST = 10**10


def main() -> None:
    """Answer calls on an inherited socket until it closes, if the owner agreed to the study."""
    parser = argparse.ArgumentParser(prog="syndic.federation.serve")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--study", required=True)
    parser.add_argument("--socket", type=int, required=True)
    options = parser.parse_args()
    home = PartyFolder(folder=options.home)
    with socket.socket(fileno=options.socket) as connection:
        try:
            node = home.agreed_node(options.study)
        except RefusedError as error:
            # one refusal, then the process ends: the owner may have agreed before the next call. Other errors end the
            # process: they name files of the owner, whose terminal shows them
            data = receive_frame(connection, most=_MOST)
            if data is not None:
                home.log_refusal(options.study, data, error.code)
                send_frame(connection, encode(Reply(code=error.code, text=str(error))))
            return
        with home.logging(node.name):
            serve(node, connection)
        node.close()


if __name__ == "__main__":
    main()
