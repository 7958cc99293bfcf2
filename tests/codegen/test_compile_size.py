"""The work of compiling grows with the program and no faster, and what repeats is compiled once.

Counted in lines of LLVM and in functions, never in time.
"""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from graphs import random_graphs
from hypothesis import given, settings

import jitney as jt
from jitney.codegen.loop_ir.kernel import Kernel
from jitney.codegen.program.compile import compile_graph
from jitney.codegen.program.entry import EMITTERS, EntryEmitter
from jitney.codegen.schedule.signature import signature
from jitney.codegen.target import Target
from jitney.ir.build import Builder
from jitney.ir.graph import Graph
from jitney.runtime.compile import clear_memory_cache

TARGET = Target(
    triple="x86_64-unknown-linux-gnu",
    cpu="skylake-avx512",
    features="+sse2,+sse4.2,+avx,+avx2,+fma,+avx512f,+avx512vl,+avx512dq,+avx512bw",
    vector_bits=512,
)


def text(function: Callable[..., Any], *arguments: Any) -> str:
    return str(jt.jit(function).lower(*arguments).llvm())


def lines(function: Callable[..., Any], *arguments: Any) -> int:
    return text(function, *arguments).count("\n")


def defined(llvm: str) -> list[str]:
    """The names of the functions in a module."""
    return re.findall(r"^define .*?@([\w.]+)\(", llvm, re.MULTILINE)


def f32(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def sines(count: int) -> Callable[[Any], Any]:
    def chain(x: Any) -> Any:
        for _ in range(count):
            x = np.sin(x) * 1.01
        return x

    return chain


def test_a_function_used_many_times_is_emitted_once() -> None:
    few, many = text(sines(2), f32(100)), text(sines(12), f32(100))
    assert not any(name.startswith("sin.") for name in defined(few))  # written out
    assert sum(name.startswith("sin.") for name in defined(many)) == 1
    assert many.count("fma") < 2 * few.count("fma")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (1,), (37,), (3, 50)])
def test_called_functions_give_the_same_bits(dtype: Any, shape: tuple[int, ...]) -> None:
    """Values that do not depend on the lane are called with scalars, others with vectors."""

    def one(x: Any, y: Any) -> Any:
        return np.arctan2(np.sin(x), np.exp(y)) ** 2.5 + np.tanh(np.sin(y))

    def many(x: Any, y: Any) -> Any:
        results = []
        for _ in range(12):
            x = one(x, y)
            results.append(x)
        return results

    x = np.linspace(-3, 1e6, int(np.prod(shape)), dtype=dtype).reshape(shape)
    y = np.array(0.3, dtype)
    expected = x
    for got in jt.jit(many)(x, y):
        expected = jt.jit(one)(expected, y)
        np.testing.assert_array_equal(got, expected)


def updates(count: int) -> Callable[[Any, Any], Any]:
    def sweep(x: Any, y: Any) -> Any:
        x = x.copy()
        for i in range(count):
            x[i % 40] += y[i % 7] * 2
        return x

    return sweep


def network(layers: int) -> Callable[[Any, Any], Any]:
    def forward(x: Any, parameters: Any) -> Any:
        for weights, bias in parameters[:layers]:
            x = np.tanh(x @ weights + bias)
            x = (x - x.mean(axis=1, keepdims=True)) / (x.std(axis=1, keepdims=True) + 1e-5)
        return x.sum()

    return forward


def recurrent(steps: int) -> Callable[..., Any]:
    def unrolled(xs: Any, w: Any, u: Any) -> Any:
        h = np.zeros((4, 8), np.float32)
        for t in range(steps):
            h = np.tanh(xs[t] @ w + h @ u)
        return (h * h).sum()

    return unrolled


PARAMETERS = [(f32(16, 16), f32(16)) for _ in range(12)]
REPEATING: dict[str, tuple[Callable[[int], Any], tuple[Any, ...], int]] = {
    "updates": (updates, (f32(40, 10), f32(7, 10)), 10),
    "layers": (network, (f32(5, 16), PARAMETERS), 3),
    "layers, gradient": (lambda n: jt.grad(network(n), 1), (f32(5, 16), PARAMETERS), 3),
    "steps": (recurrent, (f32(30, 4, 6), f32(6, 8), f32(8, 8)), 5),
    "steps, gradient": (
        lambda n: jt.grad(recurrent(n), (1, 2)),
        (f32(30, 4, 6), f32(6, 8), f32(8, 8)),
        5,
    ),
}


@pytest.mark.parametrize("name", REPEATING)
def test_what_repeats_is_compiled_once(name: str) -> None:
    """Layers, steps and updates share their functions, wherever their arrays are."""
    make, arguments, few = REPEATING[name]
    once, often = (defined(text(make(n), *arguments)) for n in (few, 4 * few))
    assert len(often) <= len(once) + 1


class EveryKernel(EntryEmitter):
    """Emits every kernel, and checks that those with one signature have one text."""

    shared = 0

    def kernel(self, step: Kernel) -> None:
        before = len(self.kernels)
        super().kernel(step)
        if len(self.kernels) > before:
            return
        EveryKernel.shared += 1
        texts = {name: text for text, name in self.functions.items()}
        self.elementwise = copy.deepcopy(self.elementwise)
        done = self._emit(step, signature(step), None)
        assert done.plan.range == self.schedules[-1][1].range
        if "fastcc" not in texts[step.name]:  # which functions are called depends on those before
            assert done.name == step.name


@settings(max_examples=15, deadline=None)
@given(random_graphs(max_ops=12, effects=False, library=True))
def test_equal_signatures_are_equal_code(made: tuple[Graph, Any]) -> None:
    graph, _ = made
    twice = Graph("twice")
    b = Builder(twice)
    for _ in range(2):
        twice.outputs += b.inline(graph, [twice.add_param(p.type) for p in graph.params])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jitney.codegen.program.compile.EntryEmitter", EveryKernel)
        patch.setitem(EMITTERS, Kernel, EveryKernel.kernel)
        compile_graph(twice, TARGET)


def test_signatures_are_shared_at_all() -> None:
    assert EveryKernel.shared > 0


# Tables of calls.


def table_program(n: int) -> Callable[..., Any]:
    """Steps that cannot fuse: sums over all elements between elementwise work."""

    def steps(x: Any, small: Any) -> Any:
        for k in range(n):
            x = x * 0.5 + (x.sum() + small[k % 3]) * 1e-3
        return x

    return steps


@pytest.mark.parametrize("size", [20_000, 300_000])
def test_many_calls_are_a_table(size: int) -> None:
    """On the caller's thread, and with some of the calls on the thread pool."""
    x, small = f32(size).astype(np.float64), f32(3).astype(np.float64)
    few, many = lines(table_program(12), x, small), lines(table_program(48), x, small)
    assert many < 1.5 * few
    got = jt.jit(table_program(30))(x, small)
    np.testing.assert_allclose(got, table_program(30)(x, small), rtol=1e-9)


def test_tables_in_loops_and_branches() -> None:
    def program(x: Any, n: Any) -> Any:
        def body(i: Any, carry: Any) -> Any:
            a, b = carry
            return table_program(20)(b, a[:3]), jt.cond(
                i > 2, table_program(19), lambda x, s: x, a, b
            )

        return jt.fori_loop(0, n, body, (x, x + 1))

    x = f32(20_000).astype(np.float64)
    interpreted = jt.jit(program, backend="interpreter")(x, 5)
    for got, wanted in zip(jt.jit(program)(x, 5), interpreted, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


@pytest.mark.parametrize("bad", [None, 0, 13, 29])
def test_checks_in_a_table(bad: int | None) -> None:
    """The first index out of bounds ends the call, with its own message."""

    def lookups(x: Any, indices: Any) -> Any:
        for k in range(30):
            x = x[indices[k]] + x.sum() * 1e-3
        return x

    size = 20_000
    x = f32(size).astype(np.float64)
    indices = np.random.default_rng(1).integers(-size, size, (30, size))
    if bad is None:
        np.testing.assert_allclose(jt.jit(lookups)(x, indices), lookups(x, indices), rtol=1e-12)
        return
    indices[bad, 7] = size + bad
    indices[29, 3] = size + 99
    first = size + (bad if bad < 29 else 99)
    with pytest.raises(
        IndexError, match=f"index {first} is out of bounds for axis 0 with size {size}"
    ):
        jt.jit(lookups)(x, indices)


def test_updates_of_many_parameters_are_one_function() -> None:
    """An optimiser's step over many arrays is the step over one, called often."""

    def step(parameters: Any, gradients: Any) -> Any:
        return [
            p - 0.01 * g / (np.sqrt(g * g) + 1e-8)
            for p, g in zip(parameters, gradients, strict=True)
        ]

    arrays = [f32(20, 10) for _ in range(120)]
    for count in (12, 120):
        llvm = text(step, arrays[:count], arrays[:count])
        assert len(defined(llvm)) == 2
    assert llvm.count("\n") < 300
    for got, wanted in zip(jt.jit(step)(arrays, arrays), step(arrays, arrays), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


# Linear in the size of the program, counted in calls of Python functions.


def work(make: Callable[[int], Any], n: int) -> int:
    """Python functions called, builtins too, from the first call of a function to its result."""
    function, arguments = make(n)
    jitted = jt.jit(function)
    clear_memory_cache()
    count = 0

    def called(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        jitted(*arguments)
    finally:
        sys.setprofile(before)
    return count


def arithmetic(n: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    def chain(x: Any) -> Any:
        for k in range(n):
            x = (x * 1.01 + k) * x - 0.5
        return x

    return chain, (f32(50),)


def slices(n: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    def total(x: Any) -> Any:
        z = x[0]
        for k in range(1, n):
            z = z + x[k] * x[k - 1]
        return z.sum()

    return total, (f32(n, 10),)


def containers(n: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    def scaled(d: Any) -> Any:
        return {key: value * 2 + value.sum() for key, value in d.items()}

    return scaled, ({f"key{k}": f32(5) for k in range(n)},)


def recurrence(n: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    def written(x: Any) -> Any:
        x = x.copy()
        for k in range(1, n):
            x[k] = x[k - 1] * 0.5 + x[k]
        return x

    return written, (f32(n, 10),)


def gradient(make: Callable[[int], Any]) -> Callable[[int], Any]:
    def made(n: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        function, arguments = make(n)
        return jt.grad(lambda *given: function(*given).sum()), arguments

    return made


GROWING: dict[str, Callable[[int], Any]] = {
    "arithmetic": arithmetic,
    "sines": lambda n: (sines(n), (f32(50),)),
    "slices": slices,
    "containers": containers,
    "recurrence": recurrence,
    "updates": lambda n: (updates(n), (f32(40, 10), f32(7, 10))),
    "layers": lambda n: (network(n), (f32(5, 16), PARAMETERS[:1] * n)),
    "steps": lambda n: (recurrent(n), (f32(n, 4, 6), f32(6, 8), f32(8, 8))),
}
GROWING |= {f"{name}, gradient": gradient(GROWING[name]) for name in ("sines", "slices", "steps")}


@pytest.mark.parametrize("name", GROWING)
def test_the_work_of_compiling_is_linear(name: str) -> None:
    """From 12 to 48 of the same: less than 4 times as much, and no step that is quadratic."""
    with jt.config(cache=False):
        work(GROWING[name], 3)  # what is done once in a process
        small, large = work(GROWING[name], 12), work(GROWING[name], 48)
    assert large < 4.6 * small


def test_a_kernel_touches_a_bounded_number_of_arrays() -> None:
    """LLVM's time grows faster than a function's pointers do."""
    arrays = [f32(8) for _ in range(400)]
    llvm = text(lambda *xs: sum(xs), *arrays)
    pointers = [int(k) for k in re.findall(r"%p(\d+) = load ptr", llvm)]
    assert max(pointers) <= 130
    np.testing.assert_allclose(jt.jit(lambda *xs: sum(xs))(*arrays), sum(arrays), rtol=1e-5)


def test_derivatives_of_assigned_elements_are_sums_of_elements() -> None:
    def work(count: int) -> tuple[int, int]:
        def program(x: Any) -> Any:
            for i in range(1, count):
                x[i] = x[i - 1] * 0.5 + x[i]
            return (x * x).sum()

        low = jt.jit(jt.grad(program)).lower(np.ones(count))
        return low.llvm().count("\n"), sum(kernel.flops for kernel in low.kernels)

    (lines, flops), (more_lines, more_flops) = work(40), work(160)
    assert more_lines < 4.5 * lines and more_flops < 4.5 * flops
