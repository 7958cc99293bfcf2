"""Loops over few numbers become scalar code: carries in registers, no kernel per trip.

    before: a `while` or `scan` op that carries scalars and small arrays, and large arrays of which the
            body writes single elements in place
    after:  one `ScalarCode` step: the loop with a variable per element carried

Small arrays are taken apart into their elements: movement is then no work at all, a reduction a tree of
additions, a small product of matrices a list of multiply-adds. Large arrays stay in memory and are
read and written at the places that the program computes. A loop that does not fit, or that kernels would
run faster since its arrays are long enough for vectors, is left to `lower_loops`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ...ir.cost import Cost
from ...ir.graph import Graph, Op, Value
from ...ir.record import replace
from ...ir.types import I64, TOKEN
from ..loop_ir.index import Index, Var, of_var
from ..loop_ir.kernel import Array
from ..loop_ir.late_operands import late_last
from ..loop_ir.scalar_code import Body, Choose, Let, Repeat, Require, Statement
from ..loop_ir.split_sums import split_sums
from ..loop_ir.steps import Copy, ScalarCode, StoreRoot
from ..math import EXPANSIONS
from ..scalar import Expr, Unique, const, var
from .counters import Counter, counters, most_trips, trips_of
from .elements import Elements, at, chooses, chosen, pick, variables
from .lower import Lowering, memory_type
from .lower_control import contiguous
from .merged_branches import merged
from .pointwise import index_value
from .reaches import Interval, reaches_of_branch, reaches_of_loop
from .scalar_arrays import freely_summed
from .scalar_builder import SMALL, Given, Held, ScalarBuilder, Stored, Unfit, rule
from .scalar_work import work_of

CHEAP = 24  # operations up to which all branches are computed
RECENT = 16  # statements


def scalar_loop(low: Lowering, op: Op) -> bool:
    """Lower the loop `op` to scalar code if that suits it; False: nothing was done."""
    context = low.context
    targets, others = dict(low.target_of), dict(low.other_target_of)
    sites, copies = len(context.errors), len(low.copies)
    try:
        work = work_of(op)
        c = ScalarBuilder(low, op)
        emit_step(c, op, _loop(c, op, top=True), work)
    except Unfit:
        low.target_of, low.other_target_of = targets, others
        del context.errors[sites:], low.copies[copies:]
        return False
    return True


def emit_step(c: ScalarBuilder, op: Op, held: Sequence[Held], work: int) -> None:
    """Add the step, after which the results are `held`: large carries are copied to where they will be,
    then comes the code."""
    low = c.low
    asked = _asserts(low, op)
    for value, here in zip(op.results, held, strict=True):
        if here is None:
            continue
        if value in asked and isinstance(here, np.ndarray):
            for one in asked[value]:
                site = low.context.assertion(one, ())
                c.block.statements.append(Require(~pick(here, ()), site, []))
                low.asked.add(one)
            low.overwritten.add(value)  # nobody asks for it later, or for what it is made of
            continue
        if isinstance(here, Stored):
            low.arrays[value] = here.array
            continue
        if not low.users[value] and value not in low.outputs:
            continue
        array = low.array_for(value)
        c.write(array, (), here)
        low.arrays[value] = array
    for home in c.homes:
        if home.source is home.array:
            continue
        source = contiguous(low, home.source)
        if source is not None:
            low.items.append(Copy(source, home.array))
    homes = [home.array for home in c.homes]
    for value in op.operands:
        if value in low.arrays and low.arrays[value] in homes:
            low.overwrite(value)
    fresh = c.locals | c.writes.keys() - set(homes)  # what is read of these has been written here
    reads = dict.fromkeys([*(a.array for a in c.p.reads if a.array not in fresh), *homes])
    if c.tape_list is not None:
        low.items.append(StoreRoot(c.tape_list, tapes=True))
    names = [inner.name for region in op.regions for inner in region.ops]
    code = ScalarCode(c.block, list(reads), list(c.writes), names, work, loc=op.loc)
    low.items.append(code)


def _asserts(low: Lowering, op: Op) -> dict[Value, list[Op]]:
    """Truths that a loop hands out for nothing but asserts that they do not hold, which come next: the
    loop's code makes them."""
    found: dict[Value, list[Op]] = {}
    for value in op.results:
        opposites = low.users[value] if value not in low.outputs else ()
        if any(o.name != "invert" or o.result in low.outputs for o in opposites):
            continue
        asserts = [one for o in opposites for one in low.users[o.result]]
        if all(one.name == "assert" and len(one.operands) == 2 for one in asserts):
            found[value] = asserts
    before: list[Op | None] = [op]
    for one in [one for asserts in found.values() for one in asserts]:
        token = one.operands[-1].op
        if token in before or (token is not None and token.name == "create_token"):
            before.append(one)
    return {v: own for v, own in found.items() if own and all(one in before for one in own)}


@rule("while", "scan")
def _nested(c: ScalarBuilder, op: Op) -> None:
    for value, held in zip(op.results, _loop(c, op), strict=True):
        c.bind(value, held)


def _loop(c: ScalarBuilder, op: Op, top: bool = False) -> list[Held]:
    first, stop = _carries(op)
    carries = stop - first
    if top:
        others = op.operands[stop:]
        pairs = zip(op.operands[first:stop], op.results, strict=False)
        init = [c.home(op, v, r, others) if c.in_memory(v) else c.get(v) for v, r in pairs]
    else:
        init = [c.get(v) for v in op.operands[first:stop]]
    consts = c.given(op.operands[:first], init)
    wholes = [_stacked(c, x, math.prod(x.shape[1:])) for x in op.operands[stop:]]
    arrays = [h.array for h in (*init, *consts, *wholes) if isinstance(h, Stored)]
    for held in init:
        if isinstance(held, Stored) and (not held.owned or arrays.count(held.array) > 1):
            raise Unfit
    consts = [replace(h, owned=False) if isinstance(h, Stored) else h for h in consts]
    carried = _renewed(c, [variables(h) if isinstance(h, np.ndarray) else h for h in init])
    body = op.regions[-1]
    counter, trips, xs, ys = None, None, [], []
    own = counters(body, first, init)
    if op.name == "scan":
        counter = Var("trip", op.attrs["length"])
        trip = of_var(counter)
        if op.attrs["reverse"]:
            trip = -trip + (counter.extent - 1)
        slices = zip(op.operands[stop:], wholes, strict=True)
        xs = [_slice(c, x, whole, trip) for x, whole in slices]
        for result in op.results[carries:]:
            given = result in c.places
            if given:
                c.placed.add(result)
            ys.append(c.places.pop(result) if given else Stored(_new_stack(c, result, top)))
    test, condition = None, None
    facts = reaches_of_loop(op, own, c.p.reaches)
    if op.name == "while":
        most = most_trips(op.regions[0], own, first, [*consts, *carried])
        if most is not None:
            counter, trips = most
            _follow(own, of_var(counter), carried)
        with c.inside() as test:
            (flag,) = c.region(op.regions[0], [*consts, *carried], facts.condition)
        assert isinstance(flag, np.ndarray)
        condition = pick(flag, ())
        counted = trips_of(condition, test, own, carried) if most is None else None
        if counted is not None:
            counter, trips = counted
        if counted is not None or (condition.op == "const" and condition.attr):
            test = condition = None
    positions = list(range(carries))
    if counter is not None:
        positions = [k for k in positions if k not in own]
        _follow(own, of_var(counter), carried)
    with c.inside() as inner:
        for x in xs:
            if isinstance(x, np.ndarray):
                c.let(x)
        rows = [replace(whole, prefix=whole.pinned((0,), (trip,))) for whole in ys]
        c.places.update(_places(c, body.outputs[carries:], rows))
        out = c.region(body, [*consts, *carried, *xs], facts.body)
        for row, y in zip(rows, out[carries:], strict=True):
            if isinstance(y, np.ndarray):
                c.write(row.array, row.at(()), y)
            elif y is None or (y.array, y.prefix) != (row.array, row.prefix):
                raise Unfit
    if any(not same_place(a, b) for a, b in zip(carried, out, strict=False)):
        raise Unfit
    rest = ([held[k] for k in positions] for held in (carried, init, out))
    now, start, new = map(_flat, rest)
    if c.low.context.target.fastmath:
        new = [freely_summed(value, carry) for value, carry in zip(new, now, strict=True)]
    made = trips
    if counter is not None and condition is not None:  # only the loop knows
        made = var(Unique("made"), I64)
        now, start = [*now, made], [*start, const(0, I64)]
        new = [*new, index_value(of_var(counter) + 1)]
    word = op.attrs.get("independent", False)
    loop = Repeat(now, start, inner, new, counter, test, condition, trips, word, op.loc)
    late_last(loop)
    loops, kept = split_sums(loop)
    c.block.statements += loops
    c.writes.update(dict.fromkeys(kept))
    c.p.reaches.update(facts.results)
    if counter is not None:
        for k, way in own.items():
            carried[k] = _one(way.last(counter, made))
    return [*_renewed(c, carried), *ys]


def _new_stack(c: ScalarBuilder, result: Value, top: bool) -> Array:
    return c.low.array_for(result) if top else Array(result.shape, result.dtype)


def _places(
    c: ScalarBuilder, outputs: Sequence[Value], rows: Sequence[Stored]
) -> dict[Value, Stored]:
    """What loops inside stack that is a row of what this one stacks: it is written there."""
    places: dict[Value, Stored] = {}
    for v, row in zip(outputs, rows, strict=True):
        stacked = v.op is not None and v.op.name == "scan" and v.index >= v.op.attrs["carries"]
        if stacked:
            places.setdefault(v, row)
    return places


def _follow(own: Mapping[int, Counter], trip: Index, carried: list[Held]) -> None:
    """Carries that count are positions in trip `trip`."""
    for k, way in own.items():
        carried[k] = _one(way.after(trip))


def _one(expr: Expr) -> Elements:
    result = np.empty((), object)
    result[()] = expr
    return result


def _renewed(c: ScalarBuilder, carries: Sequence[Held]) -> list[Held]:
    """Carries where a trip begins, or after the last: trips have written their memory since."""
    return [c.renew(held) if isinstance(held, Stored) else held for held in carries]


def same_place(a: Held, b: Held) -> bool:
    """Whether two versions of a value are in the same memory, or both in variables."""
    if isinstance(a, Stored) and isinstance(b, Stored):
        return a.array is b.array and a.prefix == b.prefix and a.owned == b.owned
    return type(a) is type(b)


def _slice(c: ScalarBuilder, x: Value, whole: Stored | None, trip: Index) -> Held:
    """This trip's slice of `x`, which is in memory at `whole`, or costs nothing to compute."""
    shape = x.shape[1:]
    if whole is not None and math.prod(shape) > SMALL:
        return replace(whole, prefix=whole.pinned((0,), (trip,)), owned=False)
    result = np.empty(shape, object)
    for place in np.ndindex(*shape):
        index = (trip, *at(place))
        if whole is None:
            result[place] = c.p.at(x, index)
        else:
            result[place] = c.p.load(whole.array, whole.at(index), None)
    return result


def _stacked(c: ScalarBuilder, x: Value, size: int) -> Stored | None:
    """Where in memory `x` is; None if its slices, of `size` elements, cost nothing to compute."""
    array = c.p.arrays.get(x)
    if array is not None:
        return Stored(array)
    view = c.p.views.get(x)
    if view is not None:
        c.p.check(view)
        return view
    elements = c.p.known.get(x)
    if elements is not None:
        array = Array(x.shape, x.dtype)
        c.write(array, (), elements)
        return Stored(array)
    if size <= SMALL and c.p is c.outermost and c.low.cost.get(x) == 0:
        return None
    held = c.get(x)
    if isinstance(held, np.ndarray):
        return _stacked(c, x, size)
    return held


@rule("cond")
def _cond(c: ScalarBuilder, op: Op) -> None:
    index = c.scalar(op.operands[0])
    arguments = _branch_arguments(c, op)
    if index.op == "const":
        chosen_region = op.regions[min(max(index.attr, 0), len(op.regions) - 1)]
        for value, held in zip(op.results, c.region(chosen_region, arguments), strict=True):
            c.bind(value, held)
        return

    def known(region: Graph) -> Mapping[Value, Interval]:
        return reaches_of_branch(region, op.operands[1:], c.p.interval)

    if _cheap(op) and not _known_late(op.operands[0]):
        outputs = []
        for k, region in enumerate(op.regions):
            with c.only_if(chooses(index, k, len(op.regions))):
                outputs.append(c.region(region, arguments, known(region)))
        for value, parts in zip(op.results, zip(*outputs, strict=True), strict=True):
            if value.type is not TOKEN:
                c.bind(value, chosen(index, [h for h in parts if isinstance(h, np.ndarray)]))
        return
    before = dict(c.versions)
    blocks, outputs = [], []
    written: set[Array] = set()
    for region in op.regions:
        with c.inside() as block:
            outputs.append(c.region(region, arguments, known(region)))
        blocks.append(block)
        written |= {array for array, version in before.items() if c.versions[array] != version}
        c.rewind(before)
    for array in written:
        c.renew(Stored(array))
    values: list[list[Expr]] = [[] for _ in blocks]
    results: list[Expr] = []
    numbers: dict[Value, Sequence[Elements]] = {}
    for value, parts in zip(op.results, zip(*outputs, strict=True), strict=True):
        first = parts[0]
        if any(not same_place(first, part) for part in parts):
            raise Unfit
        if isinstance(first, np.ndarray):
            fresh = variables(first)
            results += fresh.flat
            numbers[value] = parts
            for column, part in zip(values, parts, strict=True):
                column += part.flat
            c.bind(value, fresh)
        elif isinstance(first, Stored):
            c.bind(value, c.newest(first) if first.array in written else first)
    together: Sequence[Statement] | None = None
    if not _known_late(op.operands[0]):
        together = () if _is_known(c.block, blocks) else merged(index, blocks, values)
    if together is not None and results:  # they are chosen before anything is written
        picked = {v: chosen(index, parts) for v, parts in numbers.items()}
        c.block.statements.append(Let(_flat([*picked.values()])))
        for value, elements in picked.items():
            c.bind(value, elements)
    if together is None:
        together = [Choose(index, blocks, values, results)]
    c.block.statements += together


def _is_known(before: Body, blocks: Sequence[Body]) -> bool:
    """Whether blocks do nothing but compute what has just been computed."""
    statements = [s for block in blocks for s in block.statements]
    recent = [s for s in before.statements[-RECENT:] if isinstance(s, Let)]
    known = {_place(value) for s in recent for value in s.values}
    return all(
        isinstance(s, Let) and all(_place(value) in known for value in s.values) for s in statements
    )


def _place(value: Expr) -> object:
    """What is equal for an element that is read twice."""
    plain = value.op == "load" and not value.args
    return (value.attr.array, tuple(value.attr.index)) if plain else value


def _branch_arguments(c: ScalarBuilder, op: Op) -> list[Given]:
    """Where the branches find their arguments; those that they hand out must be in one place."""
    handed = {
        v
        for region in op.regions
        for v, param in zip(op.operands[1:], region.params, strict=True)
        if param in region.outputs
    }
    for v in handed:
        c.get(v)
    return c.given(op.operands[1:])


def _flat(values: Sequence[Held]) -> list[Expr]:
    return [e for held in values if isinstance(held, np.ndarray) for e in held.flat]


def _carries(op: Op) -> tuple[int, int]:
    """Where a loop's carries start and stop among its operands."""
    first: int = op.attrs["consts"]
    return first, first + op.attrs.get("carries", len(op.operands) - first)


def _known_late(flag: Value) -> bool:
    """Whether a condition takes a function's time: where it is guessed, what follows need not wait."""
    pending, seen = [flag], set[Op]()
    while pending:
        op = pending.pop().op
        if op is None or op in seen or op.regions:
            continue
        if op.definition.pointwise and op.definition.cost is Cost.FUNCTION:
            return True
        seen.add(op)
        pending += op.operands
    return False


def _cheap(op: Op) -> bool:
    """Whether all branches may be computed: few plain operations on scalars, none of which can fail but
    by a check, which the branch that is not taken does not make."""
    cost = 0
    for region in op.regions:
        for inner in region.ops:
            if inner.name == "assert":
                continue
            if inner.name not in EXPANSIONS and inner.name != "constant":
                return False
            if inner.name == "pow" or inner.result.shape:
                return False
            cost += inner.definition.cost.work
        types = [memory_type(v) for v in region.outputs if v.type is not TOKEN]
        if any(type is None or type.shape for type in types):
            return False
    return cost <= CHEAP
