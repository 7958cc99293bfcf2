"""The builder of LLVM functions: what it writes computes; types that do not fit are errors."""

from __future__ import annotations

import ctypes

import pytest

from jitney.codegen.llvm.builder import Value, vector_constant
from jitney.codegen.llvm.modules import Defined, Function, declarations, module_ir
from jitney.codegen.llvm.text import TextEmitter
from jitney.codegen.target import Target
from jitney.ir.types import F32

TARGET = Target("x86_64-unknown-linux-gnu", "haswell", "+avx2", 256)


def run(f: Function, *args: int) -> int:
    """The function compiled, and called with 64-bit integers."""
    llvm = pytest.importorskip("llvmlite.binding")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(module_ir([f], []))
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine()
    with llvm.create_mcjit_compiler(module, machine) as engine:
        engine.finalize_object()
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(args))
        return int(kind(engine.get_function_address(f.name))(*args))


def test_a_loop_that_tests_first() -> None:
    f = Function("i64", "sum_to", n="i64")
    with f.loop(i=0, total=0) as loop:
        loop.going(loop.i < f.n)
        loop.next(loop.i + 1, loop.total + loop.i)
    f.ret(loop.total)
    assert [run(f, n) for n in (0, 1, 5)] == [0, 0, 10]


def test_a_loop_that_tests_last() -> None:
    f = Function("i64", "doublings", n="i64")
    with f.loop(x=1, count=0) as loop:
        loop.repeat((loop.x * 2).ult(f.n), loop.x * 2, loop.count + 1)
    f.ret(loop.count)
    assert [run(f, n) for n in (0, 2, 3, 100)] == [0, 0, 1, 6]


def test_operators_of_unsigned_and_signed_numbers() -> None:
    f = Function("i64", "mixed", a="i64", b="i64")
    unsigned, signed = f.a.ult(f.b).zext("i64"), (f.a < f.b).zext("i64")
    f.ret((unsigned | signed << 1) + (f.a >> 60) * 8 + (10 - f.b % 4))
    assert run(f, -1, 3) == 2 + 15 * 8 + 7


def test_lanes() -> None:
    f = Function("i64", "lanes", a="i64", b="i64")
    both = f.splat(f.a, 4) * vector_constant("i64", range(4))
    low = both.ult(f.splat(f.b, 4)).to("bitcast", "i4")
    f.ret(low.zext("i64") + f.extract(both, 3) * 16)
    assert run(f, 2, 4) == 0b0011 + 6 * 16


@pytest.mark.parametrize(
    "wrong",
    [
        lambda f: f.n + f.narrow,
        lambda f: f.n < f.narrow,
        lambda f: f.select(f.n, f.n, f.n),
        lambda f: f.select(f.n < 1, f.n, f.narrow),
        lambda f: f.when(f.n).__enter__(),
        lambda f: f.jump(f.block("next", i="i32"), f.n),
        lambda f: f.run(f, f.narrow, f.narrow),
        lambda f: f.insert(Value("<4 x i64>", "poison"), f.narrow, 0),
        lambda f: f.shuffle(f.splat(f.n, 2), f.splat(f.n, 4), [0]),
        lambda f: f.store_masked(f.splat(f.n, 2), f.p, f.splat(f.n < 1, 4), 8),
        lambda f: f.swap_atomic(f.p, f.n, f.narrow, "monotonic monotonic"),
        lambda f: f.run(Defined("g", ["i64", "i32"]), f.n, f.n),
        lambda f: f.copy(f.n, f.p, 8),
        lambda f: f.n + True,
        lambda f: f.store_masked(f.splat(f.n, 2), f.p, f.n, 8),
        lambda f: f.store_masked(f.n, f.p, f.n < 1, 8),
    ],
)
def test_types_that_do_not_fit(wrong) -> None:
    f = Function("void", "f", n="i64", narrow="i32", p="ptr")
    with pytest.raises(TypeError, match="wanted|chooses"):
        wrong(f)


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("wrong", ["", "true", 0, 2, 0.0, [], Value("i32", "1")])
def test_what_is_no_condition_is_refused(wrong, lanes: int) -> None:
    """It could be meant as the lack of one; nothing but None is."""
    b = TextEmitter(TARGET, lanes)
    (p,) = b.takes(p="ptr")
    with pytest.raises(TypeError):
        b.load_elements(F32, p, lanes, mask=wrong)
    with pytest.raises(TypeError):
        b.store_elements(F32, b.load_elements(F32, p, lanes), p, mask=wrong)


def test_conditions_that_are_known() -> None:
    """A comparison of two Python numbers is a condition that never or always holds."""
    b = TextEmitter(TARGET, 4)
    (p,) = b.takes(p="ptr")
    b.load_elements(F32, p, 4, mask=3 < 2)
    b.load_elements(F32, p, 4, mask=2 < 3)
    b.load_elements(F32, p, 4)
    never, always, plain = b.lines
    assert "splat (i1 false)" in never and "splat (i1 true)" in always and "mask" not in plain
    on = b.extract(b.load_elements(F32, p, 4), 0).to("bitcast", "i32").ne(0)
    assert b.both(None, on) is on and b.both(on, None) is on and b.both(None, None) is None
    assert b.lines[-1].split("= ")[1].startswith("icmp")
    both = b.both(on, 3 < 2)
    assert isinstance(both, Value) and b.lines[-1].endswith(f"and i1 {on.text}, false")
    with b.where(3 < 2):
        b.store(p, p)
    assert any(line.startswith("  br i1 false") for block in b.code.blocks for line in block.lines)


def test_values_are_compared_when_the_code_runs() -> None:
    f = Function("void", "f", n="i64")
    for question in (lambda: f.n == 0, lambda: f.n in (0, 1), lambda: not f.n, lambda: f.n != ""):
        with pytest.raises(TypeError, match="when the code runs"):
            question()
    assert f.n == f.args[0] and f.n != f.literal("i64", 0)


def test_declarations_are_of_what_is_not_defined() -> None:
    helper = Function("i64", "helper", n="i64")
    helper.ret(helper.intrinsic("ctpop", "i64", helper.n))
    f = Function("i64", "f", n="i64")
    f.ret(f.run(helper, f.n) + f.call("i64", "helper", f.n))
    assert declarations([helper, f]) == {"llvm.ctpop.i64": "declare i64 @llvm.ctpop.i64(i64)"}
