"""A party's site: the owner's agreements decide which calls are answered, and one process per study answers them.

The class is named in the site's own configuration, never by a message. The engine's process holds no rows: these
are read by the study's own process, which is started anew if it dies and goes on from its files.
"""

import os
import re
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import final

from syndic.errors import RefusedError
from syndic.federation.party import connection_of, workspace_of
from syndic.kernel import encode
from syndic.kernel.call import INTERNAL_ERROR
from syndic.runtime import Processes
from syndic.runtime.flare.look import NoLookError, look
from syndic.runtime.flare.site import Site
from syndic.study import PartyFolder
from syndic.study.study_folder import StudyFolder

# A step that takes longer is stopped; with the party's memory the next attempt costs nothing more.
_LONGEST_SECONDS = 24 * 3600.0
_IDLE_SECONDS = 120.0
_LOOK_SECONDS = 15.0
_UNHEARD_SECONDS = 10.0
_ATTEMPTS = 3


@final
class PartySite(Site):
    """Answers the studies that the owner of a party folder agreed to."""

    def __init__(self, home: str) -> None:
        """Answer from this party folder."""
        super().__init__()
        self._home = PartyFolder(folder=Path(home).resolve())
        self._audit = self._home.audit
        self._workers: dict[str, _Worker] = {}
        self._guard = threading.Lock()

    def connected(self) -> None:
        """Report that the site runs, and start ending idle processes."""
        threading.Thread(target=self._stop_idle, name="syndic idle", daemon=True).start()
        print("connected; answers the studies that were agreed to. Stop with Ctrl-C", flush=True)

    def lost(self) -> None:
        """Register again by restarting this process; its state is in files."""
        print("the server does not answer; connecting anew", flush=True)
        os.execv(sys.executable, [sys.executable, "-P", "-m", "syndic", "join", str(self._home.folder)])  # noqa: S606

    def unheard(self) -> None:
        """Report if another process takes the connection, such as one with a copy of the folder."""
        approval = connection_of(self._home.folder)
        startup = workspace_of(self._home.folder) / "startup"
        with suppress(NoLookError):
            if look(approval.host, approval.port, startup, seconds=_UNHEARD_SECONDS).twice:
                told = f"another process is connected as {approval.party}, with a copy of this folder: stop one"
                print(told, flush=True)

    def most(self, study: str) -> int:
        """Return the largest message of the study in bytes; refuse a study that the owner has not agreed to."""
        if not re.fullmatch("[0-9a-f]{64}", study):
            raise RefusedError("the call names no study")
        name = self._home.owner().name
        stored = StudyFolder.of(self._home.folder, study)
        agreement = stored.agreement(name)
        # the folder's name is only the beginning of a digest: other digests must not start a process
        if agreement is None or agreement.run != study:
            why = f"{name} has not agreed to study {study[:12]}: its owner runs syndic agree"
            self._audit.refuse("call", who="coordinator", study=study, why=why)
            raise RefusedError(why)
        return stored.study().limits.message_mb * 10**6

    def answer(self, study: str, data: bytes) -> bytes:
        """Return the answer of the study's own process; calls of one study wait for each other."""
        with self._guard:
            worker = self._workers.setdefault(study, _Worker(study, self._home, self.most(study)))
        return worker.answer(data)

    def _stop_idle(self) -> None:
        while True:
            time.sleep(_LOOK_SECONDS)
            with self._guard:
                idle = [self._workers.pop(study) for study, worker in list(self._workers.items()) if worker.idle()]
            for worker in idle:
                worker.stop()


class _Worker:
    """The process that answers one study."""

    def __init__(self, study: str, home: PartyFolder, most: int) -> None:
        self._study = study
        self._runtime = Processes({study: home.command(study=study)}, most=most)
        self._lock = threading.Lock()
        self._used = time.monotonic()

    def idle(self) -> bool:
        """Return whether no call came for a while."""
        return not self._lock.locked() and time.monotonic() - self._used > _IDLE_SECONDS

    def answer(self, data: bytes) -> bytes:
        """Return the process's reply; restart a process that died, which continues from its files."""
        with self._lock:
            for _attempt in range(_ATTEMPTS):
                delivery = self._runtime.send({self._study: data}, seconds=_LONGEST_SECONDS, arrived=lambda _done: None)
                self._used = time.monotonic()
                if self._study in delivery.replies:
                    return delivery.replies[self._study]
        return encode(INTERNAL_ERROR)

    def stop(self) -> None:
        """Close the connection, so that the process closes its files and ends."""
        self._runtime.close()
