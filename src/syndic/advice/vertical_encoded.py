"""Run VertiMRF on artificial people: real local models, and tables across parties with the noise of encodings."""

from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.advice.vertical_people import Codes
from syndic.kernel import schema_of
from syndic.methods import Vertimrf
from syndic.methods.vertimrf.messages import fitted_of, model_of, own_model
from syndic.methods.vertimrf.model.tables import OracleTables
from syndic.methods.vertimrf.plan import Account, Layout, VertimrfPlan
from syndic.methods.vertimrf.sketch.estimate import cell_error
from syndic.random import SimulationRandomness
from syndic.study import Study

Names = tuple[str, ...]


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class MadeUpTables:
    """Tables over bins of artificial people, with normal noise as large as that of their encodings."""

    layout: Layout
    account: Account
    codes: Codes
    draws: np.random.Generator
    known: dict[Names, NDArray[np.float64]] = field(default_factory=dict)

    def table(self, names: Names) -> NDArray[np.float64]:
        """Return the noisy table, the same at every call."""
        if names not in self.known:
            part = self.layout.grouping.domain_of_groups.project(names)
            counts = np.bincount(part.index([self.codes[name] for name in names]), minlength=part.size)
            self.known[names] = counts.reshape(part.sizes) + self.draws.normal(
                0, self.variance(names) ** 0.5, part.sizes
            )
        return self.known[names]

    def variance(self, names: Names) -> float:
        """Return the approximate variance of one cell of a table."""
        people, made = self.layout.people, self.account.sketches
        if made is None:
            return people * OracleTables(responses=self.account.responses, codes={}).factor(names)
        sketches = sum(self.layout.bins[name] - 1 for name in names)
        return min(cell_error(made, people=people, sketches=sketches), 1e4 * people) ** 2


def forecast_encoded(study: Study, people: Codes, draws: np.random.Generator) -> Codes:
    """Return the rows that VertiMRF would make from artificial people."""
    protocol = study.protocol
    if not isinstance(protocol, Vertimrf):
        raise TypeError("this forecast is for VertiMRF")
    plan, seed = study.plan_as(VertimrfPlan), int(draws.integers(2**31))
    layout, account = plan.layout, plan.account
    local = []
    for name, part in account.local.items():
        domain = schema_of(study, name).domain
        own = {column: people[column] for column in domain.names}
        randomness = SimulationRandomness(seed, name, "noise"), SimulationRandomness(seed, name, "choices")
        sent = own_model(layout, own, domain, part, protocol.learner(), randomness)
        local.append(model_of(sent, domain, layout.people, protocol.local_cells))
    across = MadeUpTables(layout=layout, account=account, codes=layout.grouping.recode(people), draws=draws)
    built = protocol.build(layout, across, people=layout.people, local=local, counts={})
    return {name: codes.astype(np.int64) for name, codes in fitted_of(built).sample(layout.people, draws).items()}
