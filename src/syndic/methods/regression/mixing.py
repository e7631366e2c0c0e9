"""Noisy columns of a vertical study for linear regression (Wu et al., UAI 2022): RMGM, DGM and BGM.

*Neighbours*: one person's values are replaced, at all parties at once; which people are in the data is public.
*Method*: every party codes its columns as whole numbers of at most 2^bits by public bounds. DGM and BGM: it adds
Gaussian noise to every entry and publishes. RMGM: it first multiplies by k x n random signs, the same for all parties,
and publishes k noisy rows. Afterwards any column may be the label.

*Sensitivity*: a person's row z becomes w. The row itself changes by |z - w|. Mixed, each of k rows changes by the same
vector up to sign, so by sqrt(k) |z - w| for any signs. So the signs may be public; a joint coin toss only ensures that
nobody chooses them. Over all parties |z - w|^2 is at most 4 for each number and 2 for each categorical column: one
noise for all entries, calibrated to that sum. Each party's ledger is charged the part of mu^2 of its own columns.

*Who sees what*: everybody sees the noisy rows and the signs. Nobody needs to be trusted.

`as_published` is the paper's own noise, calibrated for each party as if a person were at that party alone: simulation
only.
"""

from pathlib import Path
from typing import ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError, RefusedError
from syndic.kernel import Message, Method, Nothing, Party, Requires, Session, Terms, schema_of, step
from syndic.methods.regression.mixing_plan import MixingPlan, plan_mixing
from syndic.methods.regression.mixing_result import Bounds, MixedResult, Scheme, read_mixed
from syndic.model.gram.mixing import Mixer, Stream
from syndic.mpc.key import context
from syndic.mpc.mask import stream
from syndic.mpc.toss import Toss, tossed


class NoisyRows(Message):
    """A party's noisy columns: one row per person, or mixed rows."""

    values: NDArray[np.int64]


@final
class Mixing(Method, tag="mixing"):
    """Parameters of the noisy columns.

    `scheme`: "rmgm" mixes rows, "dgm" and "bgm" do not; the last two differ only in the later regression. `mixes`: the
    number of mixed rows; by default computed from public numbers. `bits`: a feature is a whole number of at most
    2^bits. `bounds`: whether published regressions use values in [-1, 1] ("symmetric") or [0, 1] ("unit").
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
            raise ValueError(f'mixes ({self.mixes}) must be at least 1, and only scheme = "rmgm" uses it')
        if not 4 <= self.bits <= 16:
            raise ValueError(f"bits ({self.bits}) must be from 4 to 16")

    @property
    def requires(self) -> Requires:
        """The same people at every party, each with columns of its own; `plan` compares the unit's parties."""
        return Requires(
            people="same",
            columns="apart",
            delta="Gaussian noise",
            neighbours="replace",
            rows=1,
            because="a person has a row at every party, and aligned rows show which people are in the data",
            least_parties=2,
        )

    def plan(self, terms: Terms) -> MixingPlan:
        """Choose the features, the number of mixes and the noise."""
        if terms.unit.parties != len(terms.parties):
            raise InputError(f"a person has a row at every party: set parties = {len(terms.parties)} in [unit]")
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
        """Multiply the columns by the jointly tossed random signs and add noise to every entry."""
        plan = party.plan
        signs = signs_of(plan.toss.check(party, message))
        mixer = Mixer(mixes=plan.mixes or 1, width=plan.width(party.name), bits=self.bits, stream=signs)
        for coded in party.table.batches(schema_of(party.terms, party.name).names):
            mixer.add(plan.rows(party.name, coded))
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
        return NoisyRows(values=party.release(plan.noise[party.name], values, why="noisy columns"))

    def coordinate(self, session: Session[MixingPlan]) -> MixedResult:
        """Let the parties toss the signs jointly, collect noisy columns, and join them side by side."""
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
                raise RefusedError(f"{name} sent a table whose shape is not the one in the study")
        numbers = np.concatenate([answers[name].values for name in session.parties], axis=1)
        note = plan.note(seed.hex())
        return MixedResult(note=note, numbers=numbers, ones=ones << note.fraction_bits)

    def read(self, plan: MixingPlan, folder: Path) -> MixedResult:
        """Read back `mixed.parquet` and `mixed.json`."""
        found = read_mixed(folder)
        if found.note != plan.note(found.note.seed):
            raise InputError(f"{folder.name}: mixed.json does not belong to this study")
        return found


def signs_of(seed: bytes) -> Stream:
    """Return the stream of signs for jointly tossed bytes: ChaCha20, with one context for every tile of people."""
    return lambda tile, length: stream(seed, context("signs", tile), length)


def mixed_ones(seed: bytes, *, people: int, mixes: int, bits: int) -> NDArray[np.int64]:
    """Return the signs times a column of ones; `bits` sets the length of tiles. Public: it depends on no row."""
    mixer = Mixer(mixes=mixes, width=1, bits=bits, stream=signs_of(seed))
    left = people
    while left:
        batch = min(left, 1 << 16)
        mixer.add(np.ones((batch, 1), dtype=np.int32))
        left -= batch
    return mixer.total()[:, 0]
