"""Lowering of `recursion`: a native function of numbers, which calls itself.

Where its body does more than scalar code can, the interpreter runs it, in a callback.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.graph import Op
from ...ir.opdef import LoweringError
from ...ir.ops.control.callbacks import PythonFunction
from ...ir.ops.control.recursion import TOO_DEEP
from ...ir.record import replace
from ...ir.types import TensorType
from ..loop_ir.scalar_code import Body, Invoke, Let, Routine
from ..loop_ir.steps import Callback
from ..scalar import Expr, Unique, var
from .elements import Elements, variables
from .lower import Lowering, lowering, memory_type
from .lower_control import bind, contiguous, operand_array, result_array
from .lower_scalars import emit_step
from .scalar_builder import Held, ScalarBuilder, Stored, Unfit, rule
from .scalar_work import has_rule

WORK = 1024  # scalar operations that a call counts for


@lowering("recursion")
def _recursion(low: Lowering, op: Op) -> None:
    context = low.context
    targets, others = dict(low.target_of), dict(low.other_target_of)
    sites, copies = len(context.errors), len(low.copies)
    try:
        c = ScalarBuilder(low, op)
        emit_step(c, op, _called(c, op), WORK)
    except Unfit:
        low.target_of, low.other_target_of = targets, others
        del context.errors[sites:], low.copies[copies:]
        interpreted(low, op)


def interpreted(low: Lowering, op: Op) -> None:
    """A callback that runs the interpreter: all that there is on a GPU, too. It knows nothing of the
    call's own containers."""
    if any(inner.name == "store" for inner in op.regions[0].walk()):
        raise LoweringError(
            op,
            f"{op.attrs['label']} calls itself, and changes or asks a list, set or dict beside arrays "
            "and lists that are longer than a few numbers: that does not compile",
            "keep what is to be done in a list, in a loop (stack.append, stack.pop), or run it "
            "without jit.",
        ) from None
    definition, attrs, regions = op.definition, dict(op.attrs), op.regions
    shown = [v for v in op.operands if isinstance(v.type, TensorType)]

    def run(*arrays: Any) -> Any:
        present = iter(arrays)
        full = [next(present) if isinstance(v.type, TensorType) else None for v in op.operands]
        results = definition.reference(*full, **attrs, regions=regions)
        return tuple(r for r, v in zip(results, op.results, strict=True) if memory_type(v))

    types = tuple(v.tensor for v in op.results if isinstance(v.type, TensorType))
    function = PythonFunction(run, types, f"recursion {op.attrs['label']}")
    operands = [contiguous(low, operand_array(low, v)) for v in shown]
    results = [result_array(low, v) for v in op.results]
    number = low.context.python(function, tuple(v.tensor for v in shown), op)
    present = [a for a in operands if a is not None]
    low.items.append(Callback(number, present, [a for a in results if a is not None]))
    bind(low, op, results)


@rule("recursion")
def _nested(c: ScalarBuilder, op: Op) -> None:
    for value, held in zip(op.results, _called(c, op), strict=True):
        c.bind(value, held)


def _called(c: ScalarBuilder, op: Op) -> list[Held]:
    """Define the function and call it: where its results are."""
    if "recursion" in c.low.context.rules:
        raise Unfit  # the target's functions do not call themselves
    if not all(x.definition.pointwise or has_rule(x.name) for x in op.regions[0].walk()):
        raise Unfit
    label, depth = op.attrs["label"], op.attrs["depth"]
    consts = op.attrs["consts"]
    arguments = [c.get(v, k < consts) for k, v in enumerate(op.operands)]
    params = [_parameter(held) for held in arguments]
    site = c.low.context.site("RecursionError", TOO_DEEP.format(depth), op)
    name = f"{label}_{site}"
    routine = Routine(name, _flat(params), [], Body(), depth, site)
    before = c.routines.get(label)
    c.routines[label] = routine, params[:consts]
    with c.inside() as routine.body:
        outs = c.region(op.regions[0], params)
        routine.outs = _flat(outs)
        routine.body.statements.append(Let(list(routine.outs)))
    if before is None:
        del c.routines[label]
    else:
        c.routines[label] = before
    return _results(c, op, routine, _flat(arguments), True)


@rule("recurse")
def _recurse(c: ScalarBuilder, op: Op) -> None:
    routine, consts = c.routines[op.attrs["label"]]
    operands = _flat([*consts, *(c.get(v) for v in op.operands)])
    for value, held in zip(op.results, _results(c, op, routine, operands, False), strict=True):
        c.bind(value, held)


def _parameter(held: Held) -> Held:
    """What stands for an operand inside: numbers are parameters, memory is where it is."""
    if isinstance(held, Stored):
        return replace(held, owned=False)
    return None if held is None else variables(held)


def _results(
    c: ScalarBuilder, op: Op, routine: Routine, operands: list[Expr], defines: bool
) -> list[Held]:
    results: list[Held] = []
    for value in op.results:
        if memory_type(value) is None:
            results.append(None)
            continue
        element: Elements = np.empty((), object)
        element[()] = var(Unique("result"), value.dtype)
        results.append(element)
    c.block.statements.append(Invoke(routine, operands, _flat(results), defines))
    return results


def _flat(values: Sequence[Held]) -> list[Expr]:
    return [e for held in values if isinstance(held, np.ndarray) for e in held.flat]
