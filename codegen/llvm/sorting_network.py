"""Sorting as many keys as a few vector registers hold: a bitonic network, as an LLVM function.

Register r, lane l holds key number l * registers + r: the low bits of numbers, in which keys differ that
are compared most often, tell registers apart, and comparing those takes no shuffle.
"""

from __future__ import annotations

from collections.abc import Iterator

MOST_REGISTERS = 8


class _Network:
    """Text of a bitonic network over vectors, of so many registers; keys lie as the module says."""

    def __init__(self, lanes: int, bits: int, registers: int) -> None:
        self.count = registers
        self.lines: list[str] = []
        self.lanes = lanes
        self.vector = f"<{lanes} x i{bits}>"
        self.suffix = f"v{lanes}i{bits}"
        self.names = (f"%v{i}" for i in range(1 << 30))
        self.keys: list[str] = []

    def emit(self, text: str) -> str:
        name = next(self.names)
        self.lines.append(f"  {name} = {text}")
        return name

    def shuffle(self, x: str, y: str, order: Iterator[int]) -> str:
        lanes = ", ".join(f"i32 {i}" for i in order)
        v = self.vector
        return self.emit(f"shufflevector {v} {x}, {v} {y}, <{self.lanes} x i32> <{lanes}>")

    def extremes(self, x: str, y: str) -> tuple[str, str]:
        v = self.vector
        low = self.emit(f"call {v} @llvm.umin.{self.suffix}({v} {x}, {v} {y})")
        return low, self.emit(f"call {v} @llvm.umax.{self.suffix}({v} {x}, {v} {y})")

    def registers(self, mask: int) -> None:
        """Order registers whose numbers differ in the bits of `mask`."""
        for r in range(self.count):
            if r < r ^ mask:
                self.keys[r], self.keys[r ^ mask] = self.extremes(self.keys[r], self.keys[r ^ mask])

    def across(self, bit: int) -> None:
        """Order lanes of each register that differ in `bit`."""
        every = range(self.lanes)
        for r, x in enumerate(self.keys):
            low, high = self.extremes(x, self.shuffle(x, "poison", (i ^ bit for i in every)))
            both = (i + self.lanes if i & bit else i for i in every)
            self.keys[r] = self.shuffle(low, high, both)

    def flip(self, bit: int) -> None:
        """Order lanes and registers opposite to each other in runs of 2 * bit lanes."""
        every, mask = range(self.lanes), 2 * bit - 1
        for r in range(self.count // 2):
            x, y = self.keys[r], self.keys[-1 - r]
            low, high = self.extremes(x, self.shuffle(y, "poison", (i ^ mask for i in every)))
            upper = (i + self.lanes if i & bit else i for i in every)
            self.keys[r] = self.shuffle(low, high, upper)
            turned = ((i ^ mask) + (self.lanes if i & bit else 0) for i in every)
            self.keys[-1 - r] = self.shuffle(low, high, turned)

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
                self.shuffle(x, y, (i // 2 + at + i % 2 * lanes for i in range(lanes)))
                for x, y in pairs
                for at in (0, lanes // 2)
            ]


def registers_for(n: int, lanes: int) -> int:
    """How many vectors a block has that rows of n keys are sorted by: a power of two."""
    registers = 2
    while registers < MOST_REGISTERS and registers * lanes < n:
        registers *= 2
    return registers


def block_function(name: str, bits: int, lanes: int, registers: int) -> str:
    """`void @name(ptr from, ptr to, i64 n)`: sort n keys, at most so many registers of them."""
    net = _Network(lanes, bits, registers)
    v, m, suffix = net.vector, f"<{lanes} x i1>", net.suffix
    net.lines += [
        f"define internal void @{name}(ptr %from, ptr %to, i64 %n) nounwind {{",
        "entry:",
        f"  %count = {f'trunc i64 %n to i{bits}' if bits < 64 else 'or i64 %n, 0'}",
        f"  %one = insertelement {v} poison, i{bits} %count, i64 0",
        f"  %counts = shufflevector {v} %one, {v} poison, <{lanes} x i32> zeroinitializer",
    ]
    ones = ", ".join([f"i{bits} -1"] * lanes)
    for r in range(registers):
        numbers = ", ".join(f"i{bits} {r * lanes + i}" for i in range(lanes))
        net.lines += [
            f"  %in{r} = icmp ult {v} <{numbers}>, %counts",
            f"  %from{r} = getelementptr i{bits}, ptr %from, i64 {r * lanes}",
            f"  %to{r} = getelementptr i{bits}, ptr %to, i64 {r * lanes}",
        ]
        at = f"ptr align {bits // 8} %from{r}"
        load = f"@llvm.masked.load.{suffix}.p0({at}, {m} %in{r}, {v} <{ones}>)"
        net.keys.append(net.emit(f"call {v} {load}"))
    net.sort()
    net.transpose()
    for r, x in enumerate(net.keys):
        at = f"ptr align {bits // 8} %to{r}"
        store = f"@llvm.masked.store.{suffix}.p0({v} {x}, {at}, {m} %in{r})"
        net.lines.append(f"  call void {store}")
    return "\n".join([*net.lines, "  ret void", "}", ""])
