"""Audits of synthetic tables from noisy counts: all that is opened is Gaussian, and an attacker weighs all of it.

A person goes from one corner of every table to the other, so each table moves as far as it is charged for. Others
are many enough that no level is rare and tables are worth asking.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syndic.kernel import PARTNERS, Method, decode
from syndic.methods import Distdiffgen, Dplt, Glued, Synthesis
from syndic.methods.comparison.distdiffgen import Chosen
from syndic.methods.comparison.distdiffgen_plan import DistdiffgenPlan
from syndic.methods.comparison.dplt_plan import DpltPlan
from syndic.methods.synthesis.cut import CutRound
from syndic.methods.synthesis.measure import Question
from syndic.methods.synthesis.plan import SynthesisPlan
from syndic.model.latent.diffgen import max_scores
from syndic.model.selection.curator import SCORE_STEP, independence_gap
from syndic_lab.audit.horizontal import APPROXIMATE, REPLACE
from syndic_lab.audit.rehearsal import Run
from syndic_lab.audit.setting import COALITION, RELEASE, Setting, Tells, View, rows_of, study_of
from syndic_lab.audit.tables import Codes, Noisy, counted, less, one_below_other, rounds_of, side_by_side, told_of

PEOPLE: Final = 40
_SCORES: Final = 2
Parties = Mapping[str, tuple[str, ...]]
Weighs = Callable[[Run, Codes, Codes, bool], View]
"""What a run told everybody, or (True) those who know the second party's noise, from the codes of both tables."""

TWO: Final[Parties] = {"a": ("x",), "b": ("y",)}
UNEVEN: Final[Parties] = {"a": ("x", "w"), "b": ("y",)}
LABELLED: Final[Parties] = {"a": ("x", "y"), "b": ("w", "y")}


def syntheses() -> Iterator[Setting]:
    """Yield a setting for every method whose release is made of noisy counts."""
    for selector in ("one_shot", "adaptive"):
        shared: Any = Synthesis(selector=selector, rows=2)
        yield _below(f"synthesis {selector}", shared)
    yield aligned("synthesis across", Synthesis(rows=2), TWO, weigh_across)
    yield aligned("glued", Glued(rows=4), UNEVEN, _glued, alone=True)
    yield aligned("dplt", Dplt(rows=4), UNEVEN, weigh_latent)
    yield aligned("distdiffgen", Distdiffgen(label="y", specialisations=2), LABELLED, weigh_leaves, moved=("y",))


def aligned(
    name: str,
    protocol: Method,
    parties: Parties,
    weighs: Weighs,
    *,
    moved: tuple[str, ...] = ("x", "w", "y"),
    alone: bool = False,
) -> Setting:
    """Return a setting of columns of the same people, one of whom has another value in the columns that are `moved`."""
    columns = sorted({column for held in parties.values() for column in held}, key=("x", "w", "y").index)
    study = study_of(
        protocol,
        columns=[(column, 2) for column in columns],
        parties={party: (PEOPLE, held) for party, held in parties.items()},
        unit=REPLACE,
        budget=APPROXIMATE,
    )
    one, other = (
        {
            party: rows_of(**{column: _column(value if column in moved else 1) for column in held})
            for party, held in parties.items()
        }
        for value in (1, 0)
    )
    return Setting(
        name=name,
        study=study,
        one=one,
        other=other,
        gaussian=_roles(weighs, side_by_side(one), side_by_side(other), alone=alone),
        quick=20,
    )


def _column(value: int) -> list[int]:
    return [value, *(place % 2 for place in range(PEOPLE - 1))]


def _roles(weighs: Weighs, one: Codes, other: Codes, *, alone: bool) -> dict[str, Tells]:
    roles: dict[str, Tells] = {RELEASE: lambda run: weighs(run, one, other, False)}
    if not alone:
        roles[COALITION] = lambda run: weighs(run, one, other, True)
    return roles


# Different people.


def _below(name: str, protocol: Synthesis) -> Setting:
    """Return a setting of two parties with rows of their own."""
    half = PEOPLE // 2
    study = study_of(
        protocol,
        columns=(("x", 2), ("y", 2)),
        parties={"a": (half, None), "b": (half, None)},
        unit=REPLACE,
        budget=APPROXIMATE,
    )
    second = rows_of(x=_column(1)[:half], y=_column(1)[:half])
    one, other = ({"a": rows_of(x=_column(value)[:half], y=_column(value)[:half]), "b": second} for value in (1, 0))
    roles = _roles(_shared, one_below_other(one), one_below_other(other), alone=False)
    return Setting(name=name, study=study, one=one, other=other, gaussian=roles, quick=20)


def _shared(run: Run, one: Codes, other: Codes, colluding: bool) -> View:
    """Every count has both parties' shares."""
    account, tables = run.study.plan_as(SynthesisPlan).account, []
    for place, opened in enumerate(rounds_of(run)):
        if not colluding:
            tables += opened
            continue
        size = sum(each.values.size for each in opened)
        noise = account.noise_of(place + 1, len(opened), size)
        drawn = run.own_noise("b", noise, size, place) / noise.scale
        parts = np.split(drawn, np.cumsum([each.values.size for each in opened])[:-1])
        left = (noise.variance(PARTNERS) / PARTNERS) ** 0.5
        tables += [less(each, part, left) for each, part in zip(opened, parts, strict=True)]
    return told_of(tables, one, other)


# Tables across parties.


def weigh_across(run: Run, one: Codes, other: Codes, colluding: bool) -> View:
    """Tables of one party's columns have its whole noise, those across parties noise from coins, or shares of it."""
    asked = [decode(each.asked, Question) for each in run.seen if (each.party, each.step) == ("b", "ask_round")]
    reach = run.study.plan_as(SynthesisPlan).reach
    assert reach is not None  # noqa: S101 (columns are at two parties)
    tables: list[Noisy] = []
    for place, (question, opened) in enumerate(zip(asked, rounds_of(run), strict=True)):
        tables += _across(run, reach.round_of(question), opened, place) if colluding else opened
    return told_of(tables, one, other)


def _across(run: Run, now: CutRound, opened: list[Noisy], place: int) -> list[Noisy]:
    """Return tables less what the second party drew, where it has a share of the noise."""
    layout, parties = now.layout, len(now.layout.within)
    drawn = run.own_noise("b", now.noise_at("b"), layout.dimension, place) / now.share.scale
    parts = np.split(drawn, np.cumsum([each.values.size for each in opened])[:-1])
    left = (now.share.variance(parties) * (parties - 1) / parties) ** 0.5
    tossed = {place for places in now.tossed.values() for place in places}  # nobody knows a part of that noise
    shared = [len(counting) > 1 and place not in tossed for place, counting in enumerate(layout.counting)]
    return [less(one, part, left) if both else one for one, part, both in zip(opened, parts, shared, strict=True)]


def _glued(run: Run, one: Codes, other: Codes, colluding: bool) -> View:
    """Every party has tables of its own; after its first round they may be of groups of levels."""
    del colluding
    domain, groups = run.study.schema.domain, run.result.note.groups
    tables = [
        Noisy(
            names=each.names,
            values=np.asarray(each.values),
            deviation=each.variance**0.5,
            groups={} if each.values.shape == domain.project(each.names).sizes else groups,
        )
        for each in run.result.tables
    ]
    return told_of(tables, one, other)


# A latent tree.


def weigh_latent(run: Run, one: Codes, other: Codes, colluding: bool) -> View:
    """Scores of pairs of columns, tables of groups of columns, tables of pairs of latent attributes."""
    plan, note = run.study.plan_as(DpltPlan), run.result.note
    sides = [_with_latents(run, codes) for codes in (one, other)]
    found = [
        Noisy(names=each.names, values=np.asarray(each.values), deviation=each.variance**0.5, groups={})
        for each in run.result.tables
    ]
    grouped, pairs = found[: len(note.groups)], found[len(note.groups) :]
    tables = [*grouped, *(_across(run, plan.round, pairs, 1) if colluding else pairs)]
    return _joined(_scores_of_pairs(run, plan, one, other), told_of(tables, *sides))


def _with_latents(run: Run, codes: Codes) -> dict[str, NDArray[np.int64]]:
    note, domain = run.result.note, run.study.schema.domain
    known = dict(codes)
    for name, columns in note.groups.items():
        cells = domain.project(columns).index([codes[column] for column in columns]).astype(np.int64)
        known[name] = np.array(note.level_of[name])[cells]
    return known


def _scores_of_pairs(run: Run, plan: Any, one: Codes, other: Codes) -> View:
    values, exact = [], []
    for party, said in run.replies("learn").items():
        values.append(said.scores / plan.scored.scale)
        for pair in combinations(plan.domains[party].names, 2):
            shape = plan.domains[party].project(pair).sizes
            gaps = [independence_gap(counted(codes, pair, shape).reshape(shape)) for codes in (one, other)]
            exact.append([round(gap / float(SCORE_STEP)) for gap in gaps])
    return _told(np.concatenate(values), np.array(exact, dtype=np.float64), plan.scored.variance(1) ** 0.5)


# Specialisation along trees.


def weigh_leaves(run: Run, one: Codes, other: Codes, colluding: bool) -> View:
    """Scores of groups of values, and the counts of all leaves by class."""
    plan, (leaves,) = run.study.plan_as(DistdiffgenPlan), run.result.tables
    table = Noisy(names=leaves.names, values=np.asarray(leaves.values), deviation=leaves.variance**0.5, groups={})
    (chosen,) = [decode(each.asked, Chosen) for each in run.seen if (each.party, each.step) == ("b", "take_cut")]
    tables = _across(run, plan.round_of(chosen.cut, chosen.digest), [table], 1) if colluding else [table]
    values, exact = [], []
    for name, tree in plan.every.items():
        values.append(run.result.note.scores[name])
        shape = (len(tree.levels[0]), plan.classes)
        sides = [counted(codes, (name, plan.label), shape).reshape(shape) for codes in (one, other)]
        exact.append([max_scores(tree, side.astype(np.int64)) for side in sides])
    scores = _told(np.concatenate(values), np.concatenate(exact, axis=1).T, plan.scored.variance(1) ** 0.5)
    return _joined(scores, told_of(tables, one, other))


def _told(values: NDArray[Any], exact: NDArray[Any], deviation: float) -> View:
    size = len(values)
    return View(
        values=values,
        one=exact[:, 0],
        other=exact[:, 1],
        deviation=np.full(size, deviation),
        kind=np.full(size, _SCORES),
    )


def _joined(*parts: View) -> View:
    names = ("values", "one", "other", "deviation", "kind")
    return View(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})
