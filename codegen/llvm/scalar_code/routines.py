"""Functions of numbers that scalar code calls, and that may call themselves.

    { double, i1 } @name(i64 depth, i64 floor, i64 %given0, ..., ptr %p0, ..., ptr %status, ptr %clock)

They give their results, and whether a check has failed: then who called leaves, too. Each call says
how deep it is, and where the stack must not reach; where the depth is a multiple of `LOOKS`, it looks
for signals. Arrays of its own are on the stack.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...loop_ir.scalar_code import Routine
from ...loop_ir.steps import ScalarCode
from ...target import Target
from ..builder import Value, poison, symbol
from ..functions import FunctionTable
from ..instructions import SCALAR_TYPES
from ..text import TextEmitter
from .statements import ScalarCodeEmitter, result_types

LOOKS = 16


class RoutineEmitter(ScalarCodeEmitter):
    """Emits one routine of a step."""

    def __init__(
        self,
        routine: Routine,
        step: ScalarCode,
        target: Target,
        definitions: dict[str, str],
        functions: FunctionTable,
    ) -> None:
        self.routine = routine
        super().__init__(step, target, definitions, functions)
        self.clock = self._given_clock
        for variable, value in zip(routine.params, self._given, strict=True):
            self.exprs.bind(variable, value, uniform=True)

    def take(self, b: TextEmitter) -> list[Value]:
        types = [SCALAR_TYPES[e.dtype] for e in self.routine.params]
        params = {f"given{k}": t for k, t in enumerate(types)}
        self.common = [*self.common, *self.routine.around]
        pointers = dict.fromkeys([*(f"p{k}" for k in range(len(self.common))), "status"], "ptr")
        taken = b.takes(depth="i64", floor="i64", **params, **pointers, poll_clock="ptr")
        self._depth, self._floor, *rest, self._given_clock = taken
        self._given, addresses = rest[: len(types)], rest[len(types) :]
        self.arrays = [*self.common, *self.routine.locals]
        with b.at_start():
            self._here = b.word_at(0, "here").to("ptrtoint", "i64")
            own = [
                b.alloca("i8", max(a.nbytes, 1), 64, f"own{k}")
                for k, a in enumerate(self.routine.locals)
            ]
        return [*addresses[:-1], *own, addresses[-1]]

    def function(self) -> str:
        """The function's text, from the word `define` on."""
        deeper = self._depth.ugt(self.routine.depth)
        self.leave_if(deeper, (), self.routine.site)
        own = sum(a.nbytes for a in self.routine.locals)
        self.leave_if((self._here - own).ult(self._floor), (), self.routine.full)
        due, on = self.b.later("due"), self.b.later("on")
        self.b.fork((self._depth & (LOOKS - 1)).eq(0), due, (), on)
        self.b.at(due)
        with self.b.scope():
            self.poll()
            self.b.jump(on)
        self.b.at(on)
        self.block(self.routine.body)
        results = [self.exprs.operand(e).value for e in self.routine.outs]
        self.b.ret(self._returned(results, False))
        kind = result_types(self.routine)
        return f"define internal {kind} {symbol(self.routine.name).text}{self.b.unnamed()}"

    def leave(self) -> None:
        nothing = [poison(SCALAR_TYPES[e.dtype]) for e in self.routine.outs]
        self.b.ret(self._returned(nothing, True))

    def depth(self) -> list[Value]:
        return [self.b.stepped(self._depth, 1), self._floor]

    def _returned(self, values: Sequence[Value], failed: bool) -> Value:
        return self.b.several([*values, self.b.literal("i1", int(failed))])
