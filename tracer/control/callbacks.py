"""Python functions as ops: `pure_callback`, `io_callback`, `py_func`.

Compiled code calls back into Python, which costs microseconds per call. The function gets arrays
(copies, NumPy scalars for scalars; leaves that are no arrays as they are) and gives a tree of arrays
like `result_like`, of exactly the shapes and dtypes declared there. What it raises reaches the caller
as it was raised. Outside of jit it is just called.

A callback has no derivative by itself: `jt.custom_vjp` or `jt.custom_jvp` around it gives it one, whose
rule may be a callback, too.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.graph import Op
from ...ir.ops.control.callbacks import IO_CALLBACK, PURE_CALLBACK, PythonFunction
from ...ir.types import TensorType, is_supported
from ..core.effects import advance, order_token
from ..core.trace import CURRENT, current_trace, require_trace
from ..core.tracers import Tracer, as_value, wrap
from ..data import pytree
from ..data.accept import refuse
from ..data.callables import Function, check_callable, function_name
from ..data.shapes import ShapeDtype
from ..messages import errors
from ..messages.errors import complain
from ..messages.source import user_line
from .regions import show_tree


def pure_callback(function: Function, result_like: Any, *args: Any, **kwargs: Any) -> Any:
    """`function(*args, **kwargs)`, a Python function of its arguments and of nothing else.

    `result_like` declares the result: a tree of arrays or `jt.ShapeDtype`. The compiler may move the
    call, drop it if nothing needs the result, and merge it with an equal one; under `jt.vmap` it is
    made for each example.

    >>> jt.pure_callback(lambda x: x + 1, np.float64(0), 2.0)
    np.float64(3.0)
    """
    return _callback("pure_callback", function, result_like, args, kwargs)


def io_callback(
    function: Function, result_like: Any, *args: Any, ordered: bool = True, **kwargs: Any
) -> Any:
    """`function(*args, **kwargs)`, called exactly once each time that the program comes here.

    Calls happen in program order, across branches and loops; with `ordered=False` they may trade
    places with others. `result_like` declares the result as for `jt.pure_callback`; None for none.

    >>> jt.io_callback(print, None, "step", 3)
    step 3
    """
    return _callback("io_callback", function, result_like, args, kwargs, ordered=ordered)


def py_func(function: Function, result_like: Any, *args: Any, **kwargs: Any) -> Any:
    """Any Python function as an op: called once, in program order; under `jt.vmap` per example.

    For prototyping: it says so once, as a UserWarning. Each call leaves compiled code, which can
    fuse nothing across it. `jt.pure_callback` gives the compiler more freedom.

    >>> jt.py_func(lambda x: x + 1, np.float64(0), 2.0)
    np.float64(3.0)
    """
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "jt.py_func is for prototyping: each call leaves compiled code for Python. Write the "
            "function with jt functions where speed matters, or use jt.pure_callback or "
            "jt.io_callback, which say what the compiler may do",
            UserWarning,
            stacklevel=2,
        )
    return _callback("py_func", function, result_like, args, kwargs)


_warned = False


def each_time(function: Function, *args: Any) -> None:
    """Call `function(*args)` for what it does whenever the program comes here, in program order; under
    `jt.vmap` for each example."""
    called_for_effect(function, args, {})


def called_for_effect(
    function: Function,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    name: str = "debug_print",
    raises: Exception | None = None,
) -> None:
    """As `each_time`, with keywords. What is called `debug_print` raises nothing that `except` waits
    for, but what it is said to raise always."""
    _callback("debug_print", function, None, args, kwargs, name=name, raises=raises)


class _Flat:
    """A function of trees as one of leaves. Equal to another one if it would do the same."""

    def __init__(
        self,
        function: Function,
        tree: pytree.TreeDef,
        leaves: Sequence[Any],
        scalars: Sequence[bool | None],
        out_tree: pytree.TreeDef,
        types: Sequence[TensorType],
        what: str,
    ) -> None:
        self.function = function
        self.tree = tree
        self.static = [x if s is None else None for x, s in zip(leaves, scalars, strict=True)]
        self.scalars = tuple(scalars)  # None: a static leaf
        self.out_tree = out_tree
        self.types = tuple(types)
        self.what = what

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Flat):
            return NotImplemented
        same = (self.tree, self.scalars, self.out_tree, self.types) == (
            other.tree, other.scalars, other.out_tree, other.types
        )  # fmt: skip
        return (
            same
            and self.function is other.function
            and all(a is b for a, b in zip(self.static, other.static, strict=True))
        )

    def __hash__(self) -> int:
        return hash((id(self.function), self.scalars, self.types))

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        remaining = iter(arrays)
        leaves = []
        for static, scalar in zip(self.static, self.scalars, strict=True):
            if scalar is None:
                leaves.append(static)
            else:
                array = next(remaining)
                leaves.append(array[()] if scalar else array)
        args, kwargs = pytree.unflatten(self.tree, leaves)
        reset = CURRENT.set(None)  # it runs; nothing of it is traced
        try:
            result = self.function(*args, **kwargs)
        finally:
            CURRENT.reset(reset)
        return self._checked(result)

    def _checked(self, result: Any) -> tuple[Any, ...]:
        name = function_name(self.function)
        leaves, tree = pytree.flatten(result)
        if tree != self.out_tree:
            raise TypeError(
                f"{name}, called by jt.{self.what}, returned {show_tree(tree)}; result_like declares "
                f"{show_tree(self.out_tree)}"
            )
        fitting = []
        for leaf, type in zip(leaves, self.types, strict=True):
            if isinstance(leaf, (bool, int, float, complex)) and not type.shape:
                leaf = type.dtype.type(leaf)
            array = np.asarray(leaf)
            if array.shape != type.shape or array.dtype != type.dtype:
                raise TypeError(
                    f"{name}, called by jt.{self.what}, returned an array of dtype {array.dtype} and "
                    f"shape {array.shape}; result_like declares dtype {type.dtype} and shape "
                    f"{type.shape}"
                )
            fitting.append(array)
        return tuple(fitting)


def _callback(
    what: str,
    function: Function,
    result_like: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    ordered: bool = True,
    name: str | None = None,
    raises: Exception | None = None,
) -> Any:
    check_callable(function, what)
    out_leaves, out_tree = pytree.flatten(result_like)
    types = [_declared(leaf, what) for leaf in out_leaves]
    leaves, tree = pytree.flatten((args, kwargs))
    scalars = [_is_scalar(leaf) for leaf in leaves]
    trace = current_trace()
    if trace is not None and trace.own is not None:
        function = trace.own(function)
        pairs = zip(leaves, scalars, strict=True)
        leaves = [trace.own(x) if scalar is None else x for x, scalar in pairs]
    flat = _Flat(function, tree, leaves, scalars, out_tree, types, what)
    arrays = [x for x, s in zip(leaves, scalars, strict=True) if s is not None]
    if trace is None:
        results = flat(*(np.array(x) for x in arrays))
        return pytree.unflatten(out_tree, [x.copy()[()] for x in results])
    called, each = name or function_name(function), what in ("py_func", "debug_print")
    handle = PythonFunction(flat, tuple(types), called, each, raises)
    op = _append(what, handle, [as_value(x) for x in arrays], ordered)
    return pytree.unflatten(out_tree, [wrap(v) for v in op.results[: len(types)]])


def _append(what: str, handle: PythonFunction, operands: list[Any], ordered: bool) -> Op:
    builder = require_trace().builder
    with builder.at(user_line(3)):
        if what == "pure_callback":
            return builder.append(PURE_CALLBACK, operands, {"function": handle})
        token = order_token() if ordered else builder.op("create_token")
        op = builder.append(IO_CALLBACK, [*operands, token], {"function": handle})
        if ordered:
            advance(op.results)
        return op


def _declared(leaf: Any, what: str) -> TensorType:
    if not isinstance(leaf, ShapeDtype):
        if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")) and not isinstance(
            leaf, (bool, int, float, complex)
        ):
            complain(
                errors.TransformError,
                f"result_like of {what} declares results by arrays or jt.ShapeDtype, and got "
                f"{errors.describe(leaf)}",
                "write jt.ShapeDtype(shape, dtype) for each result.",
            )
        leaf = ShapeDtype.like(leaf)
    return leaf.type


def _is_scalar(leaf: Any) -> bool | None:
    """Whether the function sees a NumPy scalar; None for a leaf that is no array."""
    if isinstance(leaf, np.ndarray):
        if not is_supported(leaf.dtype):
            refuse(leaf, f"dtype {leaf.dtype} in a callback")
        return False
    if isinstance(leaf, np.generic):
        return True
    return leaf.scalar if isinstance(leaf, Tracer) else None
