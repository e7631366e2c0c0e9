"""Record what every contract case releases, charges and states, and compare two records.

Before a change of structure: `PYTHONPATH=tests python -m recorded write before.json`; after it `... compare FILE`.
A digest of a study is replaced by the name of its case, so that renamed parameters change nothing that is recorded.
"""

import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from support import CASES, Case, ledger_entries
from syndic.document import to_builtins
from syndic.study import Study, simulate

SEED = 7


def record(case: Case) -> dict[str, Any]:
    """Return a run of the case as plain values; files and replies by their digests."""
    name = hashlib.sha256(case.name.encode()).hexdigest()
    Study.digest = property(lambda _study: name)  # type: ignore[method-assign,assignment]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        release = simulate(case.study, case.sources, seed=SEED, folder=folder)
        files = {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in release.result.write(folder)
            if path.exists()
        }
        statement = to_builtins(release.statement)
        return {
            "files": files,
            "summary": {key: str(value) for key, value in release.result.summary().items()},
            "cost": {key: statement[key] for key in ("epsilon", "delta", "curve", "parties", "protects", "accountant")},
            "words": {key: statement[key] for key in ("sees", "sensitivity", "not_protected", "departures")},
            "transcript": [to_builtins(each) for each in release.transcript],
            "ledgers": {
                party: [
                    [entry.kind, entry.dataset, entry.call, entry.door, to_builtins(entry.events), str(entry.cost)]
                    for entry in ledger_entries(folder, party)
                ]
                for party in case.sources
            },
        }


def differences(before: Any, after: Any, where: str = "") -> list[str]:
    """Return where two records differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [
            line
            for key in [*before, *(key for key in after if key not in before)]
            for line in differences(before.get(key), after.get(key), f"{where}/{key}")
        ]
    return [] if before == after else [f"{where}: {str(before)[:300]} -> {str(after)[:300]}"]


def main() -> int:
    """Write a record, or compare one with what the code does now; `NAME` limits the cases by their beginning."""
    verb, path, *names = sys.argv[1:]
    cases = [case for case in CASES if not names or any(case.name.startswith(name) for name in names)]
    found = {}
    for case in cases:
        found[case.name] = json.loads(json.dumps(record(case), default=str))
        print(f"{case.name}", file=sys.stderr, flush=True)
    if verb == "write":
        Path(path).write_text(json.dumps(found, indent=1))
        return 0
    known = json.loads(Path(path).read_text())
    lines = differences({case.name: known.get(case.name) for case in cases}, found)
    print("\n".join(lines) or f"{len(cases)} cases: the same")
    return len(lines)


if __name__ == "__main__":
    sys.exit(main())
