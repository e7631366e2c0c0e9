"""A coordinator that shares the noise: who can subtract what, what it costs if it lies, and that it draws once."""

import hashlib
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faulty_runtime import KilledError, Mortal, Watch, published, run_over
from support import (
    GROUPS,
    ONE,
    THREE_VERTICAL,
    VERTICAL,
    Case,
    across_study,
    rows,
    study_text,
    synthesis_across,
    vertical_study,
)
from syndic import Study, plan
from syndic.errors import InputError, PartyError
from syndic.kernel import Call, Delivery, Reply, Runtime, decode
from syndic.methods.histogram.marginals_plan import MarginalsPlan
from syndic.methods.synthesis.plan import SynthesisPlan
from syndic.mpc.masked_sum import SumMasked
from syndic.privacy import gaussian_epsilon, mu_squared_for, rho_for
from syndic.study import Release
from syndic.study.verify import check_open

SHARED = "coordinator_noise = true"
DELTA = Fraction("1e-5")


def case_of(study: Study) -> Case:
    table = rows(60, 3)
    return Case("here", study, {one.name: table.select(list(one.columns or ())) for one in study.parties})


@pytest.mark.parametrize(("parties", "number"), [(VERTICAL, 2), (THREE_VERTICAL, 3)])
def test_every_role_alone_is_held_off_as_stated_and_two_have_what_the_plan_says(parties: str, number: int) -> None:
    """With v the least variance that the charge needs, a share is v / m: one is subtracted at no loss, two are not."""
    plain, shared = (
        synthesis_across(options, parties=parties).plan_as(SynthesisPlan).account for options in ("", SHARED)
    )
    assert [one.mu_squared for one in shared.events] == [one.mu_squared for one in plain.events]
    assert plain.shares_to_whole == pytest.approx(number / (number - 1))
    assert shared.shares_to_whole == pytest.approx((number + 1) / number)
    share: Any = shared.noise_of(2, 1, 4).noise
    assert share.parties == number + 1
    charged = shared.events[1].mu_squared
    # a party and an honest coordinator, or a coordinator without its own share, or the public and a lying coordinator
    assert share.event_if(number).mu_squared <= charged
    # a party and a coordinator that omits its share, or tells it
    assert share.event_if(number - 1).mu_squared == pytest.approx(float(charged * Fraction(number, number - 1)))


@pytest.mark.parametrize(("parties", "number"), [(VERTICAL, 2), (THREE_VERTICAL, 3)])
def test_plan_and_statement_say_what_a_lying_coordinator_costs(parties: str, number: int) -> None:
    study = synthesis_across(SHARED, parties=parties)
    times = Fraction(number, number - 1)
    outside, party = plan(study).statement.against.values()
    assert outside == pytest.approx(1.0, rel=1e-3)
    assert party == pytest.approx(float(gaussian_epsilon(times * mu_squared_for(Fraction(1), DELTA), DELTA)), rel=1e-3)
    text = " ".join(str(plan(study)).split())
    assert f"mu^2 or rho is then {number}/{number - 1} times as large as stated" in text
    assert "if the coordinator omits its share" in text
    assert "colludes with no party, and adds its share of the noise" in text
    assert "omits its share" not in str(plan(synthesis_across(parties=parties)))
    counted = vertical_study(SHARED, parties=parties).plan_as(MarginalsPlan)
    rho, less = counted.noise.event_if(number), counted.noise.event_if(number - 1)
    assert float(getattr(less, "rho", 0)) == pytest.approx(float(times * getattr(rho, "rho", 0)), rel=1e-6)
    assert float(getattr(rho, "rho", 0)) <= float(rho_for(Fraction(1), DELTA))
    assert counted.disclosure.against.keys() == plan(study).statement.against.keys()
    knows = "each knows its own counts and share of the noise"
    assert counted.disclosure.sees["other parties"].endswith(knows)
    assert "tables without its own share" in counted.disclosure.sees["coordinator"]


@pytest.mark.parametrize(
    "make",
    [
        partial(synthesis_across, SHARED),
        partial(synthesis_across, "colluding = 0"),
        partial(vertical_study, SHARED),
        partial(vertical_study, f'{SHARED}\nnoise = "laplace"'),
    ],
)
def test_what_is_said_of_other_adversaries_counts_all_groups_of_a_person(make: Callable[..., Study]) -> None:
    """The ledger of each of two groups is charged a half: a person in both has the sum, which was not said."""
    study = make(parties=GROUPS, unit='neighbours = "replace"\nparties = 2')
    outside, party = plan(study).statement.against.values()
    assert outside == pytest.approx(float(study.joint.epsilon(study.delta)), rel=1e-3)
    assert party > 1.1 * outside


def test_of_laplace_noise_no_ratio_of_variances_is_said_and_of_too_little_skellam_noise_nothing() -> None:
    said = plan(vertical_study(f'{SHARED}\nnoise = "laplace"')).statement
    outside, party = said.against.values()
    assert party > 6 * outside
    assert "epsilon is then several times as large" in " ".join(said.not_protected)
    assert "2/1" not in " ".join(said.not_protected)
    with pytest.raises(InputError, match="too small for a bound"):
        plan(vertical_study(f'{SHARED}\nnoise = "skellam"', budget="epsilon = 20\ndelta = 1e-5"))


class Listener:
    """Keeps the masked counts of every sum, and the digests of all replies."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime, self.bodies = runtime, list[dict[str, bytes]]()

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        delivery = self.runtime.send(calls, seconds=seconds, arrived=arrived)
        if all(decode(one, Call).step == "count" for one in calls.values()):
            self.bodies.append({name: decode(one, Reply).body for name, one in delivery.replies.items()})
        return delivery

    def close(self) -> None:
        self.runtime.close()


def heard(study: Study, folder: Path) -> tuple[Release, Listener]:
    listeners: list[Listener] = []

    def listen(runtime: Runtime) -> Runtime:
        listeners.append(Listener(runtime))
        return listeners[0]

    return run_over(case_of(study), folder, listen), listeners[0]


@pytest.mark.parametrize("noise", ["gaussian", "skellam", "laplace"])
def test_what_opens_is_published_with_the_coordinators_share_only(noise: str, tmp_path: Path) -> None:
    study = vertical_study(f'{SHARED}\nnoise = "{noise}"')
    release, listener = heard(study, tmp_path)
    counted = study.plan_as(MarginalsPlan)
    ring, count = counted.masked_sum.ring, counted.masked_sum.count
    (bodies,) = listener.bodies
    total = ring.reduce(np.zeros(count, dtype=np.int64))
    for body in bodies.values():
        total = ring.add(total, ring.unpack(decode(body, SumMasked).values, count))
    result: Any = release.result
    apart = np.concatenate([one.values.ravel() for one in result.tables]) - ring.lift(total)
    shared = np.repeat([not one for one in counted.alone], [one.values.size for one in result.tables])
    assert (apart[~shared] == 0).all()
    drawn, share = apart[shared], counted.noise.variance
    assert float(np.mean(drawn**2)) == pytest.approx(share, rel=0.75)
    assert result.note.standard_deviation == pytest.approx(
        (3 * share) ** 0.5 / (1 if noise == "gaussian" else study.unit.scale), rel=1e-6
    )


@pytest.mark.parametrize("make", [vertical_study, synthesis_across])
def test_no_digest_of_a_masked_answer_is_published(make: Callable[..., Study], tmp_path: Path) -> None:
    """A party of two knows all masks of the other's answer: by a digest it would know when it guessed the counts."""
    for options, told in (("", True), (SHARED, False)):
        release, listener = heard(make(options), tmp_path / str(told))
        digests = {hashlib.sha256(body).hexdigest() for bodies in listener.bodies for body in bodies.values()}
        said = {one.reply_sha256 for one in release.transcript}
        assert (said >= digests) is told
        assert said.isdisjoint(digests) is not told
        assert all(one.reply_sha256 for one in release.transcript if one.step != "count")


@pytest.mark.parametrize("make", [vertical_study, synthesis_across])
def test_killed_after_any_message_the_same_noise_is_drawn_again(make: Callable[..., Study], tmp_path: Path) -> None:
    case, watch = case_of(make(SHARED)), Watch()
    release = None
    for lives in range(100):
        sends = min(lives, 1)
        with suppress(KilledError):
            release = run_over(case, tmp_path, partial(Mortal, watch=watch, sends=sends, late=True), seed=None)
            break
    assert release is not None
    assert lives > 5
    again = run_over(case, tmp_path, partial(Mortal, watch=watch, sends=0), seed=None)
    assert published(again, tmp_path / "a") == published(release, tmp_path / "b")
    # without its journal a coordinator would draw anew, and the mean of both has less noise: no party answers it
    for path in (tmp_path / "coordinator").iterdir():
        path.unlink()
    with pytest.raises(PartyError, match="answered before, for a different request"):
        run_over(case, tmp_path, partial(Mortal, watch=watch, sends=None), seed=None)


def test_without_its_journal_no_coordinator_opens_a_sum_again(tmp_path: Path) -> None:
    """Several groups count columns at home and nothing is multiplied, so no dealt seed tells a second run apart.

    It would be answered from what the parties stored, draw other noise and publish: uncharged, as often as it likes.
    """
    options = f"{SHARED}\ntraffic = 1\ninteractions = false\nmodel_cells = 60\nrows = 30"
    study = synthesis_across(options, parties=GROUPS)
    people = {"first": rows(60, 3), "second": rows(40, 4)}
    sources = {one.name: people[one.group or ""].select(list(one.columns or ())) for one in study.parties}
    case, listeners = Case("here", study, sources), list[Listener]()

    def listen(runtime: Runtime) -> Runtime:
        listeners.append(Listener(runtime))
        return listeners[-1]

    run_over(case, tmp_path, listen, seed=None)
    assert len(listeners[0].bodies) == 3, "all rounds are sums of several parties"
    shutil.rmtree(tmp_path / "coordinator")
    with pytest.raises(PartyError, match=r"step 'sum_keys'.*answered before, for a different request"):
        run_over(case, tmp_path, listen, seed=None)
    assert not listeners[1].bodies


APART = '[[parties]]\nname = "north"\npeople = 60\n[[parties]]\nname = "south"\npeople = 60\n'
THREE_SERVE = f'{SHARED}\nservers = ["north", "south", "east"]'


@pytest.mark.parametrize(
    "study",
    [
        Study.loads(study_text(budget=ONE, parties=APART, protocol=f'method = "marginals"\n{SHARED}')),
        Study.loads(study_text(budget=ONE, parties=APART, protocol=f'method = "synthesis"\n{SHARED}')),
        vertical_study(f'{SHARED}\ncliques = [["colour", "age"], ["score"]]'),
        vertical_study(THREE_SERVE, parties=THREE_VERTICAL),
        synthesis_across(THREE_SERVE, parties=THREE_VERTICAL),
        synthesis_across(f"{SHARED}\ncolluding = 0"),
    ],
    ids=["other people", "other people, synthesis", "own tables", "servers", "servers, synthesis", "nobody colludes"],
)
def test_where_the_coordinator_may_collude_it_does_not_share(study: Study) -> None:
    with pytest.raises(InputError, match="only where it is trusted to collude with no party"):
        study.check()


def test_survival_shares_it_too_and_replies_stay_private() -> None:
    options = f'time = "age"\nevent = "colour"\ncensored = "red"\nby = ["score"]\n{SHARED}'
    study = across_study("survival", options, budget=ONE)
    assert study.plan_as(MarginalsPlan).coordinator_noise
    # a reader of all replies would have the sum without the coordinator's share
    with pytest.raises(InputError, match="sealed messages"):
        check_open(study)
