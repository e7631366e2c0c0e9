"""Documents for a privacy officer: every figure from plan, statement, audit and log; what people decide stays blank."""

import json
import re
from collections.abc import Callable
from importlib.resources import files
from math import exp
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from support import study_text
from syndic import Release, Study, simulate
from syndic.cli.main import cli
from syndic.errors import InputError, IntegrityError, RefusedError
from syndic.privacy.audit import AuditLog
from syndic.report.dossier import Attack, Attacks, Case, templates, write_dossier
from syndic.report.page import Grid, Page, Section
from syndic.study.statement import plan, state

DEMO = Path(str(files("syndic") / "demo"))
NAMES = {
    "dpia-annex",
    "re-identification",
    "recipients",
    "joint-controllers",
    "hipaa-dossier",
    "ehds-minimisation",
    "people-note",
}
FOUND = {"audit": "synthesis adaptive", "view": "anyone", "holds": True, "runs": 600, "confidence": 0.999999}
AUDIT = {
    "effort": "quick",
    "seed": 11,
    "alarm": 1e-6,
    "findings": [
        {**FOUND, "test": "neighbours", "epsilon": 4.0, "delta": 1e-4, "shown": 1.0, "part": 0.6, "part_shown": 3.0},
        {**FOUND, "test": "fact", "text": "lengths agree"},
        {**FOUND, "audit": "homm laplace", "test": "neighbours", "epsilon": 1.0, "delta": 0.0, "shown": 0.99},
    ],
}


def study() -> Study:
    return Study.load(DEMO / "study.toml")


def case(**changes: Any) -> Case:
    one = study()
    given = {"study": one, "statement": plan(one).statement, "date": "2026-11-16", **changes}
    return Case(**given)


def attacks() -> Attacks:
    return msgspec.convert(AUDIT, Attacks)


def texts(of: Case, folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in write_dossier(of, folder)}


def test_every_document_is_written_twice_with_date_digest_and_blanks(tmp_path: Path) -> None:
    written = texts(case(), tmp_path)
    assert set(written) == {f"{name}{end}" for name in NAMES for end in (".html", ".md")}
    for name, text in written.items():
        assert "2026-11-16" in text, name
        assert study().digest in text, name
        assert "To be completed by a person" in text, name
        assert "{" not in re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL), name


def test_templates_name_only_what_there_is(tmp_path: Path) -> None:
    used = {name for each in templates() for one in each.sections for name in one.tables}
    assert used == {"steps", "columns", "risks", "costs", "attacks", "recipients", "duties", "log"}
    assert {each.name for each in templates()} == NAMES


def test_bounds_are_those_of_epsilon_and_of_the_attack(tmp_path: Path) -> None:
    text = texts(case(attacks=attacks()), tmp_path)["re-identification.md"]
    statement = plan(study()).statement
    rows = {row.split(" | ")[0].strip("| "): row.split(" | ") for row in text.splitlines() if row.startswith("| ")}
    odds = exp(statement.epsilon)
    even = 100 * (odds + statement.delta) / (1 + odds)
    assert rows["singling out"][2:4] == ["50.0 %", f"{even:.1f} %"]
    rare = float(rows["linkability"][3].removesuffix(" %"))
    assert 0.1 * odds <= rare <= 0.1 * odds + 0.0101
    # three quarters of the claim were reached
    reached = float(rows["linkability"][4].rstrip("| ").removesuffix(" %"))
    assert 0.1 * odds**0.75 <= reached <= 0.1 * odds**0.75 + 0.0101
    likely = 100 * (1 - (0.1 - statement.delta) / odds)
    assert rows["inference, likely value"][3] == f"{likely:.1f} %"
    # the attacks on another method and facts without a bound are not shown as bounds of this one
    assert "synthesis adaptive" in text
    assert "homm laplace" not in text
    assert "lengths agree" not in text


def test_without_an_audit_nothing_is_measured(tmp_path: Path) -> None:
    text = texts(case(), tmp_path)["re-identification.md"]
    assert "No audit was given" in text
    assert text.count("no audit given") == 4
    other = msgspec.structs.replace(attacks(), findings=attacks().findings[2:])
    assert "no attack on this study's method" in texts(case(attacks=other), tmp_path)["re-identification.md"]


def test_a_broken_claim_stands_first_in_every_document(tmp_path: Path) -> None:
    broken = msgspec.structs.replace(attacks().findings[0], holds=False)
    found = msgspec.structs.replace(attacks(), findings=(broken,))
    for name, text in texts(case(attacks=found), tmp_path).items():
        assert "The audit broke a claim" in text, name


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda one: {"statement": state(one, simulated=True, version="1")}, "seed"),
        (lambda one: {"study": msgspec.structs.replace(one, edition=2)}, "do not match"),
        (lambda one: {"statement": msgspec.structs.replace(plan(one).statement, epsilon=0.1)}, "promises more"),
    ],
)
def test_documents_that_would_be_untrue_are_refused(change: Callable[[Study], dict[str, Any]], says: str) -> None:
    with pytest.raises(RefusedError, match=says):
        case(**change(study()))


def test_the_log_is_verified_and_only_of_this_study(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    log.add("agree", who="Ada | <b>Owner</b>", study=study().digest)
    log.refuse("answer", who="coordinator", study=study().digest, why="no agreement in force")
    log.add("agree", who="Somebody Else", study="f" * 64)
    text = texts(Case.load(DEMO / "study.toml", log_of=tmp_path), tmp_path / "dossier")
    page, web = text["ehds-minimisation.md"], text["ehds-minimisation.html"]
    assert "2 records" in page
    assert r"Ada \| \<b\>Owner\</b\>" in page
    assert "<b>Owner" not in web
    assert "no agreement in force" in page
    assert "Somebody Else" not in page
    log.path.write_bytes(log.path.read_bytes().replace(b"Ada", b"Eve"))
    with pytest.raises(IntegrityError):
        Case.load(DEMO / "study.toml", log_of=tmp_path)


def test_markdown_has_no_markup_from_texts() -> None:
    grid = Grid(caption="c", head=("a", "b"), rows=(("x|y", "<script>\n# no"),))
    page = Page(
        title="*T*",
        subtitle="s",
        lead="[l](javascript:x)",
        warnings=(),
        facts=(),
        sections=(Section(title="S", paragraphs=("`p`",), tables=(grid,)),),
        footer="f",
    )
    text = page.to_markdown()
    assert r"| x\|y | \<script\> \# no |" in text
    assert r"\[l\](javascript:x)" in text
    assert r"# \*T\*" in text
    assert r"\`p\`" in text


def test_the_command_writes_it_before_and_after_the_run(tmp_path: Path) -> None:
    audit = tmp_path / "audit.json"
    audit.write_text(json.dumps(AUDIT))
    given = ["export", str(DEMO / "study.toml"), "--dossier", str(tmp_path / "before"), "--audit", str(audit)]
    ran = CliRunner().invoke(cli, given)
    assert ran.exit_code == 0, ran.output
    assert "no row was read" in (tmp_path / "before" / "dpia-annex.md").read_text()
    one = study()
    sources = {party.name: DEMO / f"{party.name}.csv" for party in one.parties}
    simulate(one, sources).write(tmp_path / "run")
    ran = CliRunner().invoke(cli, ["export", str(tmp_path / "run"), "--dossier", str(tmp_path / "after"), "--json"])
    facts = json.loads(ran.stdout)
    assert len(facts["files"]) == 2 * len(NAMES)
    assert facts["digest"] == Release.load(tmp_path / "run").statement.digest
    assert "The release was made" in (tmp_path / "after" / "dpia-annex.md").read_text()


def test_an_audit_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "audit.json").write_text('{"findings": 3}')
    with pytest.raises(InputError, match="syndic audit"):
        Attacks.load(tmp_path / "audit.json")


def test_the_report_of_the_lab_can_be_read() -> None:
    observation = pytest.importorskip("syndic_lab.audit.observation")
    assert set(Attack.__struct_fields__) <= set(observation.Finding.__struct_fields__)


def test_a_log_that_is_not_there_is_not_called_verified(tmp_path: Path) -> None:
    AuditLog(tmp_path).add("agree", study=study().digest)
    for wrong in (tmp_path / "audit.jsonl", tmp_path / "nowhere"):
        with pytest.raises(InputError, match="no audit log"):
            Case.load(DEMO / "study.toml", log_of=wrong)


def test_a_long_log_says_that_it_was_cut(tmp_path: Path) -> None:
    AuditLog(tmp_path).add("agree", study=study().digest)
    (record,) = AuditLog(tmp_path).records()
    text = texts(case(log=(record,) * 501), tmp_path / "dossier")["ehds-minimisation.md"]
    assert "501 records about this study" in text
    assert "(500 listed)" in text


def test_no_column_that_is_read_is_left_out(tmp_path: Path) -> None:
    """Also what others are derived from, and what tells people apart."""
    derived = '[[schema.columns]]\nkind = "integer"\nname = "bmi"\nderive = "weight / height"\nlower = 10\nupper = 60'
    unit = 'neighbours = "add_remove"\nrows = 2\nperson = "insurance_number"'
    one = Study.loads(study_text(unit=unit, columns=derived))
    page = texts(case(study=one, statement=plan(one).statement), tmp_path)["dpia-annex.md"]
    assert "and no others" in page
    for name in ("weight", "height", r"insurance\_number"):
        assert f"| {name} | read at the party only" in page
