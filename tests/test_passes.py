"""Passes: text in, text out; each rule against NumPy on the values that make trouble; random graphs
against the interpreter."""

from __future__ import annotations

import inspect
import itertools
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from graphs import random_graphs, smooth_graphs
from hypothesis import given, settings

from jitney.ir.build import Builder
from jitney.ir.graph import Graph, Value
from jitney.ir.interpreter import evaluate
from jitney.ir.opdef import OPS
from jitney.ir.passes import (
    PIPELINE,
    algebra,
    canonical_key,
    eliminate_common_subexpressions,
    eliminate_dead_code,
    fold_constants,
    gather_sums,
    hoist_invariants,
    inline_calls,
    optimise,
    patterns,
    recognise_attention,
    simplify,
    simplify_fast,
    sink_views,
)
from jitney.ir.text import parse_graph, print_graph
from jitney.ir.types import DTYPE_NAMES, F32, F64, TensorType, type_of
from jitney.ir.verify import verify

PASSES = [
    eliminate_dead_code,
    eliminate_common_subexpressions,
    fold_constants,
    simplify,
    simplify_fast,
]


def same(a: Any, b: Any) -> bool:
    """Equal to the bit, except that all NaNs are equal."""
    if a is None or b is None:
        return a is b
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind != "f":
        return bool((a == b).all())
    equal = (a == b) & (np.signbit(a) == np.signbit(b)) | (np.isnan(a) & np.isnan(b))
    return bool(equal.all())


def normal(text: str) -> str:
    return print_graph(parse_graph(inspect.cleandoc(text)))


def check(before: str, after: str, run: Callable[[Graph], Graph] = optimise) -> None:
    graph = run(parse_graph(inspect.cleandoc(before)))
    verify(graph)
    assert print_graph(graph) == normal(after)


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
        recognise_attention,  # in test_attention.py
    }  # too wide for two columns; tested below
    assert set(PIPELINE) <= {*PASSES, *with_regions}


# Rules, one graph each.

F = "f32[2,3]"


def one(
    head: str, *body: str, result: str = "", expect: tuple[str, ...], run: Any = optimise
) -> None:
    """Both graphs have the parameters `head`; their last lines return `%y`, or the given value."""

    def graph(lines: tuple[str, ...], value: str) -> str:
        type = result or lines[-1].rsplit(" : ", 1)[1]
        return "\n".join([f"graph f({head}) -> {type} {{", *lines, f"return {value}", "}"])

    type = result or body[-1].rsplit(" : ", 1)[1]
    last = expect[-1]
    after = graph(expect, last.split(" = ")[0]) if " = " in last else None
    if after is None:
        after = f"graph f({head}) -> {type} {{\nreturn {last}\n}}"
    check(graph(body, body[-1].split(" = ")[0]), after, run)


X = "%x: f32[2,3]"


@pytest.mark.parametrize(
    ("body", "expect"),
    [
        # Movement that does nothing.
        (("%y = reshape %x shape=[2,3] : f32[2,3]",), ("%x",)),
        (("%y = transpose %x perm=[0,1] : f32[2,3]",), ("%x",)),
        (("%y = broadcast %x shape=[2,3] dims=[0,1] : f32[2,3]",), ("%x",)),
        (("%y = slice %x start=[0,0] stop=[2,3] step=[1,1] : f32[2,3]",), ("%x",)),
        (("%y = flip %x axes=[] : f32[2,3]",), ("%x",)),
        (("%y = concat %x axis=0 : f32[2,3]",), ("%x",)),
        (
            (
                "%z = constant value={0.0} : f32[]",
                "%a = pad %x, %z low=[0,0] high=[4,0] interior=[0,0] : f32[6,3]",
                "%b = neg %x : f32[2,3]",
                "%c = pad %b, %z low=[4,0] high=[0,0] interior=[0,0] : f32[6,3]",
                "%d = pad %x, %z low=[2,0] high=[2,0] interior=[0,0] : f32[6,3]",
                "%e = add %a, %c : f32[6,3]",
                "%y = add %e, %d : f32[6,3]",
            ),
            (
                "%z = constant value={0.0} : f32[]",
                "%0 = broadcast %z shape=[2,3] dims=[] : f32[2,3]",
                "%1 = add %x, %0 : f32[2,3]",
                "%2 = sub %0, %x : f32[2,3]",
                "%y = concat %1, %1, %2 axis=0 : f32[6,3]",
            ),
        ),
        # Twice is once.
        (
            ("%a = reshape %x shape=[3,2] : f32[3,2]", "%y = reshape %a shape=[6] : f32[6]"),
            ("%y = reshape %x shape=[6] : f32[6]",),
        ),
        (
            ("%a = transpose %x perm=[1,0] : f32[3,2]", "%y = transpose %a perm=[1,0] : f32[2,3]"),
            ("%x",),
        ),
        (
            (
                "%a = slice %x start=[0,1] stop=[2,3] step=[1,1] : f32[2,2]",
                "%y = slice %a start=[1,0] stop=[2,2] step=[1,2] : f32[1,1]",
            ),
            ("%y = slice %x start=[1,1] stop=[2,2] step=[1,2] : f32[1,1]",),
        ),
        (
            (
                "%a = broadcast %x shape=[2,4,3] dims=[0,2] : f32[2,4,3]",
                "%y = broadcast %a shape=[5,2,4,3] dims=[1,2,3] : f32[5,2,4,3]",
            ),
            ("%y = broadcast %x shape=[5,2,4,3] dims=[1,3] : f32[5,2,4,3]",),
        ),
        (("%a = flip %x axes=[0,1] : f32[2,3]", "%y = flip %a axes=[0,1] : f32[2,3]"), ("%x",)),
        # Axes of size 1.
        (
            ("%y = broadcast %x shape=[2,1,3] dims=[0,2] : f32[2,1,3]",),
            ("%y = reshape %x shape=[2,1,3] : f32[2,1,3]",),
        ),
        (
            (
                "%a = reshape %x shape=[2,1,3] : f32[2,1,3]",
                "%y = transpose %a perm=[1,0,2] : f32[1,2,3]",
            ),
            ("%y = reshape %x shape=[1,2,3] : f32[1,2,3]",),
        ),
        (
            (
                "%a = reshape %x shape=[1,2,3] : f32[1,2,3]",
                "%y = max %a axes=[0] : f32[2,3]",
            ),
            ("%x",),
        ),
        # A broadcast waits.
        (
            (
                "%a = broadcast %x shape=[2,4,3] dims=[0,2] : f32[2,4,3]",
                "%y = slice %a start=[0,1,1] stop=[2,3,3] step=[1,1,1] : f32[2,2,2]",
            ),
            (
                "%0 = slice %x start=[0,1] stop=[2,3] step=[1,1] : f32[2,2]",
                "%y = broadcast %0 shape=[2,2,2] dims=[0,2] : f32[2,2,2]",
            ),
        ),
        (
            (
                "%a = broadcast %x shape=[4,2,3] dims=[1,2] : f32[4,2,3]",
                "%y = transpose %a perm=[2,0,1] : f32[3,4,2]",
            ),
            (
                "%0 = transpose %x perm=[1,0] : f32[3,2]",
                "%y = broadcast %0 shape=[3,4,2] dims=[0,2] : f32[3,4,2]",
            ),
        ),
        (
            (
                "%a = broadcast %x shape=[4,2,3] dims=[1,2] : f32[4,2,3]",
                "%y = exp %a : f32[4,2,3]",
            ),
            (
                "%0 = exp %x : f32[2,3]",
                "%y = broadcast %0 shape=[4,2,3] dims=[1,2] : f32[4,2,3]",
            ),
        ),
        (
            (
                "%c = constant value={3.0} : f32[]",
                "%b = broadcast %c shape=[4,2,3] dims=[] : f32[4,2,3]",
                "%a = broadcast %x shape=[4,2,3] dims=[1,2] : f32[4,2,3]",
                "%y = mul %a, %b : f32[4,2,3]",
            ),
            (
                "%c = constant value={3.0} : f32[]",
                "%0 = broadcast %c shape=[2,3] dims=[] : f32[2,3]",
                "%1 = mul %x, %0 : f32[2,3]",
                "%y = broadcast %1 shape=[4,2,3] dims=[1,2] : f32[4,2,3]",
            ),
        ),
        # Axes of size 1 that keepdims added leave with the next broadcast.
        (
            (
                "%m = sum %x axes=[1] : f32[2]",
                "%k = reshape %m shape=[2,1] : f32[2,1]",
                "%c = constant value={0.3} : f32[]",
                "%b = broadcast %c shape=[2,1] dims=[] : f32[2,1]",
                "%d = mul %b, %k : f32[2,1]",
                "%e = reshape %d shape=[2] : f32[2]",
                "%y = broadcast %e shape=[2,3] dims=[0] : f32[2,3]",
            ),
            (
                "%m = sum %x axes=[1] : f32[2]",
                "%c = constant value={0.3} : f32[]",
                "%0 = broadcast %c shape=[2] dims=[] : f32[2]",
                "%1 = mul %0, %m : f32[2]",
                "%y = broadcast %1 shape=[2,3] dims=[0] : f32[2,3]",
            ),
        ),
        # The sign goes into the constant.
        (
            (
                "%n = neg %x : f32[2,3]",
                "%c = constant value={0.3} : f32[]",
                "%b = broadcast %c shape=[2,3] dims=[] : f32[2,3]",
                "%y = div %b, %n : f32[2,3]",
            ),
            (
                "%0 = constant value={-0.3} : f32[]",
                "%1 = broadcast %0 shape=[2,3] dims=[] : f32[2,3]",
                "%y = div %1, %x : f32[2,3]",
            ),
        ),
        # Reductions of repeated elements, and twice.
        (
            (
                "%a = broadcast %x shape=[4,2,3] dims=[1,2] : f32[4,2,3]",
                "%y = max %a axes=[0,2] : f32[2]",
            ),
            ("%y = max %x axes=[1] : f32[2]",),
        ),
        (
            ("%a = max %x axes=[0] : f32[3]", "%y = max %a axes=[0] : f32[]"),
            ("%y = max %x axes=[0,1] : f32[]",),
        ),
        # Parts.
        (
            (
                "%a = neg %x : f32[2,3]",
                "%b = concat %x, %a axis=0 : f32[4,3]",
                "%y = slice %b start=[2,0] stop=[4,3] step=[1,1] : f32[2,3]",
            ),
            ("%a = neg %x : f32[2,3]",),
        ),
        (
            (
                "%a = slice %x start=[1,0] stop=[2,3] step=[1,1] : f32[1,3]",
                "%b = exp %a : f32[1,3]",
                "%c = update_slice %x, %b start=[0,0] step=[1,1] : f32[2,3]",
                "%y = slice %c start=[1,0] stop=[2,3] step=[1,1] : f32[1,3]",
            ),
            ("%a = slice %x start=[1,0] stop=[2,3] step=[1,1] : f32[1,3]",),
        ),
        (
            (
                "%a = slice %x start=[0,0] stop=[2,3] step=[1,2] : f32[2,2]",
                "%b = exp %a : f32[2,2]",
                "%c = update_slice %x, %b start=[0,0] step=[1,2] : f32[2,3]",
                "%y = slice %c start=[0,0] stop=[2,3] step=[1,2] : f32[2,2]",
            ),
            (
                "%a = slice %x start=[0,0] stop=[2,3] step=[1,2] : f32[2,2]",
                "%b = exp %a : f32[2,2]",
            ),
        ),
        (
            (
                "%i = constant value={1} : i64[]",
                "%j = constant value={7} : i64[]",
                "%y = dynamic_slice %x, %i, %j sizes=[1,2] : f32[1,2]",
            ),
            ("%y = slice %x start=[1,1] stop=[2,3] step=[1,1] : f32[1,2]",),
        ),
        # Contractions read transposed operands as they lie.
        (
            (
                "%a = transpose %x perm=[1,0] : f32[3,2]",
                "%y = dot %a, %x contract=[[1],[0]] batch=[[],[]] : f32[3,3]",
            ),
            ("%y = dot %x, %x contract=[[0],[0]] batch=[[],[]] : f32[3,3]",),
        ),
        # A float sum starts from 0.0.
        (
            (
                "%a = reshape %x shape=[2,1,3] : f32[2,1,3]",
                "%y = sum %a axes=[1] : f32[2,3]",
            ),
            (
                "%0 = constant value={0.0} : f32[]",
                "%1 = broadcast %0 shape=[2,3] dims=[] : f32[2,3]",
                "%y = add %x, %1 : f32[2,3]",
            ),
        ),
    ],
    ids=lambda lines: lines[-1].split(" = ")[-1].split()[0],
)
def test_rule(body: tuple[str, ...], expect: tuple[str, ...]) -> None:
    one(X, *body, expect=expect)


def test_dtype_detours() -> None:
    def chain(start: str, *dtypes: str) -> list[str]:
        graph = Graph("f")
        value = graph.add_param(TensorType((2,), DTYPE_NAMES[start]))
        for name in dtypes:
            value = Builder(graph).convert(value, dtype=DTYPE_NAMES[name])
        graph.outputs = [value]
        return [str(op.result.type) for op in optimise(graph, verify=True).ops]

    assert chain("f32", "f64", "f32") == []
    assert chain("i32", "f64", "i32") == []
    assert chain("i8", "i64", "u8") == ["u8[2]"]
    assert chain("i64", "i16", "u8") == ["u8[2]"]
    assert chain("bool", "f32", "f64") == ["f64[2]"]
    # Detours that lose something stay.
    assert len(chain("f64", "f32", "f64")) == 2
    assert len(chain("i32", "f32", "i32")) == 2
    assert len(chain("i64", "f64", "i64")) == 2
    assert len(chain("i64", "i8", "i64")) == 2
    assert len(chain("f32", "f64", "i32")) == 2
    assert len(chain("i16", "bool", "i16")) == 2


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


def test_division_by_powers_of_two() -> None:
    def names(divisor: Any, dtype: Any, op: str = "div") -> list[str]:
        graph = Graph("f")
        x = graph.add_param(TensorType((2,), dtype))
        b = Builder(graph)
        graph.outputs = [b.op(op, x, b.full_like(x, divisor))]
        return [op.name for op in optimise(graph, verify=True).ops][-1:]

    assert names(0.25, F32) == names(-4.0, F64) == names(2.0**-60, F32) == ["mul"]
    # Their reciprocals would round, overflow, or be subnormal.
    for divisor in (3.0, 0.0, -0.0, np.inf, np.nan, 2.0**-149, 2.0**127):
        assert names(divisor, F32) == ["div"]
    assert names(8, np.dtype(np.int32), "floor_divide") == ["right_shift"]
    assert names(8, np.dtype(np.uint8), "remainder") == ["bitwise_and"]
    assert names(-8, np.dtype(np.int32), "floor_divide") == ["floor_divide"]
    assert names(0, np.dtype(np.int32), "remainder") == ["remainder"]


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


# Every one-line rule, on the values that make trouble.

LINES = [
    line
    for name, group in vars(algebra).items()
    if name.isupper() and isinstance(group, tuple)
    for line in group
    if isinstance(line, str)
]
CLOSE = {"pow(x, 2) -> mul(x, x)": 1, "pow(x, 3) -> mul(mul(x, x), x)": 2}  # ULP, floats only
CLOSE["pow(x:float, -1) -> div(1, x)"] = 1


def _specials(dtype: np.dtype[Any]) -> np.ndarray:
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind == "c":
        parts = [0.0, -0.0, 1.0, -2.5, np.inf, np.nan]
        return np.array([complex(a, b) for a in parts for b in parts], dtype)
    if dtype.kind == "f":
        tiny, huge = np.finfo(dtype).tiny, np.finfo(dtype).max
        few = [0.0, -0.0, 1.0, -1.0, 0.3, -2.5, 7.0, tiny, tiny / 4, -tiny / 4, huge, -huge]
        return np.array([*few, np.inf, -np.inf, np.nan], dtype)
    info = np.iinfo(dtype)
    return np.array([0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1], dtype)


def _walk(term: Any) -> Iterator[Any]:
    yield term
    for arg in getattr(term, "args", ()):
        yield from _walk(arg)


def _admits(left: Any, dtype: np.dtype[Any]) -> bool:
    """Whether variables (other than a condition) and literals of the rule can have this dtype."""
    for term in _walk(left):
        if isinstance(term, patterns._Name) and term.name != "c" and dtype.kind not in term.kinds:
            return False
        if isinstance(term, patterns._Literal):
            kinds = "iuf"
            if isinstance(term.value, bool):  # a condition, or a value of this dtype
                kinds = "biuf" if left.op == "select" and left.args[0] is term else "b"
            elif isinstance(term.value, float):
                kinds = "f"
            elif term.value < 0:
                kinds = "if"
            if dtype.kind not in kinds:
                return False
    return True


def _build(b: Builder, term: Any, env: dict[str, Value], literal: TensorType) -> Value:
    """`term` as ops; its literals have the type `literal`."""
    if isinstance(term, patterns._Name):
        return env[term.name]
    if isinstance(term, patterns._Literal):
        return b.full(literal.shape, term.value, literal.dtype)
    args = [_build(b, arg, env, literal) for arg in term.args]
    if term.op == "select" and isinstance(term.args[0], patterns._Literal):
        args[0] = b.full(literal.shape, term.args[0].value, bool)
    value: Value = b.op(term.op, *args)
    return value


@pytest.mark.parametrize("line", LINES)
def test_one_line_rule_is_what_it_says(line: str) -> None:
    """Both sides agree to the bit, for each dtype that the rule admits, and the rule fires."""
    left, right = (patterns._term(patterns._WORD.findall(t)[::-1]) for t in line.split("->"))
    names = list(dict.fromkeys(t.name for t in _walk(left) if isinstance(t, patterns._Name)))
    tried = 0
    for dtype in DTYPE_NAMES.values():
        values = _specials(dtype)
        flags = [n == "c" for n in names]
        grid = np.meshgrid(*(np.array([False, True]) if f else values for f in flags))
        arrays = [g.reshape(-1) for g in grid]
        like = TensorType(arrays[0].shape, dtype)
        before, after = Graph("before"), Graph("after")
        env = {}
        for side in (before, after):
            params = [side.add_param(type_of(a), n) for n, a in zip(names, arrays, strict=True)]
            env[side] = dict(zip(names, params, strict=True))
        if not _admits(left, dtype) or any(
            dtype.kind not in OPS[t.op].dtypes for t in _walk(left) if isinstance(t, patterns._Call)
        ):
            continue
        before.outputs = [_build(Builder(before), left, env[before], like)]
        after.outputs = [_build(Builder(after), right, env[after], before.outputs[0].tensor)]
        (expected,), (actual,) = evaluate(before, arrays), evaluate(after, arrays)
        if line in CLOSE and dtype.kind == "f":
            with np.errstate(all="ignore"):
                np.testing.assert_array_max_ulp(actual, expected, CLOSE[line])
        else:
            assert same(actual, expected), (line, dtype, expected, actual)
        rewritten = optimise(before, verify=True)
        assert len(rewritten.ops) <= len(eliminate_dead_code(after).ops), print_graph(rewritten)
        tried += 1
    assert tried, "no dtype admits this rule"


# Random graphs.


@settings(max_examples=80)
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


@settings(max_examples=60)
@given(smooth_graphs(max_ops=30))
def test_passes_keep_the_meaning_to_rounding(case: Any) -> None:
    graph, arrays = case
    for a, b in zip(evaluate(graph, arrays), evaluate(optimise(graph), arrays), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-12)


@settings(max_examples=40)
@given(random_graphs())
def test_verified_after_each_pass(case: Any) -> None:
    graph, _ = case
    once = optimise(graph, verify=True)
    optimise(optimise(once, verify=True, fastmath=True), verify=True)
    assert len(once.ops) <= len(optimise(graph).ops)
    for run in PASSES:
        verify(run(graph))


@settings(max_examples=30)
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
