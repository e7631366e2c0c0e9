"""The messages of VertiMRF: how a party makes its model, counts and encodings, and what the coordinator reads there."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain, Factor
from syndic.errors import InputError, MethodError, RefusedError
from syndic.kernel import Message, Party, Session, schema_of
from syndic.methods.synthesis.result import AskedRound, SyntheticTable, draw_synthesis
from syndic.methods.vertimrf.account import local_slack
from syndic.methods.vertimrf.model.build import Built, LocalModel
from syndic.methods.vertimrf.model.tables import OracleTables, SketchTables
from syndic.methods.vertimrf.plan import Layout, Names, VertimrfPlan
from syndic.methods.vertimrf.sketch.encode import KEY_BYTES, People, encode, person_digests
from syndic.model.markov import JunctionTree, MarkovField, Measurement
from syndic.model.selection import Curator, Grouping, Synthesis
from syndic.mpc.key import derive
from syndic.mpc.order import advance
from syndic.noise import FineGaussian
from syndic.privacy import GaussianEvent
from syndic.random import Randomness, generator

ORDER = "VertiMRF"
"""With a secret, steps are answered once and in order; otherwise the ledger has no budget for a second answer."""

Codes = Mapping[str, NDArray[np.integer]]


class Model(Message):
    """A party's own model over groups of values, and the tables it was fitted to. Computed from noisy counts.

    `values` has the potentials one after the other, `one_way` the noisy counts of all values of all columns, which
    divide a group into its values, and `variances` those of the cells of each table.
    """

    groups: tuple[tuple[int, ...], ...]
    cliques: tuple[tuple[str, ...], ...]
    parents: tuple[int, ...]
    potentials: tuple[tuple[str, ...], ...]
    values: NDArray[np.float64]
    one_way: NDArray[np.float64]
    tables: tuple[tuple[str, ...], ...]
    variances: NDArray[np.float64]


class Learned(Message):
    """What a party sends about its own columns. All of it has noise.

    `models` has one model or none, `counts` the counts of its large columns' values, in units of the noise, and
    `people` the noisy number of people, where this party gives it.
    """

    models: tuple[Model, ...]
    counts: NDArray[np.int64]
    people: NDArray[np.int64]


class Sketches(Message):
    """The ranks of every value of every encoded column, one row per repetition; pairs one after the other."""

    ranks: NDArray[np.uint16]


class Responses(Message):
    """Everybody's randomised codes, one row per person."""

    codes: NDArray[np.uint8]


def read_codes(party: Party[VertimrfPlan]) -> Codes:
    """Return the party's rows, column by column. Private."""
    names = schema_of(party.terms, party.name).names
    batches = list(party.table.batches(names))
    return {name: np.concatenate([np.zeros(0, np.uint8), *(batch[name] for batch in batches)]) for name in names}


@final
class Part:
    """Tracks the cost of a party's own model against the part of mu^2 that was charged for it."""

    def __init__(self, mu_squared: Fraction) -> None:
        """Start with nothing spent."""
        self._left, self._slack = mu_squared, local_slack(mu_squared)

    def __call__(self, event: GaussianEvent) -> None:
        """Subtract an event; raise `MethodError` if too little is left: a bug in the method, not in the data."""
        self._left, self._slack = self._left - event.mu_squared, self._slack - event.slack
        if self._left < 0 or self._slack < 0:
            raise MethodError("a party's own model costs more than was charged for it")


Learner = Callable[[Curator, Fraction, np.random.Generator], Synthesis]
"""Fits a model to noisy tables of a curator's rows; the generator makes random choices that privacy does not need."""


def learn_columns(party: Party[VertimrfPlan], learner: Learner) -> Learned:
    """Return a party's own model, the number of people and counts of values, as far as the plan has them."""
    plan, account, codes = party.plan, party.plan.account, read_codes(party)
    charged = iter([party.charge(one, why="VertiMRF: own models, counts of values") for one in account.learned])
    choices = party.key_randomness("choices")
    models: tuple[Model, ...] = ()
    people = counts = np.zeros(0, dtype=np.int64)
    if account.local:
        domain, part = schema_of(plan.terms, party.name).domain, account.local[party.name]
        models = (own_model(plan.layout, codes, domain, part, learner, (next(charged), choices)),)
    if account.number is not None:
        noise = next(charged)
        # the first party sends it for all
        if party.name == plan.terms.parties[0].name:
            people = account.number.apply(np.array([len(next(iter(codes.values())))]), noise)
    if account.counts is not None:
        domain = plan.layout.grouping.domain
        large = [np.bincount(codes[name], minlength=domain[name]) for name in plan.layout.large_of(party.name)]
        exact = np.concatenate([np.zeros(0, np.int64), *large]).astype(np.int64)
        counts = account.counts.apply(exact, next(charged))
    return Learned(models=models, counts=counts, people=people)


def own_model(
    layout: Layout,
    codes: Codes,
    domain: Domain,
    mu_squared: Fraction,
    learner: Learner,
    randomness: tuple[Randomness, Randomness],
) -> Model:
    """LocMRF: return a model of a party's columns; noise from the first randomness, choices from the second."""
    noise, choices = randomness
    curator = Curator(codes, domain, noise, neighbours=layout.neighbours, charge=Part(mu_squared))
    made = learner(curator, mu_squared, generator(choices))
    field = made.field
    measured = [one for tables in made.rounds for one in tables if field.tree.home(one.names) is not None]
    # a table that was measured several times has the variance of the best measurement
    best = {one.names: one.variance for one in sorted(measured, key=lambda one: -one.variance)}
    return Model(
        groups=made.grouping.groups,
        cliques=field.tree.cliques,
        parents=field.tree.parents,
        potentials=tuple(one.domain.names for one in field.potentials),
        values=np.concatenate([np.zeros(0), *(one.values.ravel() for one in field.potentials)]),
        one_way=np.concatenate([made.one_way[name] for name in domain.names]),
        tables=tuple(best),
        variances=np.array(list(best.values())),
    )


def model_of(sent: Model, domain: Domain, people: float, cells: int) -> LocalModel:
    """Return the model that a party sent; refuse a model of other columns, or one that is too large."""
    try:
        grouping = Grouping(domain, sent.groups)
        tree = JunctionTree(grouping.domain_of_groups, sent.cliques, sent.parents)
        domains = [grouping.domain_of_groups.project(names) for names in sent.potentials]
        homes = [tree.home(names) for names in (*sent.potentials, *sent.tables)]
    except (InputError, ValueError):
        raise _refused() from None
    arrays = (
        (sent.values, sum(one.size for one in domains)),
        (sent.one_way, sum(domain.sizes)),
        (sent.variances, len(sent.tables)),
    )
    whole = all(one.shape == (size,) and bool(np.isfinite(one).all()) for one, size in arrays)
    if tree.cells > cells or None in homes or not whole or not bool((sent.variances > 0).all()) or not sent.tables:
        raise _refused()
    parts = np.split(sent.values, np.cumsum([one.size for one in domains])[:-1])
    potentials = tuple(Factor(one, part.reshape(one.sizes)) for one, part in zip(domains, parts, strict=False))
    field = MarkovField(grouping.domain_of_groups, tree, potentials, people)
    levels = np.split(sent.one_way, np.cumsum(domain.sizes)[:-1])
    one_way = dict(zip(domain.names, levels, strict=True))
    tables = dict(zip(sent.tables, sent.variances.tolist(), strict=True))
    return LocalModel(Synthesis(field, grouping, one_way, ()), tables)


def _refused() -> RefusedError:
    return RefusedError("a party's own model is not of its own columns, or is larger than the study allows")


def sketch_columns(party: Party[VertimrfPlan]) -> Sketches:
    """LocEnc by sketches: one key for each pair of columns, or as published one key for all."""
    plan, made = party.plan, party.plan.account.sketches
    if made is None:
        raise RefusedError("this study has no sketches")
    advance(party, ORDER, 2 if plan.account.learned else 1)
    secret = plan.secret.value(party)  # refuses before rows are read and anything is charged
    codes = plan.layout.grouping.recode(read_codes(party))
    noise = party.charge(plan.account.encoded, why="VertiMRF: sketches of all columns")
    rows = len(next(iter(codes.values())))
    digests = person_digests(derive(secret, "people"), (row.to_bytes(8, "little") for row in range(rows)))
    ranks = [np.zeros((made.repetitions, 0), np.uint16)]
    for names, part in plan.sketched_of(party.name):
        people = People(digests, np.stack([codes[name] for name in part], axis=1))
        sizes = [plan.layout.bins[name] for name in part]
        ranks.append(encode(made, pair_key(secret, names), [people], sizes, noise))
    return Sketches(ranks=np.concatenate(ranks, axis=1))


def respond_by_column(party: Party[VertimrfPlan]) -> Responses:
    """LocEnc by an oracle: everybody's code of every column by randomised response."""
    plan, codes = party.plan, party.plan.layout.grouping.recode(read_codes(party))
    noise = party.charge(plan.account.encoded, why="VertiMRF: randomised responses of all columns")
    own = plan.layout.coded_of(party.name)
    columns = [plan.account.responses[name].apply(codes[name], noise).astype(np.uint8) for name in own]
    people = np.zeros((len(next(iter(codes.values()))), 0), dtype=np.uint8)
    return Responses(codes=np.concatenate([people, *(column[:, None] for column in columns)], axis=1))


def pair_key(secret: bytes, names: Names) -> bytes:
    """Return the key of a pair of columns; the coordinator does not have it."""
    return derive(secret, "sketches", *names)[:KEY_BYTES]


# What the coordinator reads from the messages; all of it is checked.


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
    return Synthesis(
        field=built.field,
        grouping=built.groups,
        one_way={one.names[0]: one.values for one in built.one_way},
        rounds=(built.one_way, *([built.within] if built.within else []), built.across),
    )


def draw_rows(session: Session[VertimrfPlan], built: Built, rows: int) -> SyntheticTable:
    """Draw rows from the model, and describe its inputs."""
    schema, fitted = session.terms.schema, fitted_of(built)
    plain = built.groups == Grouping.none(schema.domain)
    within = [() if plain else built.groups.groups] if built.within else []
    groups = [(), *within, session.plan.layout.grouping.groups]
    deviations = [tuple(one.variance**0.5 for one in tables) for tables in fitted.rounds]
    asked = [
        AskedRound(
            tables=tuple(one.names for one in tables),
            groups=used,
            standard_deviation=max(each),
            present=session.parties,
            deviations=each,
        )
        for tables, used, each in zip(fitted.rounds, groups, deviations, strict=True)
    ]
    return draw_synthesis(session, fitted, asked, rows)
