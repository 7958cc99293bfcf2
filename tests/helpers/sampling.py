"""Sample operands for an op, read off its record: where tests and fuzzers over `OPS` start.

for definition in OPS.values():
    for case in cases(definition):
        arrays = case.sample(rng)
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from jitney.ir.build import Builder
from jitney.ir.graph import Graph
from jitney.ir.opdef import OpDef
from jitney.ir.ops.families import Arg, Array, DType, Example
from jitney.ir.record import record
from jitney.ir.types import DTYPE_NAMES, TensorType, dtype_kind, finfo, is_float, real_dtype


@record
class Case:
    """One op at one dtype with operands of given shapes."""

    definition: OpDef
    example: Example
    dtype: DType

    def __str__(self) -> str:
        operands = ",".join(f"{a.dtype}{list(a.shape)}" for a in self.example.args)
        return f"{self.definition.name}({operands}) at {self.dtype}"

    def sample(self, rng: np.random.Generator, wild: bool = False) -> list[Array]:
        """Operands from the op's domain; `wild` ones add NaN, infinities, extremes and zeros."""
        return [self._operand(i, arg, rng, wild) for i, arg in enumerate(self.example.args)]

    def graph(self) -> Graph:
        """The op alone, its operands as parameters."""
        graph = Graph(self.definition.name)
        types = [TensorType(arg.shape, self._dtype(arg)) for arg in self.example.args]
        params = [graph.add_param(type) for type in types]
        make = self.example.regions
        regions = () if make is None else make(self.dtype)
        op = Builder(graph).append(self.definition, params, dict(self.example.attrs), regions)
        graph.outputs = list(op.results)
        return graph

    def _dtype(self, arg: Arg) -> DType:
        return self.dtype if arg.dtype == "T" else DTYPE_NAMES[arg.dtype]

    def _operand(self, i: int, arg: Arg, rng: np.random.Generator, wild: bool) -> Array:
        dtype = self._dtype(arg)
        count = int(np.prod(arg.shape))
        if dtype.kind == "b":
            flat = rng.integers(0, 2, count).astype(bool)
        elif arg.below is not None:
            flat = rng.integers(0, arg.below, count)
        elif dtype.kind in "iu":
            natural = dtype.kind == "u" or i in self.definition.extra.get("natural", ())
            flat = rng.integers(0 if natural else -9, 10, count)
        else:
            flat = self._floats(i, arg, count, rng)
            if dtype.kind == "c":
                flat = flat + 1j * self._floats(i, arg, count, rng)
        flat = flat.astype(dtype)
        if wild and arg.below is None and dtype.kind != "b":
            special = _specials(dtype)
            chosen = rng.integers(0, 3, count) > 0
            if dtype.kind == "i" and i in self.definition.extra.get("natural", ()):
                special = special[special >= 0]
            flat = np.where(chosen, rng.choice(special, count), flat)
        return flat.reshape(arg.shape)

    def _floats(self, i: int, arg: Arg, count: int, rng: np.random.Generator) -> Array:
        domain: Any = self.definition.extra.get("domain", (-2.0, 2.0))
        low, high = domain if np.ndim(domain) == 1 else domain[i]
        if arg.distinct:  # apart within the operand, and from the other operands
            return rng.permutation(np.linspace(low, high, count) + 0.013 * i)
        return rng.uniform(low, high, count)


def cases(definition: OpDef) -> Iterator[Case]:
    """Every example at every dtype that the op accepts."""
    for example in definition.extra["examples"]:
        for dtype in DTYPE_NAMES.values():
            if dtype_kind(dtype) in definition.dtypes and dtype_kind(dtype) in example.kinds:
                yield Case(definition, example, dtype)
                if not any(a.dtype == "T" for a in example.args):
                    break


def parts(cases: Iterable[Case]) -> dict[str, list[Case]]:
    """Some that have each op with each dtype and with each example, and the others."""
    found: dict[str, list[Case]] = {"each": [], "others": []}
    seen: set[tuple[str, object]] = set()
    for case in sorted(cases, key=lambda case: zlib.crc32(str(case).encode())):
        name = case.definition.name
        values = {(name, case.dtype), (name, id(case.example))}
        found["others" if values <= seen else "each"].append(case)
        seen |= values
    return found


def _specials(dtype: DType) -> Array:
    if dtype.kind == "c":
        parts = _specials(real_dtype(dtype))
        return np.array([complex(x, y) for x in parts for y in parts], dtype)
    if not is_float(dtype):
        info = np.iinfo(dtype)
        return np.array([info.min, info.max, 0, 1, info.min + 1, info.max - 1, 7], dtype)
    f = finfo(dtype)
    limits = map(float, (f.max, f.min, f.tiny, f.eps, f.smallest_subnormal))
    values = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, *limits, 2.5, -1.5, 1e5]
    with np.errstate(over="ignore"):
        return np.array(values, dtype)
