"""A party's node with rows in memory, for notebooks, audits and tests."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

from syndic.data import Table, open_source
from syndic.errors import InputError
from syndic.kernel.memory import Memory, choice_key
from syndic.kernel.method import Method
from syndic.kernel.node import Node
from syndic.kernel.party import PartyState
from syndic.kernel.plan import Plan
from syndic.kernel.terms import public_rows, table_of
from syndic.privacy import Budget, Event, Ledger
from syndic.random import Randomness

_GENEROUS: Final = Budget(epsilon=Fraction(10**6), delta=Fraction(1, 2))


def in_memory_node(  # noqa: PLR0913  # most by name
    method: Method,
    plan: Plan,
    name: str,
    rows: Any,
    randomness: Callable[[str], Randomness],
    *,
    study: str,
    dataset: str | None = None,
    ledger: Ledger | None = None,
    memory: Memory | None = None,
    charges: tuple[Event, ...] | None = None,
) -> Node:
    """Return the node of the party called `name` in the study whose calls carry the digest `study`.

    `rows` is a table, anything that `open_source` accepts, or None if no step reads rows. `ledger` must have `dataset`
    declared; by default it is in memory with a very large cap. `memory` stores answers, by default in the ledger's
    file. `charges` is all that the study may charge to the data set, if that is more than this party's own events.
    """
    dataset = dataset or name
    if ledger is None:
        ledger = Ledger.open(":memory:")
        ledger.declare(dataset, _GENEROUS)
    memory = memory or Memory(ledger.database, study)
    state = PartyState(
        name=name,
        plan=plan,
        study=study,
        dataset=dataset,
        ledger=ledger,
        memory=memory,
        open_table=_opened(plan, name, rows, lambda: choice_key(plan.terms.unit, memory, randomness)),
        randomness=randomness,
        charges=charges,
    )
    return Node(method=method, state=state)


def _opened(plan: Plan, name: str, rows: Any, key: Callable[[], bytes]) -> Callable[[], Table]:
    def no_rows() -> Table:
        raise InputError(f"party '{name}' has no rows")

    if rows is None:
        return no_rows
    if isinstance(rows, Table):
        table = replace(rows, size=public_rows(plan.terms, name))
    else:
        table = table_of(plan.terms, name, open_source(rows), key=key())
    return lambda: table
