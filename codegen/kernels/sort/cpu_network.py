"""Sorting as many keys as a few vector registers hold: a bitonic network, as an LLVM function.

Register r, lane l holds key number l * registers + r: the low bits of numbers, in which keys differ that
are compared most often, tell registers apart, and comparing those takes no shuffle.

K. Batcher, Sorting networks and their applications (1968).
"""

from __future__ import annotations

from ...llvm.builder import Value, lanes_of, poison, vector_constant
from ...llvm.modules import Function

MOST_REGISTERS = 8


class _Network:
    """A bitonic network over vectors, which lie as the module says."""

    def __init__(self, f: Function, keys: list[Value]) -> None:
        self.f, self.keys = f, keys
        self.count, self.lanes = len(keys), lanes_of(keys[0].type)
        self.poison = poison(keys[0].type)

    def extremes(self, x: Value, y: Value) -> tuple[Value, Value]:
        low = self.f.intrinsic("umin", x.type, x, y)
        return low, self.f.intrinsic("umax", x.type, x, y)

    def registers(self, mask: int) -> None:
        """Order registers whose numbers differ in the bits of `mask`."""
        for r in range(self.count):
            if r < r ^ mask:
                self.keys[r], self.keys[r ^ mask] = self.extremes(self.keys[r], self.keys[r ^ mask])

    def across(self, bit: int) -> None:
        """Order lanes of each register that differ in `bit`."""
        every = range(self.lanes)
        for r, x in enumerate(self.keys):
            low, high = self.extremes(x, self.f.shuffle(x, self.poison, (i ^ bit for i in every)))
            both = (i + self.lanes if i & bit else i for i in every)
            self.keys[r] = self.f.shuffle(low, high, both)

    def flip(self, bit: int) -> None:
        """Order lanes and registers opposite to each other in runs of 2 * bit lanes."""
        every, mask = range(self.lanes), 2 * bit - 1
        for r in range(self.count // 2):
            x, y = self.keys[r], self.keys[-1 - r]
            low, high = self.extremes(x, self.f.shuffle(y, self.poison, (i ^ mask for i in every)))
            upper = (i + self.lanes if i & bit else i for i in every)
            self.keys[r] = self.f.shuffle(low, high, upper)
            turned = ((i ^ mask) + (self.lanes if i & bit else 0) for i in every)
            self.keys[-1 - r] = self.f.shuffle(low, high, turned)

    def sort(self) -> None:
        size = 2
        while size <= self.count * self.lanes:
            if size <= self.count:
                self.registers(size - 1)
            else:
                self.flip(size // 2 // self.count)
            step = size // 4
            while step:
                if step < self.count:
                    self.registers(step)
                else:
                    self.across(step // self.count)
                step //= 2
            size *= 2

    def transpose(self) -> None:
        """Perfect shuffles until keys are in order of registers, then lanes."""
        half, lanes = self.count // 2, self.lanes
        for _ in range(self.count.bit_length() - 1):
            pairs = list(zip(self.keys[:half], self.keys[half:], strict=True))
            self.keys = [
                self.f.shuffle(x, y, (i // 2 + at + i % 2 * lanes for i in range(lanes)))
                for x, y in pairs
                for at in (0, lanes // 2)
            ]


def registers_for(n: int, lanes: int) -> int:
    """How many vectors a block has that rows of n keys are sorted by: a power of two."""
    registers = 2
    while registers < MOST_REGISTERS and registers * lanes < n:
        registers *= 2
    return registers


def block_function(name: str, bits: int, registers: int) -> Function:
    """`void @name(ptr from, ptr to, i64 n)`: sort n keys, at most so many registers of them."""
    f = Function("void", name, internal=True, source="ptr", to="ptr", n="i64")
    element, lanes, align = f"i{bits}", 512 // bits, bits // 8
    counts = f.splat(f.n if bits == 64 else f.n.trunc(element), lanes)
    ones = vector_constant(element, [-1] * lanes)
    inside, keys, targets = [], [], []
    for first in range(0, registers * lanes, lanes):
        numbers = vector_constant(element, range(first, first + lanes))
        inside.append(f.compare("ult", numbers, counts))
        address = f.offset(f.source, first, element)
        targets.append(f.offset(f.to, first, element))
        keys.append(f.load_masked(address, inside[-1], ones, align))
    net = _Network(f, keys)
    net.sort()
    net.transpose()
    for key, target, mask in zip(net.keys, targets, inside, strict=True):
        f.store_masked(key, target, mask, align)
    f.ret()
    return f
