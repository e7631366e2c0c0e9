"""The plan of VertiMRF: which columns are encoded in which bins, the noise of each part, and who sees what."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import sqrt
from typing import Final, Literal, final

from syndic.kernel import ALIGNED, GROUPS, Disclosure, Plan, Resources, Terms
from syndic.methods.synthesis.size import BASE_BYTES, CELL_BYTES, VALUE_BYTES
from syndic.methods.vertimrf.model.tables import OracleTables, equal_width
from syndic.methods.vertimrf.sketch.cost import sketch_delta
from syndic.methods.vertimrf.sketch.encode import SketchPlan
from syndic.methods.vertimrf.sketch.estimate import cell_error
from syndic.model.selection import Grouping
from syndic.mpc.secret import SharedSecret
from syndic.noise import DiscreteLaplace, FineGaussian
from syndic.noise.response import RandomisedResponse
from syndic.privacy import Budget, Cost, Event

Names = tuple[str, ...]

# Seconds of one hash of one person, on one core, and of one randomised response.
_HASH_SECONDS, _RESPONSE_SECONDS = 3.5e-9, 1e-7
# Of the accountant's grid, for the true delta of published sketches.
_POINTS: Final = 2**18


@final
@dataclass(frozen=True, kw_only=True)
class Layout:
    """Columns by party, bins by column, and what is encoded.

    `coded`: columns with two or more bins; others carry no information. `large`: columns with more values than bins.
    `pairs`: pairs of coded columns whose tables are estimated: of different parties, or all if parties have no models.
    """

    people: int
    neighbours: Literal["add_remove", "replace"]
    grouping: Grouping
    held: Mapping[str, Names]
    coded: Names
    large: Names
    pairs: tuple[Names, ...]

    @cached_property
    def bins(self) -> dict[str, int]:
        """How many bins every column has."""
        domain = self.grouping.domain_of_groups
        return dict(zip(domain.names, domain.sizes, strict=True))

    @property
    def sketches(self) -> int:
        """The number of sketches in the union of the widest table across parties."""
        return max((sum(self.bins[name] - 1 for name in names) for names in self.pairs), default=1)

    def coded_of(self, party: str) -> Names:
        """Return a party's encoded columns, in the schema's order."""
        return tuple(name for name in self.coded if name in self.held[party])

    def large_of(self, party: str) -> Names:
        """Return a party's columns with more values than bins, in the schema's order."""
        return tuple(name for name in self.large if name in self.held[party])


def layout_of(terms: Terms, bins: int, *, local_models: bool) -> Layout:
    """Return the layout of the study's columns."""
    domain = terms.schema.domain
    grouping = equal_width(domain, bins)
    held = {
        party.name: tuple(name for name in domain.names if name in (party.columns or ())) for party in terms.parties
    }
    home = {name: party for party, columns in held.items() for name in columns}
    coded = tuple(name for name in domain.names if grouping.domain_of_groups[name] > 1)
    return Layout(
        people=terms.parties[0].people or 1,
        neighbours=terms.unit.neighbours,
        grouping=grouping,
        held=held,
        coded=coded,
        large=tuple(name for name in domain.names if domain[name] > bins),
        pairs=tuple(pair for pair in combinations(coded, 2) if not local_models or home[pair[0]] != home[pair[1]]),
    )


@final
@dataclass(frozen=True, kw_only=True)
class Account:
    """Noise and events, the same for every party. `local` has the mu^2 of each party's own model.

    `learned` is charged before local models, numbers and counts are made, `encoded` before encodings are. `claim` is
    the paper's claim for the encodings, if its noise is used.
    """

    local: Mapping[str, Fraction]
    learned: tuple[Event, ...]
    encoded: Event
    counts: FineGaussian | DiscreteLaplace | None = None
    number: DiscreteLaplace | None = None
    sketches: SketchPlan | None = None
    responses: Mapping[str, RandomisedResponse] = field(default_factory=dict)
    claim: Budget | None = None

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that every party is charged."""
        return (*self.learned, self.encoded)


@final
class VertimrfPlan(Plan):
    """What is encoded and what it costs; `secret` is the parties' secret for the keys of sketches, if there are any."""

    layout: Layout
    account: Account
    secret: SharedSecret
    bins: int
    rows: int
    local_cells: int
    model_cells: int

    @property
    def one_key(self) -> bool:
        """Whether all columns are sketched under one key, as published."""
        return self.account.claim is not None

    def sketched_of(self, party: str) -> tuple[tuple[Names, Names], ...]:
        """Return, for each of a party's sketch keys, the key's pair of columns (or ()) and the party's columns."""
        own = self.layout.coded_of(party)
        parts = (
            [((), own)]
            if self.one_key
            else [(names, tuple(name for name in names if name in own)) for names in self.layout.pairs]
        )
        return tuple((names, part) for names, part in parts if part)

    @property
    def rounds(self) -> tuple[str, ...]:
        """A shared secret for sketches, models and counts if there are any, encodings."""
        learn = ("learn",) if self.account.learned else ()
        return (*learn, "respond") if self.account.sketches is None else (*self.secret.rounds, *learn, "sketch")

    def events(self, party: str) -> tuple[Event, ...]:
        """Models and counts of all parties together, and encodings of all parties together."""
        self.check_party(party)
        return self.account.events

    @property
    def cell_deviation(self) -> float:
        """The standard deviation of a cell of the widest table across parties, before it is made consistent."""
        layout, sketches = self.layout, self.account.sketches
        if sketches is not None:
            return cell_error(sketches, people=layout.people, sketches=layout.sketches)
        widest = max(layout.pairs, key=lambda names: sum(layout.bins[name] for name in names))
        return sqrt(layout.people * OracleTables(responses=self.account.responses, codes={}).factor(widest))

    @cached_property
    def resources(self) -> Resources:
        """Memory at the busiest role, bytes of the largest reply, and about how long it takes."""
        sketches, people, columns = self.account.sketches, self.layout.people, len(self.terms.schema.columns)
        encoded = max(map(self._encoded_bytes, self.layout.held))
        keys = 1 if self.one_key else len(self.layout.pairs)
        hashes = 0 if sketches is None else people * sketches.repetitions
        seconds = 2.0 + 2 * keys * hashes * _HASH_SECONDS + columns * people * _RESPONSE_SECONDS
        notes: tuple[str, ...] = (
            f"standard deviation about {self.cell_deviation:,.0f} on a cell of a table across parties, {self.bins} "
            f"bins per column, where a mean cell has {people / self.bins**2:,.0f}",
            'the method "synthesis" gets the same tables by secure products with much less noise, also against parties',
        )
        if sketches is not None:
            shape = f"{sketches.repetitions:,} repetitions, {sketches.phantoms:,} phantoms, cap {sketches.top}"
            notes = (f"{keys} key(s), {shape}", *notes)
        return Resources(
            memory_bytes=BASE_BYTES + CELL_BYTES * self.model_cells + VALUE_BYTES * self.rows * columns + 4 * encoded,
            reply_bytes=encoded + 8 * self.local_cells,
            rounds=len(self.rounds),
            seconds=round(seconds + 1e-5 * self.model_cells, 1),
            notes=notes,
        )

    too_large = ("a run", "lower model_cells, bins or repetitions, or set larger limits")

    def _encoded_bytes(self, party: str) -> int:
        layout, sketches = self.layout, self.account.sketches
        if sketches is None:
            return layout.people * len(layout.coded_of(party))
        names = [name for _, part in self.sketched_of(party) for name in part]
        return 2 * sketches.repetitions * sum(layout.bins[name] for name in names)

    @cached_property
    def disclosure(self) -> Disclosure:
        """What every role sees."""
        release = "the model fitted to the parties' models and encodings, the tables read from them, and the rows"
        parts = (
            ("each party's own noisy model, ", bool(self.account.local)),
            ("noisy counts of the values of large columns, ", self.account.counts is not None),
            ("the first party's noisy number of people, ", self.account.number is not None),
        )
        learned = "".join(words for words, there in parts if there)
        encodings, coordinator, parties = "every person's randomised codes", "", ""
        keys: tuple[str, ...] = ()
        if self.account.sketches is not None:
            encodings = "sketches of every encoded column"
            coordinator, parties = "; it has none of the keys", "; they have the keys of the sketches"
            keys = (
                "against the parties sketches guarantee nothing: each party has the keys, with which the absence of a "
                "person from a value can often be proven, and sees the results of the others' sketches",
                "against a party that gives the keys to the coordinator, or to anybody with the sketches",
            )
        return Disclosure(
            sees={
                "coordinator": f"{learned}{encodings}, and {release}{coordinator}",
                "other parties": f"{release}{parties}",
                "anyone with the release": release,
            },
            sensitivity=self._sensitivity(),
            not_protected=(
                *keys,
                ALIGNED,
                GROUPS,
                "the columns, bounds, labels, bins and the number of people: they are public",
            ),
            departures=() if self.account.claim is None else self._departures(self.account.claim),
        )

    def _sensitivity(self) -> str:
        layout, words = self.layout, ""
        if self.account.local:
            words += (
                "replacing one person's values at all parties at once changes two counts by one in every table that a "
                "local model is fitted to, R-scores by at most 3 and distances by at most 2; "
            )
        if self.account.counts is not None:
            words += f"it changes two counts by one in each of {len(layout.large)} columns whose values are counted; "
        if self.account.sketches is None:
            words += f"it changes one code in each of {len(layout.coded)} columns, each of which is answered once"
        elif self.one_key:
            words += f"a person has one rank under the one key, in one value of each of {len(layout.coded)} columns"
        else:
            words += (
                f"under each of {len(layout.pairs)} keys, one for each pair of columns, a person has one rank, in one "
                "value of each of the two columns, and no sketch shows a rank above the cap"
            )
        return f"{words}; every party is charged for all parties together"

    def _departures(self, claim: Budget) -> tuple[str, ...]:
        columns, sketches = len(self.layout.coded), self.account.sketches
        models = "parties' own models get the noise that their part needs; the authors' program adds less"
        if sketches is None:
            each = next(iter(self.account.responses.values())).epsilon
            # the paper gives encodings half of delta
            whole = Cost.of(self.account.events).epsilon(2 * claim.delta)
            return (
                models,
                f"the paper claims epsilon {float(claim.epsilon):.4g} for the responses; {columns} codes per person at "
                f"{float(each):.4g} each cost {float(columns * each):.4g}, and the whole release costs epsilon "
                f"{float(whole):.4g}",
            )
        # under add/remove, as in the paper
        true = sketch_delta(sketches, columns=columns, epsilon=float(claim.epsilon), points=_POINTS)
        return (
            models,
            f"the paper claims epsilon {float(claim.epsilon):.4g} with delta {float(claim.delta):.3g} for sketches; "
            f"with one key for {columns} columns the true delta there is {true.lower:.3g} to {true.upper:.3g}",
            "the published decoder uses the harmonic mean of ranks, which makes every cell 0: the most likely number "
            "of people is used instead",
        )
