"""Run the coordinator's side of a study over any runtime; with a folder, a killed run can be continued."""

from contextlib import ExitStack, closing
from pathlib import Path

from syndic.errors import InputError
from syndic.kernel import Journal, Progress, Runtime, Session, identified, run, silent_progress
from syndic.random import SecretRandomness
from syndic.study.document import Study, coordinator_of
from syndic.study.identity import Identity
from syndic.study.machine import check_machine
from syndic.study.party_folder import randomness_of, run_digest
from syndic.study.release import Release
from syndic.study.statement import state
from syndic.study.verify import check_open, recorder
from syndic.version import __version__


def run_study(  # noqa: PLR0913  # most by name
    study: Study,
    runtime: Runtime,
    *,
    seed: int | None = None,
    folder: str | Path | None = None,
    progress: Progress = silent_progress,
    seconds: float = 600.0,
    signatures: bool = True,
    identity: Identity | None = None,
    replies: str | Path | None = None,
    checked: bool = False,
) -> Release:
    """Run the study's method with the parties behind `runtime`, and return the release.

    Args:
        study: the agreed document.
        runtime: carries messages to the parties; it stays open.
        seed: seed of the coordinator's draws. The parties must have the same one.
        folder: the coordinator's private folder. It holds the secret that its draws come from, and a journal of the
            replies, about as large as all replies. A run with the same folder continues where it was interrupted;
            completed requests are not sent again, and a run that ended returns the same release without contacting
            any party.
        progress: called with the step, how much of it is done, and how much there is.
        seconds: how long a step may take before a party counts as silent.
        signatures: whether parties sign their answers, if the study gives their identities. In a simulation they have
            no keys to sign with.
        identity: the coordinator's private keys, which sign its calls, if the study names a coordinator.
        replies: file for all signed calls and replies, from which every party can recompute the release
            (`syndic.study.verify`); not for methods with sealed messages.
        checked: whether `check_runnable` was called already, before the runtime was opened.

    Raises:
        InputError: if the study is not usable, replies may not be written, or the folder's journal has another version.
            Nothing was spent.
        PartyError: if a party refused, failed or stayed silent.
    """
    if not checked:
        check_runnable(study, seed)
    if signatures and identified(study) and (identity is None or identity.public != coordinator_of(study)):
        raise InputError(f"{study.name}: parties answer only the coordinator that the study names, with its keys")
    if replies is not None:
        check_open(study)
    digest = run_digest(study, seed)
    with ExitStack() as stack:
        record = None if replies is None else recorder(stack.enter_context(Path(replies).open("wb")))
        journal = None
        if folder is not None:
            # each edition has a digest, and so a journal, of its own
            journal = Journal.open(Path(folder) / f"{digest[:16]}.sqlite", study=digest, version=__version__)
            stack.enter_context(closing(journal))
        draws = randomness_of(study, seed, "coordinator")("draws")
        if seed is None and journal is not None:
            draws = SecretRandomness(journal.secret, digest, "coordinator", "draws")
        session = Session(
            runtime=runtime,
            study=digest,
            method=study.protocol,
            plan=study.plan,
            randomness=draws,
            progress=progress,
            seconds=seconds,
            journal=journal,
            signatures=signatures and identified(study),
            sign=None if identity is None else identity.sign,
            record=record,
        )
        result = run(study.protocol, session)
        session.end()
    statement = state(study, simulated=seed is not None, version=__version__)
    return Release(study=study, result=result, statement=statement, transcript=tuple(session.transcript))


def check_runnable(study: Study, seed: int | None) -> None:
    """Raise `InputError` if study or machine cannot run, or an as-published variant has no seed. Reads no row."""
    study.check()
    check_machine(study.plan.resources.likely_bytes)
    if study.protocol.simulation_only and seed is None:
        raise InputError(f"{study.protocol.title} as published runs in simulation only: give a seed")
