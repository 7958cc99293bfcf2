"""`python -m jitney export`: functions of a module as files, or as libraries for C."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

from ...ir.types import TensorType, parse_type
from ...runtime.portable.levels import CPUS
from ..data.shapes import ShapeDtype
from ..messages.errors import JitneyError
from ..transforms.gradients import value_and_grad
from .export import export

_NUMBERS: dict[str, Any] = {"float": 1.0, "int": 1, "complex": 1j}


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    made = argparse.ArgumentParser(
        prog="python -m jitney export",
        description="Compile a function for arguments of certain types and write it to a file, "
        "for jt.load_exported, or with --c to a header and a shared object.",
    )
    made.add_argument("function", help="module:function; the module is looked for here, too")
    made.add_argument(
        "arguments",
        nargs="*",
        help="one for each parameter, or name=...: f64[3,4] and its like for arrays, "
        "float, int, complex (or one: 3) for numbers, which are compiled in where shapes need them, as "
        "True and 'text' are",
    )
    made.add_argument("--c", action="store_true", help="write NAME.h and libNAME.so")
    made.add_argument("-o", "--output", help="file, or with --c folder (NAME.jitney; here)")
    made.add_argument("--name", help="of the function in C, and of the files")
    made.add_argument(
        "--cpu", action="append", choices=CPUS, help="what code is for; several times"
    )
    made.add_argument(
        "--grad",
        metavar="N",
        help="with --c: a function NAME_grad, too, with the value and the derivatives with respect to "
        "these arguments (0, or 0,2)",
    )
    return made


def run(argv: Sequence[str]) -> int:
    """Run the command and give its exit status."""
    options = parser().parse_args(list(argv))
    try:
        function = _found(options.function)
        pairs = [_argument(text) for text in options.arguments]
        args = [value for name, value in pairs if not name]
        kwargs = {name: value for name, value in pairs if name}
        if options.grad and not options.c:
            raise ValueError("--grad is for --c: export jt.value_and_grad(f) from Python")
        exported = export(function, *args, cpus=options.cpu, **kwargs)
        name = options.name or exported.name
        if options.c:
            others = {}
            if options.grad:
                numbers = tuple(int(n) for n in options.grad.split(","))
                wanted = numbers if len(numbers) > 1 else numbers[0]
                made = value_and_grad(function, wanted)
                others[f"{name}_grad"] = export(made, *args, cpus=options.cpu, **kwargs)
            written: tuple[str, ...] = exported.save_c(options.output or ".", name, others=others)
        else:
            path = options.output or f"{name}.jitney"
            exported.save(path)
            written = (path,)
    except (JitneyError, ValueError, TypeError, ImportError, AttributeError, OSError) as error:
        print(f"jitney: {error}", file=sys.stderr)
        return 1
    for path in written:
        print(f"{path}: {os.path.getsize(path):,} bytes")
    return 0


def _found(text: str) -> Any:
    module, colon, name = text.partition(":")
    if not colon:
        raise ValueError(f"{text!r} is no module:function")
    sys.path.insert(0, os.getcwd())
    value: Any = importlib.import_module(module)
    for part in name.split("."):
        value = getattr(value, part)
    return value


def _argument(text: str) -> tuple[str, Any]:
    """The name, if there is one, and what stands for the argument."""
    name, equals, rest = text.partition("=")
    if equals and name.isidentifier():
        return name, _argument(rest)[1]
    if text in _NUMBERS:
        return "", _NUMBERS[text]
    if text[:1] in "'\"" and text[-1:] == text[:1] and len(text) > 1:
        return "", text[1:-1]
    for kind in (int, float, complex):
        try:
            return "", kind(text)
        except ValueError:
            pass
    if text in ("True", "False"):
        return "", text == "True"
    type = parse_type(text)
    if not isinstance(type, TensorType):
        raise ValueError(f"{text!r} is no array")
    return "", ShapeDtype(type.shape, type.dtype)
