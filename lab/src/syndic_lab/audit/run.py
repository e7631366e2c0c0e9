"""Run audits, or planted faults, and say what was found."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from syndic.document import Document
from syndic.errors import InputError, SyndicError
from syndic.random import SystemRandomness
from syndic_lab.audit.observation import Finding
from syndic_lab.audit.planted import Caught, faults
from syndic_lab.audit.planted_laws import Fault
from syndic_lab.audit.registry import Audit, Effort, audits
from syndic_lab.audit.verdict import broken, judge

ALARM: Final = 1e-6
"""The chance that a run of audits accuses any claim that holds."""

Done = Callable[[str, int, int], None]
Named = TypeVar("Named", Audit, Fault)


class BrokenClaimError(SyndicError):
    """An audit broke a claim, or missed a fault that was planted."""


class AuditReport(Document):
    """What a run of audits found: all of it is wrong with a chance of at most `alarm`. `seed` repeats it.

    `left` names the audits that were not done because somebody interrupted the run.
    """

    effort: Effort
    seed: int
    alarm: float
    findings: tuple[Finding, ...]
    left: tuple[str, ...] = ()

    @property
    def broken(self) -> tuple[Finding, ...]:
        """The findings whose claim does not hold."""
        return tuple(broken(self.findings))

    def check(self) -> None:
        """Raise `BrokenClaimError` if a claim does not hold, or if some were not looked at."""
        if self.broken:
            raise BrokenClaimError("a claim does not hold. " + "; ".join(told(each) for each in self.broken))
        if self.left:
            raise BrokenClaimError(f"interrupted, so nothing is said of: {', '.join(self.left)}")


class PlantedReport(Document):
    """Which planted faults were found. A control is sound, and must not be accused."""

    seed: int
    alarm: float
    faults: tuple[Caught, ...]

    @property
    def missed(self) -> tuple[str, ...]:
        """Faults that were not found, and controls that were accused."""
        return tuple(each.fault for each in self.faults if each.caught == each.control)

    def check(self) -> None:
        """Raise `BrokenClaimError` if a fault was missed or a control accused."""
        if self.missed:
            raise BrokenClaimError(f"audits are wrong about: {', '.join(self.missed)}")


def audit(
    names: Sequence[str] = (),
    *,
    effort: Effort = "quick",
    seed: int | None = None,
    alarm: float = ALARM,
    progress: Done | None = None,
) -> AuditReport:
    """Try to break the claims of some audits, by name or by how names begin; of all of them if none is named.

    `alarm` is the chance that any claim that holds is accused. An interrupt ends the run with what was found so far.
    """
    chosen = _named(audits(), names)
    seed = _fresh(seed)
    findings: list[Finding] = []
    left: tuple[str, ...] = ()
    for place, each in enumerate(chosen):
        if progress:
            progress(each.name, place, len(chosen))
        try:
            findings += judge(each.name, each.trials(effort, seed), alarm / len(chosen))
        except KeyboardInterrupt:
            left = tuple(other.name for other in chosen[place:])
            break
    return AuditReport(effort=effort, seed=seed, alarm=alarm, findings=tuple(findings), left=left)


def plant(
    names: Sequence[str] = (), *, seed: int | None = None, alarm: float = ALARM, progress: Done | None = None
) -> PlantedReport:
    """Plant faults and look whether audits find them."""
    chosen = _named(faults(), names)
    seed = _fresh(seed)
    found = []
    for place, each in enumerate(chosen):
        if progress:
            progress(each.name, place, len(chosen))
        found.append(_caught(each, judge(each.name, each.trials(seed), alarm / len(chosen))))
    return PlantedReport(seed=seed, alarm=alarm, faults=tuple(found))


def told(finding: Finding) -> str:
    """Return one line about a finding."""
    where = f"{finding.audit}, {finding.view}"
    sure = f"wrong with a chance below {1 - finding.confidence:.1g}, {finding.runs} runs"
    if finding.tight_shown is None or finding.tight_epsilon is None:
        return f"{where}: {finding.text} ({finding.test}; {sure})"
    claim = f"epsilon is at least {finding.tight_shown:.3g}"
    return f"{where}: {claim} at delta {finding.tight_delta:g}, and {finding.tight_epsilon:.3g} is claimed ({sure})"


def _caught(fault: Fault, findings: Sequence[Finding]) -> Caught:
    guilty = broken(findings)
    bounds = [each for each in guilty if each.tight_shown is not None and each.tight_epsilon is not None]
    best = max(bounds, key=_over, default=None)
    return Caught(
        fault=fault.name,
        what=fault.what,
        caught=bool(guilty),
        by=tuple(dict.fromkeys(f"{each.test}: {each.view}" for each in guilty)),
        control=fault.control,
        epsilon=None if best is None else best.tight_epsilon,
        delta=None if best is None else best.tight_delta,
        shown=None if best is None else best.tight_shown,
    )


def _over(finding: Finding) -> float:
    return (finding.tight_shown or 0.0) - (finding.tight_epsilon or 0.0)


def _named(known: Iterable[Named], names: Sequence[str]) -> list[Named]:
    every = list(known)
    for name in names:
        if not any(_is(each.name, name) for each in every):
            raise InputError(f"there is no audit '{name}': `syndic audit --list` lists them")
    return [each for each in every if not names or any(_is(each.name, name) for name in names)]


def _is(name: str, asked: str) -> bool:
    return name == asked or name.startswith((f"{asked} ", f"{asked},"))


def _fresh(seed: int | None) -> int:
    return int(SystemRandomness().words(1)[0] >> 16) if seed is None else seed
