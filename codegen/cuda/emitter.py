"""The builder of a thread's code: the kernel around it, intrinsics, shared memory, errors by an atomic.

Everything that is computed is scalar; what a thread does for neighbouring elements is the same code
once per element. Pointers have an address space: `ptr addrspace(1) %p0`.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence

from ...ir.types import I64
from ..llvm.builder import Number, Value, constant
from ..llvm.text import TextEmitter, element_type
from ..loop_ir.kernel import Array
from ..scalar import DType
from .intrinsics import INTRINSICS
from .program import MAP_ALIGNMENT, MAP_BYTES
from .target import CudaTarget

GLOBAL, SHARED = "ptr addrspace(1)", "ptr addrspace(3)"  # types of pointers
Word = Value | Number  # of 32 or 64 bits, or a number that is known already
STATIC_BYTES = 48 << 10  # of shared memory that a kernel may have without asking


class ThreadBuilder(TextEmitter):
    """Writes a kernel at width 1. `arrays` are behind its parameters %p0, %p1, ..."""

    table_space = "addrspace(1) "
    has_flags = False
    HALF_FEATURES = frozenset(("",))  # every device converts halves

    def __init__(
        self,
        target: CudaTarget,
        index_type: str,
        arrays: Sequence[Array],
        definitions: MutableMapping[str, str],
    ) -> None:
        super().__init__(target, 1, definitions=definitions)
        self.device = target
        self.index_type = index_type
        self.arrays = list(arrays)
        self.pointers = {a: self.named(GLOBAL, f"p{k}") for k, a in enumerate(self.arrays)}
        self.written: set[Array] = set()  # in this kernel
        self.passed: frozenset[Array] = frozenset()  # between threads
        self.scalars: list[str] = []  # parameters that are numbers: `i32 %length`
        self.globals: list[str] = []  # shared memory: `@NAME_shared0 = ...`
        self.tensor_maps = 0  # parameters before the arrays: %map0, %map1, ...
        self.attributes: dict[str, str] = {}  # of the function
        self.alone = False  # one block does everything
        self.dynamic_bytes = 0  # of shared memory, asked for at the launch
        self.reports = False  # tells afterwards whether the status block is wanted

    # The function around the code.

    def definition(self, name: str, threads: int, alignments: Sequence[int]) -> str:
        """The whole kernel. `alignments`: what each array's pointer is a multiple of, in bytes."""
        params = [
            f'ptr byval([{MAP_BYTES} x i8]) align {MAP_ALIGNMENT} "nvvm.grid_constant" %map{k}'
            for k in range(self.tensor_maps)
        ]
        for k, (array, n) in enumerate(zip(self.arrays, alignments, strict=True)):
            flags = "noalias " if array not in self.passed else ""  # other threads write there
            flags += "readonly " if array not in self.written else ""
            params.append(f"{GLOBAL} {flags}align {n} %p{k}")
        params += self.scalars
        if self.reports:
            params.append(f"{GLOBAL} align 8 %status")
        attributes = {"nvvm.reqntid": str(threads), **self.attributes}
        attributed = " ".join(f'"{name}"="{value}"' for name, value in attributes.items())
        self.ret()
        shared = "".join(f"{line}\n" for line in self.globals)
        return (
            f"{shared}define ptx_kernel void @{name}({', '.join(params)}) nounwind "
            f"{attributed} {{\n{self.code.text()}\n}}\n"
        )

    # Intrinsics.

    def parameter(self, type: str, name: str, align: int = 0) -> Value:
        """One more parameter of the kernel, which is no array."""
        self.scalars.append(f"{type} align {align} %{name}" if align else f"{type} %{name}")
        return self.named(type, name)

    def tensor_map(self, number: int) -> Value:
        """One of the parameters that describe how arrays lie."""
        return self.named("ptr", f"map{number}")

    def nvvm(self, name: str, *operands: Value | Number, fresh: bool = False) -> Value:
        """The value of one of `intrinsics.INTRINSICS`; `fresh`: it may differ from call to call."""
        row = INTRINSICS[name]
        self.declarations.add(row.declaration)
        again = fresh or row.result == "void"
        return self.run(row, *operands) if again else self.ask(row, *operands)

    def thread(self, axis: str = "x") -> Value:
        """The thread's number in its block, in 32 bits."""
        return self.nvvm(f"llvm.nvvm.read.ptx.sreg.tid.{axis}")

    def block_number(self) -> Word:
        """The block's number in the grid, as an index."""
        if self.alone:
            return 0
        return self.widened(self.nvvm("llvm.nvvm.read.ptx.sreg.ctaid.x"))

    def widened(self, number: Word) -> Word:
        """A 32-bit number, not negative, as an index."""
        if isinstance(number, int) or number.type == self.index_type:
            return number
        return number.zext("i64")

    def narrowed(self, index: Word) -> Word:
        """An index that is small, in 32 bits."""
        return index if isinstance(index, int) or index.type == "i32" else index.trunc("i32")

    def barrier(self) -> None:
        self.nvvm("llvm.nvvm.barrier.cta.sync.aligned.all", 0)

    # Memory.

    def shared(self, dtype: DType, count: int) -> Value:
        """New shared memory of the block for so many elements."""
        element = element_type(dtype)
        name = f"@NAME_shared{len(self.globals)}"
        body = f"internal addrspace(3) global [{count} x {element}] undef, align 16"
        self.globals.append(f"{name} = {body}")
        return Value(SHARED, name, self)

    def shared_block(self, nbytes: int, align: int = 128) -> Value:
        """New shared memory in bytes, aligned to all banks; much of it is asked for at the launch."""
        name = f"@NAME_shared{len(self.globals)}"
        if nbytes <= STATIC_BYTES:
            body = f"internal addrspace(3) global [{nbytes} x i8] undef, align {align}"
        else:
            body = f"external addrspace(3) global [0 x i8], align {align}"
            self.dynamic_bytes = nbytes
        self.globals.append(f"{name} = {body}")
        return Value(SHARED, name, self)

    def in_shared(self, dtype: DType, base: Value, at: Value | int) -> Value:
        """The address of an element in shared memory; `at` is an i32."""
        return self.offset(base, at, element_type(dtype))

    # Errors.

    def note(self, site: int, words: Iterable[Word | int]) -> None:
        """Report an error: the first of all threads writes its words."""
        self.reports = True
        status = self.named(GLOBAL, "status")
        at = self.offset(status, 7, "i64")
        order = 'syncscope("device") monotonic monotonic'
        _, first = self.swap_atomic(at, constant("i64", 0), constant("i64", site), order)
        with self.when(first):
            for k, word in enumerate(words):
                self.store(self.word(word), status, k, unit="i64", align=8)


class DeviceStatus:
    """The status block of a launch, as the one where failed checks are noted."""

    leaves = False

    def __init__(self, b: ThreadBuilder) -> None:
        self.b = b

    def report(
        self, bad: Value, index: Value, lanes: int, size: int, site: int, dtype: DType = I64
    ) -> None:
        """Where `bad`, note index, size and site, if there is no error yet."""
        self.b.reports = True
        with self.b.when(bad):
            if dtype != I64:
                index = index.sext("i64")
            self.b.note(site, (index, size))

    def tell(self, bad: Value, lanes: int) -> None:
        """Nothing: what is watched runs on the CPU."""


def is_zero(word: Word) -> bool:
    """Whether a number is known already, and is 0."""
    return not isinstance(word, Value) and word == 0


def fits_32_bits(extents: Iterable[int]) -> bool:
    """Whether everything that is counted, with some room for the last block, fits an int32."""
    return all(n < 2**31 - 2**16 for n in extents)
