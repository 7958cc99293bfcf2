"""Effects. An effectful op takes the order token as its last operand and gives a new one last.

`create_token` starts the thread; an `assert` whose token is read by nothing still happens, because
passes keep every op with an effect.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...batching.structured import batch_assert
from ...cost import Cost
from ...opdef import GraphError, OpDef, register
from ...types import TOKEN, TensorType, TokenType, Type
from ..families import Array, check_dtype

ERRORS: dict[str, type[Exception]] = {
    kind.__name__: kind
    for kind in (
        *(ArithmeticError, AssertionError, AttributeError, BufferError, EOFError, Exception),
        FloatingPointError,
        *(IndexError, KeyError, LookupError, MemoryError, NotImplementedError, OSError),
        *(
            OverflowError,
            RecursionError,
            RuntimeError,
            StopIteration,
            TimeoutError,
            TypeError,
            UnboundLocalError,
            ValueError,
        ),
        *(UserWarning, ZeroDivisionError, np.linalg.LinAlgError),
    )
}


def _infer_assert(
    pred: TensorType, *rest: Type, message: str, error: str = "AssertionError"
) -> TokenType:
    check_dtype(pred, "bool", "the condition")
    if pred.shape != ():
        raise GraphError(f"the condition has type {pred}; it must be 0-d")
    if not rest or rest[-1] != TOKEN:
        raise GraphError("the last operand must be a token")
    if TOKEN in rest[:-1]:
        raise GraphError("takes one token only")
    if error not in ERRORS:
        raise GraphError(f"no exception {error!r}; there are {', '.join(ERRORS)}")
    return TOKEN


def _assert(pred: Array, *rest: Any, message: str, error: str = "AssertionError") -> None:
    if not pred:
        values = [v.item() if v.ndim == 0 else v for v in map(np.asarray, rest[:-1])]
        if error == "KeyError" and not message and values:
            raise KeyError(values[0] if len(values) == 1 else tuple(values))
        said = message.format(*values) if values else message
        raise ERRORS[error](said) if said else ERRORS[error]()


register(
    OpDef(
        "create_token",
        "source",
        lambda: TOKEN,
        lambda: None,
        cost=Cost.FREE,
        doc="the start of a thread of effects",
    )
)
register(
    OpDef(
        "assert",
        "effect",
        _infer_assert,
        _assert,
        lambda b, op, tangents: [None],
        lambda b, op, cotangents, wanted: [None] * len(op.operands),
        total=False,
        batch=batch_assert,
        attrs=("message", "error"),
        effect=True,
        doc="raises AssertionError, or the exception of ERRORS that `error` names, unless pred holds. "
        "With values, `message` is a format string for them; without, it stands as it is. A KeyError "
        "without a message is one of these values, or of a tuple of them",
    )
)
