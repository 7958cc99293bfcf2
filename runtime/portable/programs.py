"""Compiled functions as a file has them, and back: code, how it is called, what its errors mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...codegen.module import ErrorSite, NativeModule
from ...codegen.target import Target
from ...ir.graph import SourceLine
from ...ir.record import record
from ...ir.types import DTYPE_NAMES, TensorType, dtype_name, parse_type
from ..call.callable import calls_at_hand
from ..executable import Executable, exceptions_of_users, runtime_imports
from ..native.image import Image
from ..native.support import provide
from ..threads.pool import POOL_EXPORTS
from .format import Field, Pieces
from .images import packed_image, read_image
from .layouts import spread

_MOST_BYTES = 1 << 40  # of what a call takes or allocates
_KINDS = ("index", "assert", "value", "memory", "linalg")


@record(eq=False)
class Program:
    """A module that is compiled for a CPU: of a level by name, or of those like one (`identity`)."""

    cpu: str
    identity: str
    target: Target
    module: NativeModule
    image: Image
    pool: Image | None = None  # the thread pool, of code that shares out its work


def packed(program: Program, pieces: Pieces) -> dict[str, Any]:
    """The program as plain data."""
    module, target = program.module, program.target
    return {
        "cpu": program.cpu,
        "identity": program.identity,
        "target": [target.triple, target.cpu, target.features, target.vector_bits],
        "entry": module.entry,
        "inputs": _types(module.inputs),
        "strides": [list(strides) for strides in module.input_strides],
        "outputs": _types(module.outputs),
        "arena": module.arena_bytes,
        "work": module.work,
        "in_place": [list(pair) for pair in module.in_place],
        "imports": sorted(module.imports),
        "errors": [_site(site) for site in module.errors],
        "image": packed_image(program.image, [module.entry], pieces),
        "pool": None if program.pool is None else packed_image(program.pool, POOL_EXPORTS, pieces),
    }


def unpacked(field: Field) -> Program:
    """The program again. Raises FormatError."""
    words = list(field["target"].items())
    if len(words) != 4:
        raise field["target"].wrong("is no target")
    triple, cpu, features = (word.of(str) for word in words[:3])
    bits = words[3].checked(lambda bits: Target(triple, cpu, features, bits)).vector_bits
    inputs, outputs = (_read_types(field[name]) for name in ("inputs", "outputs"))
    strides = [tuple(item.items_of(int)) for item in field["strides"].items()]
    if [len(s) for s in strides] != [len(t.shape) for t in inputs]:
        raise field["strides"].wrong("does not fit the inputs")
    layouts = zip(inputs, strides, strict=True)
    if any(spread(t.shape, s) * t.dtype.itemsize > _MOST_BYTES for t, s in layouts):
        raise field["strides"].wrong("reaches beyond memory")
    pairs = [tuple(item.items_of(int)) for item in field["in_place"].items()]
    if not all(len(p) == 2 and p[0] >= 0 and 0 <= p[1] < len(inputs) for p in pairs):
        raise field["in_place"].wrong("has no such arguments")
    imports = field["imports"].items_of(str)
    for name in imports:
        _check_import(field["imports"], name)
    module = NativeModule(
        text="",
        entry=field["entry"].of(str),
        inputs=inputs,
        input_strides=strides,
        outputs=outputs,
        arena_bytes=field["arena"].number(0, _MOST_BYTES),
        imports=set(imports),
        errors=[_read_site(item) for item in field["errors"].items()],
        in_place=[(a, b) for a, b in pairs],
        work=field["work"].or_none(int),
    )
    target = Target(triple, cpu, features, bits)
    image = read_image(field["image"])
    if module.entry not in image.exports:
        raise field["entry"].wrong("is not in the code")
    for name in image.imports:
        if ":" in name or name.startswith("jitney"):
            _check_import(field["image"], name)
            if name not in module.imports:
                raise field["image"].wrong(f"has {name!r}, which is not imported")
    pool = None if field["pool"].value is None else read_image(field["pool"])
    return Program(field["cpu"].of(str), field["identity"].of(str), target, module, image, pool)


def _types(types: Sequence[TensorType]) -> list[str]:
    return [str(type) for type in types]


def _read_types(field: Field) -> list[TensorType]:
    def read(text: Any) -> TensorType:
        type = parse_type(text)
        if not isinstance(type, TensorType) or min(type.shape, default=0) < 0:
            raise ValueError("no array")
        if math.prod(type.shape) > _MOST_BYTES:
            raise ValueError("larger than memory")
        return type

    return [item.checked(read) for item in field.items()]


def _site(site: ErrorSite) -> list[Any]:
    loc = site.loc and [site.loc.file, site.loc.line, site.loc.function]
    return [site.kind, site.message, list(site.values), loc]


def _read_site(field: Field) -> ErrorSite:
    parts = list(field.items())
    if len(parts) != 4:
        raise field.wrong("is no error")
    kind, message, values = parts[0].of(str), parts[1].of(str), tuple(parts[2].items_of(str))
    if kind not in (*_KINDS, *exceptions_of_users()) or not all(v in DTYPE_NAMES for v in values):
        raise field.wrong("is of no kind that there is")
    if len(values) > 8:
        raise field.wrong("tells more than there is room for")
    dtypes = values or (("i64", "i64") if kind == "index" else ())
    if dtypes:
        # Only what stands between braces by its number: a format could reach into its values.
        fits = parts[1].checked(lambda text: _plain_format(text, len(dtypes)))
        if not fits:
            raise field.wrong("has a message with other values")
    loc = None
    if parts[3].value is not None:
        place = list(parts[3].items())
        if len(place) != 3:
            raise field.wrong("has no line")
        line = place[1].number(0, 1 << 31)
        loc = SourceLine(place[0].of(str), line, place[2].of(str))
    return ErrorSite(kind, message, loc, values)


def _plain_format(text: str, count: int) -> bool:
    from string import Formatter

    fields = [
        (name, spec, turn) for _, name, spec, turn in Formatter().parse(text) if name is not None
    ]
    return (
        all(
            (name == "" or (name.isdigit() and int(name) < count))
            and not spec
            and turn in (None, "r")
            for name, spec, turn in fields
        )
        and sum(name == "" for name, _, _ in fields) <= count
    )


_RUNTIME = (Target.PARALLEL_FOR, Target.WATCHED_FOR, *Target.PYTHON_SYMBOLS)
_LOOPS = "numpy.linalg._umath_linalg", "numpy.fft._pocketfft_umath"


def _check_import(field: Field, name: str) -> None:
    """What the runtime is asked for: a closed list, and loops of NumPy's two libraries."""
    kind, _, rest = name.partition(":")
    loops = kind in (Target.LOOP, Target.LOOP_DATA) and rest.partition(":")[0] in _LOOPS
    blas = kind == Target.BLAS and rest in ("get", "set", "words")
    if not (name in _RUNTIME or (loops and rest.count(":") == 2) or blas):
        raise field.wrong(f"wants {name!r}, which exported functions may not have")


def portable_imports(names: set[str]) -> list[str]:
    """Those of the names that a file may not have."""
    refused = []
    for name in sorted(names):
        try:
            _check_import(Field(None, "", "", ()), name)
        except ValueError:
            refused.append(name)
    return refused


class LoadedProgram(Executable):
    """A program of a file, which was chosen for this CPU."""

    def _runs(self, target: Target) -> bool:
        return True


class _PlainProgram(LoadedProgram):
    """One that is called by ctypes, where the code of native calls, which LLVM makes, is not at hand."""

    def __new__(cls, *args: Any, **options: Any) -> Any:
        return object.__new__(cls)


def load(program: Program, pool: bool) -> LoadedProgram:
    """Put a program into this process; with its `pool`, where that is of this version."""
    if program.pool is not None and pool:
        provide("pool", program.pool)
    kind = LoadedProgram if calls_at_hand() else _PlainProgram
    return kind(program.module, program.target, program.image)


def missing_imports(names: set[str]) -> str:
    """Why the runtime has not what these names ask for; "" if it has."""
    try:
        runtime_imports({name for name in names if ":" in name})
    except (RuntimeError, ImportError, AttributeError) as error:
        return str(error)
    return ""


def type_text(array: np.ndarray[Any, Any]) -> str:
    """`f64[3,4]`."""
    return f"{dtype_name(array.dtype)}{list(array.shape)}"
