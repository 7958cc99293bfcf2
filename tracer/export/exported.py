"""What `jt.export` gives: a compiled function that can be saved, for this library or for C."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ...codegen.target import Target
from ...ir.types import type_of
from ...ir.version import __version__
from ...runtime.portable.format import Pieces
from ...runtime.portable.levels import CPUS, NATIVE, default_cpus, identity, target_for
from ...runtime.portable.programs import Program, packed, portable_imports
from ..core.specs import Spec, Static
from ..core.traced import Result
from ..messages import errors
from ..messages.errors import complain
from .alone import Alone, machine_code, plain_static
from .c_functions import save_c

_POOLED = (Target.PARALLEL_FOR, Target.WATCHED_FOR)


class Exported:
    """A function of arrays of certain shapes, compiled for one CPU or several.

    `name`, `cpus`, `graph` (its text); `save(path)` for `jt.load_exported`, `save_c(folder)` for C.
    """

    def __init__(self, alone: Alone, cpus: Sequence[str] | None) -> None:
        self._alone = alone
        self.name = alone.name
        self.cpus = known_cpus(cpus)
        self.graph = str(alone.graph)
        self._pieces = Pieces()
        self._programs = [self._program(cpu) for cpu in self.cpus]
        self.data = self._pieces.file(self._header())

    def _program(self, cpu: str) -> dict[str, Any]:
        alone, target = self._alone, target_for(cpu)
        module, traced = alone.compile(target)
        refused = portable_imports(module.imports)
        if refused:
            alone.refuse(f"needs {refused[0]!r}, which is of this process", "leave it out")
        pool = None
        if not module.imports.isdisjoint(_POOLED):
            from ...runtime.threads.pool_ir import pool_ir

            pool = machine_code(alone, pool_ir(target), target)
        image = machine_code(alone, module.text, target)
        own = identity() if cpu == NATIVE else ""
        return {
            **packed(Program(cpu, own, target, module, image, pool), self._pieces),
            "results": [self._result(result) for result in traced.results],
            "mutated": list(traced.mutated),
            "overwritten": list(traced.overwritten),
        }

    def _result(self, result: Result) -> list[Any]:
        if result.output is not None:
            return ["output", result.output, result.weak is not None, result.scalar]
        if result.argument is not None:
            return ["argument", result.argument]
        if not plain_static(result):
            kind = type(result.static).__name__
            self._alone.refuse(f"returns a {kind} that it was not given", "return arrays")
        return ["static", encoded(result.static)]

    def _header(self) -> dict[str, Any]:
        alone = self._alone
        arrays = [
            [str(type_of(a)), self._pieces.add(np.ascontiguousarray(a).tobytes())]
            for a in alone.arrays
        ]
        return {
            "jitney": __version__,
            "name": alone.name,
            "graph": self.graph,
            "parameters": list(alone.parameters),
            "ordered": list(alone.ordered),
            "inputs": alone.inputs,
            "result": alone.result,
            "leaves": [
                _leaf(spec, name) for spec, name in zip(alone.specs, alone.names, strict=True)
            ],
            "arrays": arrays,
            "programs": self._programs,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file, whole or not at all."""
        folder = os.path.dirname(os.path.abspath(path))
        handle, temporary = tempfile.mkstemp(dir=folder, suffix=".tmp")
        try:
            with open(handle, "wb") as file:
                file.write(self.data)
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(temporary, 0o666 & ~umask)
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise

    def save_c(
        self,
        folder: str | os.PathLike[str],
        name: str | None = None,
        cpu: str | None = None,
        others: Mapping[str, Exported] | None = None,
    ) -> tuple[str, str]:
        """Write a header, NAME.h, and a shared object, libNAME.so, that needs neither Python nor jitney;
        gives their paths. `cpu` is by default the least of `cpus`; `others` are functions that are in
        the library, too, by name: gradients, say.

        Raises ExportError for what C cannot call: NumPy's eigenvalues and factors, layouts.
        """
        chosen = self.cpus[-1] if cpu is None else known_cpus([cpu])[0]
        functions = {self.name if name is None else name: self, **(others or {})}
        return save_c({key: f._alone for key, f in functions.items()}, folder, chosen)

    def __repr__(self) -> str:
        size = f"{len(self.data):,} bytes"
        return f"<jitney.Exported {self.name} for {', '.join(self.cpus)}: {size}>"


def known_cpus(cpus: Sequence[str] | None) -> tuple[str, ...]:
    """The names of CPUs, in the order in which they are tried: the highest first."""
    if cpus is None:
        return default_cpus()
    wanted = (cpus,) if isinstance(cpus, str) else tuple(cpus)
    for cpu in wanted:
        if cpu not in CPUS:
            complain(
                errors.ArgumentError,
                f"code cannot be exported for {cpu!r}",
                f"choose among {', '.join(map(repr, CPUS))}.",
            )
    if not wanted:
        complain(errors.ArgumentError, "cpus is empty", "name one, cpus=['x86-64-v3'].")
    return tuple(sorted(set(wanted), key=(NATIVE, *CPUS).index))


def _leaf(spec: Any, name: str) -> list[Any]:
    if isinstance(spec, Spec):
        return ["traced", name, str(spec.type), spec.weak, spec.scalar]
    assert isinstance(spec, Static)
    return ["static", name, encoded(spec.value)]


def encoded(value: Any) -> list[Any]:
    """A number, a text or None, with every bit."""
    kind = type(value).__name__
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return [kind, value]
    if isinstance(value, int):
        return [kind, hex(value)]
    if isinstance(value, float):
        return [kind, value.hex()]
    return [kind, value.real.hex(), value.imag.hex()]
