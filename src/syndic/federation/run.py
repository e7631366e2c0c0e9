"""A coordinator's run of a study through its own server."""

import time

from syndic.errors import InputError, PartyError
from syndic.federation.coordinator import Coordinator
from syndic.federation.run_status import Watched
from syndic.kernel import Progress, silent_progress
from syndic.kernel.call import ENVELOPE_BYTES
from syndic.runtime.flare.coordinator import Flare
from syndic.study.document import Study
from syndic.study.party_folder import run_digest
from syndic.study.release import Release
from syndic.study.run import check_runnable, run_study
from syndic.study.study_folder import StudyFolder


def run_federated(
    study: Study,
    coordinator: Coordinator,
    *,
    seed: int | None = None,
    progress: Progress = silent_progress,
    seconds: float = 600.0,
    patience: float = 60.0,
) -> Release:
    """Run the study with the parties that are connected to the coordinator's server, and return the release.

    Args:
        study: the agreed document, with the identity of every party.
        coordinator: the coordinator's folder; a run that was stopped goes on from what it keeps there.
        seed: the rehearsal that the parties agreed to. It protects nobody, and the statement says so.
        progress: told what is being done and how far it is.
        seconds: how long a step may take before a party counts as silent.
        patience: how long a party may be disconnected before it counts as silent.

    Raises:
        InputError: if the study is not usable, or the server does not run. Nothing was spent.
        PartyError: if a party refused, failed or stayed silent.
    """
    check_runnable(study, seed)
    check_list(study, coordinator)
    digest = run_digest(study, seed)
    most = study.limits.message_mb * 10**6 + ENVELOPE_BYTES
    server = Flare(coordinator.socket, study=digest, most=most, patience=patience)
    kept = coordinator.folder / "studies"
    kept.mkdir(exist_ok=True)
    kept.chmod(0o700)
    # its own copy and how far the run is, for whoever looks at the folder meanwhile
    StudyFolder.of(coordinator.folder, digest).put_study(study)
    runtime = Watched(server, folder=coordinator.folder, run=digest, progress=progress)
    try:
        _wait_for(server, study, patience, runtime.progress)
        release = run_study(study, runtime, seed=seed, folder=kept, progress=runtime.progress, seconds=seconds)
    except BaseException as error:
        runtime.end(error)
        raise
    runtime.end(None)
    return release


def check_list(study: Study, coordinator: Coordinator) -> None:
    """Say before anything is asked which party cannot be reached, or is not the one that was admitted."""
    admitted = {one.party: one for one in coordinator.admitted()}
    strangers = [party.name for party in study.parties if party.name not in admitted]
    if strangers:
        raise InputError(f"{', '.join(strangers)}: not on this coordinator's list; approve the request first")
    for party in study.parties:
        if party.identity != admitted[party.name].identity:
            raise InputError(
                f"party '{party.name}': the study does not give the identity that was approved: "
                f'identity = "{admitted[party.name].identity}"'
            )


def _wait_for(runtime: Flare, study: Study, patience: float, progress: Progress) -> None:
    """Give every party's site some time to connect; which absences a study bears is its method's business."""
    names = {party.name for party in study.parties}
    end = time.monotonic() + patience
    while True:
        here = names & set(runtime.connected())
        progress("connected", len(here), len(names))
        if here == names:
            return
        if time.monotonic() > end:
            break
        time.sleep(1.0)
    if not here:
        raise PartyError("no party is connected: each starts its site with `syndic join`, then run again")
