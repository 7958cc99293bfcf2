"""Compile functions of scalar expressions to array functions, to test them without a compiler on top.

f = native(lambda x, y: hypot(x, y), [F32, F32], width=16)
f(x, y)                                   # arrays of one length; every lane and tail is scalar code
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitney.codegen.llvm.scalars import ScalarEmitter, type_text
from jitney.codegen.llvm.text import TextEmitter
from jitney.codegen.scalar import DType, Expr, var
from jitney.codegen.target import Target
from jitney.ir.record import replace
from jitney.runtime.config import config
from jitney.runtime.native.engine import engine_for
from jitney.runtime.native.host import held_to, host_target


def avx2_target() -> Target:
    """The host as if it had no AVX-512."""
    return held_to("avx2", host_target())


def has_avx2() -> bool:
    return host_target().has("avx2") and host_target().has("fma")


def natural_width(dtypes: Sequence[DType], target: Target | None = None) -> int:
    target = target or host_target()
    return target.lanes(max(4, *(d.itemsize for d in dtypes)))


def array_function_text(
    function: Callable[..., Expr],
    dtypes: Sequence[DType],
    width: int,
    target: Target,
    uniform: Sequence[int] = (),
) -> tuple[str, DType]:
    """LLVM text of `void f(ptr out, ptr in..., i64 n)`, which takes `width` elements at a time and
    ignores what is left over. The operands at the positions `uniform` are read once."""
    params = [var(f"x{k}", d) for k, d in enumerate(dtypes)]
    result = function(*params)
    b = TextEmitter(target, width)
    e = ScalarEmitter(b)
    names = dict.fromkeys([f"p{k}" for k in range(len(dtypes))], "ptr")
    out, *pointers, n = b.takes(out="ptr", **names, n="i64")
    for k, (d, pointer) in enumerate(zip(dtypes, pointers, strict=True)):
        if k in uniform:
            e.bind(f"x{k}", b.load_elements(d, pointer, 1), uniform=True)
    loop, end = b.later("loop"), b.later("end")
    (i,) = b.parameters(loop, "i64")
    b.jump(loop, 0)
    b.at(loop)
    for k, (d, pointer) in enumerate(zip(dtypes, pointers, strict=True)):
        if k not in uniform:
            e.bind(f"x{k}", b.load_elements(d, b.offset(pointer, i, _memory(d)), width))
    value = e.emit(result)
    b.store_elements(result.dtype, value, b.offset(out, i, _memory(result.dtype)))
    b.fork(i + width < n, loop, (i + width,), end)
    b.at(end)
    b.ret()
    module = [*sorted(b.declarations), *(f"{n} = {body}" for body, n in b.definitions.items())]
    return "\n".join([*module, f"define void @f{b.unnamed()}"]), result.dtype


def _memory(dtype: DType) -> str:
    return "i8" if dtype.kind == "b" else type_text(dtype, 1)


def native(
    function: Callable[..., Expr],
    dtypes: Sequence[DType],
    width: int | None = None,
    target: Target | None = None,
    uniform: Sequence[int] = (),
) -> Callable[..., np.ndarray[Any, Any]]:
    """`function`, compiled; arrays are padded to whole vectors with copies of their last element."""
    width = natural_width(dtypes, target) if width is None else width
    target = replace(target or host_target(), quick=config.quick)
    text, dtype = array_function_text(function, dtypes, width, target, uniform)
    engine = engine_for(target)
    library = engine.link(engine.emit_object(text), ["f"], {})
    prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (1 + len(dtypes)), ctypes.c_int64)
    entry = prototype(library.address("f"))

    def call(*arrays: Any) -> np.ndarray[Any, Any]:
        flat = [np.asarray(a, d).reshape(-1) for a, d in zip(arrays, dtypes, strict=True)]
        n = max(a.size for a in flat)
        size = -(-n // width) * width
        padded = [np.concatenate([a, np.repeat(a[-1:], size - a.size)]) for a in flat]
        out = np.empty(size, dtype)
        if size:
            entry(out.ctypes.data, *(a.ctypes.data for a in padded), size)
        return out[:n]

    call.library = library  # type: ignore[attr-defined]  # keeps the code loaded
    call.text = text  # type: ignore[attr-defined]
    call.entry = entry  # type: ignore[attr-defined]
    return call
