"""Mutants: small changes to a source file, each of which some test should notice.

Left alone, because a change there says nothing about the tests: annotations, decorators, imports, texts (what an
error says, what a log says), `zip(strict=...)`, and `copy=` of an array, which is speed.
"""

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

_COMPARISONS: Final[dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.MatMult: ast.Add,
}
_OPPOSITES: Final = {
    "add": "subtract",
    "all": "any",
    "ceil": "floor",
    "max": "min",
    "maximum": "minimum",
    "floor": "ceil",
    "first": "last",
    "min": "max",
    "minimum": "maximum",
    "subtract": "add",
    "any": "all",
    "last": "first",
}
# their arguments may be swapped without any effect
_SYMMETRIC: Final = {"min", "max", "gcd", "lcm", "isinstance", "minimum", "array_equal", "compare_digest", "add"}
_SPEED_OR_GUARD: Final = {"strict", "copy", "maxsize", "assume_unique", "timespec"}
_MOST_SWAPS: Final = 3
# where a change stands that is in no function and no class
MODULE: Final = "<module>"


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One change. `node` is the changed node's place in a walk of the tree, `variant` which of its changes."""

    path: str
    digest: str
    function: str
    line: int
    source: str
    operator: str
    change: str
    node: int
    variant: int

    @property
    def name(self) -> str:
        """What identifies the mutant as long as its file stays the same."""
        return f"{self.path} {self.digest} {self.node} {self.variant}"

    @property
    def where(self) -> str:
        """What stays when lines are renamed or formatted anew: the file and the function's whole name."""
        return f"{self.path}::{self.function}"

    @property
    def title(self) -> str:
        """What a reader is told: file, line of code, change."""
        return f"{self.path}:{self.line} | {self.source} | {self.change}"

    def record(self) -> dict[str, Any]:
        """Return the mutant as JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Variant:
    """One change of one node: what it becomes."""

    operator: str
    node: ast.AST


def mutants_of(path: Path, root: Path) -> list[Mutant]:
    """Return all mutants of a file, in the order of its lines."""
    source = path.read_text()
    digest, lines, tree = hashlib.sha256(source.encode()).hexdigest()[:12], source.splitlines(), ast.parse(source)
    functions = functions_of(tree)
    found = [
        Mutant(
            path=str(path.relative_to(root)),
            digest=digest,
            function=functions[id(node)],
            line=_line(node),
            source=lines[_line(node) - 1].strip(),
            operator=variant.operator,
            change=_told(node, variant.node),
            node=place,
            variant=number,
        )
        for place, node in _changeable(tree)
        for number, variant in enumerate(_variants(node))
    ]
    return sorted(found, key=lambda mutant: (mutant.line, mutant.node, mutant.variant))


def functions_of(tree: ast.Module) -> dict[int, str]:
    """Return by the `id` of every node the whole name of the function that it stands in.

    Outside of functions that is the class and the name that is assigned to.
    """
    found: dict[int, str] = {}

    def enter(node: ast.AST, around: tuple[str, ...], *, assigned: bool) -> None:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                around, assigned = (*around, name), False
            case ast.ClassDef(name=name):
                around = (*around, name)
            case ast.Assign(targets=[ast.Name(id=name), *_]) | ast.AnnAssign(target=ast.Name(id=name)) if assigned:
                around = (*around, name)
        found[id(node)] = ".".join(around) or MODULE
        for child in ast.iter_child_nodes(node):
            enter(child, around, assigned=assigned)

    enter(tree, (), assigned=True)
    return found


def mutated(source: str, mutant: Mutant) -> ast.Module:
    """Return the tree of the source with the mutant's change in it."""
    tree = ast.parse(source)
    target = next(node for place, node in _changeable(tree) if place == mutant.node)
    replacement = ast.copy_location(_variants(target)[mutant.variant].node, target)
    changed = _Replace(target, replacement).visit(tree)
    return ast.fix_missing_locations(changed)  # type: ignore[no-any-return]  # the tree that came in


class _Replace(ast.NodeTransformer):
    def __init__(self, target: ast.AST, replacement: ast.AST) -> None:
        self._target = target
        self._replacement = replacement

    def visit(self, node: ast.AST) -> Any:
        return self._replacement if node is self._target else super().visit(node)


def _changeable(tree: ast.Module) -> Iterator[tuple[int, ast.AST]]:
    left_alone = {id(inner) for node in ast.walk(tree) for part in _untouched(node) for inner in ast.walk(part)}
    for place, node in enumerate(ast.walk(tree)):
        if id(node) not in left_alone:
            yield place, node


def _untouched(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a node in which nothing is changed."""
    parts: list[ast.AST | None] = []
    match node:
        case ast.FunctionDef(returns=returns, decorator_list=decorators):
            parts = [*decorators, returns]
        case ast.arg(annotation=annotation) | ast.AnnAssign(annotation=annotation):
            parts = [annotation]
        case ast.ClassDef(decorator_list=decorators, keywords=keywords, bases=bases):
            parts = [*decorators, *keywords, *bases]
        case ast.Raise(exc=raised):
            parts = [raised]
        case ast.JoinedStr() | ast.Import() | ast.ImportFrom() | ast.Delete():
            parts = [node]
        case ast.Call(func=function) if _called(function).endswith(("Error", "TypeVar")) or _is_log(function):
            parts = [node]
        case ast.keyword(arg=str() as name) if name in _SPEED_OR_GUARD:
            parts = [node]
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            parts = [node]
    return [part for part in parts if part is not None]


def _variants(node: ast.AST) -> list[Variant]:
    return [Variant(operator, changed) for operator, changed in _changes(node)]


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Compare(ops=operators):
            yield from _comparisons(node, operators)
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) if not _is_text_or_type(node):
            yield "arithmetic", _with(node, op=_ARITHMETIC[type(operator)]())
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            yield "unary", operand
        case ast.BoolOp(op=operator, values=values):
            yield "boolean", _with(node, op=ast.Or() if isinstance(operator, ast.And) else ast.And())
            for place in range(len(values)):
                rest = values[:place] + values[place + 1 :]
                yield "boolean", rest[0] if len(rest) == 1 else _with(node, values=rest)
        case ast.Constant(value=value):
            yield from _constants(node, value)
        case ast.Call():
            yield from _calls(node)
        case _:
            yield from _statements(node)
    yield from _conditions(node)


def _comparisons(node: ast.Compare, operators: list[ast.cmpop]) -> Iterator[tuple[str, ast.AST]]:
    for place, operator in enumerate(operators):
        for other in _COMPARISONS[type(operator)]:
            yield "comparison", _with(node, ops=[*operators[:place], other(), *operators[place + 1 :]])


def _constants(node: ast.Constant, value: object) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(value, bool):
        yield "constant", _with(node, value=not value)
    elif isinstance(value, int):
        yield "constant", _with(node, value=value + 1)
        yield "constant", _with(node, value=value - 1)
    elif isinstance(value, float):
        yield "constant", _with(node, value=2 * value if value else 1.0)
        yield "constant", _with(node, value=value / 2 if value else -1.0)


def _calls(node: ast.Call) -> Iterator[tuple[str, ast.AST]]:
    name, arguments = _called(node.func), node.args
    # `add` and `subtract` are also handed on without being called: see `_statements`
    if name in _OPPOSITES and name not in ("add", "subtract"):
        yield "opposite", _with(node, func=_renamed(node.func, _OPPOSITES[name]))
    if name in _SYMMETRIC or any(isinstance(argument, ast.Starred) for argument in arguments):
        return
    for place in range(min(len(arguments) - 1, _MOST_SWAPS)):
        first, second = arguments[place : place + 2]
        if ast.dump(first) != ast.dump(second):
            yield "arguments", _with(node, args=[*arguments[:place], second, first, *arguments[place + 2 :]])


def _statements(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Attribute(attr=name, ctx=ast.Load()) if name in ("add", "subtract"):
            yield "opposite", _renamed(node, _OPPOSITES[name])
        case ast.Raise() | ast.Assert() | ast.Break() | ast.Continue():
            yield "deleted", ast.Pass()
        case ast.Expr(value=ast.Call(func=function)) if not _is_log(function):
            yield "deleted", ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "deleted", ast.Pass()
        case ast.Return(value=ast.AST() as value) if not isinstance(value, ast.Constant):
            yield "return", ast.Return(value=ast.Constant(value=None))


def _conditions(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Turn round conditions that no other operator changes, and leave out the filters of comprehensions."""
    match node:
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) if isinstance(
            test, ast.Name | ast.Attribute | ast.Call | ast.NamedExpr | ast.Subscript | ast.BinOp
        ):
            yield "condition", _with(node, test=ast.UnaryOp(op=ast.Not(), operand=test))
        case ast.comprehension(ifs=[_, *_]):
            yield "condition", _with(node, ifs=[])
    if isinstance(node, ast.AugAssign):
        yield "deleted", ast.Pass()


def _with(node: ast.AST, **changes: Any) -> ast.AST:
    fields = {name: getattr(node, name) for name in node._fields if hasattr(node, name)}
    return type(node)(**{**fields, **changes})


def _renamed(function: ast.expr, name: str) -> ast.AST:
    return _with(function, **({"id": name} if isinstance(function, ast.Name) else {"attr": name}))


def _called(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _is_log(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "_LOG"


def _is_text_or_type(node: ast.AST) -> bool:
    sides = [node.left, node.right] if isinstance(node, ast.BinOp) else [getattr(node, "value", None)]
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        or (isinstance(side, ast.Name) and side.id[:1].isupper() and not side.id.isupper())
        for side in sides
    )


def _line(node: ast.AST) -> int:
    # a comprehension has no place of its own
    return int(getattr(node.target if isinstance(node, ast.comprehension) else node, "lineno", 1))


def _told(before: ast.AST, after: ast.AST) -> str:
    def short(node: ast.AST) -> str:
        if isinstance(node, ast.If | ast.While):
            return f"{type(node).__name__.lower()} {ast.unparse(node.test)}"
        if isinstance(node, ast.comprehension):
            return ast.unparse(node).strip()
        return " ".join(ast.unparse(node).split())

    return f"{short(before)} -> {short(after)}"
