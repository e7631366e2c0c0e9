"""The coordinator's side of VertiMRF: check the parties' messages, build tables and a model, and draw rows."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from syndic.errors import RefusedError
from syndic.kernel import Session, schema_of
from syndic.methods.synthesis.result import AskedRound, ReleasedModel, SynthesisNote, SyntheticTable
from syndic.methods.vertimrf.model.build import Built, LocalModel
from syndic.methods.vertimrf.model.tables import OracleTables, SketchTables
from syndic.methods.vertimrf.party import Learned, Responses, Sketches, model_of
from syndic.methods.vertimrf.plan import VertimrfPlan
from syndic.model.markov import Grouping, Measurement, Synthesis
from syndic.noise import FineGaussian
from syndic.random import generator


def read_people(plan: VertimrfPlan, learned: Mapping[str, Learned]) -> float:
    """Return the number of people: public, or the first party's noisy one."""
    if plan.account.number is None:
        return float(plan.layout.people)
    first = plan.terms.parties[0].name
    if learned[first].people.shape != (1,):
        raise RefusedError(f"{first} did not send the noisy number of people")
    return float(max(1, int(learned[first].people[0])))


def read_models(plan: VertimrfPlan, learned: Mapping[str, Learned], people: float) -> list[LocalModel]:
    """Return the parties' own models."""
    found = []
    for name, one in learned.items() if plan.account.local else ():
        if len(one.models) != 1:
            raise RefusedError(f"{name} sent {len(one.models)} models of its columns, not 1")
        found.append(model_of(one.models[0], schema_of(plan.terms, name).domain, people, plan.local_cells))
    return found


def read_counts(plan: VertimrfPlan, learned: Mapping[str, Learned]) -> dict[str, Measurement]:
    """Return noisy counts of the values of large columns."""
    layout, noise = plan.layout, plan.account.counts
    if noise is None:
        return {}
    scale = noise.scale if isinstance(noise, FineGaussian) else 1
    found: dict[str, Measurement] = {}
    for party, one in learned.items():
        names = layout.large_of(party)
        sizes = [layout.grouping.domain[name] for name in names]
        if len(one.counts) != sum(sizes):
            raise RefusedError(f"{party} sent {len(one.counts)} counts of values, not {sum(sizes)}")
        parts = np.split(one.counts / scale, np.cumsum(sizes)[:-1]) if names else []
        found |= {name: Measurement((name,), part, noise.variance) for name, part in zip(names, parts, strict=True)}
    return found


def read_sketches(plan: VertimrfPlan, sent: Mapping[str, Sketches], people: float) -> SketchTables:
    """Return tables across parties from their sketches."""
    layout, made = plan.layout, plan.account.sketches
    if made is None:
        raise RefusedError("this study has no sketches")
    ranks: dict[tuple[tuple[str, ...], str], NDArray[np.uint16]] = {}
    for party, one in sent.items():
        places = [(key, name) for key, names in plan.sketched_of(party) for name in names]
        sizes = [layout.bins[name] for _, name in places]
        if one.ranks.shape != (made.repetitions, sum(sizes)):
            raise RefusedError(f"{party} sent sketches whose shape is not the one in the study")
        if one.ranks.size and not made.floor <= one.ranks.min() <= one.ranks.max() <= made.top:
            raise RefusedError(f"{party} sent ranks outside the range of a sketch")
        parts = np.split(one.ranks, np.cumsum(sizes)[:-1], axis=1) if sizes else []
        ranks |= dict(zip(places, parts, strict=True))
    return SketchTables(plan=made, people=people, ranks=ranks)


def read_responses(plan: VertimrfPlan, sent: Mapping[str, Responses]) -> OracleTables:
    """Return tables across parties from all people's responses."""
    layout, codes = plan.layout, dict[str, NDArray[np.uint8]]()
    for party, one in sent.items():
        names = layout.coded_of(party)
        sizes = np.array([layout.bins[name] for name in names])
        if one.codes.shape != (layout.people, len(names)) or bool((one.codes >= sizes).any()):
            raise RefusedError(f"{party} sent responses whose shape is not the one in the study")
        codes |= {name: one.codes[:, place] for place, name in enumerate(names)}
    return OracleTables(responses=plan.account.responses, codes=codes)


def fitted_of(built: Built) -> Synthesis:
    """Return the model with its inputs: columns, tables within parties if there are any, tables across parties."""
    within = [built.within] if built.within else []
    return Synthesis(
        field=built.field,
        grouping=built.groups,
        one_way={one.names[0]: one.values for one in built.one_way},
        rounds=(built.one_way, *within, built.across),
    )


def draw_rows(session: Session[VertimrfPlan], built: Built, rows: int) -> SyntheticTable:
    """Draw rows from the model, and describe its inputs."""
    schema, fitted = session.terms.schema, fitted_of(built)
    plain = built.groups == Grouping.none(schema.domain)
    within = [() if plain else built.groups.groups] if built.within else []
    groups = [(), *within, session.plan.layout.grouping.groups]
    note = SynthesisNote(
        rounds=tuple(_round(session.parties, tables, used) for tables, used in zip(fitted.rounds, groups, strict=True)),
        total=fitted.total,
        groups=fitted.grouping.groups,
        cliques=built.field.tree.cliques,
        cells=built.field.tree.cells,
    )
    model = ReleasedModel(schema=schema, fitted=fitted)
    table = model.sample(rows, generator=generator(session.randomness))
    tables = tuple(one for each in fitted.rounds for one in each)
    return SyntheticTable(table=table, model=model, tables=tables, note=note)


def _round(
    present: tuple[str, ...], tables: tuple[Measurement, ...], groups: tuple[tuple[int, ...], ...]
) -> AskedRound:
    deviations = tuple(one.variance**0.5 for one in tables)
    return AskedRound(
        tables=tuple(one.names for one in tables),
        groups=groups,
        standard_deviation=max(deviations),
        present=present,
        deviations=deviations,
    )
