"""Sorting rows of encoded elements (`lower_sorting`): a stable merge sort whose merges are cut evenly.

    tiles:   a block sorts what its threads hold: ITEMS of each in registers, then runs that are merged
             in shared memory, twice as long each time. Several short rows fit one block.
    merge:   a launch for each further doubling: a block merges a tile's worth of two runs

Who merges what follows from the *merge path*: the first d elements of the result are the first i of one
run and the first d - i of the other, and i is found by bisection. So every thread makes the same number
of elements, however the values are spread.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from typing import NamedTuple

from ...cuda.emitter import fits_32_bits
from ...cuda.target import CudaTarget
from ...llvm.loops import Carried, Values
from ...loop_ir.kernel import Array
from ...loop_ir.steps import Sort
from .cuda_elements import Element, ElementEmitter

ITEMS = 4  # elements of a thread
THREADS = 256  # of a block, at the most

Reader = Callable[[str], Element]


class SortPlan(NamedTuple):
    """`rows` of `n` elements; a block of `threads` sorts segments of `width` places each."""

    rows: int
    n: int
    threads: int
    width: int
    index_type: str

    @property
    def tile(self) -> int:
        return self.threads * ITEMS

    @property
    def parts(self) -> int:
        """How many tiles a row is cut into."""
        return -(-self.n // self.tile)

    @property
    def blocks(self) -> int:
        return -(-self.rows // (self.tile // self.width)) if self.parts == 1 else self.merge_blocks

    @property
    def merge_blocks(self) -> int:
        return self.rows * self.parts

    @property
    def merges(self) -> list[int]:
        """The lengths of the runs that go into each merge."""
        return [self.tile << k for k in range((self.parts - 1).bit_length())]


def sort_plan(step: Sort) -> SortPlan:
    n = step.keys.shape[step.axis]
    rows = step.keys.size // (n * (2 if step.kind == "pairs" else 1))
    width = min(max(1 << (n - 1).bit_length(), ITEMS), THREADS * ITEMS)
    threads = min(max(width // ITEMS * rows, CudaTarget.WARP), THREADS)
    threads = 1 << (threads - 1).bit_length()
    small = fits_32_bits([2 * step.keys.size + 4 * THREADS * ITEMS])
    return SortPlan(rows, n, threads, width, "i32" if small else "i64")


class SortEmitter(ElementEmitter):
    """Emits the kernel that sorts tiles, or one that merges; from `source` to `result`."""

    def __init__(
        self,
        step: Sort,
        plan: SortPlan,
        source: Array,
        result: Array,
        target: CudaTarget,
        definitions: MutableMapping[str, str],
    ) -> None:
        super().__init__(step, plan.index_type, source, result, target, definitions)
        self.layout = plan
        self.memory = [self.b.shared(self.dtype, plan.tile) for _ in range(self.parts)]

    def tiles(self) -> None:
        """Sort every tile of the source."""
        plan, op = self.layout, self.b.value_of
        if plan.parts == 1:
            first = self.times(self.b.block_number(), plan.tile // plan.width)
            places = [self._place_in_rows(first, e) for e in self._striped()]
        else:
            row, start = self._part()
            places = [self._place_in_row(row, start, e) for e in self._striped()]
        for local, (inside, place) in zip(self._striped(), places, strict=True):
            self.put(local, self.fetch(inside, place))
        self.b.barrier()
        items = self._sorted_registers(self._take())
        passes = (plan.width // ITEMS).bit_length() - 1

        def double(number: str, values: Values) -> Values:
            self.b.barrier()
            self._give(self._elements(values))
            self.b.barrier()
            run = op(f"shl i32 {ITEMS}, {self.narrow(number)}")
            out = op(f"mul i32 {self.tid}, {ITEMS}")
            twice = op(f"shl i32 {run}, 1")
            into = op(f"and i32 {out}, {op(f'sub i32 {twice}, 1')}")
            first = op(f"sub i32 {out}, {into}")
            second = op(f"add i32 {first}, {run}")
            bits = passes + ITEMS.bit_length()
            split = self._split(into, run, run, bits, first, second, self.get)
            return self._carried(self._merged(into, split, first, run, second, run))

        items = self._elements(self.loops.loop("0", str(passes), 1, self._carried(items), double))
        self.b.barrier()
        self._give(items)
        self.b.barrier()
        for local, (inside, place) in zip(self._striped(), places, strict=True):
            self.deposit(inside, place, self.get(local))

    def merge(self) -> None:
        """Merge neighbouring runs of %run elements, which is a multiple of a tile's."""
        plan, op, ty = self.layout, self.b.value_of, self.b.index_type
        self.b.scalars = [f"{ty} %run", f"{ty} %bits"]
        row, start = self._part()
        mask = op(f"sub {ty} {op(f'shl {ty} %run, 1')}, 1")
        into = op(f"and {ty} {start}, {mask}")
        first = op(f"sub {ty} {start}, {into}")
        second = op(f"add {ty} {first}, %run")
        m = self._clamped(f"{plan.n}", first)
        k = self._clamped(f"{plan.n}", second)
        until = self.smaller(ty, op(f"add {ty} {into}, {plan.tile}"), op(f"add {ty} {m}, {k}"))
        base = self.times(row, plan.n)
        a, b = (op(f"add {ty} {base}, {x}") for x in (first, second))
        i, end = (self._split(d, m, k, "%bits", a, b, self.element_at) for d in (into, until))
        m = self.narrow(op(f"sub {ty} {end}, {i}"))  # of this tile, from each run
        total = self.narrow(op(f"sub {ty} {until}, {into}"))
        k = op(f"sub i32 {total}, {m}")
        from_a = op(f"add {ty} {a}, {i}")
        from_b = op(f"add {ty} {b}, {op(f'sub {ty} {into}, {i}')}")
        from_b = op(f"sub {ty} {from_b}, {self.b.widened(m)}")
        inside = {e: op(f"icmp slt i32 {e}, {total}") for e in self._striped()}
        for local, on in inside.items():
            left = op(f"icmp slt i32 {local}, {m}")
            origin = op(f"select i1 {left}, {ty} {from_a}, {ty} {from_b}")
            place = op(f"add {ty} {origin}, {self.b.widened(local)}")
            self.put(local, self.fetch(on, place))
        self.b.barrier()
        out = self.smaller("i32", op(f"mul i32 {self.tid}, {ITEMS}"), total)
        bits = plan.tile.bit_length()
        split = self._split(out, m, k, bits, "0", m, self.get)
        items = self._merged(out, split, "0", m, m, k)
        self.b.barrier()
        self._give(items)
        self.b.barrier()
        to = op(f"add {ty} {base}, {start}")
        for local, on in inside.items():
            self.deposit(on, op(f"add {ty} {to}, {self.b.widened(local)}"), self.get(local))

    # Where this thread's elements are.

    def _striped(self) -> list[str]:
        """Places in the tile that threads move: neighbouring threads, neighbouring places."""
        threads = self.layout.threads
        return [self.b.value_of(f"add i32 {self.tid}, {k * threads}") for k in range(ITEMS)]

    def _part(self) -> tuple[str, str]:
        """The row, and the first place in it, of this block's tile."""
        ty, op, block = self.b.index_type, self.b.value_of, self.b.block_number()
        row = op(f"udiv {ty} {block}, {self.layout.parts}")
        return row, self.times(op(f"urem {ty} {block}, {self.layout.parts}"), self.layout.tile)

    def _place_in_rows(self, first: str, local: str) -> tuple[str, str]:
        """Whether the place of a tile of short rows is an element, and which."""
        plan, op, ty = self.layout, self.b.value_of, self.b.index_type
        at = op(f"and i32 {local}, {plan.width - 1}")
        row = op(f"lshr i32 {local}, {plan.width.bit_length() - 1}")
        row = op(f"add {ty} {first}, {self.b.widened(row)}")
        short, known = op(f"icmp slt i32 {at}, {plan.n}"), op(f"icmp slt {ty} {row}, {plan.rows}")
        place = op(f"add {ty} {self.times(row, plan.n)}, {self.b.widened(at)}")
        return op(f"and i1 {short}, {known}"), place

    def _place_in_row(self, row: str, start: str, local: str) -> tuple[str, str]:
        plan, op, ty = self.layout, self.b.value_of, self.b.index_type
        at = op(f"add {ty} {start}, {self.b.widened(local)}")
        inside = op(f"icmp slt {ty} {at}, {plan.n}")
        return inside, op(f"add {ty} {self.times(row, plan.n)}, {at}")

    # Merging.

    def _split(
        self, total: str, m: str, k: str, bits: int | str, first: str, second: str, read: Reader
    ) -> str:
        """How many of the first `total` merged elements are of the first run.

        The runs begin at the places `first` and `second` of what `read` reads, and have m and k
        elements. Places are i32, or indices where `bits`, the length of the answer, is a parameter.
        """
        ty, op = self.b.index_type if isinstance(bits, str) else "i32", self.b.value_of
        least = op(f"sub {ty} {total}, {k}")
        low = op(f"select i1 {op(f'icmp sgt {ty} {least}, 0')}, {ty} {least}, {ty} 0")
        ends: Values = [Carried(t, True, ty) for t in (low, self.smaller(ty, total, m))]
        last = op(f"add {ty} {second}, {op(f'sub {ty} {total}, 1')}")

        def halve(_: str, values: Values) -> Values:
            low, high = (v.text for v in values)
            on = op(f"icmp slt {ty} {low}, {high}")
            middle = op(f"lshr {ty} {op(f'add {ty} {low}, {high}')}, 1")
            mine, other = op(f"add {ty} {first}, {middle}"), op(f"sub {ty} {last}, {middle}")
            # Where the search has ended, the places may be outside.
            x, y = (read(op(f"select i1 {on}, {ty} {at}, {ty} {first}")) for at in (mine, other))
            less = self._less(y, x)
            down, up = (op(f"and i1 {on}, {c}") for c in (less, op(f"xor i1 {less}, true")))
            low = op(f"select i1 {up}, {ty} {op(f'add {ty} {middle}, 1')}, {ty} {low}")
            high = op(f"select i1 {down}, {ty} {middle}, {ty} {high}")
            return [Carried(low, True, ty), Carried(high, True, ty)]

        return self.loops.loop("0", str(bits), 1, ends, halve)[0].text

    def _merged(
        self, out: str, split: str, first: str, m: str, second: str, k: str
    ) -> list[Element]:
        """ITEMS elements from place `out` on of two runs in shared memory, m and k long."""
        op = self.b.value_of
        i = op(f"add i32 {first}, {split}")
        j = op(f"add i32 {second}, {op(f'sub i32 {out}, {split}')}")
        ends = op(f"add i32 {first}, {m}"), op(f"add i32 {second}, {k}")
        x, y = self.get(self._inside(i)), self.get(self._inside(j))
        found: list[Element] = []
        for _ in range(ITEMS):
            more_x, more_y = (
                op(f"icmp slt i32 {at}, {end}") for at, end in zip((i, j), ends, strict=True)
            )
            sooner = op(f"xor i1 {op(f'and i1 {more_y}, {self._less(y, x)}')}, true")
            take_x = op(f"and i1 {more_x}, {sooner}")
            found.append(self.chosen(take_x, x, y))
            if len(found) == ITEMS:
                break
            next_i, next_j = op(f"add i32 {i}, 1"), op(f"add i32 {j}, 1")
            new = self.get(self._inside(op(f"select i1 {take_x}, i32 {next_i}, i32 {next_j}")))
            x, y = self.chosen(take_x, new, x), self.chosen(take_x, y, new)
            i = op(f"select i1 {take_x}, i32 {next_i}, i32 {i}")
            j = op(f"select i1 {take_x}, i32 {j}, i32 {next_j}")
        return found

    def _sorted_registers(self, items: list[Element]) -> list[Element]:
        """Neighbours trade places until they are in order, equal ones never."""
        items = list(items)
        for turn in range(ITEMS):
            for k in range(turn % 2, ITEMS - 1, 2):
                x, y = items[k], items[k + 1]
                swap = self._less(y, x)
                items[k], items[k + 1] = self.chosen(swap, y, x), self.chosen(swap, x, y)
        return items

    # Elements.

    def _less(self, x: Element, y: Element) -> str:
        """Whether the key of x comes before that of y."""
        return self.b.value_of(f"icmp ult {self.element} {self.key(x)}, {self.key(y)}")

    def _carried(self, items: Sequence[Element]) -> Values:
        return [Carried(text, True, self.element) for item in items for text in item]

    def _elements(self, values: Values) -> list[Element]:
        texts, parts = [v.text for v in values], len(self.memory)
        return [tuple(texts[k : k + parts]) for k in range(0, len(texts), parts)]

    def _own(self) -> list[str]:
        """Places of the elements that this thread sorts: side by side."""
        first = self.b.value_of(f"mul i32 {self.tid}, {ITEMS}")
        return [self.b.value_of(f"add i32 {first}, {k}") for k in range(ITEMS)]

    def _take(self) -> list[Element]:
        return [self.get(local) for local in self._own()]

    def _give(self, items: Sequence[Element]) -> None:
        for local, item in zip(self._own(), items, strict=True):
            self.put(local, item)

    def _clamped(self, end: str, start: str) -> str:
        """How many elements of a run from `start` on are before `end`."""
        ty = self.b.index_type
        left = self.b.value_of(f"sub {ty} {end}, {start}")
        some = self.b.value_of(f"icmp sgt {ty} {left}, 0")
        left = self.b.value_of(f"select i1 {some}, {ty} {left}, {ty} 0")
        return self.smaller(ty, left, "%run")

    def _inside(self, local: str) -> str:
        """A place of the tile: the last one instead of one beyond it."""
        return self.smaller("i32", local, str(self.layout.tile - 1))
