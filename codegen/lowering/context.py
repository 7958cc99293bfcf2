"""What the lowerings of a graph and of its regions share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ...ir.graph import Op, Value
from ...ir.types import TensorType, dtype_name
from ..limits import limits
from ..loop_ir.kernel import Array
from ..loop_ir.steps import Carry, Program, Sort, TimeTiles
from ..marks import Marks
from ..module import CallbackSite, ErrorSite
from ..schedule.fusion import fuse
from ..schedule.rowblocks import row_blocks
from ..schedule.sort_blocks import U32, count_words
from ..schedule.time_tiles import time_tiles
from ..sizes import sizes


class Context:
    """The machine, and the sites, constants and buffers that all programs of a module count.

    Another kind of target is a subclass; `rules` are lowerings that it has instead of those in
    `lower.LOWERINGS`.
    """

    scan_rows: ClassVar[int] = 8  # rows from which it scans whole ones
    selects_pairs: ClassVar[bool] = False  # whether parts of sorted pairs can be had for less
    tapes_in_code: ClassVar[bool] = True  # whether scalar code can push and pop
    rules: ClassVar[Mapping[str, Callable[[Any, Op], None]]] = {}

    def __init__(self, target: Any, verify: bool = False) -> None:
        self.target = target
        self.verify = verify  # check the steps after each rewriting of them
        self.errors: list[ErrorSite] = []
        self.callbacks: list[CallbackSite] = []
        self.constants: dict[int, Array] = {}
        self.marks = Marks() if target.lines else None
        self.filled: set[Array] = set()  # buffers of carries that start with the initial value

    @property
    def chunk(self) -> int:
        """Elements of one partial result of a reduction, at the least."""
        return limits().chunk

    @property
    def scan_chunk(self) -> int:
        """Elements that a thread scans at a time, if there are 8 such."""
        return limits().scan_chunk

    def arrange(self, items: list[Any], keep: Collection[Array]) -> list[Any]:
        """The steps of a program that is made of `items`, stages and steps; `keep` is read outside."""
        steps = self.rewritten(fuse, items, keep)
        if sizes():
            return steps  # blocks of rows are cut for one length
        return self.rewritten(lambda s, k: row_blocks(s, self.target, k), steps, keep)

    def rewritten(
        self,
        rewrite: Callable[[list[Any], Collection[Array]], list[Any]],
        items: list[Any],
        keep: Collection[Array],
    ) -> list[Any]:
        """What `rewrite` makes of stages and steps; verified, where that is asked for."""
        if not self.verify:
            return rewrite(items, keep)
        from ..verify import check_flow, flow

        before = flow(items)
        steps = rewrite(items, keep)
        check_flow(before, steps, keep)
        return steps

    def tiles(self, carries: Sequence[Carry], body: Program, length: int) -> TimeTiles | None:
        """How a loop of `length` iterations makes several of them at a time, if it should."""
        return time_tiles(carries, body, length, self.target)

    def sort(self, step: Sort) -> tuple[list[Any], Array, int]:
        """The steps of a sort, the array where its result is, and which element of a sorted row is the
        first one there."""
        keys = step.keys
        step.scratch = Array(keys.shape, keys.dtype, name="scratch")
        n = keys.shape[step.axis]
        rows = keys.size // (n * (2 if step.kind == "pairs" else 1))
        step.counts = Array((rows * count_words(n),), U32, name="counts")
        return [step], step.target, 0

    @property
    def packs_indices(self) -> bool:
        """Whether indices of keys of 8 bytes are sorted with parts of the keys, not with all of them."""
        return bool(self.target.compresses)

    def site(self, kind: str, message: str, op: Op, values: Sequence[Value] = ()) -> int:
        """A new error site, whose message shows `values`; returns its number, counted from 1."""
        names = tuple(dtype_name(v.dtype) for v in values)
        self.errors.append(ErrorSite(kind, message, op.loc, names))
        return len(self.errors)

    def assertion(self, op: Op, values: Sequence[Value]) -> int:
        """The site of an `assert` op."""
        return self.site(op.attrs.get("error", "assert"), op.attrs["message"], op, values)

    def callback(self, op: Op) -> int:
        """A new site where native code calls Python; returns its number."""
        types = tuple(v.type for v in op.operands if isinstance(v.type, TensorType))
        return self.python(op.attrs["function"], types, op)

    def python(self, function: Any, operands: tuple[TensorType, ...], op: Op) -> int:
        """A new place where native code calls this `PythonFunction`; returns its number."""
        self.callbacks.append(CallbackSite(function, operands, function.results, op.loc))
        return len(self.callbacks) - 1

    def constant(self, value: np.ndarray[Any, Any]) -> Array:
        array = self.constants.get(id(value))
        if array is None:
            data = np.asarray(value, order="C")
            array = Array(data.shape, data.dtype, "const", data=data, name="const")
            self.constants[id(value)] = array
        return array
