"""Studies with columns at several parties, and what opens of them, worked out from the study's words."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from support import study_text
from syndic import Study

LEVELS = {"a": 3, "b": 2, "c": 2, "d": 2}
COLUMNS = "".join(
    f'[[schema.columns]]\nname = "{name}"\nkind = "integer"\nlower = 0\nupper = {size - 1}\nmissing = {{ value = 0 }}\n'
    for name, size in LEVELS.items()
)
PEOPLE = {"x": 50, "y": 30}
Names = tuple[str, ...]
Held = dict[str, tuple[str, str]]
Rule = dict[str, str]
Rows = dict[str, dict[str, Any]]
CUTS: dict[str, tuple[Held, Rule]] = {
    "agreed": ({"p": ("x", "abc"), "q": ("x", "abd")}, {"a": "q"}),
    "two holders": ({"p": ("x", "ab"), "q": ("x", "acd")}, {"a": "pq"}),
    "three holders": ({"p": ("x", "ab"), "q": ("x", "acd"), "r": ("x", "a")}, {"a": "rqp"}),
    "read together": ({"p": ("x", "abc"), "q": ("x", "abd")}, {"a": "pq", "b": "pq"}),
    "nothing across": ({"p": ("x", "abcd"), "q": ("x", "abcd")}, dict.fromkeys("abcd", "pq")),
    "two sets": ({"p": ("x", "abc"), "q": ("x", "ad"), "r": ("x", "b")}, {"a": "pq", "b": "pr"}),
    "both orders": ({"p": ("x", "abc"), "q": ("x", "abd"), "r": ("x", "b")}, {"a": "pq", "b": "pqr"}),
    "two by two": (
        {"p": ("x", "abc"), "q": ("x", "ad"), "r": ("y", "abd"), "s": ("y", "ac"), "t": ("y", "a")},
        {"a": "pqrst"},
    ),
    "one of two groups": ({"p": ("x", "abc"), "q": ("x", "abd"), "r": ("y", "abcd")}, {"a": "pq", "b": "q"}),
}
PARTS = dict(zip(CUTS, (1, 2, 3, 2, 2, 4, 6, 6, 2), strict=True))


DESCRIBE = 'method = "describe"\ngroup = "b"\nstratum = "party"\ncolumns = ["a", "c"]'
SYNTHESIS = 'method = "synthesis"\nmodel_cells = 256'


def study(
    held: Held, rule: Rule, protocol: str = 'method = "marginals"', columns: str = COLUMNS, **parts: Any
) -> Study:
    parties = "".join(
        f'[[parties]]\nname = "{name}"\npeople = {parts.get("people") or PEOPLE[group]}\ngroup = "{group}"\n'
        f"columns = {list(own)}\n"
        for name, (group, own) in held.items()
    )
    text = study_text(
        protocol=protocol,
        unit=parts.get("unit", 'neighbours = "replace"'),
        budget=parts.get("budget", "epsilon = 1.0\ndelta = 1e-6"),
        parties=parties,
        columns=columns,
        top="read_from = { " + ", ".join(f"{name} = {list(own)}" for name, own in rule.items()) + " }",
    )
    return Study.loads(text if rule else text.replace("read_from = {  }", ""))


def rows(held: Held, seed: int = 3) -> Rows:
    """Return each party's own values: those of one column differ between parties."""
    rng = np.random.default_rng(seed)
    return {
        name: {column: rng.integers(0, LEVELS[column], PEOPLE[group]) for column in own}
        for name, (group, own) in held.items()
    }


def sources(found: Rows) -> dict[str, pa.Table]:
    return {name: pa.table(own) for name, own in found.items()}


def choices(held: Held, rule: Rule, group: str) -> list[dict[str, str]]:
    """Return from whom every column is read, for each equal part of a person."""
    read: dict[str, frozenset[str]] = {}
    for column in "abcd":
        own = [name for name, (where, columns) in held.items() if where == group and column in columns]
        if own:
            read[column] = frozenset(name for name in own if name in rule.get(column, "")) or frozenset(own[:1])
    sets = list(dict.fromkeys(read.values()))
    every = [dict(zip(sets, one, strict=True)) for one in product(*(sorted(one) for one in sets))]
    return [{column: one[parties] for column, parties in read.items()} for one in every]


def counted(held: Held, rule: Rule, names: Names) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Yield the groups that can count a table, and their choices."""
    for group in dict.fromkeys(group for group, _ in held.values()):
        found = choices(held, rule, group)
        if all(set(names) <= set(one) and len({one[name] for name in names}) <= 2 for one in found):
            yield group, found


def exact(held: Held, rule: Rule, found: Rows, names: Names, recoded: dict[str, Any] | None = None) -> Any:
    """Return the table of some columns: over groups, the mean over choices of the counts of their people."""
    recoded = recoded or {name: np.arange(LEVELS[name]) for name in names}
    total = np.zeros([int(max(recoded[name])) + 1 for name in names])
    for _, every in counted(held, rule, names):
        for one in every:
            cells = tuple(np.asarray(recoded[name])[found[one[name]][name]] for name in names)
            np.add.at(total, cells, 1 / len(every))
    return total
