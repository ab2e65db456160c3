"""A mutant: the product with one deliberate defect, and the tests that must detect it.

A mutant names a module, a symbol in it, and the code to change there. That code is given as a pattern and is compared
with the syntax tree, so comments, formatting and changes elsewhere do not matter:

- `_` matches any expression, and so does `_1` to `_9`, which the replacement may use again;
- `...` matches any further arguments, elements or statements.

A pattern must match exactly once in its symbol, or the mutant says which match it changes (`nth`).
"""

import ast
import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from longstop.errors import UsageError

SOURCE = Path(__file__).parents[2] / "src" / "longstop"

_WILDCARD = re.compile(r"_\d?")
_IGNORED_FIELDS = frozenset({"ctx", "kind", "type_comment", "type_params"})

Captures = dict[str, ast.expr]


class Change(Struct, frozen=True):
    """Code to find, and its replacement; an empty replacement removes a statement."""

    pattern: str
    replacement: str
    #: Whether both are calls that stand for their keyword argument.
    is_argument: bool = False
    #: Which match to change, counted from 1, where a pattern cannot be more specific.
    match: int | None = None


class Mutant(Struct, frozen=True, kw_only=True):
    """One deliberate defect."""

    name: str
    #: Relative to the package, as in `storage.sqlite.matches`.
    module: str
    #: A function, `Class.method`, class, or assigned name.
    symbol: str
    change: Change
    #: Test files or folders; the model test runs first when `is_modelled`.
    tests: tuple[str, ...]
    is_modelled: bool = False

    @property
    def path(self) -> Path:
        """The file to change, relative to the package."""
        return Path(*self.module.split(".")).with_suffix(".py")


def swap(pattern: str, replacement: str) -> Change:
    """Replace an expression or a statement."""
    return Change(pattern, replacement)


def always(condition: str) -> Change:
    """Make a condition hold every time."""
    return Change(condition, "True")


def never(condition: str) -> Change:
    """Make a condition fail every time."""
    return Change(condition, "False")


def drop(statement: str) -> Change:
    """Remove a statement."""
    return Change(statement, "")


def argument(name: str, value: str) -> Change:
    """Change the value of a keyword argument."""
    return Change(f"f({name}=_)", f"f({name}={value})", is_argument=True)


def drop_argument(name: str) -> Change:
    """Remove a keyword argument."""
    return Change(f"f({name}=_)", "f()", is_argument=True)


def nth(match: int, change: Change) -> Change:
    """Change only one of several matches, counted from 1 in the order of the source."""
    return replace(change, match=match)


def rule(name: str, module: str, symbol: str, change: Change, tested_with: str | None = None) -> Mutant:
    """Return a mutant of a pure rule, which the unit test of its module (or of `tested_with`) must detect."""
    package, _, file = (tested_with or module).partition(".")
    tests = (f"tests/unit/{package}/test_{file}.py",)
    return Mutant(name=name, module=module, symbol=symbol, change=change, tests=tests)


def mutate(mutant: Mutant) -> str:
    """Return the source of the mutant's module with the defect in it."""
    try:
        tree = ast.parse((SOURCE / mutant.path).read_text())
    except FileNotFoundError as error:
        raise UsageError(f"{mutant.name}: there is no module {mutant.module}; correct the mutant") from error
    symbol = _find_symbol(tree, mutant.symbol.split("."))
    if symbol is None:
        raise UsageError(f"{mutant.name}: {mutant.module} has no {mutant.symbol}; correct the mutant")
    replacer = _Replacer(mutant.change)
    replacer.visit(symbol)
    if replacer.count != 1 and not 1 <= (mutant.change.match or 0) <= replacer.count:
        raise UsageError(
            f"{mutant.name}: {mutant.change.pattern!r} matches {replacer.count} times in {mutant.module}."
            f"{mutant.symbol} instead of once; correct the mutant"
        )
    return ast.unparse(ast.fix_missing_locations(tree))


def _find_symbol(node: ast.AST, names: Sequence[str]) -> ast.AST | None:
    if not names:
        return node
    for child in ast.iter_child_nodes(node):
        if names[0] in _names_of(child):
            return _find_symbol(child, names[1:])
    return None


def _names_of(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.Assign():
            for target in node.targets:
                yield from (name.id for name in ast.walk(target) if isinstance(name, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name


class _Replacer(ast.NodeTransformer):
    """Replaces each match of a pattern and counts them."""

    def __init__(self, change: Change) -> None:
        self.count = 0
        self._match = change.match
        self._pattern, self._replacement = _parse(change)

    def visit(self, node: ast.AST) -> Any:
        captures: Captures = {}
        if not _matches(self._pattern, node, captures):
            return self.generic_visit(node)
        self.count += 1
        if self._match not in (None, self.count):
            return node
        return _fill(deepcopy(self._replacement), captures)


def _parse(change: Change) -> tuple[ast.AST, ast.AST | None]:
    """Return pattern and replacement as nodes of one sort: arguments, expressions or statements."""
    (pattern,) = ast.parse(change.pattern).body
    (replacement,) = ast.parse(change.replacement or "pass").body
    if not (isinstance(pattern, ast.Expr) and isinstance(replacement, ast.Expr)):
        return pattern, replacement
    before, after = pattern.value, replacement.value
    if change.is_argument and isinstance(before, ast.Call) and isinstance(after, ast.Call):
        return before.keywords[0], next(iter(after.keywords), None)
    return before, after


def _matches(pattern: Any, node: Any, captures: Captures) -> bool:
    if isinstance(pattern, ast.Name) and _WILDCARD.fullmatch(pattern.id):
        if isinstance(node, ast.expr):
            captures[pattern.id] = node
        return isinstance(node, ast.expr)
    if isinstance(pattern, list):
        return isinstance(node, list) and _match_lists(pattern, node, captures)
    if not isinstance(pattern, ast.AST):
        return bool(pattern == node)
    if type(pattern) is not type(node):
        return False
    has_more_arguments = isinstance(pattern, ast.Call) and any(map(_is_rest, pattern.args))
    for field in pattern._fields:
        if field in _IGNORED_FIELDS:
            continue
        expected, actual = getattr(pattern, field), getattr(node, field)
        if field == "keywords" and has_more_arguments:
            actual = [keyword for keyword in actual if keyword.arg in {each.arg for each in expected}]
        if not _matches(expected, actual, captures):
            return False
    return True


def _match_lists(patterns: list[Any], nodes: list[Any], captures: Captures) -> bool:
    rest = next((place for place, pattern in enumerate(patterns) if _is_rest(pattern)), None)
    if rest is not None:
        after = len(patterns) - rest - 1
        if len(nodes) < rest + after:
            return False
        nodes = [*nodes[:rest], *nodes[len(nodes) - after :]]
        patterns = [*patterns[:rest], *patterns[rest + 1 :]]
    return len(patterns) == len(nodes) and all(
        _matches(pattern, node, captures) for pattern, node in zip(patterns, nodes, strict=True)
    )


def _is_rest(pattern: Any) -> bool:
    if isinstance(pattern, ast.Expr):
        pattern = pattern.value
    return isinstance(pattern, ast.Constant) and pattern.value is ...


def _fill(node: Any, captures: Captures) -> Any:
    """Put what the wildcards matched into a replacement."""

    class Filler(ast.NodeTransformer):
        def visit_Name(self, name: ast.Name) -> ast.expr:
            return captures.get(name.id, name)

    return None if node is None else Filler().visit(node)
