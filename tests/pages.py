"""Parts of the documentation that are generated from the code, written by `make pages`.

Such a part is between two lines, `<!-- generated: KIND WHAT -->` and `<!-- end -->`. KIND is one of `BLOCKS`. For a
part about a method WHAT is its name and, where the page's study is changed for it, parameters: `estimate
scheme="masked"`; `parties=5` says how many parties there are. Diagrams are in `diagrams`.
"""

import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, get_args
from unittest.mock import patch

import click
from click.testing import CliRunner

import syndic
from diagrams import diagram, overview
from syndic.cli.main import cli
from syndic.document import from_builtins
from syndic.kernel import ALIGNED, GROUPS, Method, Step
from syndic.kernel.disclosure import MADE_UP, UNCHECKED_ROWS, beyond_unit, of_products, product_sees
from syndic.methods import AnyMethod
from syndic.study import Study
from syndic_lab.reproduce import CATALOGUE
from verbs import listed

ROOT = Path(__file__).parents[1]
FOLDERS = (ROOT / "docs", ROOT / "lab" / "docs")
METHODS_PAGE = ROOT / "docs" / "methods" / "index.md"
DEMO = Path(syndic.__file__).parent / "demo"
METHODS: dict[str, type[Method]] = {str(kind.__struct_config__.tag): kind for kind in get_args(AnyMethod)}
# asked in every method, so described once, in the life of a call
COMMON = {"ready", "meet"}
# studies with steps that the study of the page does not have
VARIANTS = {
    "align": ("parties=3",),
    "describe": ("missing=1 parties=5", "groups=2"),
    "estimate": ('scheme="masked" groups=[]',),
    "learn": ("missing=1 parties=5", 'scheme="local_grad"'),
    "marginals": ("missing=1 parties=5", "groups=2"),
    "mixing": ('scheme="dgm"',),
    "survival": ("missing=1 parties=5", "groups=2"),
    "synthesis": ("missing=1 parties=5", "parties=1", "groups=2"),
    "vertimrf": ('way="sketch"',),
}
CUT = ("describe", "marginals", "survival", "synthesis")
PUBLIC = "anyone with the release"
PRODUCT = "as in every [secure product](index.md#roles)"
_BLOCK = re.compile(r"^<!-- generated: (\w+) ([^\n]+) -->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
_WIDTH = 100
# what the page of all methods says in words that hold for every study
_IN_INDEX = re.compile(
    r"the columns|which parties take part|that a party takes part|people with more rows|who the people are|"
    r"against more than \d+ (colluding )?parties|"
    r"the \w+ against a party that (submits|enters|puts in) (invented|made-up)"
)


def pages() -> list[Path]:
    """Return every page of the documentation, the lab's too."""
    readmes = [ROOT / "README.md", ROOT / "lab" / "README.md"]
    return sorted([*readmes, *(page for folder in FOLDERS for page in folder.rglob("*.md"))])


def generated(text: str) -> str:
    """Return a page's text with every generated part written anew."""

    def written(found: re.Match[str]) -> str:
        content = "\n".join(BLOCKS[found[1]](found[2]))
        return f"<!-- generated: {found[1]} {found[2]} -->\n\n{content}\n\n<!-- end -->"

    return _BLOCK.sub(written, text)


def parts_of(text: str) -> list[tuple[str, str]]:
    """Return the kind of each generated part of a page, and what it is about."""
    return [(found[1], found[2]) for found in _BLOCK.finditer(text)]


def page_of(method: str) -> Path:
    """Return the page of a method."""
    return ROOT / "docs" / "methods" / f"{method}.md"


def studies_of(page: Path) -> Iterator[dict[str, Any]]:
    """Yield the studies on a page, parts of a study put into the demo's."""
    yield from (completed(block) for block in _tomls(page))


def completed(block: str) -> dict[str, Any]:
    """Return a block of TOML; a study "in part" with the rest of the demo's, or of the one on the page of all methods.

    The first line says which: `# study.toml, in part` or `# study.toml, in part, same people`.
    """
    title, content = block.splitlines()[0], tomllib.loads(block)
    if title.endswith(", in part, same people"):
        (common,) = [other for other in _tomls(METHODS_PAGE) if ", in part" in other]
        return {**completed(common), **content}
    if title.endswith(", in part"):
        return {**tomllib.loads((DEMO / "study.toml").read_text()), **content}
    return content


def _tomls(page: Path) -> list[str]:
    return re.findall(r"^```toml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def study_of(what: str) -> Study:
    """Return the first study of that method, on its own page or any other, with changed parameters."""
    method, *changed = what.split()
    changes = tomllib.loads("\n".join(changed))
    for page in (page_of(method), *pages()):
        for content in studies_of(page):
            if content.get("protocol", {}).get("method") == method:
                content["parties"] = _resized(content["parties"], changes.pop("parties", len(content["parties"])))
                if "groups" in changes and method in CUT:
                    content.update(_grouped(content, changes.pop("groups")))
                content["protocol"] |= changes
                return from_builtins(content, Study, where=page.name)
    return Study.load(DEMO / "study.toml")


def _resized(parties: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Return so many parties: the first ones, and copies of the last."""
    return [*parties, *({**parties[-1], "name": f"p{number}"} for number in range(len(parties), count))][:count]


def _grouped(content: dict[str, Any], count: int) -> dict[str, Any]:
    """Return so many groups of two parties, which have every other column of the same people."""
    content["protocol"].pop("cliques", None)
    names = [column["name"] for column in content["schema"]["columns"]]
    parties = [
        {"name": f"p{group}{half}", "people": 1000, "group": f"g{group}", "columns": names[half::2]}
        for group in range(count)
        for half in range(2)
    ]
    return {"parties": parties, "unit": {"neighbours": "replace"}}


def _paper(method: str) -> Iterator[str]:
    yield f"Paper: {METHODS[method].paper}."


def _messages(method: str) -> Iterator[str]:
    """Yield the steps in the order of a run and what each reveals; the diagram says what each does.

    Of changed studies the steps that the page's study does not have.
    """
    usual = study_of(method).steps
    yield f"- messages: {_in_runs({name: step for name, step in usual.items() if name not in COMMON})}"
    for changes in VARIANTS.get(method, ()):
        more = study_of(f"{method} {changes}").steps
        yield f"- messages with `{changes}`: {_in_runs({name: more[name] for name in more if name not in usual})}"


def _in_runs(steps: dict[str, Step]) -> str:
    """Return the names of steps, those one after the other that reveal the same together."""
    runs = [(reveals, list(run)) for reveals, run in groupby(steps, key=lambda name: steps[name].reveals)]
    return ", ".join(f"{', '.join(f'`{name}`' for name in names)} ({reveals})" for reveals, names in runs)


def _roles(what: str) -> Iterator[str]:
    """Yield a line for each thing that is seen, with all roles that see it; what is common is in the index."""
    sees = study_of(what).plan.disclosure.sees
    release = sees[PUBLIC]
    seen: dict[str, list[str]] = {}
    for role, what_it_sees in sees.items():
        named = what_it_sees if what_it_sees == release else what_it_sees.replace(release, "the release")
        seen.setdefault(PRODUCT if named == _product_sees().get(role) else named, []).append(role)
    yield from (
        f"- {'everybody' if len(seen) == 1 else ', '.join(roles).replace(PUBLIC, 'anyone')}: {what_they_see}"
        for what_they_see, roles in seen.items()
    )
    if what in METHODS:
        yield from _messages(what)


def _product_sees() -> dict[str, str]:
    """Return what coordinator and parties see of every secure product."""
    return {role: text for role, text in product_sees("the release").items() if role != PUBLIC}


def _common(_: str) -> Iterator[str]:
    yield from (f"- {role}: {text}" for role, text in _product_sees().items())


def _costs(_: str) -> Iterator[str]:
    """Yield a line for each method: what the study of its page costs in rounds, memory and traffic."""
    yield from ("| method | rounds | memory, MB | largest message, kB |", "|---|---|---|---|")
    for method in METHODS:
        need = study_of(method).plan.resources
        size = max(need.reply_bytes, 1000) / 1000
        yield f"| {method} | {need.rounds} | {need.memory_bytes / 1e6:,.0f} | {size:,.0f} |"


def _limits(what: str) -> Iterator[str]:
    """Yield what a method does not protect, without what the index says of all methods or of all of a kind."""
    study = study_of(what)
    common = {GROUPS, beyond_unit(study.unit), *of_products(proven=True), UNCHECKED_ROWS}
    own = [text for text in study.plan.disclosure.not_protected if text not in common]
    yield from (f"- {text}" for text in own if not _IN_INDEX.match(text))


def _everywhere(_: str) -> Iterator[str]:
    yield from (f"- {GROUPS}", f"- for masked sums: {MADE_UP}", f"- for the same people: {ALIGNED}")
    yield from ("- for secure products:", *(f"    - {text}" for text in of_products(proven=True)))
    yield f"    - where rows are not proven, {UNCHECKED_ROWS}"


def _help(verb: str) -> Iterator[str]:
    words = verb.split()[1:]
    # the list of verbs is that of the package alone; what the lab adds is on its own pages
    with patch("syndic.cli.main._added", dict) if not words else nullcontext():
        told = CliRunner().invoke(cli, [*words, "--help"], terminal_width=_WIDTH, prog_name="syndic")
    if told.exit_code:
        raise click.UsageError(f"{verb}: {told.output}")
    yield from ("```text", told.output.strip(), "```")


def _items(paper: str) -> Iterator[str]:
    yield from ("| name | where | what |", "|---|---|---|")
    for item in CATALOGUE:
        if item.paper.key == paper:
            skipped = "; not reproducible" if item.reason else "; not in a quick run" if item.seconds[0] is None else ""
            yield f"| `{item.name}` | {item.where} | {item.what}{skipped} |"


BLOCKS: dict[str, Callable[[str], Iterator[str]]] = {
    "commands": listed,
    "common": _common,
    "costs": _costs,
    "everywhere": _everywhere,
    "help": _help,
    "items": _items,
    "limits": _limits,
    "paper": _paper,
    "roles": _roles,
}


def image_of(method: str) -> Path:
    """Return the diagram of a method."""
    return ROOT / "docs" / "methods" / "images" / f"{method}.svg"


def _diagram(method: str) -> str:
    return diagram(method, study_of(method), without=COMMON)


def images() -> dict[Path, Callable[[], str]]:
    """Return what draws each generated image."""
    found: dict[Path, Callable[[], str]] = {ROOT / "docs" / "images" / "overview.svg": overview}
    for method in METHODS:
        found[image_of(method)] = partial(_diagram, method)
    return found


def main() -> int:
    """Write every page and image anew and name those that changed."""
    written = [(page, generated(page.read_text())) for page in pages()]
    drawn = [(path, draw()) for path, draw in images().items()]
    for path, text in (*written, *drawn):
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
