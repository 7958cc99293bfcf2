"""Small matrices that the threads of a warp hold together: how they are read and multiplied."""

from __future__ import annotations

from collections.abc import Sequence

from ...cuda.emitter import ThreadBuilder
from ...llvm.builder import Value
from .cuda_tiles import Atom


def lane_bits(lane: Value, shift: int, mask: int, scale: int = 1) -> Value:
    """Some bits of the lane's number, times `scale`."""
    bits = lane >> shift if shift else lane
    bits = bits & mask if mask < 31 >> shift else bits
    return bits * scale if scale > 1 else bits


class Fragments:
    """The parts of small matrices that one thread has, for the instruction `atom`."""

    def __init__(self, b: ThreadBuilder, atom: Atom) -> None:
        self.b, self.atom = b, atom

    def four(self, address: Value, turned: bool) -> list[Value]:
        """A word each of four matrices of 8 rows of 16 bytes, as the instruction takes them."""
        name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4{'.trans' if turned else ''}.b16.p3"
        four = self.b.nvvm(name, address, fresh=True)
        return [self._converted(word) for word in [self.b.field(four, k) for k in range(4)]]

    def _converted(self, word: Value) -> Value:
        match self.atom.element:
            case "f16":
                return word.to("bitcast", "<2 x half>")
            case "tf32":
                return self.number(word.to("bitcast", "float"))
        return word

    def number(self, value: Value) -> Value:
        """One number of an operand."""
        rounds = self.atom.element == "tf32"
        return self.b.nvvm("llvm.nvvm.f2tf32.rna", value) if rounds else value

    def multiply(
        self, x: Sequence[Value], y: Sequence[Value], sums: Sequence[Value]
    ) -> list[Value]:
        """The sums, and x times y."""
        new = self.b.nvvm(f"llvm.nvvm.{self.atom.name}", *x, *y, *sums, fresh=True)
        return [self.b.field(new, k) for k in range(len(sums))]
