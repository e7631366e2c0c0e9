"""Make scores that may be published: noisy distances between one party's rows and a release, charged to its ledger.

Sensitivity. A released table is public, so for each set of columns it gives fixed public integers t, the
counts of a table of `size` rows in the proportions of the release. With c the party's exact counts, the score is the
integer |c - t|_1. One person changes c by at most `unit.l1_of_counts()` in l1, hence by the triangle inequality the
score by no more, and a vector of m scores by at most m times that in l1. Discrete Laplace noise of that sensitivity is
added. `size` is public under `replace` if each person has one row. Otherwise a tenth of epsilon is spent on a noisy
size first, which one person changes by at most `unit.rows`; t then depends on that noisy number only, so it is as
fixed and public as before (composition).
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from statistics import fmean
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Factor, ReleasedTable, Table
from syndic.document import Document, from_json, to_json, to_readable_json
from syndic.errors import InputError
from syndic.evaluation.distance import is_dense, k_marginal
from syndic.evaluation.rows import Clique
from syndic.evaluation.rows import released as rows_of
from syndic.kernel import PartyState
from syndic.kernel.memory import Stored
from syndic.noise import DiscreteLaplace
from syndic.privacy import Event, PureEvent, Unit
from syndic.random import Randomness

_SIZE_SHARE: Final = Fraction(1, 10)
_MISS: Final = 0.05


class PaidScore(Document):
    """A noisy total variation distance, 0 to 1. The exact one differs by at most `within`, with probability 0.95."""

    columns: tuple[str, ...]
    tvd: float
    within: float


@final
class PrivateScores(Document, frozen=True, kw_only=True):
    """Noisy scores of a release at one party; they may be published with the release.

    `events` are what the party's people were charged, `charged_to` is the study's name in the ledger, `size` the
    party's public or noisy number of rows. `protects` is false if the noise was seeded.
    """

    owner_only: bool = False
    party: str
    study: str
    charged_to: str
    unit: Unit
    epsilon: Fraction
    events: tuple[Event, ...]
    sensitivity: str
    protects: bool
    size: int
    scores: tuple[PaidScore, ...]

    @property
    def k_marginal(self) -> float | None:
        """1000 x (1 - mean noisy distance of the pairs); None without pairs."""
        pairs = [score.tvd for score in self.scores if len(score.columns) == 2]
        return k_marginal(fmean(pairs)) if pairs else None

    def write(self, path: str | Path) -> Path:
        """Write a `.json` file, also into a release's folder."""
        path = Path(path)
        if path.suffix != ".json":
            raise InputError(f"{path.name}: unknown file type; private scores are written as .json")
        path.write_bytes(to_readable_json(self))
        return path

    def __str__(self) -> str:
        lines = [f"noisy scores at {self.party}, which cost its people epsilon {float(self.epsilon):g}"]
        lines += [f"  {' x '.join(one.columns)}: {one.tvd:.3f} (+- {one.within:.3f})" for one in self.scores]
        if not self.protects:
            lines.append("  SEEDED NOISE: these scores are not private")
        return "\n".join(lines)


def private_scores(
    state: PartyState,
    released: ReleasedTable,
    *,
    epsilon: Fraction,
    call: str,
    pairs: Sequence[tuple[str, str]] = (),
) -> PrivateScores:
    """Return noisy distances of every column, and of chosen pairs, between a party's rows and a release.

    The ledger is charged before noise is drawn. Repeating a call returns the stored scores and costs nothing; the same
    call with another question is refused.

    Args:
        state: the party's table, ledger, memory and randomness for the study, `PartyFolder.node(...).state`. The charge
            is entered as "scores of DIGEST" in the ledger, apart from what the study itself may spend.
        released: the released table to score; it must be public already.
        epsilon: the cost of all scores together, for one person at this party; a person at several parties is charged
            at each that publishes scores.
        call: a name for this question; every new question needs a new one.
        pairs: chosen without looking at rows; otherwise the choice reveals something that is not accounted for.

    Raises:
        BudgetError: if the cost does not fit under the owner's cap. Nothing was spent.
        RefusedError: if the call was used for another question, or its stored answer is missing.
    """
    table = state.open_table()
    public = rows_of(released, state.terms.schema).marginals(_cliques(table, state.terms.unit, pairs))
    question = _question(state, public, epsilon)

    def work() -> tuple[Stored, Mapping[str, bytes]]:
        answer = _answered(state, table, public, epsilon=epsilon, call=call)
        return Stored(asked=question, charged=True, reply=to_json(answer)), {}

    def record(stored: Stored) -> None:
        state.ledger.commit(_charged_to(state), call, hashlib.sha256(stored.reply).hexdigest())

    reply = state.memory.answer_once(call, question, work, record)
    return from_json(reply, PrivateScores, where=f"stored answer of call {call!r}")


def _answered(
    state: PartyState, table: Table, public: Sequence[Factor], *, epsilon: Fraction, call: str
) -> PrivateScores:
    """Charge the ledger, then draw noise."""
    unit = state.terms.unit
    if unit.sizes_are_public and table.size is None:
        raise InputError(
            f"party '{state.name}': scores under `replace` need the public number of its people: set `people`"
        )
    noises, each = _noises(unit, epsilon, len(public)), unit.l1_of_counts()
    events = tuple(
        PureEvent(epsilon=noise.epsilon, what=f"{noise.event.what}, on {what} of a release")
        for what, noise in noises.items()
    )
    charged_to = _charged_to(state)
    # of a call that was answered before, only the stored answer leaves: the memory or the ledger refuses another one
    state.ledger.reserve(
        dataset=state.dataset, study=charged_to, call=call, door="1", events=events, why="noisy scores of a release"
    )
    randomness = state.randomness(f"{call}/1")
    size, noisy, rounding = _drawn(table, public, noises, randomness)
    return PrivateScores(
        party=state.name,
        study=state.study,
        charged_to=charged_to,
        unit=unit,
        epsilon=epsilon,
        events=events,
        sensitivity=f"one person changes a party's counts by at most {each} in l1, so each of {len(public)} distances "
        f"to fixed public counts by at most {each}, and all together by at most {len(public) * each}",
        protects=not randomness.simulated,
        size=size,
        scores=_scores([counts.domain.names for counts in public], size, noisy, rounding, noises),
    )


def _charged_to(state: PartyState) -> str:
    return f"scores of {state.study}"


def integer_target(counts: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Return integers that add up to `size` in the proportions of the counts, negative counts taken as 0.

    By largest remainders, ties to the first cell; exact, so that every party gets the same target. If all counts are 0,
    cells are equal.
    """
    parts = np.maximum(counts.ravel(), 0)
    total = int(parts.sum())
    if total == 0:
        parts, total = np.ones_like(parts), len(parts)
    # Python's own integers where products might not fit 64 bits
    wanted = parts.astype(np.int64 if total * size < 2**62 else object) * size
    whole, rest = wanted // total, wanted % total
    whole[np.argsort(-rest, kind="stable")[: size - int(whole.sum())]] += 1
    return np.asarray(whole.astype(np.int64)).reshape(counts.shape)


def _cliques(table: Table, unit: Unit, pairs: Sequence[tuple[str, str]]) -> list[Clique]:
    """Return every column and the pairs; refuse what cannot be scored."""
    if unit.scale > 1:
        raise InputError(f"private scores count whole rows, and unit.choose is '{unit.choose}'")
    if (table.rows_per_person, table.person) != (unit.rows, unit.person):
        raise InputError(
            f"the table keeps {table.rows_per_person} row(s) per {table.person or 'row'}, but the unit allows "
            f"{unit.rows} per {unit.person or 'row'}: open it as the unit says, or the scores cost more than charged"
        )
    distinct = {frozenset(pair) for pair in pairs}
    if len(distinct) != len(pairs) or any(len(pair) != 2 for pair in distinct):
        raise InputError("pairs must be distinct, each of two different columns")
    sets: list[Clique] = [*((name,) for name in table.schema.names), *pairs]
    large = [clique for clique in sets if not is_dense(table.schema.domain, clique)]
    if large:
        raise InputError(f"{' x '.join(large[0])} has too many cells to score: set fewer bins")
    return sets


def _noises(unit: Unit, epsilon: Fraction, scores: int) -> dict[str, DiscreteLaplace]:
    whole = scores * unit.l1_of_counts()
    try:
        if unit.sizes_are_public:
            return {"scores": DiscreteLaplace(sensitivity=whole, epsilon=epsilon)}
        return {
            "size": DiscreteLaplace(sensitivity=unit.rows, epsilon=epsilon * _SIZE_SHARE),
            "scores": DiscreteLaplace(sensitivity=whole, epsilon=epsilon * (1 - _SIZE_SHARE)),
        }
    except ValueError as error:
        raise InputError(f"private scores: {error}") from None


def _drawn(
    table: Table, public: Sequence[Factor], noises: dict[str, DiscreteLaplace], randomness: Randomness
) -> tuple[int, NDArray[np.int64], list[float]]:
    """Return the public or noisy size, the noisy l1 distances, and the rounding error of each public target."""
    real = table.marginals([counts.domain.names for counts in public])
    size = int(real[0].sum())
    if "size" in noises:
        size = int(noises["size"].apply(np.array([size]), randomness)[0])
    size = max(size, 1)
    exact, rounding = [], []
    for counts, like in zip(real, public, strict=True):
        target = integer_target(like.values, size)
        exact.append(int(np.abs(counts.values - target).sum()))
        shares = np.maximum(like.values, 0) / max(int(np.maximum(like.values, 0).sum()), 1)
        rounding.append(float(np.abs(target - size * shares).sum()) if shares.any() else 0.0)
    return size, noises["scores"].apply(np.array(exact, dtype=np.int64), randomness), rounding


def _scores(
    cliques: Sequence[Clique],
    size: int,
    noisy: NDArray[np.int64],
    rounding: Sequence[float],
    noises: dict[str, DiscreteLaplace],
) -> tuple[PaidScore, ...]:
    # with n~ the noisy size, | |c - t| / 2n~ - TVD | <= (|n - n~| + |t - n~ p|) / 2n~, and noise comes on top
    miss = _MISS / len(noises)
    reach = sum(noise.tail(miss) for noise in noises.values())
    return tuple(
        PaidScore(
            columns=clique,
            tvd=min(1.0, max(0.0, float(value) / (2 * size))),
            within=min(1.0, (reach + moved) / (2 * size)),
        )
        for clique, value, moved in zip(cliques, noisy, rounding, strict=True)
    )


def _question(state: PartyState, public: Sequence[Factor], epsilon: Fraction) -> str:
    """Return a digest of all public inputs of the answer."""
    counts = hashlib.sha256()
    for factor in public:
        counts.update(factor.values.astype("<i8").tobytes())
    asked = {"dataset": state.dataset, "study": state.study, "epsilon": epsilon, "released": counts.hexdigest()}
    return hashlib.sha256(to_json({**asked, "columns": [factor.domain.names for factor in public]})).hexdigest()


@final
@dataclass(frozen=True, kw_only=True)
class Effort:
    """Largest numbers of pairs and triples of columns, and of rows for models; `full` adds the slow scores."""

    full: bool
    sets: dict[int, int]
    rows: int
    propensity_rows: int
    regression_rows: int

    @property
    def note(self) -> str:
        """What was sampled, in words."""
        words = f"at most {self.sets[2]} pairs and {self.sets[3]} triples of columns, drawn at random where there are "
        words += f"more; models train on at most {self.rows:,} rows and are tested on at most {self.rows:,} others"
        if self.full:
            return words
        return f"quick scores: {words}. --full (full=True) adds private baselines, more models, pMSE by trees"


QUICK: Final = Effort(full=False, sets={2: 150, 3: 50}, rows=20_000, propensity_rows=2_000, regression_rows=5_000)
FULL: Final = Effort(full=True, sets={2: 300, 3: 300}, rows=200_000, propensity_rows=5_000, regression_rows=20_000)
