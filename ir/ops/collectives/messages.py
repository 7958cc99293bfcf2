"""Messages from one process to another, and the barrier: effects without a derivative.

A value that is sent has left the program, and one that came is a number like any other: no derivative
sees where it came from. `ppermute` is the message that has one.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ...batching.structured import refuse_effect
from ...groups import group as find_group
from ...opdef import DerivativeError, GraphError, OpDef, register
from ...types import DTYPE_NAMES, TOKEN, TensorType, Type
from ..families import Array


def _check(token: Type, size: int, peer: int) -> None:
    if token is not TOKEN:
        raise GraphError("the last operand is the order token")
    if not 0 <= peer < size:
        raise GraphError(f"member {peer} of {size}")


def _infer_send(x: Type, token: Type, *, group: str, size: int, to: int, tag: int) -> Type:
    _check(token, size, to)
    return TOKEN


def _infer_receive(
    token: Type, *, group: str, size: int, source: int, tag: int, shape: Any, dtype: str
) -> tuple[Type, ...]:
    _check(token, size, source)
    return TensorType(tuple(shape), DTYPE_NAMES[dtype]), TOKEN


def _infer_barrier(token: Type, *, group: str, size: int) -> Type:
    _check(token, size, 0)
    return TOKEN


def _send(x: Array, token: Any, *, group: str, size: int, to: int, tag: int) -> None:
    find_group(group, size).collective("send", np.ascontiguousarray(x), None, to=to, tag=tag)


def _receive(
    token: Any, *, group: str, size: int, source: int, tag: int, shape: Any, dtype: str
) -> tuple[Array, None]:
    out = np.empty(shape, DTYPE_NAMES[dtype])
    find_group(group, size).collective("receive", None, out, source=source, tag=tag)
    return out, None


def _barrier(token: Any, *, group: str, size: int) -> None:
    find_group(group, size).collective("barrier", None, None)


def _no_derivative(b: Any, op: Any, *rest: Any) -> NoReturn:
    raise DerivativeError(
        "a derivative does not follow what is sent to another process; jt.distributed's ppermute is a "
        "message that has one, and jt.stop_gradient(x) says that x has none"
    )


def _none(b: Any, op: Any, *rest: Any) -> list[None]:
    return [None] * len(op.operands)


register(
    OpDef(
        *("send", "effect", _infer_send, _send, _no_derivative, _no_derivative),
        batch=refuse_effect,
        total=False,
        remembers=True,
        moves=True,
        attrs=("group", "size", "to", "tag"),
        effect=True,
        doc="x goes to the member `to`, who receives it",
    )
)
register(
    OpDef(
        *("receive", "effect", _infer_receive, _receive, _none, _none),
        batch=refuse_effect,
        total=False,
        attrs=("group", "size", "source", "tag", "shape", "dtype"),
        effect=True,
        doc="an array of that shape and dtype, from the member `source`, who sends it",
    )
)
register(
    OpDef(
        *("barrier", "effect", _infer_barrier, _barrier, _none, _none),
        batch=refuse_effect,
        total=False,
        attrs=("group", "size"),
        effect=True,
        doc="nobody goes on before all members are here",
    )
)
