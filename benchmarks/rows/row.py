"""A row of the table: inputs, reference program, tolerance, and the least work that it needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Make = Callable[[np.random.Generator, int], tuple[Any, ...]]

ROWS: dict[str, Row] = {}


@dataclass(frozen=True)
class Row:
    """`make(rng, size)` gives the inputs: trees (tuples, lists, dicts) of arrays, and Python ints.

    `passes` is how often the program has to walk its inputs and outputs, for the traffic; `flops`
    counts a multiplication and an addition each, for a size, and functions not at all. `goal` is how
    many times faster than the best of the others jitney wants to be.
    """

    name: str
    title: str
    program: Callable[..., Any]
    make: Make
    size: int
    small: int  # the size under --check
    goal: float | None = None
    dtype: str = "float32"
    tolerance: float = 1e-4
    mismatch: float = 0.0
    passes: int | None = 1  # None: memory is not what bounds it
    flops: Callable[[int], float] | None = None
    implementation: str = ""  # the name that frameworks know it by

    def inputs(self, small: bool = False) -> tuple[Any, ...]:
        """The same arrays in every process: floats in the row's dtype."""
        made = self.make(np.random.default_rng(0), self.small if small else self.size)
        return tuple(map_arrays(lambda a: _floats_as(a, self.dtype), part) for part in made)

    def reference(self, inputs: tuple[Any, ...]) -> list[Array]:
        wide = [map_arrays(lambda a: _floats_as(a, "float64").copy(), part) for part in inputs]
        with np.errstate(all="ignore"):
            return as_list(self.program(*wide))

    def error(self, got: Any, want: list[Array]) -> float:
        """The largest error of an output, in units of what the row tolerates; infinite if structure
        or shapes differ. A row is right up to 1."""
        arrays = as_list(got)
        if len(arrays) != len(want) or any(
            a.shape != b.shape for a, b in zip(arrays, want, strict=True)
        ):
            return math.inf
        worst = 0.0
        for a, b in zip(arrays, want, strict=True):
            if b.dtype.kind in "iub":
                wrong = float(np.mean(a != b)) if a.size else 0.0
                found = (
                    wrong / self.mismatch if self.mismatch else wrong * math.inf if wrong else 0.0
                )
            else:
                scale = float(np.abs(b).max(initial=0)) or 1.0
                off = float(np.abs(a.astype(np.float64) - b).max(initial=0))
                found = off / scale / self.tolerance
            worst = found if not found <= worst else worst  # a NaN stays
        return worst

    def traffic(self, inputs: tuple[Any, ...], outputs: list[Array]) -> float | None:
        """Bytes that no implementation can avoid: inputs read and outputs written once a pass."""
        if self.passes is None:
            return None
        item = np.dtype(self.dtype).itemsize
        written = sum(a.size * (item if a.dtype.kind == "f" else a.dtype.itemsize) for a in outputs)
        read = sum(a.nbytes for part in inputs for a in as_list(part))
        return float(self.passes * (read + written))


def _floats_as(a: Array, dtype: str) -> Array:
    return np.asarray(a, dtype) if a.dtype.kind == "f" else a


def as_list(tree: Any) -> list[Array]:
    if isinstance(tree, dict):
        return [a for key in sorted(tree) for a in as_list(tree[key])]
    if isinstance(tree, list | tuple):
        return [a for part in tree for a in as_list(part)]
    return [np.asarray(tree)]


def map_arrays(function: Callable[[Any], Any], tree: Any) -> Any:
    """`function` of every array of a tree; Python numbers stay."""
    if isinstance(tree, dict):
        return {key: map_arrays(function, part) for key, part in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(map_arrays(function, part) for part in tree)
    return function(tree) if isinstance(tree, np.ndarray | np.generic) else tree


class Rows(dict[str, Row]):
    """The rows of one module, in its order."""

    def add(self, name: str, title: str, **fields: Any) -> Callable[[Callable[..., Any]], Any]:
        """Decorates the NumPy program of a row."""

        def register(program: Callable[..., Any]) -> Callable[..., Any]:
            self[name] = Row(name=name, title=title, program=program, **fields)
            if not self[name].implementation:
                self[name] = replace(self[name], implementation=name)
            return program

        return register

    def variant(self, of: str, name: str, title: str, **fields: Any) -> None:
        """The same program in other circumstances."""
        self[name] = replace(self[of], name=name, title=title, **fields)


def normal(*shapes: Any, scale: float = 1.0) -> Make:
    """Inputs: one array per shape; "n" stands for the row's size."""

    def make(rng: np.random.Generator, n: int) -> tuple[Array, ...]:
        sizes = (tuple(n if d == "n" else d for d in s) for s in shapes)
        return tuple(rng.standard_normal(s) * scale for s in sizes)

    return make
