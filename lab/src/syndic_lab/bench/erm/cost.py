"""What one round of learning costs over sockets: time and bytes of a masked sum of 104 gradients, beside a circuit.

The published figures are of one aggregation of 100 parties' vectors with noise between two servers in Yao's circuits
(Jayaraman et al. 2018, appendix, Table 2), which hides the noise from both servers; ours adds it in shares.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from syndic.data import Boolean, Instead, Schema, SourceSpec
from syndic.document import exact
from syndic.errors import InputError
from syndic.kernel import Call, Delivery, Member, Method, decode
from syndic.methods import Learn
from syndic.methods.learning.result import LearnResult
from syndic.privacy import Budget, Unit
from syndic.study.document import Study
from syndic.study.party_folder import PartyFile, PartyFolder
from syndic_lab.bench.row import Row
from syndic_lab.bench.secure.sum import Sockets, folder_in_memory, ready_session

PARTIES: tuple[int, ...] = (10, 100)
# Adult: 104 features, 100 parties, one aggregation with noise
PUBLISHED_SECONDS: Final = 22.28
PUBLISHED_MEGABYTES: Final = 776.93 + 35.17
_FEATURES: Final = 104
_ROWS: Final = 300
_ROUNDS: Final = 5
_PROCESSES: Final = 2


def rows(quick: bool) -> Iterator[Row]:
    """Yield time and bytes of a round, and of the agreement on keys, for some numbers of parties."""
    for parties in PARTIES:
        runs = [_run(parties) for _ in range(1 if quick else 3)]
        # other work on the machine only ever adds time
        best = min(runs, key=lambda run: run.round_seconds)
        beside = parties == 100
        for metric, value, unit, published in (
            ("seconds a round", best.round_seconds, "s", PUBLISHED_SECONDS),
            ("cpu seconds a round", best.round_busy, "s", None),
            ("megabytes a round", best.round_bytes / 1e6, "MB", PUBLISHED_MEGABYTES),
            ("seconds for keys, once", best.key_seconds, "s", None),
            ("megabytes for keys, once", best.key_bytes / 1e6, "MB", None),
        ):
            what = f"cost, {parties} parties, {_FEATURES} features"
            yield Row(
                bench="erm", row=what, metric=metric, value=value, unit=unit, published=published if beside else None
            )


@final
@dataclass(frozen=True, kw_only=True)
class _Outcome:
    round_seconds: float
    round_busy: float
    round_bytes: float
    key_seconds: float
    key_bytes: float


@final
class _Timed:
    """A carrier that notes time, processor time and bytes of each step."""

    def __init__(self, carrier: Sockets) -> None:
        self._carrier = carrier
        self.spent: dict[str, list[tuple[float, float, int]]] = {}

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        """Pass on and measure."""
        step = decode(next(iter(calls.values())), Call).step
        start, busy, before = time.perf_counter(), self._carrier.processor_seconds(), self._carrier.bytes
        delivery = self._carrier.send(calls, seconds=seconds, arrived=arrived)
        spent = (time.perf_counter() - start, self._carrier.processor_seconds() - busy, self._carrier.bytes - before)
        self.spent.setdefault(step, []).append(spent)
        return delivery

    def total(self, *steps: str) -> tuple[float, float, float]:
        """Return what all calls of some steps took together."""
        found = np.array([each for step in steps for each in self.spent.get(step, [])])
        seconds, busy, sent = found.sum(axis=0)
        return float(seconds), float(busy), float(sent)

    def close(self) -> None:
        """Hang up."""
        self._carrier.close()


def _run(parties: int) -> _Outcome:
    study = _study(parties)
    with folder_in_memory() as folder, closing(_Timed(Sockets(_lay_out(study, folder), _PROCESSES))) as carrier:
        method: Method = study.protocol
        result = method.coordinate(ready_session(study, carrier))
    if not isinstance(result, LearnResult) or len(result.model.present) != parties or result.model.lost:
        raise InputError("not every party is in every sum")
    seconds, busy, sent = carrier.total("contribute", "sum_open")
    key_seconds, _, key_bytes = carrier.total("sum_keys", "sum_meet")
    return _Outcome(
        round_seconds=seconds / _ROUNDS,
        round_busy=busy / _ROUNDS,
        round_bytes=sent / _ROUNDS,
        key_seconds=key_seconds,
        key_bytes=key_bytes,
    )


def _study(parties: int) -> Study:
    # with the intercept as many weights as Adult has
    names = (*(f"x{place}" for place in range(_FEATURES - 1)), "y")
    columns = tuple(Boolean(name=name, missing=Instead(value=False)) for name in names)
    return Study(
        name=f"a round of {parties}",
        unit=Unit(neighbours="replace"),
        budget=Budget(epsilon=exact("0.5"), delta=exact("1e-8")),
        protocol=Learn(
            label="y",
            scheme="mpc_grad",
            iterations=_ROUNDS,
            colluding=max(1, parties // 10),
            missing=parties // 20,
        ),
        parties=tuple(Member(name=f"p{number}", people=_ROWS) for number in range(parties)),
        schema=Schema(columns=columns),
    )


def _lay_out(study: Study, folder: Path) -> dict[str, PartyFolder]:
    """Write every party's rows and files."""
    draws, homes = np.random.default_rng(1), {}
    for party in study.parties:
        home = PartyFolder(folder=folder / party.name)
        source = SourceSpec(path=str(home.folder / "rows.arrow"))
        home.keep(study, PartyFile(name=party.name, dataset=party.name, source=source, cap=study.budget))
        table = pa.table({name: draws.random(_ROWS) < 0.3 for name in study.schema.names})
        with pa.ipc.new_file(home.folder / "rows.arrow", table.schema) as writer:
            writer.write_table(table)
        homes[party.name] = home
    return homes
