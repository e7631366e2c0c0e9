"""Read what `coverage json` wrote, print the share of branches per package, and fail below the least."""

import json
import sys
from collections import Counter
from pathlib import Path

LEAST_PERCENT = 95.0
PACKAGES = ("privacy", "noise", "kernel", "mpc")


def main(path: Path) -> int:
    """Print a line for each package and for each file with branches that no test takes."""
    files = json.loads(path.read_text())["files"]
    enough = True
    for package in PACKAGES:
        totals: Counter[str] = Counter()
        missed = []
        for name, found in sorted(files.items()):
            if f"/syndic/{package}/" in name:
                totals.update({key: found["summary"][key] for key in ("num_branches", "covered_branches")})
                totals.update({key: found["summary"][key] for key in ("num_statements", "covered_lines")})
                missed += [f"  {name}: {start} -> {end}" for start, end in found["missing_branches"]]
        # a package that was not measured has no branches, and must not pass
        percent = 100 * totals["covered_branches"] / max(1, totals["num_branches"])
        lines = 100 * totals["covered_lines"] / max(1, totals["num_statements"])
        print(f"{package}: {percent:.1f} % of {totals['num_branches']} branches, {lines:.1f} % of lines")
        print(*missed, sep="\n", end="\n" if missed else "")
        enough = enough and percent >= LEAST_PERCENT
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
