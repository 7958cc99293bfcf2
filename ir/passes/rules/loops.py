"""Loops and branches: what need not be carried, passed in, stacked or run. All rules are exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...autodiff.residuals import can_run_twice, is_cheap
from ...build import Builder
from ...graph import Graph, Op, Value
from ...interpreter import evaluate
from ...subgraphs import reached
from ...types import TensorType, is_linear
from ..dead import params_read
from .rewrite import Replacement, Rewriter, Rule, constant, on, producer, rewrite, uniform

_LOOPS = ("while", "scan", "lanes_while")
_MOST_AFTER = 16  # ops of the last iteration that are run again after the loop
_MAX_TEST = 64  # ops of a loop's condition that are run while compiling


def _carries(op: Op) -> range:
    """Positions of the carries among the operands."""
    first = op.attrs["consts"]
    return range(first, first + op.attrs.get("carries", len(op.results)))


# What a region takes: rebuilding regions with other parameters.

Source = int | Callable[[Builder], Value]


def _with_sources(graph: Graph, params: Sequence[int], sources: dict[int, Source]) -> Graph:
    """`graph` with the parameters at `params` only.

    `sources` says where the others come from: the number of another parameter, or what builds the value.
    """
    new = Graph(graph.name)
    b = Builder(new)
    env = {
        graph.params[i]: new.add_param(graph.params[i].type, graph.params[i].name) for i in params
    }
    for i, source in sources.items():
        env[graph.params[i]] = env[graph.params[source]] if isinstance(source, int) else source(b)
    new.outputs = b.replay(graph, env)
    return new


def _still_carries(b: Rewriter, op: Op) -> Replacement:
    """A carry that the body gives back as it is: a loop invariant, and its own last value."""
    carries = _carries(op)
    body = op.regions[-1]
    still = [
        i
        for i in carries
        if body.outputs[i - carries.start] is body.params[i]
        and not (is_linear(body.params[i].type) and _is_read(op.regions[:-1], i))
    ]
    if not still:
        return None
    consts = [i for i in still if not is_linear(op.operands[i].type)]
    moving = [i for i in carries if i not in still]
    xs = list(range(carries.stop, len(op.operands)))
    if not moving and op.name != "scan":
        # Nothing changes: it runs not at all or forever. What has no effect may be taken to end.
        return None if op.has_effect else [op.operands[i] for i in carries]
    order = [*range(carries.start), *consts, *moving, *xs]
    regions = [_reordered(region, order) for region in op.regions]
    regions[-1].outputs = [
        v for i, v in enumerate(regions[-1].outputs) if i + carries.start not in still
    ]
    attrs = {**op.attrs, "consts": carries.start + len(consts)}
    if "carries" in attrs:
        attrs["carries"] = len(moving)
    values = b.op(op.name, *(op.operands[i] for i in order), regions=regions, **attrs)
    results = iter([values] if isinstance(values, Value) else values)
    gone = {i - carries.start: op.operands[i] for i in still}
    return [gone[i] if i in gone else next(results) for i in range(len(op.results))]


def _is_read(regions: Sequence[Graph], i: int) -> bool:
    """Whether parameter `i` is read: the order token of a condition that has effects."""
    return any(region.params[i] in op.operands for region in regions for op in region.ops)


def _reordered(graph: Graph, order: Sequence[int]) -> Graph:
    """`graph` with its parameters in another order; those left out are not read (tokens pass by)."""
    new = Graph(graph.name)
    env = {
        graph.params[i]: new.add_param(graph.params[i].type, graph.params[i].name) for i in order
    }
    b = Builder(new)
    for op in graph.ops:
        b.copy(op, env)
    new.outputs = [env.get(v, v) for v in graph.outputs]
    return new


def _constant_operands(b: Rewriter, op: Op) -> Replacement:
    """Operands that are constants move into the regions; one value is passed in once.

    Carries stay, but the same carry twice (in: one value; out: one value) is one.
    """
    first = 1 if op.name == "cond" else 0
    last = len(op.operands) if op.name == "cond" else op.attrs["consts"]
    first_index: dict[Value, int] = {}
    sources: dict[int, Source] = {}
    for i in range(first, last):
        v = op.operands[i]
        element = uniform(v)
        if element is not None:
            scalar = op.name == "lanes_while"
            sources[i - first] = _constant(v, element, scalar)
        elif not is_linear(v.type) and first_index.setdefault(v, i) != i:
            sources[i - first] = first_index[v] - first
    if not sources:
        return None
    if op.name == "lanes_while" and len(sources) == len(op.operands):
        return None
    remaining = [i for i in range(len(op.operands) - first) if i not in sources]
    regions = [rewrite(_with_sources(r, remaining, sources), b.table) for r in op.regions]
    attrs = dict(op.attrs)
    if "consts" in attrs:
        attrs["consts"] -= len(sources)
    operands = [*op.operands[:first], *(op.operands[i + first] for i in remaining)]
    values = b.op(op.name, *operands, regions=regions, **attrs)
    return [values] if isinstance(values, Value) else values


def _constant(v: Value, element: object, scalar: bool) -> Callable[[Builder], Value]:
    shape = () if scalar else v.shape
    return lambda b: b.full(shape, element, v.dtype)


def _never_entered(b: Rewriter, op: Op) -> Replacement:
    """A `while` whose condition is false at the start: the initial carry."""
    test = op.regions[0]
    read = params_read(test)
    constants = {i: constant(op.operands[i]) for i in read}
    if any(a is None for a in constants.values()) or len(test.ops) > _MAX_TEST:
        return None
    if any(inner.regions or inner.definition.effect for inner in test.ops):
        return None
    closed = _with_sources(test, (), {i: _array(a) for i, a in constants.items()})
    if evaluate(closed, ())[0]:
        return None
    return op.operands[op.attrs["consts"] :]


def _array(array: object) -> Callable[[Builder], Value]:
    return lambda b: b.const(array)


# scan


def _no_iterations(b: Rewriter, op: Op) -> Replacement:
    if op.attrs["length"] != 0:
        return None
    carries = _carries(op)
    empty = [b.zeros(v.type) for v in op.results[len(carries) :]]
    return [*op.operands[carries.start : carries.stop], *empty]


def _one_iteration(b: Rewriter, op: Op) -> Replacement:
    if op.attrs["length"] != 1:
        return None
    carries = _carries(op)
    slices = [b.reshape(x, shape=x.shape[1:]) for x in op.operands[carries.stop :]]
    out = b.inline(op.regions[0], [*op.operands[: carries.stop], *slices])
    n = len(carries)
    return [*out[:n], *(b.reshape(y, shape=(1, *y.shape)) for y in out[n:])]


def _plain_ys(b: Rewriter, op: Op) -> Replacement:
    """A y that is a slice of an x, a loop invariant or a constant needs no stacking."""
    carries = _carries(op)
    (body,) = op.regions
    n = len(carries)
    outside: dict[int, Value] = {}
    for k, y in enumerate(body.outputs[n:], n):
        element = uniform(y)
        length = op.attrs["length"]
        if y.op is None and y.index >= carries.stop:
            outside[k] = op.operands[y.index]
        elif y.op is None and y.index < carries.start:
            dims = tuple(range(1, len(y.shape) + 1))
            outside[k] = b.broadcast(op.operands[y.index], shape=(length, *y.shape), dims=dims)
        elif element is not None:
            outside[k] = b.full((length, *y.shape), element, y.dtype)
    if not outside:
        return None
    remaining = [k for k in range(len(body.outputs)) if k not in outside]
    if remaining or op.has_effect:
        trimmed = body.giving(body.outputs[k] for k in remaining)
        values = b.op("scan", *op.operands, regions=[trimmed], **op.attrs)
        outside.update(
            zip(remaining, [values] if isinstance(values, Value) else values, strict=True)
        )
    return [outside[k] for k in range(len(body.outputs))]


def _last_of_stack(b: Rewriter, op: Op) -> Replacement:
    """The slice that the last iteration has stacked, where that follows from what is there after the
    loop: from the carries, the invariants and the last slices of xs, and at little cost. Nothing need be
    stacked for it, and its derivative begins at the end, instead of adding zeros in each iteration."""
    view = producer(op.operands[0], "transpose")
    stack = op.operands[0] if view is None else view.operands[0]
    loop = producer(stack, "scan")
    if loop is None or stack.index < loop.attrs["carries"]:
        return None
    perm = tuple(range(len(stack.shape))) if view is None else view.attrs["perm"]
    axis = perm.index(0)
    start, stop, step = (list(op.attrs[name]) for name in ("start", "stop", "step"))
    last = 0 if loop.attrs["reverse"] else loop.attrs["length"] - 1
    if start[axis] != last or op.results[0].shape[axis] != 1:
        return None
    y = _after_loop(b, loop, loop.regions[0].outputs[stack.index], last)
    if y is None:
        return None
    start[axis], stop[axis] = 0, 1
    y = b.transpose(b.reshape(y, shape=(1, *y.shape)), perm=perm)
    value: Value = b.slice(y, start=tuple(start), stop=tuple(stop), step=tuple(step))
    return value


def _after_loop(b: Rewriter, loop: Op, inner: Value, last: int) -> Value | None:
    """What `inner`, a value of the body, was in the last iteration, at position `last` of the xs."""
    (body,) = loop.regions
    carries = _carries(loop)
    ends = zip(body.outputs, loop.results[: len(carries)], strict=False)
    env = {v: result for v, result in ends if not is_linear(v.type)}
    own = set(body.params[carries.start : carries.stop]) - env.keys()
    ops, _ = reached(body.ops, [inner], stop=env)
    read = {inner}.union(*(op.operands for op in ops))
    cheap = all(is_cheap(op) and not op.regions and can_run_twice(op) for op in ops)
    if not cheap or len(ops) > _MOST_AFTER or not own.isdisjoint(read):
        return None
    for param, v in zip(body.params, loop.operands, strict=True):
        if param in read and param not in env:
            env[param] = v if param.index < carries.start else _slice_at(b, v, last)
    for op in body.ops:
        if op in ops:
            b.copy(op, env)
    return env[inner]


def _slice_at(b: Rewriter, x: Value, index: int) -> Value:
    start, stop = (index, *[0] * (len(x.shape) - 1)), (index + 1, *x.shape[1:])
    return b.reshape(
        b.slice(x, start=start, stop=stop, step=(1,) * len(x.shape)), shape=x.shape[1:]
    )


# cond


def _equal_branches(b: Rewriter, op: Op) -> Replacement:
    """A result that is one operand in all branches is that operand."""
    equal: dict[int, Value] = {}
    for k, v in enumerate(op.results):
        outputs = {r.outputs[k].index if r.outputs[k].op is None else -1 for r in op.regions}
        (index, *more) = outputs
        if not more and index >= 0 and isinstance(v.type, TensorType):
            equal[k] = op.operands[index + 1]
    if not equal:
        return None
    remaining = [k for k in range(len(op.results)) if k not in equal]
    if remaining or op.has_effect:
        regions = [r.giving(r.outputs[k] for k in remaining) for r in op.regions]
        values = b.op("cond", *op.operands, regions=regions)
        equal.update(zip(remaining, [values] if isinstance(values, Value) else values, strict=True))
    return [equal[k] for k in range(len(op.results))]


LAST: list[Rule] = [on("slice", _last_of_stack, of=name) for name in ("scan", "transpose")]
LOOPS: list[Rule] = [
    on("scan", _no_iterations),
    on("scan", _one_iteration),
    on("while", _never_entered),
    *(on(name, _constant_operands) for name in (*_LOOPS, "cond")),
    *(on(name, _still_carries) for name in _LOOPS),
    on("scan", _plain_ys),
    *LAST,
    on("cond", _equal_branches),
]
