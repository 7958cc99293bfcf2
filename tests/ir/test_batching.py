"""Batching of graphs: a batched graph computes what the graph computes for each example."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from graphs import arrays_of, random_graphs, smooth_graphs
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import Case, cases, parts

from jitney.ir.autodiff.transform import jvp_graph, vjp_graph
from jitney.ir.batching.transform import BatchingError, batch_graph
from jitney.ir.build import Builder
from jitney.ir.graph import Graph
from jitney.ir.interpreter import evaluate
from jitney.ir.opdef import OPS
from jitney.ir.ops.control.callbacks import PythonFunction
from jitney.ir.types import F64, I32, I64, TAPE, TOKEN, TensorType, finfo, is_small
from jitney.ir.verify import verify

SOURCES = {"constant", "iota", "create_token"}  # no operands, so nothing to batch
INSIDE = {"recurse"}  # of a `recursion`, which is batched as a whole


def compare(
    graph: Graph,
    batched: Sequence[bool],
    size: int,
    arrays: Sequence[np.ndarray],
    exact: bool = False,
) -> Graph:
    """Assert that `graph`, batched, gives for each row what `graph` gives for that example."""
    new, flags = batch_graph(graph, batched, size)
    verify(new)
    results = evaluate(new, arrays)
    wanted = [
        evaluate(graph, [a[i] if flag else a for a, flag in zip(arrays, batched, strict=True)])
        for i in range(size)
    ]
    for k, (got, flag, v) in enumerate(zip(results, flags, graph.outputs, strict=True)):
        if not isinstance(v.type, TensorType) or not size:
            continue
        rows = got if flag else np.stack([got] * len(wanted))
        want = np.stack([results[k] for results in wanted])
        assert rows.dtype == wanted[0][k].dtype and rows.shape == want.shape
        if is_small(want.dtype):
            close = 4 * float(finfo(want.dtype).eps)
            np.testing.assert_allclose(rows.astype(F64), want.astype(F64), close, close)
        elif exact or want.dtype.kind not in "fc":
            np.testing.assert_array_equal(rows, want)
        else:
            tolerance = 1e-5 if want.dtype in (np.float32, np.complex64) else 1e-11
            np.testing.assert_allclose(rows, want, rtol=tolerance, atol=tolerance)
    return new


def stacked(rng: np.random.Generator, case: Any, batched: Sequence[bool], size: int) -> list[Any]:
    rows = [case.sample(rng) for _ in range(max(size, 1))]
    return [
        np.stack([row[i] for row in rows])[:size] if flag else rows[0][i]
        for i, flag in enumerate(batched)
    ]


@pytest.mark.parametrize("name", sorted(OPS))
def test_every_op_has_a_rule(name: str) -> None:
    assert (OPS[name].batch is not None) == (name not in SOURCES | INSIDE)


ALIKE: dict[tuple[str, str], list[Case]] = {}
for _name in sorted(OPS):
    _cases = list(cases(OPS[_name]))
    ALIKE[_name, "f64"] = [case for case in _cases if case.dtype == F64]
    for _part, _found in parts(case for case in _cases if case.dtype != F64).items():
        ALIKE[_name, _part] = _found


@pytest.mark.parametrize(("name", "part"), [key for key, found in ALIKE.items() if found])
def test_each_combination_of_batched_operands(name: str, part: str) -> None:
    rng = np.random.default_rng(len(name))
    for case in ALIKE[name, part]:
        graph = case.graph()
        count = len(graph.params)
        for batched in product([False, True], repeat=count):
            for size in (3, 1, 0) if part == "f64" else (2,):
                compare(graph, batched, size, stacked(rng, case, batched, size))


def test_what_is_not_batched_stays_as_it_is() -> None:
    graph = Graph("f")
    x, w = (graph.add_param(TensorType((3,), F64)) for _ in range(2))
    b = Builder(graph)
    graph.outputs = [b.add(x, b.exp(w)), b.sum(w, axes=(0,))]
    new, flags = batch_graph(graph, [True, False], 5)
    assert flags == [True, False]
    assert [(op.name, op.result.shape) for op in new.ops] == [
        ("exp", (3,)),
        ("broadcast", (5, 3)),
        ("add", (5, 3)),
        ("sum", ()),
    ]


def test_a_matrix_times_many_vectors_needs_no_transpose() -> None:
    graph = Graph("f")
    w, x = graph.add_param(TensorType((4, 3), F64)), graph.add_param(TensorType((3,), F64))
    graph.outputs = [Builder(graph).dot(w, x, contract=((1,), (0,)), batch=((), ()))]
    new, _ = batch_graph(graph, [False, True], 5)
    assert [op.name for op in new.ops] == ["dot"]


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_random_graphs(data: st.DataObject) -> None:
    graph, arrays = data.draw(random_graphs(max_ops=20, exact=True, effects=False))
    batched = [data.draw(st.booleans()) for _ in graph.params]
    size = data.draw(st.sampled_from([1, 2, 3]))
    given = [
        np.stack([array, *(data.draw(arrays_of(v.tensor)) for _ in range(size - 1))])
        if flag
        else array
        for v, array, flag in zip(graph.params, arrays, batched, strict=True)
    ]
    compare(graph, batched, size, given, exact=True)


# Structured ops


def ops_of(graph: Graph) -> set[str]:
    return {op.name for op in graph.walk()}


@pytest.mark.parametrize("batched", list(product([False, True], repeat=3)))
def test_branches(batched: tuple[bool, bool, bool]) -> None:
    graph = branches()
    values = [np.array([-1, 0, 1, 7], np.int32), np.arange(8.0).reshape(4, 2), np.arange(4)]
    arrays = [v if flag else v[3] for v, flag in zip(values, batched, strict=True)]
    new = compare(graph, batched, 4, arrays, exact=True)
    assert ("cond" in ops_of(new)) == (not batched[0])


def branches() -> Graph:
    types = [TensorType((2,), F64), TensorType((), I64)]
    left, right = region("left", types), region("right", types)
    x, k = left.graph.params
    left.graph.outputs = [left.neg(x), k]
    x, k = right.graph.params
    right.graph.outputs = [right.mul(x, x), right.add(k, k)]
    b = region("f", [TensorType((), I32), *types])
    b.graph.outputs = list(b.op("cond", *b.graph.params, regions=[left.graph, right.graph]))
    return b.graph


def region(name: str, types: Sequence[Any]) -> Builder:
    graph = Graph(name)
    for type in types:
        graph.add_param(type)
    return Builder(graph)


INT, REAL = TensorType((), I64), TensorType((), F64)


def loop(body: Any, test: Any, types: Sequence[Any], consts: int, **attrs: Any) -> Graph:
    """A graph that is one `while`; `test` and `body` take a builder and values."""
    first, second = region("test", types), region("body", types)
    first.graph.outputs = [test(first, *first.graph.params)]
    second.graph.outputs = list(body(second, *second.graph.params))
    b = region("f", types)
    out = b.op(
        "while", *b.graph.params, regions=[first.graph, second.graph], consts=consts, **attrs
    )
    b.graph.outputs = list(out) if isinstance(out, tuple) else [out]
    return b.graph


def counted(type: TensorType) -> Graph:
    """(n, i, x): x doubles, plus one, until i reaches n."""

    def body(b: Builder, n: Any, i: Any, x: Any) -> list[Any]:
        return [b.add(i, b.const(1, I64)), b.add(b.add(x, x), b.full_like(x, 1))]

    return loop(body, lambda b, n, i, x: b.lt(i, n), [INT, INT, type], 1)


@pytest.mark.parametrize("batched", list(product([False, True], repeat=3)))
@pytest.mark.parametrize("shape", [(), (2,)])
def test_loops(shape: tuple[int, ...], batched: tuple[bool, bool, bool]) -> None:
    graph = counted(TensorType(shape, F64))
    values = [np.array([0, 5, 3, 1]), np.array([0, 0, 2, 3]), np.ones((4, *shape))]
    values[2] *= np.arange(4).reshape(4, *[1] * len(shape))
    arrays = [v if flag else v[1] for v, flag in zip(values, batched, strict=True)]
    new = compare(graph, batched, 4, arrays, exact=True)
    same_trips = not (batched[0] or batched[1])
    kind = "while" if same_trips or shape else "lanes_while"
    assert ops_of(new) & {"while", "lanes_while"} == {kind}


def test_a_carry_becomes_batched_through_another() -> None:
    def body(b: Builder, x: Any, i: Any, p: Any, q: Any, r: Any) -> list[Any]:
        return [b.add(i, b.const(1, I64)), b.add(p, q), b.mul(r, x), r]

    graph = loop(
        body, lambda b, x, i, *_: b.lt(i, b.const(4, I64)), [REAL, INT, REAL, REAL, REAL], 1
    )
    arrays = [np.array([1.0, 2.0, 3.0]), np.int64(0), *map(np.float64, (1, 2, 3))]
    new = compare(graph, [True, False, False, False, False], 3, arrays, exact=True)
    assert "lanes_while" not in ops_of(new)  # the trips are the same for all


def test_a_loop_of_no_examples() -> None:
    compare(counted(REAL), [True, True, True], 0, [np.zeros(0, int), np.zeros(0, int), np.zeros(0)])


def safe_reads() -> Graph:
    """(x, n, i, s): while i < n: s += x[i]. Beyond the end an index is an error."""

    def body(b: Builder, x: Any, n: Any, i: Any, s: Any) -> list[Any]:
        found = b.gather(x, i, axes=(0,), mode="check")
        return [b.add(i, b.const(1, I64)), b.add(s, found)]

    types = [TensorType((5,), F64), INT, INT, REAL]
    return loop(body, lambda b, x, n, i, s: b.lt(i, n), types, 2)


@pytest.mark.parametrize("batched", list(product([False, True], repeat=4)))
def test_examples_that_are_done_read_nothing(batched: tuple[bool, ...]) -> None:
    values = [
        np.arange(15.0).reshape(3, 5),
        np.array([5, 2, 0]),
        np.array([0, 1, 7]),
        np.array([0.5, 1.5, 2.5]),
    ]
    arrays = [v if flag else v[0] for v, flag in zip(values, batched, strict=True)]
    compare(safe_reads(), batched, 3, arrays, exact=True)


def test_an_index_out_of_range_is_found_where_it_counts() -> None:
    new, _ = batch_graph(safe_reads(), [False, True, True, False], 2)
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        evaluate(new, [np.zeros(5), np.array([3, 6]), np.array([0, 0]), np.float64(0)])


def guarded(kind: str) -> Graph:
    """(i, x, k): branch 1 does what fails, or runs forever, unless k is 1."""
    types = [TensorType((3,), F64), INT]
    calm, risky = region("calm", types), region("risky", types)
    x, k = calm.graph.params
    calm.graph.outputs = [calm.sum(x, axes=(0,))]
    b = risky
    x, k = b.graph.params
    if kind == "gather":
        out = b.gather(x, b.mul(k, b.const(2, I64)), axes=(0,), mode="check")
    elif kind == "scatter":
        x = b.scatter(
            x, b.const(1.0), b.mul(k, b.const(2, I64)), axes=(0,), mode="check", combine="set"
        )
        out = b.sum(x, axes=(0,))
    elif kind == "same index":
        out = b.gather(x, b.const(5, I64), axes=(0,), mode="check")
    elif kind == "assert":
        b.op("assert", b.eq(k, b.const(1, I64)), k, b.op("create_token"), message="k is {:d}")
        out = b.max(x, axes=(0,))
    else:
        steps = counted_up(kind)
        out = b.convert(b.inline(steps, [k])[0], dtype=F64)
    b.graph.outputs = [out]
    whole = region("f", [TensorType((), I32), *types])
    whole.graph.outputs = [whole.op("cond", *whole.graph.params, regions=[calm.graph, risky.graph])]
    return whole.graph


def counted_up(kind: str) -> Graph:
    """Ends if k is 1. kind: a scalar loop, one over arrays, or one with a scan inside."""

    def body(b: Builder, k: Any, i: Any, v: Any) -> list[Any]:
        if kind == "scan loop":
            inner = region("step", [INT])
            inner.graph.outputs = [inner.add(inner.graph.params[0], inner.const(1, I64))]
            i = b.op("scan", i, regions=[inner.graph], consts=0, carries=1, length=1, reverse=False)
            return [i, v]
        return [b.add(i, b.const(1, I64)), v]

    shape = () if kind == "scalar loop" else (2,)
    graph = loop(body, lambda b, k, i, v: b.ne(i, k), [INT, INT, TensorType(shape, F64)], 1)
    b = region("steps", [INT])
    zeros = b.full(shape, 0, F64)
    b.graph.outputs = b.inline(graph, [b.graph.params[0], b.const(0, I64), zeros])[:1]
    return b.graph


@pytest.mark.parametrize(
    "kind", "gather scatter assert".split() + ["scalar loop", "array loop", "scan loop"]
)
@pytest.mark.parametrize("batched_k", [False, True])
def test_what_a_branch_not_taken_would_do_is_not_done(kind: str, batched_k: bool) -> None:
    graph = guarded(kind)
    x = np.arange(9.0).reshape(3, 3)
    if batched_k:
        index, k = np.array([0, 1, 0], np.int32), np.array([-7, 1, -3])
        compare(graph, [True, True, True], 3, [index, x, k], exact=True)
    else:
        compare(graph, [True, True, False], 3, [np.zeros(3, np.int32), x, np.int64(-7)])
    if kind in ("gather", "scatter"):
        new, _ = batch_graph(graph, [True, True, False], 3)
        with pytest.raises(IndexError, match="-14"):
            evaluate(new, [np.array([0, 0, 1], np.int32), x, np.int64(-7)])


def test_an_index_that_is_always_wrong_fails_only_if_some_example_goes_there() -> None:
    new, _ = batch_graph(guarded("same index"), [True, False, False], 2)
    x, k = np.arange(3.0), np.int64(0)
    np.testing.assert_array_equal(evaluate(new, [np.zeros(2, np.int32), x, k])[0], [3.0, 3.0])
    with pytest.raises(IndexError, match="index 5"):
        evaluate(new, [np.array([0, 1], np.int32), x, k])


def test_an_assert_reports_the_first_example_that_fails() -> None:
    new, _ = batch_graph(guarded("assert"), [True, False, True], 4)
    index = np.array([0, 1, 1, 1], np.int32)
    with pytest.raises(AssertionError, match="^k is 5$"):
        evaluate(new, [index, np.zeros(3), np.array([9, 1, 5, 6])])
    batched, _ = batch_graph(guarded("assert"), [False, False, True], 2)
    with pytest.raises(AssertionError, match="^k is 3$"):
        evaluate(batched, [np.int32(1), np.zeros(3), np.array([1, 3])])
    evaluate(batched, [np.int32(1), np.zeros(3), np.array([1, 1])])
    evaluate(batched, [np.int32(0), np.zeros(3), np.array([4, 4])])


def test_a_nested_loop_of_scalars_is_lanewise() -> None:
    """Sum of the divisors of n, two loops and a branch inside."""

    def inner_body(b: Builder, n: Any, i: Any, s: Any) -> list[Any]:
        yes, no = region("yes", [INT, INT]), region("no", [INT, INT])
        yes.graph.outputs = [yes.add(*yes.graph.params)]
        no.graph.outputs = [no.graph.params[0]]
        divides = b.convert(b.eq(b.remainder(n, i), b.const(0, I64)), dtype=I32)
        s = b.op("cond", divides, s, i, regions=[no.graph, yes.graph])
        return [b.add(i, b.const(1, I64)), s]

    inner = loop(inner_body, lambda b, n, i, s: b.le(i, n), [INT, INT, INT], 1)

    def outer_body(b: Builder, n: Any, total: Any) -> list[Any]:
        _, s = b.inline(inner, [n, b.const(1, I64), b.const(0, I64)])
        return [b.sub(n, b.const(1, I64)), b.add(total, s)]

    graph = loop(outer_body, lambda b, n, total: b.gt(n, b.const(0, I64)), [INT, INT], 0)
    new = compare(graph, [True, False], 5, [np.array([6, 0, 3, 10, 1]), np.int64(0)])
    assert [op.name for op in new.ops] == ["broadcast", "lanes_while"]
    again = compare(
        new, [True, True], 2, [np.arange(10).reshape(2, 5), np.array([0, 7])], exact=True
    )
    assert [op.name for op in again.ops] == ["broadcast", "lanes_while"]


def scan_graph(reverse: bool) -> Graph:
    """Carry c, const w, xs (x, n): c' = c * x + w; ys are c' and n + 1."""
    body = region("body", [REAL, REAL, REAL, INT])
    w, c, x, n = body.graph.params
    new = body.add(body.mul(c, x), w)
    body.graph.outputs = [new, new, body.add(n, body.const(1, I64))]
    b = region("f", [REAL, REAL, TensorType((4,), F64), TensorType((4,), I64)])
    attrs = {"consts": 1, "carries": 1, "length": 4, "reverse": reverse}
    b.graph.outputs = list(b.op("scan", *b.graph.params, regions=[body.graph], **attrs))
    return b.graph


@pytest.mark.parametrize("batched", list(product([False, True], repeat=4)))
@pytest.mark.parametrize("reverse", [False, True])
def test_scans(reverse: bool, batched: tuple[bool, ...]) -> None:
    rng = np.random.default_rng(0)
    values = [
        rng.normal(size=3),
        rng.normal(size=3),
        rng.normal(size=(3, 4)),
        np.arange(12).reshape(3, 4),
    ]
    arrays = [v if flag else v[0] for v, flag in zip(values, batched, strict=True)]
    new, flags = batch_graph(scan_graph(reverse), batched, 3)
    assert flags == [any(batched[:3]), any(batched[:3]), batched[3]]
    compare(scan_graph(reverse), batched, 3, arrays, exact=True)


def taped(trips: str) -> Graph:
    """(x, n): pushes x, x**2, ... and pops them again; as often as n says, or three times."""

    def push(b: Builder, x: Any, n: Any, i: Any, p: Any, tape: Any) -> list[Any]:
        return [b.add(i, b.const(1, I64)), b.mul(p, x), b.op("tape_push", tape, p, i)]

    def pop(b: Builder, i: Any, s: Any, tape: Any) -> list[Any]:
        tape, p, k = b.op("tape_pop", tape, types=(REAL, INT))
        return [b.sub(i, b.const(1, I64)), b.add(b.mul(s, b.const(2.0)), p), tape]

    def more(b: Builder, x: Any, n: Any, i: Any, *_: Any) -> Any:
        return b.lt(i, n if trips == "many" else b.const(3, I64))

    down = loop(pop, lambda b, i, *_: b.gt(i, b.const(0, I64)), [INT, REAL, TAPE], 0)
    up = loop(push, more, [REAL, INT, INT, REAL, TAPE], 2)
    b = region("f", [REAL, INT])
    x, n = b.graph.params
    i, p, tape = b.inline(up, [x, n, b.const(0, I64), b.sin(x), b.op("tape_new")])
    middle = b.mul(p, x)
    b.graph.outputs = [*b.inline(down, [i, middle, tape])[:2], b.exp(x)]
    return b.graph


def test_tapes_of_batched_records() -> None:
    arrays = [np.array([0.5, 1.5, -2.0]), np.int64(0)]
    new = compare(taped("three"), [True, False], 3, arrays)
    assert "scan" not in ops_of(new)


def test_tapes_of_examples_that_leave_a_loop_one_by_one() -> None:
    arrays = [np.array([0.5, 1.5, -2.0]), np.array([3, 0, 5])]
    for batched in ([True, True], [False, True]):
        given = [a if flag else a[2] for a, flag in zip(arrays, batched, strict=True)]
        compare(taped("many"), batched, 3, given)
        compare(taped("three"), batched, 3, given)


def callback(pure: bool) -> Graph:
    calls.clear()

    def double(x: np.ndarray) -> tuple[np.ndarray]:
        calls.append(float(x))
        if x < 0:
            raise ValueError("negative")
        return (2 * x,)

    function = PythonFunction(double, (REAL,))
    b = region("f", [REAL])
    if pure:
        b.graph.outputs = [b.op("pure_callback", *b.graph.params, function=function)]
    else:
        token = b.op("create_token")
        b.graph.outputs = list(b.op("io_callback", *b.graph.params, token, function=function))
    return b.graph


calls: list[float] = []


def test_a_pure_callback_is_called_for_one_example_after_the_other() -> None:
    graph = callback(pure=True)
    new, flags = batch_graph(graph, [True], 3)
    np.testing.assert_array_equal(evaluate(new, [np.array([1.0, 2.0, 3.0])])[0], [2.0, 4.0, 6.0])
    assert flags == [True] and calls == [1.0, 2.0, 3.0]


def test_a_callback_is_not_called_for_examples_that_do_not_get_there() -> None:
    inner = callback(pure=True)
    calm = region("calm", [REAL])
    calm.graph.outputs = list(calm.graph.params)
    b = region("f", [REAL])
    (x,) = b.graph.params
    index = b.convert(b.ge(x, b.const(0.0)), dtype=I32)
    b.graph.outputs = [b.op("cond", index, x, regions=[calm.graph, inner])]
    compare(b.graph, [True], 4, [np.array([1.0, -2.0, 3.0, -4.0])])
    assert min(calls) > 0


def test_a_callback_with_effects_is_refused() -> None:
    for batched in (True, False):
        with pytest.raises(BatchingError, match="callback with effects") as caught:
            batch_graph(callback(pure=False), [batched], 3)
        assert caught.value.op.name == "io_callback"
    wrapped = region("f", [TensorType((), I32), REAL, TOKEN])
    index, x, token = wrapped.graph.params
    inner = region("g", [REAL, TOKEN])
    function = PythonFunction(lambda x: (x,), (REAL,))
    inner.graph.outputs = list(inner.op("io_callback", *inner.graph.params, function=function))
    wrapped.graph.outputs = list(wrapped.op("cond", index, x, token, regions=[inner.graph] * 2))
    with pytest.raises(BatchingError):
        batch_graph(wrapped.graph, [False, False, False], 3)


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_batching_twice(data: st.DataObject) -> None:
    graph, arrays = data.draw(random_graphs(max_ops=10, exact=True, effects=False))
    once, flags = batch_graph(graph, [True] * len(arrays), 2)
    rows = [np.stack([a, a]) for a in arrays]
    compare(once, [True] * len(arrays), 2, [np.stack([r, r[::-1]]) for r in rows], exact=True)


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_batched_derivatives(data: st.DataObject) -> None:
    graph, arrays = data.draw(smooth_graphs(max_ops=12))
    derive = data.draw(st.sampled_from([vjp_graph, jvp_graph]))
    derivative = derive(graph, list(range(len(arrays))))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    batched = [data.draw(st.booleans()) for _ in derivative.params]
    shapes = [
        ((2,) if f else ()) + v.shape for v, f in zip(derivative.params, batched, strict=True)
    ]
    compare(derivative, batched, 2, [rng.normal(size=shape) for shape in shapes])
