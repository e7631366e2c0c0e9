"""What learning costs, needs and gives away, before any row is read."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from syndic.data import Boolean
from syndic.data.column import Listed
from syndic.errors import InputError
from syndic.kernel import Disclosure, Resources, Terms, budget_of, member, people_of
from syndic.methods.learning.disclosure import CURVED, PRINTED, SIMULATED, gradient_words, model_words, words
from syndic.methods.learning.query import Query
from syndic.methods.learning.requirements import RiskTerms, budgets_of
from syndic.methods.learning.scheme import Descent, Scheme
from syndic.methods.refusals import check_fits
from syndic.model.erm.loss import Numbers
from syndic.model.erm.noise_law import ObjectiveNoise
from syndic.model.erm.private import Variant, local_objective
from syndic.model.erm.solve import least_regularisation
from syndic.mpc.key import KEY_BYTES
from syndic.privacy import Cost, Event, joint_cost

# points of the guarantee along the rounds that a result keeps
_SHOWN = 20
# noise of one value passes what there is room for with a chance below this over all values
_OVERFLOW = 2.0**-64
# noise is added to 64-bit numbers, which must not wrap
_MOST_BITS = 62


class RiskPlan(RiskTerms):
    """Everything about learning that is said before it begins; see `Risk`."""

    def asked(self, terms: Terms) -> tuple[str, ...]:
        """Return the steps that this scheme asks."""
        del terms
        masked = ("rounds_keys", "rounds_meet", "contribute", *(("round_open",) if self.missing else ()))
        return ("ready", *{"masked": masked, "local": ("release",), "open": ("give",)}[self.channel])

    def check(self, terms: Terms) -> None:
        """Refuse what cannot work, with what it would need."""
        self._check_parties(terms)
        self._check_label(terms)
        if self.averages_models:
            self._check_minimiser(terms)
        if self.channel == "open":
            self._check_open(terms)
        if self.channel == "masked":
            self.rounds_plan(terms)
        try:
            for query, _ in self.scheme_of(terms).stages:
                self.deviation_of(terms, query)
                self._check_room(terms, query)
        except ValueError as error:
            raise InputError(f"the noise cannot be made: {error}") from None
        self._check_size(terms)

    def _check_parties(self, terms: Terms) -> None:
        needs_delta = self.noise == "gaussian" or self.channel == "open"
        for party in terms.parties:
            if party.people is None:
                raise InputError(f"party '{party.name}': sums are divided by a public number of people: set people")
            if party.columns is not None:
                raise InputError(f"party '{party.name}': every party holds all columns here; leave columns out")
            if needs_delta and budget_of(terms, party.name).delta == 0:
                raise InputError(f"party '{party.name}': this noise needs delta above 0; set it or use laplace")
        if not self.people_at(terms):
            raise InputError(f"no party has the minimum of {self.minimum} people: lower it")

    def _check_label(self, terms: Terms) -> None:
        try:
            encoding = self.encoding_of(terms)
            encoding.design.features  # noqa: B018 (its own checks are the checks)
        except ValueError as error:
            raise InputError(f"{error}") from None
        listed = isinstance(terms.schema[self.label], Listed | Boolean)
        if listed == (self.loss in ("ridge", "huber")):
            what, other = (
                ("is no number", "logistic, softmax or hinge") if listed else ("is a number", "ridge or huber")
            )
            raise InputError(f"'{self.label}' {what}: use loss = {other}")
        if self.loss == "softmax" and (encoding.models < 2 or self.averages_models or self.channel == "open"):
            raise InputError("softmax is for gradients of three classes or more: leave positive out, or use logistic")

    def _check_minimiser(self, terms: Terms) -> None:
        """Refuse what has no minimiser of bounded sensitivity, or one that a solver may not reach."""
        self.objective.check_minimiser()
        # a record counts by the public number of people, so many rows of each make a penalty less
        least = terms.unit.rows * least_regularisation(self.objective.loss)
        if self.channel != "open" and self.regularisation < least:
            raise InputError(
                f"regularisation ({self.regularisation:g}) must be at least {least:.2g} here: with less a solver may "
                "not reach the minimiser, which the noise relies on"
            )

    def _check_open(self, terms: Terms) -> None:
        if terms.unit.parties > 1 or terms.unit.rows > 1:
            raise InputError("simulated variants are for people with one row at one party")
        if self.scheme == "local_obj" and self.encoding_of(terms).models > 1:
            raise InputError("objective perturbation is for one model: name the positive class")
        if self.scheme == "local_obj" and self.loss != "logistic":
            raise InputError("objective perturbation needs a loss that is smooth twice over: use loss = logistic")

    def _check_room(self, terms: Terms, query: Query) -> None:
        """Refuse numbers that could leave 64 bits with their noise: a failure at some of them would tell something."""
        match self.channel:
            case "masked":
                bits = self.ring_of(terms, query).bits
            case "local":
                chance = _OVERFLOW / query.dimension
                reach = max(
                    query.largest(size, terms.unit.rows) + self.law_of(terms, query, name).tail(chance)
                    for name, size in self.people_at(terms).items()
                )
                bits = reach.bit_length() + 1
            case "open":
                return
        if bits > _MOST_BITS:
            raise InputError(f"sums of {bits} bits leave no room for noise in 64: lower clip, or raise epsilon")

    def _check_size(self, terms: Terms) -> None:
        check_fits(terms, self.estimate(terms), "name fewer features")

    def spends(self, terms: Terms, party: str) -> tuple[Event, ...]:
        """One event for each round; nothing where a party abstains."""
        member(terms, party)
        if self.abstains(terms, party):
            return ()
        stages = self.scheme_of(terms).stages
        return tuple(event for query, times in stages for event in (self.event_of(terms, query, party),) * times)

    def guarantee_of(self, terms: Terms) -> tuple[tuple[int, float], ...]:
        """Return (round, epsilon) of all that is published up to some rounds, for the person who pays most."""
        scheme, delta = self.scheme_of(terms), delta_of(terms)
        budgets = {name: budget_of(terms, name) for name in self.people_at(terms)}
        payers = {budget: name for name, budget in budgets.items()}
        found = []
        for number in sorted({max(1, round(scheme.rounds * place / _SHOWN)) for place in range(_SHOWN + 1)}):
            each = {budget: self._cost_until(terms, scheme, name, number) for budget, name in payers.items()}
            joint = joint_cost({name: each[budget] for name, budget in budgets.items()}, terms.unit)
            found.append((number, float(joint.epsilon(delta))))
        return tuple(found)

    def _cost_until(self, terms: Terms, scheme: Scheme, party: str, number: int) -> Cost:
        total, before = Cost(), 0
        for query, times in scheme.stages:
            asked = min(times, max(0, number - before))
            total, before = total + Cost.of([self.event_of(terms, query, party)]).times(asked), before + times
        return total

    def estimate(self, terms: Terms) -> Resources:
        """Bytes of a reply, memory for the largest party's rows, time for all rounds."""
        scheme, (models, features) = self.scheme_of(terms), self.encoding_of(terms).shape
        largest, parties = max(self.people_at(terms).values()) * terms.unit.rows, len(terms.parties)
        masked = self.channel == "masked"
        trips = scheme.rounds * (2 if masked and self.missing else 1) + (3 if masked else 1)
        neighbours = self.rounds_plan(terms).neighbours if masked else 0
        held = largest if self.averages_models else min(largest, 2**16)
        widest = max(query.dimension for query, _ in scheme.stages)
        people = people_of(terms) or 0
        each = 5e-3 + neighbours * 2e-5
        return Resources(
            memory_bytes=10**8 + 32 * held * (features + models) + 24 * parties * widest,
            reply_bytes=8 * widest + 64,
            rounds=trips,
            seconds=round(1.0 + trips * parties * each + scheme.rounds * people * features * 3e-9, 1),
            notes=self._notes(terms, scheme, neighbours),
        )

    def _notes(self, terms: Terms, scheme: Scheme, neighbours: int) -> tuple[str, ...]:
        models, features = scheme.shape
        query = scheme.query(scheme.rounds)
        first = f"{models} model(s) of {features} weights; {scheme.rounds} sum(s), {scheme.people:,} people"
        noise = f"standard deviation {self.deviation_of(terms, query):.3g} of the noise on each number of an average"
        if self.channel != "masked":
            return first, noise
        ring = self.ring_of(terms, query)
        return (
            first,
            noise,
            f"{neighbours} neighbours a party ({KEY_BYTES} bytes each, once), {ring.bits} bits a number",
        )

    def disclosure(self, terms: Terms) -> Disclosure:
        """State what every role sees."""
        unit, records = terms.unit, self.records(terms)
        change = "adding or removing" if unit.neighbours == "add_remove" else "replacing"
        if self.averages_models:
            why = model_words(change=change, records=records, clip=self.clip, parties=unit.parties)
        else:
            rounds = self.rounds
            why = gradient_words(change=change, records=records, clip=self.clip, rounds=rounds, parties=unit.parties)
        if self.scheme == "newton":
            why += CURVED
        return words(
            masked=self.channel == "masked",
            numbers=self._numbers,
            sensitivity=why,
            unit=unit,
            who=(self.colluding, self.missing),
            departures=self._departures(),
        )

    @property
    def _numbers(self) -> str:
        """What is added up, in words."""
        if self.averages_models:
            return "models"
        return ("gradients and curvatures" if self.scheme == "newton" else "gradients") + " in every round"

    def _departures(self) -> tuple[str, ...]:
        if not self.simulation_only:
            return ()
        spherical = ("spherical noise cannot be drawn exactly or in shares",) if self.noise == "spherical" else ()
        return (
            *((PRINTED[self.scheme],) if self.as_printed else ()),
            *((SIMULATED[self.scheme],) if self.scheme in SIMULATED else ()),
            *spherical,
            "exact numbers are handed to a functionality that is not there, and noise is drawn in floating point",
        )

    # What only simulated variants have.

    def objective_noise(self, terms: Terms) -> ObjectiveNoise:
        """Return the random linear term of objective perturbation."""
        variant: Variant = "as_printed" if self.as_printed else "sound"
        return local_objective(self.setting_of(terms), self.objective.loss.smoothness, variant)

    def shared_vector(self, terms: Terms, draws: np.random.Generator) -> Numbers | None:
        """Return the one vector that all parties use in objective perturbation as printed."""
        if self.scheme != "local_obj" or not self.as_printed:
            return None
        return self.objective_noise(terms).law.simulate(self.encoding_of(terms).shape, draws)

    def simulated_scheme(self, terms: Terms, scheme: Scheme, draws: np.random.Generator) -> Scheme:
        """Return the scheme with the fixed vector and the further penalty of Rajkumar and Agarwal."""
        noise = self.open_of(terms, scheme.query(1))
        if not isinstance(scheme, Descent) or noise.start is None:
            return scheme
        linear = noise.start.simulate(scheme.shape, draws) / scheme.people
        return replace(scheme, linear=linear, regularisation=scheme.regularisation + noise.extra)


def delta_of(terms: Terms) -> Fraction:
    """Return the delta at which guarantees are stated."""
    return max(budget.delta for budget in budgets_of(terms))
