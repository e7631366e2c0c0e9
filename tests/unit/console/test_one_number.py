"""One number: what a study costs a party is the same text in plan, offer, console, ledger, statement and report."""

import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from consoles import Visitor, run_between, study_file
from organisations import homes_for
from support import CASES, Case, align_study, with_ids
from syndic import Study
from syndic.cli.main import cli
from syndic.privacy import GaussianEvent, Ledger, Price, PureEvent, Spending, at_delta, cost_sentence, shown
from syndic.privacy.cost import Cost
from syndic.privacy.filter import Charged
from syndic.privacy.unit import Budget
from syndic.study import PartyFolder, Release, plan, simulate
from syndic.study.agreement import agree, consider
from syndic.study.document import price_of
from syndic.study.statement import OTHER_ADVERSARIES, WHOLE_RELEASE, Statement

ALIKE = ("homm laplace", "homm overlap", "synthesis adaptive", "synthesis overlap", "estimate gaussian", "mixing")
APART = ("estimate masked", "synthesis across", "synthesis across three", "gram", "gram of three")
PICKED = [next(case for case in CASES if case.name == name) for name in ALIKE + APART]


@dataclass
class Shown:
    """What an owner was shown before and after a run."""

    study: Study
    home: PartyFolder
    price: Price
    offer: str
    after: Spending
    page: str
    release: Release
    ledger: str
    ledger_page: str
    report: str


def texts_of(page: str) -> str:
    """Return a page without tags and with single spaces."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page)).replace("&#39;", "'")


def ledger_show(home: PartyFolder) -> str:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(cli, ["ledger", "show", str(home.ledger)])
    assert result.exit_code == 0, result.output
    return result.output


def walk(case: Case, folder: Path) -> Shown:
    """Run a study twice, as two editions, and keep what an owner is shown about the second."""
    first, homes = homes_for(case.study, case.sources, folder)
    name = first.parties[0].name
    home = homes[name]
    visitor = Visitor(home.folder)
    for study in (first, replace(first, edition=2)):
        place = visitor.post("/studies", action="receive", text=study_file(study))
        offer = consider(home, study)
        page = visitor.get(place)
        for one in homes.values():
            agree(one, study)
        release = run_between(study, homes)
    return Shown(
        study=study,
        home=home,
        price=price_of(study, name),
        offer=str(offer),
        after=offer.after,
        page=texts_of(page),
        release=release,
        ledger=ledger_show(home),
        ledger_page=texts_of(visitor.get("/ledger")),
        report=texts_of(release.report(folder / "report.html").read_text()),
    )


@pytest.fixture(scope="module", params=PICKED, ids=lambda case: case.name)
def walked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    return walk(request.param, tmp_path_factory.mktemp("walk"))


def test_the_same_cost_wherever_it_is_shown(walked: Shown) -> None:
    name = walked.home.folder.name
    cost = f"epsilon {shown(walked.price.epsilon)}"
    text = at_delta(walked.price.epsilon, walked.price.delta)
    stated = next(party for party in walked.release.statement.parties if party.party == name)
    assert at_delta(stated.epsilon, stated.delta) == text
    assert f"costs        {text} for one person at" in str(plan(walked.study))
    assert f"this study costs {cost}" in walked.offer
    assert f"This study costs {cost}" in walked.page
    assert text in walked.page
    assert re.search(rf"\({walked.study.digest[:12]}\) .*│ {re.escape(text)} +│ in full ", walked.ledger)
    assert f"({walked.study.digest[:12]}) people of {name} {text} in full" in walked.ledger_page
    assert text in str(walked.release.summary()["cost"])
    assert f"{name} {text}" in walked.report


def test_what_is_said_to_be_spent_after_a_study_is_spent_after_it(walked: Shown) -> None:
    with Ledger.open(walked.home.ledger) as ledger:
        (dataset,) = ledger.datasets()
        spent, last = ledger.spent(dataset), ledger.studies()[-1]
    assert walked.after == spent == last.after
    assert last.price == walked.price
    assert last.charged == walked.price.epsilon
    # at the cap's delta, which is not the study's, and as a composition of both editions
    then = f"after it {shown(spent.epsilon)} of your cap 50 is spent at the cap's delta, 0.0001"
    assert then in walked.offer
    assert then in walked.page
    once = Cost.of(walked.study.plan.events(walked.home.folder.name))
    charged = Charged(cost=once.times(2), first=once, alone=False)
    assert spent.epsilon == charged.epsilon(Budget.of(50, "0.0001"))
    assert once.times(2).epsilon(Fraction(1, 10**4)) <= (spent.epsilon or 0)


def test_other_figures_stand_under_their_own_heading(walked: Shown) -> None:
    statement: Statement = walked.release.statement
    text = str(plan(walked.study))
    whole = f"  {WHOLE_RELEASE}\n               {at_delta(statement.epsilon, statement.delta)}:"
    assert (whole in text) is not statement.one_number
    assert (WHOLE_RELEASE in walked.page) is not statement.one_number
    assert (OTHER_ADVERSARIES in text) == (OTHER_ADVERSARIES in walked.page) == bool(statement.other_adversaries)
    for who, epsilon in statement.other_adversaries.items():
        for where in (text, walked.page):
            assert f"epsilon {shown(epsilon)} against {who}" in where
        assert f"{who} epsilon {shown(epsilon)}" in walked.report
    # before the heading of the whole release there is no epsilon but the costs
    costs = {shown(party.epsilon) for party in statement.parties}
    before = (
        text.split(f"  {WHOLE_RELEASE}", maxsplit=1)[0]
        .split("  means", maxsplit=1)[0]
        .split("  charges", maxsplit=1)[0]
    )
    assert set(re.findall(r"epsilon ([0-9.]+)", before)) == costs


def test_an_alignment_is_a_disclosure_everywhere(tmp_path: Path) -> None:
    study = align_study()
    sources = {party.name: with_ids(50, place).select([*(party.columns or ()), "id"])
               for place, party in enumerate(study.parties)}  # fmt: skip
    shown_to = walk(Case("align", study, sources), tmp_path / "between")
    learnt = "every party learns exactly which of its people are common to all parties"
    report = shown_to.report
    for text in (str(plan(study)), shown_to.offer, shown_to.page, shown_to.ledger, shown_to.ledger_page, report):
        assert learnt in text
        assert "right at most 50" not in text
        assert "% of the time" not in text
    assert shown_to.release.statement.discloses == (learnt,)
    assert learnt in str(shown_to.release)
    with Ledger.open(shown_to.home.ledger) as ledger:
        kinds = [entry.kind for entry in ledger.entries() if entry.kind in {"agree", "reserve", "disclose"}]
        assert kinds == ["agree", "disclose"] * 2
        assert {one.price.discloses for one in ledger.studies()} == {(learnt,)}
    # also where all parties are on one machine and nobody agrees
    simulate(study, sources, folder=tmp_path / "run")
    with Ledger.open(tmp_path / "run" / "parties" / "north" / "ledger.sqlite") as ledger:
        ledger.verify()
        assert [entry.why for entry in ledger.entries() if entry.kind == "disclose"] == [learnt]
    # and a study that uses the alignment says so
    using = next(case for case in CASES if case.name == "synthesis across").study
    stated = plan(replace(using, alignment=study.digest)).statement.discloses
    assert stated == (
        f"its people were aligned by study {study.digest[:12]}: every party knows exactly which of its people are "
        "common to all parties",
    )


def test_epsilons_are_rounded_up_to_four_digits_and_no_further() -> None:
    given = {"1": "1", "0.8063": "0.80621", "0.8062": "0.8062", "12.35": "12.341", "0.0001235": "0.00012341",
             "0": "0", "1000000": "1000000"}  # fmt: skip
    assert {shown(Fraction(value)): value for value in given.values()} == given
    # what our own sums are rounded up by does not show
    assert shown(Fraction(1) + Fraction(3, 10**12)) == "1"
    assert shown(1 + 1e-7) == "1.001"
    assert shown(None) == shown(float("inf")) == "unbounded"


def test_a_cap_without_a_delta_says_what_to_do() -> None:
    events = [GaussianEvent(mu_squared=Fraction(1, 100))]
    price = Price.of("s", events, Fraction(1, 10**5))
    exact = Budget.of(1)
    assert cost_sentence(price, Spending.of("d", Charged.by_one(Cost.of(events)), exact)) == (
        f"this study costs epsilon {shown(price.epsilon)} at its delta, 1e-05; it does not fit under your cap: this "
        "party's cap has no delta, and Gaussian noise needs one: set `delta` in party.toml"
    )
    pure = [PureEvent(epsilon=Fraction(1, 2))]
    half = Price.of("s", pure, Fraction(0))
    spent = Spending.of("d", Charged.by_one(Cost.of(pure)), exact)
    assert cost_sentence(half, spent) == "this study costs epsilon 0.5; after it 0.5 of your cap 1 is spent"
    over = Spending.of("d", Charged.by_one(Cost.of(pure * 3)), exact)
    assert cost_sentence(half, over).endswith(
        "1.5 of your cap 1 is spent: more than the cap, so the study will be refused"
    )
    both = Spending.of("d", Charged.by_one(Cost.of(events)), Budget.of(1, 1e-5))
    assert cost_sentence(price, both).endswith("of your cap 1 is spent, at delta 1e-05")
