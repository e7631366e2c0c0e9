"""Asking a library in an interpreter of its own, and saying so where there is none."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic_lab.bench.row import Row

# of what a library wrote before it failed
_TAIL: Final = 2000
# seconds; an engine whose workers died waits for them for ever
_LONGEST: Final = 7200


@final
@dataclass(frozen=True, eq=False)
class Answer:
    """What a library's script printed, and the table it left, if any."""

    figures: Mapping[str, Any]
    made: NDArray[np.int64] | None


def interpreter(name: str) -> Path | None:
    """Return the interpreter that has a library, or None."""
    folder = os.environ.get("SYNDIC_PEERS")
    # not resolved: a link would lead out of the environment
    path = Path(folder or ".").absolute() / name / "bin" / "python"
    return path if folder and path.exists() else None


def script_of(name: str) -> Path:
    """Return the script that asks a library."""
    return Path(__file__).with_name(f"script_{name}.py")


def there(name: str) -> bool:
    """Return whether a library is there; say a sentence if it is not."""
    if interpreter(name) is not None:
        return True
    sys.stderr.write(f"{name} is left out: make peers installs it, and SYNDIC_PEERS names the folder\n")
    return False


def ask(name: str, settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Answer:
    """Run the script of a library in a folder of its own; return what it prints last and its `made.npy`."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        np.savez(folder / "rows.npz", **arrays)  # type: ignore[arg-type]
        (folder / "settings.json").write_text(json.dumps(settings))
        command = [str(interpreter(name)), "-W", "ignore", str(script_of(name)), str(folder)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LONGEST)
        except subprocess.TimeoutExpired:
            raise InputError(f"{script_of(name).name} did not end within {_LONGEST / 3600:g} hours") from None
        if done.returncode:
            raise InputError(f"{script_of(name).name} ended with status {done.returncode}: {done.stderr[-_TAIL:]}")
        made = folder / "made.npy"
        return Answer(
            figures=json.loads(done.stdout.splitlines()[-1]),
            made=np.load(made).astype(np.int64) if made.exists() else None,
        )


def row(what: str, metric: str, value: float, unit: str, baseline: float | None = None) -> Row:
    """Return one figure, ours, beside theirs."""
    return Row(bench="peers", row=what, metric=metric, value=value, unit=unit, baseline=baseline)
