"""Passes: their documented examples, regions, effects, random graphs against the interpreter."""

from __future__ import annotations

import inspect
import itertools
import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from graphs import random_graphs, smooth_graphs
from hypothesis import given, settings
from pass_checks import check, same

from jitney.ir.build import Builder
from jitney.ir.graph import Graph
from jitney.ir.interpreter import evaluate
from jitney.ir.passes import (
    PIPELINE,
    canonical_key,
    eliminate_common_subexpressions,
    eliminate_dead_code,
    fold_constants,
    gather_sums,
    hoist_invariants,
    inline_calls,
    optimise,
    read_back,
    recognise_attention,
    share_factors,
    simplify,
    simplify_fast,
    sink_views,
)
from jitney.ir.text import print_graph
from jitney.ir.text_parser import parse_graph
from jitney.ir.types import F32, TensorType
from jitney.ir.verify import verify

PASSES = [
    eliminate_dead_code,
    eliminate_common_subexpressions,
    fold_constants,
    simplify,
    simplify_fast,
]


@pytest.mark.parametrize("run", PASSES, ids=lambda run: run.__name__)
def test_docstring_example(run: Callable[[Graph], Graph]) -> None:
    """The before and after, side by side in the docstring, are what the pass does."""
    lines = inspect.getdoc(run).splitlines()
    head = next(i for i, line in enumerate(lines) if line.count("graph f(") == 2)
    column = lines[head].rindex("graph f(")
    block = list(itertools.takewhile(str.strip, lines[head:]))
    before = "\n".join(re.sub(r"->\s*$", "", line[:column]).rstrip() for line in block)
    after = "\n".join(line[column:] for line in block if line[column:].strip())
    check(before, after, run)


def test_pipeline_is_the_documented_passes() -> None:
    with_regions = {
        inline_calls,
        hoist_invariants,
        sink_views,
        gather_sums,
        share_factors,
        read_back,
        recognise_attention,  # in test_attention.py
    }  # too wide for two columns; tested below
    assert set(PIPELINE) <= {*PASSES, *with_regions}


def test_constant_branch_is_inlined() -> None:
    check(
        """
        graph f(%x: f32[2]) -> f32[2] {
          %i = constant value={9} : i32[]
          %y = cond %i, %x : f32[2] {
            graph no(%a: f32[2]) -> f32[2] {
              return %a
            }
            graph yes(%a: f32[2]) -> f32[2] {
              %b = neg %a : f32[2]
              %c = exp %b : f32[2]
              return %c
            }
          }
          %z = neg %y : f32[2]
          return %z
        }""",
        """
        graph f(%x: f32[2]) -> f32[2] {
          %b = neg %x : f32[2]
          %c = exp %b : f32[2]
          %z = neg %c : f32[2]
          return %z
        }""",
    )


def test_regions_are_optimised_and_carries_stay() -> None:
    check(
        """
        graph f(%k: f32[], %x: f32[2]) -> f32[2] {
          %i = constant value={0} : i64[]
          %n, %y = while %k, %i, %x consts=1 : i64[], f32[2] {
            graph test(%k: f32[], %i: i64[], %x: f32[2]) -> bool[] {
              %d = exp %x : f32[2]
              %n = constant value={3} : i64[]
              %t = lt %i, %n : bool[]
              return %t
            }
            graph body(%k: f32[], %i: i64[], %x: f32[2]) -> i64[], f32[2] {
              %one = constant value={1} : i64[]
              %uno = constant value={1} : i64[]
              %both = mul %one, %uno : i64[]
              %j = add %i, %both : i64[]
              %z = mul %x, %x : f32[2]
              return %j, %z
            }
          }
          return %y
        }""",
        """
        graph f(%k: f32[], %x: f32[2]) -> f32[2] {
          %i = constant value={0} : i64[]
          %n, %y = while %i, %x consts=0 : i64[], f32[2] {
            graph test(%i: i64[], %x: f32[2]) -> bool[] {
              %n = constant value={3} : i64[]
              %t = lt %i, %n : bool[]
              return %t
            }
            graph body(%i: i64[], %x: f32[2]) -> i64[], f32[2] {
              %one = constant value={1} : i64[]
              %j = add %i, %one : i64[]
              %z = mul %x, %x : f32[2]
              return %j, %z
            }
          }
          return %y
        }""",
    )


def test_effects_stay_in_order() -> None:
    text = """
        graph f(%p: bool[], %x: f32[]) -> f32[] {
          %t = create_token : token
          %dead = exp %x : f32[]
          %u = assert %p, %t message="first" : token  # m.py:1
          %v = assert %p, %u message="first" : token  # m.py:2
          %s = create_token : token
          %w = assert %p, %s message="first" : token  # m.py:1
          return %x
        }"""
    check(text, "\n".join(line for line in text.splitlines() if "dead" not in line))


def test_effect_inside_a_region_is_kept() -> None:
    text = """
        graph f(%i: i32[], %p: bool[]) -> bool[] {
          %y = cond %i, %p : bool[] {
            graph a(%q: bool[]) -> bool[] {
              %t = create_token : token
              %u = assert %q, %t message="no" : token
              return %q
            }
            graph b(%q: bool[]) -> bool[] {
              return %q
            }
          }
          return %p
        }"""
    without_result = text.replace("%y = ", "").replace("cond %i, %p : bool[]", "cond %i, %p")
    for line in ("-> bool[] {\n              %t", "-> bool[] {\n              return"):
        without_result = without_result.replace(line, line.removeprefix("-> bool[] "))
    check(text, without_result.replace("return %q", "return"))


def test_folding_is_small_and_never_raises() -> None:
    graph = Graph("f")
    b = Builder(graph)
    big = b.const(np.arange(100.0))
    x = b.const([1.0, 2.0, 3.0])
    bad = b.gather(x, b.const([7], np.int64), axes=(0,), mode="check")
    graph.outputs = [b.add(big, big), bad, b.sum(big, axes=(0,)), b.mul(x, x)]
    result = fold_constants(graph)
    assert [v.op.name for v in result.outputs] == ["add", "gather", "constant", "constant"]
    assert result.outputs[2].op.attrs["value"] == 4950.0
    with pytest.raises(IndexError):
        evaluate(result, [])


def test_signed_zeros_and_nans_tell_constants_apart() -> None:
    graph = Graph("f")
    b = Builder(graph)
    values = [np.float32(0.0), np.float32(-0.0), np.float64(0.0), np.int32(0), np.float32(np.nan)]
    graph.outputs = [b.const(v) for v in values * 2]
    result = eliminate_common_subexpressions(graph)
    assert len(result.ops) == len(values)
    for a, v in zip(evaluate(result, []), values * 2, strict=True):
        assert same(np.asarray(a), np.asarray(v))


# Random graphs.


@settings(max_examples=40)
@given(random_graphs(exact=True))
def test_passes_keep_the_meaning(case: Any) -> None:
    graph, arrays = case
    text = print_graph(graph)
    expected = evaluate(graph, arrays)
    for run in [optimise, eliminate_common_subexpressions, fold_constants]:
        result = run(graph)
        verify(result)
        assert result.input_types == graph.input_types
        for a, b in zip(expected, evaluate(result, arrays), strict=True):
            assert same(a, b), f"{text}\nbecomes\n{print_graph(result)}"
    assert print_graph(graph) == text  # the input is as it was


@settings(max_examples=30)
@given(smooth_graphs(max_ops=30))
def test_passes_keep_the_meaning_to_rounding(case: Any) -> None:
    graph, arrays = case
    for a, b in zip(evaluate(graph, arrays), evaluate(optimise(graph), arrays), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-12)


@settings(max_examples=20)
@given(random_graphs())
def test_verified_after_each_pass(case: Any) -> None:
    graph, _ = case
    once = optimise(graph, verify=True)
    optimise(optimise(once, verify=True, fastmath=True), verify=True)
    assert len(once.ops) <= len(optimise(graph).ops)
    for run in PASSES:
        verify(run(graph))


@settings(max_examples=15)
@given(random_graphs())
def test_key_is_of_the_content(case: Any) -> None:
    """Not of names or source lines; and it tells a graph from a changed one."""
    graph, _ = case
    text = print_graph(graph)
    key = canonical_key(graph)
    renamed = re.sub(r"%(\w+)", r"%q_\1", re.sub(r" *#.*", "", text))
    assert canonical_key(parse_graph(renamed)) == key
    if len(set(graph.outputs)) > 1:
        other = parse_graph(text)
        other.outputs.reverse()
        reversed_too = other.outputs == other.outputs[::-1]
        assert (canonical_key(other) == key) == reversed_too


def test_key_sees_what_matters() -> None:
    base = "graph f(%x: f32[2]) -> f32[2] {{\n%y = {} : f32[2]{}\nreturn {}\n}}"

    def key(op: str = "exp %x", line: str = "", out: str = "%y", lines: bool = False) -> bytes:
        return canonical_key(parse_graph(base.format(op, line, out)), lines=lines)

    different = [
        key(),
        key("sin %x"),
        key(out="%x"),
        key("constant value={0.0, 1.0}"),
        key("constant value={-0.0, 1.0}"),
        key("flip %x axes=[0]"),
        key("flip %x axes=[]"),
    ]
    assert len(set(different)) == len(different)
    assert key(line="  # a.py:1") == key()
    assert key(line="  # a.py:1", lines=True) != key(line="  # a.py:2", lines=True)


def _chain(count: int) -> Graph:
    graph = Graph("f")
    b = Builder(graph)
    values = [graph.add_param(TensorType((8,), F32))]
    for i in range(count):
        x, y = values[-1], values[-1 - i % 7 % len(values)]
        name = ("add", "mul", "neg", "sub", "exp")[i % 5]
        values.append(b.op(name, x) if name in ("neg", "exp") else b.op(name, x, y))
    graph.outputs = values[-1:]
    return graph


def test_time_is_linear() -> None:
    """8 times the ops take at most 24 times the time: quadratic would be 64."""

    def seconds(count: int) -> float:
        graph = _chain(count)
        times = []
        for _ in range(3):
            start = time.perf_counter()
            optimise(graph)
            times.append(time.perf_counter() - start)
        return min(times)

    assert seconds(16_000) < 24 * seconds(2_000)


def test_networkx() -> None:
    graph = _chain(20)
    net = graph.to_networkx()
    import networkx

    assert networkx.is_directed_acyclic_graph(net)
    assert net.number_of_nodes() == 1 + 20 + 1
    assert net.number_of_edges() == sum(len(op.operands) for op in graph.ops) + 1
    assert {d["nbytes"] for _, _, d in net.edges(data=True)} == {32}
    assert net.nodes["op", 0]["name"] == "add"


SUNK = """graph f(%x: f32[9,4], %w: f32[4]) -> f32[4] {{
  {outside}
  %s = scan {x}, %w consts=1 carries=1 length=3 reverse=false : f32[4] {{
    graph body({param}, %c: f32[4]) -> f32[4] {{
      {inside}
      %r = dot %x, %c contract=[[1],[0]] batch=[[],[]] : f32[9]
      %d = dot %t, %r contract=[[1],[0]] batch=[[],[]] : f32[4]
      return {result}
    }}
  }}
  return %s
}}"""


def test_views_that_contractions_read_are_taken_in_the_loop() -> None:
    t = "%t = transpose %x perm=[1,0] : f32[4,9]"
    both = SUNK.replace("consts=1", "consts=2")
    before = both.format(
        outside=t, x="%x, %t", param="%x: f32[9,4], %t: f32[4,9]", inside="", result="%d"
    )
    got = sink_views(parse_graph(before))
    verify(got)
    (loop,) = got.ops
    assert loop.name == "scan"
    assert [op.name for op in loop.regions[0].ops] == ["transpose", "dot", "dot"]
    x, w = np.arange(36, dtype="f4").reshape(9, 4) / 9, np.ones(4, "f4")
    for one_, other in zip(
        evaluate(got, [x, w]), evaluate(parse_graph(before), [x, w]), strict=True
    ):
        np.testing.assert_array_equal(one_, other)


def test_views_that_something_else_reads_stay() -> None:
    both = SUNK.replace("consts=1", "consts=2")
    text = both.format(
        outside="%t = transpose %x perm=[1,0] : f32[4,9]",
        x="%x, %t",
        param="%x: f32[9,4], %t: f32[4,9]",
        inside="%u = sum %t axes=[1] : f32[4]",
        result="%d",
    )
    graph = parse_graph(text)
    assert sink_views(graph) is graph


STENCIL = """graph f(%x: f64[{n}]) -> f64[{m}] {{
  %v = sin %x : f64[{n}]
  %0 = constant value={{0.0}} : f64[]
  %z = broadcast %0 dims=[] shape=[{m}] : f64[{m}]
  {early}
  %u = update_slice %z, %v start=[1] step=[1] : f64[{m}]
  %a = slice %u start=[0] stop=[{n}] step=[1] : f64[{n}]
  %b = add %a, %v : f64[{n}]
  %y = update_slice %z, %b start=[1] step=[1] : f64[{m}]
  return %y{also}
}}"""


def test_what_was_written_is_read_where_it_was_written() -> None:
    graph = parse_graph(STENCIL.format(n=5000, m=5002, early="", also=""))
    got = read_back(graph)
    verify(got)
    names = [op.name for op in got.ops]
    assert names == [
        "sin",
        "constant",
        "broadcast",
        "update_slice",
        "slice",
        "slice",
        "add",
        "update_slice",
    ]
    window = got.ops[-2].operands[1].op
    assert window is not None and window.attrs == {"start": (1,), "stop": (5001,), "step": (1,)}
    assert len(got.users()[got.ops[0].result]) == 1
    x = np.arange(5000.0)
    np.testing.assert_array_equal(evaluate(got, [x])[0], evaluate(graph, [x])[0])


@pytest.mark.parametrize(
    "n, early, also",
    [
        (50, "", ""),  # it is in the first cache
        (5000, "%e = mul %v, %v : f64[5000]", ""),  # it is read before
        (5000, "%e = sum %v axes=[0] : f64[]", ""),
    ],
)
def test_what_is_read_elsewhere_stays(n: int, early: str, also: str) -> None:
    graph = parse_graph(STENCIL.format(n=n, m=n + 2, early=early, also=also))
    assert read_back(graph) is graph


def test_systems_with_one_matrix_share_its_factors() -> None:
    text = """graph f(%a: f64[16,16], %b: f64[16,2]) -> f64[16,2], f64[16,2] {
      %x = solve %a, %b mode="check" : f64[16,2]
      %t = transpose %a perm=[1,0] : f64[16,16]
      %y = solve %t, %x mode="fill" : f64[16,2]
      return %x, %y
    }"""
    graph = parse_graph(text)
    got = share_factors(graph)
    verify(got)
    names = [op.name for op in got.ops]
    assert names.count("lu") == 1 and names.count("triangular_solve") == 4 and "solve" not in names
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((16, 16)), rng.standard_normal((16, 2))]
    for one_, other in zip(evaluate(got, arrays), evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(one_, other, rtol=1e-10)
    arrays[0][:, 3] = 0
    for run in (graph, got):
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            evaluate(run, arrays)
    for other_text in (
        text.replace("16", "15"),
        text.replace("solve %t", "solve %b").replace(",2]", ",16]"),
    ):
        other_graph = parse_graph(other_text)
        assert share_factors(other_graph) is other_graph


def test_a_sum_of_products_leaves_the_loop() -> None:
    results = "f32[3,4], f32[2,4], f32[5,3,4]"
    text = f"""graph f(%xs: f32[5,3,2], %c: f32[3,4], %s: f32[2,4]) -> {results} {{
      %e, %t, %ps = scan %c, %s, %xs consts=0 carries=2 length=5 reverse=true : {results} {{
        graph body(%c: f32[3,4], %s: f32[2,4], %x: f32[3,2]) -> f32[3,4], f32[2,4], f32[3,4] {{
          %p = sin %c : f32[3,4]
          %d = dot %x, %p contract=[[0],[0]] batch=[[],[]] : f32[2,4]
          %n = add %s, %d : f32[2,4]
          return %p, %n, %p
        }}
      }}
      return %e, %t, %ps
    }}"""
    graph = parse_graph(text)
    got = gather_sums(graph)
    verify(got)
    assert [op.name for op in got.ops] == ["scan", "dot", "add"]
    assert got.ops[0].attrs["carries"] == 1
    assert got.ops[1].attrs["contract"] == ((0, 1), (0, 1))
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype("f4") for s in ((5, 3, 2), (3, 4), (2, 4))]
    for one_, other in zip(evaluate(got, arrays), evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(one_, other, rtol=1e-5, atol=1e-5)
    for change in (
        ("return %p, %n, %p", "return %p, %n, %c"),  # p is not stacked
        ("%p = sin %c : f32[3,4]", "%q = sum %s axes=[0] : f32[4]\n%p = sin %c : f32[3,4]"),
    ):
        other_graph = parse_graph(text.replace(*change))
        assert gather_sums(other_graph) is other_graph
