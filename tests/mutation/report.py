"""The table of a mutation run, and which survivors nobody has explained yet."""

import json
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from mutation.mutants import Mutant

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


def report(state: Path, explanations: Path) -> int:
    """Print the table and the unexplained survivors; 1 if there are any, or if mutants have no result yet."""
    results = current(state)
    groups = _groups(explanations)
    rows: dict[str, Counter[str]] = {}
    unexplained, by_group, used = [], Counter[str](), set[str]()
    for result in results:
        row = rows.setdefault(result["path"].split("/")[0], Counter())
        row["mutants"] += 1
        if result["outcome"] in _NOTICED:
            row["killed"] += 1
        elif result["outcome"] == "survived":
            row["survived"] += 1
            title = _mutant(result).title
            entry = next((entry for entry in groups if title.startswith(entry)), None)
            if entry is None:
                unexplained.append(f"{title}   (line {result['line']}, {result['operator']}) {result['by']}")
            else:
                row["explained"] += 1
                by_group[groups[entry]] += 1
                used.add(entry)
        else:
            row["open"] += 1
    _print(rows, by_group)
    for line in sorted(unexplained):
        print(f"unexplained: {line}")
    for entry in sorted(groups.keys() - used):
        print(f"explained, but no survivor: {entry}")
    return 1 if unexplained or any(row["open"] for row in rows.values()) else 0


def _print(rows: dict[str, Counter[str]], by_group: Counter[str]) -> None:
    names = ("mutants", "killed", "survived", "explained", "open")
    print("| package | " + " | ".join(names) + " |")
    for package, row in rows.items():
        print(f"| `{package}` | " + " | ".join(f"{row[name]:,}" for name in names) + " |")
    for group, count in by_group.most_common():
        print(f"{count:5d}  {group}")


def _groups(folder: Path) -> dict[str, str]:
    """Return the reason of each explained mutant, or of the lines whose every mutant it explains."""
    reasons = tomllib.loads((folder / "reasons.toml").read_text())
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*.toml")):
        lists = {} if path.name == "reasons.toml" else tomllib.loads(path.read_text())
        unknown = lists.keys() - reasons.keys()
        if unknown:
            raise ValueError(f"{path.name}: no reason in reasons.toml is called {sorted(unknown)}")
        found |= {entry: name for name, entries in lists.items() for entry in entries}
    return found


def _mutant(result: dict[str, Any]) -> Mutant:
    return Mutant(**{name: result[name] for name in Mutant.__dataclass_fields__})
