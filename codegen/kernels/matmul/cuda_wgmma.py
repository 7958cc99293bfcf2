"""Products of matrices by a warpgroup of sm_90a: the texts of its inline assembly, and its descriptors.

LLVM has no intrinsic for `wgmma.mma_async`, so it is inline assembly, and kernels may contain these
texts and no others. Accumulators are scalars that the instructions take and give in the same registers:

    new = e(multiply(form), a descriptor, b descriptor, *old)       from now on `new` are under way
    sums = e(wait(1, len(new)), *new)                               until they went through a wait

64 rows are shared among 4 warps, 16 to each: thread 4 g + t of a warp holds rows g and g + 8, columns
8 j + 2 t and the next one, in accumulators 4 j, 4 j + 1 (row g) and 4 j + 2, 4 j + 3 (row g + 8).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ....ir.record import record

ROWS = 64  # of a, in one instruction
LINE = 128  # bytes of neighbours in shared memory: what the swizzle is for
ATOM = 8 * LINE  # bytes in which the swizzle repeats

_ACCUMULATORS = r"\{\$0(?:, \$\d+)*\}"
_MULTIPLY = re.compile(
    r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k(8|16)\.f32\.(bf16|f16|tf32)\.\3 "
    rf"{_ACCUMULATORS}, \$\d+, \$\d+, 1, 1, 1(?:, ([01]), ([01]))?;"
)
_WAIT = re.compile(r"wgmma\.wait_group\.sync\.aligned ([0-7]);")


@record
class Form:
    """c[64, n] += a[64, k] @ b[k, n] of `element`s, `k` filling 32 bytes. An operand that is `turned`
    lies with its rows (of a) or columns (of b) side by side, the others along k."""

    n: int
    element: str
    a_turned: bool = False
    b_turned: bool = False

    def __post_init__(self) -> None:
        if self.n % 8 or not 8 <= self.n <= 256:
            raise ValueError(f"wgmma has 8, 16, ... 256 columns, not {self.n}")
        if self.itemsize == 4 and (self.a_turned or self.b_turned):
            raise ValueError("wgmma takes 32-bit operands along k only")

    @property
    def itemsize(self) -> int:
        return 4 if self.element == "tf32" else 2

    @property
    def k(self) -> int:
        return 32 // self.itemsize

    @property
    def accumulators(self) -> int:
        """Of a thread."""
        return self.n // 2


class Assembly(NamedTuple):
    """A text of assembly and how its operands are held. The `accumulators` come last."""

    text: str
    constraints: str
    accumulators: int

    @property
    def result(self) -> str:
        return f"{{ {', '.join(['float'] * self.accumulators)} }}"


def _constraints(count: int, others: int = 0) -> str:
    tied = map(str, range(count))
    return ",".join([*["=f"] * count, *["l"] * others, *tied])


def multiply(form: Form) -> Assembly:
    """The product of what two descriptors name, added to the accumulators, some time later."""
    n, count = form.n, form.accumulators
    held = ", ".join(f"${i}" for i in range(count))
    turns = f", {form.a_turned:d}, {form.b_turned:d}" if form.itemsize == 2 else ""
    text = (
        f"wgmma.mma_async.sync.aligned.m64n{n}k{form.k}.f32.{form.element}.{form.element} "
        f"{{{held}}}, ${count}, ${count + 1}, 1, 1, 1{turns};"
    )
    return Assembly(text, _constraints(count, 2), count)


def wait(groups: int, accumulators: int) -> Assembly:
    """Until only the last `groups` of the committed groups are under way. Accumulators that go through
    it cannot be read before it."""
    text = f"wgmma.wait_group.sync.aligned {groups};"
    return Assembly(text, _constraints(accumulators), accumulators)


def parse(text: str) -> Form | int | None:
    """What a text of assembly is: a product, a wait for all groups but so many, or nothing known."""
    if match := _WAIT.fullmatch(text):
        return int(match[1])
    if match := _MULTIPLY.fullmatch(text):
        turns = (match[4] == "1", match[5] == "1")
        try:
            form = Form(int(match[1]), match[3], *turns)
        except ValueError:
            return None
        return form if multiply(form).text == text else None
    return None


# A descriptor: bits 0-13 the address, 16-29 the leading and 32-45 the stride offset, all in units of 16
# bytes; 62-63 the swizzle (1: of lines of 128 bytes). Along k, lines of rows lie one after the other, 8
# of them to an atom, atoms the stride apart. Else lines are along the rows, 8 of k to an atom, atoms of
# the next 8 of k the stride apart, of the next 64 rows the leading offset apart.

SWIZZLED = 1 << 62


def descriptor(stride: int = ATOM, leading: int = 16) -> int:
    """A descriptor but for its address. Along k, `leading` is not looked at."""
    return SWIZZLED | (stride >> 4) << 32 | (leading >> 4) << 16
