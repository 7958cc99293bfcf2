"""Which rows are sorted by digits, how they are cut, and the memory that this takes."""

from __future__ import annotations

import math

from ....ir.record import record
from ...loop_ir.kernel import Array
from ...loop_ir.steps import Sort

DIGIT = 8  # bits
VALUES = 1 << DIGIT
THREADS = 384  # of a block
HELD_BYTES = 64  # of elements in a thread,
HELD = 16  # and elements
TILE_OF_MERGE = 1024
PASS = 1.5  # what moving elements by digits costs, in passes that read and write memory in order
MERGE = 1.3  # and merging
LONGEST = 1 << 30  # counts leave room for two bits


@record
class RadixPlan:
    """`rows` of `n` elements; a pass for each of `shifts`, the positions of the digits.

    The words of `counts`: how often each digit has each value in each row, tickets, and two tables with
    a row of counts for each tile.
    """

    rows: int
    n: int
    itemsize: int
    shifts: tuple[int, ...]
    bits: tuple[int, ...]  # of each digit

    @property
    def items(self) -> int:
        """Elements of a thread."""
        return min(HELD_BYTES // self.itemsize, HELD)

    @property
    def tile(self) -> int:
        return THREADS * self.items

    @property
    def parts(self) -> int:
        """How many tiles a row is cut into."""
        return -(-self.n // self.tile)

    @property
    def tiles(self) -> int:
        return self.rows * self.parts

    @property
    def table(self) -> int:
        """The first word of the first table."""
        return self.rows * len(self.shifts) * VALUES + len(self.shifts)

    @property
    def words(self) -> int:
        return self.table + 2 * self.tiles * VALUES


def digits(low: int, high: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Where digits begin that cover the bits low..high - 1, and how many bits each has."""
    count = -(-(high - low) // DIGIT)
    each = -(-(high - low) // count)
    shifts = tuple(range(low, high, each))
    return shifts, tuple(min(each, high - s) for s in shifts)


def radix_plan(n: int, size: int, itemsize: int, low: int, high: int) -> RadixPlan | None:
    """How rows of n elements, `size` in all, are sorted by their bits low..high - 1, if by digits."""
    if n >= LONGEST or not size:
        return None
    shifts, bits = digits(low, high)
    merges = max(math.log2(n / TILE_OF_MERGE), 0)
    if MERGE * (1 + merges) < PASS * len(shifts) + 0.5 or n <= 4 * TILE_OF_MERGE:
        return None
    return RadixPlan(size // n, n, itemsize, shifts, bits)


def plan_of(step: Sort) -> RadixPlan | None:
    """The plan of a step that has memory for counts."""
    if not step.counts.size:
        return None
    n, size, itemsize = dimensions(step.keys, step.kind)
    return radix_plan(n, size, itemsize, *sorted_bits(step.kind, step.key_bits, step.settled))


def dimensions(keys: Array, kind: str) -> tuple[int, int, int]:
    """The length of rows, how many elements there are, and their size."""
    pair = 2 if kind == "pairs" else 1
    return keys.shape[-pair], keys.size // pair, keys.dtype.itemsize * pair


def sorted_bits(kind: str, key_bits: int, settled: int) -> tuple[int, int]:
    """The bits of an element's last word by which it is sorted."""
    return (32, 32 + key_bits) if kind == "packed" else (settled, key_bits)
