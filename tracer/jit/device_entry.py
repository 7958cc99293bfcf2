"""A specialisation that runs on a GPU: arguments are brought there, results stay there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...runtime.cuda.array import DONATED, DeviceArray
from ..captures.captured_variables import CapturedVariables
from ..core.finish import device_effects_finisher, device_finisher
from ..core.traced import Traced
from ..data.accept import to_array
from ..devices.devices import put_all
from ..messages import errors
from ..messages.errors import complain
from .dispatch import Call
from .entry import NEVER, STALE, Entry, Refused

if TYPE_CHECKING:
    from ...runtime.cuda.client import LoadedProgram


class DeviceEntry(Entry):
    """As `Entry`. Every array that comes out is a DeviceArray, numbers too: nobody waits for them.

    NumPy arrays that the function assigns to get their new elements when the call returns. DeviceArrays
    that are donated are gone after the call.
    """

    on_device = True

    def __init__(
        self,
        call: Call,
        traced: Traced,
        captured: CapturedVariables,
        program: LoadedProgram,
        reason: str,
        seconds: dict[str, float],
        donated: frozenset[int] = frozenset(),
    ) -> None:
        super().__init__(call, traced, captured, program, reason, seconds, donated)
        self.program = program
        self.attempts = NEVER  # no call program: what is launched is native already
        plain = self.all_explicit and self.effects is None
        self._direct = plain and not (self.written or donated)

    def _finisher(self, traced: Traced) -> Callable[[list[Any], Sequence[Any]], Any]:
        return device_finisher(traced) if self.effects is None else device_effects_finisher(traced)

    def fast(self, leaves: Sequence[Any]) -> Any:
        hidden = self.check()
        if hidden is None:
            return STALE
        if not self._direct:
            return self(leaves, hidden)
        self._hits += 1
        arrays = self._on_device([*leaves, *hidden] if hidden else leaves)
        return self.finish(self._run(arrays), arrays)

    def _compute(self, leaves: Sequence[Any], hidden: tuple[Any, ...]) -> Any:
        self._hits += 1
        if not self.all_explicit:
            leaves = [leaves[i] for i in self.explicit]
        inputs = [*leaves, *hidden]
        if self.written:
            self.check_overlap([to_array(leaf) for leaf in inputs])
        arrays = self._on_device(inputs)
        given_up = [k for k in self.donated if type(inputs[k]) is DeviceArray]
        if given_up:
            arrays = self._apart(arrays, given_up)
        outputs = self._run(arrays)
        for k in given_up:
            if arrays[k] is inputs[k]:
                inputs[k].buffer = DONATED
        if self.mutated:
            finals = outputs[len(outputs) - len(self.mutated) :]
            arrays = list(arrays)
            for index, value in zip(self.mutated, finals, strict=True):
                inputs[index][...] = np.asarray(value)
                arrays[index] = value  # what a function returns that returns the argument
        return self.finish(outputs, arrays)

    def _on_device(self, leaves: Sequence[Any]) -> Sequence[DeviceArray]:
        try:
            return put_all(self.program.client, leaves)
        except OverflowError:
            raise Refused from None  # a Python int beyond int64: the dispatcher says so

    def _apart(
        self, arrays: Sequence[DeviceArray], donated: Sequence[int]
    ) -> Sequence[DeviceArray]:
        """The arrays, with copies of the donated ones that are given in another place too."""
        separate = list(arrays)
        for k in donated:
            mine = arrays[k].buffer
            if any(other.buffer is mine for j, other in enumerate(separate) if j != k):
                separate[k] = self.program.client.copy(arrays[k])
        return separate


def refuse_watching(name: str, kinds: Collection[str]) -> None:
    """Raise UnsupportedFunctionError if a function is to be watched (`jit(check=...)`)."""
    if kinds:
        complain(
            errors.UnsupportedFunctionError,
            f"{name} is to be watched for {', '.join(sorted(kinds))}, which is done on the CPU only",
            "run it on the CPU (with jt.device('cpu')) while you look for the fault.",
        )
