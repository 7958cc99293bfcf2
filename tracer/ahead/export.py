"""`jt.export`: a function as a file, or a library for C, that needs neither source nor compiler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..data.pytree import tree_map
from ..export.exported import Exported
from ..jit.decorator import unbound
from ..jit.specialise import alone
from ..messages.tracebacks import shortened
from .shapes import bare


@shortened
def export(
    function: Callable[..., Any],
    *args: Any,
    cpus: str | Sequence[str] | None = None,
    **kwargs: Any,
) -> Exported:
    """The function, compiled for calls like this one: `.save(path)` writes a file for
    `jt.load_exported`, `.save_c(folder)` a header and a library for C.

    Arguments are arrays, `jt.ShapeDtype`s, numbers, and tuples, lists, dicts and namedtuples of them.
    What the function reads from outside is in the file as it is now: `jt.export(lambda x: model(x), x)`.
    The same holds of numbers that are static. Arrays that would be views of arguments are new ones.

    `cpus` are names of what code is for: "x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64", which need
    not run here, and "native", this CPU and those like it. By default the levels of this machine's kind.

    Raises ExportError for functions that change what is outside, draw from generators of NumPy's, call
    Python, or take and return objects; ArgumentError for other CPUs; what tracing raises.

    >>> exported = export(lambda x: (x * x).sum(), jt.ShapeDtype(8), cpus="x86-64-v3")
    >>> exported.name, exported.cpus
    ('<lambda>', ('x86-64-v3',))
    """
    compiled, args = unbound(function, args)
    args, kwargs = tree_map(bare, (args, kwargs))
    made = compiled._looked_at(alone, args, kwargs)
    return Exported(made, (cpus,) if isinstance(cpus, str) else cpus)
