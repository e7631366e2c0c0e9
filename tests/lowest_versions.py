"""Print the lowest version of every library that the core and the table extras allow, one pip requirement a line.

`make test-lowest` installs these and runs the unit tests of the core, so that a lower bound in pyproject.toml is a
version that was tried.
"""

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def lowest(dependencies: Iterable[str]) -> list[str]:
    """Return `name==version` for requirements of the form `name>=version,...`."""
    pinned = []
    for dependency in dependencies:
        found = re.fullmatch(r"([\w-]+)>=([\d.]+)(,.*)?", dependency)
        if found is None:
            raise ValueError(f"dependency ({dependency}) must start with name>=version: the lowest one is tested")
        pinned.append(f"{found[1]}=={found[2]}")
    return pinned


if __name__ == "__main__":
    project = tomllib.loads(PROJECT.read_text())["project"]
    extras = [project["optional-dependencies"][name] for name in ("pandas", "polars", "duckdb", "postgres")]
    print("\n".join(lowest([*project["dependencies"], *(each for extra in extras for each in extra)])))
