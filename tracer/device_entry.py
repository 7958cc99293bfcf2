"""A specialisation that runs on a GPU: arguments are brought there, results stay there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..runtime.cuda.array import DeviceArray
from . import pytree
from .dispatch import Call, to_array
from .entry import Entry, Refused
from .outside import Outside
from .tracing import Result, Traced

if TYPE_CHECKING:
    from ..runtime.cuda.client import Client, Program


class DeviceEntry(Entry):
    """As `Entry`. Every array that comes out is a DeviceArray, numbers too: nobody waits for them.

    NumPy arrays that the function assigns to get their new elements when the call returns.
    """

    on_device = True

    def __init__(
        self,
        call: Call,
        traced: Traced,
        outside: Outside,
        program: Program,
        reason: str,
        seconds: dict[str, float],
    ) -> None:
        super().__init__(call, traced, outside, program, reason, seconds)
        self.program = program
        self.attempts = 1 << 30  # no call program: what is launched is native already
        self._direct = False
        self.finish = device_finisher(traced)

    def __call__(self, leaves: Sequence[Any], hidden: tuple[Any, ...]) -> Any:
        self._hits += 1
        if not self.all_explicit:
            leaves = [leaves[i] for i in self.explicit]
        given = [*leaves, *hidden]
        if self.written:
            self.check_overlap([to_array(leaf) for leaf in given])
        arrays = place(self.program.client, given)
        outputs = self.program.run(arrays)
        if self.mutated:
            finals = outputs[len(outputs) - len(self.mutated) :]
            for index, value in zip(self.mutated, finals, strict=True):
                given[index][...] = np.asarray(value)
        return self.finish(outputs, arrays)


def place(client: Client, leaves: Sequence[Any]) -> list[DeviceArray]:
    """Arrays and numbers as arrays in the client's memory."""
    found = []
    for leaf in leaves:
        if type(leaf) is not DeviceArray:
            try:
                leaf = client.put(to_array(leaf))
            except OverflowError:
                raise Refused from None  # a Python int beyond int64: the dispatcher says so
        elif leaf.client is not client:
            leaf = client.put(np.asarray(leaf))
        found.append(leaf)
    return found


def device_finisher(traced: Traced) -> Callable[[list[DeviceArray], Sequence[DeviceArray]], Any]:
    """A function from the outputs and the inputs of a run to what the user's function returns."""
    results, tree = traced.results, traced.out_tree

    def finish(outputs: list[DeviceArray], given: Sequence[DeviceArray]) -> Any:
        return pytree.unflatten(tree, [_present(r, outputs, given) for r in results])

    return finish


def _present(result: Result, outputs: Sequence[DeviceArray], given: Sequence[DeviceArray]) -> Any:
    if result.output is not None:
        return outputs[result.output]
    if result.argument is not None:
        return given[result.argument]  # views are traced: arrays on a device have none
    return result.static
