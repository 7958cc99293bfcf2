"""How cotangents add up: parts of which most elements are zeros touch only the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..build import Builder
from ..graph import Graph, Op, Value, unspread
from ..types import TensorType

FEW = 16  # the part of an array from which its elements are not few


def is_zero(v: Value) -> bool:
    """Whether `v` is visibly a constant of zeros."""
    op = unspread(v).op
    return op is not None and op.name == "constant" and not op.attrs["value"].any()


def total(
    b: Builder, parts: Sequence[Value], pending: Iterable[Sequence[Value | None]] = ()
) -> Value | None:
    """The sum of all parts of one cotangent, None if there are none. `pending`: see `accumulate`.

    Beside whole ones, those of few elements come last, and touch only these: the derivative of elements
    that are assigned one by one costs an element each. (Others are padded, or put at an array of
    places: such sums are fused.)
    """
    few = {part for part in parts if _few_elements(part) is not None}
    places = {part for part in parts if _is_at_places(part) and not _is_at_many_places(part)}
    if (few | places).issuperset(parts):
        few = set()
    few |= places
    result: Value | None = None
    for part in sorted(parts, key=few.__contains__):
        if result is None:
            result = part
        else:
            result = accumulate(b, result, part, pending) if part in few else b.add(result, part)
    return result


def accumulate(
    b: Builder, total: Value, part: Value, pending: Iterable[Sequence[Value | None]] = ()
) -> Value:
    """`total + part`, where a `part` that is zeros but for some elements touches only these.

    So the gradient of an array of which each iteration reads one row costs a row per iteration. A
    total that starts from 0.0 is never -0.0, so adding zeros to it changes nothing.

    `pending` are lists of values that are still to be read: none of these is made to hold the total.
    """
    op = part.op
    if op is None:
        return b.op("add", total, part)
    if is_zero(part):
        return total
    if op.name == "add":
        first = accumulate(b, total, op.operands[0], pending)
        return accumulate(b, first, op.operands[1], pending)
    if op.name == "dynamic_update_slice" and _is_at_places(part):
        _, u, *starts = op.operands
        old = b.op("dynamic_slice", total, *starts, sizes=u.shape)
        return b.op("dynamic_update_slice", total, b.op("add", old, u), *starts)
    if op.name == "scatter" and _is_at_places(part):
        if not _is_scattered(part) and _start_from(b, part, total, pending):
            return part
        before = accumulate(b, total, op.operands[0], pending)
        return b.op("scatter", before, *op.operands[1:], **op.attrs)
    if (_is_sum_of_loop(part) or _is_of_branches(part)) and _start_from(b, part, total, pending):
        return part
    pad = _few_elements(part)
    if pad is not None:
        u, low = pad.operands[0], pad.attrs["low"]
        step = tuple([gap + 1 for gap in pad.attrs["interior"]])
        ends = zip(low, u.shape, step, strict=True)
        stop = tuple([first + (n - 1) * by + 1 for first, n, by in ends])
        old = b.op("slice", total, start=low, stop=stop, step=step)
        return b.op("update_slice", total, b.op("add", old, u), start=low, step=step)
    return b.op("add", total, part)


def _is_at_places(part: Value) -> bool:
    """Whether a part is zeros but for what stands at places that the program computes."""
    op = part.op
    if op is None:
        return False
    if op.name == "scatter" and op.attrs["combine"] == "add":
        return is_zero(op.operands[0]) or _is_at_places(op.operands[0])
    if op.name == "dynamic_update_slice":
        return is_zero(op.operands[0])
    return _is_sum_of_loop(part) or _is_of_branches(part)


def _is_scattered(part: Value) -> bool:
    """Whether a part is zeros and what scatters put there, without loops and branches."""
    while part.op is not None and part.op.name == "scatter":
        part = part.op.operands[0]
    return is_zero(part)


def _is_at_many_places(part: Value) -> bool:
    """Whether a part is zeros and one array of elements, as that of choosing one of each row is."""
    op = part.op
    if op is None or op.name != "scatter" or not is_zero(op.operands[0]):
        return False
    return op.operands[2].tensor.size > 1


def _is_of_branches(part: Value) -> bool:
    """Whether a part comes from branches, each of which gives zeros, or puts something at places; or
    each of which puts something in a part of that kind."""
    op = part.op
    if op is None or op.name != "cond" or not isinstance(part.type, TensorType) or not part.shape:
        return False
    if _grows_in_branches(part):
        return True
    outputs = [region.outputs[part.index] for region in op.regions]
    return all(is_zero(v) or _is_at_places(v) for v in outputs) and not all(map(is_zero, outputs))


def _is_sum_of_loop(part: Value) -> bool:
    """Whether a part is an array of zeros that a loop has added to, and has done nothing else with."""
    op = part.op
    if op is None or op.name not in ("scan", "while"):
        return False
    if not isinstance(part.type, TensorType) or not part.shape:
        return False
    first, body = op.attrs["consts"], op.regions[-1]
    if part.index >= op.attrs.get("carries", len(op.results)):
        return False
    at = first + part.index
    read = any(
        body_.params[at] in inner.operands for body_ in op.regions[:-1] for inner in body_.ops
    )
    start = op.operands[at]
    if read or not (is_zero(start) or _is_at_places(start)):
        return False
    return _only_grows(body, body.params[at], part.index)


def _grows_in_branches(part: Value) -> bool:
    """Whether a part comes from branches that add to a part, which is at places itself."""
    op = part.op
    if op is None or op.name != "cond" or op.operands[-1].type != part.type:
        return False
    return _branches_grow(op, part.index) and _is_at_places(op.operands[-1])


def _only_grows(body: Graph, param: Value, output: int) -> bool:
    """Whether a loop's body adds to a carry, and reads it for nothing else."""
    users = body.users()
    value = body.outputs[output]
    while value is not param:
        op = value.op
        if op is None:
            return False
        if op.name == "scatter" and op.attrs["combine"] == "add":
            before = op.operands[0]
        elif op.name == "add":
            grown = [v for v in op.operands if v is param or _leads_to(v, param)]
            if len(grown) != 1:
                return False
            (before,) = grown
        elif op.name == "cond":
            if not _branches_grow(op, value.index):
                return False
            before = op.operands[-1]
        elif op.name in ("scan", "while") and value.index < op.attrs.get(
            "carries", len(op.results)
        ):
            at = op.attrs["consts"] + value.index
            if not _only_grows(op.regions[-1], op.regions[-1].params[at], value.index):
                return False
            before = op.operands[at]
        else:
            return False
        if users[before] != [op] or op.operands.count(before) != 1:
            return False
        value = before
    return body.outputs.count(param) <= (body.outputs[output] is param)


def _branches_grow(op: Op, output: int) -> bool:
    """Whether each branch adds to the last operand, and reads it for nothing else."""
    return all(_only_grows(region, region.params[-1], output) for region in op.regions)


def _leads_to(value: Value, param: Value) -> bool:
    """Whether `value` is `param` after some additions, by the first operand of each op."""
    while value is not param and value.op is not None:
        op = value.op
        if op.name in ("scan", "while"):
            if value.index >= op.attrs.get("carries", len(op.results)):
                return False
            value = op.operands[op.attrs["consts"] + value.index]
        elif op.name == "cond":
            value = op.operands[-1]
        elif op.name in ("scatter", "add"):
            value = op.operands[0]
        else:
            return False
    return value is param


def _start_from(
    b: Builder, part: Value, total: Value, pending: Iterable[Sequence[Value | None]]
) -> bool:
    """Let what makes `part`, a chain of loops, branches and scatters, start from `total` in place of
    zeros: if that is there before, and nobody has read, or is still to read, what the chain makes."""
    if type(b).appended is not Builder.appended:
        return False  # what has been appended has been computed
    ops = b.graph.ops
    promised = {v for values in (*pending, b.graph.outputs) for v in values}
    reader: Op | None = None
    while True:
        op = part.op
        if op is None or op not in ops or any(part in o.operands for o in ops if o is not reader):
            return False
        if part in promised or op.name not in ("scan", "while", "cond", "scatter"):
            return False
        at = _start(part)
        if at is None or is_zero(op.operands[at]):
            break
        reader, part = op, op.operands[at]
    is_outside = total.op is None or total.op in ops[: ops.index(op)]
    if not is_outside or total.type != part.type:
        return False
    if at is None:
        op.regions = tuple([_adding(region, part.index, total) for region in op.regions])
        op.operands = (*op.operands, total)
    else:
        op.operands = (*op.operands[:at], total, *op.operands[at + 1 :])
    return True


def _start(part: Value) -> int | None:
    """Which operand of its op a part starts from; None if it is made in branches, from zeros."""
    op = part.op
    assert op is not None
    if op.name == "cond":
        return len(op.operands) - 1 if _grows_in_branches(part) else None
    return 0 if op.name == "scatter" else op.attrs["consts"] + part.index


def _few_elements(part: Value) -> Op | None:
    """The op that puts a few elements among zeros, if that is what a part is."""
    op = part.op
    if op is None or op.name != "pad" or not is_zero(op.operands[1]):
        return None
    inside = all(n >= 0 for n in (*op.attrs["low"], *op.attrs["high"]))
    return op if inside and 0 < FEW * op.operands[0].tensor.size <= part.tensor.size else None


def _adding(region: Graph, output: int, total: Value) -> Graph:
    """A branch that takes a total, too, and adds one of its outputs to it."""
    new = Graph(region.name)
    b = Builder(new)
    env = {p: new.add_param(p.type, p.name) for p in region.params}
    own = new.add_param(total.type)
    outputs = b.replay(region, env)
    others = [v for i, v in enumerate(outputs) if i != output]
    outputs[output] = accumulate(b, own, outputs[output], [others])
    new.outputs = outputs
    return new


def accumulated(b: Builder, totals: Sequence[Value], values: Sequence[Value]) -> list[Value]:
    """Each of `totals` and what `values` have first for it; all of `values` are to be read later."""
    new: list[Value] = []
    for i, (total, part) in enumerate(zip(totals, values, strict=False)):
        new.append(accumulate(b, total, part, [values[:i], values[i + 1 :], new]))
    return new
