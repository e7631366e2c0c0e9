"""A party that is killed in the middle of a step; loads no more than a party does, as many are started."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from syndic.privacy import Ledger
from syndic.study import serve


def be_a_party(options: list[str]) -> None:
    """Serve; the first time that north is charged, it is killed before it draws any noise."""
    home = Path(options[0].removeprefix("--home="))
    reserve = Ledger.reserve

    def reserve_and_die(ledger: Ledger, **what: Any) -> Any:
        reservation = reserve(ledger, **what)
        if home.name == "north" and not (home / "killed").exists():
            (home / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return reservation

    Ledger.reserve = reserve_and_die  # type: ignore[method-assign,assignment]
    sys.argv = ["serve", *options]
    serve.main()


if __name__ == "__main__":
    be_a_party(sys.argv[1:])
