"""What checked code tells of its arrays: each pointer is made to point at one, by name.

Only the sanitizer's code has this. Every array of the program is declared when the entry begins; the
pointers that kernels get are those that the declarations give. See `runtime.sanitizer`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..llvm.builder import Value, constant
from ..loop_ir.kernel import Array
from ..loop_ir.steps import Program, Tiled, steps_within
from ..target import Target

if TYPE_CHECKING:
    from .entry import EntryEmitter

# Flags of an array: it has contents to begin with; must be written when the entry returns; may be read
# in vain where nobody wrote it.
PRESET, FILLED, LOOSE = 1, 2, 8
_ARRAY, _PART, FAILED = (f"{Target.SANITIZER}_{name}" for name in ("array", "part", "failed"))


class Provenance:
    """The arrays of one program. `texts` says what each is, by number."""

    def __init__(self, e: EntryEmitter, arena_bytes: int) -> None:
        self.e = e
        self.texts = ["the arena"]
        self.places: dict[str | Array, Value] = {}
        self.loose: set[Array] = set()
        if arena_bytes:
            self.arena = self._declared("arena", 0, arena_bytes, 0, 0)
        for array in e.outputs:  # all of them: one that nothing writes is a fault
            self.pointer(array)

    def expect(self, program: Program) -> None:
        """Know what the steps of a program may do, before the first of them is emitted."""
        self.loose.update(a for s in steps_within(program) if isinstance(s, Tiled) for a in s.vain)

    def pointer(self, array: Array) -> Value:
        """Where an array is that is no constant and no slot."""
        address = self.places.get(array)
        if address is None:
            address = self._temporary(array) if array.kind == "temp" else self._argument(array)
            self.places[array] = address
        return address

    def _temporary(self, array: Array) -> Value:
        number = len(self.texts)
        self.texts.append(f"temporary {number}, {_type(array)}")
        flags = LOOSE if array in self.loose else 0
        f = self.e.f
        with f.at_start():
            at = f.offset(self.arena, constant("i64", array.offset))
            return f.call("ptr", _PART, at, array.nbytes, number, flags)

    def _argument(self, array: Array) -> Value:
        address = self.e.argument(array)
        assert address is not None
        raw, offset = address
        whole = self.places.get(raw)
        if whole is None:
            whole = self.places[raw] = self._buffer(raw)
        with self.e.f.at_start():
            return self.e.f.offset(whole, offset)

    def _buffer(self, raw: str) -> Value:
        """Memory of an input or output, which the parts of complex numbers share."""
        arrays = [a for a in (*self.e.inputs, *self.e.outputs) if self.e.argument(a)[0] == raw]  # type: ignore[index]
        spans = [_span(a) for a in arrays]
        low, high = min(s[0] for s in spans), max(s[1] for s in spans)
        first = arrays[0]
        number = len(self.texts)
        self.texts.append(f"{first.kind} {first.position}, {_type(first)}")
        flags = PRESET if first.kind == "input" else FILLED
        return self._declared(raw, low, high - low, number, flags)

    def _declared(self, raw: str, low: int, nbytes: int, number: int, flags: int) -> Value:
        f = self.e.f
        with f.at_start():
            return f.call("ptr", _ARRAY, self.e.given(raw), low, nbytes, number, flags)


def _span(array: Array) -> tuple[int, int]:
    """The bytes, from where its buffer begins, that an array lies in."""
    size = array.dtype.itemsize
    if not array.size:
        return 0, 0
    reach = [(n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)]
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
    return (array.start + low) * size, (array.start + high + 1) * size


def _type(array: Array) -> str:
    return f"{array.dtype}{list(array.shape)}"
