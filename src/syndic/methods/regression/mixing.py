"""Noisy columns of a vertical study for linear regression (Wu et al., UAI 2022): RMGM, DGM and BGM.

*Neighbours*: one person's values are replaced, at all parties at once; who is in and how many are public. *Method*:
every party codes its columns as whole numbers of at most 2^bits by public bounds. DGM and BGM: it adds Gaussian noise
to every entry and publishes. RMGM: it first multiplies by k x n signs, the same for all parties, and publishes k noisy
rows. Afterwards any column may be the label.

*Sensitivity*: a person's row z becomes w. The row itself moves by |z - w|; mixed, each of k rows moves by the same
vector up to sign, so by sqrt(k) |z - w| for whatever signs. So the signs may be public, and are tossed only to be of
nobody's choosing. Over all parties |z - w|^2 is at most 4 for each number and 2 for each list of values: one noise for
all entries, made for that sum; each party's ledger is charged the part of mu^2 that its own columns have in it.

*Who sees what*: everybody the noisy rows and the signs. Nobody needs to be trusted.

`as_printed` is the paper's own noise, made for each party as if a person were at that party alone: simulation only.
"""

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
    member,
    schema_of,
    step,
    steps_of,
)
from syndic.methods.refusals import check_fits, check_people
from syndic.methods.regression.mixing_layout import FINE, Bounds, Layout, Scheme, budgets_of, layout_of
from syndic.methods.regression.mixing_result import MixedNote, MixedResult, read_mixed
from syndic.methods.regression.mixing_words import words
from syndic.methods.synthesis.vertical_requirements import check_columns_apart
from syndic.model.gram.mixing import Mixer, Stream, tile_of
from syndic.mpc.key import context
from syndic.mpc.mask import stream
from syndic.mpc.toss import Toss, UsesToss, public_toss, toss_of, tossed
from syndic.privacy import Event

_LABEL = "signs"
# of one entry at a party: as read, as released, and while its noise is drawn
_ENTRY_BYTES = 128


class NoisyRows(Message):
    """A party's noisy columns: rows of people, or mixed rows."""

    values: NDArray[np.int64]


@final
class Mixing(UsesToss, tag="mixing"):
    """Parameters of the noisy columns.

    `scheme`: "rmgm" mixes rows, "dgm" and "bgm" do not; the last two differ in what is done afterwards. `mixes`: how
    many mixed rows; by default from public numbers. `bits`: a feature is a whole number of at most 2^bits. `bounds`:
    whether regressions as printed are of values in [-1, 1] ("symmetric") or [0, 1] ("unit").
    """

    title: ClassVar[str] = "Noisy columns for linear regression"
    paper: ClassVar[str] = "Wu et al., Differentially private multi-party data release for linear regression, UAI 2022"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "vertical"
    trust: ClassVar[str] = "nobody: each party adds all the noise that its own columns need"

    scheme: Scheme = "rmgm"
    mixes: int | None = None
    bits: int = 10
    bounds: Bounds = "symmetric"
    as_printed: bool = False

    def __post_init__(self) -> None:
        if self.mixes is not None and (self.mixes < 1 or self.scheme != "rmgm"):
            raise ValueError(f'mixes ({self.mixes}) must be at least 1, and goes with scheme = "rmgm" only')
        if not 4 <= self.bits <= 16:
            raise ValueError(f"bits ({self.bits}) must be from 4 to 16")

    @property
    def simulation_only(self) -> bool:
        """The printed noise is made for each party by itself: it does not keep its promise for a person."""
        return self.as_printed

    # The parties' side; the toss comes first where rows are mixed.

    @step(reveals="noisy")
    def mix(self, party: Party, message: Toss) -> NoisyRows:
        """Multiply the columns by the tossed signs and add noise to every entry."""
        if message.label != _LABEL:
            raise RefusedError(f"signs are tossed under the label '{_LABEL}' and under no other")
        layout = self.layout(party.terms)
        mixer = Mixer(
            mixes=layout.mixes or 1,
            width=layout.width(party.name),
            bits=self.bits,
            stream=signs_of(toss_of(party, message)),
        )
        for coded in party.table.batches(schema_of(party.terms, party.name).names):
            mixer.add(layout.rows(party.name, coded))
        check_people(party, mixer.people)
        noise = layout.noises[party.name]
        return NoisyRows(values=party.release(noise, mixer.total(), why="noisy mixed columns"))

    @step(reveals="noisy")
    def publish(self, party: Party, message: Nothing) -> NoisyRows:
        """Add noise to every entry of the columns."""
        del message
        layout = self.layout(party.terms)
        batches = party.table.batches(schema_of(party.terms, party.name).names)
        rows = [np.zeros((0, layout.width(party.name)), dtype=np.int64)]
        rows += [layout.rows(party.name, coded).astype(np.int64) for coded in batches]
        values = np.concatenate(rows)
        check_people(party, len(values))
        return NoisyRows(values=party.release(layout.noises[party.name], values, why="noisy columns"))

    def asked(self, terms: Terms) -> tuple[str, ...]:
        """Return the toss and the mixing, or the one noisy answer."""
        mixing = {"mix", *steps_of(UsesToss)} - {"ready"}
        unused = {"publish"} if self.scheme == "rmgm" else mixing
        return tuple(name for name in super().asked(terms) if name not in unused)

    # The coordinator's side.

    def coordinate(self, session: Session) -> MixedResult:
        """Let the parties toss, collect noisy columns, and put them side by side."""
        layout = self.layout(session.terms)
        people = session.terms.parties[0].people or 0
        seed = b""
        if layout.mixes is None:
            answers = session.ask(self.publish, Nothing())
            ones = np.ones(people, dtype=np.int64)
        else:
            toss = public_toss(session, self, label=_LABEL)
            seed = tossed(toss, study=session.study)
            answers = session.ask(self.mix, toss)
            ones = mixed_ones(seed, people=people, mixes=layout.mixes, bits=self.bits)
        for name, answer in answers.items():
            if answer.values.shape != (len(ones), layout.width(name)):
                raise RefusedError(f"{name} sent a table of another shape than the study says")
        numbers = np.concatenate([answers[name].values for name in session.parties], axis=1)
        note = self._note(session.terms, seed.hex())
        return MixedResult(note=note, numbers=numbers, ones=ones << note.fraction_bits)

    def read_result(self, terms: Terms, folder: Path) -> MixedResult:
        """Read back `mixed.parquet` and `mixed.json`."""
        found = read_mixed(folder)
        if found.note != self._note(terms, found.note.seed):
            raise InputError(f"{folder.name}: mixed.json is not of this study")
        return found

    # What is known before any row is read.

    def layout(self, terms: Terms) -> Layout:
        """Return the features, the number of mixes and the noise."""
        options = {name: getattr(self, name) for name in self.__struct_fields__}
        return layout_of(terms, **options)  # type: ignore[arg-type]  # a study is frozen, so it can be a key

    def check(self, terms: Terms) -> None:
        """Refuse what cannot work, with what to change."""
        unit = terms.unit
        if unit.neighbours != "replace" or unit.rows != 1 or unit.parties != len(terms.parties):
            raise InputError(
                'a person is a row at every party, and aligned rows show who is in: set unit.neighbours = "replace", '
                f"rows = 1 and parties = {len(terms.parties)}"
            )
        check_columns_apart(terms)
        if any(budget.delta == 0 for budget in budgets_of(terms)):
            raise InputError("Gaussian noise needs delta above 0: set it in every budget")
        check_fits(terms, self.estimate(terms), "use fewer columns or mixes, or set larger limits")

    def spends(self, terms: Terms, party: str) -> tuple[Event, ...]:
        """One release of the party's own columns: its part of what the whole costs a person."""
        member(terms, party)
        return (self.layout(terms).noises[party].event,)

    def estimate(self, terms: Terms) -> Resources:
        """Bytes of the largest reply, memory, and time for the signs and the noise."""
        layout = self.layout(terms)
        people, widest = terms.parties[0].people or 0, max(layout.width(party.name) for party in terms.parties)
        rows, every = layout.mixes or people, len(layout.features)
        signs = people * (layout.mixes or 0)
        tile = rows * tile_of(self.bits) // 8 if layout.mixes else 0
        return Resources(
            memory_bytes=10**8 + 2 * tile + rows * max(_ENTRY_BYTES * widest, 16 * every),
            reply_bytes=8 * rows * widest + 1000,
            rounds=4 if layout.mixes else 2,
            seconds=round(1.0 + signs * (5e-10 + 1e-10 * widest) + rows * widest * 5e-7 + people * widest * 1e-7, 1),
            notes=(
                f"{rows:,} noisy rows of {every} features; standard deviation {layout.tau:.4g} on every entry, for "
                "values in [-1, 1]",
                'the method "gram" publishes what regressions need with far less noise, if no party colludes with the '
                "coordinator",
            ),
        )

    def disclosure(self, terms: Terms) -> Disclosure:
        """State what every role sees."""
        return words(terms, self.layout(terms), scheme=self.scheme, bounds=self.bounds, as_printed=self.as_printed)

    def _note(self, terms: Terms, seed: str) -> MixedNote:
        layout = self.layout(terms)
        return MixedNote(
            scheme=self.scheme,
            people=terms.parties[0].people or 0,
            mixes=layout.mixes,
            fraction_bits=self.bits + FINE,
            bounds=self.bounds,
            tau=layout.tau,
            seed=seed,
            features=layout.features,
        )


def signs_of(seed: bytes) -> Stream:
    """Return the stream of signs that belongs to tossed bytes: ChaCha20, a context for every tile of people."""
    return lambda tile, length: stream(seed, context("signs", tile), length)


def mixed_ones(seed: bytes, *, people: int, mixes: int, bits: int) -> NDArray[np.int64]:
    """Return the signs times a column of ones; `bits` says how long tiles of people are. Public: no row is in it."""
    mixer = Mixer(mixes=mixes, width=1, bits=bits, stream=signs_of(seed))
    left = people
    while left:
        batch = min(left, 1 << 16)
        mixer.add(np.ones((batch, 1), dtype=np.int32))
        left -= batch
    return mixer.total()[:, 0]
