"""Expressions rewritten: names that may be unbound, calls, logic, comparisons, comprehensions."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, cast

from .lazy import is_lazy
from .names import bound, declared, dotted, parameters
from .nodes import (
    HELPERS,
    constant,
    copied,
    helper,
    is_literal,
    iterated,
    load,
    located,
    placed,
    taking,
    thunk,
)

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

_UNARY: dict[type[ast.unaryop], str] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}
IN_PLACE: dict[type[ast.operator], str] = {  # names in the module `operator`
    ast.Add: "iadd",
    ast.Sub: "isub",
    ast.Mult: "imul",
    ast.Div: "itruediv",
    ast.FloorDiv: "ifloordiv",
    ast.Mod: "imod",
    ast.Pow: "ipow",
    ast.MatMult: "imatmul",
    ast.BitAnd: "iand",
    ast.BitOr: "ior",
    ast.BitXor: "ixor",
    ast.LShift: "ilshift",
    ast.RShift: "irshift",
}

_ARRAYS = frozenset("array asarray stack vstack sum mean max min prod".split())
_ITEMS = "_jt_items"  # what a comprehension runs over


class Scope:
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


class Expressions(ast.NodeTransformer):
    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.hidden: list[set[str]] = []  # variables of comprehensions and lambdas around

    def visit_Name(self, node: ast.Name) -> ast.AST:
        new = placed(ast.Name(node.id, node.ctx), node)
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
        named = self.named(node)
        if not isinstance(node.ctx, ast.Load):
            return named
        return helper("attribute", [named.value, constant(named.attr, node)], node)

    def named(self, node: ast.Attribute) -> ast.Attribute:
        """An attribute as such: one that is called, or assigned to, is no property to be computed."""
        node.value = self.visit(node.value)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function = node.func
        if isinstance(function, ast.Attribute) and _is_helper(function):  # see `searches`
            node.args = [self.visit(a) for a in node.args]
            return node
        if isinstance(function, ast.Name) and function.id == "super" and not node.args:
            first = self.scope.first if self.scopes else None
            if first is not None and not node.keywords:
                node.args = [load("__class__", node), load(first, node)]
                return node
        called = (
            self.named(function) if isinstance(function, ast.Attribute) else self.visit(function)
        )
        if node.args and isinstance(node.args[0], ast.ListComp) and _makes_array(function):
            node.args[0].into = copied(called)  # type: ignore[attr-defined]
        node.func = helper("convert", [called], function)
        node.args = [self.visit(a) for a in node.args]
        node.keywords = [self.visit(k) for k in node.keywords]
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if not isinstance(node.ctx, ast.Load):
            return self.target(node)
        parts = [self.visit(node.value), self.index(node.slice)]
        return helper("item", parts, node)

    def target(self, node: Any) -> Any:
        """What is assigned to, or lies around it: it stays as it is, but for what it is indexed by."""
        if not isinstance(node, ast.Subscript):
            return self.visit(node)
        node.value = self.target(node.value)
        node.slice = self.visit(node.slice)
        return node

    def index(self, node: ast.expr) -> ast.expr:
        """An index as an expression of its own: slices are made by calls."""
        if isinstance(node, ast.Slice):
            ends = (node.lower, node.upper, node.step)
            return helper(
                "slice_", [constant(None, node) if e is None else self.visit(e) for e in ends], node
            )
        if isinstance(node, ast.Tuple):
            parts = [self.index(e) for e in node.elts]
            return placed(ast.Tuple(parts, ast.Load()), node)
        visited: ast.expr = self.visit(node)
        return visited

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        parts: list[ast.expr] = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                value = self.visit(part.value)
                kind = constant("" if part.conversion == -1 else chr(part.conversion), node)
                spec = constant("", node)
                if part.format_spec is not None:
                    spec = self.visit(part.format_spec)
                part = placed(ast.Tuple([value, kind, spec], ast.Load()), node)
            parts.append(part)
        return helper("text", parts, node)

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
        if isinstance(node.operand, ast.Constant):
            return node
        name = constant(_UNARY[type(node.op)], node)
        return helper("unary", [name, self.visit(node.operand)], node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        if isinstance(node.op, ast.Mult):
            for items, times in ((node.left, node.right), (node.right, node.left)):
                if isinstance(items, ast.List):
                    self.generic_visit(items)
                    return helper("repeated", [items, self.visit(times)], node)
        tree = self.reducible(node)
        if tree is not None:
            return tree
        name = constant(IN_PLACE[type(node.op)][1:], node)
        return helper("binary", [name, self.visit(node.left), self.visit(node.right)], node)

    def reducible(self, node: ast.BinOp) -> ast.expr | None:
        """`a * b % m` and `(a << b ^ c) & m`: what is in between may be longer than what comes out."""
        if not isinstance(node.op, (ast.Mod, ast.BitAnd)):
            return None
        long, by = node.left, node.right
        if isinstance(node.op, ast.BitAnd) and not _is_long(long):
            long, by = by, long
        if not _is_long(long) or (long is not node.left and not isinstance(by, ast.Constant)):
            return None  # operands are evaluated in their order
        leaves: list[ast.expr] = []
        name = "mod" if isinstance(node.op, ast.Mod) else "and"
        tree = constant(_tree(long, leaves), node)
        values = ast.Tuple([self.visit(leaf) for leaf in leaves], ast.Load())
        return helper("reduced", [constant(name, node), tree, values, self.visit(by)], node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        contains = (ast.In, ast.NotIn)
        left = self.visit(node.left)
        rights = [self.visit(c) for c in node.comparators]
        if len(rights) == 1:
            if isinstance(node.ops[0], contains):
                name = "in_" if isinstance(node.ops[0], ast.In) else "not_in"
                return helper(name, [left, rights[0]], node)
            if isinstance(node.ops[0], (ast.Is, ast.IsNot)):
                name = "is_" if isinstance(node.ops[0], ast.Is) else "is_not"
                return helper(name, [left, rights[0]], node)
        if _binds(node.comparators):
            return placed(ast.Compare(left, node.ops, rights), node)
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
        inner = self.inner(node)
        first = node.generators[0]
        first.iter = self.visit(iterated(first.iter))
        hidden: set[str] = set()
        for generator in node.generators:
            hidden |= bound([generator.target]) if not generator.is_async else set()
            hidden |= {n.id for n in ast.walk(generator.target) if isinstance(n, ast.Name)}
        self.hidden.append(hidden)
        tests: list[ast.expr] = []  # of what the first generator gives
        for generator in node.generators:
            if generator is not first:
                generator.iter = self.visit(iterated(generator.iter))
            generator.target = self.visit(generator.target)
            asked = [self.test(t) for t in generator.ifs]
            tests += copied(asked) if generator is first else []
            generator.ifs = [
                helper("refuse", [t, constant("a comprehension", t)], t) for t in asked
            ]
        if isinstance(node, ast.DictComp):
            node.key, node.value = self.visit(node.key), self.visit(node.value)
        else:
            node.elt = self.visit(node.elt)
        self.hidden.pop()
        if any(g.is_async for g in node.generators) or _binds([node]):
            return node
        items, first.iter = first.iter, load(_ITEMS, first.iter)
        parts = [items, taking(_ITEMS, node)]
        listed = copied(node)  # the elements alone, which need not be hashed
        if isinstance(node, ast.DictComp):
            elements: ast.expr = ast.Tuple([listed.key, listed.value], ast.Load())
        else:
            elements = listed.elt
        listed.generators[0].ifs = []
        one = listed.generators[:1]
        made = ast.ListComp(elements, one) if inner is None else ast.ListComp(inner, one)
        parts.append(taking(_ITEMS, located(made, node)))
        if tests:
            target = copied(listed.generators[0])
            asked_all = helper("truth", [self.logic("and_", tests, node)], node)
            parts.append(taking(_ITEMS, located(ast.ListComp(asked_all, [target]), node)))
        elif inner is None and getattr(node, "into", None) is not None:
            parts += [constant(None, node), node.into]
        if isinstance(node, ast.GeneratorExp):
            return helper("generated", [constant(inner is not None, node), *parts], node)
        return helper("comprehended_parts" if inner is not None else "comprehended", parts, node)

    def inner(self, node: Any) -> ast.expr | None:
        """Of a comprehension with several `for`: the list of what the others give for an item of the
        first, as a comprehension of its own; of a generator expression, the generator."""
        first, *others = copied(node.generators)
        asynchronous = any(g.is_async for g in node.generators)
        if not others or asynchronous or _binds([node]):
            return None
        if isinstance(node, ast.DictComp):
            element: ast.expr = ast.Tuple([copied(node.key), copied(node.value)], ast.Load())
        else:
            element = copied(node.elt)
        self.hidden.append({n.id for n in ast.walk(first.target) if isinstance(n, ast.Name)})
        is_lazy = isinstance(node, ast.GeneratorExp)
        made = (ast.GeneratorExp if is_lazy else ast.ListComp)(element, others)
        result = self.comprehension(located(made, node))
        self.hidden.pop()
        return cast(ast.expr, result)

    def display(self, node: Any) -> ast.AST:
        """`[a, b]`, `{a}` and `{a: b}`."""
        self.generic_visit(node)
        if isinstance(node, ast.List) and not isinstance(node.ctx, ast.Load):
            return node
        if isinstance(node, (ast.List, ast.Set)) and _has_stars(node.elts):
            cls = "list" if isinstance(node, ast.List) else "set"
            stars = "".join("*" if isinstance(e, ast.Starred) else "." for e in node.elts)
            parts = [e.value if isinstance(e, ast.Starred) else e for e in node.elts]
            whole = located(ast.Tuple(parts, ast.Load()), node)
            return helper(
                "made_of_parts", [constant(cls, node), constant(stars, node), whole], node
            )
        # A set of constants Python makes of a frozen one, whose order may be another.
        if isinstance(node, ast.List) or (
            isinstance(node, ast.Set) and all(map(is_literal, node.elts))
        ):
            return helper("made", [node], node)
        if isinstance(node, ast.Set):
            return helper("made_set", [located(ast.Tuple(node.elts, ast.Load()), node)], node)
        if any(key is None for key in node.keys):
            return helper("made", [node], node)
        pairs = zip(node.keys, node.values, strict=True)
        items: list[ast.expr] = [ast.Tuple([key, value], ast.Load()) for key, value in pairs]
        return helper("made_dict", [located(ast.Tuple(items, ast.Load()), node)], node)

    visit_List = visit_Set = visit_Dict = display

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = comprehension

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        if getattr(node, "plain", False):
            return node
        args = node.args
        args.defaults = [self.visit(d) for d in args.defaults]
        args.kw_defaults = [d and self.visit(d) for d in args.kw_defaults]
        self.hidden.append(set(parameters(args)))
        if not is_lazy([node.body]):
            node.body = self.visit(node.body)
        self.hidden.pop()
        return node

    # Parts

    @property
    def scope(self) -> Scope:
        return self.scopes[-1]

    def unless(self, flags: Sequence[str], at: ast.AST) -> ast.expr:
        return helper("none_of", [load(flag, at) for flag in flags], at)


def _has_stars(nodes: Sequence[ast.expr]) -> bool:
    return any(isinstance(node, ast.Starred) for node in nodes)


def _makes_array(function: ast.expr) -> bool:
    """Whether it may be one of NumPy's functions that make an array of a list."""
    return (
        isinstance(function, ast.Attribute) and function.attr in _ARRAYS and bool(dotted(function))
    )


def _is_helper(function: ast.Attribute) -> bool:
    return isinstance(function.value, ast.Name) and function.value.id == HELPERS


_GROWING = (ast.Mult, ast.LShift)
_IN_TREES = (*_GROWING, ast.Add, ast.Sub, ast.BitXor, ast.BitOr)


def _is_long(node: ast.expr) -> bool:
    """Whether an expression multiplies or shifts."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, _IN_TREES):
        return False
    return isinstance(node.op, _GROWING) or _is_long(node.left) or _is_long(node.right)


def _tree(node: ast.expr, leaves: list[ast.expr]) -> Any:
    """An expression as operations on its leaves, which are numbered in their order."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, _IN_TREES):
        leaves.append(node)
        return len(leaves) - 1
    return IN_PLACE[type(node.op)][1:], _tree(node.left, leaves), _tree(node.right, leaves)


def _binds(nodes: Sequence[ast.AST]) -> bool:
    return any(
        isinstance(n, (ast.NamedExpr, ast.Yield, ast.Await)) for r in nodes for n in ast.walk(r)
    )
