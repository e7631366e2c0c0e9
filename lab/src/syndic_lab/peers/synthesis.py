"""A synthetic table of Adult by one curator, beside MST and AIM: the same rows, coding, budget and tables compared."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any, Final, final

import numpy as np

from syndic.data import Domain
from syndic.errors import InputError
from syndic.methods import Synthesis
from syndic.model.markov import MarkovField
from syndic.privacy import default_delta, mu_squared_for, rho_for
from syndic_lab.bench.model.synthesis import Found, simulated, synthesis
from syndic_lab.bench.model.synthesis_data import Coded, alike, codes_of, distances, load
from syndic_lab.bench.row import Row
from syndic_lab.peers import aim as peer_aim
from syndic_lab.peers import swift as peer_swift
from syndic_lab.peers.aim import Codes
from syndic_lab.peers.ask import ask, row


@final
@dataclass(frozen=True)
class Plan:
    """A method of a library, and how far it may go: AIM as published takes hours."""

    method: str
    limits: dict[str, float] = field(default_factory=dict)
    quick: bool = True


EPSILONS: Final = ("0.8", "3.2")
SEEDS: Final = 10
SLOW_SEEDS: Final = 3

MAKERS: Final[dict[str, tuple[Plan, ...]]] = {
    "mbi": (
        Plan("MST", {"steps": 2500}),
        Plan("AIM", {"steps": 500, "rounds": 30, "megabytes": 1.0}),
    ),
    "dpmm": (
        Plan("MST", {"steps": 5000}),
        Plan("AIM", {"steps": 500, "rounds": 30, "megabytes": 1.0}, quick=False),
    ),
}


def rows(name: str, quick: bool) -> Iterator[Row]:
    """Yield distances and CPU seconds of our synthesis, beside those of a library's methods."""
    data = _adult()
    for epsilon in ("0.8",) if quick else EPSILONS:
        ours = [synthesis(data, epsilon, seed, alike, 1) for seed in range(2 if quick else SLOW_SEEDS)]
        for plan in MAKERS[name]:
            if plan.quick or not quick:
                yield from _beside(data, epsilon, ours, name, plan)


def over_our_inference(quick: bool) -> Iterator[Row]:
    """Yield the same beside methods written here over our inference, also at the delta that users get."""
    data = _adult()
    people = data.table.num_rows
    for delta in (Fraction(1, people), default_delta(people)):
        for epsilon in ("0.8",) if quick else EPSILONS:
            ours = [run_ours(data, epsilon, delta, seed) for seed in range(1 if quick else SEEDS)]
            for name, method in METHODS.items():
                theirs = [run_model(method, data, epsilon, delta, seed) for seed in range(1 if quick else SLOW_SEEDS)]
                what = f"{data.name}, epsilon {epsilon}, delta {float(delta):.1g}, {len(ours)} seeds"
                yield from both(f"{what}, beside {name}, {len(theirs)} seeds", ours, theirs)


def both(what: str, ours: Sequence[Found], theirs: Sequence[Found]) -> Iterator[Row]:
    """Yield mean and worst distances of both, and the CPU seconds of the fastest run."""
    for ways in ours[0].apart:
        for kind, summed in (("mean", np.mean), ("worst", np.max)):
            values = [float(summed([one.apart[ways] for one in found])) for found in (ours, theirs)]
            yield row(what, f"tvd{ways} {kind}", values[0], "distance", values[1])
    seconds = [min(one.seconds for one in found) for found in (ours, theirs)]
    yield row(what, "CPU seconds", seconds[0], "s", seconds[1])


def run_ours(data: Coded, epsilon: str, delta: Fraction, seed: int) -> Found:
    """Run `synthesis` once, for one curator."""
    begin, count = time.process_time(), data.table.num_rows
    made = simulated(data, Synthesis(rows=count), epsilon, seed, alike, 1, str(delta))
    return found(data, codes_of(made.table.to_arrow(), data.schema), time.process_time() - begin)


Method = Callable[[Codes, Domain, Fraction, Fraction, int], MarkovField]


def _aim(codes: Codes, domain: Domain, epsilon: Fraction, delta: Fraction, seed: int) -> MarkovField:
    return peer_aim.aim(codes, domain, peer_aim.Settings(float(rho_for(epsilon, delta))), seed)


def _aim_at_our_mu(codes: Codes, domain: Domain, epsilon: Fraction, delta: Fraction, seed: int) -> MarkovField:
    """Run AIM as if its exponential mechanism were Gaussian noise: no guarantee, but what accounting could give."""
    return peer_aim.aim(codes, domain, peer_aim.Settings(_half_mu(epsilon, delta)), seed)


def _aim_gdp(codes: Codes, domain: Domain, epsilon: Fraction, delta: Fraction, seed: int) -> MarkovField:
    return peer_aim.aim(codes, domain, peer_aim.Settings(_half_mu(epsilon, delta), gaussian=True), seed)


def _swift(codes: Codes, domain: Domain, epsilon: Fraction, delta: Fraction, seed: int) -> MarkovField:
    return peer_swift.swift(codes, domain, peer_swift.Settings(_half_mu(epsilon, delta)), seed)


def _half_mu(epsilon: Fraction, delta: Fraction) -> float:
    return float(mu_squared_for(epsilon, delta)) / 2


METHODS: Final[dict[str, Method]] = {
    "AIM": _aim,
    "AIM at our mu": _aim_at_our_mu,
    "AIM-GDP": _aim_gdp,
    "SWIFT": _swift,
}


def run_model(method: Method, data: Coded, epsilon: str, delta: Fraction, seed: int) -> Found:
    """Run another method over our inference once, as many rows out as in."""
    codes, begin = data.codes(), time.process_time()
    model = method(codes, data.domain, Fraction(epsilon), delta, seed)
    made = model.sample(data.table.num_rows, np.random.default_rng(seed))
    return found(data, made, time.process_time() - begin)


def found(data: Coded, made: Codes, seconds: float) -> Found:
    """Return how far the rows that a run made are from the real ones."""
    return Found(distances(data.codes(), made, data.domain), seconds, len(made[data.domain.names[0]]))


@cache
def _adult() -> Coded:
    """Return the rows, read once: what was made of them is remembered by the table."""
    return load("adult", "adult_coded")


def _beside(data: Coded, epsilon: str, ours: Sequence[Found], name: str, plan: Plan) -> Iterator[Row]:
    theirs = made_by(name, plan, data, epsilon, seed=0)
    what = f"{data.name}, epsilon {epsilon}, beside {plan.method} of {name}"
    for ways in theirs.apart:
        mean = float(np.mean([one.apart[ways] for one in ours]))
        yield row(what, f"tvd{ways}", mean, "distance", theirs.apart[ways])
    yield row(what, "CPU seconds", min(one.seconds for one in ours), "s", theirs.seconds)


def made_by(name: str, plan: Plan, data: Coded, epsilon: str, seed: int) -> Found:
    """Let a library make as many rows as there are, at delta one over their number."""
    count, codes = data.table.num_rows, data.codes()
    delta = Fraction(1, count)
    settings: dict[str, Any] = {
        **plan.limits,
        "method": plan.method,
        "epsilon": float(epsilon),
        "delta": float(delta),
        "rho": float(rho_for(Fraction(epsilon), delta)),
        "seed": seed,
    }
    table = np.column_stack([codes[name] for name in data.domain.names])
    answer = ask(name, settings, {"codes": table, "sizes": np.array(data.domain.sizes)})
    if answer.made is None or answer.made.shape[1] != len(data.domain):
        raise InputError(f"{name} left no table with the columns of {data.name}")
    columns = dict(zip(data.domain.names, answer.made.T, strict=True))
    return found(data, columns, answer.figures["seconds"])
