"""Lowering of `recursion`: a native function of numbers, which calls itself.

Arrays that the calls change have one memory, which all of them write to. Where the body does more than
scalar code can, the interpreter runs it, in a callback.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.graph import Op, Value
from ...ir.opdef import LoweringError
from ...ir.ops.control.callbacks import PythonFunction
from ...ir.ops.control.recursion import TOO_DEEP
from ...ir.record import replace
from ...ir.types import I64, TensorType
from ..loop_ir.index import Data, Index
from ..loop_ir.kernel import Array
from ..loop_ir.scalar_code import Body, Invoke, Let, Routine, written
from ..loop_ir.steps import Callback
from ..scalar import Expr, Unique, var
from .elements import Elements, variables
from .lower import Lowering, lowering, memory_type
from .lower_control import bind, contiguous, operand_array, result_array
from .lower_scalars import emit_step, same_place
from .pointwise import as_index, index_value
from .scalar_builder import Held, ScalarBuilder, Stored, Unfit, rule
from .scalar_work import has_rule

WORK = 1024  # scalar operations that a call counts for
MOST_LOCAL = 1 << 18  # bytes of arrays that each call has for itself
STACK_FULL = "maximum recursion depth exceeded: calls need more memory than the stack has"


@lowering("recursion")
def _recursion(low: Lowering, op: Op) -> None:
    context = low.context
    targets, others = dict(low.target_of), dict(low.other_target_of)
    sites, copies = len(context.errors), len(low.copies)
    try:
        c = ScalarBuilder(low, op)
        emit_step(c, op, _called(c, op, top=True), WORK)
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


def _called(c: ScalarBuilder, op: Op, top: bool = False) -> list[Held]:
    """Define the function and call it: where its results are."""
    if "recursion" in c.low.context.rules:
        raise Unfit  # the target's functions do not call themselves
    if not all(x.definition.pointwise or has_rule(x.name) for x in op.regions[0].walk()):
        raise Unfit
    label, depth, consts = op.attrs["label"], op.attrs["depth"], op.attrs["consts"]
    fixed = [c.get(v, True) for v in op.operands[:consts]]
    arguments = _given(c, op, consts, top)
    kept = [h for h in arguments if isinstance(h, Stored)]
    memory = [h.array for h in (*fixed, *kept) if isinstance(h, Stored)]
    if any(memory.count(h.array) > 1 for h in kept):
        raise Unfit
    params = [_parameter(h) for h in (*fixed, *arguments)]
    inside = [h if h is None or k < consts else _kept(c, h) for k, h in enumerate(params)]
    site = c.low.context.site("RecursionError", TOO_DEEP.format(depth), op)
    full = c.low.context.site("RecursionError", STACK_FULL, op)
    name, outer = f"{label}_{site}", c.routine
    routine = Routine(name, _numbers(params), [], Body(), depth, site, full, outer)
    before = c.routines.get(label)
    c.routines[label], c.routine = (routine, params[:consts]), routine
    with c.inside() as routine.body:
        outs = c.region(op.regions[0], inside)
        routine.outs = _numbers([h for h in outs if not isinstance(h, Stored)])
        routine.body.statements.append(Let(list(routine.outs)))
    c.routine = outer
    if before is None:
        del c.routines[label]
    else:
        c.routines[label] = before
    states = [h for h in inside[consts:] if isinstance(h, Stored)]
    ends = [h for h in outs if isinstance(h, Stored)]
    if len(states) != len(ends) or not all(map(same_place, states, ends)):
        raise Unfit
    _settle_locals(c, routine, {h.array for h in states})
    return _results(c, op, routine, _numbers([*fixed, *arguments]), kept, True)


@rule("recurse")
def _recurse(c: ScalarBuilder, op: Op) -> None:
    routine, consts = c.routines[op.attrs["label"]]
    if routine is not c.routine and _numbers(consts):
        raise Unfit  # which a function around the one that we are in was given
    given = [c.get(v) for v in op.operands]
    last = _end(op)
    kept = [h for h in given[last - op.attrs["states"] : last] if isinstance(h, Stored) and h.owned]
    if len(kept) != op.attrs["states"]:
        raise Unfit
    numbers = _numbers([*consts, *given])
    results = _results(c, op, routine, numbers, kept, False)
    for value, held in zip(op.results, results, strict=True):
        c.bind(value, held)


def _given(c: ScalarBuilder, op: Op, consts: int, top: bool) -> list[Held]:
    """What the first call is given. What the calls change is in memory that they may write to, and
    nothing else is."""
    last = _end(op)
    first = last - op.attrs["states"]
    given: list[Held] = []
    for k, v in enumerate(op.operands[consts:], consts):
        if first <= k < last:
            result = op.results[len(op.results) - len(op.operands) + k]
            given.append(c.home(op, v, result, op.operands[:first]) if top else _home(c, v))
        elif memory_type(v) is not None and v.shape:
            raise Unfit
        else:
            given.append(c.get(v))
    return given


def _end(op: Op) -> int:
    """How many operands there are before a token."""
    has_token = bool(op.operands) and memory_type(op.operands[-1]) is None
    return len(op.operands) - has_token


def _home(c: ScalarBuilder, value: Value) -> Stored:
    """Memory for what calls inside of other scalar code change."""
    held = c.get(value)
    if isinstance(held, np.ndarray):
        array = Array(value.shape, value.dtype)
        c.write(array, (), held)
        return c.renew(Stored(array, owned=True))
    if not isinstance(held, Stored) or not held.owned:
        raise Unfit
    return held


def _parameter(held: Held) -> Held:
    """What stands for an operand inside: numbers are parameters, memory is where it is."""
    if not isinstance(held, Stored):
        return None if held is None else variables(held)
    prefix = [
        as_index(var(Unique("place"), I64), *i.reach()) if i is not None and i.terms else i
        for i in held.prefix
    ]
    return replace(held, prefix=tuple(prefix), owned=False)


def _kept(c: ScalarBuilder, held: Held) -> Held:
    """What the calls change as one of them finds it: it may hold anything."""
    return c.renew(replace(held, owned=True)) if isinstance(held, Stored) else held


def _numbers(values: Sequence[Held]) -> list[Expr]:
    """The numbers that tell what, and where, values are."""
    found: list[Expr] = []
    for held in values:
        if isinstance(held, np.ndarray):
            found += held.flat
        elif held is not None:
            places = [i for i in held.prefix if i is not None and i.terms]
            found += [_position(i) for i in places]
    return found


def _position(index: Index) -> Expr:
    """A position as a number: the variable that it is, if it is one."""
    atoms = [*index.terms]
    if index.const == 0 and len(atoms) == 1 and isinstance(atoms[0], Data):
        return atoms[0].expr
    return index_value(index)


def _settle_locals(c: ScalarBuilder, routine: Routine, shared: set[Array]) -> None:
    """What the function writes beside what it shares with who calls it, each call has for itself."""
    routine.locals = [a for a in written(routine.body) if a not in shared]
    if sum(a.nbytes for a in routine.locals) > MOST_LOCAL:
        raise Unfit
    for array in routine.locals:
        c.writes.pop(array, None)
        c.locals.add(array)


def _results(
    c: ScalarBuilder,
    op: Op,
    routine: Routine,
    numbers: list[Expr],
    kept: Sequence[Stored],
    defines: bool,
) -> list[Held]:
    """Call the function. Gives where the results are: `kept` is changed in its place."""
    results: list[Held] = []
    memory = iter(kept)
    last = len(op.results) - (memory_type(op.results[-1]) is None if op.results else 0)
    for k, value in enumerate(op.results):
        if last - len(kept) <= k < last:
            results.append(next(memory))
        elif memory_type(value) is None:
            results.append(None)
        elif value.shape:
            raise Unfit
        else:
            element: Elements = np.empty((), object)
            element[()] = var(Unique("result"), value.dtype)
            results.append(element)
    made = _numbers([h for h in results if not isinstance(h, Stored)])
    c.block.statements.append(Invoke(routine, numbers, made, defines))
    now = [c.renew(h) if isinstance(h, Stored) else h for h in results]
    pairs = zip(op.results, now, strict=True)
    return [c.taken_apart(v, h) if defines and c.p is not c.outermost else h for v, h in pairs]
