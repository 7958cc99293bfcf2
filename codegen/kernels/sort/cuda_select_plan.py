"""The step that finds a part of what rows would be if they were sorted, and the memory that it takes."""

from __future__ import annotations

from ....ir.record import record
from ...loop_ir.kernel import Array
from ...loop_ir.steps import Tiled
from .cuda_radix_plan import HELD, HELD_BYTES, dimensions, sorted_bits

DIGIT = 11  # bits
BINS = 1 << DIGIT
THREADS = 256  # of a block
STATE = 4  # words: a prefix of 64 bits, a rank, a count
KINDS = 4  # words of a tile in the table


@record(frozen=False, eq=False)
class Select(Tiled):
    """Fill `target` with the elements of each row of `keys` that have the ranks start..stop - 1 when it
    is sorted, in no order but that equal ones stay in theirs. See `Sort` for the kinds.

    The elements with the ranks start and stop - 1 are found digit by digit, from the first one on; what
    lies between them is taken in one pass. An end of the part that is an end of the row needs no search.
    """

    keys: Array
    target: Array
    counts: Array
    kind: str
    key_bits: int
    start: int
    stop: int

    @property
    def reads(self) -> list[Array]:
        return [self.keys]

    @property
    def writes(self) -> list[Array]:
        return [self.target, self.counts]

    @property
    def n(self) -> int:
        return dimensions(self.keys, self.kind)[0]

    @property
    def rows(self) -> int:
        n, size, _ = dimensions(self.keys, self.kind)
        return size // n

    @property
    def ends(self) -> tuple[int, ...]:
        """The ranks that are searched for."""
        low = (self.start,) if self.start else ()
        return (*low, self.stop - 1) if self.stop < self.n else low

    @property
    def cuts(self) -> tuple[int, ...]:
        """The bits at which digits begin and end, from the highest on."""
        low, high = sorted_bits(self.kind, self.key_bits, 0)
        count = -(-(high - low) // DIGIT)
        each = -(-(high - low) // count)
        return tuple(max(high - k * each, low) for k in range(count + 1))

    @property
    def items(self) -> int:
        """Elements of a thread that takes what the search left."""
        itemsize = dimensions(self.keys, self.kind)[2]
        return min(HELD_BYTES // itemsize, HELD // 2)

    @property
    def tile(self) -> int:
        return THREADS * self.items

    @property
    def parts(self) -> int:
        return -(-self.n // self.tile)

    # Words of `counts`.

    def tables(self, digit: int) -> int:
        """How often a digit has each value, for each row and end."""
        return digit * self.rows * len(self.ends) * BINS

    def states(self, digit: int) -> int:
        """What is known before a digit is looked at, for each row and end."""
        return self.tables(len(self.cuts) - 1) + digit * self.rows * len(self.ends) * STATE

    @property
    def ticket(self) -> int:
        return self.states(len(self.cuts))

    @property
    def words(self) -> int:
        return self.ticket + STATE + self.rows * self.parts * KINDS
