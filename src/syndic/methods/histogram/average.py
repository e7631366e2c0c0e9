"""Averages of numeric columns over all parties' rows, with noise that nobody knows.

Every party adds up its clipped fixed-point numbers and splits the sums between two of the parties, the servers, who
add one copy of exact integer noise on shares and open only the noisy sums (`syndic.mpc.twoserver`). The functionality
is that of "average plus noise inside a garbled circuit" (Jayaraman et al. 2018); the noise there was a fixed-point
logarithm, whose possible outputs tell neighbouring inputs apart, and is replaced by coins with exact chances.

*Neighbours*: one person's row is replaced, at each of up to `unit.parties` parties; sizes are public. *Sensitivity*: a
number moves its sum by at most its steps; the noise is made for all columns and parties together. *Cost*: one release
of all sums, and the chance that coins of 128 bits miss the law.

*Who sees what*: everybody sees the noisy averages, a server one share of everything else, the coordinator masked values
and sealed bits. No two of the servers and the coordinator may collude: they could take the noise away. *Semi-honest*.
"""

import dataclasses
import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, final

import msgspec
import numpy as np
from numpy.typing import NDArray

from syndic.data import Integer, Real, Schema
from syndic.document import Document, from_file, to_readable_json
from syndic.errors import InputError
from syndic.kernel import Disclosure, Party, Resources, Result, Session, Terms, budget_of, people_of, step
from syndic.methods.refusals import check_fits, check_people
from syndic.mpc import gmw
from syndic.mpc.ring import ring_for
from syndic.mpc.seal import OVERHEAD_BYTES, PublicKeys
from syndic.mpc.twoserver import TwoServers, TwoShares, UsesTwoServers, noisy_sum
from syndic.noise import DiscreteGaussian, DiscreteLaplace
from syndic.noise.circuit_bits import WIDTH, BitNoise, gaussian_bits, laplace_bits
from syndic.privacy import ApproximateEvent, ConcentratedEvent, Event, rho_for
from syndic.privacy.concentrated import PICO
from syndic.privacy.cost import ATTO

# The noise of one value exceeds what the ring has room for with a chance below this over all values.
_OVERFLOW = 2.0**-64
_MOST_COINS = 2**19
# (1 + e^epsilon) times the coins' distance from the law must stay a negligible delta
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
    """Averages of all parties' rows. They passed the parties' doors: anyone may see them."""

    averages: Averages

    def write(self, folder: Path) -> list[Path]:
        """Write `averages.json`."""
        (folder / "averages.json").write_bytes(to_readable_json(self.averages))
        return [folder / "averages.json"]

    def summary(self) -> Mapping[str, Any]:
        """Return each average with the standard deviation of its noise."""
        of = self.averages
        parts = zip(of.columns, of.averages, of.standard_deviation, strict=True)
        return {f"average of {name}": f"{average:.6g} (noise {spread:.2g})" for name, average, spread in parts}


@final
class Average(UsesTwoServers, tag="average"):
    """Parameters of the averages.

    `servers`: two of the parties, which must not collude with each other or with the coordinator.
    `columns`: whose averages are released; all integer and real columns if none are named.
    `bits`: a number becomes one of 2^bits steps between its column's bounds (a narrow integer column: exact).
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
        """Check what needs no study."""
        if self.servers[0] == self.servers[1]:
            raise ValueError("servers must name two different parties")
        if not 1 <= self.bits <= 24:
            raise ValueError(f"bits ({self.bits}) must be from 1 to 24")
        if len(set(self.columns)) != len(self.columns):
            raise ValueError("columns must be distinct")

    @property
    def simulation_only(self) -> bool:
        """Real parties may run it."""
        return False

    # The parties' side.

    @step(reveals="masked")
    def contribute(self, party: Party, message: PublicKeys) -> TwoShares:
        """Add up this party's fixed-point numbers, charge the whole release, split the sums between the servers."""
        self.two_meet(party, message)
        schema = self.fixed_point(party.terms)
        table = dataclasses.replace(party.table, schema=schema)
        sums, rows = table.sums()
        check_people(party, rows)
        for event in self.spends(party.terms, party.name):
            party.charge(event, why="noisy averages of all parties' rows")
        return self.two_shares(party, np.array(sums, dtype=np.int64))

    # The coordinator's side.

    def coordinate(self, session: Session) -> AveragesResult:
        """Open the noisy sums and divide by the public number of rows."""
        return AveragesResult(averages=self._averages(session.terms, noisy_sum(session, self, self.contribute)))

    def read_result(self, terms: Terms, folder: Path) -> AveragesResult:
        """Read back `averages.json`."""
        del terms
        return AveragesResult(averages=from_file(folder / "averages.json", Averages))

    # What is known before any row is read.

    def fixed_point(self, terms: Terms) -> Schema:
        """Return the averaged columns with a bin for every fixed-point number: a value's code is its number.

        Codes are within the bins whatever the value, so nothing needs to be clipped again after rounding.
        """
        return _fixed_point(terms.schema, self.columns, self.bits)

    def law_of(self, terms: Terms) -> DiscreteLaplace | DiscreteGaussian:
        """Return the noise on each sum: for the smallest budget of all parties, as all share one copy.

        A person at p parties moves the sums p times as far. Laplace: epsilon / p a party. Gaussian: rho / p a party
        and a squared sensitivity p times as large, since rho grows with the square of the distance.
        """
        changes = tuple(_steps(column) for column in self.fixed_point(terms).columns)
        budgets = [budget_of(terms, candidate.name) for candidate in terms.parties]
        epsilon, delta = (min(getattr(budget, name) for budget in budgets) for name in ("epsilon", "delta"))
        make = _laplace if self.noise == "laplace" else _gaussian
        return make(changes, terms.unit.parties, epsilon, delta)

    def bits_of(self, terms: Terms) -> BitNoise:
        """Return the coins of the noise."""
        law = self.law_of(terms)
        return laplace_bits(law.scale) if isinstance(law, DiscreteLaplace) else gaussian_bits(law.sigma_squared)

    def two_servers(self, terms: Terms) -> TwoServers:
        """Return what the servers agree on."""
        columns = self.fixed_point(terms).columns
        largest = (people_of(terms) or 0) * max(_steps(column) for column in columns)
        reach = self.law_of(terms).tail(_OVERFLOW / len(columns))
        return TwoServers(
            servers=self.servers,
            dimension=len(columns),
            ring=ring_for(largest + reach),
            noise=self.bits_of(terms),
        )

    def check(self, terms: Terms) -> None:
        """Refuse what cannot work, with the number it would need."""
        names = [candidate.name for candidate in terms.parties]
        for server in self.servers:
            if server not in names:
                raise InputError(f"servers: '{server}' is not a party of this study; its parties are {names}")
        if terms.unit.neighbours != "replace" or terms.unit.rows != 1:
            raise InputError('averages divide by a public number of rows: set neighbours = "replace" and rows = 1')
        for candidate in terms.parties:
            if candidate.people is None:
                raise InputError(f"party '{candidate.name}': averages need its public size, people")
            if budget_of(terms, candidate.name).delta == 0:
                raise InputError(
                    f"party '{candidate.name}': delta must be above 0: coins of 128 bits make the noise, "
                    f"whose law is off by less than 1e-18"
                )
            if budget_of(terms, candidate.name).epsilon > _LARGEST_EPSILON:
                raise InputError(
                    f"party '{candidate.name}': epsilon must be at most {_LARGEST_EPSILON} with noise made of coins"
                )
        self._check_size(terms)

    def _check_size(self, terms: Terms) -> None:
        try:
            coins = len(self.bits_of(terms).thresholds) * len(self.fixed_point(terms).columns)
        except ValueError as error:
            raise InputError(str(error)) from None
        if coins > _MOST_COINS:
            raise InputError(f"the noise takes {coins:,} coins, more than {_MOST_COINS:,}: use fewer bits or columns")
        check_fits(terms, self.estimate(terms), "use fewer bits", what="a server")

    def spends(self, terms: Terms, party: str) -> tuple[Event, ...]:
        """One release of all sums, and the chance that the noise is not of its law."""
        del party
        law, columns = self.law_of(terms), len(self.fixed_point(terms).columns)
        # off by at most d in total variation under both neighbours: delta = (1 + e^epsilon) d, and e < 3
        epsilon = max(budget_of(terms, candidate.name).epsilon for candidate in terms.parties)
        delta = self.bits_of(terms).distance * columns * (1 + 3 ** math.ceil(epsilon))
        what = f"{self.noise} noise from {WIDTH}-bit coins that nobody knows"
        if isinstance(law, DiscreteLaplace):
            return (ApproximateEvent(epsilon=law.epsilon, delta=delta, what=what),)
        return (
            ConcentratedEvent(rho=law.rho, what=what),
            ApproximateEvent(epsilon=Fraction(1, PICO), delta=delta, what="distance of the coins from the law"),
        )

    def estimate(self, terms: Terms) -> Resources:
        """Bytes and seconds of both servers, from the number of coins."""
        agreed = self.two_servers(terms)
        coins = agreed.coins
        carried, largest = _carried(agreed)
        return Resources(
            memory_bytes=10**8 + 4 * WIDTH * coins.count,
            reply_bytes=largest,
            rounds=5 + gmw.LEVELS,
            seconds=round(1.0 + (people_of(terms) or 0) / 1e6 + coins.count / 2e5, 1),
            notes=(
                f"{coins.count:,} coins of {WIDTH} bits; the servers' messages come to {carried / 1e6:,.2f} MB in all",
                *(
                    f"{name}: standard deviation of the noise {spread:.3g}"
                    for name, spread in zip(self.fixed_point(terms).names, self._spreads(terms), strict=True)
                ),
            ),
        )

    def disclosure(self, terms: Terms) -> Disclosure:
        """State what every role sees."""
        law = self.law_of(terms)
        sees = "the noisy averages"
        bound = (
            f"{law.sensitivity} in l1"
            if isinstance(law, DiscreteLaplace)
            else f"{law.sensitivity_squared / terms.unit.parties} in squared l2"
        )
        return Disclosure(
            sees={
                "coordinator": f"{sees}; masked values, and sealed bits that it cannot read",
                f"servers {' and '.join(self.servers)}": f"{sees}; one share each of everything else",
                "other parties": sees,
                "anyone with the release": sees,
            },
            sensitivity=(
                f"replacing one row at one party changes the fixed-point sums by at most {bound}; a person is at no "
                f"more than {terms.unit.parties} of the parties, and the noise is made for all of them"
            ),
            not_protected=(
                "anything, if the two servers collude, or the coordinator and one server: they can take the noise away",
                "the averages, if a party or server does not follow the steps: it can put in any numbers",
                "the size of each party: it is public under replace",
                "what is true of groups: a pattern that many people share shows, as it should",
            ),
        )

    def _averages(self, terms: Terms, sums: NDArray[np.int64]) -> Averages:
        rows = people_of(terms) or 1
        schema = self.fixed_point(terms)
        found = [
            _start(column) + _width(column) * (float(total) / rows)
            for column, total in zip(schema.columns, sums, strict=True)
        ]
        return Averages(columns=schema.names, averages=tuple(found), standard_deviation=self._spreads(terms), rows=rows)

    def _spreads(self, terms: Terms) -> tuple[float, ...]:
        spread = self.law_of(terms).variance ** 0.5 / (people_of(terms) or 1)
        return tuple(spread * _width(column) for column in self.fixed_point(terms).columns)


@lru_cache(maxsize=16)
def _fixed_point(schema: Schema, columns: tuple[str, ...], bits: int) -> Schema:
    known = {column.name: column for column in schema.columns}
    chosen = [known[name] for name in columns] if set(columns) <= set(known) else schema.select(columns).columns
    found: list[Integer | Real] = []
    for column in chosen or [each for each in schema.columns if isinstance(each, Integer | Real)]:
        if not isinstance(column, Integer | Real):
            raise InputError(f"column '{column.name}' is not a number: averages are of integer and real columns")
        if column.missing == "level":
            raise InputError(f"column '{column.name}': an average needs a value for missing ones, missing.value")
        most = column.upper - column.lower + 1 if isinstance(column, Integer) else 2**bits
        found.append(msgspec.structs.replace(column, bins=min(2**bits, most)))
    if not found:
        raise InputError("the schema has no integer or real column to average")
    return Schema(columns=tuple(found))


@lru_cache(maxsize=16)
def _laplace(changes: tuple[int, ...], parties: int, epsilon: Fraction, delta: Fraction) -> DiscreteLaplace:
    del delta
    # a column with one possible value changes nothing, but noise of scale 0 does not exist
    return DiscreteLaplace(sensitivity=max(1, sum(changes)), epsilon=_floor(epsilon / parties))


@lru_cache(maxsize=16)
def _gaussian(changes: tuple[int, ...], parties: int, epsilon: Fraction, delta: Fraction) -> DiscreteGaussian:
    # what the coins' distance from the law costs is charged beside it
    rho = rho_for(epsilon - Fraction(parties, PICO), delta - Fraction(parties, ATTO)) / parties
    square = Fraction(max(1, parties * sum(change**2 for change in changes)))
    return DiscreteGaussian(sensitivity_squared=square, rho=_floor(rho))


def _carried(agreed: TwoServers) -> tuple[int, int]:
    """Return the bytes of all messages from and to the servers, and of the largest one."""
    coins = agreed.coins
    told = [8 * gmw.rows_at(level) * coins.words + OVERHEAD_BYTES for level in range(1, gmw.LEVELS + 2)]
    corrections = 8 * gmw.correction_words(coins) + agreed.ring.packed_bytes(coins.count)
    # both servers tell, and what they tell is carried over two hops
    return 4 * sum(told) + corrections, max(*told, corrections, agreed.ring.packed_bytes(agreed.dimension)) + 256


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


def _floor(value: Fraction) -> Fraction:
    """Round down to what the ledger counts in, so that shares of a budget never add up to more than it."""
    return Fraction(math.floor(value * PICO), PICO)
