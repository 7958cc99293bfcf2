"""Assignments to elements: an array that NumPy made becomes a traced one when a traced value goes in.

    x[i] = f(a)     ->    _jt_value = f(a)
                          _jt_index0 = i
                          x = _jt_.own(x, (_jt_index0,), _jt_value)
                          _jt_.store(x, _jt_index0, _jt_value)

`own` (in `autograph.elements`) gives `x` itself back unless it has to be replaced. Containers on the
way (`layers[k][i] = v`) and attributes (`self.w[i] = v`) get the new array in its place.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .expressions import IN_PLACE
from .names import VIEWS, dotted
from .nodes import assign, constant, copied, expression, helper, load, located, placed

if TYPE_CHECKING:
    from .transform import Transformer

_VALUE, _OLD, _INDEX = "_jt_value", "_jt_old", "_jt_index"


class Stores:
    """The assignment statements of a transformer."""

    def __init__(self, transformer: Transformer) -> None:
        self.transformer = transformer

    def assignment(self, node: ast.Assign) -> list[ast.stmt] | None:
        """The statements in place of `node`; None if none of its targets are elements."""
        if not any(map(_has_path, node.targets)):
            target = node.targets[0]
            if len(node.targets) == 1 and isinstance(target, (ast.Tuple, ast.List)):
                return self._unpacking(target, node)
            if len(node.targets) > 1 or not isinstance(target, ast.Attribute):
                return None
            value = self.transformer.visit(node.value)
            return [self._set_attribute(target, value, node)]
        out = [assign(_VALUE, self.transformer.visit(node.value), node)]
        for target in node.targets:
            out += self._store(target, _VALUE)
        return [*out, assign(_VALUE, constant(None, node), node)]

    def _unpacking(self, target: ast.Tuple | ast.List, node: ast.Assign) -> list[ast.stmt] | None:
        """`a, b = row`, of a list that may be a native one."""
        parts = target.elts
        if isinstance(node.value, ast.Tuple):
            return None
        visit = self.transformer.visit
        stars = [k for k, part in enumerate(parts) if isinstance(part, ast.Starred)]
        if stars:
            counts = [constant(k, node) for k in (stars[0], len(parts) - stars[0] - 1)]
            value = helper("unpacked_around", [visit(node.value), *counts], node)
            target.elts = [p.value if isinstance(p, ast.Starred) else p for p in parts]
            return [placed(ast.Assign([visit(target)], value), node)]
        value = helper("unpacked", [visit(node.value), constant(len(parts), node)], node)
        return [placed(ast.Assign([visit(target)], value), node)]

    def update(self, node: ast.AugAssign) -> list[ast.stmt] | None:
        """`x[i] += v`, `x += v` and `self.x += v`. None for what is no name and no path of names."""
        target, visit = node.target, self.transformer.visit
        operation = constant(IN_PLACE[type(node.op)], node)
        if not isinstance(target, ast.Subscript):
            if dotted(target) is None:
                return None
            call = helper("update", [operation, visit(_loaded(target)), visit(node.value)], node)
            if isinstance(target, ast.Attribute):
                return [self._set_attribute(target, call, node)]
            return [placed(ast.Assign([visit(target)], call), node)]
        path = _path(target)
        if path is None:
            return None
        root, levels = path
        out, indices = self._indices(levels)
        elements = helper("elements", [visit(_loaded(root)), _tuple(indices, target)], target)
        out += [assign(_OLD, elements, target), assign(_VALUE, visit(node.value), node)]
        out += self._own(root, indices, _VALUE, target)
        parts = [operation, load(_OLD, target), load(_VALUE, target)]
        call = helper("update_elements", parts, node)
        out.append(self._stored(root, indices, call, node))
        nothing = constant(None, node)
        return [*out, assign(_VALUE, nothing, node), assign(_OLD, nothing, node)]

    def _set_attribute(self, target: ast.Attribute, value: ast.expr, at: ast.AST) -> ast.stmt:
        named = self.transformer.named(target)
        name = constant(named.attr, at)
        return expression(helper("set_attribute", [value, named.value, name], at))

    def into_first(self, node: ast.Call) -> list[ast.stmt]:
        """`np.copyto(x, y)`, whose x may have to be replaced as that of `x[:] = y`:

        _jt_value = _jt_.writing(np.copyto, y);  x = _jt_.own_first(x, _jt_value);  _jt_value(x)
        """
        root = node.args[0]
        made = self.transformer.visit(copied(node))  # `changed` reads the original
        made.args[0] = made.func
        made.func = helper("writing", [], node).func  # type: ignore[attr-defined]
        path = self.transformer.visit(_loaded(root))
        call = helper("own_first", [path, load(_VALUE, node)], node)
        again = self.transformer.visit(_loaded(root))
        return [
            assign(_VALUE, made, node),
            self._replacing(root, call, node),
            expression(located(ast.Call(load(_VALUE, node), [again], []), node)),
            assign(_VALUE, constant(None, node), node),
        ]

    def _store(self, target: ast.expr, value: str) -> list[ast.stmt]:
        """Assign the variable `value` to a target."""
        if isinstance(target, (ast.Tuple, ast.List)):
            names = [f"{value}_{i}" for i in range(len(target.elts))]
            parts: list[ast.expr] = [ast.Name(n, ast.Store()) for n in names]
            for i, element in enumerate(target.elts):
                if isinstance(element, ast.Starred):
                    parts[i] = ast.Starred(parts[i], ast.Store())
            unpacked = located(ast.Tuple(parts, ast.Store()), target)
            out: list[ast.stmt] = [placed(ast.Assign([unpacked], load(value, target)), target)]
            for element, name in zip(target.elts, names, strict=True):
                inner = element.value if isinstance(element, ast.Starred) else element
                out += self._store(inner, name)
                out.append(assign(name, constant(None, element), element))
            return out
        path = _path(target)
        if path is None:
            new = ast.Assign([self.transformer.visit(target)], load(value, target))
            return [placed(new, target)]
        root, levels = path
        out, indices = self._indices(levels)
        out += self._own(root, indices, value, target)
        return [*out, self._stored(root, indices, load(value, target), target)]

    def _indices(self, levels: Sequence[ast.expr]) -> tuple[list[ast.stmt], list[str]]:
        names = [f"{_INDEX}{i}" for i in range(len(levels))]
        pairs = zip(names, levels, strict=True)
        return [assign(n, self.transformer.index(e), e) for n, e in pairs], names

    def _own(
        self, root: ast.expr, indices: Sequence[str], value: str, at: ast.AST
    ) -> list[ast.stmt]:
        """`root = own(root, indices, value)`. Of `x.T[i] = v` it is `x` first that may be replaced."""
        out: list[ast.stmt] = []
        if isinstance(root, ast.Attribute) and root.attr in VIEWS:
            out = self._replace(root.value, "own_viewed", indices, value, at)
        return out + self._replace(root, "own", indices, value, at)

    def _replace(
        self, root: ast.expr, how: str, indices: Sequence[str], value: str, at: ast.AST
    ) -> list[ast.stmt]:
        parts = [self.transformer.visit(_loaded(root)), _tuple(indices, at), load(value, at)]
        return [self._replacing(root, helper(how, parts, at), at)]

    def _replacing(self, root: ast.expr, call: ast.expr, at: ast.AST) -> ast.stmt:
        """`root = call`, where that is a variable of the function or an attribute."""
        transformer = self.transformer
        if isinstance(root, ast.Name):
            if root.id in transformer.scope.bound:
                return assign(root.id, call, at)
            return expression(call)
        assert isinstance(root, ast.Attribute)
        base = transformer.visit(_loaded(root.value))
        name = constant(root.attr, at)
        return expression(helper("hold", [base, name, call], at))

    def _stored(
        self, root: ast.expr, indices: Sequence[str], value: ast.expr, at: ast.AST
    ) -> ast.stmt:
        holder: ast.expr = self.transformer.visit(_loaded(root))
        for name in indices[:-1]:
            holder = placed(ast.Subscript(holder, load(name, at), ast.Load()), at)
        return expression(helper("store", [holder, load(indices[-1], at), value], at))


def _path(target: ast.expr) -> tuple[ast.expr, list[ast.expr]] | None:
    """`a.b[i][j]` as the expression `a.b` and the indices; None for what else may be assigned to."""
    levels: list[ast.expr] = []
    while isinstance(target, ast.Subscript):
        levels.insert(0, target.slice)
        target = target.value
    return (target, levels) if levels and dotted(target) is not None else None


def _has_path(target: ast.expr) -> bool:
    if isinstance(target, (ast.Tuple, ast.List)):
        return any(map(_has_path, target.elts))
    if isinstance(target, ast.Starred):
        return _has_path(target.value)
    return _path(target) is not None


def _loaded(node: ast.expr) -> ast.expr:
    """The expression that reads what `node` assigns to."""
    new = copied(node)
    if isinstance(new, (ast.Name, ast.Attribute)):
        new.ctx = ast.Load()
    return new


def _tuple(names: Sequence[str], at: ast.AST) -> ast.expr:
    return placed(ast.Tuple([load(n, at) for n in names], ast.Load()), at)
