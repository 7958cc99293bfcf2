"""The leaves of a kernel's expressions: elements of arrays, indices, what is checked on the way."""

from __future__ import annotations

from ..scalar import Expr
from .accesses import AccessEmitter
from .checks import CheckEmitter
from .text import Operand


class KernelLeaves:
    """Emits the leaves of expressions: loads by the memory, indices by the index emitter, checks."""

    def __init__(self, memory: AccessEmitter, checks: CheckEmitter) -> None:
        self.memory, self.indices, self.checks = memory, memory.indices, checks

    def emit(self, expr: Expr) -> Operand:
        if expr.op == "load":
            return self.memory.load(expr)
        if expr.op == "index":
            return self.indices.emit(expr.attr)
        if expr.op == "bounded":
            return self.checks.bounded(expr)
        if expr.op == "demanded":
            return self.checks.demanded(expr)
        raise TypeError(f"a kernel gives no value to {expr!r}")

    def is_uniform(self, expr: Expr) -> bool:
        if self.indices.b.width == 1 or self.indices.lane is None:
            return True
        if expr.op == "load":
            return self.memory.is_uniform(expr.attr)
        return expr.op in ("bounded", "demanded") or self.indices.is_uniform(expr.attr)
