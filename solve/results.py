"""What solvers give: SciPy's results, with attributes, which compiled functions take and return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

import jitney as jt


class OptimizeResult:
    """Named results, as SciPy's: `res.x`, `res["x"]`, `res.success`, `res.message`.

    In compiled code the numbers are traced; `message` is told of the status, so it is there once the
    function has returned.

    >>> res = jt.solve.minimize(lambda x: (x[0] - 2) ** 2, [0.0])
    >>> bool(res.success), res.message
    (True, 'Optimization terminated successfully.')
    """

    def __init__(self, messages: Mapping[int, str], **fields: Any) -> None:
        self._messages = tuple(messages.items())
        self.__dict__.update(fields)

    @property
    def message(self) -> str:
        status = self.__dict__["status"]
        if jt.is_traced(status) or np.ndim(status):
            return "(told by the status when the function has returned)"
        return dict(self._messages).get(int(status), "")

    if TYPE_CHECKING:  # which fields there are depends on the function

        def __getattr__(self, name: str) -> Any: ...

    def keys(self) -> list[str]:
        return [name for name in self.__dict__ if not name.startswith("_")]

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __getitem__(self, name: str) -> Any:
        if name in self.__dict__ or name == "message":
            return getattr(self, name)
        raise KeyError(name)

    def __repr__(self) -> str:
        names = ["message", *self.keys()]
        width = max(map(len, names))
        return "\n".join(f"{n:>{width}}: {self[n]}" for n in names)


def _taken_apart(result: OptimizeResult) -> tuple[list[Any], Any]:
    names = result.keys()
    return [result[name] for name in names], (tuple(names), result._messages)


def _put_together(kind: Any, parts: Any) -> OptimizeResult:
    names, messages = kind
    return OptimizeResult(dict(messages), **dict(zip(names, parts, strict=True)))


jt.register_pytree(OptimizeResult, _taken_apart, _put_together)
