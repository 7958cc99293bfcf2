"""What code is generated for: one CPU, described by plain data.

Code generation reads a `Target` and nothing else about the machine, so that compiling for a CPU
other than the host's is a matter of passing another `Target`. The runtime describes the host
(`runtime.native.engine.host_target`).
"""

from __future__ import annotations

from typing import ClassVar

from ..ir.record import fields, record
from .limits import DEFAULT, Limits


@record
class Target:
    """A CPU as LLVM names it, and what the runtime offers to native code there.

    `features` is LLVM's feature string (`+avx2,-avx512f,...`); `vector_bits` is the width that
    kernels should use. `sanitize`: code tells the runtime of each array, so that it can check accesses.
    `limits`: of blocks, tiles and units. `fastmath`: loops over elements may add in any order,
    and quotients and roots of float32 are made of the CPU's estimates.
    `threads`: how many share a kernel at most; 0: as many as the pool has.
    `probe`: code tells of its steps (`program.probes`): "count" how often they ran and how long in all,
    "trips" how often blocks of scalar code ran, too, "record" of each time that a step ran. `lines`:
    instructions say which line of the user's they compute (`marks`). `quick`: LLVM makes the code in
    less time, and slower code.
    """

    triple: str
    cpu: str
    features: str
    vector_bits: int
    sanitize: bool = False
    limits: Limits = DEFAULT
    fastmath: bool = False
    probe: str = ""
    lines: bool = False
    threads: int = 0
    quick: bool = False

    PARALLEL_FOR: ClassVar[str] = "jitney_parallel_for"
    RECORD: ClassVar[str] = "jitney_record"  # void (i64 program, i64 slot, i64 begin, i64 end)
    WATCHED_FOR: ClassVar[str] = "jitney_watched_for"  # for work that signals may end; see `pool`
    LOOP: ClassVar[str] = "jitney_loop"  # of a ufunc: LOOP:module:name:types; see `library_loops`
    LOOP_DATA: ClassVar[str] = "jitney_data"  # what such a loop wants to be given
    # How many threads the BLAS of these loops has: BLAS:get, BLAS:set.
    BLAS: ClassVar[str] = "jitney_blas"
    RANDOM: ClassVar[str] = "jitney_random"  # a function of NumPy's generators: RANDOM:name
    SANITIZER: ClassVar[str] = "jitney_san"  # what such functions' names begin with
    CALLBACK: ClassVar[str] = "jitney_callback"  # i32 (i64 number, ptr operands and results)
    PYTHON_SYMBOLS: ClassVar[tuple[str, ...]] = (
        "PyGILState_Ensure",
        "PyGILState_Release",
        "PyErr_CheckSignals",
        "PyGILState_GetThisThreadState",
    )

    def __post_init__(self) -> None:
        if self.vector_bits not in (128, 256, 512):
            raise ValueError(f"vector_bits is 128, 256 or 512, not {self.vector_bits}")

    def lanes(self, itemsize: int) -> int:
        """How many elements of `itemsize` bytes one vector register holds."""
        return self.vector_bits // (8 * itemsize)

    @property
    def registers(self) -> int:
        """How many vector registers there are."""
        return 32 if self.vector_bits == 512 or "x86" not in self.triple else 16

    def has(self, feature: str) -> bool:
        """Whether LLVM's `feature` (`avx512f`, `fma`, ...) is switched on."""
        return f"+{feature}" in self.features.split(",")

    @property
    def compresses(self) -> bool:
        """Whether storing some lanes of a vector next to each other is an instruction."""
        return self.vector_bits == 512 and self.has("avx512f")

    @property
    def compresses_to_memory(self) -> bool:
        """Whether that instruction is quicker than to compress in a register and store what is wanted
        of that. AMD's Zen 4 takes 15 times as long: a sort was 10 times slower."""
        return self.compresses and not self.zen

    @property
    def fetches_ahead(self) -> bool:
        """Whether code asks for the next row's cache lines in time. AMD's Zen 4 does so by itself:
        softmax, layer norm and variance lost 10 to 20 %."""
        return not self.zen

    @property
    def zen(self) -> bool:
        return self.cpu.startswith("znver")

    def key(self) -> str:
        """A text equal for equal targets: part of every cache key."""
        return "\n".join(map(str, (getattr(self, name) for name in fields(self))))
