"""A party's process: `python -m syndic.study.serve --home FOLDER --socket DESCRIPTOR`.

It answers the study of a simulation's party folder, or with `--study DIGEST` one that the owner agreed to.
"""

import argparse
import socket
from pathlib import Path

from syndic.errors import RefusedError
from syndic.kernel import Reply, encode
from syndic.runtime import serve
from syndic.runtime.frame import receive_frame, send_frame
from syndic.study.party_folder import PartyFolder

_MOST = 10**10


def main() -> None:
    """Answer calls on an inherited socket until it closes."""
    parser = argparse.ArgumentParser(prog="syndic.study.serve")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--socket", type=int, required=True)
    parser.add_argument("--study")
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    home = PartyFolder(folder=options.home)
    with socket.socket(fileno=options.socket) as connection:
        try:
            node = home.node(seed=options.seed) if options.study is None else home.agreed_node(options.study)
        except RefusedError as error:
            if options.study is None:
                raise
            # refuse once, then end: the owner may have agreed before the next call. Other errors end the process at
            # once: they name the owner's files and belong on the owner's terminal
            data = receive_frame(connection, most=_MOST)
            if data is not None:
                home.log_refusal(options.study, data, error.code, str(error))
                send_frame(connection, encode(Reply(code=error.code, text=str(error))))
            return
        with home.logging(node.name):
            serve(node, connection)
        node.close()


if __name__ == "__main__":
    main()
