"""What a caller may ask of the compilers: one record, for CPUs and GPUs alike.

The record is a part of every key of compiled code by being a part of it as a whole: an option that
is added here is in all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.record import record

if TYPE_CHECKING:
    from ..codegen.module import Donation


@record
class CompileOptions:
    """What may differ between two compilations of one graph for one target.

    fastmath        answers may differ from NumPy's by more than rounding
    deterministic   a GPU's results have the same bits from run to run
    autotune        a GPU's launch parameters are measured; None: as `config.autotune` says
    donations       inputs that may be overwritten
    threads         how many share a kernel at most, on a CPU; 0: as many as there are
    lengths         of axes whose length is bound at the call: the capacity, the input that is it, the
                    least that it may be, and the most
    """

    fastmath: bool = False
    deterministic: bool = True
    autotune: bool | None = None
    donations: tuple[Donation, ...] = ()
    threads: int = 0
    lengths: tuple[tuple[int, int, int, int], ...] = ()

    def key(self) -> str:
        return repr(self)
