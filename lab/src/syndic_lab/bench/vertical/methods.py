"""Every way to make one table of columns at several parties, by name: rows, time and traffic on a coded table."""

import time
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np

from syndic.methods import AnyMethod, Dplt, Glued, Synthesis, Vertigan, Vertimrf
from syndic.model.selection import Curator, PrivMRF
from syndic.privacy import GaussianEvent, mu_squared_for
from syndic.random import SimulationRandomness, generator
from syndic_lab.bench.model.synthesis_data import Coded, distances
from syndic_lab.bench.vertical.gan import SUITED
from syndic_lab.bench.vertical.runs import DELTA, Found, Made, cut, made_by, study_of

CURATOR: Final = "trusted curator"
PRIVMRF: Final = "PrivMRF, trusted curator"
SHARES: Final = "shares"
SKETCH: Final = "sketches"
ORACLE: Final = "randomised response"
SKETCH_PRINTED: Final = "sketches, as published"
ORACLE_PRINTED: Final = "randomised response, as published"
GLUED: Final = "glued"
TREE: Final = "latent tree"
GAN: Final = "VertiGAN"
GAN_SUITED: Final = "VertiGAN, suited to noise"

_PROTOCOLS: Final[dict[str, Callable[[], AnyMethod]]] = {
    SHARES: Synthesis,
    SKETCH: lambda: Vertimrf(way="sketch"),
    ORACLE: lambda: Vertimrf(way="oracle"),
    SKETCH_PRINTED: lambda: Vertimrf(way="sketch", as_published=True),
    ORACLE_PRINTED: lambda: Vertimrf(way="oracle", as_published=True),
    GLUED: Glued,
    TREE: Dplt,
    GAN: Vertigan,
    GAN_SUITED: lambda: Vertigan(**SUITED),
}
METHODS: Final = (CURATOR, PRIVMRF, *_PROTOCOLS)


def made(data: Coded, method: str, epsilon: str, seed: int, parties: int = 2) -> Made:
    """Return the rows that a method makes of a table, columns cut in order."""
    if method == PRIVMRF:
        return privmrf(data, epsilon, seed)
    if method == CURATOR:
        return made_by(data, study_of(data, epsilon, [data.domain.names], Synthesis()), seed)
    return made_with(data, _PROTOCOLS[method](), epsilon, seed, parties)


def made_with(data: Coded, protocol: AnyMethod, epsilon: str, seed: int, parties: int = 2) -> Made:
    """Return the rows of a protocol with these parameters; printed sketches claim to hide who is in."""
    printed = isinstance(protocol, Vertimrf) and protocol.as_published and protocol.way == "sketch"
    neighbours: Any = "add_remove" if printed else "replace"
    return made_by(data, study_of(data, epsilon, cut(data, parties), protocol, neighbours=neighbours), seed)


def privmrf(data: Coded, epsilon: str, seed: int) -> Made:
    """Return what the published PrivMRF makes, all columns at one curator, at the same budget."""
    mu_squared = mu_squared_for(Fraction(epsilon), DELTA)
    left = [mu_squared]

    def charge(event: GaussianEvent) -> None:
        left[0] -= event.mu_squared
        if left[0] < 0:
            raise ValueError("PrivMRF asked for more than its budget")

    curator = Curator(
        data.codes(), data.domain, SimulationRandomness(seed, "noise"), neighbours="replace", charge=charge
    )
    begin = time.process_time()
    fitted = PrivMRF().run(curator, mu_squared, generator(SimulationRandomness(seed, "choices")))
    drawn = fitted.sample(data.table.num_rows, generator(SimulationRandomness(seed, "rows")))
    seconds = time.process_time() - begin
    return Made({name: codes.astype(np.int64) for name, codes in drawn.items()}, seconds)


@lru_cache(maxsize=1024)
def found(data: Coded, method: str, epsilon: str, seed: int, parties: int = 2) -> Found:
    """Return distances, time and traffic of a method; a run that several experiments need is made once."""
    if method in (CURATOR, PRIVMRF):
        return measured(data, made(data, method, epsilon, seed, parties))
    return found_with(data, _PROTOCOLS[method](), epsilon, seed, parties)


@lru_cache(maxsize=1024)
def found_with(data: Coded, protocol: AnyMethod, epsilon: str, seed: int, parties: int = 2) -> Found:
    """Return the same of a protocol with these parameters."""
    return measured(data, made_with(data, protocol, epsilon, seed, parties))


def measured(data: Coded, rows: Made) -> Found:
    """Return the distances of a method's rows, with its time and traffic."""
    return Found(distances(data.codes(), rows.codes, data.domain), rows.seconds, rows.sent)
