"""What parties send in VertiMRF and VertiGAN has the randomness that is charged, as it leaves their steps.

Laws are written out here from the charge alone. Each test compares a few counts with exact binomial chances, and raises
a false alarm with a chance below 1e-6.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from support import across_study, needs_torch, vertimrf_study
from syndic import Study
from syndic.methods.comparison.vertigan_plan import VertiganPlan
from syndic.methods.vertimrf import vertimrf
from syndic.methods.vertimrf.plan import VertimrfPlan
from syndic.privacy import ApproximateEvent, PureEvent
from syndic.study import simulate

pytestmark = pytest.mark.statistical
PEOPLE = 1000
ALLOWED = 1e-6
TWO = """
[[parties]]
name = "north"
people = {people}
columns = ["a", "b"]

[[parties]]
name = "south"
people = {people}
columns = ["c"]
"""
COLUMNS = "".join(
    f'[[schema.columns]]\nname = "{name}"\nkind = "integer"\nlower = 0\nupper = 2\nbins = 3\n'
    "missing = { value = 0 }\n"
    for name in "abc"
)


def alike(people: int) -> pa.Table:
    return pa.table({name: [0] * people for name in "abc"})


def sent_by(study: Study, people: int, reader: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run with fresh noise on people who are all alike; return what the parties answered."""
    seen: list[Any] = []
    before = getattr(vertimrf, reader)

    def noted(planned: Any, sent: Any, *rest: Any) -> Any:
        seen.append(sent)
        return before(planned, sent, *rest)

    monkeypatch.setattr(vertimrf, reader, noted)
    table = alike(people)
    simulate(study, {party.name: table.select(list(party.columns or ())) for party in study.parties})
    return seen[0]


def likely(hits: int, tries: int, chance: float, share: float) -> bool:
    below, above = stats.binom.cdf(hits, tries, chance), stats.binom.sf(hits - 1, tries, chance)
    return bool(2 * min(below, above) > share)


def test_responses_lie_as_often_as_they_are_charged_for(monkeypatch: pytest.MonkeyPatch) -> None:
    study = vertimrf_study('way = "oracle"', parties=TWO.format(people=PEOPLE), columns=COLUMNS)
    event = study.plan.events("north")[-1]
    assert isinstance(event, PureEvent)
    # a third of the charge for each of three columns, over all parties; truth e^epsilon times as likely as a lie
    ratio = np.exp(float(event.epsilon) / 3)
    answers = sent_by(study, PEOPLE, "read_responses", monkeypatch)
    codes = np.concatenate([answers[name].codes for name in ("north", "south")], axis=1)
    assert codes.shape == (PEOPLE, 3)
    for column in codes.T:
        for lie in (1, 2):
            assert likely(int((column == lie).sum()), PEOPLE, 1 / (ratio + 2), ALLOWED / 6)
    # lies of one person are independent
    both = int(((codes[:, 0] > 0) & (codes[:, 2] > 0)).sum())
    assert likely(both, PEOPLE, (2 / (ratio + 2)) ** 2, ALLOWED / 2)


def test_a_sketch_of_nobody_is_that_of_its_phantoms(monkeypatch: pytest.MonkeyPatch) -> None:
    study = vertimrf_study(
        "phantoms = 120\ncap = 10\nrepetitions = 150", parties=TWO.format(people=60), columns=COLUMNS
    )
    account = study.plan_as(VertimrfPlan).account
    assert account.sketches is not None
    assert isinstance(account.encoded, ApproximateEvent)
    answers = sent_by(study, 60, "read_sketches", monkeypatch)
    # two keys, (a, c) and (b, c): everybody has 0, so the sketches of 1 and 2 are of phantoms alone
    empty = np.concatenate([answers[name].ranks.reshape(150, 2, 3)[:, :, 1:] for name in ("north", "south")], axis=1)
    cuts = range(account.sketches.floor, account.sketches.top)
    for cut in cuts:
        chance = (1 - 2.0**-cut) ** 120
        assert likely(int((empty <= cut).sum()), empty.size, chance, ALLOWED / (2 * len(cuts)))
    # drawn anew for every value, key and party
    flat = empty.reshape(150, -1)
    same = int((flat[:, :1] == flat[:, 1:]).sum())
    law = np.diff([0.0, *((1 - 2.0**-cut) ** 120 for cut in cuts), 1.0])
    assert stats.binom.sf(same - 1, 7 * 150, float((law**2).sum()) * 1.3) > ALLOWED / 2


@needs_torch
def test_critics_add_the_noise_that_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    from syndic.noise import FineGaussian  # noqa: PLC0415

    options = "rounds = 2\ncritic_steps = 2\nbatch = 8\ntrunk = [4, 5]\nbranch = [6, 3]\ncritic = 128\nnoise = 3\n"
    study = across_study("vertigan", options, parties=TWO.format(people=60), columns=COLUMNS)
    added: list[Any] = []
    apply = FineGaussian.apply

    def noted(noise: FineGaussian, values: Any, randomness: Any) -> Any:
        found = apply(noise, values, randomness)
        added.append(found - values)
        return found

    monkeypatch.setattr(FineGaussian, "apply", noted)
    table = alike(60)
    simulate(study, {party.name: table.select(list(party.columns or ())) for party in study.parties})
    account = study.plan_as(VertiganPlan)
    assert len(added) == account.steps == 8
    whole = np.concatenate(added) / 2.0**20
    squares = float((whole**2).sum()) / float(account.sigma) ** 2
    assert 2 * min(stats.chi2.cdf(squares, whole.size), stats.chi2.sf(squares, whole.size)) > ALLOWED
    assert len({one.tobytes() for one in added}) == 8
