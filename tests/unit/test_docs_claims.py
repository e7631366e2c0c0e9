"""Pages are true: each method has one with every topic, and what pages point to exists."""

import re
import shlex
from pathlib import Path

import click
import pytest

from pages import BLOCKS, METHODS, METHODS_PAGE, ROOT, page_of, pages, parts_of
from syndic.cli.main import cli
from syndic_lab.bench.benches import BENCHES
from verbs import verbs_of

PAGES = pages()
# what a reader of any method must find: the same headings in the same order, and these points under "Privacy"
HEADINGS = [
    "Study",
    "Parameters",
    "Steps",
    "Who sees what",
    "Privacy",
    "Accuracy",
    "Limits",
]
POINTS = ["Unit", "Adversary", "Sensitivity", "Not protected"]
GENERATED = ["paper", "roles", "limits"]
TUTORIALS = sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs" / "tutorials").glob("*.md"))


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_a_page_with_every_topic(method: str) -> None:
    text = page_of(method).read_text()
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == HEADINGS
    assert "```toml" in text.split("## Study")[1].split("## Parameters")[0]
    privacy = text.split("## Privacy")[1].split("## Accuracy")[0]
    for point in POINTS:
        assert re.search(rf"^(- )?\*\*{point}", privacy, re.MULTILINE), (
            f"{page_of(method).name}: Privacy does not have {point}"
        )
    for section in text.split("\n## ")[1:]:
        assert section.partition("\n")[2].strip(), f"{page_of(method).name}: nothing under {section.splitlines()[0]}"


@pytest.mark.parametrize("method", [method for method in METHODS if page_of(method).stem == method])
def test_a_page_takes_from_the_code_what_the_code_knows(method: str) -> None:
    kinds = {kind for kind, what in parts_of(page_of(method).read_text()) if what == method}
    # a method that leaves open only what every method does has a sentence instead
    assert kinds == {kind for kind in GENERATED if kind != "limits" or list(BLOCKS["limits"](method))}


def test_the_page_of_all_methods_has_what_each_costs() -> None:
    (costs,) = [what for kind, what in parts_of(METHODS_PAGE.read_text()) if kind == "costs"]
    assert [line.split()[1] for line in list(BLOCKS["costs"](costs))[2:]] == list(METHODS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_and_commands_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    for path in re.findall(r"(?<![\w/.(-])((?:tests|examples|docs|src/syndic|lab)/[\w/.*-]+\w)", text):
        assert list(ROOT.glob(path)) or (ROOT / path).exists(), f"{page.name}: {path} does not exist"
    for path, name in re.findall(r"\b(tests/[\w/.-]+\.py)::(\w+)", text):
        assert f"def {name}(" in (ROOT / path).read_text(), f"{page.name}: {path} has no {name}"
    for name in re.findall(r"syndic bench ([a-z][a-z-]*)", text):
        assert name in BENCHES, f"{page.name}: there is no bench {name}"
    for verb in re.findall(r"`syndic ([a-z][a-z-]*)", text):
        assert verb in verbs_of(cli), f"{page.name}: there is no verb {verb}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_that_a_page_only_shows_can_be_typed(page: Path) -> None:
    for block in re.findall(r"^```text\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        for line in re.findall(r"^\$ syndic (.*)$", block.replace("\\\n", " "), re.MULTILINE):
            words = shlex.split(line.partition(">")[0])
            command: click.Command = cli
            while isinstance(command, click.Group):
                command = verbs_of(command)[words.pop(0)]
            command.make_context(line, words)  # an unknown option or a missing argument is an error


def test_pages_about_claims_name_a_test_or_command_in_every_row() -> None:
    for name in ("docs/explanation/claims", "lab/docs/nist"):
        text = (ROOT / f"{name}.md").read_text()
        rows = [
            line
            for line in text.splitlines()
            if line.startswith("| ") and not line.startswith(("| ---", "| claim", "| what"))
        ]
        assert len(rows) > 10, name
        for row in rows:
            assert re.search(r"tests/|`syndic |`make |\.md", row), f"{name}.md: nothing shows: {row}"


def test_the_security_page_answers_twenty_questions() -> None:
    text = (ROOT / "docs" / "explanation" / "security.md").read_text()
    rows = [line.split(" | ") for line in text.splitlines() if re.match(r"\| \d+\. ", line)]
    assert [int(row[0].strip("| ").partition(".")[0]) for row in rows] == list(range(1, 21))
    for question, answer, shown in rows:
        assert question.endswith("?")
        assert answer
        for path in re.findall(r"`(tests/[\w/.]+)`", shown):
            assert (ROOT / path).exists(), path
        assert re.search(r"tests/|`syndic |`make |\.md", shown), shown


def test_the_documentation_is_short() -> None:
    size = sum(len(page.read_bytes()) for page in (ROOT / "docs").rglob("*.md"))
    assert size <= 275_000, f"docs/ has {size:,} bytes: measurements belong to lab/docs, each figure stands once"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 100


def sentences(text: str) -> list[str]:
    """Return the sentences of a page: its blocks of code, tables' frames, links' targets and marks left out."""
    text = re.sub(r"^```.*?^```$|^<!--.*?-->$", "\n\n", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"^\s*(?:[-*#>]+|\d+\.) |\|", "\n\n", text, flags=re.MULTILINE)
    return [found for block in re.split(r"\n\s*\n", text) for found in re.split(r"(?<=[.!?])\s+", block.strip())]


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", *TUTORIALS])
def test_no_sentence_is_longer_than_thirty_words(page: str) -> None:
    long = [found for found in sentences((ROOT / page).read_text()) if len(found.split()) > 30]
    assert long == []


def test_a_long_sentence_is_found() -> None:
    assert [len(found.split()) for found in sentences("Short one. " + "word " * 31)] == [2, 31]


def test_the_walk_of_a_simulation_names_functions_that_exist() -> None:
    walk = (ROOT / "docs" / "architecture.md").read_text().partition("## The walk of a simulation")[2]
    places = re.findall(r"^ *([\w/]+\.py):([\w.]+)", walk, re.MULTILINE)
    assert len(places) > 20
    for path, name in places:
        code = (ROOT / "src" / "syndic" / path).read_text()
        for part in name.split("."):
            assert re.search(rf"(def|class) {part}\b", code), f"{path} has no {name}"
