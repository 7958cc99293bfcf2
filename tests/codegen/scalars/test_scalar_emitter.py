"""What the emitter of scalar expressions adds: uniform values, numbering, loops."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from native import array_function_text, native
from scalar_models import same, samples

from jitney.codegen.llvm.builder import Value, vector_constant
from jitney.codegen.llvm.instructions import type_text
from jitney.codegen.llvm.scalars import Operand, ScalarEmitter
from jitney.codegen.llvm.text import TextEmitter
from jitney.codegen.scalar import (
    Expr,
    binary,
    const,
    convert,
    eq,
    fma,
    loop,
    select,
    unary,
    var,
)
from jitney.ir.types import BOOL, F32, F64, I32, I64
from jitney.runtime.native.engine import host_engine
from jitney.runtime.native.host import host_target

# The emitter.


def emitted(width=8, dtype=F32, **bound):
    """An emitter with variables that are bound, uniform or not."""
    e = ScalarEmitter(TextEmitter(host_target(), width))
    types = {name: type_text(dtype, 1 if uniform else width) for name, uniform in bound.items()}
    for name, value in zip(bound, e.b.takes(**types), strict=True):
        e.bind(name, value, uniform=bound[name])
    return e, e.b.lines


def test_uniform_values_are_scalars():
    e, lines = emitted(x=False, s=True)
    x, s = var("x", F32), var("s", F32)
    e.emit((s * s + 1.0) * x)
    assert lines[0].endswith("fmul float %s, %s")
    assert lines[1].split("= ")[1].startswith("fadd float")
    assert "insertelement" in lines[2] and "shufflevector" in lines[3]
    assert lines[4].split("= ")[1].startswith("fmul <8 x float>")
    assert e.operand(s * s) == Operand(Value("float", "%v0"), True)
    assert e.emit(const(2, I32)).text == "splat (i32 2)"


def test_uniform_operands_give_the_same_answers():
    def f(x, y):
        return fma(x, y * y, select(y < 1.0, y, x)) + convert(convert(y, I32), F32)

    x, y = samples(F32, 1)[:64], np.full(64, 0.75, np.float32)
    plain, uniform = native(f, [F32, F32], 8), native(f, [F32, F32], 8, uniform=[1])
    same(uniform(x, y), plain(x, y))
    for instruction in ("fptosi", "fmul"):  # of y alone
        assert f"{instruction} <8 x" in plain.text and f"{instruction} <8 x" not in uniform.text


def test_equal_expressions_are_emitted_once():
    e, lines = emitted(x=False)
    e.emit((var("x", F32) + 1.0) * (var("x", F32) + 1.0))
    assert len(lines) == 2


def test_deep_and_shared_expressions():
    x = var("x", I32)
    chain = x
    for k in range(10_000):
        chain = binary("xor", chain + k, chain)
    e, lines = emitted(dtype=I32, x=False)
    e.emit(chain)
    assert len(lines) == 20_000

    doubled = x
    for _ in range(200):  # 2**200 paths
        doubled = doubled + doubled
    same(native(lambda v: binary("xor", v, v) + 1, [I32], 8)(np.ones(8)), np.ones(8, np.int32))
    e, lines = emitted(dtype=I32, x=False)
    e.emit(doubled)
    assert len(lines) == 200


def test_unbound_names_and_unknown_leaves_are_errors():
    e, _ = emitted()
    with pytest.raises(TypeError, match="has no value here"):
        e.emit(var("nobody", F32) + 1.0)
    with pytest.raises(TypeError, match="gives no value"):
        e.emit(Expr("load", (), F32, "somewhere"))


def collatz(n):
    """(steps to 1, largest value on the way)."""
    v, steps, top = loop(
        [n, const(0, I64), n],
        lambda v, steps, top: v > 1,
        lambda v, steps, top: [
            select(eq(v & 1, 0), binary("ashr", v, 1), v * 3 + 1),
            steps + 1,
            binary("max", top, v),
        ],
    )
    return steps * 1000 + binary("max", top, v)


def collatz_model(n):
    out = []
    for v in n.tolist():
        steps, top = 0, v
        while v > 1:
            top = max(top, v)
            v = v // 2 if v % 2 == 0 else 3 * v + 1
            steps += 1
        out.append(steps * 1000 + max(top, v))
    return np.array(out)


@pytest.mark.parametrize("width", [1, 2, 8])
def test_loops_diverge(width):
    n = np.arange(-3, 200)
    same(native(collatz, [I64], width)(n), collatz_model(n))


def powers(x, n, rare=False):
    """x**n by n multiplications; the count is a loop within a loop, doubled."""

    def body(i, acc):
        _, twice = loop(
            [const(0, I64), acc], lambda j, a: j < 2, lambda j, a: [j + 1, a * x + convert(i, F64)]
        )
        return [i + 1, twice]

    return loop([const(0, I64), x], lambda i, acc: i < n, body, rare=rare)[1]


def powers_model(x, n):
    out = x.copy()
    for k in range(x.size):
        for i in range(n[k]):
            for _ in range(2):
                out[k] = out[k] * x[k] + i
    return out


@pytest.mark.parametrize("rare", [False, True])
@pytest.mark.parametrize("width", [1, 4, 8])
def test_nested_loops(width, rare):
    x = np.linspace(-1.2, 1.2, 64)
    n = np.arange(64) % 7
    want = powers_model(x, n)
    same(native(lambda a, b: powers(a, b, rare), [F64, I64], width)(x, n), want)
    once = native(lambda a, b: powers(a, b, rare), [F64, I64], width, uniform=[1])
    same(once(x, np.full(64, 5)), powers_model(x, np.full(64, 5)))
    both = native(lambda a, b: powers(a, b, rare), [F64, I64], width, uniform=[0, 1])
    same(both(np.full(64, 0.9), np.full(64, 5)), powers_model(np.full(64, 0.9), np.full(64, 5)))


def test_uniform_loops_stay_scalar():
    f = native(lambda x, n: powers(x, n), [F64, I64], 8, uniform=[1])
    heads = [line for line in f.text.splitlines() if "phi i64" in line or "phi <8 x i64>" in line]
    assert len(heads) == 3 and not any("<8 x" in line for line in heads)
    assert "select <8 x i1>" not in f.text  # no lane waits for another


def test_values_of_a_loop_body_are_not_used_after_it():
    def f(x):
        def body(i, a):
            return [i + 1, a + x * x]  # x * x is invariant, i * i is not

        i, a = loop([const(0.0, F64), x], lambda i, a: i < a * 0.0 + 3.0, body)
        return a + x * x + (i + 1) * (i + 1)

    x = np.linspace(0, 1, 16)
    for width in (1, 8):
        same(native(f, [F64], width)(x), x + x * x + x * x + x * x + x * x + 16)


@pytest.mark.parametrize("rare", [False, True])
def test_a_shared_loop_is_emitted_where_it_is_needed(rare):
    """The same loop node inside another loop's body and after that loop."""

    def f(n):
        inner = loop(
            [n, const(0, I64)], lambda v, c: v > 0, lambda v, c: [v - 3, c + 1], rare=rare
        )[1]
        outer = loop([n, const(0, I64)], lambda v, c: v > 0, lambda v, c: [v - 1, c + inner])[1]
        return outer * 100 + inner

    n = np.arange(32)
    inner = (n + 2) // 3
    for width in (1, 8):
        same(native(f, [I64], width)(n), n * inner * 100 + inner)


def test_loop_checks_its_body():
    with pytest.raises(TypeError, match="one value per carry"):
        loop([const(0, I64)], lambda i: i < 3, lambda i: [convert(i, F64)])


def test_rare_loops_without_lanes_in_need_run_nothing():
    def f(x):
        return loop(
            [x < 0.0, x],
            lambda pending, v: pending,
            lambda pending, v: [const(False, BOOL), unary("sqrt", -v)],
            rare=True,
        )[1]

    x = np.linspace(-4, 4, 48)
    for width in (1, 8):
        g = native(f, [F64], width)
        assert "branch_weights" in g.text
        with np.errstate(all="ignore"):
            same(g(x), np.where(x < 0, np.sqrt(-x), x))


def test_text_is_the_same_every_time():
    texts = {array_function_text(collatz, [I64], 8, host_target())[0] for _ in range(3)}
    assert len(texts) == 1


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("dtype", ["u1", "u2", "u4"])
def test_masked_stores_write_what_is_on_and_no_more(dtype: str, lanes: int) -> None:
    """Also where the vector was truncated and one lane is on, which LLVM stores untruncated."""
    stored = np.dtype(dtype)
    for on in ([0], [1], [lanes - 1], [0, 2], [], list(range(lanes))):
        mask = vector_constant("i1", [k in on for k in range(lanes)])
        b = TextEmitter(host_target(), lanes)
        source, out = b.takes(source="ptr", out="ptr")
        e = ScalarEmitter(b)
        wide = b.load_elements(np.dtype("u4"), source, lanes)
        b.store_elements(stored, e.emit(convert(_bound(e, wide), stored)), out, mask=mask)
        b.ret()
        module = "\n".join([*b.declarations, f"define void @f{b.unnamed()}"])
        library = host_engine().link(host_engine().emit_object(module), ["f"], {})
        given = np.arange(lanes, dtype="u4") + 0x01020304
        room = np.full(lanes + 8, 0xEE, stored)
        want = room.copy()
        want[on] = given.astype(stored)[on]
        entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(library.address("f"))
        entry(given.ctypes.data, room.ctypes.data)
        np.testing.assert_array_equal(room, want)


def _bound(e: ScalarEmitter, value: Value) -> Expr:
    x = var("x", np.dtype("u4"))
    e.bind(x, value, uniform=False)
    return x
