"""The coordinator's side of VertiMRF: what the parties sent becomes tables, a model and rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import RefusedError
from syndic.kernel import Session, Terms, schema_of
from syndic.methods.synthesis.result import AskedRound, ReleasedModel, SynthesisNote, SyntheticTable
from syndic.methods.vertimrf.model import Across, Build, Built, LocalModel, OracleTables, SketchTables
from syndic.methods.vertimrf.party import Learned, Responses, Sketches, model_of
from syndic.methods.vertimrf.requirements import VertiMRFTerms
from syndic.model.markov import Grouping, Measurement, Synthesis
from syndic.noise import FineGaussian
from syndic.random import generator


@final
@dataclass(frozen=True, kw_only=True)
class Found:
    """What the parties sent before their encodings."""

    protocol: VertiMRFTerms
    session: Session
    learned: Mapping[str, Learned]

    @cached_property
    def people(self) -> float:
        """The number of people: public, or the first party's noisy one."""
        layout, account = self.protocol.layout(self.session.terms), self.protocol.account_of(self.session.terms)
        if account.number is None:
            return float(layout.people)
        said = self.learned[self.session.parties[0]].people
        if said.shape != (1,):
            raise RefusedError(f"{self.session.parties[0]} did not say how many people there are")
        return float(max(1, int(said[0])))

    @cached_property
    def local(self) -> list[LocalModel]:
        """The parties' own models."""
        terms, protocol = self.session.terms, self.protocol
        if not protocol.local_models:
            return []
        found = []
        for name, one in self.learned.items():
            if len(one.models) != 1:
                raise RefusedError(f"{name} sent {len(one.models)} models of its columns")
            domain = schema_of(terms, name).domain
            found.append(model_of(one.models[0], domain, self.people, protocol.local_cells))
        return found

    @cached_property
    def counts(self) -> dict[str, Measurement]:
        """Noisy counts of the values of large columns."""
        layout, noise = self.protocol.layout(self.session.terms), self.protocol.account_of(self.session.terms).counts
        if noise is None:
            return {}
        scale = noise.scale if isinstance(noise, FineGaussian) else 1
        found: dict[str, Measurement] = {}
        for party, one in self.learned.items():
            names = layout.large_of(party)
            sizes = [layout.grouping.domain[name] for name in names]
            if len(one.counts) != sum(sizes):
                raise RefusedError(f"{party} sent {len(one.counts)} counts of values, not {sum(sizes)}")
            parts = np.split(one.counts / scale, np.cumsum(sizes)[:-1]) if names else []
            found |= {name: Measurement((name,), part, noise.variance) for name, part in zip(names, parts, strict=True)}
        return found

    def sketched(self, sent: Mapping[str, Sketches]) -> SketchTables:
        """Return tables across parties from their sketches."""
        layout, account = self.protocol.layout(self.session.terms), self.protocol.account_of(self.session.terms)
        if account.plan is None:
            raise RefusedError("this study has no sketches")
        ranks: dict[tuple[tuple[str, ...], str], NDArray[np.uint16]] = {}
        for party, one in sent.items():
            every = (((), layout.coded_of(party)),) if self.protocol.as_printed else layout.sketched_of(party)
            places = [(key, name) for key, names in every for name in names]
            sizes = [layout.bins[name] for _, name in places]
            if one.ranks.shape != (account.plan.repetitions, sum(sizes)):
                raise RefusedError(f"{party} sent sketches of another shape than the study says")
            if one.ranks.size and not account.plan.floor <= one.ranks.min() <= one.ranks.max() <= account.plan.top:
                raise RefusedError(f"{party} sent ranks that no sketch has")
            parts = np.split(one.ranks, np.cumsum(sizes)[:-1], axis=1) if sizes else []
            ranks |= dict(zip(places, parts, strict=True))
        return SketchTables(plan=account.plan, people=self.people, ranks=ranks)

    def responded(self, sent: Mapping[str, Responses]) -> OracleTables:
        """Return tables across parties from everybody's responses."""
        layout, account = self.protocol.layout(self.session.terms), self.protocol.account_of(self.session.terms)
        codes: dict[str, NDArray[np.uint8]] = {}
        for party, one in sent.items():
            names = layout.coded_of(party)
            sizes = np.array([layout.bins[name] for name in names])
            if one.codes.shape != (layout.people, len(names)) or bool((one.codes >= sizes).any()):
                raise RefusedError(f"{party} sent responses of another shape than the study says")
            codes |= {name: one.codes[:, place] for place, name in enumerate(names)}
        return OracleTables(responses=account.responses, codes=codes)


def build_of(
    protocol: VertiMRFTerms,
    terms: Terms,
    across: Across,
    *,
    people: float,
    local: Sequence[LocalModel],
    counts: Mapping[str, Measurement],
) -> Built:
    """Return the model of all columns, from what the parties sent and tables across them."""
    layout, columns = protocol.layout(terms), len(terms.schema.domain)
    return Build(
        bins=layout.grouping,
        people=people,
        pairs=layout.pairs,
        across=across,
        local=local,
        counts=counts,
        spread=protocol.recovery == "values",
        consistency=protocol.consistency,
        aware=not protocol.as_printed,
        largest=protocol.clique_cells,
        cells=protocol.model_cells,
        edges=protocol.edges_of(terms),
        refined=int(protocol.refined * columns),
        rounds=protocol.rounds or max(1, min(columns // 2, 8)),
    ).run()


def fitted_of(built: Built) -> Synthesis:
    """Return the model with what it was made of: columns, tables within parties if there are any, tables across."""
    within = [built.within] if built.within else []
    return Synthesis(
        field=built.field,
        grouping=built.groups,
        one_way={one.names[0]: one.values for one in built.one_way},
        rounds=(built.one_way, *within, built.across),
    )


def synthesised(found: Found, across: Across) -> SyntheticTable:
    """Build the model and draw rows from it."""
    terms, protocol = found.session.terms, found.protocol
    layout, domain = protocol.layout(terms), terms.schema.domain
    built = build_of(protocol, terms, across, people=found.people, local=found.local, counts=found.counts)
    fitted = fitted_of(built)
    rounds = fitted.rounds
    plain = built.groups == Grouping.none(domain)
    groups = [(), *([() if plain else built.groups.groups] if built.within else []), layout.grouping.groups]
    note = SynthesisNote(
        rounds=tuple(_round(found, tables, used) for tables, used in zip(rounds, groups, strict=True)),
        total=fitted.total,
        groups=fitted.grouping.groups,
        cliques=built.field.tree.cliques,
        cells=built.field.tree.cells,
    )
    model = ReleasedModel(schema=terms.schema, fitted=fitted)
    rows = round(found.people) if protocol.rows is None else protocol.rows
    table = model.sample(rows, generator=generator(found.session.randomness))
    return SyntheticTable(table=table, model=model, tables=tuple(one for each in rounds for one in each), note=note)


def _round(found: Found, tables: tuple[Measurement, ...], groups: tuple[tuple[int, ...], ...]) -> AskedRound:
    deviations = tuple(one.variance**0.5 for one in tables)
    return AskedRound(
        tables=tuple(one.names for one in tables),
        groups=groups,
        standard_deviation=max(deviations),
        present=found.session.parties,
        deviations=deviations,
    )
