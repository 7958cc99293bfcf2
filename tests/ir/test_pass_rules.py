"""The rules of passes: each by an example; the one-line rules on the values that make trouble."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from pass_checks import check, same

from jitney.ir.build import Builder
from jitney.ir.graph import Graph, Value
from jitney.ir.interpreter import evaluate
from jitney.ir.opdef import OPS
from jitney.ir.passes import eliminate_dead_code, optimise
from jitney.ir.passes.rules import algebra, patterns
from jitney.ir.text import print_graph
from jitney.ir.types import BASIC, DTYPE_NAMES, F32, F64, TensorType, is_small, type_of

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
    for dtype in BASIC.values():
        if is_small(dtype):  # rules meet their bits: `pack_floats`
            continue
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
