"""Combinations of values that no row can have, declared in a study."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from syndic.data import Domain, Schema
from syndic.document import Document
from syndic.errors import InputError
from syndic.model.markov import Impossible, MarkovField, plan_tree

# More combinations of some columns than any model has cells for are not written out to be refused later.
MOST_COMBINATIONS: Final = 1 << 26


class Zeros(Document):
    """Combinations of values that no row can have, by the columns' labels: public knowledge, never read off rows."""

    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        if not self.columns or len(set(self.columns)) != len(self.columns) or not self.cells:
            raise ValueError("zeros: columns must be different, at least one, and cells at least one")
        if any(len(cell) != len(self.columns) for cell in self.cells):
            raise ValueError(f"zeros of {list(self.columns)}: every cell must give a value for each column")

    def mask(self, schema: Schema) -> Impossible:
        """Return the cells by code."""
        domain = schema.domain.project(self.columns)
        if domain.size > MOST_COMBINATIONS:
            raise InputError(
                f"zeros of {list(self.columns)}: these columns have {domain.size:,} combinations, and a model holds "
                f"them all: name fewer columns, or set fewer bins (at most {MOST_COMBINATIONS:,})"
            )
        labels = [{text: code for code, text in enumerate(schema[name].labels())} for name in self.columns]
        cells = np.zeros(domain.sizes, dtype=np.bool_)
        for cell in self.cells:
            for name, known, text in zip(self.columns, labels, cell, strict=True):
                if text not in known:
                    shown = ", ".join(list(known)[:8]) + (", ..." if len(known) > 8 else "")
                    raise InputError(f"zeros: '{name}' has no value '{text}'; its labels are {shown}")
            cells[tuple(known[text] for known, text in zip(labels, cell, strict=True))] = True
        return Impossible(self.columns, cells)


def check_possible(domain: Domain, zeros: Sequence[Impossible]) -> None:
    """Raise `InputError` unless some row is left possible: otherwise no model fits, which a run would find out late."""
    named = {name for zero in zeros for name in zero.names}
    if not named:
        return
    concerned = domain.project(name for name in domain.names if name in named)
    tree = plan_tree(concerned, [zero.names for zero in zeros])
    try:
        _ = MarkovField(concerned, tree, (), 1.0, tuple(zeros)).beliefs
    except InputError:
        raise InputError("zeros: no combination of values is left that a row could have: declare fewer") from None
