"""What the code says about a method, in the words and tables that its page must have."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import syndic
from syndic.document import from_builtins
from syndic.kernel import Method
from syndic.kernel.step import steps_of
from syndic.methods import AnyMethod
from syndic.study import Study

ROOT = Path(__file__).parents[1]
DEMO = Path(syndic.__file__).parent / "demo"
METHODS: dict[str, type[Method]] = {str(kind.__struct_config__.tag): kind for kind in get_args(AnyMethod)}
# the same method for other tables shares a page
SHARED = {"pooled-gram": "gram"}
# asked in every method, so described once, in the life of a call
COMMON = {"ready", "meet"}


def page_of(method: str) -> Path:
    """Return the page of a method."""
    return ROOT / "docs" / "protocols" / f"{SHARED.get(method, method)}.md"


def study_of(method: str) -> Study | None:
    """Return the first study of that method on its page, parts of a study put into the demo's."""
    for block in re.findall(r"^```toml\n(.*?)^```", page_of(method).read_text(), re.MULTILINE | re.DOTALL):
        content = tomllib.loads(block)
        if ", in part" in block.splitlines()[0]:
            content = {**tomllib.loads((DEMO / "study.toml").read_text()), **content}
        if content.get("protocol", {}).get("method") == method:
            return from_builtins(content, Study, where=page_of(method).name)
    return Study.load(DEMO / "study.toml") if method == "homm" else None


def paper_line(kind: type[Method]) -> str:
    """Return the line that names what the method is made after."""
    return f"| paper | {kind.paper} |"


def message_rows(kind: type[Method]) -> Iterator[str]:
    """Yield a line of a table for every step: its name, what the reply reveals, what a party does."""
    for name, one in steps_of(kind).items():
        if name not in COMMON:
            what = " ".join((getattr(kind, name).__doc__ or "").split("\n\n")[0].split())
            yield f"| `{name}` | {one.reveals} | {what} |"


def role_rows(study: Study) -> Iterator[str]:
    """Yield a line of a table for every role: what it sees."""
    for role, seen in study.plan.disclosure.sees.items():
        yield f"| {role} | {seen} |"


def cost_line(study: Study) -> str:
    """Return what a plan says that a run needs."""
    need = study.plan.resources
    rounds = "1 round" if need.rounds == 1 else f"{need.rounds} rounds"
    size = max(need.reply_bytes, 1000) / 1000
    return f"{rounds}, {need.memory_bytes / 1e6:,.0f} MB of memory, messages of at most {size:,.0f} kB."


def limit_lines(study: Study) -> Iterator[str]:
    """Yield what is not protected, a line each."""
    for text in study.plan.disclosure.not_protected:
        yield f"- {text}"
