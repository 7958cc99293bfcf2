"""`f.cfunc`: a function that C calls, by its address: for integrators, filters, callbacks of libraries.

The signatures are those that C and SciPy's `LowLevelCallable` have. What stands in them decides what the
function is called with:

    double (double, int64_t)                            numbers, each by itself
    double (int, double *)                              numbers, or with `size` an array, side by side
    int (double *, intptr_t, double *, void *)          an array; the result is stored (`generic_filter`)
    int (double *, intptr_t, double *, intptr_t, void *)    the same of arrays (`generic_filter1d`)

A `void *` at the end is left alone, or is an array, if `data` says what it is like.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any, NoReturn

import numpy as np

from ...codegen.module import NativeModule
from ...ir.record import record
from ...ir.types import TensorType
from ...runtime.native.engine import load_code
from ...runtime.native.host import process_target
from ...runtime.portable.c_entry import (
    STACK,
    ByValue,
    Constant,
    Parameter,
    Place,
    Returned,
    Slot,
    c_function,
)
from ..core.specs import Spec
from ..data.shapes import ShapeDtype
from ..messages import errors
from ..messages.errors import complain
from .alone import Alone, machine_code

_SYMBOL = "jitney_cfunc"
_TYPES = {
    "double": "f8", "float64": "f8", "float": "f4", "float32": "f4",
    "bool": "?", "_Bool": "?", "bool_": "?", "char": "i1", "int8": "i1", "uint8": "u1",
    "short": "i2", "int16": "i2", "uint16": "u2", "int": "i4", "intc": "i4", "int32": "i4",
    "unsigned int": "u4", "uint32": "u4", "long": "i8", "long long": "i8", "int64": "i8",
    "ssize_t": "i8", "intptr_t": "i8", "intp": "i8", "npy_intp": "i8", "uint64": "u8",
    "unsigned long": "u8", "size_t": "u8",
}  # fmt: skip
_IN_LLVM = {"f8": "double", "f4": "float", "?": "i8"}
_IN_CTYPES = {
    "f8": ctypes.c_double, "f4": ctypes.c_float, "?": ctypes.c_bool, "i1": ctypes.c_int8,
    "u1": ctypes.c_uint8, "i2": ctypes.c_int16, "u2": ctypes.c_uint16, "i4": ctypes.c_int32,
    "u4": ctypes.c_uint32, "i8": ctypes.c_int64, "u8": ctypes.c_uint64,
}  # fmt: skip
_HOW = "write 'double (double, double)', 'double (int, double *)' or another of `help(f.cfunc)`."


@record
class Signature:
    """Codes of types (`f8`), with a `*` behind those of pointers; `v*` is `void *`."""

    text: str
    result: str
    arguments: tuple[str, ...]

    @property
    def plain(self) -> tuple[str, ...]:
        """The arguments without a `void *` at the end."""
        return self.arguments[:-1] if self.arguments[-1:] == ("v*",) else self.arguments


def parsed(text: str) -> Signature:
    """A signature of C's, or of Numba's: `float64(float64, CPointer(float64))`."""
    match = (
        re.fullmatch(r"\s*([\w ]+?)\s*\((.*)\)\s*", text, re.S) if isinstance(text, str) else None
    )
    if match is None:
        _refuse_signature(f"{text!r} is no signature")
    inside = match[2].strip()
    pieces = [] if inside in ("", "void") else inside.split(",")
    arguments = tuple(_code(piece, text) for piece in pieces)
    result = _code(match[1], text)
    if result.endswith("*"):
        _refuse_signature(f"{text!r} returns a pointer")
    return Signature(text, result, arguments)


def _code(piece: str, text: str) -> str:
    words = re.sub(r"\bconst\b", " ", piece).strip()
    pointer = re.fullmatch(r"CPointer\((.*)\)", words) or re.fullmatch(r"(.*?)\s*\*\s*\w*", words)
    name = (pointer[1] if pointer else words).strip()
    if pointer and name in ("void", "voidptr"):
        return "v*"
    for _ in range(2):  # the second time without the name of the parameter
        code = _TYPES.get(re.sub(r"\s+", " ", name), _TYPES.get(name.removesuffix("_t")))
        if code is not None:
            return code + "*" * bool(pointer)
        name = name.rpartition(" ")[0]
    _refuse_signature(f"{text!r} has {piece.strip()!r}, which is no type of numbers")


def _refuse_signature(what: str) -> NoReturn:
    complain(errors.ArgumentError, what, _HOW)


def examples(
    signature: Signature, arity: int | None, size: int | None, data: ShapeDtype | None
) -> tuple[Any, ...]:
    """What the function is traced with."""
    plain = signature.plain
    more = () if data is None else (data,)
    if data is not None and (plain == signature.arguments or not isinstance(data, ShapeDtype)):
        _refuse_signature(
            f"`data` is a jt.ShapeDtype of what a void * at the end of {signature.text!r} is"
        )
    if not any(code.endswith("*") for code in plain):
        if size is not None:
            _refuse_signature(f"{signature.text!r} has no array that could have a `size`")
        return (*(np.dtype(code).type(0) for code in plain), *more)
    of = next(code for code in plain if code.endswith("*"))[:-1]
    if plain[0] == "i4" and plain[1:] == (f"{of}*",) and size is None:
        if arity is None:
            _refuse_signature("the function does not say how many arguments it has: give a `size`")
        return (*(np.dtype(of).type(0) for _ in range(arity - len(more))), *more)
    counted = (plain == ("i4", f"{of}*"), plain == (f"{of}*", "i8", f"{of}*"))
    if not any(counted) and plain != (f"{of}*", "i8", f"{of}*", "i8"):
        _refuse_signature(f"{signature.text!r} is none of the signatures that are known")
    if type(size) is not int or size < 0:
        _refuse_signature(f"{signature.text!r} has an array: how long it is says `size`")
    return (ShapeDtype((size,), np.dtype(of)), *more)


class CFunction:
    """A native function: `address`, `ctypes` (a function of ctypes, with its types), `signature`.

    Calling it calls the native function with numbers. It lives as long as this, or `ctypes`, does.
    """

    def __init__(self, signature: Signature, library: Any) -> None:
        self.signature = signature.text
        self.address: int = library.address(_SYMBOL)
        self.ctypes: Any = _prototype(signature)(self.address)
        self.ctypes.library = library  # which SciPy keeps with it

    def __call__(self, *args: Any) -> Any:
        return self.ctypes(*args)

    def __repr__(self) -> str:
        return f"<jitney.cfunc {self.signature} at {self.address:#x}>"


def _prototype(signature: Signature) -> Any:
    def of(code: str) -> Any:
        if code == "v*":
            return ctypes.c_void_p
        own = _IN_CTYPES[code.removesuffix("*")]
        return ctypes.POINTER(own) if code.endswith("*") else own

    return ctypes.CFUNCTYPE(of(signature.result), *map(of, signature.arguments))


def cfunc(alone: Alone, signature: Signature, size: int | None) -> CFunction:
    """The native function of a call that was traced with `examples`."""
    text = c_text(alone, signature, size)
    code = machine_code(alone, text, process_target())
    foreign = [name for name in code.imports if ":" in name]
    if foreign:
        alone.refuse("calls NumPy's linear algebra", "compute it before, in Python")
    return CFunction(signature, load_code(code, [_SYMBOL]))


def c_text(alone: Alone, signature: Signature, size: int | None) -> str:
    """The LLVM text of the function."""
    module, traced = alone.compile(process_target())
    if traced.mutated or traced.overwritten:
        alone.refuse("assigns to an argument", "return the result")
    if module.arena_bytes > STACK:
        alone.refuse(
            f"needs {module.arena_bytes:,} bytes for arrays on the way, more than a stack has",
            "use smaller arrays, or jt.export(...).save_c for a library that allocates",
        )
    if {"malloc", "realloc", "calloc"} & set(_declared(module)):
        alone.refuse("has lists, dicts or sets that grow", "use arrays of a known size")
    if any(not isinstance(spec, Spec) for spec in alone.specs):
        alone.refuse("compiles in one of its numbers", "make a function with the number in it")
    inputs, counts = _inputs(alone, signature, size)
    outputs, returned = _outputs(alone, signature, module, len(inputs), counts)
    parameters = ["ptr" if c.endswith("*") else _llvm(c) for c in signature.arguments]
    return c_function(module, _SYMBOL, parameters, inputs, outputs, returned)


def _inputs(
    alone: Alone, signature: Signature, size: int | None
) -> tuple[list[Place], tuple[tuple[int, str, int], ...]]:
    plain = signature.plain
    outside: list[Place] = [Constant.of(a, strides) for a, strides in alone.outside]
    count = len(alone.explicit)
    own: list[Place]
    counts: tuple[tuple[int, str, int], ...] = ()
    if not any(code.endswith("*") for code in plain):
        own = [ByValue(k, _llvm(code)) for k, code in enumerate(plain)]
    elif plain[0] == "i4" and size is None:
        width = int(plain[1][1:-1])
        given = count - (count > 0 and _takes_data(alone, signature))
        own = [Parameter(1, width * k) for k in range(given)]
        counts = ((0, "i32", given),)
    elif plain[0] == "i4":
        own, counts = [Parameter(1)], ((0, "i32", size or 0),)
    else:
        own, counts = [Parameter(0)], ((1, "i64", size or 0),)
    if len(own) < count:
        own.append(Parameter(len(signature.arguments) - 1))  # of `data`
    return own + outside, counts


def _takes_data(alone: Alone, signature: Signature) -> bool:
    last = alone.specs[-1]
    return signature.plain != signature.arguments and isinstance(last, Spec) and not last.scalar


def _outputs(
    alone: Alone,
    signature: Signature,
    module: NativeModule,
    first: int,
    counts: tuple[tuple[int, str, int], ...],
) -> tuple[list[Place], Returned]:
    stores = signature.result == "i4" and signature.plain[1:2] == ("i8",)
    (result,) = alone.traced.results if len(alone.traced.results) == 1 else (None,)
    if result is None or alone.result != ["leaf", 0]:
        alone.refuse("returns a container", "return a number")
    if result.output is None and result.argument is None:
        alone.refuse(
            f"returns {result.static!r} whatever it is given", "return a number of NumPy's"
        )
    wanted = signature.plain[2][:-1] if stores else signature.result
    place = first if result.output is not None else result.argument or 0
    type: TensorType = module.outputs[0] if result.output is not None else module.inputs[place]
    lines = len(signature.plain) == 4
    if type.dtype != np.dtype(wanted) or (len(type.shape) if not lines else len(type.shape) - 1):
        alone.refuse(
            f"returns {type}, which is not what {signature.text!r} says",
            "return a number of that type, float(...) or np.float64(...)",
        )
    if not stores and np.dtype(wanted).kind != "f" and module.errors:
        site = module.errors[0]
        alone.refuse(
            f"can fail ({site.kind}: {site.message} at {site.loc}), and an integer has no sign of it",
            "return a float, which is NaN then, or leave out what can fail",
        )
    if not stores:
        space: list[Place] = [Slot(8)] if result.output is not None else []
        return space, Returned(_llvm(wanted), value=place, counts=counts)
    if lines:
        counts = (*counts, (3, "i64", type.shape[0]))
    if result.output is None:
        alone.refuse("returns its argument as it is", "return a copy, x + 0")
    return [Parameter(2)], Returned(told=True, counts=counts)


def _llvm(code: str) -> str:
    return _IN_LLVM.get(code) or f"i{8 * int(code[1:])}"


def _declared(module: NativeModule) -> list[str]:
    return re.findall(r"^declare [^\n]*@([\w.]+)\(", module.text, re.M)
