"""Parameters of VertiMRF, and what follows from them and the study alone."""

from fractions import Fraction
from functools import lru_cache
from typing import Literal

import msgspec

from syndic.errors import InputError
from syndic.kernel import Terms
from syndic.methods.vertimrf.account import Account, Shares, oracle_account, sketch_account, strictest
from syndic.methods.vertimrf.layout import Layout, layout_of
from syndic.methods.vertimrf.party import Learner
from syndic.methods.vertimrf.published import printed_account
from syndic.methods.vertimrf.sketch import SketchPlan, floor_for
from syndic.model.markov import Adaptive, PrivMRF
from syndic.mpc.secret import UsesSharedSecret


class VertiMRFTerms(UsesSharedSecret):
    """Parameters of VertiMRF.

    `way`: how columns are encoded. `local_models`: whether parties send models of their own columns; without, tables
    within parties are estimated from encodings too. `local_method`: PrivMRF, as printed, or this library's choice of
    tables. `recovery`: bins are spread over values by what is known of the values, or evenly ("uniform"). `values`:
    where that is known from: the local models, at no cost, or noisy counts of every value. `consistency`: whether
    tables across parties are made to agree with the columns' own counts. `local_share`, `values_share`,
    `number_share`: parts of epsilon for models, for counts of values, and (as printed only) for the number of people;
    encodings get the rest. `bins`: of a column with more values. `repetitions`, `gamma`, `phantoms`, `cap`: of
    sketches; the last two are chosen for the least error unless both are given. `clique_cells`, `model_cells`,
    `local_cells`: how large cliques, the model and local models may be. `edges`: the most between parties. `refined`:
    tables across parties that the model is fitted to, for each column. `rounds`: in which they are chosen.
    """

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
    as_printed: bool = False

    def __post_init__(self) -> None:
        self._check_numbers()
        given = self.phantoms is not None
        if given != (self.cap is not None) or (given and (self.as_printed or self.way != "sketch")):
            raise ValueError("phantoms and cap go together, and with sketches that keep their promise only")
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

    def learner(self) -> Learner:
        """Return how parties fit their own models."""
        if self.local_method == "privmrf" or (self.local_method is None and self.as_printed):
            printed = PrivMRF(largest_clique=min(self.clique_cells, self.local_cells), cells=self.local_cells)
            return printed.run
        chosen = Adaptive(cells=self.local_cells)
        return lambda curator, mu_squared, _: chosen.run(curator, mu_squared)

    def learns(self, terms: Terms) -> bool:
        """Return whether parties say anything but their encodings."""
        return bool(self.account_of(terms).learned)

    def shares_of(self, layout: Layout) -> Shares:
        """Return how epsilon is split: only what is made gets a part."""
        free = not self.as_printed and self.local_models
        noisy = self.values == "noisy" or (self.values is None and not free)
        counted = noisy and self.recovery == "values" and bool(layout.large)
        # sketches tell more for their part than responses do, so these get less
        usual = Fraction(2, 5) if self.as_printed else Fraction(1, 2) if self.way == "sketch" else Fraction(3, 4)
        local = usual if self.local_share is None else self.local_share
        shares = Shares(
            local=local if self.local_models else Fraction(0),
            values=self.values_share if counted else Fraction(0),
            number=self.number_share if self.as_printed else Fraction(0),
        )
        if shares.encodings <= 0:
            raise InputError("local_share, values_share and number_share must leave something for the encodings")
        return shares

    def edges_of(self, terms: Terms) -> int | None:
        """Return the most edges between parties: as printed a fifth of the pairs of columns across parties."""
        if self.edges is not None or not self.as_printed:
            return self.edges
        return -(-len(self.layout(terms).pairs) // 5)

    def layout(self, terms: Terms) -> Layout:
        """Return which columns are encoded, in which bins, and which pairs together."""
        return layout_of(terms, self.bins, local_models=self.local_models)

    def account_of(self, terms: Terms) -> Account:
        """Return noise and events, the same for every party."""
        return _account_of(self, terms)  # type: ignore[arg-type]  # a study is frozen: it has a hash


@lru_cache(maxsize=32)
def _account_of(protocol: VertiMRFTerms, terms: Terms) -> Account:
    layout, budget = protocol.layout(terms), strictest(terms)
    shares, sketched = protocol.shares_of(layout), protocol.way == "sketch"
    if protocol.as_printed:
        return printed_account(
            layout, budget, shares, repetitions=protocol.repetitions, gamma=protocol.gamma, sketches=sketched
        )
    if not sketched:
        return oracle_account(layout, budget, shares)
    floor = 0 if protocol.phantoms is None else floor_for(protocol.phantoms, protocol.gamma)
    start = SketchPlan(
        phantoms=protocol.phantoms or 0,
        floor=min(floor, (protocol.cap or 2) - 1),
        repetitions=protocol.repetitions,
        gamma=protocol.gamma,
        cap=protocol.cap,
    )
    return sketch_account(layout, budget, shares, start)
