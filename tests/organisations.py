"""Organisations with homes, identities and agreements in one process, for suites that need real ones."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import replace

from syndic import Study
from syndic.kernel import Node
from syndic.runtime import Local
from syndic.study import Home
from syndic.study.agreement import agree
from syndic.study.conduct import conduct
from syndic.study.home import run_digest
from syndic.study.identity import Identity
from syndic.study.release import Release


def homes_for(study: Study, sources: Mapping[str, pa.Table], folder: Path) -> tuple[Study, dict[str, Home]]:
    """Give every party a home with keys, a party file and rows; return the study with their identities."""
    homes, members = {}, []
    for party in study.parties:
        home = Home(folder=folder / party.name)
        home.folder.mkdir(parents=True)
        identity = Identity.make(home.keys)
        pq.write_table(sources[party.name], home.folder / "rows.parquet")
        (home.folder / "party.toml").write_text(
            f'name = "{party.name}"\ndataset = "people of {party.name}"\nsource = {{ path = "rows.parquet" }}\n'
            "cap = { epsilon = 50, delta = 1e-4 }\n"
        )
        homes[party.name] = home
        members.append(replace(party, identity=str(identity.public)))
    return replace(study, parties=tuple(members)), homes


def agreed_nodes(study: Study, homes: Mapping[str, Home], *, rehearsal: int | None = None) -> dict[str, Node]:
    """Let every owner agree, and open the nodes."""
    for home in homes.values():
        agree(home, study, rehearsal=rehearsal)
    return {name: home.agreed_node(run_digest(study, rehearsal)) for name, home in homes.items()}


def rehearse(study: Study, homes: Mapping[str, Home], *, seed: int, runtime: Any = None) -> Release:
    """Run a study whose owners all agree to the rehearsal."""
    nodes = agreed_nodes(study, homes, rehearsal=seed)
    local = Local(nodes)
    try:
        return conduct(study, local if runtime is None else runtime(local), seed=seed)
    finally:
        local.close()
