"""Lowering of `draw`: scalar code that draws in the generator's state, or a call of the generator.

One number, and few in a loop, are a statement each; an array is filled by one statement. What native
code does not know how to draw is drawn by NumPy or Python in a callback.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ir.graph import Op
from ....ir.ops.control.callbacks import PythonFunction
from ....ir.types import BOOL, TensorType
from ...llvm.builder import Value as Native
from ...loop_ir.index import Index, Var, of_var
from ...loop_ir.kernel import Array
from ...loop_ir.scalar_code import Body, Repeat, Special, Write
from ...loop_ir.steps import Callback, ScalarCode
from ...lowering.lower import Lowering, lowering
from ...lowering.lower_control import bind, contiguous, operand_array, result_array
from ...lowering.pointwise import Pointwise
from ...lowering.scalar_builder import SMALL, ScalarBuilder, Unfit, rule
from ...scalar import Expr, Unique, var
from .laws import Law, helpers_of, law_of, symbol
from .sources import PCG64, SOURCES, Source, source_of

WORK = 8  # scalar operations that a draw counts for


@lowering("draw")
def _draw(low: Lowering, op: Op) -> None:
    law = _law(op)
    if law is None:
        ask(low, op)
        return
    result = op.results[0]
    array = low.array_for(result)
    low.arrays[result] = array
    if not array.shape or 0 not in array.shape:
        handle = low.materialise(op.operands[0])
        if law.many is not None and result.shape and not _varies(op):
            code = _filling(low, op, law, handle, array)
        else:
            code = _one_by_one(low, op, law, handle, array)
        low.items.append(code)


def _law(op: Op) -> Law | None:
    attrs = op.attrs
    return law_of(attrs["law"], attrs["source"], attrs["dtype"], attrs["options"])


def _varies(op: Op) -> bool:
    """Whether numbers have parameters of their own."""
    return any(v.shape for v in op.operands[1:-1])


def ask(low: Lowering, op: Op) -> None:
    """A callback that asks the generator: all that there is on a GPU, too."""
    attrs, definition = dict(op.attrs), op.definition

    def asked(*arrays: Any) -> tuple[Any]:
        return (definition.reference(*arrays, None, **attrs)[0],)

    name = f"{attrs['source'].partition(':')[0]}.{attrs['law'].rpartition('.')[2]}"
    function = PythonFunction(asked, (op.results[0].tensor,), name)
    operands = [contiguous(low, operand_array(low, v)) for v in op.operands]
    results = [result_array(low, v) for v in op.results]
    types = tuple(v.type for v in op.operands if isinstance(v.type, TensorType))
    number = low.context.python(function, types, op)
    present = [a for a in operands if a is not None]
    low.items.append(Callback(number, present, [a for a in results if a is not None]))
    bind(low, op, results)


def _filling(low: Lowering, op: Op, law: Law, handle: Array, array: Array) -> ScalarCode:
    """All numbers by one statement."""
    p = low.point()
    operands = [_place(p, handle), *_parameters(p, op)]
    count = math.prod(array.shape)

    def write(b: Any, values: Sequence[Native], pointers: Sequence[Native]) -> Sequence[Native]:
        source = _source(op, b, values[0])
        assert law.many is not None
        law.many(source, values[1:], array.dtype, pointers[0], count)
        return ()

    statement = _special(op, law, [], operands, [array], write)
    return _code(op, p, Body([statement]), array, WORK * count)


def _one_by_one(low: Lowering, op: Op, law: Law, handle: Array, array: Array) -> ScalarCode:
    """A loop over each dim, in C order."""
    p = low.point()
    dims = tuple(Var(f"i{d}", n) for d, n in enumerate(array.shape))
    index = tuple(of_var(v) for v in dims)
    shape = array.shape
    operands = [_place(p, handle)]
    for v in op.operands[1:-1]:
        operands.append(p.at(v, index[len(shape) - len(v.shape) :] if v.shape else ()))
    number = var(Unique("drawn"), array.dtype)
    block = Body(
        [_special(op, law, [number], operands, [], _one(op, law)), Write(array, index, number)]
    )
    for d in reversed(dims):
        block = Body([Repeat([], [], block, [], d)])
    return _code(op, p, block, array, WORK)


def _code(op: Op, p: Pointwise, block: Body, array: Array, work: int) -> ScalarCode:
    reads = list(dict.fromkeys(access.array for access in p.reads))
    name = op.attrs["law"].replace(".", "_")
    return ScalarCode(block, reads, [array], [f"draw_{name}"], work, loc=op.loc)


@rule("draw")
def _in_loop(c: ScalarBuilder, op: Op) -> None:
    """Few numbers are drawn one by one."""
    law, result = _law(op), op.results[0]
    if "draw" in c.low.context.rules:
        raise Unfit  # generators are out of the target's reach
    if law is None or result.tensor.size > SMALL or law.one is None:
        raise Unfit
    address = c.elements(op.operands[0]).item(1)
    params = [c.elements(v) for v in op.operands[1:-1]]
    results = np.empty(result.shape, object)
    many = law.many is not None and result.shape and result.dtype.itemsize < 4
    if many:
        raise Unfit  # draws of narrow integers share words
    for spot in np.ndindex(*result.shape):
        own = [_at(x, spot) for x in params]
        drawn = results[spot] = var(Unique("drawn"), result.dtype)
        c.block.statements.append(_special(op, law, [drawn], [address, *own], [], _one(op, law)))
    c.bind(result, results)


def _at(elements: Any, spot: tuple[int, ...]) -> Expr:
    element: Expr = (
        elements.item(spot[len(spot) - elements.ndim :]) if elements.ndim else elements.item()
    )
    return element


def _one(op: Op, law: Law) -> Any:
    def write(b: Any, values: Sequence[Native], pointers: Sequence[Native]) -> Sequence[Native]:
        source = _source(op, b, values[0])
        assert law.one is not None
        return (law.one(source, values[1:], op.attrs["dtype"]),)

    return write


def _special(
    op: Op, law: Law, results: list[Expr], operands: list[Expr], arrays: list[Array], write: Any
) -> Special:
    helpers = helpers_of(op.attrs["source"])
    imports = frozenset(map(symbol, _functions(op, law)))
    return Special(results, operands, arrays, write, imports, helpers)


def _functions(op: Op, law: Law) -> list[str]:
    """NumPy's functions that a law may call for this dtype."""
    dtype = op.attrs["dtype"]
    if op.attrs["law"] == "integers":
        width = "bool" if dtype == BOOL else f"uint{8 * dtype.itemsize}"
        return [f"random_bounded_{width}_fill"]
    single = "_f" if dtype.itemsize == 4 and dtype.kind == "f" else ""
    layered = not single and SOURCES[op.attrs["source"]] is PCG64
    return [name + single for name in law.imports if layered or not name.endswith("_layers")]


def _source(op: Op, b: Any, address: Native) -> Source:
    return source_of(op.attrs["source"], b, address.to("inttoptr", "ptr"))


def _place(p: Pointwise, handle: Array) -> Expr:
    return p.load(handle, (Index(1),), None)


def _parameters(p: Pointwise, op: Op) -> list[Expr]:
    return [p.at(v, ()) for v in op.operands[1:-1]]
