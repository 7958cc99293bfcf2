"""How what only sm_90 has is rewritten for the CPU: mbarriers, the copy engine, warpgroups."""

from __future__ import annotations

from ....codegen.kernels.matmul import cuda_wgmma as wgmma
from ...native.llvm_text import ParsedAssembly, ParsedCall
from ..assemble import AssembleError
from . import layout as at
from . import warps
from .instructions import KernelText, rewrites, take, take_fields
from .races import MEANT
from .warpgroups import form_number


def _mbarrier(kernel: KernelText, pointer: str) -> str:
    return kernel.address(3, pointer, "8", 8, MEANT)


@rewrites("mbarrier.init.shared")
def _init(kernel: KernelText, call: ParsedCall) -> None:
    barrier = _mbarrier(kernel, call.value(0))
    operands = f"ptr {barrier}, i32 {call.value(1)}, i32 {kernel.site()}"
    kernel.line(f"call void @emu_mbarrier_init(ptr %emu.thread, {operands})")


@rewrites("fence.mbarrier_init.release.cluster")
def _fence(kernel: KernelText, call: ParsedCall) -> None:
    kernel.line("call void @emu_mbarrier_fence(ptr %emu.thread)")


@rewrites("mbarrier.arrive.scope.cta.space.cta", "mbarrier.arrive.expect.tx.scope.cta.space.cta")
def _arrive(kernel: KernelText, call: ParsedCall) -> None:
    barrier = _mbarrier(kernel, call.value(0))
    announces = ".expect.tx." in call.name
    count, nbytes = ("1", call.value(1)) if announces else (call.value(1), "0")
    operands = f"ptr {barrier}, i32 {count}, i32 {nbytes}, i32 {kernel.site()}"
    result = call.result or kernel.unused()
    kernel.line(f"{result} = call i64 @emu_mbarrier_arrive(ptr %emu.thread, {operands})")


@rewrites("mbarrier.try.wait.parity.scope.cta.space.cta", waits=True)
def _try_wait(kernel: KernelText, call: ParsedCall) -> None:
    barrier = _mbarrier(kernel, call.value(0))
    operands = f"ptr {barrier}, i32 {call.value(1)}, i32 {kernel.site()}"
    kernel.line(f"call void @emu_try_wait(ptr %emu.thread, {operands})")
    kernel.stop()
    take(kernel, call.result, "i1")


@rewrites("elect.sync", waits=True)
def _elect(kernel: KernelText, call: ParsedCall) -> None:
    kernel.wait("at_operation", call.value(0), warps.ELECT)
    take_fields(kernel, call)


@rewrites("cp.async.bulk.tensor.g2s.tile.2d", "cp.async.bulk.tensor.g2s.tile.3d")
def _copy_box(kernel: KernelText, call: ParsedCall) -> None:
    rank = int(call.name[-2])
    target, barrier, map, *point = (value for _, value in call.operands[: 3 + rank])
    if any(value not in ("0", "false") for _, value in call.operands[3 + rank :]):
        raise AssembleError("the emulation knows no clusters and no hints to the cache")
    barrier = _mbarrier(kernel, barrier)
    point += ["0"] * (3 - rank)
    operands = "".join(f", i32 {x}" for x in (rank, *point, kernel.site()))
    pointers = f"ptr {target}, ptr {barrier}, ptr {map}"
    kernel.line(f"call void @emu_copy_box(ptr %emu.thread, {pointers}{operands})")


def _in_step(kernel: KernelText, kind: int, number: str) -> None:
    operands = f"i64 {kind}, i64 {number}, i32 {kernel.site()}"
    kernel.line(f"call void @emu_in_step(ptr %emu.thread, {operands})")


@rewrites("setmaxnreg.inc.sync.aligned.u32", "setmaxnreg.dec.sync.aligned.u32", waits=True)
def _registers(kernel: KernelText, call: ParsedCall) -> None:
    _in_step(kernel, 3, call.value(0))
    operands = f"i32 {call.value(0)}, i32 {kernel.site()}"
    kernel.line(f"call void @emu_registers(ptr %emu.thread, {operands})")
    kernel.stop()


@rewrites("wgmma.fence.sync.aligned", "wgmma.commit_group.sync.aligned")
def _order(kernel: KernelText, call: ParsedCall) -> None:
    how = "fence" if ".fence." in call.name else "commit"
    kernel.line(f"call void @emu_group_{how}(ptr %emu.thread, i32 {kernel.site()})")


def rewrite_assembly(kernel: KernelText, assembly: ParsedAssembly) -> None:
    """Inline assembly: accumulators go to the exchange, and come back from it."""
    statement = wgmma.parse(assembly.text)
    if statement is None:
        raise AssembleError(f"the emulation does not know the assembly {assembly.text!r}")
    accumulators = [value for type, value in assembly.operands if type == "float"]
    exchange = kernel.value("call ptr @emu_exchange(ptr %emu.thread)")
    for k, value in enumerate(accumulators):
        slot = kernel.value(f"getelementptr float, ptr {exchange}, i64 {k}")
        kernel.line(f"store float {value}, ptr {slot}")
    if isinstance(statement, wgmma.Form):
        (_, a), (_, b) = assembly.operands[:2]
        operands = f"i64 {a}, i64 {b}, i32 {form_number(statement)}, i32 {kernel.site()}"
        kernel.line(f"call void @emu_product(ptr %emu.thread, {operands})")
    else:
        kernel.set_word(at.INPUT, statement)
        kernel.set_word(at.INPUT + 4, len(accumulators))
        kernel.wait("at_operation", "-1", warps.PRODUCT_WAIT)
        exchange = kernel.value("call ptr @emu_exchange(ptr %emu.thread)")
    struct = "poison"
    for k in range(len(accumulators)):
        slot = kernel.value(f"getelementptr float, ptr {exchange}, i64 {k}")
        element = kernel.value(f"load float, ptr {slot}")
        text = f"insertvalue {assembly.type} {struct}, float {element}, {k}"
        if k + 1 == len(accumulators):
            kernel.line(f"{assembly.result} = {text}")
        else:
            struct = kernel.value(text)


def assembly_waits(assembly: ParsedAssembly) -> bool:
    """Whether the inline assembly is one that threads wait in."""
    return isinstance(wgmma.parse(assembly.text), int)


DECLARATIONS = {
    "declare void @emu_mbarrier_init(ptr, ptr, i32, i32)",
    "declare void @emu_mbarrier_fence(ptr)",
    "declare i64 @emu_mbarrier_arrive(ptr, ptr, i32, i32, i32)",
    "declare void @emu_try_wait(ptr, ptr, i32, i32)",
    "declare void @emu_registers(ptr, i32, i32)",
    "declare void @emu_copy_box(ptr, ptr, ptr, ptr, i32, i32, i32, i32, i32)",
    "declare void @emu_in_step(ptr, i64, i64, i32)",
    "declare void @emu_group_fence(ptr, i32)",
    "declare void @emu_group_commit(ptr, i32)",
    "declare void @emu_product(ptr, i64, i64, i32, i32)",
    "declare ptr @emu_exchange(ptr)",
}
