"""Runs of audits: an interrupt keeps what was found, and says what was not looked at."""

from collections.abc import Iterator, Sequence

import pytest

from syndic_lab.audit import Audit, BrokenClaimError, audit
from syndic_lab.audit import run as running
from syndic_lab.audit.observation import Fact, Trial
from syndic_lab.audit.page import summary_of


def _stopped(effort: str, seed: int) -> Sequence[Trial]:
    raise KeyboardInterrupt


def _fine(effort: str, seed: int) -> Sequence[Trial]:
    return [Fact(view="v", kind="charge", holds=True, runs=1)]


def _three() -> Iterator[Audit]:
    for name, trials in (("first", _fine), ("second", _stopped), ("third", _fine)):
        yield Audit(name=name, level="part", trials=trials)


def test_an_interrupt_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "audits", _three)
    report = audit(seed=1)
    assert [finding.audit for finding in report.findings] == ["first"]
    assert report.left == ("second", "third")
    assert "interrupted before 2 audits" in summary_of(report)
    with pytest.raises(BrokenClaimError, match="nothing is said of: second, third"):
        report.check()
    audit(["first"], seed=1).check()
