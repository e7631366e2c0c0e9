"""VertiMRF: a synthetic table of the same people, different columns at each party (Zhao et al., KDD 2024).

The paper's phases, by name:

- *LocMRF*: every party fits a PrivMRF to noisy tables of its own columns and sends the model.
- *Dimension reduction*: columns with many values are encoded by a few bins.
- *LocEnc*: every party encodes its columns so that tables across parties can be estimated: by Flajolet-Martin sketches
  under a secret key (`way` "sketch"), or by randomised response on every code of every row ("oracle").
- *GraphCom*, *InitMRF*, *OptMRF*: the coordinator joins the parties' graphs by the strongest dependences across them,
  fits a model to the parties' own, refines it with tables across parties (made consistent, spread from bins over
  values), and draws rows.

*Neighbours*: one person's values are replaced, at all parties at once; which people are in the data is public. *Cost*:
one account over models, counts and encodings of all parties; every party is charged for all of it. *Sensitivity*: a
person is in one cell of each table, so replacing the person changes two counts by one. A person has one rank under each
key, in one value of each of its two columns, and one code in each column.

*Who sees what*: the coordinator sees models and encodings, everybody sees the release. Sketches protect against those
without the key. Every party has the key and sees the release, so sketches guarantee nothing against parties; randomised
response and local models protect against everybody. *Semi-honest*; with sketches the coordinator must collude with no
party.

As published, one key serves all columns, and the privacy loss has no bound (see `sketch/loss.py`); a row's responses
cost twice the stated epsilon. `as_published` is for simulation, and charges the true cost.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import ClassVar, Literal, final

import msgspec

from syndic.errors import InputError
from syndic.kernel import SAME_PEOPLE, Method, Nothing, Party, Requires, Session, Terms, step, strictest
from syndic.methods.synthesis.result import SyntheticTable, read_synthesis
from syndic.methods.vertimrf.account import Shares, oracle_account, printed_account, sketch_account
from syndic.methods.vertimrf.messages import (
    ORDER,
    Learned,
    Learner,
    Responses,
    Sketches,
    draw_rows,
    learn_columns,
    read_counts,
    read_models,
    read_people,
    read_responses,
    read_sketches,
    respond_by_column,
    sketch_columns,
)
from syndic.methods.vertimrf.model.build import Build, Built, LocalModel
from syndic.methods.vertimrf.model.tables import Across
from syndic.methods.vertimrf.plan import Account, Layout, VertimrfPlan, layout_of
from syndic.methods.vertimrf.sketch.encode import SketchPlan, floor_for
from syndic.model.markov import Measurement
from syndic.model.selection import Adaptive, PrivMRF, synthesise
from syndic.mpc.order import advance
from syndic.mpc.secret import SharedSecret
from syndic.privacy import Budget


@final
class Vertimrf(Method, tag="vertimrf"):
    """Parameters of VertiMRF.

    `way`: how columns are encoded. `local_models`: whether parties send models of their own columns; without them,
    tables within parties are estimated from encodings too. `local_method`: PrivMRF, as published, or Syndic's own
    choice of tables. `recovery`: how the count of a bin is divided among its values: in proportion to known counts, or
    evenly ("uniform"). `values`: the source of these counts: the local models, at no cost, or noisy counts of every
    value. `consistency`: whether tables across parties are made to agree with the columns' own counts. `local_share`,
    `values_share`, `number_share`: parts of epsilon for models, for counts of values, and (as published only) for the
    number of people; encodings get the rest. `bins`: of a column with more values. `repetitions`, `gamma`, `phantoms`,
    `cap`: of sketches; the last two are chosen for the smallest error unless both are given. `clique_cells`,
    `model_cells`, `local_cells`: limits on cliques, the model and local models. `edges`: the most between parties.
    `refined`: tables across parties that the model is fitted to, per column. `rounds`: in which they are chosen.
    """

    title: ClassVar[str] = "VertiMRF: synthesis across parties from local models and encoded columns"
    paper: ClassVar[str] = (
        "Zhao et al., VertiMRF: differentially private vertical federated data synthesis, KDD 2024; Cai et al. 2021"
    )
    partition: ClassVar[Literal["horizontal", "vertical"]] = "vertical"
    trust: ClassVar[str] = (
        "semi-honest; with sketches the coordinator colludes with no party and, unless the study lists identities, "
        "must not forge keys; sketches guarantee nothing against the parties, who have the key; with randomised "
        "response nobody needs to be trusted"
    )

    way: Literal["sketch", "oracle"] = "sketch"
    local_models: bool = True
    local_share: Fraction | None = None
    values: Literal["local", "noisy"] | None = None
    values_share: Fraction = msgspec.field(default_factory=lambda: Fraction(1, 5))
    number_share: Fraction = msgspec.field(default_factory=lambda: Fraction(1, 10))
    recovery: Literal["values", "uniform"] = "values"
    consistency: bool = True
    bins: int = 4
    repetitions: int = 2000
    gamma: Fraction = msgspec.field(default_factory=lambda: Fraction(1))
    phantoms: int | None = None
    cap: int | None = None
    clique_cells: int = 200_000
    model_cells: int = 1_000_000
    local_method: Literal["adaptive", "privmrf"] | None = None
    local_cells: int = 100_000
    edges: int | None = None
    refined: Fraction = msgspec.field(default_factory=lambda: Fraction(4, 5))
    rounds: int | None = None
    rows: int | None = None
    as_published: bool = False

    def __post_init__(self) -> None:
        self._check_numbers()
        given = self.phantoms is not None
        if given != (self.cap is not None) or (given and (self.as_published or self.way != "sketch")):
            raise ValueError('set phantoms and cap together, and only with way = "sketch" and without as_published')
        if self.values == "local" and not self.local_models:
            raise ValueError('values = "local" needs local_models')

    def _check_numbers(self) -> None:
        for name in ("local_share", "values_share", "number_share"):
            share = getattr(self, name)
            if share is not None and not 0 < share < 1:
                raise ValueError(f"{name} ({float(share):g}) must be between 0 and 1")
        if not 2 <= self.bins <= 256:
            raise ValueError(f"bins ({self.bins}) must be from 2 to 256")
        for name in ("repetitions", "phantoms", "cap", "clique_cells", "model_cells", "local_cells", "rounds"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} ({value}) must be at least 1")
        for name in ("edges", "refined", "rows"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ValueError(f"{name} ({value}) must not be negative")

    @property
    def requires(self) -> Requires:
        """The same people at every party, each with columns of its own."""
        usual = msgspec.structs.replace(SAME_PEOPLE, delta="noise on models and encodings")
        if not (self.as_published and self.way == "sketch"):
            return usual
        because = "the published sketches are for add_remove"
        return msgspec.structs.replace(usual, neighbours="add_remove", because=because)

    def plan(self, terms: Terms) -> VertimrfPlan:
        """Choose the bins of encoded columns, and calibrate the noise of models, counts and encodings."""
        layout = layout_of(terms, self.bins, local_models=self.local_models)
        if not layout.pairs:
            raise InputError(
                "no two columns of different parties have two values or more: there is nothing to learn across"
            )
        self._check_cells(terms)
        return VertimrfPlan(
            terms=terms,
            layout=layout,
            account=self._account(layout, strictest(terms)),
            secret=SharedSecret(label="sketches"),
            bins=self.bins,
            rows=layout.people if self.rows is None else self.rows,
            local_cells=self.local_cells,
            model_cells=self.model_cells,
        )

    # The parties' side.

    @step(reveals="noisy")
    def learn(self, party: Party[VertimrfPlan], message: Nothing) -> Learned:
        """Fit a model to noisy tables of own columns; count the values of large columns with noise."""
        del message
        if party.plan.account.sketches is not None:
            advance(party, ORDER, 1)
        return learn_columns(party, self.learner())

    @step(reveals="noisy")
    def sketch(self, party: Party[VertimrfPlan], message: Nothing) -> Sketches:
        """Sketch every encoded column under the parties' secret keys."""
        del message
        return sketch_columns(party)

    @step(reveals="noisy")
    def respond(self, party: Party[VertimrfPlan], message: Nothing) -> Responses:
        """Send every person's code of every column by randomised response."""
        del message
        return respond_by_column(party)

    def coordinate(self, session: Session[VertimrfPlan]) -> SyntheticTable:
        """Let the parties agree on keys, collect models and encodings, build the model, draw rows."""
        plan, sketched = session.plan, session.plan.account.sketches is not None
        if sketched:
            plan.secret.run(session)
        # LocMRF
        learned: Mapping[str, Learned] = session.ask(self.learn, Nothing()) if plan.account.learned else {}
        people = read_people(plan, learned)
        # LocEnc
        across: Across
        if sketched:
            across = read_sketches(plan, session.ask(self.sketch, Nothing()), people)
        else:
            across = read_responses(plan, session.ask(self.respond, Nothing()))
        # GraphCom, InitMRF, OptMRF
        local, counts = read_models(plan, learned, people), read_counts(plan, learned)
        built = self.build(plan.layout, across, people=people, local=local, counts=counts)
        return draw_rows(session, built, round(people) if self.rows is None else self.rows)

    def read(self, plan: VertimrfPlan, folder: Path) -> SyntheticTable:
        """Read back the synthetic table, its model and the tables it was fitted to."""
        return read_synthesis(plan.terms.schema, folder)

    def learner(self) -> Learner:
        """Return how parties fit their own models."""
        if self.local_method == "privmrf" or (self.local_method is None and self.as_published):
            published = PrivMRF(largest_clique=min(self.clique_cells, self.local_cells), cells=self.local_cells)
            return published.run
        # a party sends one grouping of levels with its tables
        chosen = Adaptive(cells=self.local_cells, merge_pairs=False)
        return lambda curator, mu_squared, _: synthesise(chosen, curator, mu_squared)

    def build(
        self,
        layout: Layout,
        across: Across,
        *,
        people: float,
        local: Sequence[LocalModel],
        counts: Mapping[str, Measurement],
    ) -> Built:
        """Return the model of all columns, from what the parties sent and tables across them."""
        columns, edges = len(layout.grouping.domain), self.edges
        if edges is None and self.as_published:
            # a fifth of the pairs of columns across parties
            edges = -(-len(layout.pairs) // 5)
        return Build(
            bins=layout.grouping,
            people=people,
            pairs=layout.pairs,
            across=across,
            local=local,
            counts=counts,
            spread=self.recovery == "values",
            consistency=self.consistency,
            aware=not self.as_published,
            largest=self.clique_cells,
            cells=self.model_cells,
            edges=edges,
            refined=int(self.refined * columns),
            rounds=self.rounds or max(1, min(columns // 2, 8)),
        ).run()

    def _account(self, layout: Layout, budget: Budget) -> Account:
        """Return the noise and events, the same for every party."""
        shares, sketched = self._shares(layout), self.way == "sketch"
        if self.as_published:
            return printed_account(
                layout, budget, shares, repetitions=self.repetitions, gamma=self.gamma, sketches=sketched
            )
        if not sketched:
            return oracle_account(layout, budget, shares)
        floor = 0 if self.phantoms is None else floor_for(self.phantoms, self.gamma)
        start = SketchPlan(
            phantoms=self.phantoms or 0,
            floor=min(floor, (self.cap or 2) - 1),
            repetitions=self.repetitions,
            gamma=self.gamma,
            cap=self.cap,
        )
        return sketch_account(layout, budget, shares, start)

    def _shares(self, layout: Layout) -> Shares:
        """Return the split of epsilon: only parts that are used get a share."""
        free = not self.as_published and self.local_models
        noisy = self.values == "noisy" or (self.values is None and not free)
        counted = noisy and self.recovery == "values" and bool(layout.large)
        # sketches are more accurate for their share than responses, so responses get a smaller one
        usual = Fraction(2, 5) if self.as_published else Fraction(1, 2) if self.way == "sketch" else Fraction(3, 4)
        local = usual if self.local_share is None else self.local_share
        shares = Shares(
            local=local if self.local_models else Fraction(0),
            values=self.values_share if counted else Fraction(0),
            number=self.number_share if self.as_published else Fraction(0),
        )
        if shares.encodings <= 0:
            raise InputError("local_share, values_share and number_share must leave something for the encodings")
        return shares

    def _check_cells(self, terms: Terms) -> None:
        """Refuse columns that do not fit into a model."""
        for party in terms.parties:
            sizes = {name: terms.schema.domain[name] for name in party.columns or ()}
            widest = max(sizes, key=lambda name: sizes[name])
            if sizes[widest] > self.clique_cells or sum(sizes.values()) > self.local_cells:
                raise InputError(
                    f"party '{party.name}': its columns have {sum(sizes.values()):,} values ('{widest}' "
                    f"{sizes[widest]:,}) and its model at most {self.local_cells:,} cells, a clique "
                    f"{self.clique_cells:,}: set fewer bins in the schema, or larger local_cells and clique_cells"
                )
        if sum(terms.schema.domain.sizes) > self.model_cells:
            raise InputError(f"all columns together have more values than model_cells ({self.model_cells:,}) allows")
