"""How right: every approximated function's bits beside the CPU backend's, and the errors of the device's
approximate instructions, which `fastmath` may use.

The points are those of docs/concepts/accuracy.md: bit patterns spread over all of a dtype, and the
hard cases.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import peers
from .process import Options, Writer

# llvm.nvvm intrinsic: what it approximates, and where its error is asked for
APPROXIMATE: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "ex2.approx.ftz.f32": (np.exp2, -126.0, 127.0),
    "lg2.approx.ftz.f": (np.log2, 2.0**-126, 2.0**127),
    "sin.approx.ftz.f": (np.sin, -np.pi, np.pi),
    "cos.approx.ftz.f": (np.cos, -np.pi, np.pi),
    "rsqrt.approx.ftz.f": (lambda x: 1 / np.sqrt(x), 2.0**-126, 2.0**127),
    "rcp.approx.ftz.f": (lambda x: 1 / x, 2.0**-126, 2.0**126),
    "llvm.tanh.f32": (np.tanh, -10.0, 10.0),
}
BLOCK = 128


def stage(options: Options, writer: Writer) -> Iterator[tuple[str, Callable[[], Any]]]:
    count = 2_000 if options.get("small") else 1 << 21
    accuracy = peers.support("accuracy")
    names = [*accuracy.UNARY, *accuracy.BINARY]
    for name in names[:3] if options.get("small") else names:
        for dtype in ("float32", "float64"):
            yield (
                f"{name} {dtype}",
                lambda name=name, dtype=dtype: beside_the_cpu(name, np.dtype(dtype), count),  # type: ignore[misc]
            )
    for name in list(APPROXIMATE)[:2] if options.get("small") else APPROXIMATE:
        yield f"approximate {name}", lambda name=name: approximate(name, count)  # type: ignore[misc]


def beside_the_cpu(name: str, dtype: Any, count: int) -> dict[str, Any]:
    """How many results have other bits on the device than on the CPU, and by how many ULP at most."""
    import jitney as jt

    accuracy = peers.support("accuracy")
    if name in accuracy.BINARY:
        arrays = accuracy.binary_points(name, dtype, count)
    else:
        arrays = (accuracy.unary_points(name, dtype, count),)
    function = {"pow": np.power, "erf": jt.erf}.get(name) or getattr(np, name)
    program = jt.jit(lambda *given: function(*given))
    with np.errstate(all="ignore"):
        cpu = program(*arrays)
        gpu = np.asarray(program(*(jt.device_put(a, "cuda") for a in arrays)))
    bits = f"u{dtype.itemsize}"
    other = (cpu.view(bits) != gpu.view(bits)) & ~(np.isnan(cpu) & np.isnan(gpu))
    found: dict[str, Any] = {"points": cpu.size, "different": int(other.sum())}
    if other.any():
        errors = accuracy.ulp_errors(gpu[other], cpu[other].astype(np.longdouble), 0.0)
        worst = int(np.argmax(errors))
        found["ulp"] = float(errors[worst])
        found["at"] = [float(a[other][worst]) for a in arrays]
        found["error"] = (
            f"{found['different']} of {cpu.size} differ, by {found['ulp']:.3g} ULP at most"
        )
    return found


def kernel(name: str) -> str:
    from jitney.codegen.cuda.intrinsics import INTRINSICS

    full = name if name.startswith("llvm.") else f"llvm.nvvm.{name}"
    row, sreg = INTRINSICS[full], "llvm.nvvm.read.ptx.sreg"
    return f"""
{row.declaration}
declare i32 @{sreg}.tid.x()
declare i32 @{sreg}.ctaid.x()
define ptx_kernel void @k(ptr addrspace(1) %x, ptr addrspace(1) %y, i32 %n) {{
entry:
  %t = call i32 @{sreg}.tid.x()
  %b = call i32 @{sreg}.ctaid.x()
  %s = mul i32 %b, {BLOCK}
  %i = add i32 %s, %t
  %c = icmp slt i32 %i, %n
  br i1 %c, label %work, label %end
work:
  %p = getelementptr float, ptr addrspace(1) %x, i32 %i
  %v = load float, ptr addrspace(1) %p
  %r = call {row.flags} float @{full}(float %v)
  %q = getelementptr float, ptr addrspace(1) %y, i32 %i
  store float %r, ptr addrspace(1) %q
  br label %end
end:
  ret void
}}"""


def approximate(name: str, count: int) -> dict[str, Any]:
    """The largest errors of an instruction: absolute, relative, in ULP, and where."""
    import jitney as jt
    from jitney.codegen.cuda.program import KernelShape

    function, low, high = APPROXIMATE[name]
    accuracy = peers.support("accuracy")
    rng = np.random.default_rng(0)
    spread = accuracy.bit_patterns(np.dtype(np.float32), count)
    with np.errstate(all="ignore"):
        spread = spread[(spread >= low) & (spread <= high)]
    even = rng.uniform(max(low, -1e3), min(high, 1e3), count).astype(np.float32)
    x = np.concatenate([spread, even])
    x = x[np.abs(x) >= np.finfo(np.float32).tiny]  # denormals are zeros to them
    context = peers.context()
    module = context.load_module(kernel(name), {"k": KernelShape((BLOCK, 1, 1))})
    device_x, device_y = jt.device_put(x, "cuda"), jt.device_put(np.full_like(x, np.nan), "cuda")
    given = struct.pack("<qqi", device_x.buffer.address, device_y.buffer.address, x.size)
    stream = peers.Jitney().client.stream
    context.launch(
        module.function("k"), (-(-x.size // BLOCK), 1, 1), (BLOCK, 1, 1), 0, stream, given
    )
    y = np.asarray(device_y)
    exact = function(x.astype(np.float64))
    with np.errstate(all="ignore"):
        absolute = np.abs(y - exact)
        relative = absolute / np.abs(exact)
        ulp = accuracy.ulp_errors(y, exact, 0.0)
    normal = np.abs(exact) >= np.finfo(np.float32).tiny
    worst = int(np.argmax(np.where(normal, ulp, 0)))
    return {
        "points": x.size,
        "absolute": float(np.nanmax(absolute)),
        "relative": float(np.nanmax(relative[normal])),
        "ulp": float(ulp[worst]),
        "at": float(x[worst]),
    }
