"""Scalar code as a kernel of one thread: a loop over few numbers without a launch for each iteration."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any

from ...ir.types import I64
from ..llvm.accesses import AccessEmitter
from ..llvm.builder import Value
from ..llvm.checks import CheckEmitter
from ..llvm.indices import IndexEmitter
from ..llvm.leaves import KernelLeaves
from ..llvm.scalar_code.statements import StatementEmitter
from ..llvm.scalars import ScalarEmitter
from ..loop_ir.steps import ScalarCode
from ..scalar import DType, Expr
from .emitter import ThreadBuilder
from .target import CudaTarget


class ScalarThreadEmitter(StatementEmitter):
    """Emits one step. A failed check ends it."""

    b: ThreadBuilder
    leaves = True

    def __init__(
        self, step: ScalarCode, target: CudaTarget, definitions: MutableMapping[str, str]
    ) -> None:
        arrays = list(dict.fromkeys([*step.reads, *step.writes]))
        b = ThreadBuilder(target, "i64", arrays, definitions)
        b.written = set(step.writes)
        exprs = ScalarEmitter(b)
        memory = AccessEmitter(IndexEmitter(exprs), b.pointers, dict.fromkeys(arrays, 0))
        exprs.leaves = KernelLeaves(memory, CheckEmitter(exprs, self))
        super().__init__(step, memory)

    def together(self, values: Sequence[Expr]) -> None:
        """Each by itself."""

    def body(self) -> None:
        self.block(self.step.body)

    def poll(self) -> None:
        """Nobody interrupts a kernel."""

    def leave_if(self, bad: Value, words: Sequence[Any], site: Any) -> None:
        yes, no = self.b.later("bad"), self.b.later("good")
        self.b.fork(bad, yes, (), no, (), self.b.unlikely())
        self.b.at(yes)
        with self.b.scope():
            self.b.note(int(site), words)
        self.b.ret()
        self.b.at(no)

    def report(
        self, bad: Value, index: Value, lanes: int, size: int, site: int, dtype: DType = I64
    ) -> None:
        if dtype != I64:
            index = index.sext("i64")
        self.leave_if(bad, (index, size), site)

    def tell(self, bad: Value, lanes: int) -> None:
        """Nothing: what is watched runs on the CPU."""
