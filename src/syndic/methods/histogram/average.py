"""Averages of numeric columns over all parties' rows, with noise that nobody knows.

Every party adds up its clipped fixed-point numbers and secret-shares the sums between two of the parties, the servers.
They add one copy of exact integer noise to the shares and open only the noisy sums (`syndic.mpc.twoserver`). The
functionality is that of "average plus noise inside a garbled circuit" (Jayaraman et al. 2018). The noise there was a
fixed-point logarithm, whose possible outputs distinguish neighbouring inputs; here it is made of coins with exact
probabilities.

*Neighbours*: one person's row is replaced, at each of up to `unit.parties` parties; sizes are public. *Sensitivity*: a
number changes its sum by at most its steps; the noise is calibrated to all columns and parties together. *Cost*: one
release of all sums, plus the distance of noise from 128-bit coins to its exact distribution.

*Who sees what*: everybody sees the noisy averages, a server also one share of everything else, the coordinator masked
values and sealed bits. No two of the servers and the coordinator may collude: they could remove the noise.
*Semi-honest*.
"""

import dataclasses
import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, final

import msgspec
import numpy as np
from numpy.typing import NDArray

from syndic.data import Integer, Real, Schema
from syndic.document import Document, from_file
from syndic.errors import InputError
from syndic.kernel import (
    GROUPS,
    Disclosure,
    Method,
    Party,
    Plan,
    Requires,
    Resources,
    Result,
    Session,
    Terms,
    budget_of,
    budgets_of,
    people_of,
    step,
)
from syndic.mpc import gmw
from syndic.mpc.ring import OVERFLOW, ring_for
from syndic.mpc.seal import OVERHEAD_BYTES, PublicKeys
from syndic.mpc.twoserver import TwoServers, TwoShares
from syndic.noise import DiscreteGaussian, DiscreteLaplace
from syndic.noise.circuit_bits import WIDTH, gaussian_bits, laplace_bits
from syndic.privacy import ApproximateEvent, ConcentratedEvent, Event, rho_for
from syndic.privacy.concentrated import PICO, part_of
from syndic.privacy.cost import ATTO

_MOST_COINS = 2**19
# (1 + e^epsilon) times the distance of the coins from their distribution must stay a negligible delta
_LARGEST_EPSILON = 30


@final
class Averages(Document):
    """The released averages, in the columns' own units; `standard_deviation` is that of the noise on each."""

    columns: tuple[str, ...]
    averages: tuple[float, ...]
    standard_deviation: tuple[float, ...]
    rows: int


@final
@dataclasses.dataclass(frozen=True, kw_only=True)
class AveragesResult(Result):
    """Noisy averages of all parties' rows. They are released: anyone may see them."""

    averages: Averages

    def files(self) -> Mapping[str, Any]:
        """Return `averages.json`."""
        return {"averages.json": self.averages}

    def summary(self) -> Mapping[str, Any]:
        """Return each average with the standard deviation of its noise."""
        of = self.averages
        parts = zip(of.columns, of.averages, of.standard_deviation, strict=True)
        return {f"average of {name}": f"{average:.6g} (noise {spread:.2g})" for name, average, spread in parts}


@final
class AveragePlan(Plan):
    """The averaged columns with a bin for every fixed-point number, the noise on each sum, and the servers' protocol.

    A value's code is its fixed-point number. Every value gets a code within the bins, so nothing needs clipping later.
    """

    fixed_point: Schema
    noise: DiscreteLaplace | DiscreteGaussian
    two_servers: TwoServers

    @cached_property
    def spreads(self) -> tuple[float, ...]:
        """The standard deviation of the noise on each average, in the columns' own units."""
        spread = self.noise.variance**0.5 / (people_of(self.terms) or 1)
        return tuple(spread * _width(column) for column in self.fixed_point.columns)

    def averages(self, sums: NDArray[np.int64]) -> Averages:
        """Return the averages that noisy sums of fixed-point numbers stand for."""
        rows, columns = people_of(self.terms) or 1, self.fixed_point.columns
        found = [_start(one) + _width(one) * (float(total) / rows) for one, total in zip(columns, sums, strict=True)]
        names = self.fixed_point.names
        return Averages(columns=names, averages=tuple(found), standard_deviation=self.spreads, rows=rows)

    @property
    def rounds(self) -> tuple[str, ...]:
        """Keys, the parties' shares, the coins of the noise, the opening of the sums."""
        return self.two_servers.rounds("contribute")

    def events(self, party: str) -> tuple[Event, ...]:
        """One release of all sums, and the distance of the noise from its exact distribution."""
        del party
        # off by at most d in total variation under both neighbours: delta = (1 + e^epsilon) d, and e < 3
        epsilon = max(budget_of(self.terms, candidate.name).epsilon for candidate in self.terms.parties)
        delta = self.two_servers.noise.distance * self.two_servers.dimension * (1 + 3 ** math.ceil(epsilon))
        what = f"noise from {WIDTH}-bit coins that nobody knows"
        if isinstance(self.noise, DiscreteLaplace):
            return (ApproximateEvent(epsilon=self.noise.epsilon, delta=delta, what=f"laplace {what}"),)
        return (
            ConcentratedEvent(rho=self.noise.rho, what=f"gaussian {what}"),
            ApproximateEvent(epsilon=Fraction(1, PICO), delta=delta, what="distance of the coins from exact noise"),
        )

    @cached_property
    def resources(self) -> Resources:
        """Bytes and seconds at both servers, from the number of coins."""
        coins = self.two_servers.coins
        carried, largest = _carried(self.two_servers)
        spreads = zip(self.fixed_point.names, self.spreads, strict=True)
        return Resources(
            memory_bytes=10**8 + 4 * WIDTH * coins.count,
            reply_bytes=largest,
            rounds=5 + gmw.LEVELS,
            seconds=round(1.0 + (people_of(self.terms) or 0) / 1e6 + coins.count / 2e5, 1),
            notes=(
                f"{coins.count:,} coins of {WIDTH} bits; the servers' messages come to {carried / 1e6:,.2f} MB in all",
                *(f"{name}: standard deviation of the noise {spread:.3g}" for name, spread in spreads),
            ),
        )

    @property
    def disclosure(self) -> Disclosure:
        """What every role sees."""
        law, parties, sees = self.noise, self.terms.unit.parties, "the noisy averages"
        bound = (
            f"{law.sensitivity} in l1"
            if isinstance(law, DiscreteLaplace)
            else f"{law.sensitivity_squared / parties} in squared l2"
        )
        return Disclosure(
            sees={
                "coordinator": f"{sees}; masked values, and sealed bits that it cannot read",
                f"servers {' and '.join(self.two_servers.servers)}": f"{sees}; each has one share of everything else",
                "other parties": sees,
                "anyone with the release": sees,
            },
            sensitivity=(
                f"replacing one row at one party changes the fixed-point sums by at most {bound}; a person is at no "
                f"more than {parties} of the parties, and the noise is calibrated to all of them"
            ),
            not_protected=(
                "anything, if the two servers collude, or the coordinator and one server: they can remove the noise",
                "the correctness of the averages, if a party or server deviates from the protocol: it can enter any "
                "numbers",
                "the size of each party: it is public under replace",
                GROUPS,
            ),
        )

    @property
    def too_large(self) -> tuple[str, str]:
        """What is too large if the run does not fit, and what to change."""
        return "a server", "use fewer bits"


@final
class Average(Method, tag="average"):
    """Parameters of the averages.

    `servers`: two of the parties, which must not collude with each other or with the coordinator.
    `columns`: the columns whose averages are released; by default all integer and real columns.
    `bits`: a number is rounded to one of 2^bits steps between its column's bounds (narrow integer columns stay exact).
    """

    title: ClassVar[str] = "Averages with noise that nobody knows"
    paper: ClassVar[str] = "Jayaraman et al. 2018, Distributed learning without distress, section on secure aggregation"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "horizontal"
    trust: ClassVar[str] = (
        "semi-honest: of the two servers and the coordinator, no two collude; any number of the other parties may"
    )

    servers: tuple[str, str]
    columns: tuple[str, ...] = ()
    noise: Literal["laplace", "gaussian"] = "laplace"
    bits: int = 10

    def __post_init__(self) -> None:
        if self.servers[0] == self.servers[1]:
            raise ValueError("servers must name two different parties")
        if not 1 <= self.bits <= 24:
            raise ValueError(f"bits ({self.bits}) must be from 1 to 24")
        if len(set(self.columns)) != len(self.columns):
            raise ValueError("columns must be distinct")

    @property
    def requires(self) -> Requires:
        """Public sizes, to divide by; noise from coins is not exact, so it needs delta."""
        return Requires(
            people="bound",
            delta=f"noise from {WIDTH}-bit coins, whose distribution is off by less than 1e-18,",
            neighbours="replace",
            rows=1,
            because="averages divide by a public number of rows",
        )

    def plan(self, terms: Terms) -> AveragePlan:
        """Make the fixed-point columns, the noise and its coins, and a ring that is large enough for both."""
        names = [candidate.name for candidate in terms.parties]
        for server in self.servers:
            if server not in names:
                raise InputError(f"servers: '{server}' is not a party of this study; its parties are {names}")
        for name in names:
            if budget_of(terms, name).epsilon > _LARGEST_EPSILON:
                raise InputError(f"party '{name}': epsilon must be at most {_LARGEST_EPSILON} with noise from coins")
        fixed_point = _fixed_point(terms.schema, self.columns, self.bits)
        law, count = self._noise(fixed_point, terms), len(fixed_point.columns)
        noise = laplace_bits(law.scale) if isinstance(law, DiscreteLaplace) else gaussian_bits(law.sigma_squared)
        coins = len(noise.thresholds) * count
        if coins > _MOST_COINS:
            raise InputError(f"the noise takes {coins:,} coins, more than {_MOST_COINS:,}: use fewer bits or columns")
        largest = (people_of(terms) or 0) * max(_steps(column) for column in fixed_point.columns)
        ring = ring_for(largest + law.tail(OVERFLOW / count))
        two_servers = TwoServers(servers=self.servers, dimension=count, ring=ring, noise=noise)
        return AveragePlan(terms=terms, fixed_point=fixed_point, noise=law, two_servers=two_servers)

    @step(reveals="masked")
    def contribute(self, party: Party[AveragePlan], message: PublicKeys) -> TwoShares:
        """Sum this party's fixed-point numbers, charge the whole release, secret-share the sums between the servers."""
        plan = party.plan
        plan.two_servers.meet(party, message)
        table = dataclasses.replace(party.table, schema=plan.fixed_point)
        sums = table.sums()
        for event in plan.events(party.name):
            party.charge(event, why="noisy averages of all parties' rows")
        return plan.two_servers.shares(party, np.array(sums, dtype=np.int64))

    def coordinate(self, session: Session[AveragePlan]) -> AveragesResult:
        """Open the noisy sums and divide by the public number of rows."""
        plan = session.plan
        return AveragesResult(averages=plan.averages(plan.two_servers.open(session, self.contribute)))

    def read(self, plan: AveragePlan, folder: Path) -> AveragesResult:
        """Read back `averages.json`."""
        del plan
        return AveragesResult(averages=from_file(folder / "averages.json", Averages))

    def _noise(self, fixed_point: Schema, terms: Terms) -> DiscreteLaplace | DiscreteGaussian:
        """Return the noise on each sum, for the smallest budget of all parties, since all share one copy.

        A person at p parties changes the sums by p times as much. Laplace: epsilon / p per party. Gaussian: rho / p
        per party and a squared sensitivity p times as large, since rho grows with the square of the distance.
        """
        parties, changes = terms.unit.parties, [_steps(column) for column in fixed_point.columns]
        epsilon = min(budget.epsilon for budget in budgets_of(terms))
        # a column with one possible value changes nothing, but noise of scale 0 does not exist
        if self.noise == "laplace":
            return DiscreteLaplace(sensitivity=max(1, sum(changes)), epsilon=part_of(epsilon, parties))
        delta = min(budget.delta for budget in budgets_of(terms))
        # the distance of the coins from exact noise is charged as a separate event
        rho = part_of(rho_for(epsilon - Fraction(parties, PICO), delta - Fraction(parties, ATTO)), parties)
        square = Fraction(max(1, parties * sum(change**2 for change in changes)))
        return DiscreteGaussian(sensitivity_squared=square, rho=rho)


def _fixed_point(schema: Schema, columns: tuple[str, ...], bits: int) -> Schema:
    known = {column.name: column for column in schema.columns}
    chosen = [known[name] for name in columns] if set(columns) <= set(known) else schema.select(columns).columns
    found: list[Integer | Real] = []
    for column in chosen or [each for each in schema.columns if isinstance(each, Integer | Real)]:
        if not isinstance(column, Integer | Real):
            raise InputError(f"column '{column.name}' is not a number: averages are of integer and real columns")
        if column.missing == "level":
            raise InputError(
                f"column '{column.name}': an average needs a value in place of missing ones: set missing.value"
            )
        most = column.upper - column.lower + 1 if isinstance(column, Integer) else 2**bits
        found.append(msgspec.structs.replace(column, bins=min(2**bits, most), edges=None, scale="linear"))
    if not found:
        raise InputError("the schema has no integer or real column to average")
    return Schema(columns=tuple(found))


def _carried(agreed: TwoServers) -> tuple[int, int]:
    """Return the bytes of all messages from and to the servers, and of the largest one."""
    coins = agreed.coins
    openings = [8 * gmw.rows_at(level) * coins.words + OVERHEAD_BYTES for level in range(1, gmw.LEVELS + 2)]
    corrections = 8 * gmw.correction_words(coins) + agreed.ring.packed_bytes(coins.count)
    # both servers send their openings, and each travels two hops
    largest = max(*openings, corrections, agreed.ring.packed_bytes(agreed.dimension))
    return 4 * sum(openings) + corrections, largest + 256


def _steps(column: Any) -> int:
    """Return the largest fixed-point number of a column."""
    return int(column.bins) - 1


def _width(column: Any) -> float:
    """Return how far apart two neighbouring fixed-point numbers are, in the column's unit."""
    whole = 1 if isinstance(column, Integer) else 0
    return float((column.upper - column.lower + whole) / column.bins)


def _start(column: Any) -> float:
    """Return the value that number 0 stands for: the middle of the first bin."""
    middle = (_width(column) - 1) / 2 if isinstance(column, Integer) else _width(column) / 2
    return float(column.lower) + middle
