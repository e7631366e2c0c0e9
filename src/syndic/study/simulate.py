"""Run a study with all parties on this machine."""

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import msgspec
import pyarrow as pa

from syndic.data import Source, SourceSpec, open_source
from syndic.data.values import decoded
from syndic.errors import InputError
from syndic.kernel import Node, Progress, Runtime, account_of, member, owner_of, parties_of, schema_of, silent_progress
from syndic.privacy import Budget
from syndic.runtime import Local, Processes
from syndic.study.document import Study
from syndic.study.machine import check_machine, in_process_bytes
from syndic.study.party_folder import PartyFile, PartyFolder, party_file
from syndic.study.party_rows import id_columns_of
from syndic.study.release import Release
from syndic.study.run import check_runnable, run_study

RuntimeName = Literal["local", "processes"]


def simulate(
    study: Study,
    sources: Mapping[str, Any],
    *,
    seed: int | None = None,
    runtime: RuntimeName = "local",
    folder: str | Path | None = None,
    progress: Progress = silent_progress,
    seconds: float = 600.0,
) -> Release:
    """Run a study with all parties on this machine, and return the release.

    Args:
        study: the agreed document.
        sources: for every party a file, a data frame, an Arrow table or a `SourceSpec`; a path ending in
            `party.toml` is read as the party's own file, with its cap. Parties of one owner may have one, by its name.
        seed: seed for a reproducible run. A seeded release is not private, and its statement says so.
        runtime: `local` for one process, or `processes` for one process per party.
        folder: where to keep the folders of the parties, with their ledgers, and of the coordinator; without it they
            are deleted after the run. A run that was interrupted continues from there, and one that ended returns its
            release again.
        progress: called with the step, how much of it is done, and how much there is.
        seconds: how long a step may take before a party counts as silent; ignored by the local runtime.

    Raises:
        InputError: if the study or a source is not usable. Nothing was spent.
        IntegrityError: if the folder had a ledger, and it is missing, damaged or changed.
        PartyError: if a party refused, failed or stayed silent.
    """
    check_runnable(study, seed)
    if runtime == "local":
        check_machine(study.plan.resources.likely_bytes + in_process_bytes(len(study.parties)))
    _check_sources(study, sources)
    with ExitStack() as stack:
        place = Path(folder) if folder is not None else Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sources = {name: sources.get(name, sources.get(owner)) for name, owner in _owners(study).items()}
        homes = {name: PartyFolder(folder=place / "parties" / name) for name in sources}
        for name, owner in _owners(study).items():
            homes[name].check_ledger(place / "parties" / owner / "ledger.sqlite")
            stack.enter_context(homes[name].put_back())
        carrier = _open(study, sources, homes, seed=seed, runtime=runtime, stack=stack)
        stack.callback(carrier.close)
        own = None if folder is None else place / "coordinator"
        return run_study(
            study,
            carrier,
            seed=seed,
            folder=own,
            progress=progress,
            seconds=seconds,
            signatures=False,
            checked=True,
        )


def _check_sources(study: Study, sources: Mapping[str, Any]) -> None:
    owners = _owners(study)
    missing = [name for name, owner in owners.items() if name not in sources and owner not in sources]
    known = {*owners, *owners.values()}
    unknown = [name for name in sources if name not in known]
    if missing or unknown:
        faults = [f"no source for {', '.join(missing)}"] if missing else []
        faults += [f"no party called {', '.join(unknown)}"] if unknown else []
        raise InputError(f"{'; '.join(faults)}; the study's parties are {', '.join(owners)}")


def _owners(study: Study) -> dict[str, str]:
    return {party.name: owner_of(party) for party in study.parties}


def _open(
    study: Study,
    sources: Mapping[str, Any],
    homes: Mapping[str, PartyFolder],
    *,
    seed: int | None,
    runtime: RuntimeName,
    stack: ExitStack,
) -> Runtime:
    """Prepare every party's folder and open the runtime over them."""
    files: dict[str, PartyFile] = {}
    in_memory: dict[str, Any] = {}
    written: Path | None = None
    for name, home in homes.items():
        party, rows = _party_file(study, name, sources[name], home)
        files[name] = party
        home.keep(study, party, same=written)
        written = home.study
        stack.enter_context(home.logging(name))
        if rows is not None and runtime == "processes":
            path = home.folder / "rows.arrow"
            stack.callback(path.unlink, missing_ok=True)
            id_columns = id_columns_of(study, party.name, party.id_columns, home.ledger, seed)
            people = (study.unit.person,) if study.unit.person else ()
            _write_rows(rows, path, tuple(dict.fromkeys([*schema_of(study, name).inputs, *people, *id_columns])))
            home.keep(study, msgspec.structs.replace(party, source=SourceSpec(path=str(path))), same=written)
        elif rows is not None:
            in_memory[name] = rows
    if runtime == "local":

        def opened(name: str) -> Node:
            return homes[name].node(seed=seed, source=in_memory.get(name), study=study, party=files[name])

        return Local({}, reopen=opened)
    if runtime == "processes":
        most = study.limits.message_mb * 10**6
        return Processes({name: home.command(seed=seed) for name, home in homes.items()}, most=most)
    raise InputError(f"runtime ({runtime}) must be 'local' or 'processes'")


def _party_file(study: Study, name: str, source: Any, home: PartyFolder) -> tuple[PartyFile, Any]:
    """Return the party's file, and its rows if they are in memory; parties of one owner have its ledger."""
    owner = owner_of(member(study, name))
    main = PartyFolder(folder=home.folder.with_name(owner))
    ledger = None if owner == name else str(main.ledger.absolute())
    party = party_file(source)
    if party is not None:
        if party.name not in {name, owner}:
            raise InputError(f"{source}: this file is for party '{party.name}', not for '{name}'")
        return msgspec.structs.replace(party, name=name, ledger=ledger), None
    # without a party file the rows belong to the folder's data set, under the folder's cap; a new folder gets a cap
    # that allows this study once
    known = home.known() or main.known()
    dataset = known.dataset if known else owner
    # a party that abstains spends nothing, and a cap is above 0
    # parties of one owner may each be charged for a person who is at several of them
    each = max(study.costs[one.name].epsilon(study.delta) for one in parties_of(study, owner))
    allowed = account_of(study, name, "").most * each or study.budget.epsilon
    cap = home.cap(dataset, ledger) or Budget.of(allowed, study.delta)
    rows = None
    if isinstance(source, SourceSpec):
        spec = source
    elif isinstance(source, str | Path):
        spec = SourceSpec(path=str(Path(source).absolute()))
    else:
        spec, rows = SourceSpec(path="rows in memory"), open_source(source)
    return PartyFile(name=name, dataset=dataset, source=spec, cap=cap, ledger=ledger), rows


def _write_rows(source: Source, path: Path, columns: tuple[str, ...]) -> None:
    """Pass rows in memory to the party's process, by a file in the party's folder."""
    # with plain values: a file has one dictionary for a column, batches may each have their own
    batches = (
        pa.RecordBatch.from_arrays([decoded(each) for each in batch.columns], names=batch.schema.names)
        for batch in source.batches(columns)
    )
    # a source without rows may yield no batch; its columns then have the null type
    first = next(batches, pa.RecordBatch.from_pylist([], pa.schema([(name, pa.null()) for name in columns])))
    with pa.ipc.new_file(path, first.schema) as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)
