"""The documentation is run: Python blocks, commands and TOML files, in the order in which a reader meets them.

A page gets an empty folder with the demo's files. Rules for pages:

- `python` blocks of a page share their names; a `text` block after one shows lines of its output.
- `console` blocks: lines beginning with `$ syndic` are run, what follows are lines of their output, and
  `$ echo $?` shows the exit status (0 if it is not shown). "..." in an output line stands for anything.
- `toml` blocks begin with `# NAME.toml`, and are read and put into the folder under that name; or with
  `# study.toml, in part`, and replace those keys of the demo's study, or with `# study.toml, in part, same people`,
  and replace those of the study for the same people in `docs/methods/index.md`.
"""

import contextlib
import io
import re
import runpy
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec
import pytest

import syndic
from pages import completed, pages
from syndic.cli.main import main
from syndic.data import Boolean, Categorical, Date, Integer, Ordinal, Real, Schema, SourceSpec
from syndic.document import Document, from_builtins
from syndic.errors import SyndicError
from syndic.kernel import Limits, Member
from syndic.methods import Homm
from syndic.privacy import Budget, Unit
from syndic.report import About
from syndic.study import PartyFile, Study

ROOT = Path(__file__).parents[2]
DEMO = Path(syndic.__file__).parent / "demo"
PAGES = pages()
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
STUDY_FILE = ROOT / "docs" / "reference" / "study-file.md"
CLI_PAGE = ROOT / "docs" / "reference" / "cli.md"
KINDS: dict[str, type[Document]] = {"party.toml": PartyFile, "about.toml": About}


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    kind: str
    lines: list[str]
    line: int


def blocks(text: str) -> Iterator[Block]:
    found: Block | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("```"):
            if found is None:
                found = Block(kind=line.removeprefix("```"), lines=[], line=number)
            else:
                yield found
                found = None
        elif found is not None:
            found.lines.append(line)
    if found is not None:
        raise AssertionError(f"the block of line {found.line} has no end")


class Reader:
    """Follows a page, block by block."""

    def __init__(self, page: str, folder: Path) -> None:
        self.page = page
        self.folder = folder
        self.names: dict[str, Any] = {"__name__": "__page__"}
        self.output = ""

    def follow(self, text: str) -> None:
        before = ""
        for block in blocks(text):
            match block.kind:
                case "python":
                    self.run_python(block)
                case "console":
                    self.run_console(block)
                case "toml":
                    self.read_toml(block)
                case "text":
                    if before == "python":
                        self.compare(block.lines, block.line)
                case _:
                    raise AssertionError(f"{self.page}:{block.line}: what is a block of {block.kind!r}?")
            before = block.kind

    def run_python(self, block: Block) -> None:
        # empty lines in front, so that a traceback names the line of the page
        code = compile("\n" * block.line + "\n".join(block.lines), self.page, "exec")
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(code, self.names)
        self.output = output.getvalue()

    def run_console(self, block: Block) -> None:
        text = "\n".join(block.lines).replace("\\\n", " ")
        commands = [part.splitlines() for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]]
        for place, (command, *shown) in enumerate(commands):
            if command == "echo $?":
                continue
            wanted = 0
            if place + 1 < len(commands) and commands[place + 1][0] == "echo $?":
                wanted = int(commands[place + 1][1])
            words = shlex.split(command)
            if words[0] != "syndic":
                check_other_command(words)
                continue
            status, self.output = run_syndic(words[1:])
            assert status == wanted, f"{self.page}:{block.line}: {command}: status {status}\n{self.output}"
            self.compare(shown, block.line)

    def read_toml(self, block: Block) -> None:
        title = re.fullmatch(r"# ([\w./-]+\.toml)(, in part(?:, same people)?)?", block.lines[0])
        assert title, f"{self.page}:{block.line}: the first line must say which file this is"
        text = "\n".join(block.lines)
        content = completed(text)
        if title[2]:
            from_builtins(content, Study, where=f"{self.page}:{block.line}").check()
            return
        kind = KINDS.get(re.split("[/-]", title[1])[-1], Schema if "schema" in title[1] else Study)
        from_builtins(content, kind, where=f"{self.page}:{block.line}")
        (self.folder / title[1]).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / title[1]).write_text(text)

    def compare(self, shown: list[str], line: int) -> None:
        """Every line shown must be a line of the last output."""
        actual = [" ".join(one.split()) for one in self.output.splitlines()]
        for wanted in shown:
            pattern = ".*".join(re.escape(" ".join(part.split())) for part in wanted.split("..."))
            pattern = pattern.replace(r".*\ ", ".*").replace(r"\ .*", ".*")
            if wanted.strip() and not any(re.fullmatch(pattern, one) for one in actual):
                raise AssertionError(f"{self.page}:{line}: not in the output: {wanted}\n{self.output}")


def run_syndic(words: list[str]) -> tuple[int, str]:
    target = words.index(">") if ">" in words else len(words)
    output, errors = io.StringIO(), io.StringIO()
    status = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["syndic", *words[:target]])
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            try:
                main()
            except SystemExit as end:
                status = int(end.code or 0)
    if target < len(words):
        Path(words[target + 1]).write_text(output.getvalue())
    return status, output.getvalue() + errors.getvalue()


def check_other_command(words: list[str]) -> None:
    """Commands that are not run here: make's targets and pip's extras must at least exist."""
    if words[0] == "make":
        targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert set(words[1:]) <= set(targets)
        return
    assert words[:2] == ["pip", "install"], f"unknown command in the docs: {' '.join(words)}"
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.findall(r"\[([\w,]+)\]", " ".join(words))
    assert {extra for group in named for extra in group.split(",")} <= set(extras)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for file in DEMO.iterdir():
        if file.suffix in {".csv", ".toml"}:
            shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_runs(page: Path, folder: Path) -> None:
    Reader(page.name, folder).follow(page.read_text())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_example_runs(example: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    del folder
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    "broken",
    [
        "```python\nraise ValueError\n```",
        "```python\nx = 1\n```\n```python\nassert x == 2\n```",
        "```python\nprint(1)\n```\n```text\n2\n```",
        "```console\n$ syndic plan nowhere.toml\n```",
        "```console\n$ syndic plan study.toml\n$ echo $?\n2\n```",
        "```console\n$ syndic plan study.toml\nsomething it does not say\n```",
        "```console\n$ syndic frobnicate\n```",
        "```console\n$ make nothing\n```",
        "```console\n$ rm -rf .\n```",
        '```toml\n# other.toml\nname = "not a study"\n```',
        "```toml\n# study.toml, in part\n[budget]\nepsilom = 1.0\n```",
        "```toml\n[budget]\nepsilon = 1.0\n```",
        "```ruby\n1\n```",
        "```python\n",
    ],
)
def test_broken_block_is_found(broken: str, folder: Path) -> None:
    with pytest.raises((AssertionError, ValueError, SyndicError)):
        Reader("broken.md", folder).follow(broken)


def section(page: Path, heading: str) -> str:
    """Return the text under one heading, up to the next heading of the same level or a higher one."""
    found = re.search(rf"^(#+) {re.escape(heading)}$(.*?)(?=^#{{1,2}} |\Z)", page.read_text(), re.MULTILINE | re.DOTALL)
    assert found, f"{page.name} has no heading '{heading}'"
    if len(found[1]) > 2:
        return re.split(r"^### ", found[2], flags=re.MULTILINE)[0]
    return found[2]


SECTIONS: list[tuple[str, type[Document]]] = [
    ("The study", Study),
    ("`[unit]`", Unit),
    ("`[budget]`", Budget),
    ("`[[parties]]`", Member),
    ("`[limits]`", Limits),
    ("`[protocol]`", Homm),
    ("`categorical`", Categorical),
    ("`ordinal`", Ordinal),
    ("`boolean`", Boolean),
    ("`integer`", Integer),
    ("`real`", Real),
    ("`date`", Date),
    ("`party.toml`", PartyFile),
    ("`source`", SourceSpec),
]


@pytest.mark.parametrize(("heading", "kind"), SECTIONS, ids=lambda value: getattr(value, "__name__", None))
def test_every_key_and_every_choice_is_documented(heading: str, kind: type[Document]) -> None:
    text = section(STUDY_FILE, heading)
    for field in msgspec.structs.fields(kind):
        assert f"| `{field.encode_name}` |" in text, f"{heading}: no row for {field.encode_name}"
        for choice in choices(field.type):
            assert f'"{choice}"' in text, f"{heading}: {field.encode_name} may be {choice!r}"
    if tag := kind.__struct_config__.tag:
        assert f'"{tag}"' in text
    assert "```toml" in text


def choices(kind: Any) -> Iterator[str]:
    if get_origin(kind) is Literal:
        yield from get_args(kind)
    else:
        for argument in get_args(kind):
            yield from choices(argument)


def test_every_exit_status_is_documented() -> None:
    text = section(CLI_PAGE, "Exit status")

    def statuses(kind: type[SyndicError]) -> Iterator[int]:
        yield kind.exit_code
        for child in kind.__subclasses__():
            yield from statuses(child)

    for status in {0, 130, *statuses(SyndicError)}:
        assert f"| {status} |" in text


@pytest.mark.parametrize("readme", ["README.md", "lab/README.md"])
def test_relative_links_of_a_readme_exist(readme: str) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / readme).read_text())
    assert links
    for link in links:
        assert link.startswith("https://") or ((ROOT / readme).parent / link).exists(), link


def test_changelog_puts_privacy_first() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert f"[{syndic.__version__}]" in versions[0]
    for version in versions:
        assert re.search(r"^### (\w+)", version, re.MULTILINE)[1] == "Privacy"  # type: ignore[index]  # None fails too
