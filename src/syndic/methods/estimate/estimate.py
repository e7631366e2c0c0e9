"""Parameters of a law from distributed sources (Chen and Sung): CSaA, DSaA, CSSA, DSSA, and one noise for all.

DSSA: every party adds up a sufficient statistic, clipped to public bounds, and adds noise; the mean gives the
maximum likelihood estimate. DSaA: every party averages bias-corrected estimates of blocks of rows and adds noise.
"masked": the statistics of DSSA under masks, with one noise for the sum over all parties.

*Neighbours*: one row is replaced, at each of up to `unit.parties` parties; under add/remove a party draws as many rows
as the study says, so that a person more or less replaces one of them. *Cost*: one release, of this party's sums or of
the sum over all. *Who sees what*: everybody sees the noisy sums, of each party or under masks of all together.
Sensitivity and trust: `disclosure`.

Sound by default: whole numbers with exact integer noise, the exact diameter of what a row can add (l1 or l2, as the
noise needs), block estimates moved into the public set after correction, blocks drawn without looking at the rows.
`as_printed` is the paper's own noise, for simulation.
"""

import dataclasses
from pathlib import Path
from typing import ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError, RefusedError
from syndic.kernel import (
    Disclosure,
    Message,
    Nothing,
    Party,
    Resources,
    Session,
    Terms,
    budget_of,
    member,
    people_of,
    step,
    steps_of,
)
from syndic.methods.estimate.disclosure import listed, printed_words, words
from syndic.methods.estimate.layout import Layout
from syndic.methods.estimate.requirements import EstimationTerms
from syndic.methods.estimate.result import (
    Estimates,
    EstimatesResult,
    Found,
    NoisyMean,
    found,
    members_of,
    read_estimates,
)
from syndic.methods.refusals import check_people
from syndic.model.families.estimate import block_estimates, blocks_of
from syndic.mpc.masked import BOX_BYTES
from syndic.mpc.sum import SumInbox, SumMasked, UsesMaskedSum, masked_sum
from syndic.privacy import Event
from syndic.random import generator

_LABEL = "statistics"


class NoisySums(Message):
    """One party's noisy sums, in steps: of statistics over rows, or of estimates over blocks."""

    values: NDArray[np.int64]


@final
class Estimation(EstimationTerms, tag="estimate"):
    """Parameters of the estimates.

    `column`, `family`: what is estimated. `scheme`: see the module. `least`, `most`: the public set of parameters.
    `blocks`: for block schemes, by default the best number for each party's public size. `bits`: a value becomes
    one of 2^bits between its bounds (fewer whole numbers stay exact). `colluding`, `missing`: for "masked".
    """

    title: ClassVar[str] = "Private estimates from distributed sources"
    paper: ClassVar[str] = "Chen and Sung, Differentially private parameter estimation from distributed sources"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "horizontal"
    trust: ClassVar[str] = (
        'nobody: each party trusts only itself. With scheme = "masked", semi-honest: parties follow the steps, and no '
        "more of them than stated pool what they know"
    )

    # The parties' side.

    @step(reveals="noisy")
    def answer(self, party: Party, message: Nothing) -> NoisySums:
        """Add up statistics of rows or estimates of blocks, in whole steps, and add noise."""
        del message
        layout, codes = self.layout_of(party.terms), self._codes(party)
        sums = self._block_sums(party, layout, codes) if self.in_blocks else layout.sums(codes)
        law = self.law_of(party.terms, party.name)
        return NoisySums(values=party.release(law, sums, why=f"noisy sums for an estimate by {self.scheme}"))

    @step(reveals="masked")
    def add(self, party: Party, message: SumInbox) -> SumMasked:
        """Add up statistics of rows in whole steps, add this party's share of the noise, and mask the result."""
        if message.label != _LABEL:
            raise RefusedError(f"statistics are summed under the label '{_LABEL}' and under no other")
        layout, ring = self.layout_of(party.terms), self.ring_of(party.terms)
        masks = self.sum_masks(party, message, layout.dimension, ring)
        sums = layout.sums(self._codes(party))
        noisy = party.contribute(self.share_of(party.terms), sums, why="noisy statistics, one sum over all parties")
        return self.sum_masked(noisy, masks, ring)

    def _codes(self, party: Party) -> NDArray[np.int64]:
        """Return the fine codes of as many rows as the study says.

        Sizes are public under `replace`, so a wrong one may be said aloud. Under `add_remove` it is a least size: so
        many rows are drawn, and lacking ones stand in the middle. One person more or less then replaces one row, or
        none, for every outcome of the draw that goes with the same outcome without them.
        """
        table = dataclasses.replace(party.table, schema=self.layout_of(party.terms).schema)
        batches = [batch[self.column].astype(np.int64) for batch in table.batches()]
        codes = np.concatenate(batches) if batches else np.zeros(0, dtype=np.int64)
        if party.terms.unit.neighbours == "add_remove":
            people = member(party.terms, party.name).people or 0
            return _exactly(people, codes, self.layout_of(party.terms), party)
        check_people(party, len(codes))
        return codes

    def _block_sums(self, party: Party, layout: Layout, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        blocks = self.blocks_at(party.terms, party.name)
        block = blocks_of(len(codes), blocks)
        if not self.as_printed:
            # rows sorted by value would let one row move all others to other blocks
            block = generator(party.key_randomness("blocks")).permutation(block)
        estimates = block_estimates(layout.model, layout.statistics(codes), block, blocks, self.correction)
        steps = layout.loose_steps(estimates) if self.as_printed else layout.block_steps(estimates)
        return np.asarray(steps.sum(axis=0))

    def asked(self, terms: Terms) -> tuple[str, ...]:
        """Return the steps of a masked sum, or without masks the one noisy answer."""
        unused = {"answer"} if self.scheme == "masked" else {"add", *steps_of(UsesMaskedSum)} - {"ready"}
        return tuple(name for name in super().asked(terms) if name not in unused)

    # The coordinator's side.

    def coordinate(self, session: Session) -> EstimatesResult:
        """Collect noisy sums, or open one sum over all parties, and estimate."""
        terms, layout = session.terms, self.layout_of(session.terms)
        if self.scheme == "masked":
            ring = self.ring_of(terms)
            total = masked_sum(session, self, self.add, label=_LABEL, count=layout.dimension, ring=ring)
            present, means = total.present, {"all": self.noisy_total(terms, total.present, total.values)}
        else:
            answers = session.ask(self.answer, Nothing())
            present, means = (
                tuple(answers),
                {name: self.noisy_mean(terms, name, answer.values) for name, answer in answers.items()},
            )
        alone = {name: (name,) for name in means} if len(means) > 1 else {}
        named = {**alone, **members_of(self.groups, present)}
        return EstimatesResult(
            estimates=Estimates(
                column=self.column,
                family=str(self.family.__struct_config__.tag),
                scheme=self.scheme,
                parameters=layout.model.family.parameters,
                confidence=self.confidence,
                present=present,
                together=self._found("all", terms, tuple(means.values())),
                groups=tuple(
                    self._found(name, terms, tuple(means[each] for each in names)) for name, names in named.items()
                ),
            )
        )

    def _found(self, name: str, terms: Terms, means: tuple[NoisyMean, ...]) -> Found:
        people = sum(one.people for one in means)
        return found(name, people, self.combined(terms, means), self.layout_of(terms).model, self.confidence)

    def read_result(self, terms: Terms, folder: Path) -> EstimatesResult:
        """Read back `estimates.json`."""
        del terms
        return read_estimates(folder)

    # What is known before any row is read; noise and sizes are those of `EstimationTerms`.

    def check(self, terms: Terms) -> None:
        """Refuse what cannot work, with what it would need."""
        if terms.unit.rows != 1:
            raise InputError("means divide by a public number of rows, that of people: set rows = 1")
        if terms.unit.neighbours == "add_remove" and self.as_printed:
            raise InputError('the printed noise is for public sizes: set neighbours = "replace"')
        for party in terms.parties:
            if party.people is None:
                raise InputError(f"party '{party.name}': an estimate needs its public size, people")
            if party.columns is not None:
                raise InputError(f"party '{party.name}': every party holds the column here; leave columns out")
            if self.noise == "gaussian" and budget_of(terms, party.name).delta == 0:
                raise InputError(f"party '{party.name}': gaussian noise needs delta above 0; set it or use laplace")
        if self.scheme in ("cssa", "csaa") and len(terms.parties) > 1:
            raise InputError(f'scheme "{self.scheme}" is for one party: use "d{self.scheme[1:]}" for several')
        if self.in_blocks and self.family.unbounded and not (self.least and self.most):
            raise InputError("block estimates of this family have no natural bounds: set least and most")
        members_of(self.groups, [party.name for party in terms.parties])
        self.layout_of(terms)
        self._check_masks(terms)
        needed, limits = self.estimate(terms), terms.limits
        if needed.memory_bytes > limits.memory_mb * 10**6:
            raise InputError(
                f"the largest party needs about {needed.memory_bytes / 1e6:,.0f} MB of memory (limit "
                f"{limits.memory_mb}): raise memory_mb"
            )

    def _check_masks(self, terms: Terms) -> None:
        if self.scheme == "masked":
            self.sum_plan(terms)
            try:
                self.ring_of(terms)
            except ValueError as error:
                raise InputError(f"the noise shares cannot be made: {error}") from None

    def spends(self, terms: Terms, party: str) -> tuple[Event, ...]:
        """One release: of this party's sums, or of the sum over all parties, for which each is charged whole."""
        member(terms, party)
        return ((self.share_of(terms) if self.scheme == "masked" else self.law_of(terms, party)).event,)

    def estimate(self, terms: Terms) -> Resources:
        """Memory for one column's codes and statistics, time for reading them, and how much noise to expect."""
        largest = max(party.people or 0 for party in terms.parties)
        layout = self.layout_of(terms)
        masked = self.scheme == "masked"
        reply = self.sum_plan(terms).neighbours * BOX_BYTES + 256 if masked else 8 * layout.dimension + 64
        return Resources(
            memory_bytes=10**8 + largest * (16 + (48 * layout.dimension if self.in_blocks else 0)),
            reply_bytes=reply,
            rounds=5 if masked else 2,
            seconds=round(1.0 + (people_of(terms) or 0) / 1e6, 1),
            notes=self._notes(terms),
        )

    def _notes(self, terms: Terms) -> tuple[str, ...]:
        nothing = np.zeros(self.layout_of(terms).dimension, dtype=np.int64)
        if self.scheme == "masked":
            total = self.noisy_total(terms, tuple(party.name for party in terms.parties), nothing)
            return (f"standard deviation of the noise on the mean statistic: {listed(total.noise**0.5)}",)
        notes = []
        for party in terms.parties:
            one = self.noisy_mean(terms, party.name, nothing)
            what = f"{self.blocks_at(terms, party.name)} blocks, noise" if self.in_blocks else "noise"
            notes.append(f"{party.name}: {what} of standard deviation {listed(one.noise**0.5)} on its mean")
        return tuple(notes)

    def disclosure(self, terms: Terms) -> Disclosure:
        """State what every role sees."""
        return words(self.scheme, self.layout_of(terms), terms.unit, departures=self._departures(terms))

    def _departures(self, terms: Terms) -> tuple[str, ...]:
        if not self.as_printed:
            return ()
        factors = [
            self.printed_of(terms, party.name).event.epsilon / budget_of(terms, party.name).epsilon
            for party in terms.parties
        ]
        return printed_words(self.in_blocks, float(max(factors)) * terms.unit.parties)


def _exactly(people: int, codes: NDArray[np.int64], layout: Layout, party: Party) -> NDArray[np.int64]:
    """Return so many rows' codes: drawn where there are more, with the middle code in place of lacking ones."""
    if len(codes) >= people:
        return generator(party.key_randomness("people")).permutation(codes)[:people]
    return np.concatenate([codes, np.full(people - len(codes), len(layout.steps) // 2, dtype=np.int64)])
