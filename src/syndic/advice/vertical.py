"""Which method should a vertical study use, and what would it be worth? Answered from the public study alone.

Made-up people, in as many columns and values as the study declares, are put through every method: its own choices of
tables and its own noise, without parties and cryptography. They are of three crowds, from easy to hard to synthesise.
No row is read and nothing is spent.
"""

from collections.abc import Callable, Mapping
from typing import Final, get_args

import msgspec
import numpy as np

from syndic.advice.advice import Expected, Recommended, Variant, VariantAdvice, VerticalAdvice
from syndic.advice.assume import Assumptions
from syndic.advice.vertical_encoded import forecast_encoded
from syndic.advice.vertical_forecast import forecast_columns, forecast_glued, forecast_shares
from syndic.advice.vertical_people import CROWDS, Codes, distance, made_up
from syndic.errors import InputError
from syndic.evaluation.distance import column_sets
from syndic.kernel import Progress, silent_progress
from syndic.methods import AnyMethod, Dplt, Glued, Vertical, Vertigan, Vertimrf
from syndic.methods.synthesis.vertical_plan import VerticalPlan
from syndic.study import Study

VERTICAL: Final = (Vertical, Vertimrf, Glued, Dplt, Vertigan)
"""Methods whose studies this advice is for: aligned people, each column at one party."""

WAYS: Final = (3, 4, 5)
CLEARLY: Final = 0.9
"""A method that trusts more must bring distances below this part of a simpler one's."""

# a set of columns more tells hardly more, and takes time with many people
_SETS: Final = 100
_PROTECTS: Final[dict[Variant, str]] = {
    "shares": "against everybody, partners too, if the coordinator pools what it knows with no party",
    "sketch": "against those without the key only: nothing against the parties",
    "oracle": "against everybody; nobody is trusted",
    "glued": "against everybody; nobody is trusted",
}
_FORECASTS: Final[dict[Variant, Callable[[Study, Codes, np.random.Generator], Codes]]] = {
    "shares": forecast_shares,
    "sketch": forecast_encoded,
    "oracle": forecast_encoded,
    "glued": forecast_glued,
}
# distances by method, crowd and number of columns
Found = dict[str, list[dict[int, float]]]


def advise_vertical(
    study: Study,
    *,
    assumptions: Assumptions | None = None,
    progress: Progress = silent_progress,
    seed: int = 0,
) -> VerticalAdvice:
    """Predict how far from the truth each vertical method would be, and recommend one. Reads no row, spends nothing.

    Args:
        study: the agreed document of a vertical synthesis; which one does not matter.
        assumptions: what is known in public of the columns; where nothing is, crowds differ in it.
        progress: told how far it is.
        seed: of the made-up people and their noise, which protect nobody.
    """
    if not isinstance(study.protocol, VERTICAL):
        raise InputError(
            f"this advice is for syntheses of different columns of the same people, not {study.protocol.title}"
        )
    study.check()
    return forecast(study, assumptions or Assumptions(), progress, seed)


def forecast(
    study: Study, assumptions: Assumptions, progress: Progress = silent_progress, seed: int = 0
) -> VerticalAdvice:
    """Return the advice on a study that was checked."""
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
        variants=tuple(_told(name, one, found[name]) for name, one in studies.items()),
        alone=_expected(found["columns"]),
        chance=_expected(found["chance"]),
        left_out=tuple(left_out),
        assumptions=_described(study, assumptions),
    )


def _variants(study: Study) -> tuple[dict[Variant, Study], list[str]]:
    """Return the study under each method that can run it, its own with its own parameters, and why others cannot."""
    own = study.protocol
    usual: dict[Variant, AnyMethod] = {
        "shares": own if isinstance(own, Vertical) else Vertical(),
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
    """Return distances of every method, of single columns and of chance, for every crowd."""
    domain, found = study.schema.domain, dict[str, list[dict[int, float]]]()
    sets = {ways: column_sets(domain.names, ways)[:_SETS] for ways in _ways(study)}
    done, total = 0, len(CROWDS) * len(studies)
    for place, crowd in enumerate(CROWDS):
        both = made_up(study.schema, crowd, 2 * _people(study), assumptions, np.random.default_rng([seed, place]))
        people, others = ({name: codes[half::2] for name, codes in both.items()} for half in (0, 1))
        draws = np.random.default_rng([seed, place, 1])
        made: dict[str, Codes] = {"chance": others, "columns": forecast_columns(study, people, draws)}
        for name, one in studies.items():
            made[name] = _FORECASTS[name](one, people, draws)
            done += 1
            progress("predict", done, total)
        for title, rows in made.items():
            apart = {ways: distance(people, rows, domain, some) for ways, some in sets.items()}
            found.setdefault(title, []).append(apart)
    return found


def _verdict(found: Found) -> tuple[Recommended, str]:
    """Return the method that needs least trust, unless another one is clearly better in the middle crowd."""
    middle = {name: float(np.mean(list(crowds[len(crowds) // 2].values()))) for name, crowds in found.items()}
    best: Recommended = "glued" if "glued" in middle else "oracle"
    for name in ("oracle", "shares", "sketch"):
        if name in middle and (best not in middle or middle[name] < CLEARLY * middle[best]):
            best = name
    if best not in middle or middle[best] >= CLEARLY * middle["columns"]:
        tied = {name: float(np.mean(list(crowds[0].values()))) for name, crowds in found.items()}
        least = min(tied[name] for name in get_args(Variant) if name in tied)
        unless = ", unless columns hang together strongly" if least < CLEARLY * tied["columns"] else ""
        return "none", (
            f"NOT WORTH IT{unless}: no method would be clearly better than counts of single columns with the same "
            "noise; it takes more people, a larger epsilon, or fewer columns and values"
        )
    gain = 1 - middle[best] / middle["columns"]
    words = f"USE {best}: expected to be {gain:.0%} nearer to the people than single columns"
    if best == "shares" and "glued" in middle:
        words += f", and {1 - middle[best] / middle['glued']:.0%} nearer than each party on its own"
    elif best == "glued" and "shares" in middle:
        words += "; working together would hardly be better, so no party needs to trust another"
    return best, words


def _told(variant: Variant, study: Study, crowds: list[dict[int, float]]) -> VariantAdvice:
    estimate, people = study.plan.resources, _people(study)
    megabytes = len(study.parties) * estimate.reply_bytes / 1e6
    if isinstance(study.protocol, Vertical):
        megabytes = sum(room.traffic for room in study.plan_as(VerticalPlan).size.rooms) / 1e6
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


def _ways(study: Study) -> list[int]:
    """Return how many columns are looked at together: three to five, or as many as there are."""
    columns = len(study.schema.columns)
    return [ways for ways in WAYS if ways <= columns] or [columns]


def _people(study: Study) -> int:
    return study.parties[0].people or 0


def _described(study: Study, assumptions: Assumptions) -> tuple[str, ...]:
    declared = [name for name in study.schema.names if name in assumptions.columns]
    crowds = "; ".join(f"{one.tied:g} and {one.uneven:g}" for one in CROWDS)
    told = [f"declared: {', '.join(declared)}"] if declared else []
    return (
        *told,
        f"three crowds, by how much the kind of a person tells of its values and how uneven values are: {crowds}",
        "real tables have other shapes: the range is what to plan with, not the middle",
    )
