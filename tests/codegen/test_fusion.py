"""What becomes one kernel, what must not, and the text of a few kernels.

The golden files in tests/golden hold the LLVM text of whole modules for two targets that do not depend
on the machine. After a change that is meant to change code, look at the difference and accept it:

    JITNEY_UPDATE_GOLDEN=1 python -m pytest -n 0 tests/codegen/test_fusion.py -k golden
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from folders import HELPERS, TESTS
from programs import (
    PATTERNS,
    build,
    centre_columns,
    chain,
    column_sums,
    compiled,
    cross_entropy,
    expected,
    fits,
    layernorm,
    logsumexp,
    moments,
    reduce_rows,
    rows_of,
    same,
    sample,
    scaled,
    softmax,
    standardise,
)  # fmt: skip

import jitney as jt
from jitney.codegen.module import KernelReport
from jitney.codegen.program.compile import compile_graph
from jitney.codegen.target import Target
from jitney.ir.cost import FAR
from jitney.ir.types import I64

AVX512 = Target(
    triple="x86_64-unknown-linux-gnu",
    cpu="skylake-avx512",
    features="+sse2,+sse4.2,+avx,+avx2,+fma,+avx512f,+avx512vl,+avx512dq,+avx512bw",
    vector_bits=512,
)
AVX2 = Target(
    triple="x86_64-unknown-linux-gnu",
    cpu="haswell",
    features="+sse2,+sse4.2,+avx,+avx2,+fma",
    vector_bits=256,
)
SSE2 = Target("x86_64-unknown-linux-gnu", "x86-64", "+sse2", 128)
NEON = Target("aarch64-unknown-linux-gnu", "generic", "+neon,+fp-armv8", 128)


def kernels(f: Callable[..., Any], *arrays: np.ndarray) -> list[KernelReport]:
    """The kernels of a program; what they compute is checked on the way."""
    graph = build(f, *arrays)
    executable = compiled(graph)
    same(executable.run(list(arrays)), expected(graph, list(arrays)), ulps=4096)
    assert executable.module.arena_bytes >= 0
    return executable.kernels


def black_scholes(b, s, k, t):
    def cdf(x):
        half = b.add(b.erf(scaled(b, x, 0.5**0.5)), b.full_like(x, 1.0))
        return scaled(b, half, 0.5)

    root = b.mul(b.full_like(t, 0.2), b.sqrt(t))
    d1 = b.div(b.add(b.log(b.div(s, k)), scaled(b, t, 0.05)), root)
    d2 = b.sub(d1, root)
    now = b.mul(k, b.exp(scaled(b, t, -0.03)))
    call = b.sub(b.mul(s, cdf(d1)), b.mul(now, cdf(d2)))
    return call, b.add(b.sub(call, s), now)


def test_black_scholes_is_one_kernel_with_two_outputs():
    rng = np.random.default_rng(0)
    (kernel,) = kernels(black_scholes, *(rng.uniform(0.5, 2, 5000) for _ in range(3)))
    assert kernel.bytes_written == 2 * 5000 * 8


@pytest.mark.parametrize("shape", [(100,), (300, 70), (5, 4, 3)])
def test_a_chain_is_one_kernel(shape):
    x = sample(shape, "f4")
    (kernel,) = kernels(chain, x)
    assert kernel.bytes_read == kernel.bytes_written == x.nbytes


@pytest.mark.parametrize(
    "pattern", [softmax, layernorm, logsumexp, moments], ids=lambda p: p.__name__
)
@pytest.mark.parametrize("shape", [(64, 100), (1000, 33), (4, 50), (6, 5, 40)])
def test_row_programs_are_one_kernel(pattern, shape):
    x = sample(shape, "f4")
    graph = build(pattern, x)
    executable = compiled(graph)
    same(executable.run([x]), expected(graph, [x]), ulps=4096)
    (kernel,) = executable.kernels
    assert kernel.bytes_read == x.nbytes
    assert executable.module.arena_bytes == 0, "rows live in registers and row buffers"


def test_cross_entropy_is_a_row_kernel_and_a_sum():
    found = kernels(cross_entropy, sample((500, 40), "f4"))
    assert [k.extents for k in found] == [(500,), ()]


def test_small_standardise_is_one_kernel():
    assert len(kernels(standardise, sample((900,), "f4"))) == 1


def test_large_standardise_is_parallel():
    """Means of a large array go by chunks; nothing waits for one core."""
    found = kernels(standardise, sample((2000, 700), "f4"))
    assert sum(k.parallel for k in found) >= 2, "the moments in one pass, the result in another"
    assert len(found) <= 5


def test_large_sums_do_not_divide_indices():
    """Whatever the layout, the loops are the array's own: no element pays for a division."""

    def f(b, x, w):
        diff = b.sub(
            b.slice(x, start=(0, 1), stop=(600, 500), step=(1, 1)),
            b.slice(x, start=(0, 0), stop=(600, 499), step=(1, 1)),
        )
        row = b.broadcast(w, shape=x.shape, dims=(1,))
        turned = b.transpose(x, perm=(1, 0))
        return [b.op("sum", b.mul(v, v), axes=(0, 1)) for v in (diff, b.sub(x, row), turned)]

    arrays = [sample((600, 500), "f4"), sample((500,), "f4")]
    executable = compiled(build(f, *arrays))
    assert "urem <" not in executable.llvm and "udiv <" not in executable.llvm
    same(executable.run(arrays), expected(build(f, *arrays), arrays), ulps=100_000)


def test_elementwise_work_before_a_reduction_is_part_of_it():
    def norm(b, x, y):
        d = b.sub(x, y)
        return b.sqrt(b.op("sum", b.mul(d, d), axes=(0, 1)))

    (kernel,) = kernels(norm, sample((50, 60), "f8"), sample((50, 60), "f8", 1))
    assert kernel.bytes_read == 2 * 50 * 60 * 8


def test_column_sums_read_rows():
    """The loop over columns is the vectorised one: memory is read in order."""
    (kernel,) = kernels(column_sums, sample((400, 300), "f4"))
    assert "outer" in kernel.note


def test_columns_then_rows_are_two_kernels():
    """A row needs all column sums, which need all rows."""
    assert len(kernels(centre_columns, sample((40, 50), "f4"))) == 2


def test_a_transpose_that_is_read_does_not_join_its_source():
    def both(b, x):
        e = b.exp(x)
        return e, b.add(e, b.transpose(e, perm=(1, 0)))

    assert len(kernels(both, sample((40, 40), "f8"))) == 2


def test_a_shifted_read_does_not_join_its_source():
    def both(b, x):
        e = b.exp(x)
        return e, b.add(e, b.flip(e, axes=(0,)))

    assert len(kernels(both, sample((1000,), "f8"))) == 2


def test_sorted_columns_are_turned_back_before_they_are_used():
    """The copy out of the sorted rows writes elsewhere than at its own point, in a square array."""

    def f(b, x):
        return b.add(b.sort(x, axis=0, stable=True), b.exp(x))

    assert len(kernels(f, sample((16, 16), "f8"))) == 4  # with the sort itself


def test_concat_parts_do_not_hide_from_their_reader():
    def f(b, x):
        joined = b.concat(b.exp(x), b.neg(x), axis=0)
        return b.mul(joined, b.flip(joined, axes=(0,)))

    found = kernels(f, sample((30,), "f8"))
    assert [k.ops[-1] for k in found][-1] != "concat"


def test_an_expensive_value_is_computed_once():
    def f(b, x):
        e = b.exp(x)
        return [b.add(e, b.full_like(e, 1.0)), b.op("sum", b.mul(e, x), axes=(0, 1)), b.neg(e)]

    found = kernels(f, sample((100, 64), "f8"))
    assert sum(k.ops.count("exp") for k in found) == 1


def test_a_broadcast_value_is_not_computed_again_per_element():
    def f(b, x, w):
        return b.add(x, b.broadcast(b.sin(w), shape=x.shape, dims=(1,)))

    found = kernels(f, sample((200, 30), "f8"), sample((30,), "f8"))
    assert [k.extents for k in found if "sin" in k.ops] == [(30,)]


def test_siblings_join_only_over_the_same_data():
    def f(b, x, y):
        return b.op("sum", x, axes=(1,)), b.op("max", x, axes=(1,)), b.op("sum", y, axes=(1,))

    assert len(kernels(f, sample((50, 300), "f8"), sample((50, 300), "f8", 1))) == 2


def test_a_number_made_late_does_not_part_what_reads_it_from_what_was_before():
    """An optimiser's rate is looked at after the slots of all leaves: each leaf is still one kernel."""

    def f(b, rate, *leaves):
        slots = [scaled(b, x, 0.9) for x in leaves]
        late = b.neg(rate)
        return [*slots, *(b.mul(b.broadcast_to(late, m.type.shape), b.exp(m)) for m in slots)]

    leaves = [sample((20, 30 + k), "f4", k) for k in range(16)]
    found = kernels(f, np.array(0.5, np.float32), *leaves)
    assert len([k for k in found if k.extents]) == len(leaves)
    assert sum(k.extents == () for k in found) == len(found) - len(leaves) <= 1


def test_rows_that_do_not_fit_the_cache_are_not_kept():
    big = sample((16, 100_000), "f8")
    executable = compiled(build(softmax, big))
    assert "alloca" not in "".join(
        line for line in executable.llvm.splitlines() if line.lstrip().startswith("%row")
    )
    same(executable.run([big]), expected(build(softmax, big), [big]))


def test_limits_on_one_kernel_hold():
    """Thousands of outputs over one index space: several kernels of bounded size."""

    def f(b, x):
        return [b.exp(scaled(b, x, 1.0 + k)) for k in range(150)]

    found = kernels(f, sample((20,), "f8"))
    assert 2 <= len(found) <= 12


def test_locals_of_a_row_are_not_written():
    def f(b, x):
        e = b.exp(x)
        total = rows_of(b, x, reduce_rows(b, "sum", e))
        top = rows_of(b, x, reduce_rows(b, "max", b.mul(e, total)))
        return b.div(e, top)

    x = sample((100, 200), "f4")
    (kernel,) = kernels(f, x)
    assert kernel.bytes_written == x.nbytes


def test_updates_in_place_do_not_copy():
    """x[i] = x[i-1] + x[i-2] in a loop: two small kernels per trip, whatever the length of x."""
    from programs import loop

    def fibonacci(b, x):
        def body(b, i, x):
            at = b.add(i, b.const(2, I64))
            old = [
                b.dynamic_slice(x, b.sub(at, b.const(k, I64)), sizes=(1,)) for k in (1, 2)
            ]  # fmt: skip
            return b.dynamic_update_slice(x, b.add(*old), at)

        return loop(b, 50, body, x)

    x = np.ones(100_000)
    executable = compiled(build(fibonacci, x))
    assert executable.module.arena_bytes < 10_000, "no second copy of the array"
    assert all(np.prod(k.extents, initial=1) <= 1 for k in executable.kernels)
    (got,) = executable.run([x])
    assert got[51] == float(got[50] + got[49]) and x[51] == 1.0 and got[52] == 1.0


# Other targets, in a process of their own: LLVM may end it.

CHILD = """
import sys
sys.path[:0] = [{tests!r}, {helpers!r}]
from test_fusion import NEON, SSE2, AVX2, AVX512, emit_everything
emit_everything({name})
"""


def emit_everything(target: Target) -> None:
    from jitney.runtime.native.engine import engine_for

    engine = engine_for(target)
    for turn, pattern in enumerate(PATTERNS, target.vector_bits):
        shapes = [s for s in [(1003,), (37, 65), (65, 9)] if fits(pattern, s)]
        x = sample(shapes[turn % len(shapes)], ("f4", "f8")[turn % 2])
        module = compile_graph(build(pattern, x), target)
        assert len(engine.asm(module.text)) > 100
    print("emitted")


@pytest.mark.parametrize("name", ["NEON", "SSE2", "AVX2", "AVX512"])
def test_other_targets_emit(name):
    if name == "NEON":
        import llvmlite.binding as llvm

        llvm.initialize_all_targets()
        try:
            llvm.Target.from_triple(NEON.triple)
        except RuntimeError:
            pytest.skip("this LLVM has no AArch64")
    code = CHILD.format(tests=str(Path(__file__).parent), helpers=str(HELPERS), name=name)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "emitted" in done.stdout


# Texts.


def axpb(b, x):
    return b.add(scaled(b, x, 2.0), b.full_like(x, 1.0))


def row_sums(b, x):
    return reduce_rows(b, "sum", x)


def plain_column_sums(b, x):
    return b.op("sum", x, axes=(0,))


def take(b, x, i):
    return b.gather(x, i, axes=(0,), mode="check")


def add_at(b, x, u, i):
    return b.scatter(x, u, i, axes=(0,), mode="check", combine="add")


def turn(b, x):
    return b.transpose(x, perm=(1, 0))


def window(b, x, u):
    return b.update_slice(b.neg(x), u, start=(1, 1), step=(1, 1))


def countdown(b, n):
    from programs import region

    test = region(lambda b, n: b.op("gt", n, b.const(0, I64)), n.type)
    body = region(lambda b, n: b.sub(n, b.const(3, I64)), n.type)
    return b.op("while", n, regions=(test, body), consts=0)


def test_scalars_of_rows_with_and_without_a_loop_of_one_trip():
    """What follows many short rows is a kernel of its own, whose stages need not have equal loops."""

    def f(b, x, p):
        total = b.sum(x, axes=(2,))
        kept = b.reshape(total, shape=(*total.shape, 1))
        return b.exp(total), b.mul(kept, p), b.exp(kept)

    args = [sample((64, 80, 8), "f8"), sample((64, 80, 1), "f8")]
    graph = build(f, *args)
    assert len(compile_graph(graph, AVX2).kernels) == 2
    same(compiled(graph)(*args), expected(graph, args))


GOLDEN: dict[str, tuple[Callable[..., Any], list[np.ndarray]]] = {
    "axpb": (axpb, [np.zeros(1000, "f4")]),
    "row_sums": (row_sums, [np.zeros((8, 100), "f4")]),
    "column_sums": (plain_column_sums, [np.zeros((100, 20), "f8")]),
    "layernorm": (layernorm, [np.zeros((8, 64), "f4")]),
    "take": (take, [np.zeros(50), np.zeros(33, np.int64)]),
    "add_at": (add_at, [np.zeros((5, 8)), np.zeros((3, 8)), np.zeros(3, np.int64)]),
    "transpose": (turn, [np.zeros((16, 24), "f4")]),
    "window": (window, [np.zeros((6, 10)), np.zeros((4, 8))]),
    "countdown": (countdown, [np.zeros((), np.int64)]),
}

FOLDER = TESTS / "golden"


@pytest.mark.parametrize("target", [AVX512, AVX2], ids=["avx512", "avx2"])
@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name, target, request):
    f, arrays = GOLDEN[name]
    text = compile_graph(build(f, *arrays), target).text
    path = FOLDER / f"{name}.{target.vector_bits}.ll"
    if os.environ.get("JITNEY_UPDATE_GOLDEN"):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text)
    assert path.exists(), f"there is no {path.name}; see the top of this file. It would be:\n{text}"
    assert text == path.read_text(), f"{path.name} differs; see the top of this file"


def test_every_golden_file_is_looked_at():
    names = {f"{name}.{bits}.ll" for name in GOLDEN for bits in (512, 256)}
    assert {p.name for p in FOLDER.glob("*.ll")} == names


def test_text_is_the_same_in_every_process():
    """The cache of compiled code is keyed by the text: nothing may depend on hashes or addresses."""
    code = (
        f"import sys; sys.path[:0] = {[str(HELPERS), str(Path(__file__).parent)]!r}\n"
        "import hashlib, numpy as np\n"
        "from test_fusion import *\n"
        "texts = [compile_graph(build(f, *arrays), AVX2).text for f, arrays in GOLDEN.values()]\n"
        "texts += [compile_graph(build(p, sample((5, 9), 'f4')), AVX2).text for p in PATTERNS]\n"
        "print(hashlib.sha256(''.join(texts).encode()).hexdigest())\n"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1 and "" not in digests


def test_what_depends_on_a_value_stands_behind_it():
    """Updates of several arrays in one kernel are one after the other, not all their first halves."""

    def updates(b, x, y, g):
        first, second = b.add(x, b.exp(g)), b.add(y, b.tanh(g))
        return first, second, b.mul(b.sqrt(first), g), b.mul(b.sqrt(second), g)

    arrays = list(np.random.default_rng(0).random((3, 1000)) + 1)
    (kernel,) = kernels(updates, *arrays)
    order = [name for name in kernel.ops if name in ("exp", "tanh", "sqrt")]
    assert order == ["exp", "sqrt", "tanh", "sqrt"]


def test_numbers_that_are_results_come_first_too():
    """A counter and what is made of it part no product from what follows it."""

    def counted(b, x, w, count):
        product = b.dot(x, w, contract=((1,), (0,)), batch=((), ()))
        count = b.add(count, b.const(1.0, count.dtype))
        rate = b.broadcast(b.exp(count), shape=product.shape, dims=())
        return count, b.mul(product, rate)

    rng = np.random.default_rng(0)
    first, *others = kernels(counted, rng.random((64, 8)), rng.random((8, 8)), np.zeros(()))
    assert "exp" in first.ops and not any("exp" in kernel.ops for kernel in others)


def test_long_loops_that_are_unrelated_share_few_arrays():
    def moments(b, *arrays):
        pairs = zip(arrays[::2], arrays[1::2], strict=True)
        return [b.add(m, b.mul(g, g)) for m, g in pairs]

    def count(n):
        return len(kernels(moments, *np.random.default_rng(0).random((8, n))))

    assert (count(100), count(50_000)) == (1, 2)


def test_what_broadcasts_make_large_is_computed_again_rather_than_stored():
    """A derivative of distances: points x centres x axes would be 7.7 MB, read twice."""

    def loss(c, x):
        return np.exp(-(((x[:, None] - c[None]) * 0.5) ** 2).sum(axis=2)).sum()

    random = np.random.default_rng(0)
    c, x = random.standard_normal((100, 32)), random.standard_normal((300, 32))
    f = jt.jit(jt.grad(loss, (0, 1)))
    assert all(kernel.bytes_written < FAR for kernel in f.lower(c, x).kernels)
    jt.check_grads(loss, (c[:4], x[:5]), order=1)
    w = np.exp(-(((x[:, None] - c[None]) * 0.5) ** 2).sum(axis=2))[..., None]
    want = (w * 0.5 * (x[:, None] - c[None])).sum(axis=0)
    np.testing.assert_allclose(f(c, x)[0], want, rtol=1e-9, atol=1e-12)
