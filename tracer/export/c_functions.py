"""Exported functions as a C library: a header, and a shared object that needs neither Python nor us."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...codegen.module import NativeModule
from ...codegen.target import Target
from ...ir.record import record
from ...ir.types import TensorType, dtype_name
from ...ir.version import __version__
from ...runtime.native.image import Image
from ...runtime.portable.c_entry import (
    NO_MEMORY,
    ByValue,
    Constant,
    Parameter,
    Place,
    Returned,
    Slot,
    c_function,
)
from ...runtime.portable.levels import target_for
from ...runtime.portable.shared_object import MACHINES, shared_object
from ..core.specs import Spec
from .alone import Alone, machine_code
from .trees import paths

_WORDS = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline "
    "int long register restrict return short signed sizeof static struct switch typedef union unsigned "
    "void volatile while bool true false class new delete this template namespace operator".split()
)
_C_TYPES = {
    "f64": "double", "f32": "float", "bool": "bool", "i8": "int8_t", "i16": "int16_t",
    "i32": "int32_t", "i64": "int64_t", "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t",
    "u64": "uint64_t", "c128": "double", "c64": "float",
}  # fmt: skip
_MOST_CONSTANTS = 64 << 20  # bytes: they are text on the way
_IN_LLVM = {"f64": "double", "f32": "float"}


@record
class _Argument:
    """A parameter in C: its declaration, and its type for LLVM."""

    text: str
    llvm: str


@record
class CFunctionText:
    """A function for the header, and its image with what that calls it."""

    name: str
    prototype: str
    remarks: tuple[str, ...]
    image: Image


def c_library(functions: Mapping[str, Alone], cpu: str) -> tuple[str, bytes]:
    """The header and the shared object of functions by name. Raises ExportError."""
    target = target_for(cpu)
    made = [_made(name, alone, target) for name, alone in functions.items()]
    library = next(iter(functions))
    machine = MACHINES["aarch64" if target.triple.startswith("aarch64") else "x86_64"]
    exports = [{f.name: f.name, f"{f.name}_error": f"{f.name}_error"} for f in made]
    try:
        code = shared_object(f"lib{library}.so", [f.image for f in made], exports, machine)
    except ValueError as error:
        functions[library].refuse(
            f"has machine code that no library takes ({error})", "report this"
        )
    return _header(library, made, cpu), code


def save_c(functions: Mapping[str, Alone], folder: Any, cpu: str) -> tuple[str, str]:
    """Write NAME.h and libNAME.so, NAME being that of the first function; gives the two paths."""
    for name in functions:
        if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) or name in _WORDS:
            next(iter(functions.values())).refuse(
                f"would be called {name!r}, which is no name in C", "give another `name`"
            )
    header, code = c_library(functions, cpu)
    first = next(iter(functions))
    os.makedirs(folder, exist_ok=True)
    written = os.path.join(folder, f"{first}.h"), os.path.join(folder, f"lib{first}.so")
    for path, content in zip(written, (header.encode(), code), strict=True):
        with open(path, "wb") as file:
            file.write(content)
    return written


def _made(name: str, alone: Alone, target: Target) -> CFunctionText:
    module, traced = alone.compile(target)
    written = {*traced.mutated, *traced.overwritten}
    arguments: list[_Argument] = []
    inputs: list[Place] = []
    taken: set[str] = set()
    for k, leaf in enumerate(alone.explicit):
        spec, type = alone.specs[leaf], module.inputs[k]
        assert isinstance(spec, Spec)
        if spec.strides is not None:
            alone.refuse(
                f"takes `{alone.names[leaf]}` in the layout {list(spec.strides)}",
                "export it for C-contiguous arrays, np.ascontiguousarray(x)",
            )
        called = _c_name(alone.names[leaf], taken)
        by_value = not type.shape and k not in written and type.dtype.kind in "biuf"
        by_value = by_value and dtype_name(type.dtype) in _C_TYPES
        place: Place = Parameter(len(arguments))
        if by_value:
            place = ByValue(len(arguments), _llvm(type))
        inputs.append(place)
        arguments.append(_argument(type, called, by_value, k in written))
    if sum(a.nbytes for a in alone.arrays) > _MOST_CONSTANTS:
        alone.refuse(
            f"reads arrays from outside of more than {_MOST_CONSTANTS >> 20} MiB",
            "take them as arguments, which the C program reads from where they are",
        )
    inputs += [Constant.of(a, strides) for a, strides in alone.outside]
    outputs = _outputs(alone, module, traced, arguments, inputs, taken)
    parameters = [a.llvm for a in arguments]
    text = c_function(module, name, parameters, inputs, outputs, Returned())
    image = machine_code(alone, text + _errors(name, module), target)
    foreign = [symbol for symbol in image.imports if ":" in symbol]
    if foreign:
        alone.refuse(
            "calls NumPy's linear algebra, which C programs have not",
            "leave it to the caller: eigenvalues, svd and qr are computed by NumPy",
        )
    prototype = f"int {name}({', '.join(a.text for a in arguments) or 'void'});"
    return CFunctionText(name, prototype, tuple(_remarks(alone, traced)), image)


def _outputs(
    alone: Alone,
    module: NativeModule,
    traced: Any,
    arguments: list[_Argument],
    inputs: Sequence[Place],
    taken: set[str],
) -> list[Place]:
    """A parameter for each array that is returned; what arguments become is copied there afterwards."""
    first = len(module.outputs) - len(traced.mutated)
    places: dict[int, Place] = {}
    for path, leaf in paths(alone.result, "out"):
        output = traced.results[leaf].output
        if output is not None and output not in places:
            places[output] = Parameter(len(arguments))
            called = _c_name(path, taken)
            arguments.append(_argument(module.outputs[output], called, False, True))
    for k, parameter in enumerate(traced.mutated, first):
        place = inputs[parameter]
        assert isinstance(place, Parameter)
        places[k] = Slot(module.outputs[k].nbytes, place.number)
    return [places[k] for k in range(len(module.outputs))]


def _argument(type: TensorType, name: str, by_value: bool, written: bool) -> _Argument:
    kind = _C_TYPES.get(dtype_name(type.dtype)) or f"uint{8 * type.dtype.itemsize}_t"
    if by_value:
        return _Argument(f"{kind} {name}", _llvm(type))
    return _Argument(f"{'' if written else 'const '}{kind} *{name}", "ptr")


def _llvm(type: TensorType) -> str:
    return _IN_LLVM.get(dtype_name(type.dtype)) or f"i{8 * type.dtype.itemsize}"


def _c_name(path: str, taken: set[str]) -> str:
    name = re.sub(r"\W+", "_", path, flags=re.ASCII).strip("_") or "x"
    name = f"_{name}" if name[0].isdigit() else f"{name}_" if name in _WORDS else name
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _errors(name: str, module: NativeModule) -> str:
    """A function from what a call gives to what that means."""
    texts = {0: "no error", NO_MEMORY: "out of memory"}
    for k, site in enumerate(module.errors, 1):
        where = f" ({site.loc})" if site.loc is not None else ""
        message = re.sub(r"\{\d*\}", "?", site.message)
        kind = {"index": "IndexError", "assert": "AssertionError", "value": "ValueError"}
        texts[k] = f"{kind.get(site.kind, site.kind)}: {message}{where}"
    lines, before = [], f"@{name}_unknown"
    constants = [_text(before, "unknown error")]
    for k, (code, text) in enumerate(texts.items()):
        constants.append(_text(f"@{name}_message_{k}", text))
        lines.append(f"  %is{k} = icmp eq i32 %code, {code}")
        lines.append(f"  %m{k} = select i1 %is{k}, ptr @{name}_message_{k}, ptr {before}")
        before = f"%m{k}"
    head = f"define ptr @{name}_error(i32 %code) nounwind {{"
    return "\n".join([*constants, head, *lines, f"  ret ptr {before}", "}", ""])


def _text(name: str, text: str) -> str:
    octets = text.encode() + b"\0"
    content = "".join(f"\\{byte:02x}" for byte in octets)
    return f'{name} = internal constant [{len(octets)} x i8] c"{content}"'


def _remarks(alone: Alone, traced: Any) -> list[str]:
    params, outputs = alone.graph.params, alone.graph.outputs
    takes = [f"{alone.names[leaf]}: {params[k].type}" for k, leaf in enumerate(alone.explicit)]
    gives = []
    for path, leaf in paths(alone.result, "out"):
        result = alone.traced.results[leaf]
        if result.output is not None:
            gives.append(f"{path}: {outputs[result.output].type}")
        elif result.argument is not None:
            gives.append(f"{path}: the argument {alone.names[alone.explicit[result.argument]]}")
        else:
            gives.append(f"{path} = {result.static!r}")
    remarks = [f"({', '.join(takes)}) -> {', '.join(gives) or 'nothing'}"]
    for p in dict.fromkeys((*traced.mutated, *traced.overwritten)):
        remarks.append(f"{alone.names[alone.explicit[p]]} is changed in place.")
    for leaf, spec in enumerate(alone.specs):
        if not isinstance(spec, Spec):
            value = getattr(spec, "value", None)
            remarks.append(f"{alone.names[leaf]} is {value!r}, which is compiled in.")
    if any(str(v.type).startswith("c") for v in (*params, *outputs)):
        remarks.append("Complex numbers are their real and imaginary parts, one after the other.")
    return [remark.replace("*/", "* /") for remark in remarks]


def _header(library: str, functions: Sequence[CFunctionText], cpu: str) -> str:
    guard = f"{library.upper()}_H"
    lines = [
        f"/* Made by jitney {__version__}, for {cpu}. Link with -l{library}.",
        "",
        "   Functions give 0, or a number that NAME_error turns into words; results mean nothing then.",
        "   Arrays are C-contiguous and aligned to their elements. Results must not overlap arguments",
        "   or each other. Functions may be called from several threads at a time. */",
        "",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <stdbool.h>",
        "#include <stdint.h>",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
    ]
    for f in functions:
        first, *others = f.remarks
        lines.append(f"/* {f.name}{first}")
        lines += [f"   {remark}" for remark in others]
        lines[-1] += " */"
        lines += [f.prototype, f"const char *{f.name}_error(int code);", ""]
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""])
