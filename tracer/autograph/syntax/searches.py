"""`any`, `all` and `next` of generator expressions, as loops that end where the generator would be left.

                                             def _jt_search_1(_jt_searched):
    if any(x > t for x in items):                for x in _jt_searched:
        y = 1                          ->            if x > t: return True
                                                 return False
                                             if _jt_.searched(any, items, <generator>, _jt_search_1):
                                                 y = 1

The loop is the user's code as any other. The generator expression stays beside it (`passing`: it is
called there and then), for whatever else goes under the name, for a few items, and for plain data.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from .lazy import is_lazy
from .names import parameters, reads
from .nodes import constant, copied, helper, iterated, load, located, taking, walk

ITEMS = "_jt_searched"
DEFAULT = "_jt_default"
_NAMES = frozenset(("any", "all", "next"))
_SIMPLE = (ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Assert, ast.Raise)
_HEADS = {ast.If: "test", ast.While: "test", ast.For: "iter"}


class Searches(ast.NodeTransformer):
    """Statements, each after the functions that its searches have become."""

    def __init__(self) -> None:
        self.count = 0
        self.made: list[ast.stmt] = []  # functions for the statement at hand
        self.hidden: list[set[str]] = []  # variables of comprehensions and lambdas around

    def statement(self, node: Any) -> Any:
        """A statement, its own expressions first."""
        if isinstance(node, _SIMPLE):
            node = self.generic_visit(node)
            return self._with_functions(node)
        head = _HEADS.get(type(node))
        if head is None:
            return self.generic_visit(node)
        setattr(node, head, self.visit(getattr(node, head)))
        before = self._with_functions(node)[:-1]
        for name in ("body", "orelse"):
            setattr(node, name, self._block(getattr(node, name)))
        return [*before, node]

    visit_Return = visit_Assign = visit_AugAssign = visit_AnnAssign = statement
    visit_Expr = visit_Assert = visit_Raise = visit_If = visit_While = visit_For = statement

    def _with_functions(self, node: ast.stmt) -> list[ast.stmt]:
        made, self.made = self.made, []
        return [*made, node]

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in body:
            new = self.visit(statement)
            out += new if isinstance(new, list) else [new]
        return out

    def _scope(self, node: Any) -> Any:
        """A function of its own, whose statements are by themselves."""
        hidden, self.hidden = self.hidden, []
        if not is_lazy(node.body):
            node.body = self._block(node.body)
        self.hidden = hidden
        return node

    visit_FunctionDef = _scope

    def _left(self, node: Any) -> Any:
        return node

    visit_AsyncFunctionDef = visit_ClassDef = _left

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self.hidden.append(set(parameters(node.args)))
        if not is_lazy([node.body]):
            node.body = self.visit(node.body)
        self.hidden.pop()
        return node

    def _comprehension(self, node: Any) -> Any:
        first = node.generators[0]
        first.iter = self.visit(iterated(first.iter))
        self.hidden.append(bound_in(node))
        for generator in node.generators:
            if generator is not first:
                generator.iter = self.visit(iterated(generator.iter))
            generator.ifs = [self.visit(test) for test in generator.ifs]
        for name in ("elt", "key", "value"):
            if hasattr(node, name):
                setattr(node, name, self.visit(getattr(node, name)))
        self.hidden.pop()
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not _is_search(node):
            return node
        assert isinstance(node.func, ast.Name) and isinstance(node.args[0], ast.GeneratorExp)
        generator, default = node.args[0], node.args[1:]
        self.count += 1
        name = f"_jt_search_{self.count}"
        around = set().union(*self.hidden) if self.hidden else set[str]()
        shared = sorted(reads([generator]) & around)
        self.made.append(_function(name, node.func.id, generator, shared, bool(default)))
        items, generator.generators[0].iter = generator.generators[0].iter, load(ITEMS, node)
        plain, lazy = taking(ITEMS, copied(generator)), taking(ITEMS, generator)
        plain.passing = lazy.passing = plain.plain = True  # type: ignore[attr-defined]
        given = ast.Tuple([load(n, node) for n in shared], ast.Load())
        parts = [node.func, items, plain, lazy, load(name, node), given, *default]
        return helper("searched", parts, node)


def _is_search(node: ast.Call) -> bool:
    if not isinstance(node.func, ast.Name) or node.func.id not in _NAMES or node.keywords:
        return False
    if len(node.args) not in ((1, 2) if node.func.id == "next" else (1,)):
        return False
    generator = node.args[0]
    if not isinstance(generator, ast.GeneratorExp):
        return False
    odd = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await, ast.Starred)
    if any(g.is_async for g in generator.generators):
        return False
    nodes = [n for part in node.args for n in walk(part)]
    names = {getattr(n, "id", getattr(n, "attr", "")) for n in nodes}
    private = any(n.startswith("__") and not n.endswith("__") for n in names)
    return not private and not any(isinstance(n, odd) for n in nodes)


def _function(
    name: str, search: str, generator: ast.GeneratorExp, shared: Sequence[str], has_default: bool
) -> ast.stmt:
    """The loops of a generator expression as a function."""
    generator = copied(generator)
    generator.generators[0].iter = load(ITEMS, generator)
    found: ast.stmt
    if search == "next":
        found = ast.Return(generator.elt)
    else:
        test = generator.elt if search == "any" else ast.UnaryOp(ast.Not(), generator.elt)
        found = ast.If(test, [ast.Return(constant(search == "any", generator))], [])
    for part in reversed(generator.generators):
        for test in reversed(part.ifs):
            found = located(ast.If(test, [found], []), test)
        found = ast.For(part.target, part.iter, [found], [])
        found.passing = True  # type: ignore[attr-defined]
        found = located(found, part.target)
    if search != "next":
        end: ast.stmt = ast.Return(constant(search == "all", generator))
    elif has_default:
        end = ast.Return(load(DEFAULT, generator))
    else:
        end = ast.Raise(load("StopIteration", generator), None)
    names = [ITEMS, *([DEFAULT] if has_default else []), *shared]
    args = ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])
    made = ast.FunctionDef(name=name, args=args, body=[found, end], decorator_list=[])
    made.passing = True  # type: ignore[attr-defined]
    return located(made, generator)


def bound_in(node: Any) -> set[str]:
    """The variables of a comprehension."""
    return {n.id for g in node.generators for n in walk(g.target) if isinstance(n, ast.Name)}
