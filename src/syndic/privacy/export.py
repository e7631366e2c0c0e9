"""The entries of a ledger as a file for people and spreadsheets."""

import csv
from collections.abc import Sequence
from pathlib import Path

from syndic.document import to_builtins, to_json
from syndic.errors import InputError
from syndic.privacy.chain import Entry
from syndic.privacy.cost import Cost


def write_entries(path: Path, head: str, entries: Sequence[Entry]) -> None:
    """Write entries and the head to a `.json` file, or the entries to a `.csv` file."""
    if path.suffix not in {".json", ".csv"}:
        raise InputError(f"{path.name}: expected a .json or .csv file")
    if path.suffix == ".json":
        path.write_bytes(to_json({"head": head, "entries": entries}))
        return
    columns = [name for name in Entry.__struct_fields__ if name != "cost"]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*columns, *Cost.__struct_fields__], extrasaction="ignore")
        writer.writeheader()
        for entry in entries:
            row = to_builtins(entry)
            texts = {name: to_json(row[name]).decode() for name in ("events", "cap", "stated")}
            safe = {name: _as_text(value) for name, value in row.items() if isinstance(value, str)}
            writer.writerow({**row, **safe, **row["cost"], **texts})


def _as_text(value: str) -> str:
    """Return a text that a spreadsheet does not run: the coordinator chooses call ids, and one may be a formula."""
    return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
