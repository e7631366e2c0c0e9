"""Whole methods with one function of theirs replaced by a wrong one: does what roles see show it?"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any, Final
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from syndic.kernel import Party
from syndic.methods import Distdiffgen, Dplt, Synthesis, Vertimrf
from syndic.methods.comparison.vertigan_plan import VertiganPlan
from syndic.methods.synthesis.account import RoundNoise
from syndic.noise import FineGaussian, RandomisedResponse
from syndic.privacy import Budget
from syndic.random import Randomness
from syndic_lab.audit.encoded import critics, responses_of, sketches_of
from syndic_lab.audit.observation import Trial
from syndic_lab.audit.planted_laws import Fault
from syndic_lab.audit.setting import Setting
from syndic_lab.audit.syntheses import LABELLED, TWO, UNEVEN, aligned, weigh_across, weigh_latent, weigh_leaves

Wrong = Callable[[], AbstractContextManager[Any]]
_WORK: Final = "syndic.methods.comparison.vertigan_work"


def methods() -> Iterator[Fault]:
    """Yield faults of methods on the stage; those that need torch only where it is installed."""
    for name, what, make, wrong, runs in _FAULTS:
        if name.startswith("vertigan") and find_spec("torch") is None:
            continue
        yield Fault(name=name, what=what, trials=partial(_trials, make, wrong, runs))


def _trials(make: Callable[[], Setting], wrong: Wrong, runs: int, seed: int) -> Sequence[Trial]:
    setting = make()
    with wrong():
        return setting.trials(runs, seed)


def _across() -> Setting:
    return aligned("synthesis across", Synthesis(rows=2), TWO, weigh_across)


def _latent() -> Setting:
    return aligned("dplt", Dplt(rows=4), UNEVEN, weigh_latent)


def _leaves() -> Setting:
    return aligned("distdiffgen", Distdiffgen(label="y", specialisations=2), LABELLED, weigh_leaves, moved=("y",))


def _four_sketched() -> Setting:
    plan = Vertimrf(local_models=False, bins=200, repetitions=20, phantoms=26, cap=8)
    return sketches_of(plan, {"a": ("x", "w"), "b": ("y", "z")})


# What is put in their place.


def _contribute(party: Party, share: Any, values: NDArray[np.int64], *, why: str) -> NDArray[np.int64]:
    """Stand in for `Party.contribute`: the first party's are exact."""
    randomness = party.charge(share.event, why=why)
    left = replace(share, shared=np.zeros_like(share.shared)) if party.name == "a" else share
    return np.asarray(left.apply(values, randomness))


def _halved(noise: RoundNoise, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:
    """Stand in for the noise of a round: half of it is added."""
    drawn = noise.noise.apply(np.zeros_like(values), randomness)
    return np.asarray(values * noise.scale + drawn // 2)


def _half_sigma(account: VertiganPlan, length: int) -> FineGaussian:
    whole = _WHOLE_NOISE(account, length)
    return FineGaussian(
        sensitivity_squared=whole.sensitivity_squared, mu_squared=4 * whole.mu_squared, changed=length, fraction_bits=0
    )


_WHOLE_NOISE: Final = VertiganPlan.noise


def _everybody(count: int, *_given: Any) -> NDArray[np.int64]:
    return np.zeros(count, dtype=np.int64)


def _doubled(response: RandomisedResponse, values: NDArray[Any], randomness: Randomness) -> NDArray[np.int64]:
    twice = RandomisedResponse(size=response.size, epsilon=2 * response.epsilon)
    return _RESPONSE(twice, values, randomness)


_RESPONSE: Final = RandomisedResponse.apply


def _same_key(secret: bytes, names: tuple[str, ...]) -> bytes:
    del names
    return secret[:16]


_FAULTS: Final[tuple[tuple[str, str, Callable[[], Setting], Wrong, int], ...]] = (
    (
        "synthesis across, a share of the noise missing",
        "tables across parties with one party's share only, which can take it off",
        _across,
        lambda: patch.object(Party, "contribute", _contribute),
        8,
    ),
    (
        "dplt, half the noise",
        "scores and tables of groups with half the noise that is charged",
        _latent,
        lambda: patch.object(RoundNoise, "apply", _halved),
        25,
    ),
    (
        "distdiffgen, choice at twice the strength",
        "scores of groups with half the noise that is charged",
        _leaves,
        lambda: patch.object(RoundNoise, "apply", _halved),
        50,
    ),
    (
        "vertimrf, one key for all pairs",
        "a person's rank shows in the sketches of all pairs of columns, and the charge is for keys of their own",
        _four_sketched,
        lambda: patch("syndic.methods.vertimrf.messages.pair_key", _same_key),
        15,
    ),
    (
        "vertimrf, half a charge for a response",
        "randomised responses of twice the epsilon that is charged, as published",
        lambda: responses_of(Vertimrf(way="oracle", local_models=False), Budget.of(1, "0.0001")),
        lambda: patch.object(RandomisedResponse, "apply", _doubled),
        50,
    ),
    (
        "vertigan, half the noise",
        "the noise on sums of gradients is half of what the account says",
        critics,
        lambda: patch.object(VertiganPlan, "noise", _half_sigma),
        15,
    ),
    (
        "vertigan, everybody in every sample",
        "the account is for samples, and nobody is left out",
        critics,
        lambda: patch(f"{_WORK}.uniform", _everybody),
        10,
    ),
)
