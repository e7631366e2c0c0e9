"""Dishonest coordinators and parties against untouched nodes, for every method: see `liars`.

`SYNDIC_LIES` is the least number of random deviations for each study and role: one run each in `make test`. `make fuzz`
counts to 10,000 with `python -m liars run`, which goes on where it was interrupted.
"""

import os
from typing import Any, Final, get_args

import pytest
from msgspec.structs import replace

from liars import party
from liars.attack import TOGETHER, Attack, Shown, Tally, attack, recorded
from liars.checks import charged
from liars.coordinator import EXTRA, FORKS, LIES
from liars.strategies import Strategy, every, tell
from liars.targets import LEFT_OUT, targets
from liars.weakenings import BINDINGS, ELSEWHERE, ROOT, UNREACHED, Site, noted, removed, sites
from syndic.kernel import Party
from syndic.kernel.step import steps_of
from syndic.methods import AnyMethod
from syndic.mpc.graph import SumGraph

pytestmark = pytest.mark.fuzz

DEVIATIONS: Final = int(os.environ.get("SYNDIC_LIES", "1"))
MANY: Final = DEVIATIONS >= 100
# all, or one variant of each method: the last. Two take seconds to begin; strategies are tried on them too
SLOW: Final = {"vertimrf", "vertigan"}
SHORT: Final = {name.partition(",")[0]: name for name in targets() if name not in SLOW}
TARGETS: Final = list(targets() if MANY else SHORT.values())
NAMED: Final = {f"{one.role}, {one.target}: {one.what}": one for one in every()}


def tried(one: Strategy, *, twice: bool = False) -> Attack:
    return attack(targets()[one.target], 1, party=one.party, act=one.act, twice=twice)


def wrong(one: Strategy, found: Attack) -> list[str]:
    """Return what is wrong with the answer to a strategy."""
    refused = not one.refused or any(one.refused in text for text in found.refusals)
    return found.violations + ([] if refused else ["not refused"])


def test_every_method_is_a_target_and_there_are_many_strategies() -> None:
    methods = {each.__struct_config__.tag for each in get_args(AnyMethod)} - LEFT_OUT
    assert {name.partition(",")[0] for name in targets()} == methods
    assert {one.target.partition(",")[0] for one in every()} >= methods - {"estimate", "dplt", "survival", "describe"}
    assert len(NAMED) >= 170
    assert min(sum(one.role == role for one in every()) for role in ("coordinator", "party")) >= 60


def test_every_step_of_every_method_is_in_a_target() -> None:
    """But for what two organisations agree on before."""
    steps, asked = set[tuple[str, str]](), set[tuple[str, str]]()
    for name, target in targets().items():
        method = name.partition(",")[0]
        steps |= {(method, step) for step in steps_of(type(target.study.protocol))}
        asked |= {(method, step) for step in target.study.plan.rounds}
    assert {each for each in steps - asked if each[1] not in {"ready", "meet"}} == set()


@pytest.mark.parametrize("name", TARGETS)
def test_without_lies_every_sum_opens_for_all_within_the_charge(name: str) -> None:
    found = attack(targets()[name], 1)
    assert (found.violations, found.liar.ended) == ([], "")
    numbers = {number for number, _ in found.one.hidden}
    assert {(number, found.one.honest) for number in numbers} == found.opened


@pytest.mark.parametrize(("name", "role"), [(name, role) for name in TARGETS for role in targets()[name].roles])
def test_no_lie_opens_more_than_was_charged(name: str, role: str, record_property: Any) -> None:
    # the honest runs of the other tests
    tally = Tally(targets()[name], role, seed=TOGETHER)
    while tally.count < DEVIATIONS:
        tally.go_on()
    assert tally.violations == []
    shown = tally.shown(1e-8)
    assert shown is None or shown.holds, shown
    record_property("deviations", dict(tally.deviations))


def test_deviations_are_of_all_kinds() -> None:
    for role, kinds in (("coordinator", {*LIES, *EXTRA, *FORKS}), ("party", set(party.LIES))):
        tally = Tally(targets()["align"], role)
        while not kinds <= set(tally.deviations) and tally.seed < 200:
            tally.go_on()
        assert set(tally.deviations) == kinds
        assert tally.violations == []


@pytest.fixture(scope="module")
def met() -> dict[Site, list[Strategy]]:
    """Try every strategy, and return which places refused it."""
    found: dict[Site, list[Strategy]] = {}
    for one in every():
        with noted() as refusing:
            assert wrong(one, tried(one, twice=MANY or not one.refused)) == [], one
        for site in refusing:
            found.setdefault(site, []).append(one)
    return found


def test_every_strategy_is_refused_or_opens_nothing_and_every_check_is_met(met: dict[Site, list[Strategy]]) -> None:
    """All places that refuse are found in the source: each is met by a strategy, or another test is named for it."""
    left = {site.name for site in sites() if site not in met}
    unmet = {name for name in left if not any(f"/{method}" in name for method in LEFT_OUT)}
    named = {*ELSEWHERE, *UNREACHED}
    assert {name for name in unmet if not any(name.startswith(start) for start in named)} == set()
    assert {start for start in named if not any(name.startswith(start) for name in left)} == set()
    assert all((ROOT.parents[1] / file).is_file() for file in ELSEWHERE.values())


@pytest.mark.slow
def test_each_check_removed_is_noticed(met: dict[Site, list[Strategy]]) -> None:
    missed = []
    for site, known in met.items():
        with removed(site):
            if not any(wrong(one, tried(one)) for one in known):
                missed.append(site.name)
    assert missed == []


@pytest.mark.parametrize("fault", BINDINGS)
def test_each_binding_removed_is_noticed(
    fault: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    owner, name, weaker, what, expected = BINDINGS[fault]
    one = next(one for one in every() if what in one.what)
    assert wrong(one, tried(one)) == []
    monkeypatch.setattr(owner, name, weaker)
    # what was recorded is bound
    recorded.cache_clear()
    request.addfinalizer(recorded.cache_clear)
    assert any(expected in text for text in wrong(one, tried(one)))


def opened_sums(runs: int, act: Any) -> Shown:
    """Return what sums show that open under an act; no noise is of a recorded run."""
    target = targets()["marginals, one missing"]

    def anew(liar: Any, calls: Any) -> Any:
        liar.prefix.leave()
        return act(liar, calls)

    seen = [attack(target, seed, act=anew, coins=1).fresh for seed in range(2, 2 + runs)]
    return Shown.of([one for one in seen if one.cells], charged(target.cost)[0], 1e-6)


# the mu^2 of a single run shows the last
PLANTED: Final = (("", 12), ("half of the noise", 40), *([("a sum of one party", 64)] if MANY else []))


@pytest.mark.parametrize(("fault", "runs"), PLANTED)
def test_planted_openings_are_found(
    fault: str, runs: int, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Noise that is half of what is stated, which the mu^2 of a run does not show; and a sum of fewer parties."""
    recorded.cache_clear()
    request.addfinalizer(recorded.cache_clear)
    contribute: Any = Party.contribute

    def quieter(party: Party, share: Any, values: Any, *, why: str) -> Any:
        return (values + contribute(party, share, values, why=why)) // 2

    if fault == "half of the noise":
        monkeypatch.setattr(Party, "contribute", quieter)
    elif fault:
        monkeypatch.setattr(SumGraph, "least", property(lambda _: 1))
    lie = tell("sum_open", lambda told: replace(told, arrived=b"\x30"), "p2")
    shown = opened_sums(runs, lie if fault.startswith("a sum") else lambda _, calls: calls)
    assert shown.holds == (not fault), shown
    assert shown.mu_squared > 1.5 * shown.charged if fault else shown.mu_squared < shown.charged, shown
