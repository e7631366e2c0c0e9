"""Publish one synthetic table of three clinics: print the plan, run the study, read the release and a ledger.

Run `python examples/three_clinics.py` in any folder. It uses the demo's files and writes `three-clinics/`.
"""

from importlib.resources import as_file, files
from pathlib import Path

import pyarrow.compute as pc

import syndic as sy


def main() -> None:
    """Run the demo's study with the operating system's randomness."""
    with as_file(files("syndic") / "demo") as data:
        study = sy.Study.load(data / "study.toml")
        print(sy.plan(study))
        sources = {party.name: data / f"{party.name}.csv" for party in study.parties}
        release = sy.simulate(study, sources, folder="three-clinics")

    table = release.table.to_arrow()
    smokers = pc.mean(table["smoker"].cast("int8")).as_py()
    print(f"\n{table.num_rows} synthetic rows; {100 * smokers:.1f} % of them smoke")
    release.write("three-clinics")

    with sy.Ledger.open(Path("three-clinics/parties/south/ledger.sqlite")) as ledger:
        spent = ledger.spent("south")
        print(f"south has spent epsilon {spent}")
        ledger.verify()


if __name__ == "__main__":
    main()
