"""The table of a mutation run, and which survivors nobody has explained yet.

Survivors are explained by function and kind of change, in numbers: lines may be renamed and formatted anew.
"""

import ast
import json
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mutation.mutants import Mutant, functions_of

# a function, as file::name, and a kind of change
Kind = tuple[str, str]
_NOTICED = ("killed", "time", "crashed")


def latest(state: Path) -> dict[str, dict[str, Any]]:
    """Return the last result of every mutant, by its name."""
    path = state / "results.jsonl"
    found = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        result = json.loads(line)
        found[_mutant(result).name] = result
    return found


def current(state: Path) -> list[dict[str, Any]]:
    """Return the results of the files as they were when they were last tried."""
    results = list(latest(state).values())
    newest = {result["path"]: result["digest"] for result in results}
    return [result for result in results if result["digest"] == newest[result["path"]]]


def report(state: Path, explanations: Path, sources: Path) -> int:
    """Print the table and what is not explained.

    That is: survivors, where a function has more of a kind than the lists say, and functions in the lists that the
    sources do not have. 1 if there are any, or if mutants have no result yet.
    """
    explained = _explained(explanations)
    rows: dict[str, Counter[str]] = {}
    survivors: dict[Kind, list[dict[str, Any]]] = {}
    for result in current(state):
        row = rows.setdefault(result["path"].split("/")[0], Counter())
        row["mutants"] += 1
        if result["outcome"] in _NOTICED:
            row["killed"] += 1
        elif result["outcome"] == "survived":
            row["survived"] += 1
            survivors.setdefault((_mutant(result).where, result["operator"]), []).append(result)
        else:
            row["open"] += 1
    for kind, found in survivors.items():
        rows[found[0]["path"].split("/")[0]]["explained"] += min(len(found), sum(explained.get(kind, {}).values()))
    _print(rows, explained)
    gone = sorted({where for where, _ in explained} - _functions(sources))
    more = {kind: found for kind, found in survivors.items() if len(found) > sum(explained.get(kind, {}).values())}
    for where in gone:
        print(f"gone: {where} is in the lists and not in the sources: rename it there, or take it out")
    for kind, found in sorted(more.items()):
        _print_more(kind, found, sum(explained.get(kind, {}).values()))
    return 1 if gone or more or any(row["open"] for row in rows.values()) else 0


def _print(rows: dict[str, Counter[str]], explained: Mapping[Kind, Counter[str]]) -> None:
    names = ("mutants", "killed", "survived", "explained", "open")
    print("| package | " + " | ".join(names) + " |")
    for package, row in rows.items():
        print(f"| `{package}` | " + " | ".join(f"{row[name]:,}" for name in names) + " |")
    for reason, count in sum(explained.values(), Counter[str]()).most_common():
        print(f"{count:5d} at most  {reason}")


def _print_more(kind: Kind, found: list[dict[str, Any]], most: int) -> None:
    print(f"unexplained: {kind[0]}: {len(found)} of the kind {kind[1]} survived, {most} are explained")
    for result in sorted(found, key=lambda result: int(result["line"])):
        print(f"    {_mutant(result).title}   {result['by']}")


def _explained(folder: Path) -> dict[Kind, Counter[str]]:
    """Return how many survivors of a kind a function may have, by reason."""
    reasons = tomllib.loads((folder / "reasons.toml").read_text())
    found: dict[Kind, Counter[str]] = {}
    for path in sorted(set(folder.glob("*.toml")) - {folder / "reasons.toml"}):
        for where, by_reason in tomllib.loads(path.read_text()).items():
            unknown = by_reason.keys() - reasons.keys()
            if unknown:
                raise ValueError(f"{path.name}: no reason in reasons.toml is called {sorted(unknown)}")
            for reason, counts in by_reason.items():
                for operator, count in counts.items():
                    found.setdefault((where, operator), Counter())[reason] += count
    return found


def _functions(sources: Path) -> set[str]:
    """Return every function and class of the sources, as the lists name it."""
    return {
        f"{path.relative_to(sources)}::{name}"
        for path in sources.rglob("*.py")
        for name in functions_of(ast.parse(path.read_text())).values()
    }


def _mutant(result: dict[str, Any]) -> Mutant:
    return Mutant(**{name: result[name] for name in Mutant.__dataclass_fields__})
