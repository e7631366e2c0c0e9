"""Other libraries on the same rows at the same epsilon and delta: error and CPU time, theirs as the baseline of a row.

Their pins clash with ours and with each other's, so each has an interpreter of its own: `make peers` makes them in the
folder that `SYNDIC_PEERS` names. A library that is not there is left out. All noise here comes from seeds or from those
libraries' generators, on made-up or public rows.
"""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from syndic.errors import InputError
from syndic_lab.bench.row import Row
from syndic_lab.peers import evolution_rows
from syndic_lab.peers import federated as peers_federated
from syndic_lab.peers import regression as peers_regression
from syndic_lab.peers import synthesis as peers_synthesis
from syndic_lab.peers.ask import there

LIBRARIES: Final[dict[str, Callable[[bool], Iterator[Row]]]] = {
    "diffprivlib": peers_regression.rows,
    "mbi": partial(peers_synthesis.rows, "mbi"),
    "dpmm": partial(peers_synthesis.rows, "dpmm"),
    "flower": peers_federated.rows,
}

WRITTEN_HERE: Final[dict[str, Callable[[bool], Iterator[Row]]]] = {
    "aim": peers_synthesis.over_our_inference,
    "evolution": evolution_rows.rows,
}


def rows(quick: bool) -> Iterator[Row]:
    """Yield rows for methods written here and every library that `SYNDIC_PEERS` has, theirs as the baseline."""
    for name, measure in {**WRITTEN_HERE, **LIBRARIES}.items():
        if name not in LIBRARIES or there(name):
            try:
                yield from measure(quick)
            except InputError as error:
                # no rows of Adult here, or the library fails on this machine: the others still count
                sys.stderr.write(f"{name} is left out from here on: {error}\n")
