"""Compare a release with real rows, always next to baselines."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, final

import msgspec

from syndic.data import Coded, ReleasedTable, Schema, Table, open_source
from syndic.errors import InputError, MissingExtraError
from syndic.evaluation.baselines import Contender, held_out, own_rows, with_noise, without_noise
from syndic.evaluation.distance import (
    Distance,
    all_sets,
    column_scores,
    distances,
    group_scores,
    k_marginal,
    relied_on,
    way_distances,
    worst_pairs,
)
from syndic.evaluation.evaluation import RELEASE, Evaluation, Scores
from syndic.evaluation.prediction import check_models, default_target, one_thread, predictions, task_of
from syndic.evaluation.regression import coefficient_overlap, logistic_ratio, tree_ratio
from syndic.evaluation.rows import Clique, kept, pooled, recoded, released
from syndic.evaluation.scores import FULL, QUICK, Effort
from syndic.kernel import Progress, silent_progress
from syndic.methods.synthesis.result import SyntheticTable
from syndic.privacy import Unit
from syndic.study import Release, Study
from syndic.study.party_folder import party_file


def evaluate(
    release: Release | ReleasedTable,
    real: Mapping[str, Any],
    study: Study | Schema | None = None,
    *,
    seed: int,
    target: str | None = None,
    full: bool = False,
    progress: Progress = silent_progress,
) -> Evaluation:
    """Compare a release with real rows, next to baselines. Reads real rows: the result is for their owner only.

    By default it samples sets of columns and rows, and takes seconds; the result's notes say how many.

    Args:
        release: a release, or only its table.
        real: for some or all parties a file, a data frame, an Arrow table or a `SourceSpec`; a path ending in
            `party.toml` is read as the party's own file. Baselines are made from these rows.
        study: required if only the table is given. With a schema alone there are no private baselines.
        seed: seed of splits, resamples and the baselines' noise, none of which protects anybody.
        target: a column to predict from the others, and whose regressions are compared; requires scikit-learn. By
            default the study's `target`, else the last column with two values, else the last; a note says which.
        full: also make private baselines by the study's own method, fit more models, and sample less. Takes minutes.
        progress: called with the step, how much of it is done, and how much there is.

    Raises:
        InputError: if the table, a source, the study and the target do not fit together.
        MissingExtraError: if there is a target and scikit-learn is not installed.
    """
    table, agreed, schema = _agreed(release, study)
    effort, notes = (FULL if full else QUICK), list[str]()
    target = _target(schema, agreed, target, notes)
    tables = _tables(real, agreed, schema)
    # real rows are compared by what is released of them
    result = release.result if isinstance(release, Release) else None
    codes = result.released if isinstance(result, SyntheticTable) else {}
    notes += [f"rare values of '{name}' count as the branch or \"other\" that they are released as" for name in codes]
    truth = kept(recoded(pooled(list(tables.values())), codes))
    rows = kept(released(table, schema))
    what = "the released table; it depends, through noise, on every real row, those of the test fold too"
    first = Contender(name=RELEASE, what=what, rows=rows, truth=truth, training=rows)
    progress("baselines", 0, 1)
    noisy: list[Contender] = []
    if full and agreed:
        noisy, left_out = with_noise(agreed, tables, truth, seed=seed)
        noisy = [replace(one, rows=recoded(one.rows, codes), training=recoded(one.training, codes)) for one in noisy]
        notes += left_out
    elif full:
        notes.append("no study is given, so there are no private baselines")
    sizes = {name: pooled([one]).size() for name, one in tables.items()} if len(tables) > 1 else {}
    if len(tables) == 1:
        notes.append(f"real rows are the rows of {next(iter(tables))} alone")
    everything = [first, *noisy, *own_rows(truth, sizes, seed=seed), *without_noise(truth, seed=seed)]
    progress("baselines", 1, 1)
    test = held_out(truth, seed=seed).take(effort.rows, seed=seed, label="test")
    fitted = _Fitted(schema, target, seed, test, notes, effort)
    found = _evaluated(everything, agreed, tuple(tables), fitted, progress)
    reliability = release.known_reliability if isinstance(release, Release) else None
    pairs = worst_pairs(found.sets, reliability)
    told = relied_on(found.sets, reliability) if pairs else ""
    return msgspec.structs.replace(found, pairs=pairs, relied_on=told)


def _target(schema: Schema, study: Study | None, named: str | None, notes: list[str]) -> str | None:
    """Return the column to predict: the one named, or else a default, which is noted."""
    if named is not None:
        task_of(schema, named)
        check_models()
        return named
    declared = getattr(study.protocol, "target", None) if study else None
    found, why = default_target(schema, declared if declared in schema.names else None)
    try:
        check_models()
    except MissingExtraError as error:
        notes.append(f"no predictions: {error}")
        return None
    notes.append(why)
    return found


def _evaluated(
    contenders: list[Contender],
    study: Study | None,
    parties: tuple[str, ...],
    fitted: "_Fitted",
    progress: Progress,
) -> Evaluation:
    first, halves = contenders[0], contenders[-1]
    schema, effort = first.rows.schema, fitted.effort
    sets = all_sets(schema.names, effort.sets)
    progress("distances", 0, 1)
    found = _distances(contenders, [clique for cliques in sets.values() for clique in cliques])
    pairs = list(dict.fromkeys(sets.get(2, [])))
    groups = group_scores(first.truth, first.rows, (halves.truth, halves.rows), pairs)
    progress("distances", 1, 1)
    scores = []
    with one_thread():
        for done, one in enumerate(contenders):
            progress("models", done, len(contenders))
            ways = way_distances(found[one.name], sets)
            mean = next((way.mean for way in ways if way.columns == 2), None)
            whole = None if mean is None else k_marginal(mean)
            counted = Scores(name=one.name, what=one.what, rows=one.rows.size(), tvd=ways, k_marginal=whole)
            scores.append(fitted.added(counted, one))
    progress("models", len(contenders), len(contenders))
    worst_first = sorted(found[RELEASE].items(), key=lambda item: -item[1])
    return Evaluation(
        study=study.name if study else "a released table",
        digest=study.digest if study else None,
        parties=parties,
        rows=first.truth.size(),
        seed=fitted.seed,
        full=effort.full,
        target=fitted.target,
        scores=tuple(scores),
        columns=column_scores(schema.names, found[RELEASE], found[halves.name], pairs),
        groups=groups,
        sets=tuple(Distance(columns=clique, tvd=distance) for clique, distance in worst_first),
        notes=tuple(dict.fromkeys([*fitted.notes, effort.note])),
    )


@final
@dataclass(frozen=True)
class _Fitted:
    """Add the scores that need single rows rather than counts."""

    schema: Schema
    target: str | None
    seed: int
    test: Coded
    notes: list[str]
    effort: Effort

    def added(self, score: Scores, one: Contender) -> Scores:
        """Return the scores with those of models fitted to samples of the rows."""
        if one.rows.minus is not None:
            self.notes.append(f"{one.name}: has rows with negative weights: distances use them, models are not fitted")
            return score
        seed, effort = self.seed, self.effort
        real, other = (
            rows.take(effort.regression_rows, seed=seed, label=label)
            for rows, label in ((one.truth, "a"), (one.rows, "b"))
        )
        few = [{name: codes[: effort.propensity_rows] for name, codes in sample.items()} for sample in (real, other)]
        score = msgspec.structs.replace(
            score,
            pmse_logistic=logistic_ratio(self.schema, few[0], few[1]),
            pmse_tree=self._tree(few[0], few[1]) if effort.full else None,
        )
        if self.target is None:
            return score
        training = one.training.take(effort.rows, seed=seed, label="training")
        return msgspec.structs.replace(
            score,
            predictions=predictions(self.schema, self.target, training, self.test, seed=seed, full=effort.full),
            overlap=coefficient_overlap(self.schema, self.target, real, other),
        )

    def _tree(self, real: Coded, other: Coded) -> float | None:
        try:
            return tree_ratio(self.schema, real, other, seed=self.seed)
        except MissingExtraError as error:
            self.notes.append(f"no pMSE by trees: {error}")
            return None


def _distances(contenders: list[Contender], cliques: list[Clique]) -> dict[str, dict[Clique, float]]:
    found: dict[str, dict[Clique, float]] = {}
    for truth in {id(one.truth): one.truth for one in contenders}.values():
        others = {one.name: one.rows for one in contenders if one.truth is truth}
        found |= distances(truth, others, cliques)
    return found


def _agreed(
    release: Release | ReleasedTable, study: Study | Schema | None
) -> tuple[ReleasedTable, Study | None, Schema]:
    if isinstance(release, Release):
        table, study = release.table, release.study
    else:
        table = release
    if study is None:
        raise InputError("a released table does not describe its columns: give the study or its schema too")
    if isinstance(study, Schema):
        return table, None, study
    if study.partition != "horizontal":
        raise InputError(
            "evaluate does not support a release whose parties hold different columns of the same people. If you may "
            "join their rows, evaluate its table: evaluate(release.table, {'joined': rows}, study.schema, seed=1)"
        )
    return table, study, study.schema


def _tables(real: Mapping[str, Any], study: Study | None, schema: Schema) -> dict[str, Table]:
    if not real:
        raise InputError("no real rows are given: give the source of at least one party")
    if study is not None:
        names = [party.name for party in study.parties]
        unknown = [name for name in real if name not in names]
        if unknown:
            raise InputError(f"no party called {', '.join(unknown)}; the study's parties are {', '.join(names)}")
    tables = {}
    for name, thing in real.items():
        unit = study.unit.unweighted if study else Unit(neighbours="add_remove")
        try:
            party = party_file(thing)
            source = open_source(thing if party is None else party.source)
            tables[name] = Table(schema, source, rows_per_person=unit.rows, person=unit.person, choose=unit.choose)
        except InputError as error:
            raise InputError(f"party '{name}': {error}") from None
    return tables
