"""Which names a piece of a function binds, reads and changes: what loops carry and branches merge.

Everything here looks at one function's own scope. Names made by the transformation start with
`_jt_`, which no user's name may.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from .nodes import children, walk

VIEWS = frozenset(("T", "mT", "real", "imag", "flat"))  # attributes of arrays that show the array
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_CHANGERS = frozenset(
    (
        "append extend insert pop remove clear update setdefault popitem add discard sort reverse "
        "appendleft extendleft popleft rotate move_to_end subtract intersection_update "
        "difference_update symmetric_difference_update"
    ).split()
)

# Functions, and methods of others, that write into their first argument
_WRITERS = frozenset("shuffle put place putmask copyto fill_diagonal put_along_axis".split())


_BINDING = frozenset(
    (
        *(
            ast.Name,
            ast.AugAssign,
            ast.comprehension,
            ast.ExceptHandler,
            ast.Import,
            ast.ImportFrom,
        ),
        *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
        *(ast.MatchAs, ast.MatchStar, ast.MatchMapping),
    )
)


class Own(list[ast.AST]):
    """The nodes of a scope as `own_nodes` gives them, for whom asks several things of them."""


def own_nodes(nodes: Iterable[ast.AST]) -> Iterable[ast.AST]:
    """The nodes of this scope: nested functions and classes appear, their insides do not."""
    return nodes if isinstance(nodes, Own) else _own_nodes([*nodes])


def _own_nodes(waiting: list[ast.AST]) -> Iterator[ast.AST]:
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, SCOPES):
            waiting += children(node)
        elif not isinstance(node, ast.Lambda):
            waiting += node.decorator_list


def bound(nodes: Sequence[ast.AST], augmented: bool = True) -> set[str]:
    """Names that these nodes bind (or delete). Without `augmented`, `x += 1` does not count."""
    names: set[str] = set()
    skipped: set[int] = set()  # a node comes after the one that it is in
    for node in own_nodes(nodes):
        if node.__class__ not in _BINDING:
            continue
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load) and id(node) not in skipped:
                names.add(node.id)
        elif isinstance(node, ast.AugAssign):
            if not augmented:
                skipped.add(id(node.target))
        elif isinstance(node, ast.comprehension):
            skipped.update(id(n) for n in walk(node.target))
        elif isinstance(
            node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)
        ):
            if node.name:
                names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update(a.asname or a.name.partition(".")[0] for a in node.names)
        elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names.add(node.rest)
    return names


def declared(nodes: Sequence[ast.AST], kind: type[ast.Global] | type[ast.Nonlocal]) -> set[str]:
    """Names under a `global` or `nonlocal` statement of this scope."""
    return {n for node in own_nodes(nodes) if isinstance(node, kind) for n in node.names}


def is_passing(node: ast.AST) -> bool:
    """Whether a function is called where it is made and nowhere else, beside code that reads what it
    reads (see `searches`)."""
    return getattr(node, "passing", False)


def parameters(args: ast.arguments) -> list[str]:
    arguments = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    arguments += [a for a in (args.vararg, args.kwarg) if a is not None]
    return [a.arg for a in arguments]


def reads(nodes: Iterable[ast.AST | None]) -> set[str]:
    """Names that may be read here, nested scopes included. The variables of a comprehension are its
    own."""
    names: set[str] = set()
    waiting = [node for node in nodes if node is not None]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Store):
                names.add(node.id)
            continue
        if isinstance(node, ast.FunctionDef) and is_passing(node):
            continue
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            first = node.generators[0].iter  # evaluated outside
            parts = [part for part in children(node) if part is not node.generators[0]]
            parts += [node.generators[0].target, *node.generators[0].ifs]
            names |= reads(parts) - bound([g.target for g in node.generators])
            waiting.append(first)
            continue
        waiting += children(node)
    return names


def escaping(nodes: Sequence[ast.AST]) -> set[str]:
    """Names that functions defined here may read at any later time."""
    names: set[str] = set()
    for node in own_nodes(nodes):
        if is_passing(node):
            continue
        if isinstance(node, ast.Lambda):
            names |= reads([node.body]) - set(parameters(node.args))
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inner = bound(node.body) - declared(node.body, ast.Nonlocal)
            names |= reads(node.body) - inner - set(parameters(node.args))
        elif isinstance(node, (ast.ClassDef, ast.GeneratorExp)):
            names |= reads([node])
    for node in own_nodes(nodes):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names |= declared(list(walk(node)), ast.Nonlocal)
    return names


def dotted(node: ast.AST) -> str | None:
    """`a.b.c` as text, if the node is that."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else None
    return None


def attributes(nodes: Sequence[ast.AST]) -> set[str]:
    """Attributes that these nodes assign to, as in `self.count = n`."""
    names: set[str | None] = set()
    for node in own_nodes(nodes):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(dotted(node))
    return {name for name in names if name}


def changed(nodes: Sequence[ast.AST]) -> set[str]:
    """Objects that these nodes change inside: `x[i] = v`, `items.append(v)`."""
    names: set[str | None] = set()
    for node in own_nodes(nodes):
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            base: ast.AST = node.value
            while isinstance(base, ast.Subscript):
                base = base.value
            names.add(dotted(base))
            if isinstance(base, ast.Attribute) and base.attr in VIEWS:
                names.add(dotted(base.value))
        elif isinstance(node, ast.AugAssign):
            names.add(dotted(node.target))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            base = node.func.value
            while isinstance(base, ast.Subscript):
                base = base.value
            if node.func.attr in _CHANGERS:
                names.add(dotted(base))
        if isinstance(node, ast.Call) and writes_into_first(node):
            names.add(dotted(node.args[0]))
    return {name for name in names if name}


def writes_into_first(call: ast.Call) -> bool:
    """`np.random.shuffle(x)`, `np.copyto(self.x, y)`: the first argument is a path of names."""
    name = getattr(call.func, "attr", None) or getattr(call.func, "id", None)
    return name in _WRITERS and bool(call.args) and dotted(call.args[0]) is not None
