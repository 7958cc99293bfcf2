"""How a twin begins: where nothing traced is about, it calls the function that it was made of.

def f(a, *b):               def f(a, *b):
    ...               ->        _jt_plain = _jt_.as_python(_jt_original, (a, *b))
                                if _jt_plain: return _jt_plain(a, *b)
                                ...
"""

from __future__ import annotations

import ast

from .names import COMPREHENSIONS, own_nodes
from .nodes import ORIGINAL, assign, helper, load, located

_PLAIN = "_jt_plain"
_LONG = (ast.While, ast.For, ast.Call, *COMPREHENSIONS)


def is_long(node: ast.FunctionDef) -> bool:
    """Whether it costs something to run the function as it is transformed."""
    return any(isinstance(n, _LONG) for n in own_nodes(node.body))


def untraced(node: ast.FunctionDef) -> list[ast.stmt]:
    """The statements that come first in a twin."""
    at = node.body[0]
    args = node.args
    given: list[ast.expr] = [load(a.arg, at) for a in (*args.posonlyargs, *args.args)]
    keywords = [ast.keyword(a.arg, load(a.arg, at)) for a in args.kwonlyargs]
    values = [*given, *(k.value for k in keywords)]
    if args.vararg is not None:
        given.append(ast.Starred(load(args.vararg.arg, at), ast.Load()))
        values.append(load(args.vararg.arg, at))
    if args.kwarg is not None:
        keywords.append(ast.keyword(None, load(args.kwarg.arg, at)))
        values.append(load(args.kwarg.arg, at))
    asked = helper("as_python", [load(ORIGINAL, at), ast.Tuple(values, ast.Load())], at)
    call = ast.Return(ast.Call(load(_PLAIN, at), given, keywords))
    return [
        located(statement, at)
        for statement in (assign(_PLAIN, asked, at), ast.If(load(_PLAIN, at), [call], []))
    ]
