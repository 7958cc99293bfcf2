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
import copy
from collections.abc import Sequence
from typing import Any

from . import liveness
from .jumps import RESULT, RETURNED, For, Guard, While, assign, constant, lower
from .names import (
    COMPREHENSIONS,
    attributes,
    bound,
    changed,
    declared,
    own_nodes,
    parameters,
)

HELPERS = "_jt_"  # the name under which transformed code finds `runtime`
THUNK = "_jt_thunk"  # a parameter of the lambdas that hold operands
_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}


class _Scope:
    """What is known of the function whose body is being rewritten."""

    def __init__(
        self,
        args: ast.arguments,
        body: Sequence[ast.AST],
    ) -> None:
        self.globals = declared(body, ast.Global)
        self.outer = declared(body, ast.Nonlocal)
        self.parameters = set(parameters(args))
        ordered = [*args.posonlyargs, *args.args]
        self.first = ordered[0].arg if ordered else None
        self.bound = (bound(body) | self.parameters) - self.globals - self.outer
        self.checked: set[str] = set()  # variables that may be unbound when they are read


def _conditional(body: Sequence[ast.AST]) -> set[str]:
    found: set[str] = set()
    for node in body:
        if isinstance(node, (ast.If, ast.While, ast.For, ast.Try, ast.With, ast.Match, ast.Delete)):
            found |= bound([node])
    return found


class Transformer(ast.NodeTransformer):
    def __init__(self, class_name: str | None) -> None:
        self.class_name = class_name
        self.scopes: list[_Scope] = []
        self.hidden: list[set[str]] = []  # variables of comprehensions and lambdas around
        self.tries = 0
        self.filled: list[set[str]] = []  # see jumps.While

    # Functions

    def root(self, node: ast.FunctionDef | ast.Lambda) -> ast.FunctionDef | ast.Lambda:
        """The function itself: without decorators, defaults and annotations."""
        node = bare(copy.deepcopy(node))
        if isinstance(node, ast.Lambda):
            new: Any = self.visit_Lambda(node)
            return new
        self.function(node)
        return node

    def function(self, node: ast.FunctionDef) -> None:
        scope = _Scope(node.args, node.body)
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
        tries, self.tries = self.tries, 0
        filled, self.filled = self.filled, []
        mangled = {self.mangle(n) for n in scope.parameters}
        scope.parameters |= mangled
        self.generic_visit(node.args)
        statements = self.statements(body)
        start: list[ast.stmt] = []
        at = node.body[0]
        for name in sorted(scope.checked - scope.parameters):
            start.append(assign(name, helper("Undefined", [constant(name, at)], at), at))
        for name in sorted(n for n in scope.bound if n.startswith("_jt_") and n != RESULT):
            start.append(assign(name, constant(False, at), at))
        if early:
            start.append(assign(RESULT, helper("no_result", [], at), at))
            last = node.body[-1]
            pair = [load(RETURNED, last), load(RESULT, last)]
            value = helper("returned", pair, last)
            statements.append(ast.copy_location(ast.Return(value), last))
        declarations = self.declarations(scope.globals | scope.outer, at)
        node.body = [*doc, *declarations, *start, *statements]
        if len(node.body) == len(doc):
            node.body.append(ast.copy_location(ast.Pass(), at))
        self.scopes.pop()
        self.hidden, self.tries, self.filled = hidden, tries, filled

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        node.name = self.mangle(node.name)
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
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        node.bases = [self.visit(b) for b in node.bases]
        outer, self.class_name = self.class_name, None  # Python mangles inside of a class itself
        node.body = [self.visit(s) if isinstance(s, ast.FunctionDef) else s for s in node.body]
        self.class_name = outer
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        args = node.args
        args.defaults = [self.visit(d) for d in args.defaults]
        args.kw_defaults = [d and self.visit(d) for d in args.kw_defaults]
        self.hidden.append(set(parameters(args)))
        if not is_lazy([node.body]):
            node.body = self.visit(node.body)
        self.hidden.pop()
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
        self.filled.append(getattr(node, "filled", set()))
        state = self.state([*node.body, *node.orelse], node, at)
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
                test = helper("and_", [self.unless(node.flags, at), thunk(test)], at)
        judge = self.procedure("_jt_test", [], [node.test], at)
        judge.body[-1] = ast.copy_location(ast.Return(test), at)
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
        take = ast.copy_location(take, node.target)
        body = [take, *self.statements(node.body)]
        run = self.procedure("_jt_body", body, [node.target, *node.body], at)
        run.args.args = [ast.copy_location(ast.arg("_jt_item"), at)]
        self.filled.pop()
        extra: ast.expr = constant(None, at)
        if node.flags:
            extra = thunk(self.unless(node.flags, at))
        iterable = self.visit(node.iter)
        call = helper("for_stmt", [iterable, load("_jt_body", at), extra, *state.arguments], at)
        return [run, *state.functions, expression(call)]

    def visit_AsyncFor(self, node: ast.AsyncFor) -> ast.AST:
        raise AssertionError("coroutines are not transformed")

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        message = self.visit(node.msg) if node.msg else None
        test = self.test(node.test)
        text = constant(ast.unparse(node.test), node.test)
        told = [] if message is None else [thunk(copy.deepcopy(message))]
        new = ast.Assert(helper("assert_", [test, text, *told], node.test), message)
        return ast.copy_location(new, node)

    def visit_Try(self, node: ast.Try) -> ast.AST:
        self.tries += 1
        node.body = self.statements(node.body)
        self.tries -= 1
        for handler in node.handlers:
            if handler.type is not None:
                handler.type = self.visit(handler.type)
            handler.body = self.statements(handler.body)
            name = handler.name
            if name is not None and name in self.scope.bound:
                # The variable is unbound afterwards. It may live in a cell that others read.
                handler.name = f"_jt_{name}"
                gone = assign(
                    name, helper("Undefined", [constant(name, handler)], handler), handler
                )
                handler.body = [
                    assign(name, load(handler.name, handler), handler),
                    ast.copy_location(ast.Try(handler.body, [], [], [gone]), handler),
                ]
        node.orelse = self.statements(node.orelse)
        node.finalbody = self.statements(node.finalbody)
        return node

    def visit_With(self, node: ast.With) -> ast.AST:
        for item in node.items:
            item.context_expr = self.visit(item.context_expr)
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
                read = self.visit(ast.copy_location(ast.Name(target.id, ast.Load()), target))
                out.append(expression(read))
                gone = helper("Undefined", [constant(target.id, target)], target)
                out.append(assign(self.mangle(target.id), gone, target))
            else:
                out.append(ast.copy_location(ast.Delete([self.visit(target)]), node))
        return out

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST | list[ast.stmt]:
        value = self.visit(node.value)
        target = node.target
        if isinstance(target, ast.Name) and target.id in self.scope.checked:
            read = self.visit(ast.copy_location(ast.Name(target.id, ast.Load()), target))
            node.target, node.value = self.visit(target), value
            return [expression(read), node]
        node.target, node.value = self.visit(target), value
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | list[ast.stmt]:
        if node.value is None:
            return []
        new = ast.Assign([self.visit(node.target)], self.visit(node.value))
        return ast.copy_location(new, node)

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        return None  # declared once more where they are assigned to

    visit_Nonlocal = visit_Global

    # Expressions

    def visit_Name(self, node: ast.Name) -> ast.AST:
        name = self.mangle(node.id)
        new = ast.copy_location(ast.Name(name, node.ctx), node)
        if isinstance(node.ctx, ast.Load) and not node.id.startswith("_jt_"):
            if any(node.id in names for names in self.hidden):
                return new
            for scope in reversed(self.scopes):
                if node.id in scope.bound:
                    return helper("ld", [new], node) if node.id in scope.checked else new
                if node.id in scope.globals:
                    return new
        return new

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        node.value = self.visit(node.value)
        node.attr = self.mangle(node.attr)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self.mangle(node.arg)
        return node

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        node.value = self.visit(node.value)
        if node.arg is not None:
            node.arg = self.mangle(node.arg)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function = node.func
        if isinstance(function, ast.Name) and function.id == "super" and not node.args:
            first = self.scope.first if self.scopes else None
            if first is not None and not node.keywords:
                node.args = [load("__class__", node), load(self.mangle(first), node)]
                return node
        node.func = helper("convert", [self.visit(function)], function)
        node.args = [self.visit(a) for a in node.args]
        node.keywords = [self.visit(k) for k in node.keywords]
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        if _binds([node.body, node.orelse]):
            node.test = helper(
                "refuse",
                [self.test(node.test), constant("a conditional expression with :=", node)],
                node,
            )
            node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
            return node
        parts = [self.test(node.test), thunk(self.visit(node.body)), thunk(self.visit(node.orelse))]
        return helper("if_exp", parts, node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        if _binds(node.values[1:]):
            node.values = [
                helper("refuse", [self.visit(v), constant("`and` or `or` with :=", v)], v)
                for v in node.values
            ]
            return node
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return self.logic(name, [self.visit(v) for v in node.values], node)

    def logic(self, name: str, values: list[ast.expr], at: ast.AST) -> ast.expr:
        """`a and (b and c)`: the order of evaluation, and the result, of `a and b and c`."""
        result = values[-1]
        for value in reversed(values[:-1]):
            result = helper(name, [value, thunk(result)], at)
        return result

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if isinstance(node.op, ast.Not):
            return helper("not_", [self.test(node.operand)], node)
        node.operand = self.visit(node.operand)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        contains = (ast.In, ast.NotIn)
        left = self.visit(node.left)
        rights = [self.visit(c) for c in node.comparators]
        if len(rights) == 1:
            if isinstance(node.ops[0], contains):
                name = "in_" if isinstance(node.ops[0], ast.In) else "not_in"
                return helper(name, [left, rights[0]], node)
            return ast.copy_location(ast.Compare(left, node.ops, rights), node)
        if _binds(node.comparators):
            return ast.copy_location(ast.Compare(left, node.ops, rights), node)
        parts: list[ast.expr] = [left]
        for op, right in zip(node.ops, rights, strict=True):
            parts += [constant(_OPERATORS[type(op)], right), thunk(right)]
        return helper("compare", parts, node)

    def test(self, node: ast.expr) -> ast.expr:
        """An expression of which only the truth is asked."""
        if isinstance(node, ast.BoolOp) and not _binds(node.values[1:]):
            name = "and_" if isinstance(node.op, ast.And) else "or_"
            values = [helper("truth", [self.test(v)], v) for v in node.values]
            return self.logic(name, values, node)
        result: ast.expr = self.visit(node)
        return result

    def comprehension(self, node: Any) -> ast.AST:
        first = node.generators[0]
        first.iter = self.visit(first.iter)
        hidden: set[str] = set()
        for generator in node.generators:
            hidden |= bound([generator.target]) if not generator.is_async else set()
            hidden |= {n.id for n in ast.walk(generator.target) if isinstance(n, ast.Name)}
        self.hidden.append(hidden)
        for generator in node.generators:
            if generator is not first:
                generator.iter = self.visit(generator.iter)
            generator.target = self.visit(generator.target)
            generator.ifs = [
                helper("refuse", [self.test(t), constant("a comprehension", t)], t)
                for t in generator.ifs
            ]
        if isinstance(node, ast.DictComp):
            node.key, node.value = self.visit(node.key), self.visit(node.value)
        else:
            node.elt = self.visit(node.elt)
        self.hidden.pop()
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = comprehension

    # Parts

    @property
    def scope(self) -> _Scope:
        return self.scopes[-1]

    def mangle(self, name: str) -> str:
        if self.class_name is None or not name.startswith("__") or name.endswith("__"):
            return name
        return f"_{self.class_name.lstrip('_')}{name}"

    def unless(self, flags: Sequence[str], at: ast.AST) -> ast.expr:
        return helper("none_of", [load(flag, at) for flag in flags], at)

    def procedure(
        self, name: str, body: list[ast.stmt], original: Sequence[ast.AST], at: ast.AST
    ) -> ast.FunctionDef:
        """A function of no arguments that runs statements in the variables of the user's function."""
        declarations = self.declarations(bound(original), at)
        new = ast.FunctionDef(
            name=name,
            args=ast.arguments([], [], None, [], [], None, []),
            body=[*declarations, *body, ast.copy_location(ast.Pass(), at)],
            decorator_list=[],
        )
        return placed(new, at)

    def declarations(self, names: set[str], at: ast.AST) -> list[ast.stmt]:
        scope = self.scope
        out: list[ast.stmt] = []
        shared = sorted(self.mangle(n) for n in names & scope.globals)
        own = sorted(self.mangle(n) for n in names & (scope.bound | scope.outer))
        if shared:
            out.append(ast.copy_location(ast.Global(shared), at))
        if own:
            out.append(ast.copy_location(ast.Nonlocal(own), at))
        return out

    def state(self, nodes: Sequence[ast.AST], owner: ast.stmt, at: ast.AST) -> _State:
        return _State(self, nodes, liveness.live(owner), at)


class _State:
    """The code that reads and writes the variables that some statements change."""

    def __init__(
        self, transformer: Transformer, nodes: Sequence[ast.AST], live: set[str], at: ast.AST
    ) -> None:
        scope = transformer.scope
        updated = {n for n in changed(nodes) if n in scope.bound}
        names = sorted(bound(nodes) & (scope.bound | scope.globals | scope.outer) | updated)
        rebound = bound(nodes, augmented=False)
        visible = scope.bound | scope.outer | scope.globals
        stable = visible - set(names)  # attributes of other objects in each trip are not tracked
        members = sorted(n for n in attributes(nodes) if n.partition(".")[0] in stable)
        inside = sorted(changed(nodes))
        variables = [transformer.mangle(n) for n in names]
        values: list[ast.expr] = []
        for name, variable in zip(names, variables, strict=True):
            if name in scope.bound:
                values.append(load(variable, at))
            else:
                values.append(helper("peek", [constant(name, at), thunk(load(variable, at))], at))
        for name in members:
            values.append(
                helper("peek", [constant(name, at), thunk(self._path(transformer, name, at))], at)
            )
        get = ast.FunctionDef(
            name="_jt_get",
            args=ast.arguments([], [], None, [], [], None, []),
            body=[ast.Return(ast.Tuple(values, ast.Load()))],
            decorator_list=[],
        )
        targets: list[ast.expr] = [ast.Name(v, ast.Store()) for v in variables]
        setters: list[ast.stmt] = []
        for i, name in enumerate(members):
            base, _, attr = name.rpartition(".")
            item = ast.Subscript(
                ast.Name("_jt_v", ast.Load()), ast.Constant(len(names) + i), ast.Load()
            )
            setters.append(
                expression(
                    placed(
                        helper(
                            "put",
                            [
                                self._path(transformer, base, at),
                                constant(transformer.mangle(attr), at),
                                item,
                            ],
                            at,
                        ),
                        at,
                    )
                )
            )
        body: list[ast.stmt] = [*transformer.declarations(set(names), at)]
        if targets:
            taken = ast.Subscript(
                ast.Name("_jt_v", ast.Load()),
                ast.Slice(None, ast.Constant(len(names))),
                ast.Load(),
            )
            body.append(ast.Assign([ast.Tuple(targets, ast.Store())], taken))
        body += setters
        put = ast.FunctionDef(
            name="_jt_set",
            args=ast.arguments([], [ast.arg("_jt_v")], None, [], [], None, []),
            body=[*body, ast.Pass()],
            decorator_list=[],
        )
        paths: list[ast.expr] = []
        for name in inside:
            paths.append(
                helper("peek", [constant(name, at), thunk(self._path(transformer, name, at))], at)
            )
        self.functions: list[ast.stmt] = [placed(get, at), placed(put, at)]
        live_mask = tuple(n in live for n in names) + tuple(True for _ in members)
        filled = {RESULT}.union(*transformer.filled)
        filled_mask = tuple(n in filled for n in names) + tuple(False for _ in members)
        rebound_mask = tuple(n in rebound for n in names) + tuple(True for _ in members)
        about = helper(
            "State",
            [
                constant((*names, *members), at),
                load("_jt_get", at),
                load("_jt_set", at),
                constant(live_mask, at),
                constant(rebound_mask, at),
                constant(filled_mask, at),
                constant(tuple(inside), at),
                thunk(ast.Tuple(paths, ast.Load())),
                constant(transformer.tries > 0, at),
            ],
            at,
        )
        self.arguments: list[ast.expr] = [placed(about, at)]

    @staticmethod
    def _path(transformer: Transformer, name: str, at: ast.AST) -> ast.expr:
        first, *attrs = name.split(".")
        node = load(transformer.mangle(first), at)
        for attr in attrs:
            node = ast.Attribute(node, transformer.mangle(attr), ast.Load())
        return placed(node, at)


class Lazy(ast.NodeTransformer):
    """Generators and coroutines run later, piece by piece: their conditions must be ordinary."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    @staticmethod
    def root(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Any:
        """A generator or coroutine itself, with conditions that are checked."""
        kind = "a coroutine" if isinstance(node, ast.AsyncFunctionDef) else "a generator"
        node = bare(copy.deepcopy(node))
        Lazy(kind).body(node)
        return node

    def body(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        node.body = [self.visit(s) for s in node.body]

    def condition(self, node: Any) -> ast.AST:
        self.generic_visit(node)
        node.test = helper("refuse", [node.test, constant(self.kind, node.test)], node.test)
        return node

    visit_If = visit_While = visit_IfExp = visit_Assert = condition

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node


def bare(node: Any) -> Any:
    """A function without decorators, defaults and annotations."""
    node.args.defaults = []
    node.args.kw_defaults = [None for _ in node.args.kwonlyargs]
    for arg in ast.walk(node.args):
        if isinstance(arg, ast.arg):
            arg.annotation = None
    if not isinstance(node, ast.Lambda):
        node.decorator_list, node.returns = [], None
    return node


def is_lazy(body: Sequence[ast.AST]) -> bool:
    return any(
        isinstance(n, (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith))
        for n in own_nodes(body)
        if not isinstance(n, COMPREHENSIONS)
    )


def _binds(nodes: Sequence[ast.AST]) -> bool:
    return any(
        isinstance(n, (ast.NamedExpr, ast.Yield, ast.Await)) for r in nodes for n in ast.walk(r)
    )


def _return(node: ast.FunctionDef) -> ast.stmt:
    value = ast.Tuple([load(RETURNED, node), load(RESULT, node)], ast.Load())
    return ast.copy_location(ast.Return(value), node)


def placed(node: Any, at: ast.AST) -> Any:
    """Give `node`, and what is new in it, the place of `at`."""
    for child in ast.walk(node):
        if "lineno" in child._attributes and not hasattr(child, "lineno"):
            ast.copy_location(child, at)
    return node


def load(name: str, at: ast.AST) -> ast.expr:
    return ast.copy_location(ast.Name(name, ast.Load()), at)


def helper(name: str, arguments: list[ast.expr], at: ast.AST) -> ast.expr:
    function = ast.Attribute(ast.Name(HELPERS, ast.Load()), name, ast.Load())
    return placed(ast.copy_location(ast.Call(function, arguments, []), at), at)


def thunk(body: ast.expr) -> ast.expr:
    args = ast.arguments([], [], ast.arg(THUNK), [], [], None, [])
    return placed(ast.Lambda(args, body), body)


def expression(value: ast.expr) -> ast.stmt:
    return ast.copy_location(ast.Expr(value), value)
