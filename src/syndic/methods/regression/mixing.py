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

`as_published` is the paper's own noise, made for each party as if a person were at that party alone: simulation only.
"""

from pathlib import Path
from typing import ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError, RefusedError
from syndic.kernel import Message, Method, Nothing, Party, Requires, Session, Terms, schema_of, step
from syndic.methods.refusals import check_people
from syndic.methods.regression.mixing_plan import MixingPlan, plan_mixing
from syndic.methods.regression.mixing_result import Bounds, MixedResult, Scheme, read_mixed
from syndic.model.gram.mixing import Mixer, Stream
from syndic.mpc.key import context
from syndic.mpc.mask import stream
from syndic.mpc.toss import Toss, tossed


class NoisyRows(Message):
    """A party's noisy columns: rows of people, or mixed rows."""

    values: NDArray[np.int64]


@final
class Mixing(Method, tag="mixing"):
    """Parameters of the noisy columns.

    `scheme`: "rmgm" mixes rows, "dgm" and "bgm" do not; the last two differ in what is done afterwards. `mixes`: how
    many mixed rows; by default from public numbers. `bits`: a feature is a whole number of at most 2^bits. `bounds`:
    whether regressions as published are of values in [-1, 1] ("symmetric") or [0, 1] ("unit").
    """

    title: ClassVar[str] = "Noisy columns for linear regression"
    paper: ClassVar[str] = "Wu et al., Differentially private multi-party data release for linear regression, UAI 2022"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "vertical"
    trust: ClassVar[str] = "nobody: each party adds all the noise that its own columns need"

    scheme: Scheme = "rmgm"
    mixes: int | None = None
    bits: int = 10
    bounds: Bounds = "symmetric"
    as_published: bool = False

    def __post_init__(self) -> None:
        if self.mixes is not None and (self.mixes < 1 or self.scheme != "rmgm"):
            raise ValueError(f'mixes ({self.mixes}) must be at least 1, and goes with scheme = "rmgm" only')
        if not 4 <= self.bits <= 16:
            raise ValueError(f"bits ({self.bits}) must be from 4 to 16")

    @property
    def simulation_only(self) -> bool:
        """The printed noise is made for each party by itself: it does not keep its promise for a person."""
        return self.as_published

    @property
    def requires(self) -> Requires:
        """The same people at every party, each with columns of its own; `plan` compares the unit's parties."""
        return Requires(
            people="same",
            columns="apart",
            delta="Gaussian noise",
            neighbours="replace",
            rows=1,
            because="a person is a row at every party, and aligned rows show who is in",
            least_parties=2,
        )

    def plan(self, terms: Terms) -> MixingPlan:
        """Choose the features, the number of mixes and the noise."""
        if terms.unit.parties != len(terms.parties):
            raise InputError(f"a person is a row at every party: set parties = {len(terms.parties)} in [unit]")
        return plan_mixing(
            terms,
            scheme=self.scheme,
            mixes=self.mixes,
            bits=self.bits,
            bounds=self.bounds,
            as_published=self.as_published,
        )

    @step(reveals="noisy")
    def mix(self, party: Party[MixingPlan], message: Toss) -> NoisyRows:
        """Multiply the columns by the tossed signs and add noise to every entry."""
        plan = party.plan
        signs = signs_of(plan.toss.check(party, message))
        mixer = Mixer(mixes=plan.mixes or 1, width=plan.width(party.name), bits=self.bits, stream=signs)
        for coded in party.table.batches(schema_of(party.terms, party.name).names):
            mixer.add(plan.rows(party.name, coded))
        check_people(party, mixer.people)
        noisy = party.release(plan.noise[party.name], mixer.total(), why="noisy mixed columns")
        return NoisyRows(values=noisy)

    @step(reveals="noisy")
    def publish(self, party: Party[MixingPlan], message: Nothing) -> NoisyRows:
        """Add noise to every entry of the columns."""
        del message
        plan = party.plan
        batches = party.table.batches(schema_of(party.terms, party.name).names)
        rows = [np.zeros((0, plan.width(party.name)), dtype=np.int64)]
        rows += [plan.rows(party.name, coded).astype(np.int64) for coded in batches]
        values = np.concatenate(rows)
        check_people(party, len(values))
        return NoisyRows(values=party.release(plan.noise[party.name], values, why="noisy columns"))

    def coordinate(self, session: Session[MixingPlan]) -> MixedResult:
        """Let the parties toss, collect noisy columns, and put them side by side."""
        plan, seed = session.plan, b""
        if plan.mixes is None:
            answers = session.ask(self.publish, Nothing())
            ones = np.ones(plan.people, dtype=np.int64)
        else:
            toss = plan.toss.run(session)
            seed = tossed(toss, study=session.study)
            answers = session.ask(self.mix, toss)
            ones = mixed_ones(seed, people=plan.people, mixes=plan.mixes, bits=self.bits)
        for name, answer in answers.items():
            if answer.values.shape != (len(ones), plan.width(name)):
                raise RefusedError(f"{name} sent a table of another shape than the study says")
        numbers = np.concatenate([answers[name].values for name in session.parties], axis=1)
        note = plan.note(seed.hex())
        return MixedResult(note=note, numbers=numbers, ones=ones << note.fraction_bits)

    def read(self, plan: MixingPlan, folder: Path) -> MixedResult:
        """Read back `mixed.parquet` and `mixed.json`."""
        found = read_mixed(folder)
        if found.note != plan.note(found.note.seed):
            raise InputError(f"{folder.name}: mixed.json is not of this study")
        return found


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
