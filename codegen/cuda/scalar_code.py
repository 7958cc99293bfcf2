"""Scalar code as a kernel of one thread: a loop over few numbers without a launch for each trip."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any

from ...ir.types import I64
from ..llvm.builder import Value
from ..llvm.scalar_code import StatementEmitter
from ..loop_ir.steps import ScalarCode
from ..scalar import DType
from .emitter import ThreadEmitter
from .target import CudaTarget


class ScalarThreadEmitter(StatementEmitter, ThreadEmitter):
    """Emits one step. A failed check ends it."""

    def __init__(
        self, step: ScalarCode, target: CudaTarget, definitions: MutableMapping[str, str]
    ) -> None:
        arrays = list(dict.fromkeys([*step.reads, *step.writes]))
        super().__init__(target, "i64", arrays, dict.fromkeys(arrays, 0), definitions)
        self.step = step
        self.written = set(step.writes)

    def body(self) -> None:
        self._block(self.step.body)

    def poll(self) -> None:
        """Nobody interrupts a kernel."""

    def _leave_if(self, bad: Any, words: Sequence[Any], site: Any) -> None:
        yes, no = self.later("bad"), self.later("good")
        self.fork(bad, yes, (), no, (), self._seldom())
        self.at(yes)
        with self.scope():
            self.note(int(site), words)
        self.ret()
        self.at(no)

    def _report(
        self, bad: Value, index: Value, lanes: int, size: int, site: int, dtype: DType = I64
    ) -> None:
        if dtype != I64:
            index = index.sext("i64")
        self._leave_if(bad, (index, size), site)
