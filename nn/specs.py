"""What a model is made of: `init` fills in sizes without a batch, `summary` shows shapes and costs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

import jitney as jt

from .module import Module, modules, unbuilt

M = TypeVar("M", bound=Module)


def init(module: M, *specs: Any) -> M:
    """Let a module make its parameters, for inputs of these shapes. Returns the module.

    Each of the `specs` stands for an argument: a `jt.ShapeDtype`, an array, a shape (of float32), or a
    list, tuple or dict of these. The module is called once with zeros, in evaluation; state that
    was there before stays as it was.

    Raises jt.errors.ArgumentError if something in the module is left without parameters, with its path.

    >>> jt.nn.init(jt.nn.Linear(3), (1, 2)).w.shape
    (2, 3)
    """
    with _in_evaluation(module):
        module(*map(_zeros, specs))
    missing = unbuilt(module)
    if missing:
        jt.errors.complain(
            jt.errors.ArgumentError,
            f"after a call of this {type(module).__name__} nothing has built {', '.join(missing)}",
            "call what the module itself does not call, or give the sizes of its inputs.",
        )
    return module


@contextmanager
def _in_evaluation(module: Module) -> Iterator[None]:
    """The module in evaluation; afterwards in its mode, with its arrays as they were."""
    modes = [(m, dict(vars(m))) for _, m in modules(module)]
    before = [(array, array.copy()) for array in jt.tree.leaves(module)]
    module.eval()
    try:
        yield
    finally:
        for m, held in modes:
            vars(m).pop("training", None)
            if "training" in held:
                m.training = held["training"]
        for array, elements in before:
            array[...] = elements


def _zeros(spec: Any) -> Any:
    if isinstance(spec, (tuple, list)) and all(isinstance(n, (int, np.integer)) for n in spec):
        return np.zeros(spec, np.float32)
    if isinstance(spec, (list, tuple, dict)):
        items = spec.items() if isinstance(spec, dict) else enumerate(spec)
        made = {key: _zeros(item) for key, item in items}
        return made if isinstance(spec, dict) else type(spec)(made.values())
    return np.zeros(spec.shape, spec.dtype) if hasattr(spec, "shape") else spec


@dataclass
class Row:
    """A module of a summary: its path and class, what it gives, and what it holds and costs by itself,
    without the modules in it: elements that are trained, others, bytes; and flops of a call, with those
    of the modules in it (None if not asked for)."""

    path: str
    kind: str
    shapes: str = ""
    trained: int = 0
    fixed: int = 0
    bytes: int = 0
    flops: float | None = None
    calls: int = 0


@dataclass
class Summary:
    """The rows of a model, from the outside in; `print` shows them as a table.

    `trained` and `fixed` are the elements of all arrays, each counted once, `bytes` their bytes.
    """

    rows: list[Row] = field(default_factory=list)

    @property
    def trained(self) -> int:
        """Elements that are trained."""
        return sum(row.trained for row in self.rows)

    @property
    def fixed(self) -> int:
        """Elements of other arrays."""
        return sum(row.fixed for row in self.rows)

    @property
    def bytes(self) -> int:
        """Bytes of all arrays."""
        return sum(row.bytes for row in self.rows)

    def __str__(self) -> str:
        head = ["path", "module", "gives", "trained", "other", "bytes", "flops"]
        rows = [head, *map(_cells, self.rows)]
        rows.append(["", "", "", f"{self.trained:,}", f"{self.fixed:,}", f"{self.bytes:,}", ""])
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        widths = [width if any(row[i] for row in rows[1:]) else 0 for i, width in enumerate(widths)]
        lines = []
        for row in rows:
            cells = [
                text.ljust(width) if i < 3 else text.rjust(width)
                for i, (text, width) in enumerate(zip(row, widths, strict=True))
                if width
            ]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)

    __repr__ = __str__


def _cells(row: Row) -> list[str]:
    numbers = [f"{n:,}" for n in (row.trained, row.fixed, row.bytes)]
    flops = "" if row.flops is None else f"{row.flops:,.0f}"
    kind = row.kind if row.calls <= 1 else f"{row.kind} x{row.calls}"
    return [row.path, kind, row.shapes, *numbers, flops]


def summary(model: Module, *specs: Any, flops: bool = False) -> Summary:
    """What is in a model: a row for each module, with what it gives for inputs of these shapes.

    Without specs only what it holds is shown. The model is called once, as `init` does, which makes
    its parameters if they are not there. With `flops` each module's program is made, too, and its
    scalar operations are counted (`jt.cost`).

    >>> print(jt.nn.summary(jt.nn.Linear(4), (2, 3)))
    module  gives          trained  other  bytes
    Linear  float32[2, 4]       16      0     64
                                16      0     64
    """
    given: dict[int, list[tuple[Any, Any, Any]]] = {}
    if specs:
        if unbuilt(model):
            init(model, *specs)
        with _in_evaluation(model), _watched(model, given):
            model(*map(_zeros, specs))
    rows = {path: Row(path, type(m).__name__) for path, m in modules(model)}
    trained = {path for path, _ in jt.tree.leaves_with_path(jt.tree.trained(model))}
    for path, array in jt.tree.leaves_with_path(model):
        owner = max((p for p in rows if _is_inside(path, p)), key=len)
        size = math.prod(array.shape)
        rows[owner].trained += size if path in trained else 0
        rows[owner].fixed += 0 if path in trained else size
        rows[owner].bytes += size * array.dtype.itemsize
    for path, m in modules(model):
        calls = given.get(id(m), [])
        rows[path].calls = len(calls)
        if calls:
            args, kwargs, result = calls[-1]
            rows[path].shapes = _shown(result)
            cost: Any = jt.cost(m, *args, **kwargs) if flops else None
            rows[path].flops = cost and cost.flops
    return Summary(list(rows.values()))


def _is_inside(path: str, outer: str) -> bool:
    return not outer or path == outer or path.startswith((f"{outer}.", f"{outer}["))


@contextmanager
def _watched(model: Module, given: dict[int, list[tuple[Any, Any, Any]]]) -> Iterator[None]:
    """Note the arguments and the result of each call of a module in a model, by its id: meanwhile
    its class is one that does so."""
    classes: dict[type, type] = {}
    changed = [(m, type(m)) for _, m in modules(model)]
    for m, cls in changed:
        if cls not in classes:
            classes[cls] = _watching(cls, given)
        m.__class__ = classes[cls]
    try:
        yield
    finally:
        for m, cls in changed:
            m.__class__ = cls


def _watching(cls: type, given: dict[int, list[tuple[Any, Any, Any]]]) -> type:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = cls.__call__(self, *args, **kwargs)
        given.setdefault(id(self), []).append((args, kwargs, result))
        return result

    call._builds = True  # type: ignore[attr-defined]  # as the one does that it calls
    return type(cls.__name__, (cls,), {"__call__": call, "__module__": cls.__module__})


def _shown(result: Any) -> str:
    arrays = [x for x in jt.tree.leaves(result) if hasattr(x, "shape")]
    return " ".join(f"{x.dtype}[{', '.join(map(str, x.shape))}]" for x in arrays)
