"""`scan`: type rule, reference, derivatives, what it stacks, and the passes that know it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from derivatives import check_derivatives
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import cond, gradient, integer, program, repeat, run, scan

from jitney.ir.autodiff.transform import jvp_graph, vjp_graph
from jitney.ir.build import Builder
from jitney.ir.graph import Graph, Op
from jitney.ir.interpreter import evaluate
from jitney.ir.opdef import OPS, GraphError
from jitney.ir.ops.term import Term, where
from jitney.ir.passes import optimise
from jitney.ir.passes.simplify import last_of_loops
from jitney.ir.text import print_graph
from jitney.ir.text_parser import parse_graph
from jitney.ir.types import BOOL, F64, I64, TAPE, TOKEN, TensorType
from jitney.ir.verify import verify

rng = np.random.default_rng(4)
WORD = TensorType((), F64)


def normal(*shape: int) -> np.ndarray:
    return rng.normal(size=shape)


def total(x: Term, *axes: int) -> Term:
    return Term(x.b, x.b.sum(x.value, axes=axes))


def check(graph: Graph, arrays: list[Any], second: bool = True) -> None:
    """First and second derivatives; the optimised gradient is the same to the bit."""
    arrays = [np.asarray(a) for a in arrays]
    check_derivatives(graph, arrays, rng)
    backward = gradient(graph)
    cts = [normal(*v.shape) for v in graph.outputs if v.dtype.kind == "f"]
    better = optimise(backward, verify=True)
    for a, b in zip(run(backward, *arrays, *cts), run(better, *arrays, *cts), strict=True):
        np.testing.assert_array_equal(a, b)
    if second:
        check_derivatives(backward, [*arrays, *cts], rng)


# Meaning


@settings(max_examples=25, deadline=None)
@given(
    length=st.integers(0, 6),
    reverse=st.booleans(),
    shape=st.sampled_from([(), (3,), (2, 0)]),
    dtype=st.sampled_from([np.float64, np.int16, np.bool_]),
)
def test_reference_is_a_loop(length: int, reverse: bool, shape: Any, dtype: Any) -> None:
    xs = np.random.default_rng(length).integers(0, 2, (length, *shape)).astype(dtype)
    first = np.ones(shape, dtype)
    name = "bitwise_xor" if dtype == np.bool_ else "add"

    def body(c: Term, x: Term) -> list[Any]:
        new = Term(c.b, c.b.op(name, c.value, x.value))
        return [new, c, x.eq(new)]

    graph = program(lambda c, x: scan(body, [], [c], [x], length, reverse), first, xs)
    last, before, same = run(graph, first, xs)
    carry = first
    order = range(length)[::-1] if reverse else range(length)
    for i in order:
        np.testing.assert_array_equal(before[i], carry)
        carry = carry ^ xs[i] if dtype == np.bool_ else carry + xs[i]
        np.testing.assert_array_equal(same[i], carry == xs[i])
    np.testing.assert_array_equal(last, carry)
    assert before.shape == (length, *shape) and same.dtype == np.bool_
    better = optimise(graph, verify=True)
    for a, b in zip(run(better, first, xs), (last, before, same), strict=True):
        np.testing.assert_array_equal(a, b)


def body_of(*types: Any, outputs: int = 1) -> Graph:
    graph = Graph("body")
    params = [graph.add_param(t) for t in types]
    graph.outputs = params[:outputs]
    return graph


ATTRS = {"consts": 0, "carries": 1, "length": 3, "reverse": False}
BAD = [
    ([WORD, TensorType((4,), F64)], [body_of(WORD, WORD)], ATTRS, "leading dimension"),
    ([WORD, WORD], [body_of(WORD, WORD)], ATTRS, "leading dimension"),
    ([WORD, TOKEN], [body_of(WORD, WORD)], ATTRS, "leading dimension"),
    ([WORD], [body_of(TensorType((), I64))], ATTRS, "body takes"),
    ([WORD], [body_of(WORD, outputs=0)], ATTRS, "for the carry"),
    ([WORD], [body_of(WORD), body_of(WORD)], ATTRS, "one region"),
    ([WORD], [body_of(WORD)], {**ATTRS, "length": -1}, "negative"),
    ([WORD], [body_of(WORD)], {**ATTRS, "carries": 2}, "carries=2"),
    ([TAPE], [body_of(TAPE)], {**ATTRS, "consts": 1, "carries": 0}, "loop invariant"),
    ([TOKEN], [body_of(TOKEN)], {**ATTRS, "consts": 1, "carries": 0}, "loop invariant"),
]


@pytest.mark.parametrize(("types", "regions", "attrs", "message"), BAD)
def test_type_rule(types: Any, regions: Any, attrs: Any, message: str) -> None:
    graph = Graph("f")
    params = [graph.add_param(t) for t in types]
    with pytest.raises(GraphError, match=message):
        Builder(graph).append(OPS["scan"], params, attrs, regions)


def test_ys_are_tensors() -> None:
    graph = Graph("f")
    params = [graph.add_param(t) for t in (WORD, TOKEN)]
    body = body_of(WORD, TOKEN, outputs=2)
    with pytest.raises(GraphError, match="a y has type token"):
        Builder(graph).append(OPS["scan"], [params[0]], {**ATTRS}, [drop_token(body)])


def drop_token(body: Graph) -> Graph:
    """A body that makes a token of its own."""
    graph = Graph("body")
    graph.outputs = [graph.add_param(WORD), Builder(graph).op("create_token")]
    return graph


# Derivatives


def cell(w: Term, h: Term, c: Term, x: Term) -> list[Term]:
    """Half an LSTM: contractions, transcendental functions, two carries, one y."""
    b = h.b
    joint = Term(b, b.concat(h.value, x.value, axis=0))
    z = Term(b, b.dot(w.value, joint.value, contract=((1,), (0,)), batch=((), ())))
    gate = 1.0 / ((-z).exp() + 1.0)
    c = c * gate + z.tanh() * 0.5
    h = c.tanh() * gate
    return [h, c, h * h]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 4])
def test_recurrent_cell(length: int, reverse: bool) -> None:
    arrays = [normal(2, 4), normal(2), normal(2), normal(length, 2)]
    graph = program(lambda w, h, c, x: scan(cell, [w], [h, c], [x], length, reverse), *arrays)
    check(graph, arrays)


def test_against_unrolled() -> None:
    length = 5
    arrays = [normal(2, 4), normal(2), normal(2), normal(length, 2)]

    def unrolled(w: Term, h: Term, c: Term, x: Term) -> list[Term]:
        b = h.b
        ys = []
        for i in range(length):
            row = b.slice(x.value, start=(i, 0), stop=(i + 1, 2), step=(1, 1))
            h, c, y = cell(w, h, c, Term(b, b.reshape(row, shape=(2,))))
            ys.append(b.reshape(y.value, shape=(1, 2)))
        return [h, c, Term(b, b.concat(*ys, axis=0))]

    looped = program(lambda w, h, c, x: scan(cell, [w], [h, c], [x], length), *arrays)
    flat = program(unrolled, *arrays)
    cts = [normal(2), normal(2), normal(length, 2)]
    for make in (gradient, lambda g: gradient(gradient(g))):
        a, b = make(looped), make(flat)
        more = [normal(*v.shape) for v in a.params[len(arrays) + len(cts) :]]
        for x, y in zip(run(a, *arrays, *cts, *more), run(b, *arrays, *cts, *more), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12)


def odd_carries(k: Term, c: Term, x: Term, xs: Term, ns: Term) -> list[Term]:
    """Integer and bool carries, permuted ones, one left alone, xs that are integers."""

    def body(
        c: Term, i: Term, flag: Term, x: Term, y: Term, still: Term, row: Term, n: Term
    ) -> list[Term]:
        scale = Term(n.b, n.b.broadcast_to(n.b.convert(n.value, dtype=F64), (3,)))
        new = where(flag, x * row, x.sin() + c) * scale
        return [i + n, x < y, y * still, new, still, total(new, 0), i]

    start = [k, x < 0.0, x, x * 0.5, c + 1.0]
    return scan(body, [c], start, [xs, ns], 4, True)


def test_odd_carries() -> None:
    arrays = [np.int64(2), normal(3), normal(3), normal(4, 3), np.array([1, -1, 2, 1])]
    graph = program(odd_carries, *arrays)
    check(graph, arrays)


def nested(n: Term, c: Term, x: Term, xs: Term) -> list[Term]:
    """while in scan in cond in scan: tapes that loops save are put on tapes of tapes."""

    def leaf(i: Term, c: Term, x: Term) -> list[Term]:
        return [x.sin() * c]

    def inner(n: Term, c: Term, x: Term, row: Term) -> list[Term]:
        (z,) = repeat(n, leaf, [c], [x * row])
        return [z, z + row]

    def taken(n: Term, c: Term, x: Term, xs: Term) -> list[Term]:
        z, zs = scan(inner, [n, c], [x], [xs], 2)
        return [z, total(zs, 0)]

    def other(n: Term, c: Term, x: Term, xs: Term) -> list[Term]:
        return [x * c, x]

    def outer(c: Term, xs: Term, i: Term, x: Term) -> list[Term]:
        odd = Term(i.b, i.b.remainder(i.value, i.b.const(2, I64)))
        z, y = cond(odd, [taken, other], [i, c, x, xs])
        return [i + 1, z, y.tanh()]

    return scan(outer, [c, xs], [n, x], [], 4)[1:]


def test_nested_loops() -> None:
    arrays = [np.int64(0), normal(2), normal(2), normal(2, 2)]
    check(program(nested, *arrays), arrays)


def test_only_what_is_wanted_is_differentiated() -> None:
    arrays = [normal(2, 4), normal(2), normal(2), normal(3, 2)]
    graph = program(lambda w, h, c, x: scan(cell, [w], [h, c], [x], 3), *arrays)
    whole = gradient(graph)
    cts = [normal(2), normal(2), normal(3, 2)]
    expected = run(whole, *arrays, *cts)
    for i in range(4):
        (got,) = run(gradient(graph, [i]), *arrays, *cts)
        np.testing.assert_allclose(got, expected[i], rtol=1e-12)
    last_only = vjp_graph(graph, [0], outputs=[0])
    zeros = [cts[0], np.zeros(2), np.zeros((3, 2))]
    (got,) = evaluate(last_only, [*arrays, cts[0]])[3:]
    np.testing.assert_allclose(got, run(whole, *arrays, *zeros)[0], rtol=1e-12)


def stacked(graph: Graph) -> list[tuple[str, tuple[int, ...]]]:
    """What the forward scan of a gradient stacks: producer in the body, and shape."""
    loop = next(op for op in graph.ops if op.name == "scan")
    carries = loop.attrs["carries"]
    body = loop.regions[0]
    return [(v.op.name if v.op is not None else "param", v.shape) for v in body.outputs[carries:]]


def test_what_is_stacked() -> None:
    """Nothing invariant, nothing cheap; the expensive part of a chain, not each link of it."""

    def body(w: Term, c: Term, x: Term) -> list[Term]:
        scale = w.exp()  # invariant: computed once
        shifted = (c * 2.0 + 1.0) * scale * x  # cheap, from c and x
        return [shifted.sin()]

    arrays = [normal(3) * 0.1, normal(3), normal(5, 3) * 0.1]
    graph = program(lambda w, c, x: scan(body, [w], [c], [x], 5), *arrays)
    found = optimise(gradient(graph))
    # The carry is enough for the cheap part, and cos for sin.
    assert sorted(stacked(found)) == [("cos", (3,)), ("param", (3,))]
    exps = [op for op in found.walk() if op.name == "exp"]
    assert len(exps) == 1 and exps[0] in found.ops
    check(graph, arrays)


def test_xs_and_ys_are_not_stacked_twice() -> None:
    """x is there anyway; exp(c) is a y, so its stack is there, too."""

    def body(c: Term, x: Term) -> list[Term]:
        y = c.exp()
        return [y * x, y]

    arrays = [normal(3) * 0.1, normal(4, 3) * 0.1]
    graph = program(lambda c, x: scan(body, [], [c], [x], 4), *arrays)
    found = optimise(vjp_graph(graph, [0, 1]))
    assert stacked(found) == [("exp", (3,))]
    check(graph, arrays)


def test_big_operands_of_a_small_value() -> None:
    """A sum of a big array: the sum is stacked, not the array."""

    def body(m: Term, c: Term, x: Term) -> list[Term]:
        wide = Term(c.b, c.b.broadcast(c.value, shape=(50, 2), dims=(1,)))
        s = total(wide * m * x, 0, 1)
        return [c * Term(c.b, c.b.broadcast(s.tanh().value, shape=(2,), dims=()))]

    arrays = [normal(50, 2) * 0.1, normal(2), normal(3, 50, 2)]
    graph = program(lambda m, c, x: scan(body, [m], [c], [x], 3), *arrays)
    found = optimise(gradient(graph))
    assert all(np.prod(shape, dtype=int) <= 2 for _, shape in stacked(found))
    check(graph, arrays, second=False)


def test_forward_part_runs_once() -> None:
    arrays = [normal(2, 4), normal(2), normal(2), normal(3, 2)]
    graph = program(lambda w, h, c, x: scan(cell, [w], [h, c], [x], 3), *arrays)
    for make, count in ((vjp_graph, 2), (jvp_graph, 1)):
        found = optimise(make(graph, [0, 1, 2, 3]))
        assert [op.name for op in found.ops].count("scan") == count


def test_zero_tangents_are_not_carried() -> None:
    """A carry that does not depend on what is differentiated gets no tangent."""

    def body(t: Term, x: Term) -> list[Term]:
        return [t * 0.5, x.sin()]

    arrays = [normal(), normal()]
    graph = program(lambda t, x: scan(body, [], [t, x], [], 3), *arrays)
    forward = jvp_graph(graph, [1])
    (loop,) = [op for op in forward.ops if op.name == "scan"]
    assert loop.attrs["carries"] == 3
    along = evaluate(forward, [*arrays, np.float64(1)])
    assert along[2] == 0 and along[3] != 0


@pytest.mark.parametrize("reverse", [False, True])
def test_tokens_as_carries(reverse: bool) -> None:
    text = """
    graph f(%x: f64[], %xs: f64[3], %t: token) -> f64[], token {
      %y, %u = scan %x, %t, %xs consts=0 carries=2 length=3 reverse=REVERSE : f64[], token {
        graph body(%x: f64[], %t: token, %s: f64[]) -> f64[], token {
          %limit = constant value={9.0} : f64[]
          %ok = lt %s, %limit : bool[]
          %u = assert %ok, %s, %t message="{0}" : token
          %y = mul %x, %s : f64[]
          return %y, %u
        }
      }
      return %y, %u
    }
    """.replace("REVERSE", str(reverse).lower())
    graph = parse_graph(text)
    verify(graph)
    backward = vjp_graph(graph, [0, 1])
    verify(backward)
    good = [np.float64(2), np.array([2.0, 3.0, 4.0]), None, np.float64(1)]
    for each in (backward, optimise(backward, verify=True)):
        y, _, dx, dxs = evaluate(each, good)
        assert (y, dx, dxs.tolist()) == (48, 24, [24, 16, 12])
        with pytest.raises(AssertionError, match=r"^10\.0$" if reverse else r"^9\.0$"):
            evaluate(each, [good[0], np.array([9.0, 1.0, 10.0]), None, good[3]])


# Passes


def scans(graph: Graph) -> list[Op]:
    return [op for op in graph.walk() if op.name == "scan"]


def optimised(f: Callable[..., Any], *arrays: Any) -> Graph:
    """The optimised graph, which gives the same results."""
    graph = program(f, *arrays)
    better = optimise(graph, verify=True)
    for a, b in zip(run(graph, *arrays), run(better, *arrays), strict=True):
        np.testing.assert_array_equal(a, b)
    return better


def test_dead_ys_carries_xs_and_consts_go() -> None:
    def body(w: Term, v: Term, c: Term, d: Term, x: Term, z: Term) -> list[Term]:
        return [c * w, d + c * v, c + x, d * z]

    def f(w: Term, v: Term, c: Term, d: Term, x: Term, z: Term, keep: int = 0) -> list[Term]:
        return [scan(body, [w, v], [c, d], [x, z], 4)[keep]]

    arrays = [normal(), normal(), normal(), normal(), normal(4), normal(4)]
    # result: consts, carries, xs, ys that are left
    expected = {0: (1, 1, 0, 0), 1: (2, 2, 0, 0), 2: (1, 1, 1, 1), 3: (2, 2, 1, 1)}
    for keep, (consts, carries, xs, ys) in expected.items():
        (op,) = scans(optimised(lambda *a, k=keep: f(*a, keep=k), *arrays))
        assert (op.attrs["consts"], op.attrs["carries"]) == (consts, carries), keep
        assert len(op.operands) - consts - carries == xs and len(op.results) == carries + ys


def test_carries_that_only_feed_each_other_go() -> None:
    def body(c: Term, d: Term, e: Term) -> list[Term]:
        return [c * 2.0, e, d + 1.0]

    (op,) = scans(optimised(lambda c: scan(body, [], [c, c, c], [], 4)[:1], normal()))
    assert op.attrs["carries"] == 1


def test_invariant_carries_become_consts() -> None:
    def body(c: Term, still: Term) -> list[Term]:
        return [c * still, still]

    found = optimised(lambda c, s: scan(body, [], [c, s], [], 4), normal(), normal())
    (op,) = scans(found)
    assert (op.attrs["consts"], op.attrs["carries"]) == (1, 1)
    assert found.outputs[1] is found.params[1]


def test_constants_and_copies_move_into_the_body() -> None:
    def body(one: Term, v: Term, w: Term, c: Term) -> list[Term]:
        return [c * one + v - w * 0.0]

    def f(v: Term, c: Term) -> list[Term]:
        one = Term(c.b, c.b.full_like(c.value, 1.0))
        return scan(body, [one, v, v], [c], [], 4)

    (op,) = scans(optimised(f, normal(3), normal(3)))
    assert op.attrs["consts"] == 1
    # c * 1 is c
    assert [inner.name for inner in op.regions[0].ops].count("mul") == 1


def test_ys_that_need_no_loop() -> None:
    """A y that is its x, a loop invariant or a constant."""

    def body(w: Term, x: Term) -> list[Any]:
        return [x, w, x.b.const(np.full(3, 7.0))]

    found = optimised(lambda w, x: scan(body, [w], [], [x], 4), normal(2), normal(4, 2))
    assert not scans(found)
    assert found.outputs[0] is found.params[1]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
def test_the_last_of_a_stack_is_what_the_loop_ends_with(reverse: bool, transposed: bool) -> None:
    """It is not stacked, and the derivative adds nothing in each iteration: also where it is a little
    that follows from the last carry and the last x, in part of it."""

    def f(c: Term, x: Term) -> list[Term]:
        def body(c: Term, x: Term) -> list[Term]:
            c = (c * x).sin()
            return [c, c, c * x + c, c.exp()]

        _, *stacks = scan(body, [], [c], [x], 4, reverse)
        last = 0 if reverse else 3
        parts = []
        for y in stacks:
            b, stack = y.b, y.value
            start, stop = (last, 1), (last + 1, 3)
            if transposed:
                stack, start, stop = b.transpose(stack, perm=(1, 0)), (1, last), (3, last + 1)
            parts.append(Term(b, b.slice(stack, start=start, stop=stop, step=(1, 1))))
        return parts

    arrays = [normal(3), normal(4, 3)]
    found = optimised(f, *arrays)
    (op,) = scans(found)
    assert len(op.results) == 2  # exp costs more than reading it
    graph = program(f, *arrays)
    backward = gradient(last_of_loops(graph))
    _, back = (op for op in optimise(backward).ops if op.name == "scan")
    padded = [v for v in back.operands if v.op is not None and v.op.name in ("pad", "transpose")]
    assert len(padded) == 1
    cts = [normal(*v.shape) for v in graph.outputs]
    for a, b in zip(run(backward, *arrays, *cts), run(gradient(graph), *arrays, *cts), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


@pytest.mark.parametrize("length", [0, 1])
def test_short_scans_are_no_loops(length: int) -> None:
    arrays = [normal(2, 4), normal(2), normal(2), normal(length, 2)]
    found = optimised(lambda w, h, c, x: scan(cell, [w], [h, c], [x], length, True), *arrays)
    assert not scans(found)


def test_invariant_contractions_move_out() -> None:
    def body(m: Term, n: Term, c: Term) -> list[Term]:
        b = c.b
        product = b.dot(m.value, b.add(n.value, n.value), contract=((1,), (0,)), batch=((), ()))
        return [Term(b, b.dot(product, c.value, contract=((1,), (0,)), batch=((), ())))]

    arrays = [normal(3, 3), normal(3, 3), normal(3)]
    found = optimised(lambda m, n, c: scan(body, [m, n], [c], [], 5), *arrays)
    (op,) = scans(found)
    assert [inner.name for inner in op.regions[0].ops] == ["dot"]
    assert [o.name for o in found.ops] == ["add", "dot", "scan"]
    assert op.attrs["consts"] == 1


def test_what_may_raise_stays_in_the_loop() -> None:
    """The loop may make no trip: a bounds check in it must not move in front of it."""

    def body(i: Term, table: Term, at: Term, x: Term) -> list[Term]:
        b = x.b
        row = b.gather(table.value, at.value, axes=(0,), mode="check")
        return [x * Term(b, b.exp(row))]

    def f(n: Term, table: Term, at: Term, x: Term) -> list[Term]:
        return repeat(n, body, [table, at], [x])

    good = [np.int64(2), normal(4), np.int64(3), normal()]
    found = optimised(f, *good)
    assert run(found, np.int64(0), good[1], np.int64(99), good[3]) == [good[3]]
    with pytest.raises(IndexError):
        run(found, np.int64(1), good[1], np.int64(99), good[3])


def test_while_with_a_condition_known_to_be_false() -> None:
    def f(x: Term) -> list[Term]:
        return repeat(integer(x, 0), lambda i, x: [x.sin()], [], [x])

    found = optimised(f, normal(3))
    assert not found.ops and found.outputs == found.params
    backward = optimise(gradient(program(f, normal(3))))
    assert not any(op.name == "while" for op in backward.ops)


def test_results_of_a_cond_that_are_one_operand() -> None:
    def f(k: Term, x: Term, y: Term) -> list[Term]:
        branches = [lambda x, y: [x, x.sin(), y], lambda x, y: [x, y, y]]
        return cond(k, branches, [x, y])

    found = optimised(f, np.int64(1), normal(2), normal(2))
    (op,) = [op for op in found.ops if op.name == "cond"]
    assert len(op.results) == 1
    assert [found.outputs[0], found.outputs[2]] == found.params[1:]


def test_text_round_trip() -> None:
    arrays = [np.int64(0), normal(2), normal(2), normal(2, 2)]
    graph = gradient(program(nested, *arrays))
    text = print_graph(graph)
    again = parse_graph(text)
    verify(again)
    assert print_graph(again) == text
    cts = [normal(2), normal(4, 2)]
    for a, b in zip(run(graph, *arrays, *cts), run(again, *arrays, *cts), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_bool_scan_has_no_derivative() -> None:
    def body(c: Term, x: Term) -> list[Term]:
        return [Term(c.b, c.b.bitwise_xor(c.value, x.value))]

    def f(flags: Term, x: Term) -> list[Term]:
        (odd,) = scan(body, [], [Term(x.b, x.b.const(False, BOOL))], [flags], 3)
        return [where(odd, x, x * 2.0)]

    flags = np.array([True, False, False])
    graph = program(f, flags, 1.5)
    (dx,) = run(gradient(graph), flags, 1.5, 1.0)
    assert dx == 1.0
    assert len(scans(optimise(gradient(graph)))) == 1
