"""A function's syntax tree rewritten: control flow becomes calls of the helpers in `runtime`.

    if x > 0:                 def _jt_then(): nonlocal y; y = x
        y = x           ->    def _jt_else(): nonlocal y; y = -x
    else:                     def _jt_get(): return (y,)
        y = -x                def _jt_set(_jt_v): nonlocal y; (y,) = _jt_v
                              _jt_.if_stmt(x > 0, _jt_then, _jt_else, _jt_.State(...))

The helpers look at the condition: an ordinary value takes the ordinary way, a traced one becomes an
op. Every node keeps the user's line and column.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from . import liveness
from .expressions import Expressions, Scope
from .jumps import RESULT, RETURNED, For, Guard, While, lower
from .lazy import Lazy, bare, is_lazy
from .matching import Matching
from .names import bound, changed, is_passing, own_nodes, reads, writes_into_first
from .nodes import (
    HELPERS,
    assign,
    constant,
    copied,
    expression,
    helper,
    iterated,
    load,
    located,
    placed,
    thunk,
)
from .raises import Raises
from .searches import Searches
from .state_code import StateCode
from .stores import Stores
from .untraced import is_long, untraced


class Transformer(Expressions):
    """Statements, over the expressions in them. `root` is the way in."""

    def __init__(self) -> None:
        super().__init__()
        self.filled: list[set[str]] = []  # see jumps.While
        self.stores = Stores(self)

    # Functions

    def root(
        self, node: ast.FunctionDef | ast.Lambda, may_be_plain: bool = True
    ) -> ast.FunctionDef | ast.Lambda:
        """The function itself: without decorators, defaults and annotations."""
        searches = Searches()
        new: Any = searches.visit(Raises().visit(Matching().visit(bare(copied(node)))))
        if isinstance(new, ast.Lambda):
            if not searches.made:
                return self.visit_Lambda(new)  # type: ignore[return-value]
            body = [*searches.made, placed(ast.Return(new.body), new)]
            new = located(ast.FunctionDef("lambda", new.args, body, []), new)
        return self.whole(new, may_be_plain)

    def whole(self, node: ast.FunctionDef, may_be_plain: bool = True) -> ast.FunctionDef:
        long = may_be_plain and is_long(node)
        self.function(node)
        if long:
            node.body[:0] = untraced(node)
        return node

    def function(self, node: ast.FunctionDef) -> None:
        scope = Scope(node.args, node.body)
        doc = node.body[:1] if ast.get_docstring(node, clean=False) is not None else []
        body, early = lower(node.body[len(doc) :])
        flags = {n for n in bound(body) if n.startswith("_jt_")}
        scope.checked = _conditional(body) & scope.bound - flags
        scope.bound |= flags
        liveness.mark(
            [*body, *([_return(node)] if early else [])],
            scope.globals | scope.outer,
        )
        self.scopes.append(scope)
        hidden, self.hidden = self.hidden, []
        filled, self.filled = self.filled, []
        self.generic_visit(node.args)
        statements = self.statements(body)
        start: list[ast.stmt] = []
        at = node.body[0]
        for name in sorted(scope.checked - scope.parameters):
            start.append(assign(name, helper("unbound", [constant(name, at)], at), at))
        for name in sorted(flags - {RESULT}):
            start.append(assign(name, constant(False, at), at))
        if early:
            start.append(assign(RESULT, helper("no_result", [], at), at))
            last = node.body[-1]
            pair = [load(RETURNED, last), load(RESULT, last)]
            value = helper("returned", pair, last)
            statements.append(placed(ast.Return(value), last))
        declarations = self.declarations(scope.globals | scope.outer, at)
        node.body = [*doc, *declarations, *start, *statements]
        if len(node.body) == len(doc):
            node.body.append(placed(ast.Pass(), at))
        self.scopes.pop()
        self.hidden, self.filled = hidden, filled

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        if is_lazy(node.body):
            Lazy("a generator").body(node)
            return node
        args = node.args
        args.defaults = [self.visit(d) for d in args.defaults]
        args.kw_defaults = [d and self.visit(d) for d in args.kw_defaults]
        saved = args.defaults, args.kw_defaults
        args.defaults, args.kw_defaults = [], []
        self.function(node)
        args.defaults, args.kw_defaults = saved
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        Lazy("a coroutine").body(node)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        met = located(ast.Attribute(load(HELPERS, node), "made_class", ast.Load()), node)
        node.decorator_list = [met, *(self.visit(d) for d in node.decorator_list)]
        node.bases = [self.visit(b) for b in node.bases]
        node.body = [self.visit(s) if isinstance(s, ast.FunctionDef) else s for s in node.body]
        return node

    # Statements

    def statements(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in body:
            new = self.visit(statement)
            if isinstance(new, list):
                out += new
            elif new is not None:
                out.append(new)
        return out

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        if isinstance(node, Guard):
            test = self.unless(node.flags, node)
        else:
            test = self.test(node.test)
        at = node.test
        filled: set[str] = getattr(node, "filled", set())
        self.filled.append(filled | getattr(node, "skipped", set()))
        state = self.state([*node.body, *node.orelse], node, at)
        self.filled[-1] = filled
        call = helper(
            "if_stmt", [test, load("_jt_then", at), load("_jt_else", at), *state.arguments], at
        )
        then = self.procedure("_jt_then", self.statements(node.body), node.body, at)
        otherwise = self.procedure("_jt_else", self.statements(node.orelse), node.orelse, at)
        self.filled.pop()
        return [then, otherwise, *state.functions, expression(call)]

    visit_Guard = visit_If

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        assert isinstance(node, While)
        at = node.test
        self.filled.append(node.filled)
        state = self.state([*node.body, node.test], node, at)
        test = self.test(node.test)
        if node.flags:
            if isinstance(node.test, ast.Constant) and node.test.value:
                test = self.unless(node.flags, at)
            else:
                test = helper("truth", [test], at)
                test = helper("and_", [self.unless(node.flags, at), thunk(test)], at)
        judge = self.procedure("_jt_test", [], [node.test], at)
        judge.body[-1] = placed(ast.Return(test), at)
        call = helper(
            "while_stmt", [load("_jt_test", at), load("_jt_body", at), *state.arguments], at
        )
        body = self.procedure("_jt_body", self.statements(node.body), node.body, at)
        self.filled.pop()
        return [judge, body, *state.functions, expression(call)]

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        assert isinstance(node, For)
        at = node.iter
        self.filled.append(node.filled)
        state = self.state([node.target, *node.body], node, at)
        take = ast.Assign([self.visit(node.target)], load("_jt_item", node.target))
        take = placed(take, node.target)
        body = [take, *self.statements(node.body)]
        run = self.procedure("_jt_body", body, [node.target, *node.body], at)
        run.args.args = [placed(ast.arg("_jt_item"), at)]
        self.filled.pop()
        extra: ast.expr = constant(None, at)
        if node.flags:
            extra = thunk(self.unless(node.flags, at))
        parts = [self.visit(iterated(node.iter)), load("_jt_body", at), extra, *state.arguments]
        if is_passing(node):
            parts.append(constant(False, at))
        call = helper("for_stmt", parts, at)
        return [run, *state.functions, expression(call)]

    def visit_AsyncFor(self, node: ast.AsyncFor) -> ast.AST:
        raise AssertionError("coroutines are not transformed")

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        message = self.visit(node.msg) if node.msg else None
        test = self.test(node.test)
        text = constant(ast.unparse(node.test), node.test)
        told = [] if message is None else [thunk(copied(message))]
        new = ast.Assert(helper("assert_", [test, text, *told], node.test), message)
        return placed(new, node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        if node.exc is None:
            return node
        node.exc = helper("raised", [self.visit(node.exc)], node.exc)
        node.cause = node.cause and self.visit(node.cause)
        return node

    def visit_Try(self, node: ast.Try) -> list[ast.stmt] | ast.stmt:
        if not node.handlers:
            node.body = self.statements(node.body)
            node.finalbody = self.statements(node.finalbody)
            return node
        at = node.handlers[0]
        parts = [*node.body, *node.handlers, *node.orelse]
        state = self.state(parts, node, at)
        steps = [
            self.procedure(f"_jt_step_{k}", self.statements([s]), [s], at)
            for k, s in enumerate(node.body)
        ]
        failed: set[str] = node.failed  # type: ignore[attr-defined]
        kept = [None if _is_simple(s) else tuple(sorted(bound([s]) & failed)) for s in node.body]
        otherwise = self.procedure("_jt_else", self.statements(node.orelse), node.orelse, at)
        handlers = [self.handler(h, k) for k, h in enumerate(node.handlers)]
        arguments = [
            located(ast.Tuple([load(step.name, at) for step in steps], ast.Load()), at),
            load("_jt_else", at),
            located(ast.Tuple([made for _, made in handlers], ast.Load()), at),
            constant(tuple(kept), at),
            *state.arguments,
        ]
        procedures = [procedure for procedure, _ in handlers]
        call = expression(helper("try_stmt", arguments, at))
        statements = [*steps, otherwise, *procedures, *state.functions, call]
        if not node.finalbody:
            return statements
        return located(ast.Try(statements, [], [], self.statements(node.finalbody)), node)

    def handler(self, node: ast.ExceptHandler, number: int) -> tuple[ast.FunctionDef, ast.expr]:
        """A handler as a function of the exception, and the helper that knows what it takes."""
        body = self.statements(node.body)
        read = node.name is not None and node.name in reads(node.body)
        asks = read or any(
            isinstance(child, ast.Raise) and child.exc is None for child in own_nodes(node.body)
        )
        if node.name is not None and node.name in self.scope.bound:
            # The variable is unbound afterwards. It may live in a cell that others read.
            name = node.name
            gone = assign(name, helper("unbound", [constant(node.name, node)], node), node)
            body = [
                assign(name, load("_jt_error", node), node),
                placed(ast.Try(body, [], [], [gone]), node),
            ]
        run = self.procedure(f"_jt_handler_{number}", body, [node], node)
        run.args.args = [placed(ast.arg("_jt_error"), node)]
        kinds = load("BaseException", node) if node.type is None else self.visit(node.type)
        made = [thunk(kinds), load(run.name, node), constant(asks, node)]
        return run, helper("Handler", made, node)

    def visit_With(self, node: ast.With) -> ast.AST:
        for item in node.items:
            entered = self.visit(item.context_expr)
            item.context_expr = helper("context", [entered], item.context_expr)
            if item.optional_vars is not None:
                item.optional_vars = self.visit(item.optional_vars)
        node.body = self.statements(node.body)
        return node

    def visit_Match(self, node: ast.Match) -> ast.AST:
        node.subject = self.visit(node.subject)
        for case in node.cases:
            if case.guard is not None:
                case.guard = helper(
                    "refuse",
                    [self.visit(case.guard), constant("a match guard", case.guard)],
                    case.guard,
                )
            case.body = self.statements(case.body)
        return node

    def visit_Delete(self, node: ast.Delete) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id in self.scope.checked:
                read = self.visit(placed(ast.Name(target.id, ast.Load()), target))
                out.append(expression(read))
                gone = helper("unbound", [constant(target.id, target)], target)
                out.append(assign(target.id, gone, target))
            else:
                if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice):
                    parts = [self.visit(target.value), self.index(target.slice)]
                    out.append(expression(helper("delete_item", parts, node)))
                    continue
                out.append(placed(ast.Delete([self.visit(target)]), node))
        return out

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        assignment = self.stores.assignment(node)
        return self.generic_visit(node) if assignment is None else assignment

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST | list[ast.stmt]:
        update = self.stores.update(node)
        return self.generic_visit(node) if update is None else update

    def visit_Expr(self, node: ast.Expr) -> ast.AST | list[ast.stmt]:
        if isinstance(node.value, ast.Call) and writes_into_first(node.value):
            return self.stores.into_first(node.value)
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | list[ast.stmt]:
        if node.value is None:
            return []
        new = ast.Assign([self.visit(node.target)], self.visit(node.value))
        return placed(new, node)

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        return None  # declared once more where they are assigned to

    visit_Nonlocal = visit_Global

    # Parts

    def procedure(
        self, name: str, body: list[ast.stmt], original: Sequence[ast.AST], at: ast.AST
    ) -> ast.FunctionDef:
        """A function of no arguments that runs statements in the variables of the user's function."""
        updated = changed(original) & self.scope.bound  # see `stores`
        declarations = self.declarations(bound(original) | updated, at)
        new = ast.FunctionDef(
            name=name,
            args=ast.arguments([], [], None, [], [], None, []),
            body=[*declarations, *body, placed(ast.Pass(), at)],
            decorator_list=[],
        )
        return located(new, at)

    def declarations(self, names: set[str], at: ast.AST) -> list[ast.stmt]:
        scope = self.scope
        out: list[ast.stmt] = []
        shared = sorted(names & scope.globals)
        own = sorted(names & (scope.bound | scope.outer))
        if shared:
            out.append(placed(ast.Global(shared), at))
        if own:
            out.append(placed(ast.Nonlocal(own), at))
        return out

    def state(self, nodes: Sequence[ast.AST], owner: ast.stmt, at: ast.AST) -> StateCode:
        return StateCode(self, nodes, owner, at)


def _is_simple(node: ast.stmt) -> bool:
    """Whether a statement has done nothing when something in it fails; flags of jumps do not count."""
    if isinstance(node, ast.If):
        sides = [[s for s in side if not _is_flag(s)] for side in (node.body, node.orelse)]
        return all(len(side) <= 1 and all(map(_is_simple, side)) for side in sides)
    return not isinstance(node, (ast.While, ast.For, ast.Try, ast.With, ast.Match))


def _is_flag(node: ast.stmt) -> bool:
    names = bound([node])
    return bool(names) and RESULT not in names and all(n.startswith("_jt_") for n in names)


def _conditional(body: Sequence[ast.AST]) -> set[str]:
    names: set[str] = set()
    for node in body:
        if isinstance(node, (ast.If, ast.While, ast.For, ast.Try, ast.With, ast.Match, ast.Delete)):
            names |= bound([node])
    return names


def _return(node: ast.FunctionDef) -> ast.stmt:
    value = ast.Tuple([load(RETURNED, node), load(RESULT, node)], ast.Load())
    return placed(ast.Return(value), node)
