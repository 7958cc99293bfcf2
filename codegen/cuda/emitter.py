"""The builder of a thread's code: the kernel around it, intrinsics, shared memory, errors by an atomic.

Everything that is computed is scalar; what a thread does for neighbouring elements is the same code
once per element. Pointers are texts that begin with their address space: `addrspace(1) %p0`.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence

from ...ir.types import BOOL, I64
from ..llvm.instructions import SCALAR_TYPES
from ..llvm.text import TextEmitter
from ..loop_ir.kernel import Array
from ..scalar import DType
from .intrinsics import INTRINSICS
from .program import MAP_ALIGNMENT, MAP_BYTES
from .target import CudaTarget

GLOBAL, SHARED = "addrspace(1) ", "addrspace(3) "
STATIC_BYTES = 48 << 10  # of shared memory that a kernel may have without asking


class ThreadBuilder(TextEmitter):
    """Writes a kernel at width 1. `arrays` are behind its parameters %p0, %p1, ..."""

    table_space = GLOBAL
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
        self.pointers = {a: f"{GLOBAL}%p{k}" for k, a in enumerate(self.arrays)}
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
            known = "noalias " if array not in self.passed else ""  # other threads write there
            known += "readonly " if array not in self.written else ""
            params.append(f"ptr {GLOBAL}{known}align {n} %p{k}")
        params += self.scalars
        if self.reports:
            params.append(f"ptr {GLOBAL}align 8 %status")
        attributes = {"nvvm.reqntid": str(threads), **self.attributes}
        known = " ".join(f'"{name}"="{value}"' for name, value in attributes.items())
        self.ret()
        shared = "".join(f"{line}\n" for line in self.globals)
        return (
            f"{shared}define ptx_kernel void @{name}({', '.join(params)}) nounwind "
            f"{known} {{\n{self.code.text()}\n}}\n"
        )

    # Intrinsics.

    def nvvm(self, name: str, *operands: str, fresh: bool = False) -> str:
        """The value of one of `intrinsics.INTRINSICS`; `fresh`: it may differ from call to call."""
        row = INTRINSICS[name]
        self.declarations.add(row.declaration)
        arguments = ", ".join(f"{t} {x}" for t, x in zip(row.types, operands, strict=True))
        text = f"call {row.result} @{name}({arguments})"
        if row.result == "void":
            self.lines.append(f"  {text}")
            return ""
        return self.fresh_of(text) if fresh else self.value_of(text)

    def thread(self, axis: str = "x") -> str:
        """The thread's number in its block, in 32 bits."""
        return self.nvvm(f"llvm.nvvm.read.ptx.sreg.tid.{axis}")

    def block_number(self, axis: str = "x") -> str:
        """The block's number in the grid, as an index."""
        if self.alone:
            return "0"
        number = self.nvvm(f"llvm.nvvm.read.ptx.sreg.ctaid.{axis}")
        return self.widened(number)

    def widened(self, text: str) -> str:
        """A 32-bit number, not negative, as an index."""
        if self.index_type == "i32" or text[0] != "%":
            return text
        return self.value_of(f"zext i32 {text} to i64")

    def barrier(self) -> None:
        self.nvvm("llvm.nvvm.barrier.cta.sync.aligned.all", "0")

    # Memory.

    def element_at(self, dtype: DType, base: str, offset: str) -> str:
        space, name = base.rsplit(" ", 1)
        element = memory_type(dtype)
        place = self.value_of(
            f"getelementptr {element}, ptr {space} {name}, {self.index_type} {offset}"
        )
        return f"{space} {place}"

    def shared(self, dtype: DType, count: int) -> str:
        """New shared memory of the block for so many elements."""
        element = memory_type(dtype)
        name = f"@NAME_shared{len(self.globals)}"
        body = f"internal addrspace(3) global [{count} x {element}] undef, align 16"
        self.globals.append(f"{name} = {body}")
        return f"{SHARED}{name}"

    def shared_block(self, nbytes: int, align: int = 128) -> str:
        """New shared memory in bytes, aligned to all banks; much of it is asked for at the launch."""
        name = f"@NAME_shared{len(self.globals)}"
        if nbytes <= STATIC_BYTES:
            body = f"internal addrspace(3) global [{nbytes} x i8] undef, align {align}"
        else:
            body = f"external addrspace(3) global [0 x i8], align {align}"
            self.dynamic_bytes = nbytes
        self.globals.append(f"{name} = {body}")
        return f"{SHARED}{name}"

    def in_shared(self, dtype: DType, base: str, at: str) -> str:
        """The place of an element in shared memory; `at` is an i32."""
        element = memory_type(dtype)
        name = base.rsplit(" ", 1)[1]
        place = self.value_of(f"getelementptr {element}, ptr {SHARED}{name}, i32 {at}")
        return f"{SHARED}{place}"

    # Errors.

    def note(self, site: int, words: Iterable[str]) -> None:
        """Report an error: the first of all threads writes its words."""
        self.reports = True
        status = f"ptr {GLOBAL}%status"
        at = self.fresh_of(f"getelementptr i64, {status}, i64 7")
        swapped = self.fresh_of(
            f'cmpxchg ptr {GLOBAL}{at}, i64 0, i64 {site} syncscope("device") monotonic monotonic'
        )
        first = self.fresh_of(f"extractvalue {{ i64, i1 }} {swapped}, 1")
        with self.when(first):
            for k, word in enumerate(words):
                place = self.fresh_of(f"getelementptr i64, {status}, i64 {k}")
                self.lines.append(f"  store i64 {word}, ptr {GLOBAL}{place}, align 8")


class DeviceStatus:
    """The status block of a launch, as the one where failed checks are noted."""

    def __init__(self, b: ThreadBuilder) -> None:
        self.b = b

    def report(
        self, bad: str, index: str, lanes: int, size: int, site: int, dtype: DType = I64
    ) -> None:
        """Where `bad`, note index, size and site, if there is no error yet."""
        self.b.reports = True
        with self.b.when(bad):
            if dtype != I64:
                index = self.b.value_of(f"sext {SCALAR_TYPES[dtype]} {index} to i64")
            self.b.note(site, (index, str(size)))


def memory_type(dtype: DType) -> str:
    """The LLVM type of an element in memory."""
    return "i8" if dtype == BOOL else SCALAR_TYPES[dtype]


def fits_32_bits(extents: Iterable[int]) -> bool:
    """Whether everything that is counted, with some room for the last block, fits an int32."""
    return all(n < 2**31 - 2**16 for n in extents)
