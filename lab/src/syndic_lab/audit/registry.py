"""Every audit by name: mechanisms, parts, whole runs on long tables, protocols on the stage."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Final, Literal, final

from syndic_lab.audit.encoded import encoded
from syndic_lab.audit.horizontal import horizontal
from syndic_lab.audit.learning import learning
from syndic_lab.audit.mechanisms import Draws, mechanisms, stream
from syndic_lab.audit.observation import Trial
from syndic_lab.audit.parts import parts
from syndic_lab.audit.per_person import long
from syndic_lab.audit.setting import Setting
from syndic_lab.audit.syntheses import syntheses
from syndic_lab.audit.vertical import vertical

Effort = Literal["quick", "full"]
Level = Literal["mechanism", "part", "protocol"]

_MECHANISM_DRAWS: Final[dict[Effort, int]] = {"quick": 300_000, "full": 5_000_000}
_PART_DRAWS: Final[dict[Effort, int]] = {"quick": 200_000, "full": 3_000_000}
_LONG_DRAWS: Final[dict[Effort, int]] = {"quick": 600_000, "full": 6_000_000}


@final
@dataclass(frozen=True, kw_only=True)
class Audit:
    """One audit: what it is of, and a function that makes its trials, with so much effort and from that seed.

    `method` is the method of a study that is audited whole, else empty.
    """

    name: str
    level: Level
    trials: Callable[[Effort, int], Sequence[Trial]]
    method: str = ""


def audits() -> Iterator[Audit]:
    """Yield every audit, from the bottom up."""
    for name, draws in mechanisms():
        yield Audit(name=name, level="mechanism", trials=partial(_drawn, name, draws, _MECHANISM_DRAWS))
    for name, draws in parts():
        yield Audit(name=name, level="part", trials=partial(_drawn, name, draws, _PART_DRAWS))
    for name, draws in long():
        yield Audit(name=name, level="part", trials=partial(_drawn, name, draws, _LONG_DRAWS))
    for setting in _settings():
        method = str(type(setting.study.protocol).__struct_config__.tag)
        yield Audit(name=setting.name, level="protocol", trials=partial(_staged, setting), method=method)
    for name, method, make in encoded():
        yield Audit(name=name, level="protocol", trials=partial(_made, make), method=method)


@cache
def _settings() -> tuple[Setting, ...]:
    # studies are checked when they are made
    return (*horizontal(), *learning(), *vertical(), *syntheses())


def _drawn(name: str, draws: Draws, counts: dict[Effort, int], effort: Effort, seed: int) -> Sequence[Trial]:
    return draws(counts[effort], stream(seed, name))


def _made(make: Callable[[], Setting], effort: Effort, seed: int) -> Sequence[Trial]:
    return _staged(make(), effort, seed)


def _staged(setting: Setting, effort: Effort, seed: int) -> Sequence[Trial]:
    return setting.trials(setting.quick if effort == "quick" else setting.full, seed)
