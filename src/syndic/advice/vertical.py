"""Recommend a method for a vertical study, and predict its distance from the data. Reads no row, spends nothing.

Artificial people, in as many columns and values as the study declares, go through every method: its own choice of
tables and its own noise, without parties and cryptography. There are three populations, from easy to hard to
synthesise.
"""

from collections.abc import Callable, Mapping
from typing import Final, get_args

import msgspec
import numpy as np

from syndic.advice.advice import Expected, Recommended, Variant, VariantAdvice, VerticalAdvice
from syndic.advice.artificial import (
    CROWDS,
    IN_WORDS,
    Codes,
    distance,
    forecast_columns,
    forecast_encoded,
    forecast_glued,
    forecast_shares,
    made_up,
)
from syndic.advice.assume import Assumptions, declared_words
from syndic.errors import InputError
from syndic.evaluation.distance import column_sets
from syndic.kernel import Progress, silent_progress
from syndic.methods import AnyMethod, Dplt, Glued, Synthesis, Vertigan, Vertimrf
from syndic.methods.synthesis.plan import SynthesisPlan
from syndic.study import Study

VERTICAL: Final = (Synthesis, Vertimrf, Glued, Dplt, Vertigan)
"""Methods that this advice supports, where all parties hold columns of the same people."""

WAYS: Final = (3, 4, 5)
CLEARLY: Final = 0.9
"""A method that needs more trust must reach less than this fraction of a simpler method's distance."""

# more sets of columns add little information, and take time with many people
_SETS: Final = 100
_PROTECTS: Final[dict[Variant, str]] = {
    "shares": "against everybody, the other parties too, unless the coordinator colludes with a party",
    "sketch": "only against those without the key, not against the parties",
    "oracle": "against everybody; no party is trusted",
    "glued": "against everybody; no party is trusted",
}
_FORECASTS: Final[dict[Variant, Callable[[Study, Codes, np.random.Generator], Codes]]] = {
    "shares": forecast_shares,
    "sketch": forecast_encoded,
    "oracle": forecast_encoded,
    "glued": forecast_glued,
}
# distances by method, population and number of columns
Found = dict[str, list[dict[int, float]]]


def advise_vertical(
    study: Study,
    *,
    assumptions: Assumptions | None = None,
    progress: Progress = silent_progress,
    seed: int = 0,
) -> VerticalAdvice:
    """Predict each vertical method's distance from the data, and recommend one. Arguments are those of `syndic.advise`.

    The study, which was checked, names any method in `VERTICAL`. Where nothing is assumed of a column, the populations
    differ.
    """
    assumptions = assumptions or Assumptions()
    assumptions.check(study.schema)
    studies, left_out = _variants(study)
    if not studies:
        raise InputError(f"no vertical method can run this study: {left_out[0]}")
    found = _simulated(study, studies, assumptions, progress, seed)
    recommended, words = _verdict(found)
    return VerticalAdvice(
        study=study.name,
        digest=study.digest,
        recommended=recommended,
        words=words,
        people=_people(study),
        variants=tuple(_advised(name, one, found[name]) for name, one in studies.items()),
        alone=_expected(found["columns"]),
        chance=_expected(found["chance"]),
        left_out=tuple(left_out),
        assumptions=(*declared_words(study, assumptions), *IN_WORDS),
    )


def _variants(study: Study) -> tuple[dict[Variant, Study], list[str]]:
    """Return the study under each method that can run it, and why the others cannot.

    The study's own method keeps its parameters.
    """
    own = study.protocol
    usual: dict[Variant, AnyMethod] = {
        "shares": own if isinstance(own, Synthesis) else Synthesis(),
        "sketch": Vertimrf(way="sketch"),
        "oracle": Vertimrf(way="oracle"),
        "glued": own if isinstance(own, Glued) else Glued(),
    }
    found: dict[Variant, Study] = {}
    left_out = []
    for name in get_args(Variant):
        changed = msgspec.structs.replace(study, protocol=usual[name])
        try:
            changed.plan.check()
        except InputError as error:
            left_out.append(f"{name}: {error}")
        else:
            found[name] = changed
    return found, left_out


def _simulated(
    study: Study, studies: Mapping[Variant, Study], assumptions: Assumptions, progress: Progress, seed: int
) -> Found:
    """Return distances of every method, of single columns and of a second sample, for every population."""
    domain, found = study.schema.domain, dict[str, list[dict[int, float]]]()
    # three to five columns together, or all if there are fewer
    few = [ways for ways in WAYS if ways <= len(domain)] or [len(domain)]
    sets = {ways: column_sets(domain.names, ways)[:_SETS] for ways in few}
    done, total = 0, len(CROWDS) * len(studies)
    for place, crowd in enumerate(CROWDS):
        both = made_up(study.schema, crowd, 2 * _people(study), assumptions, np.random.default_rng([seed, place]))
        people, others = ({name: codes[half::2] for name, codes in both.items()} for half in (0, 1))
        # each has draws of its own, so that one method does not decide the luck of the next
        alone = forecast_columns(study, people, np.random.default_rng([seed, place, 1]))
        made: dict[str, Codes] = {"chance": others, "columns": alone}
        for name, one in studies.items():
            draws = np.random.default_rng([seed, place, 2 + get_args(Variant).index(name)])
            made[name] = _FORECASTS[name](one, people, draws)
            done += 1
            progress("predict", done, total)
        for title, rows in made.items():
            apart = {ways: distance(people, rows, domain, some) for ways, some in sets.items()}
            found.setdefault(title, []).append(apart)
    return found


def _verdict(found: Found) -> tuple[Recommended, str]:
    """Return the method that needs least trust, unless another is clearly better in the middle population."""
    middle = {name: float(np.mean(list(crowds[len(crowds) // 2].values()))) for name, crowds in found.items()}
    best: Recommended = "glued" if "glued" in middle else "oracle"
    for name in ("oracle", "shares", "sketch"):
        if name in middle and (best not in middle or middle[name] < CLEARLY * middle[best]):
            best = name
    # in one population alone, a method may be better by luck
    every = {name: float(np.mean([list(crowd.values()) for crowd in crowds])) for name, crowds in found.items()}
    if best not in middle or any(one[best] >= CLEARLY * one["columns"] for one in (middle, every)):
        tied = {name: float(np.mean(list(crowds[0].values()))) for name, crowds in found.items()}
        least = min(tied[name] for name in get_args(Variant) if name in tied)
        unless = ", unless columns are strongly associated" if least < CLEARLY * tied["columns"] else ""
        return "none", (
            f"NOT WORTH IT{unless}: no method would be clearly better than counts of single columns at the same "
            "budget; use more people, a larger epsilon, or fewer columns and values"
        )
    gain = 1 - middle[best] / middle["columns"]
    words = f"USE {best}: expected to be {gain:.0%} closer to the data than single columns"
    if best == "shares" and "glued" in middle:
        words += f", and {1 - middle[best] / middle['glued']:.0%} closer than each party on its own"
    elif best == "glued" and "shares" in middle:
        words += "; a joint method would hardly be closer, so no party needs to trust another"
    return best, words


def _advised(variant: Variant, study: Study, crowds: list[dict[int, float]]) -> VariantAdvice:
    estimate, people = study.plan.resources, _people(study)
    megabytes = len(study.parties) * estimate.reply_bytes / 1e6
    if isinstance(study.protocol, Synthesis):
        megabytes = sum(room.traffic for room in study.plan_as(SynthesisPlan).size.rooms) / 1e6
    elif isinstance(study.protocol, Glued):
        megabytes = 4 * people * len(study.schema.columns) / 1e6
    return VariantAdvice(
        variant=variant,
        expected=_expected(crowds),
        megabytes=megabytes,
        seconds=estimate.seconds,
        protects=_PROTECTS[variant],
    )


def _expected(crowds: list[dict[int, float]]) -> tuple[Expected, ...]:
    return tuple(
        Expected(
            columns=ways,
            low=min(one[ways] for one in crowds),
            middle=crowds[len(crowds) // 2][ways],
            high=max(one[ways] for one in crowds),
        )
        for ways in crowds[0]
    )


def _people(study: Study) -> int:
    return study.parties[0].people or 0
