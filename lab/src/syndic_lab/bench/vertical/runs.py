"""Runs of the synthesis on a coded table whose columns are cut into parties, beside a trusted curator."""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, final

import numpy as np
import pyarrow as pa
from msgspec.structs import replace
from numpy.typing import NDArray

from syndic.kernel import Exchange, Member, Session, groups_of, run, schema_of
from syndic.methods import AnyMethod, Synthesis
from syndic.privacy import Budget, Unit, gaussian_epsilon, mu_squared_for
from syndic.random import SimulationRandomness
from syndic.runtime import Local
from syndic.study import Study
from syndic_lab.bench.model.synthesis import simulated_node
from syndic_lab.bench.model.synthesis_data import Coded, codes_of, distances

Codes = Mapping[str, NDArray[np.int64]]
DELTA = Fraction(1, 10**6)
RELAYED = ("product_masked", "product_proved")
"""Steps whose replies the coordinator passes on: they are in a later request once more."""


@final
@dataclass(frozen=True, eq=False)
class Made:
    """The rows of one run, seconds of processor time of all roles, what was said, and sets of columns it found."""

    codes: Codes
    seconds: float
    transcript: Sequence[Exchange] = ()
    found: Sequence[tuple[str, ...]] = ()

    @property
    def sent(self) -> int:
        """Bytes of all messages, each counted once, as one role sends it to another."""
        return sent_once(self.transcript)


@final
@dataclass(frozen=True)
class Found:
    """One run: distances by number of columns, seconds of processor time, bytes that each role sent, once."""

    apart: dict[int, float]
    seconds: float
    sent: int


def cut(data: Coded, parties: int) -> list[tuple[str, ...]]:
    """Return the columns of each party: in order, the first parties having one more where it does not come out."""
    names = data.domain.names
    return [tuple(names[place] for place in part) for part in np.array_split(np.arange(len(names)), parties)]


def study_of(
    data: Coded,
    epsilon: str,
    held: Sequence[tuple[str, ...]],
    protocol: AnyMethod,
    delta: Fraction = DELTA,
    neighbours: Literal["add_remove", "replace"] = "replace",
) -> Study:
    """Return the study of parties that hold these columns of the same people."""
    rows, single = data.table.num_rows, len(held) == 1
    members = [
        Member(name=f"p{place}", people=rows, columns=None if single else columns) for place, columns in enumerate(held)
    ]
    return Study(
        name="bench",
        unit=Unit(neighbours=neighbours),
        budget=Budget.of(epsilon, delta),
        protocol=protocol,
        parties=tuple(members),
        schema=data.schema,
    )


def grid_of(
    data: Coded, epsilon: str, groups: int, parties: int, *, lacking: bool = False, delta: Fraction = DELTA
) -> Study:
    """Return the study of groups of people whose columns are cut among parties; `lacking`: the last has half of its."""
    sizes, held = [len(part) for part in np.array_split(np.arange(data.table.num_rows), groups)], cut(data, parties)
    members = [
        Member(name=f"g{place}p{number}", group=f"g{place}", people=people, columns=columns)
        for place, people in enumerate(sizes)
        for number, columns in enumerate(held)
    ]
    if lacking:
        members[-1] = replace(members[-1], columns=held[-1][: len(held[-1]) // 2])
    return Study(
        name="bench",
        unit=Unit(neighbours="replace"),
        budget=Budget.of(epsilon, delta),
        protocol=Synthesis(),
        parties=tuple(members),
        schema=data.schema,
    )


def vertical(data: Coded, epsilon: str, seed: int, parties: int, **options: Any) -> Found:
    """Run the synthesis of different parties' columns once, every party in this process."""
    return found_by(data, study_of(data, epsilon, cut(data, parties), Synthesis(**options)), seed)


def curator(data: Coded, epsilon: str, seed: int, **options: Any) -> Found:
    """Run the same selection with one party that holds all columns, at the same budget."""
    return found_by(data, study_of(data, epsilon, [data.domain.names], Synthesis(**options)), seed)


def glued(data: Coded, epsilon: str, seed: int, parties: int) -> Found:
    """Let every party make rows of its own columns for an equal part of the budget, and put them side by side."""
    # a person is at all parties, and mu^2 adds up; rounded down
    mu_squared = mu_squared_for(Fraction(epsilon), DELTA) / parties
    part = f"{float(gaussian_epsilon(mu_squared, DELTA)) - 5e-7:.6f}"
    made: dict[str, Any] = {}
    seconds = 0.0
    for place, columns in enumerate(cut(data, parties)):
        own = data.select(columns)
        study = study_of(own, part, [columns], Synthesis())
        own_rows = made_by(own, study, seed + 1000 * place)
        made |= own_rows.codes
        seconds += own_rows.seconds
    return Found(distances(data.codes(), made, data.domain), seconds, 0)


def held_by(data: Coded, study: Study) -> dict[str, pa.Table]:
    """Return what every party holds: its columns of the people of its group, the groups one after the other."""
    found: dict[str, pa.Table] = {}
    start = 0
    for group in groups_of(study):
        rows = data.table.slice(start, group.people)
        found |= {name: rows.select(schema_of(study, name).names) for name in group.parties}
        start += group.people
    return found


def made_by(data: Coded, study: Study, seed: int) -> Made:
    """Run a study once, every party in this process."""
    with ExitStack() as stack:
        nodes = {}
        for name, rows in held_by(data, study).items():
            nodes[name] = simulated_node(study, name, rows, seed)
            stack.callback(nodes[name].close)
        session = Session(
            runtime=Local(nodes),
            study=study.digest,
            method=study.protocol,
            plan=study.plan,
            randomness=SimulationRandomness(seed, "draws"),
        )
        begin = time.process_time()
        result: Any = run(study.protocol, session)
        seconds = time.process_time() - begin
    found = getattr(result.note, "found", ())
    return Made(codes_of(result.table.to_arrow(), data.schema), seconds, session.transcript, found)


def sent_once(transcript: Sequence[Exchange]) -> int:
    """Return the bytes of all messages, each counted once, as one role sends it to another."""
    both = sum(one.request_bytes + one.reply_bytes for one in transcript)
    return both - sum(one.reply_bytes for one in transcript if one.step in RELAYED)


def found_by(data: Coded, study: Study, seed: int) -> Found:
    """Run a study once, and hold its rows against the real ones."""
    made = made_by(data, study, seed)
    return Found(distances(data.codes(), made.codes, data.domain), made.seconds, made.sent)
