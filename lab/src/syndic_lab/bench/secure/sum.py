"""Masked sums: one over real sockets beside the published two-server circuit, then cost per party as sizes grow."""

import math
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from numpy.typing import NDArray

from syndic.data import Schema, SourceSpec
from syndic.document import exact
from syndic.errors import InputError
from syndic.kernel import Delivery, Limits, Member, Method, Nothing, Runtime, Session
from syndic.methods import Marginals
from syndic.methods.histogram.tables import MarginalTables
from syndic.mpc.graph import Seats, SumGraph, bits, sum_graph
from syndic.mpc.key import KEY_BYTES, agree_all, derive, key_pair
from syndic.mpc.mask import expand
from syndic.mpc.ring import Ring
from syndic.privacy import Budget, Unit
from syndic.random import SystemRandomness
from syndic.runtime.frame import receive_frame, send_frame
from syndic.study.document import Study
from syndic.study.party_folder import PartyFile, PartyFolder, run_digest
from syndic_lab.bench.row import Row

# Two servers in Yao's circuits: average of 104 features with noise.
PUBLISHED_SECONDS = 22.3
PUBLISHED_BYTES = 777e6
_FEATURES = 104
_ROWS = 1000
_FRAME_BYTES = 8
_SECTION = "masked sum"
# a twentieth may collude and as many be missing, but no more than this: neighbours grow with both
_MOST_OUT = 50


def rows(quick: bool) -> Iterator[Row]:
    """Yield the sum over sockets, then time and bytes of one party for more parties and longer vectors."""
    yield from over_sockets(parties=100, processes=2, repeats=3 if quick else 7)
    sizes = [(100, 104), (1000, 104), (50_000, 104), (100, 100_000)]
    more = [(10_000, 104), (1000, 100_000), (50_000, 100_000), (100, 1_000_000)]
    for parties, length in sizes if quick else [*sizes, *more]:
        yield from _one_party(parties, length)
    for parties in (100,) if quick else (100, 2000):
        yield from _coordinator(parties, _FEATURES)


def _row(
    row: str, metric: str, value: float, unit: str, *, baseline: float | None = None, published: float | None = None
) -> Row:
    name = f"{_SECTION}, {row}"
    return Row(bench="secure", row=name, metric=metric, value=value, unit=unit, baseline=baseline, published=published)


# The whole method, over sockets.


@final
class Sockets:
    """A runtime over one socket per party; a few processes serve them all. Counts every byte, framing included."""

    def __init__(self, homes: Mapping[str, PartyFolder], processes: int) -> None:
        """Start the processes."""
        self.bytes = 0
        self._here: dict[str, socket.socket] = {}
        self._workers = []
        names = list(homes)
        for start in range(processes):
            pairs = {name: socket.socketpair() for name in names[start::processes]}
            self._here.update({name: here for name, (here, _) in pairs.items()})
            told = [f"{homes[name].folder}={there.fileno()}" for name, (_, there) in pairs.items()]
            command = [sys.executable, "-m", "syndic_lab.bench.sum_worker", *told]
            self._workers.append(subprocess.Popen(command, pass_fds=[there.fileno() for _, there in pairs.values()]))
            for _, there in pairs.values():
                there.close()

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        """Send all calls at once and wait for all replies."""
        deadline = time.monotonic() + seconds
        # each message fits into its socket's buffer, so that nobody waits for a reader
        for party, data in calls.items():
            send_frame(self._here[party], data)
        replies = {}
        for party in calls:
            reply = receive_frame(self._here[party], most=10**9, deadline=deadline)
            if reply is None:
                raise InputError(f"{party} closed the connection")
            replies[party] = reply
        arrived(len(replies))
        self.bytes += sum(len(data) + _FRAME_BYTES for data in (*calls.values(), *replies.values()))
        return Delivery(replies=replies, silent={})

    def processor_seconds(self) -> float:
        """Return the processor time of this process and, where the system tells it, of the parties' processes."""
        ticks = 0
        for worker in self._workers:
            status = Path(f"/proc/{worker.pid}/stat")
            # after the name in brackets: user and system time are the 12th and 13th numbers
            after = status.read_text().rsplit(")", 1)[1].split() if status.exists() else ["0"] * 13
            ticks += int(after[11]) + int(after[12])
        return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """Hang up and wait for the processes."""
        for here in self._here.values():
            here.close()
        for worker in self._workers:
            worker.wait()


@final
@dataclass(frozen=True, kw_only=True)
class _Outcome:
    seconds: float
    busy_seconds: float
    bytes: int
    error: float
    stated_error: float


@contextmanager
def folder_in_memory() -> Iterator[Path]:
    """Make a folder: a hundred ledgers on one disk would measure its queue, and each party has a disk of its own."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:  # noqa: S108
        yield Path(folder)


def ready_session(study: Study, runtime: Runtime) -> Session:
    """Return a session whose parties are ready: Python has started and every table is found."""
    session = Session(
        runtime=runtime,
        study=run_digest(study, None),
        method=study.protocol,
        plan=study.plan,
        randomness=SystemRandomness(),
    )
    session.ask(study.protocol.ready, Nothing())
    return session


def over_sockets(*, parties: int, processes: int, repeats: int) -> Iterator[Row]:
    """Run the whole method a few times: a socket per party, a few processes, exact noise shares, ledgers.

    Other work on the machine only ever adds time, so the fastest run counts.
    """
    runs = [_run_over_sockets(parties, processes) for _ in range(repeats)]
    best = min(runs, key=lambda run: run.seconds)
    what = f"{parties} parties, {_FEATURES} values"
    yield _row(what, "seconds", best.seconds, "s", published=PUBLISHED_SECONDS)
    yield _row(what, f"seconds, slowest of {repeats}", max(run.seconds for run in runs), "s")
    yield _row(what, "cpu seconds", best.busy_seconds, "s")
    yield _row(what, "megabytes", best.bytes / 1e6, "MB", published=PUBLISHED_BYTES / 1e6)
    yield _row(what, "times less time than published", PUBLISHED_SECONDS / best.seconds, "x")
    yield _row(what, "times fewer bytes than published", PUBLISHED_BYTES / best.bytes, "x")
    yield _row(what, "root mean square error of a count", best.error, "rows", baseline=best.stated_error)


def _run_over_sockets(parties: int, processes: int) -> _Outcome:
    study = _study(parties)
    with folder_in_memory() as folder:
        truth, homes = _lay_out(study, folder)
        with closing(Sockets(homes, processes)) as carrier:
            session = ready_session(study, carrier)
            carrier.bytes, busy, start = 0, carrier.processor_seconds(), time.perf_counter()
            method: Method = study.protocol
            result = method.coordinate(session)
            seconds, busy = time.perf_counter() - start, carrier.processor_seconds() - busy
    if not isinstance(result, MarginalTables) or len(result.note.present) != parties:
        raise InputError("not every party is in the sum")
    errors = result.tables[0].values - truth
    return _Outcome(
        seconds=seconds,
        busy_seconds=busy,
        bytes=carrier.bytes,
        error=math.sqrt(float((errors**2).mean())),
        stated_error=result.note.standard_deviation,
    )


def _study(parties: int) -> Study:
    return Study(
        name=f"masked sum of {parties}",
        unit=Unit(neighbours="add_remove"),
        budget=Budget(epsilon=exact(1), delta=exact("1e-8")),
        protocol=Marginals(noise="skellam", colluding=max(1, parties // 10), missing=parties // 20),
        parties=tuple(Member(name=f"p{number}", people=_ROWS) for number in range(parties)),
        schema=Schema.from_domain({"feature": _FEATURES}),
        limits=Limits(),
    )


def _lay_out(study: Study, folder: Path) -> tuple[NDArray[np.int64], dict[str, PartyFolder]]:
    """Write every party's rows and files; return the plain counts of all rows."""
    draws = np.random.default_rng(1)
    truth = np.zeros(study.schema.domain.size, dtype=np.int64)
    homes = {}
    for party in study.parties:
        codes = draws.integers(0, _FEATURES, _ROWS)
        truth += np.bincount(codes, minlength=len(truth))
        home = PartyFolder(folder=folder / party.name)
        source = SourceSpec(path=str(home.folder / "rows.arrow"))
        home.keep(study, PartyFile(name=party.name, dataset=party.name, source=source, cap=study.budget))
        table = pa.table({"feature": codes})
        with pa.ipc.new_file(home.folder / "rows.arrow", table.schema) as writer:
            writer.write_table(table)
        homes[party.name] = home
    return truth, homes


# One party's work and bytes, with neighbours made for it.


def _seats(parties: int) -> Seats:
    few = min(parties // 20, _MOST_OUT)
    graph = sum_graph(parties, colluding=few, missing=few)
    return Seats(study="bench", label="bench", names=tuple(f"p{number}" for number in range(parties)), graph=graph)


def _one_party(parties: int, length: int) -> Iterator[Row]:
    seats, ring, source = _seats(parties), Ring(32), SystemRandomness()
    neighbours = seats.neighbours(0)
    publics = [key_pair(source).public for _ in neighbours]
    silent = set(neighbours[: seats.graph.missing])
    arrived = bits(place not in silent for place in range(parties))
    start = time.perf_counter()
    pairs = dict(zip(neighbours, agree_all(key_pair(source).private, publics), strict=True))
    for sent in _sent(seats, 0, pairs, silent, arrived, length, ring):
        ring.pack(sent)
    spent = time.perf_counter() - start
    what = f"{parties:,} parties, {length:,} values of 32 bits, {len(neighbours)} neighbours"
    yield _row(what, "time of one party, all steps", 1000 * spent, "ms")
    sent_bytes = _party_bytes(seats.graph, length, ring)
    yield _row(what, "bytes of one party, both ways", sent_bytes, "B", baseline=float(ring.packed_bytes(length)))


def _sent(  # what a party knows
    seats: Seats, place: int, pairs: Mapping[int, bytes], silent: set[int], arrived: bytes, length: int, ring: Ring
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return what a party with zeros sends: its masked values, and its answer about masks."""
    own = expand(derive(b"root", place), b"own", length, ring)
    masked = seats.add_pairs(own, place, pairs, seats.bound("values", 1), ring)
    gone = {other: secret for other, secret in pairs.items() if other in silent}
    here = {other: secret for other, secret in pairs.items() if other not in silent}
    answer = seats.add_pairs(own, place, gone, seats.bound("values", 1), ring)
    return masked, seats.add_pairs(answer, place, here, seats.bound("answer", 1, arrived), ring)


def _party_bytes(graph: SumGraph, length: int, ring: Ring) -> float:
    """Return what a party sends and gets: keys, directory, masked values, survivors, answer."""
    return float(KEY_BYTES * (1 + graph.neighbours) + 2 * ring.packed_bytes(length) + graph.parties // 8)


def _coordinator(parties: int, length: int) -> Iterator[Row]:
    """Measure the coordinator's own arithmetic, with as many parties silent as the graph allows."""
    seats, ring = _seats(parties), Ring(32)
    silent = set(range(seats.graph.missing))
    arrived = bits(place not in silent for place in range(parties))
    sent = []
    for place in range(len(silent), parties):
        pairs = {other: derive(b"pair", *sorted((place, other))) for other in seats.neighbours(place)}
        sent.append([ring.pack(each) for each in _sent(seats, place, pairs, silent, arrived, length, ring)])
    start = time.perf_counter()
    total = ring.reduce(np.zeros(length, dtype=np.int64))
    for values, answer in sent:
        total = ring.subtract(ring.add(total, ring.unpack(values, length)), ring.unpack(answer, length))
    spent = time.perf_counter() - start
    if np.any(ring.lift(total)):
        raise InputError("masks around zeros did not cancel")
    what = f"{parties} parties, {length} values, {len(silent)} of them silent"
    yield _row(what, "time of the coordinator to open the total", 1000 * spent, "ms")
