"""All items, paper by paper."""

from collections.abc import Sequence
from typing import Final

from syndic.errors import InputError
from syndic_lab.reproduce import estimation, homm, learning, regression, vertical
from syndic_lab.reproduce.item import Item, Paper

CATALOGUE: Final[tuple[Item, ...]] = (
    *homm.ITEMS,
    *regression.ITEMS,
    *learning.ITEMS,
    *vertical.ITEMS,
    *estimation.ITEMS,
)
PAPERS: Final[tuple[Paper, ...]] = tuple(dict.fromkeys(item.paper for item in CATALOGUE))
# bench modules whose "published" is in no paper, with what it is
NOT_PUBLISHED: Final = {
    "secure.product": "a prototype of our own, and the error of a sketch measured before this bench existed",
}


def chosen(names: Sequence[str]) -> tuple[Item, ...]:
    """Return the items whose names begin with one of these, all if there are none."""
    for name in names:
        if not any(item.name.startswith(name) for item in CATALOGUE):
            known = ", ".join(dict.fromkeys(item.name.split("-")[0] for item in CATALOGUE))
            raise InputError(
                f"--only {name}: no table or figure has a name that begins with it; names begin with {known}"
            )
    return tuple(item for item in CATALOGUE if not names or item.name.startswith(tuple(names)))
