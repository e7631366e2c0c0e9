"""A party's process: `python -m syndic.study.serve --home FOLDER --socket DESCRIPTOR`."""

import argparse
import socket
from pathlib import Path

from syndic.runtime import serve
from syndic.study.party_folder import PartyFolder


def main() -> None:
    """Answer calls on an inherited socket until it closes."""
    parser = argparse.ArgumentParser(prog="syndic.study.serve")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--socket", type=int, required=True)
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    home = PartyFolder(folder=options.home)
    node = home.node(seed=options.seed)
    with home.logging(node.name), socket.socket(fileno=options.socket) as connection:
        serve(node, connection)
    node.close()


if __name__ == "__main__":
    main()
