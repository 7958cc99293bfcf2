"""Reverse mode of `while`: against differences and forward mode, nested, and under every checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from derivatives import check_derivatives
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_programs import PROGRAMS, growing, instance, mixed, permuted, rows, twice
from loops import gradient, lanes_while, program, repeat, run

from jitney.ir.autodiff.transform import jvp_graph, vjp_graph
from jitney.ir.graph import Graph
from jitney.ir.interpreter import evaluate
from jitney.ir.opdef import OPS, GraphError
from jitney.ir.ops.control import tape as tape_ops
from jitney.ir.ops.term import Term, where
from jitney.ir.passes import optimise
from jitney.ir.text import print_graph
from jitney.ir.text_parser import parse_graph
from jitney.ir.types import I64, TAPE, TOKEN
from jitney.ir.verify import verify

CHECKPOINTS = ["all", "sqrt", 1, 2, 3, 8]
rng = np.random.default_rng(3)


def normal(*shape: int) -> np.ndarray:
    return rng.normal(size=shape)


@pytest.fixture(autouse=True)
def full_tapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """First derivatives never pop an empty tape; `check` lifts this for second ones."""

    def refuse(type: Any) -> Any:
        raise AssertionError("popped an empty tape")

    monkeypatch.setattr(tape_ops, "_zero", refuse)


def check(graph: Graph, arrays: list[Any], second: bool = True) -> None:
    """First and second derivatives, as built and optimised."""
    arrays = [np.asarray(a) for a in arrays]
    check_derivatives(graph, arrays, rng)
    backward = gradient(graph)
    cts = [
        normal(*v.shape) for v in graph.outputs if v.type not in (TOKEN,) and v.dtype.kind == "f"
    ]
    better = optimise(backward, verify=True)
    for a, b in zip(run(backward, *arrays, *cts), run(better, *arrays, *cts), strict=True):
        np.testing.assert_array_equal(a, b)
    if second:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                tape_ops, "_zero", lambda t: () if t == TAPE else np.zeros(t.shape, t.dtype)
            )
            check_derivatives(backward, [*arrays, *cts], rng)


@pytest.mark.parametrize("trips", [0, 1, 2, 5])
@pytest.mark.parametrize("f", PROGRAMS)
def test_derivatives(f: Callable[..., list[Term]], trips: int) -> None:
    check(*instance(f, trips), second=trips < 5)


@pytest.mark.parametrize("checkpoint", CHECKPOINTS[1:])
@pytest.mark.parametrize("f", PROGRAMS)
def test_checkpoints_change_nothing(f: Callable[..., list[Term]], checkpoint: Any) -> None:
    for trips in (0, 1, 2, 7, 13):
        reference, arrays = instance(f, trips)
        graph, _ = instance(f, trips, checkpoint=checkpoint)
        cts = [normal(*v.shape) for v in graph.outputs if v.dtype.kind == "f"]
        expected = run(gradient(reference), *arrays, *cts)
        for got, want in zip(run(gradient(graph), *arrays, *cts), expected, strict=True):
            assert got.tobytes() == want.tobytes()
        for a, b in zip(run(graph, *arrays), run(reference, *arrays), strict=True):
            assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("checkpoint", ["sqrt", 2])
@pytest.mark.parametrize("f", [mixed, permuted, growing, twice])
def test_second_derivatives_with_checkpoints(f: Any, checkpoint: Any) -> None:
    check(*instance(f, 3, checkpoint=checkpoint))


@settings(max_examples=15, deadline=None)
@given(trips=st.integers(0, 70), slots=st.integers(1, 9))
def test_any_number_of_slots(trips: int, slots: int) -> None:
    reference, arrays = instance(mixed, trips)
    graph, _ = instance(mixed, trips, checkpoint=slots)
    cts = [np.ones(2), np.array([0.5, -2.0])]
    expected = run(gradient(reference), *arrays, *cts)
    for got, want in zip(run(gradient(graph), *arrays, *cts), expected, strict=True):
        assert got.tobytes() == want.tobytes()


def counted(graph: Graph, arrays: list[Any]) -> dict[str, int]:
    """How often `sin` ran, and how high tapes grew, when `graph` runs."""
    counts = {"sin": 0, "records": 0}
    heights: dict[int, int] = {}
    alive: list[Any] = []  # so that no two tapes have one id
    sin, push = OPS["sin"].reference, OPS["tape_push"].reference

    def counting(x: Any) -> Any:
        counts["sin"] += 1
        return sin(x)

    def pushing(tape: Any, *values: Any) -> Any:
        (new,) = push(tape, *values)
        alive.append(new)
        heights[id(new)] = heights.get(id(tape), 0) + 1
        counts["records"] = max(counts["records"], heights[id(new)])
        return (new,)

    try:  # records of ops are frozen
        object.__setattr__(OPS["sin"], "reference", counting)
        object.__setattr__(OPS["tape_push"], "reference", pushing)
        run(graph, *arrays)
    finally:
        object.__setattr__(OPS["sin"], "reference", sin)
        object.__setattr__(OPS["tape_push"], "reference", push)
    return counts


def test_what_checkpoints_cost() -> None:
    """Trips run again, and records on a tape, for 200 trips."""
    costs = {}
    for checkpoint in ["all", "sqrt", 4, 16]:
        graph, arrays = instance(mixed, 200, checkpoint=checkpoint)
        costs[checkpoint] = counted(gradient(graph), [*arrays, *[np.ones(2)] * 2])
    assert costs["all"] == {"sin": 200, "records": 200}
    # 20 segments; the longest has 20 trips.
    assert costs["sqrt"] == {"sin": 400, "records": 20}
    assert costs[16]["records"] == costs[4]["records"] == 0
    # With 16 slots each trip runs about twice more, with 4 slots about 4 times.
    assert 400 <= costs[16]["sin"] <= 900 < costs[4]["sin"] <= 2000


def test_what_is_saved() -> None:
    """Loop invariants are not pushed, cheap values are computed again, expensive ones are pushed."""

    def body(i: Term, c: Term, x: Term) -> list[Term]:
        shifted = x * 3.0 + c  # cheap
        return [shifted.sin() * c.exp()]

    graph = program(lambda n, c, x: repeat(n, body, [c], [x]), np.int64(3), np.ones(4), np.ones(4))
    backward = optimise(gradient(graph))
    pushes = [op for op in backward.walk() if op.name == "tape_push"]
    (push,) = pushes
    # sin for the gradient of exp(c), and cos; nothing of c, x, shifted
    assert [op.op.name for op in push.operands[1:]] == ["sin", "cos"]
    exps = [op for op in backward.walk() if op.name == "exp"]
    assert len(exps) == 1 and exps[0] in backward.ops, "exp of a loop invariant runs once"


def test_a_linear_loop_has_no_tape() -> None:
    def body(i: Term, c: Term, x: Term) -> list[Term]:
        return [x * 3.0 + c]

    graph = program(lambda n, c, x: repeat(n, body, [c], [x]), np.int64(3), 1.0, 2.0)
    backward = gradient(graph)
    assert not any(op.name.startswith("tape") for op in backward.walk())
    assert [g.tolist() for g in run(backward, np.int64(3), 1.0, 2.0, 1.0)] == [13.0, 27.0]


def test_one_row_per_trip() -> None:
    """The cotangent of a table grows in place: no trip adds a whole array."""
    graph, _ = instance(rows, 3)
    (loop,) = [op for op in optimise(gradient(graph)).ops if op.name == "while"][1:]
    body = loop.regions[1]
    adds = [op.result.shape for op in body.ops if op.name == "add"]
    assert (2, 2) not in adds and (1, 2) in adds


def test_float32_and_mixed_dtypes() -> None:
    def body(i: Term, c: Term, x: Term) -> list[Any]:
        wide = Term(x.b, x.b.convert(x.value, dtype=np.dtype(np.float64)))
        return [Term(x.b, x.b.convert((wide * c).sin().value, dtype=np.dtype(np.float32)))]

    arrays = [np.int64(4), np.float64(1.5), np.float32(0.3)]
    for checkpoint in CHECKPOINTS:
        graph = program(
            lambda n, c, x, k=checkpoint: repeat(n, body, [c], [x], checkpoint=k), *arrays
        )
        dc, dx = run(gradient(graph), *arrays, np.float32(1))
        assert (dc.dtype, dx.dtype) == (np.float64, np.float32)
        tangents = jvp_graph(graph, [1, 2])
        along = evaluate(tangents, [*arrays, np.float64(1), np.float32(0)])[-1]
        np.testing.assert_allclose(dc, along, rtol=1e-5)


def test_nan_of_trips_not_taken_stays_out() -> None:
    """sqrt in a body with where: the branch not taken contributes nothing."""

    def body(i: Term, x: Term) -> list[Term]:
        return [where(x.gt(0.0), x.sqrt(), x * 2.0)]

    arrays = [np.int64(3), np.array([0.0, -1.0, 16.0])]
    for checkpoint in CHECKPOINTS:
        graph = program(lambda n, x, k=checkpoint: repeat(n, body, [], [x], checkpoint=k), *arrays)
        (dx,) = run(gradient(graph), *arrays, np.ones(3))
        np.testing.assert_allclose(dx, [8, 8, 1 / 64 / np.sqrt(2)])


# Effects


EFFECTS = """
graph f(%n: i64[], %x: f64[], %t: token) -> f64[], token {
  %zero = constant value={0} : i64[]
  %i, %y, %u = while %n, %zero, %x, %t consts=1 checkpoint=CHECKPOINT : i64[], f64[], token {
    graph test(%n: i64[], %i: i64[], %x: f64[], %t: token) -> bool[] {
      %more = lt %i, %n : bool[]
      return %more
    }
    graph body(%n: i64[], %i: i64[], %x: f64[], %t: token) -> i64[], f64[], token {
      %limit = constant value={100.0} : f64[]
      %ok = lt %x, %limit : bool[]
      %u = assert %ok, %x, %t message="{0} is too much" : token
      %one = constant value={1} : i64[]
      %j = add %i, %one : i64[]
      %y = mul %x, %x : f64[]
      return %j, %y, %u
    }
  }
  return %y, %u
}
"""


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_tokens_as_carries(checkpoint: Any) -> None:
    word = f'"{checkpoint}"' if isinstance(checkpoint, str) else str(checkpoint)
    graph = parse_graph(EFFECTS.replace("CHECKPOINT", word))
    verify(graph)
    assert print_graph(parse_graph(print_graph(graph))) == print_graph(graph)
    backward = vjp_graph(graph, [1])
    verify(backward)
    y, _, dx = evaluate(backward, [np.int64(3), np.float64(1.5), None, np.float64(1)])
    np.testing.assert_allclose([y, dx], [1.5**8, 8 * 1.5**7])
    y, _, dx = evaluate(optimise(backward, verify=True), [np.int64(3), np.float64(1.5), None, 1.0])
    np.testing.assert_allclose([y, dx], [1.5**8, 8 * 1.5**7])
    with pytest.raises(AssertionError, match="656.8"):
        evaluate(backward, [np.int64(6), np.float64(1.5), None, np.float64(1)])


@pytest.mark.parametrize("bad", ["some", 0, -1, True, 1.5, None])
def test_checkpoint_is_checked(bad: Any) -> None:
    with pytest.raises(GraphError, match="checkpoint"):
        instance(mixed, 1, checkpoint=bad)


# lanes_while


def collatz(n: Term, x: Term, y: Term, **attrs: Any) -> list[Term]:
    """Each lane runs until n is 1; the floats are transformed by the way."""

    def test(c: Term, n: Term, x: Term) -> list[Term]:
        return [n.gt(1)]

    def body(c: Term, n: Term, x: Term) -> list[Term]:
        odd = Term(n.b, n.b.remainder(n.value, n.b.const(2, I64))).eq(1)
        step = where(odd, n * 3 + 1, Term(n.b, n.b.right_shift(n.value, n.b.const(1, I64))))
        return [step, where(odd, x.sin() * c, x + c * 0.25)]

    return lanes_while(test, body, [y], [n, x], **attrs)


def test_lanes_run_for_themselves() -> None:
    n = np.array([[1, 2, 3], [7, 6, 1]])
    x, c = normal(2, 3), normal(2, 3)
    got = run(program(collatz, n, x, c), n, x, c)
    for place in np.ndindex(2, 3):
        k, v = int(n[place]), x[place]
        while k > 1:
            v = np.sin(v) * c[place] if k % 2 else v + c[place] * 0.25
            k = 3 * k + 1 if k % 2 else k >> 1
        assert got[0][place] == 1
        np.testing.assert_allclose(got[1][place], v, rtol=1e-14)


@pytest.mark.parametrize("shape", [(), (3,), (2, 2), (0,)])
@pytest.mark.parametrize("checkpoint", ["all", "sqrt", 2])
def test_derivatives_of_lanes(shape: tuple[int, ...], checkpoint: Any) -> None:
    n = np.resize([3, 1, 2, 5], shape)
    graph = program(
        lambda *a: collatz(*a, checkpoint=checkpoint), n, normal(*shape), normal(*shape)
    )
    check(graph, [n, normal(*shape), normal(*shape)], second=checkpoint == "all")
    forward = jvp_graph(graph, [1])
    assert [op.name for op in forward.ops].count("lanes_while") == 1, "forward mode stays in lanes"


def test_lanes_refuse_what_is_not_elementwise() -> None:
    x = np.ones(3)

    def body(v: Term) -> list[Term]:
        return [Term(v.b, v.b.reshape(v.value, shape=()))]

    with pytest.raises(GraphError, match="reshape is not elementwise"):
        program(lambda x: lanes_while(lambda v: [v < 1.0], body, [], [x]), x)


def test_a_chain_of_second_derivatives_runs_one_loop_each_way() -> None:
    """The forward part of a loop replaces it: one loop forward, one backward."""
    graph, _ = instance(mixed, 3)
    found = optimise(vjp_graph(graph, [1, 2, 3]))
    assert [op.name for op in found.ops].count("while") == 2
    both = optimise(jvp_graph(graph, [1, 2, 3]))
    assert [op.name for op in both.ops].count("while") == 1


def test_deep_recursion_is_not_needed() -> None:
    """A tape of 5000 records is no problem for Python's stack."""
    graph, arrays = instance(lambda n, c, x, y: repeat(n, _square, [], [x]), 3)
    arrays[0] = np.int64(5000)
    (dx,) = run(gradient(graph, [2]), *arrays, np.ones(2))
    assert np.isfinite(dx).all()


def _square(i: Term, x: Term) -> list[Term]:
    return [x * x * 0.5]
