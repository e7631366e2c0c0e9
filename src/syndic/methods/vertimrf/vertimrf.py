"""VertiMRF: one synthetic table of columns that different parties hold of the same people (Zhao et al., KDD 2024).

The paper's phases, by name:

- *LocMRF*: every party fits a PrivMRF to noisy tables of its own columns and sends the model.
- *Dimension reduction*: columns with many values are encoded by a few bins.
- *LocEnc*: every party encodes its columns so that tables across parties can be estimated: by Flajolet-Martin sketches
  under a secret key (`way` "sketch"), or by randomised response on every code of every row ("oracle").
- *GraphCom*, *InitMRF*, *OptMRF*: the coordinator joins the parties' graphs by the strongest dependences across them,
  fits a model to the parties' own, refines it with tables across parties (made consistent, spread from bins over
  values), and draws rows.

*Neighbours*: one person's values are replaced, at all parties at once; who is in and how many are public. *Cost*: one
account over models, counts and encodings of all parties; every party is charged for all of it. *Sensitivity*: a
person is in one cell of each table, so replacing one moves two counts by one; has one rank under each key, in one
value of each of the two columns under it; and one code in each column.

*Who sees what*: the coordinator sees models and encodings, everybody the release. Sketches protect against those
without the key. Every party has the key and sees the release, so nothing is promised against parties; randomised
response and local models protect against everybody. *Semi-honest*; the coordinator colludes with no party where there
are keys.

As printed, one key serves all columns, and the privacy loss has no bound (see `sketch/loss.py`); a row's responses
cost twice what is said. `as_printed` is for simulation, and charges what holds.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal, final

import numpy as np

from syndic.errors import RefusedError
from syndic.kernel import Disclosure, Nothing, Party, Resources, Session, Terms, member, schema_of, step, steps_of
from syndic.methods.synthesis.result import SyntheticTable, read_synthesis
from syndic.methods.vertimrf.disclosure import check_study, disclosure_of, estimate_of
from syndic.methods.vertimrf.party import (
    Learned,
    Model,
    Responses,
    Sketches,
    one_key_sketches,
    own_model,
    read_codes,
    sketches,
    value_counts,
)
from syndic.methods.vertimrf.requirements import VertiMRFTerms
from syndic.methods.vertimrf.run import Found, synthesised
from syndic.mpc.order import advance
from syndic.mpc.secret import SharedSecret, UsesSharedSecret
from syndic.privacy import Event

_LABEL = "sketches"
_ORDER = "VertiMRF"


@final
class Vertimrf(VertiMRFTerms, tag="vertimrf"):
    """The method; its parameters are those of `VertiMRFTerms`."""

    title: ClassVar[str] = "VertiMRF: synthesis across parties from local models and encoded columns"
    paper: ClassVar[str] = (
        "Zhao et al., VertiMRF: differentially private vertical federated data synthesis, KDD 2024; Cai et al. 2021"
    )
    partition: ClassVar[Literal["horizontal", "vertical"]] = "vertical"
    trust: ClassVar[str] = (
        "semi-honest; with sketches the coordinator gets the key from no party and, unless the study gives identities, "
        "must not forge keys, and nothing is promised against the parties, who have it; with randomised response "
        "nobody needs to be trusted"
    )

    @property
    def simulation_only(self) -> bool:
        """The printed account does not keep its promise."""
        return self.as_printed

    # The parties' side. Where a secret comes first, steps are answered once and in order; where none does, the ledger
    # has no room for a second answer.

    @step(reveals="noisy")
    def learn(self, party: Party, message: Nothing) -> Learned:
        """Fit a model to noisy tables of the own columns; count the values of large columns with noise."""
        del message
        if self.way == "sketch":
            advance(party, _ORDER, 1)
        layout, account = self.layout(party.terms), self.account_of(party.terms)
        codes = read_codes(party, exact=layout.neighbours == "replace")
        noises = [party.charge(event, why="VertiMRF: own models, counts of values") for event in account.learned]
        models: tuple[Model, ...] = ()
        if account.local:
            domain = schema_of(party.terms, party.name).domain
            randomness = noises.pop(0), party.key_randomness("choices")
            part = account.local[party.name]
            models = (own_model(layout, codes, domain, part, self.learner(), randomness),)
        people = np.zeros(0, dtype=np.int64)
        if account.number is not None:
            noise = noises.pop(0)
            if party.name == party.terms.parties[0].name:
                people = account.number.apply(np.array([len(next(iter(codes.values())))]), noise)
        counts = np.zeros(0, dtype=np.int64)
        if account.counts is not None:
            counts = account.counts.apply(value_counts(layout, party.name, codes), noises.pop(0))
        return Learned(models=models, counts=counts, people=people)

    @step(reveals="noisy")
    def sketch(self, party: Party, message: Nothing) -> Sketches:
        """Sketch every encoded column under the parties' secret keys."""
        del message
        advance(party, _ORDER, 2 if self.learns(party.terms) else 1)
        layout, account = self.layout(party.terms), self.account_of(party.terms)
        if account.plan is None:
            raise RefusedError("this study has no sketches")
        codes = layout.grouping.recode(read_codes(party, exact=layout.neighbours == "replace"))
        noise = party.charge(account.encoded, why="VertiMRF: sketches of all columns")
        made = one_key_sketches if self.as_printed else sketches
        return made(layout, party.name, codes, account.plan, SharedSecret(label=_LABEL).value(party), noise)

    @step(reveals="noisy")
    def respond(self, party: Party, message: Nothing) -> Responses:
        """Answer for every person and column by randomised response."""
        del message
        layout, account = self.layout(party.terms), self.account_of(party.terms)
        codes = layout.grouping.recode(read_codes(party, exact=True))
        noise = party.charge(account.encoded, why="VertiMRF: randomised responses of all columns")
        own = layout.coded_of(party.name)
        columns = [account.responses[name].apply(codes[name], noise).astype(np.uint8) for name in own]
        people = np.zeros((len(next(iter(codes.values()))), 0), dtype=np.uint8)
        return Responses(codes=np.concatenate([people, *(column[:, None] for column in columns)], axis=1))

    def asked(self, terms: Terms) -> tuple[str, ...]:
        """Return the steps of this way."""
        secret = set(steps_of(UsesSharedSecret)) - {"ready"}
        unused = {"respond"} if self.way == "sketch" else {"sketch", *secret}
        unused |= set() if self.learns(terms) else {"learn"}
        return tuple(name for name in super().asked(terms) if name not in unused)

    # The coordinator's side.

    def coordinate(self, session: Session) -> SyntheticTable:
        """Let the parties agree on keys, collect models and encodings, build the model, draw rows."""
        if self.way == "sketch":
            SharedSecret(label=_LABEL).run(session)
        learned: Mapping[str, Learned] = session.ask(self.learn, Nothing()) if self.learns(session.terms) else {}
        found = Found(protocol=self, session=session, learned=learned)
        if self.way == "sketch":
            return synthesised(found, found.sketched(session.ask(self.sketch, Nothing())))
        return synthesised(found, found.responded(session.ask(self.respond, Nothing())))

    def read_result(self, terms: Terms, folder: Path) -> SyntheticTable:
        """Read back the synthetic table, its model and the tables it was fitted to."""
        return read_synthesis(terms.schema, folder)

    # What is known before any row is read.

    def check(self, terms: Terms) -> None:
        """Refuse what cannot work, with what to change."""
        check_study(self, terms)

    def spends(self, terms: Terms, party: str) -> tuple[Event, ...]:
        """Models and counts of all parties together, and encodings of all parties together."""
        member(terms, party)
        return self.account_of(terms).events

    def estimate(self, terms: Terms) -> Resources:
        """Bytes of the largest reply, memory at the coordinator, time for hashing and fitting."""
        return estimate_of(self, terms)

    def disclosure(self, terms: Terms) -> Disclosure:
        """State what every role sees."""
        return disclosure_of(self, terms)
