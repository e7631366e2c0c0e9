"""Averages of numeric columns over all parties' rows, with noise that nobody knows.

Every party adds up its clipped fixed-point numbers and secret-shares the sums between two of the parties, the servers.
They add one copy of exact integer noise to the shares and open only the noisy sums (`syndic.mpc.twoserver`). The
functionality is that of "average plus noise inside a garbled circuit" (Jayaraman et al. 2018). The noise there was a
fixed-point logarithm, whose possible outputs distinguish neighbouring inputs; here it is a weighted sum of fair coins
that both servers tossed.

*Neighbours*: one person's row is replaced, at each of up to `unit.parties` parties; sizes are public. *Sensitivity*: a
number changes its sum by at most its steps; the noise is calibrated to all columns and parties together. *Cost*: one
release of all sums, Gaussian but for a slack (`syndic.noise.binomial`).

*Who sees what*: everybody sees the noisy averages, a server also one share of everything else, the coordinator masked
values and sealed coins. No two of the servers and the coordinator may collude: they could remove the noise. Any one of
them may lie: it can shift or stop the result.
"""

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from math import ceil
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
    PROCESS_BYTES,
    Disclosure,
    Method,
    Party,
    Plan,
    Requires,
    Resources,
    Result,
    Session,
    Terms,
    member,
    people_of,
    step,
    strictest,
)
from syndic.mpc.ring import LARGEST_FIELD
from syndic.mpc.seal import PublicKeys
from syndic.mpc.twoserver import TwoServers, TwoShares
from syndic.noise.binomial import SLACK, BinomialNoise, binomial_for
from syndic.privacy import Event, GaussianEvent, mu_squared_for
from syndic.privacy.concentrated import PICO
from syndic.privacy.cost import ATTO


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
    two_servers: TwoServers
    mu_squared: Fraction

    @property
    def noise(self) -> BinomialNoise:
        """The noise on each sum."""
        return self.two_servers.noise

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
        """Keys, the servers' coins and their proofs, the parties' shares, the opening of the sums."""
        return self.two_servers.rounds("contribute")

    def events(self, party: str) -> tuple[Event, ...]:
        """One release of all sums."""
        del party
        slack = self.two_servers.dimension * SLACK
        return (GaussianEvent(mu_squared=self.mu_squared, slack=slack, what="binomial noise that nobody knows"),)

    @cached_property
    def resources(self) -> Resources:
        """Bytes and seconds at both servers, from the number of coins."""
        product, values = self.two_servers.product, self.two_servers.dimension
        coins = values * len(self.noise.coins)
        server = self.two_servers.servers[0]
        proof, field = product.proof(server, 0), self.two_servers.field
        # both servers send masked coins and a proof, and each travels two hops; the dealer answers each proof
        largest = field.packed_bytes(coins) + 256
        carried = 2 * (2 * largest + 2 * field.packed_bytes(proof.length) + field.packed_bytes(proof.answer_length))
        spreads = zip(self.fixed_point.names, self.spreads, strict=True)
        return Resources(
            memory_bytes=PROCESS_BYTES + 400 * coins,
            reply_bytes=max(largest, field.packed_bytes(proof.length) + 256),
            rounds=len(self.rounds),
            seconds=round(1.0 + (people_of(self.terms) or 0) / 1e6 + coins / 2e5, 1),
            notes=(
                f"{coins:,} coins; the servers' messages come to {carried / 1e6:,.2f} MB in all",
                *(f"{name}: standard deviation of the noise {spread:.3g}" for name, spread in spreads),
            ),
        )

    @property
    def disclosure(self) -> Disclosure:
        """What every role sees."""
        parties, sees = self.terms.unit.parties, "the noisy averages"
        steps = [_steps(column) for column in self.fixed_point.columns]
        return Disclosure(
            sees={
                "coordinator": f"{sees}; masked values, and sealed coins that it cannot read",
                f"servers {' and '.join(self.two_servers.servers)}": f"{sees}; each has one share of everything else",
                "other parties": sees,
                "anyone with the release": sees,
            },
            sensitivity=(
                f"replacing one row at one party changes each fixed-point sum by at most its steps ({max(steps)} for "
                f"the widest, {sum(steps)} in all); a person is at no more than {parties} of the parties, and the "
                "noise is calibrated to all of them"
            ),
            not_protected=(
                "anything, if the two servers collude, or the coordinator and one server, though one only looks: they "
                "can remove the noise",
                "the correctness of the averages: a party, server or coordinator that deviates can shift them",
                "the size of each party: it is public under replace",
                GROUPS,
            ),
        )

    too_large = ("a server", "use fewer bits")


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
        "of the two servers and the coordinator, no two collude, and each of them may lie; any number of the other "
        "parties may collude and lie"
    )

    servers: tuple[str, str]
    columns: tuple[str, ...] = ()
    bits: int = 10

    def __post_init__(self) -> None:
        if self.servers[0] == self.servers[1]:
            raise ValueError("servers must name two different parties")
        if not 1 <= self.bits <= 24:
            raise ValueError(f"bits ({self.bits}) must be from 1 to 24")
        if len(set(self.columns)) != len(self.columns):
            raise ValueError("columns must be distinct")

    # public sizes, to divide by; noise that is nearly Gaussian needs delta
    requires = Requires(
        people="bound",
        delta="noise from coins",
        neighbours="replace",
        rows=1,
        because="averages divide by a public number of rows",
    )

    def plan(self, terms: Terms) -> AveragePlan:
        """Make the fixed-point columns, the noise for the smallest budget, and the protocol of the servers."""
        for server in self.servers:
            member(terms, server)
        fixed_point = _fixed_point(terms.schema, self.columns, self.bits)
        changes, parties = [_steps(column) for column in fixed_point.columns], terms.unit.parties
        # all parties share one copy of noise, so it is for the smallest budget
        budget = strictest(terms)
        slack = parties * (len(changes) * SLACK + Fraction(1, ATTO))
        noise, mu_squared = _noise(changes, parties, mu_squared_for(budget.epsilon, budget.delta, slack))
        largest = (people_of(terms) or 0) * max(changes)
        if largest + 2 * noise.reach + 2 >= LARGEST_FIELD:
            raise InputError(
                f"bits: sums reach {largest:,} and noise {noise.reach:,}, more than proofs allow ({LARGEST_FIELD:,} "
                "in all): use fewer bits"
            )
        two_servers = TwoServers(servers=self.servers, dimension=len(changes), largest=largest, noise=noise)
        return AveragePlan(terms=terms, fixed_point=fixed_point, two_servers=two_servers, mu_squared=mu_squared)

    @step(reveals="masked")
    def contribute(self, party: Party[AveragePlan], message: PublicKeys) -> TwoShares:
        """Sum this party's fixed-point numbers, charge the whole release, secret-share the sums between the servers."""
        plan = party.plan
        plan.two_servers.meet(party, message)
        sums = party.table.coded_by(plan.fixed_point).sums()
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


def _noise(changes: Sequence[int], parties: int, most: Fraction) -> tuple[BinomialNoise, Fraction]:
    """Return the noise on each sum, and the mu^2 that each of a person's `parties` is charged.

    A person at p parties moves the sums p times as far, and the charges of all p must cover that mu^2, at most `most`.
    Each charge alone must cover one row.
    """
    # a column with one possible value changes nothing, but noise for nothing does not exist
    moved = sorted(Counter(change for change in changes if change).items()) or [(1, 1)]
    once, together = (tuple((copies * steps, count) for steps, count in moved) for copies in (1, parties))
    # what is charged is rounded up to units of the ledger
    noise = binomial_for(together, most - Fraction(2 * parties, PICO))
    charge = max(noise.mu_squared(once), noise.mu_squared(together) / parties)
    return noise, Fraction(2 * ceil(charge * PICO / 2), PICO)


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
