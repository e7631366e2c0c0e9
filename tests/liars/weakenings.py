"""The checks of parties and coordinators, each found in the source, and the nodes without one of them.

A party that is lied to has two kinds of protection. *Refusals*: places that raise an error which a liar can meet. All
of them are found in the syntax trees, so the list is complete by construction. *Bindings*: what makes an answer to a
lie useless without anybody noticing (masks bound to views, seals to places); they are named by hand in `BINDINGS`.
"""

import ast
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any, Final, final

import syndic
from mutation.patch import Living, living_functions, put_in
from syndic.errors import SyndicError
from syndic.kernel import Memory, node
from syndic.mpc import product
from syndic.mpc.graph import Seats, SumGraph
from syndic.mpc.length import LengthProof
from syndic.mpc.proof import OneHotProof
from syndic.mpc.seal import Place

ROOT: Final = Path(syndic.__file__).parent
PLACES: Final = ("kernel", "mpc", "methods", "privacy/ledger.py")
ERRORS: Final = {"RefusedError", "BudgetError"}

ELSEWHERE: Final = {
    "methods/histogram/homm.py HommPlan.counted: sent counts that": "tests/unit/methods/test_homm_columns.py",
    "methods/synthesis/synthesis.py Synthesis.product_at": "tests/unit/methods/test_any_cut_synthesis.py",
    # between organisations: signatures and agreements
    "kernel/agreement.py": "tests/unit/study/test_agreement_signatures.py",
    "kernel/memory.py Head.check": "tests/unit/study/test_put_back.py",
    "kernel/memory.py Memory.answer_once: a stored answer was deleted": "tests/unit/study/test_owners_attacks.py",
    "kernel/node.py _step_of: the call does not carry": "tests/unit/study/test_agreement_signatures.py",
    "kernel/party.py PartyState.check_agreed": "tests/unit/study/test_agreement_signatures.py",
    "kernel/session.py Session._body: the reply does not carry": "tests/unit/study/test_agreement_signatures.py",
    "privacy/ledger.py Ledger.check_answers": "tests/unit/study/test_put_back.py",
    "privacy/ledger.py Ledger.check_open": "tests/unit/study/test_put_back.py",
    # sizes, damage, and what a programmer could do wrong
    "kernel/node.py _run": "tests/unit/kernel/test_release_functions.py",
    "kernel/party.py Party.charge": "tests/unit/kernel/test_release_functions.py",
    "kernel/session.py Session._body: the reply belongs": "tests/unit/kernel/test_journal.py",
    "privacy/ledger.py Ledger._commit": "tests/unit/privacy/test_ledger.py",
    "privacy/ledger.py Ledger._known": "tests/unit/privacy/test_ledger.py",
    "privacy/ledger.py Ledger._check_cap": "tests/unit/privacy/test_ledger.py",
    "privacy/ledger.py Ledger._check_under": "tests/unit/privacy/test_ledger.py",
    # what needs other rows than the targets have
    "mpc/align/table.py": "tests/unit/mpc/test_align_table.py",
    "mpc/align/sets.py PrivateIntersections.check_columns": "tests/unit/methods/test_align_sets.py",
    "methods/estimate/estimate.py Estimate.answer": "tests/unit/methods/test_estimate_cuts.py",
    "mpc/product.py SecureProduct.check_unchanged": "tests/unit/mpc/test_product.py",
    "mpc/product_messages.py same_rows": "tests/unit/mpc/test_product_adversary.py",
    "mpc/servers.py": "tests/unit/mpc/test_servers.py",
    "methods/synthesis/measure.py check_question: : a parity": "tests/unit/methods/test_synthesis_questions.py",
    "methods/synthesis/measure.py _check_groups: : signs": "tests/unit/methods/test_synthesis_questions.py",
    "methods/synthesis/measure.py _check_groups: : parities": "tests/unit/methods/test_synthesis_questions.py",
    "methods/comparison/vertigan.py _check_torch": "tests/unit/methods/test_vertigan.py",
}
"""Refusals that other tests hold: how the name of their place begins, and the test file that fails without it."""

UNREACHED: Final = {
    "mpc/masked_sum.py SumCoordinator.send": "two silent parties, three times: it only ends the run",
    "methods/comparison/distdiffgen.py Distdiffgen.take_cut: the groups give": "memory, from public sizes",
    "methods/learning/learn.py Learn.contribute: _other_scheme": "steps that a plan does not have are refused before",
    "methods/learning/learn.py Learn.release: _other_scheme": "steps that a plan does not have are refused before",
    "methods/synthesis/synthesis.py Synthesis.product_served": "the step is in a plan with servers only",
    "methods/vertimrf": "variants of the method that have no target; a party that lies there spoils the result only",
}
"""Refusals that no liar of this suite meets, and why nobody's privacy hangs on them."""


@final
@dataclass(frozen=True)
class Site:
    """One place that refuses something: its file, function, first words and lines."""

    file: str
    function: str
    text: str
    lines: tuple[int, int]

    @property
    def name(self) -> str:
        """The place without its lines, which change."""
        return f"{self.file} {self.function}: {self.text}"


@cache
def sites() -> tuple[Site, ...]:
    """Return every place that raises one of the errors a liar can meet."""
    files = [
        path for place in PLACES for path in sorted(ROOT.glob(place if place.endswith(".py") else f"{place}/**/*.py"))
    ]
    trees = {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text()) for path in files}
    # functions that return such an error, for others to raise
    made = {
        each.name
        for tree in trees.values()
        for each in ast.walk(tree)
        if isinstance(each, ast.FunctionDef) and isinstance(each.returns, ast.Name) and each.returns.id in ERRORS
    }
    return tuple(site for file, tree in trees.items() for site in _sites_of(file, tree, made))


def _sites_of(file: str, tree: ast.Module, made: set[str]) -> Iterator[Site]:

    def walk(node: ast.AST, within: str) -> Iterator[Site]:
        name = getattr(node, "name", "") if isinstance(node, ast.FunctionDef | ast.ClassDef) else ""
        within = f"{within}.{name}".strip(".")
        if isinstance(node, ast.Raise) and node.exc is not None and _called(node.exc) in ERRORS | made:
            yield Site(file, within, _words(node.exc), (node.lineno, node.end_lineno or node.lineno))
        for child in ast.iter_child_nodes(node):
            yield from walk(child, within)

    yield from walk(tree, "")


def _called(error: ast.expr) -> str:
    function = error.func if isinstance(error, ast.Call) else error
    return function.id if isinstance(function, ast.Name) else ""


def _words(error: ast.expr) -> str:
    """Return the longest constant part of an error's text."""
    parts = [each.value for each in ast.walk(error) if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    names = [each.id for each in ast.walk(error) if isinstance(each, ast.Name) and each.id not in ERRORS]
    return max((part.strip() for part in parts), key=len, default=" ".join(names))[:60].strip()


@contextmanager
def noted() -> Iterator[set[Site]]:
    """Note which places refuse something."""
    by_file: dict[str, list[Site]] = {}
    for site in sites():
        by_file.setdefault(str(ROOT / site.file), []).append(site)
    found: set[Site] = set()
    before: Any = SyndicError.__dict__.get("__init__")

    def noting(error: Any, *given: Any, **named: Any) -> None:
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename not in by_file:
            frame = frame.f_back
        if frame is not None:
            line, here = frame.f_lineno, by_file[frame.f_code.co_filename]
            found.update(site for site in here if site.lines[0] <= line <= site.lines[1])
        (before or Exception.__init__)(error, *given, **named)

    owner: Any = SyndicError
    owner.__init__ = noting
    try:
        yield found
    finally:
        if before is None:
            del owner.__init__
        else:
            owner.__init__ = before


@cache
def _living() -> dict[str, Living]:
    with warnings.catch_warnings():
        # some objects of other libraries warn when they are looked at
        warnings.simplefilter("ignore")
        return living_functions(str(ROOT))


@cache
def _compiled(path: Path) -> CodeType:
    return compile(path.read_text(), str(path), "exec")


@contextmanager
def removed(site: Site) -> Iterator[None]:
    """Take one refusal out of the running code: what it guards goes on."""
    path = ROOT / site.file
    original = _compiled(path)
    weaker = compile(_Without(site).visit(ast.parse(path.read_text())), str(path), "exec")
    living = _living()[str(path)]
    put_in(original, weaker, living)
    try:
        yield
    finally:
        put_in(weaker, original, living)


class _Without(ast.NodeTransformer):
    def __init__(self, site: Site) -> None:
        self.site = site

    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        """Replace the one raise by nothing."""
        if (node.lineno, node.end_lineno) != self.site.lines:
            return node
        return ast.copy_location(ast.Pass(), node)


# Bindings: a class or module, a name in it, what stands there instead, the strategy, what is then found.


def _unbound(seats: Seats, what: str, number: int, _more: bytes = b"", bound: Any = Seats.bound) -> bytes:
    return bytes(bound(seats, what, number))


def _nothing(proof: LengthProof, seed: bytes, weights: Any = LengthProof._weights) -> Any:
    return 0 * weights(proof, seed)


BINDINGS: Final = {
    "masks are not bound to views": (Seats, "bound", _unbound, "at other weights", "asked different things"),
    "masks are not bound to lists": (Seats, "bound", _unbound, "half of the parties", "different views"),
    "questions are not part of views": (node, "told", lambda *_: b"", "at other weights", "asked different things"),
    "any list is long enough": (SumGraph, "least", property(lambda _: 1), "only it and the colluding", "few honest"),
    "answers are forgotten": (Memory, "store", lambda *_: None, "wrong sum", "does not remember"),
    "boxes are not bound to places": (Place, "written", lambda _: b"", "as if it were the rows", "not refused"),
    "proofs always hold": (OneHotProof, "holds", lambda *_: True, "enter 1000 in a cell of", "not one-hot"),
    "longer rows are proven": (LengthProof, "holds", lambda *_: True, "enter a million in a cell", "no longer than"),
    "numbers that wrap are not tested": (LengthProof, "_weights", _nothing, "numbers that wrap", "no longer than"),
    "proofs are for any challenge": (product, "_same_seed", lambda *_: True, "for another challenge", "not refused"),
}
