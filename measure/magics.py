"""`%load_ext jitney`: the magics `%%jit` and `%jt` of IPython and its notebooks.

%%jit                          the cell's functions are compiled ones
%%jit fastmath=True            with options
%jt bench f(x), g(x)           times of calls, beside each other
%jt explain f(x)               as f.explain(x); asm, llvm, trace, lower, cost too
"""

from __future__ import annotations

import ast
from typing import Any

import jitney as jt

from .bench import bench

_USAGE = (
    "write `%jt bench f(x)`, `%jt bench f(x), g(x)`, or `%jt WHAT f(x)` "
    "with WHAT one of explain, asm, llvm, trace, lower, cost"
)


def load(shell: Any) -> None:
    """Give a shell the magics."""
    shell.register_magic_function(lambda line: _jt(shell, line), "line", "jt")
    shell.register_magic_function(lambda line, cell: _jit(shell, line, cell), "cell", "jit")


def _jit(shell: Any, line: str, cell: str) -> None:
    """Run a cell, and compile the functions that it defines."""
    options = _options(shell, line)
    names = [
        node.name
        for node in _parsed(cell).body
        if isinstance(node, ast.FunctionDef) and not node.decorator_list
    ]
    if not names:
        raise _usage_error("%%jit: the cell defines no function without a decorator")
    done = shell.run_cell(cell, store_history=False)
    if not done.success:
        return
    for name in names:
        shell.user_ns[name] = jt.jit(shell.user_ns[name], **options)


def _options(shell: Any, line: str) -> dict[str, Any]:
    call = _parsed(f"jit({line.strip()})").body[0]
    assert isinstance(call, ast.Expr) and isinstance(call.value, ast.Call)
    if call.value.args:
        raise _usage_error("%%jit takes options as keywords: %%jit fastmath=True")
    return {k.arg or "": _value(shell, k.value) for k in call.value.keywords}


def _jt(shell: Any, line: str) -> Any:
    what, _, rest = line.strip().partition(" ")
    calls = _calls(shell, rest)
    if what == "bench":
        (_, _, args, kwargs), *others = calls
        named = {name: _with(function, kwargs) for name, function, _, kwargs in calls}
        if len(named) < len(calls):
            raise _usage_error("%jt bench: each function once")
        return bench(named, *args)
    if len(calls) != 1 or what not in ("explain", "asm", "llvm", "trace", "lower", "cost"):
        raise _usage_error(f"%jt: {_USAGE}")
    _, function, args, kwargs = calls[0]
    if what == "cost":
        return jt.cost(function, *args, **kwargs)
    compiled = function if hasattr(function, "lower") else jt.jit(function)
    if what in ("asm", "llvm"):
        print(getattr(compiled.lower(*args, **kwargs), what)())
        return None
    return getattr(compiled, what)(*args, **kwargs)


def _with(function: Any, kwargs: dict[str, Any]) -> Any:
    """The function, with keywords given."""
    if not kwargs:
        return function
    called = lambda *args: function(*args, **kwargs)  # noqa: E731
    return called


def _calls(shell: Any, text: str) -> list[tuple[str, Any, tuple[Any, ...], dict[str, Any]]]:
    """The calls in a line: names, functions and arguments."""
    parsed = _parsed(text.strip()).body
    if len(parsed) != 1 or not isinstance(parsed[0], ast.Expr):
        raise _usage_error(f"%jt: {_USAGE}")
    value = parsed[0].value
    nodes = value.elts if isinstance(value, ast.Tuple) else [value]
    found = []
    for node in nodes:
        if not isinstance(node, ast.Call):
            raise _usage_error(f"%jt: {ast.unparse(node)} is no call; {_USAGE}")
        # Python itself says what `f(*xs, **options)` is.
        asked = ast.Call(ast.Name("__jitney_call", ast.Load()), node.args, node.keywords)
        names = {"__jitney_call": lambda *args, **kwargs: (args, kwargs)}
        args, kwargs = _value(shell, asked, names)
        found.append((ast.unparse(node.func), _value(shell, node.func), args, kwargs))
    return found


def _value(shell: Any, node: ast.expr, more: dict[str, Any] | None = None) -> Any:
    code = compile(ast.fix_missing_locations(ast.Expression(node)), "<magic>", "eval")
    return eval(code, {**shell.user_ns, **(more or {})})


def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise _usage_error(f"{text!r} is no Python: {error.msg}") from None


def _usage_error(message: str) -> Exception:
    from IPython.core.error import UsageError

    error: Exception = UsageError(message)
    return error
