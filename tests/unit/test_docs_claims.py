"""Pages are true: each method's page says what the code says, and what pages point to exists."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from method_pages import (
    METHODS,
    ROOT,
    cost_line,
    limit_lines,
    message_rows,
    page_of,
    paper_line,
    role_rows,
    study_of,
)
from syndic.cli.main import cli
from syndic.study import Study
from syndic_lab.bench import BENCHES
from verbs import verbs_of

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
# what a reader of any method must find, and the headings under which pages have it
TOPICS = {
    "steps": "Steps|Schemes|What happens",
    "who sees what": "Who sees what.*|What it tells whom",
    "sensitivity": "Why the noise is enough",
    "cost": "Cost|What it costs|Size and speed|Memory",
    "limits": "Limits|What is not kept|What is not protected",
    "measured": "Measured|What it is worth|Accuracy|Cost in accuracy|What it costs",
    "messages": "Messages",
}

# what pages take from the plan of their own study: how it begins, the lines, and the methods that say it in other words
FROM_THE_PLAN: dict[str, tuple[Callable[[Study], Iterable[str]], set[str]]] = {
    "In the study of this page; the plan": (role_rows, {"average", "homm"}),
    "For the study of this page, from its plan: ": (
        lambda study: [cost_line(study)],
        {"average", "mixing", "pooled-gram", "synthesis"},
    ),
    "Not protected, in the study of this page:": (
        limit_lines,
        {"crosstables", "dplt", "gram", "homm", "marginals", "mixing", "pooled-gram"}
        | {"synthesis", "vertical", "vertigan", "vertimrf"},
    ),
}


def headings(text: str) -> list[str]:
    return re.findall(r"^##+ (.*)$", text, re.MULTILINE)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("topic", TOPICS)
def test_every_method_has_a_page_with_every_topic(method: str, topic: str) -> None:
    found = [one for one in headings(page_of(method).read_text()) if re.fullmatch(TOPICS[topic], one)]
    assert found, f"{page_of(method).name} has no heading for {topic}: {TOPICS[topic]}"


@pytest.mark.parametrize("method", METHODS)
def test_page_names_the_paper(method: str) -> None:
    assert paper_line(METHODS[method]) in page_of(method).read_text()


@pytest.mark.parametrize("method", METHODS)
def test_every_step_is_on_the_page_as_the_code_has_it(method: str) -> None:
    text = page_of(method).read_text()
    for row in message_rows(METHODS[method]):
        assert row in text, f"{page_of(method).name} does not say: {row}"


@pytest.mark.parametrize("method", METHODS)
def test_roles_costs_and_limits_are_those_of_the_code(method: str) -> None:
    """Sections that a page takes from the plan of its own study say what that plan says."""
    text, study = page_of(method).read_text(), study_of(method)
    if study is None:
        assert method == "align"
        return
    for sentence, (lines, otherwise) in FROM_THE_PLAN.items():
        if method not in otherwise:
            assert sentence in text
            assert [line for line in lines(study) if line not in text] == []


def test_a_step_that_is_not_on_the_page_is_found() -> None:
    with pytest.raises(AssertionError):
        assert next(message_rows(METHODS["risk"])) in page_of("homm").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_and_commands_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    for path in re.findall(r"\b((?:(?<!lab/)tests|examples|src/syndic|lab)/[\w/.*-]+\w)", text):
        assert list(ROOT.glob(path)) or (ROOT / path).exists(), f"{page.name}: {path} does not exist"
    for path, name in re.findall(r"\b(tests/[\w/.-]+\.py)::(\w+)", text):
        assert f"def {name}(" in (ROOT / path).read_text(), f"{page.name}: {path} has no {name}"
    for name in re.findall(r"syndic bench ([a-z-]+)", text):
        assert name in BENCHES, f"{page.name}: there is no bench {name}"
    for verb in re.findall(r"`syndic ([a-z][a-z-]*)", text):
        assert verb in verbs_of(cli), f"{page.name}: there is no verb {verb}"


def test_pages_about_claims_name_a_test_or_command_in_every_row() -> None:
    for name in ("claims", "nist"):
        text = (ROOT / "docs" / f"{name}.md").read_text()
        rows = [
            line
            for line in text.splitlines()
            if line.startswith("| ") and not line.startswith(("| ---", "| claim", "| what"))
        ]
        assert len(rows) > 10, name
        for row in rows:
            assert re.search(r"tests/|`syndic |`make |\.md", row), f"{name}.md: nothing shows: {row}"
