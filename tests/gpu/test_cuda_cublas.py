"""Products by cuBLASLt: an emulated library that checks all it is given, or with a GPU the real one."""

from __future__ import annotations

import ctypes
import gc
import sys

import numpy as np
import pytest
from gpu import emulator_only
from programs import sample

import jitney as jt
from jitney import config
from jitney.codegen.cuda.program import BlasMatrix, Buffer, DeviceProgram, Gemm, Ref
from jitney.runtime.cuda import cublas, tuner
from jitney.runtime.cuda.client import client_of
from jitney.runtime.cuda.cublas import BlasError, blas_reason, find_blas, library_paths
from jitney.runtime.cuda.execute import DeviceExecutable
from jitney.runtime.cuda.memory import context_pool
from jitney.runtime.cuda.transfers import download, upload

BY = "by cuBLASLt"


@pytest.fixture
def blas(gpu):
    """The library, which does all products that it can."""
    client = client_of(jt.devices("cuda")[0])
    found = find_blas(client.context)
    if found is None:
        pytest.skip(blas_reason(client.context))
    with config(cublas="on", cache=False):
        yield found


def check(function, *arrays, by=1, tolerance=1e-5, **options):
    """The results are NumPy's, and so many steps are the library's."""
    program = jt.jit(function, device="cuda", **options)
    with np.errstate(all="ignore"):
        want = function(*arrays)
    for found, expected in zip(leaves(program(*arrays)), leaves(want), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(np.asarray(found), expected, tolerance, tolerance * 30)
    kernels = program.lower(*arrays).kernels
    assert [k.note for k in kernels].count(BY) == by, program.explain(*arrays)
    return kernels


def leaves(result):
    return result if isinstance(result, tuple) else (result,)


def ab(dtype="f4", m=33, k=20, n=45):
    return sample((m, k), dtype), sample((k, n), dtype, 1)


LAYOUTS = {
    "plain": lambda a, b: a @ b,
    "left turned": lambda a, b: a.reshape(20, 33).T @ b,
    "right turned": lambda a, b: a @ b.reshape(45, 20).T,
    "both turned": lambda a, b: a.reshape(20, 33).T @ b.reshape(45, 20).T,
    "result turned": lambda a, b: (b.T @ a.T).T + 1,
    "rows of a larger one": lambda a, b: a[2:30] @ b[:, 5:40],
    "every second row": lambda a, b: a[::2] @ b,
    "columns of a larger one": lambda a, b: a[:, 3:17] @ b[3:17],
}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_operands_of_any_layout(blas, name, dtype):
    check(LAYOUTS[name], *ab(dtype))


BATCHES = {
    "batch": (lambda a, b: a @ b, (3, 12, 20), (3, 20, 17)),
    "one right for all": (lambda a, b: np.einsum("bij,jk->bik", a, b), (3, 12, 20), (20, 17)),
    "one left for all": (lambda a, b: np.einsum("ij,bjk->bik", a, b), (12, 20), (3, 20, 17)),
    "batch turned": (lambda a, b: a @ b.transpose(0, 2, 1), (3, 12, 20), (3, 17, 20)),
    "two dims": (lambda a, b: a @ b, (2, 3, 12, 20), (2, 3, 20, 17)),
}


@pytest.mark.parametrize("name", BATCHES)
def test_batches(blas, name):
    function, left, right = BATCHES[name]
    check(function, sample(left, "f4"), sample(right, "f4", 1))


def test_a_program_without_kernels_loads_none(blas, monkeypatch):
    def load(ir, entries):
        assert entries, "there is nothing to load"

    monkeypatch.setattr(blas.context, "load_image", load)
    check(lambda a, b: a @ b, *ab("f4", 31, 20, 40))


def test_long_sums_are_not_cut(blas):
    check(lambda a, b: a @ b, *ab("f4", 20, 3000, 24), tolerance=1e-4)


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        (lambda a, b: a @ b, "i4"),  # no floats
        (lambda a, b: a[:, ::-1] @ b, "f4"),  # backwards
        (lambda a, b: a[:, ::2] @ b[::2], "f4"),  # neither rows nor columns are contiguous
        (lambda a, b: a[:2, :2] @ b[:2, :2], "f4"),  # tiny: a reduction
    ],
)
def test_what_the_library_cannot_do_is_generated(blas, function, dtype):
    a, b = (np.round(x * 10).astype(dtype) for x in ab())
    check(function, a, b, by=0)


def test_tf32_is_asked_for(blas):
    """With `fastmath` operands are rounded to 11 bits, otherwise not."""
    a, b = ab("f4", 64, 64, 64)
    check(lambda a, b: a @ b, a, b)
    check(lambda a, b: a @ b, a, b, fastmath=True, tolerance=2e-3)
    exact = a.astype("f8") @ b.astype("f8")
    fast = np.asarray(jt.jit(lambda a, b: a @ b, device="cuda", fastmath=True)(a, b))
    assert abs(fast - exact).max() > 1e-5


# What follows a product.


def test_a_vector_for_each_row_is_added_at_once(blas):
    a, b = ab()
    (kernel,) = check(lambda a, b, c: a @ b + c, a, b, sample((45,), "f4", 2))
    assert kernel.ops == ("dot", "add")
    check(lambda a, b, c: c[4:49] + a @ b, a, b, sample((50,), "f4", 2))
    x = sample((3, 12, 20), "f4")
    check(lambda x, w, c: x @ w + c, x, sample((20, 17), "f4", 1), sample((17,), "f4", 2))


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b, c, d: a @ b + d[:, None],  # for each column
        lambda a, b, c, d: a @ b + c[::-1],
        lambda a, b, c, d: a @ b - c,
        lambda a, b, c, d: np.maximum(a @ b + c, 0),  # of NaN, the library's is another
        lambda a, b, c, d: (a @ b + c).T.copy() * 1,
        lambda a, b, c, d: a @ b + 1,
        lambda a, b, c, d: (lambda p: (p + c, p))(a @ b),  # the product itself is wanted too
        lambda a, b, c, d: (lambda p: p + p)(a @ b),
    ],
)
def test_what_else_follows_is_a_kernel(blas, function):
    a, b = ab()
    kernels = check(function, a, b, sample((45,), "f4", 2), sample((33,), "f4", 3))
    assert len(kernels) == 2


def test_other_dtypes_have_no_vector_added(blas):
    a, b = ab("f8")
    assert len(check(lambda a, b, c: a @ b + c, a, b, sample((45,), "f8", 2))) == 2


# Runs.


def test_runs_are_replayed_as_graphs(blas):
    """The same bits each time, and new contents of the same memory."""

    def f(a, b, c):
        x = np.tanh(a @ b)
        return np.tanh(x @ c) @ b

    program = jt.jit(f, device="cuda")
    arrays = [sample((30, 30), "f4", n) for n in range(3)]
    put = [jt.device_put(x, "cuda") for x in arrays]
    first = np.asarray(program(*put))
    np.testing.assert_allclose(first, f(*arrays), 1e-4, 1e-4)
    for _ in range(4):
        np.testing.assert_array_equal(np.asarray(program(*put)), first)
    check(f, *arrays, tolerance=1e-4)  # equal steps have one report


@emulator_only
def test_a_library_that_is_no_part_of_a_graph_is_called_each_time(blas, monkeypatch):
    run = cublas.PreparedGemm.run

    def refuse(self, *arguments):
        if blas.driver._stream(arguments[-1]).captured is not None:
            raise BlasError("cublasLtMatmul: not while a stream is captured")
        run(self, *arguments)

    monkeypatch.setattr(cublas.PreparedGemm, "run", refuse)
    arrays = [sample((20, 20), "f4", n) for n in range(2)]
    program = jt.jit(lambda a, b: np.tanh(np.tanh(a @ b) @ b) @ a, device="cuda")
    put = [jt.device_put(x, "cuda") for x in arrays]
    first = np.asarray(program(*put))
    with pytest.warns(RuntimeWarning, match="products are launched one by one.*captured"):
        for _ in range(3):
            np.testing.assert_array_equal(np.asarray(program(*put)), first)


def test_products_in_loops(blas):
    def f(a, n):
        return jt.fori_loop(0, n, lambda i, x: np.tanh(x @ a), a)

    a = sample((20, 20), "f4")
    want = a
    for _ in range(5):
        want = np.tanh(want @ a)
    program = jt.jit(f, device="cuda")
    for _ in range(3):
        np.testing.assert_allclose(np.asarray(program(a, 5)), want, 1e-4, 1e-4)
    scanned = jt.jit(
        lambda a: jt.scan(lambda x, _: (np.tanh(x @ a), x[0]), a, None, length=5)[0], device="cuda"
    )
    for _ in range(3):
        np.testing.assert_allclose(np.asarray(scanned(a)), want, 1e-4, 1e-4)


def test_gradients(blas):
    a, b = ab("f8")
    gradient = jt.jit(jt.grad(lambda a, b: np.tanh(a @ b).sum(), argnums=(0, 1)), device="cuda")
    want = jt.grad(lambda a, b: np.tanh(a @ b).sum(), argnums=(0, 1))(a, b)
    for found, expected in zip(gradient(a, b), want, strict=True):
        np.testing.assert_allclose(np.asarray(found), expected, 1e-10, 1e-10)


def gemm(dtypes, shape, alignment=16, **more):
    """A program of one product of matrices that lie row by row."""
    batch, m, n, k = shape
    inner, outer = dtypes
    sizes = [(inner, (batch, m, k)), (inner, (batch, k, n)), (outer, (batch, m, n))]
    matrices = [
        BlasMatrix(Ref("input", i), dtype, False, s[2], s[1] * s[2], alignment)
        for i, (dtype, s) in enumerate(sizes)
    ]
    words = {"float16": "f2", "bfloat16": "u2", "float32": "f4", "float64": "f8"}
    buffers = [Buffer(s, np.dtype(words[dtype]), (s[1] * s[2], s[2], 1), 2) for dtype, s in sizes]
    return DeviceProgram("", {}, (Gemm(*matrices, shape, **more),), buffers, [])


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_elements_of_16_bits(blas, dtype, wide):
    """Sums are float32, rounded at the end if the result is of 16 bits."""
    shape = (2, 24, 40, 16)
    a, b = sample((2, 24, 16), "f4"), sample((2, 16, 40), "f4", 1)
    if dtype == "float16":
        held = [a.astype("f2"), b.astype("f2")]
        exact = [x.astype("f4") for x in held]
    else:
        held = [(x.view("u4") >> 16).astype("u2") for x in (a, b)]
        exact = [(x.astype("u4") << 16).view("f4") for x in held]
    program = gemm((dtype, "float32" if wide else dtype), shape)
    context = blas.context
    stream, pool = context.create_stream(), context_pool(context)
    out = np.empty((2, 24, 40), program.inputs[2].dtype)
    buffers = [upload(pool, x, stream) for x in (*held, out)]
    executable = DeviceExecutable(program, context)
    executable.run([x.address for x in buffers], stream)
    download(context, buffers[2].address, out, stream)
    if not wide and dtype == "bfloat16":
        out = (out.astype("u4") << 16).view("f4")
    np.testing.assert_allclose(out, exact[0] @ exact[1], 1e-5 if wide else 1e-2, 1e-3)


@emulator_only
def test_the_library_is_asked_once(blas):
    """For all products that differ in addresses only."""
    a = sample((21, 21), "f4")
    program = jt.jit(lambda a: np.tanh(np.tanh(a @ a) @ a) @ a * 1.5, device="cuda")
    queries, runs = blas.queries, blas.runs
    for _ in range(4):
        program(a).block_until_ready()
    assert blas.queries == queries + 1 and blas.runs >= runs + 3


@emulator_only
def test_descriptors_go_with_the_program(blas):
    gc.collect()
    before = blas.alive()
    program = jt.jit(lambda a, b: a @ b * 2.5, device="cuda")
    program(*ab()).block_until_ready()
    assert blas.alive() > before
    del program
    gc.collect()
    assert blas.alive() == before


# Whether it is used.


def test_it_is_used_when_asked(blas):
    a, b = ab()
    program = jt.jit(lambda a, b: a @ b + 2, device="cuda")
    for choice, by in (("off", 0), ("auto", 0), ("on", 1)):
        with config(cublas=choice):
            assert program.explain(a, b).count(BY) == by
    with pytest.raises(ValueError, match="cublas is 'auto', 'on' or 'off', not 'maybe'"):
        config.cublas = "maybe"


@emulator_only
@pytest.mark.parametrize(("k", "factor"), [(40, 1e-9), (40, 1e6), (1100, 1e6)])
def test_it_is_used_where_it_is_faster(blas, factor, k, monkeypatch):
    """Also in the place of a sum that is cut."""
    monkeypatch.setattr(tuner, "_choices", {})
    monkeypatch.setattr(tuner, "EMULATED_WAYS", 2)

    def seconds(kernel, grid, block):
        return factor if "dot" in kernel else 1e-6

    monkeypatch.setattr(blas.driver, "seconds_of", seconds, raising=False)
    a, b = ab("f4", 20, k, 24)
    program = jt.jit(lambda a, b: np.tanh(a @ b), device="cuda", autotune=True)
    with config(cublas="auto"):
        assert program.explain(a, b).count(BY) == (factor > 1)
        found = np.asarray(program(a, b))
    np.testing.assert_allclose(found, np.tanh(a @ b), 1e-4, 1e-4)
    with config(cublas="off"):
        assert BY not in program.explain(a, b)


@emulator_only
def test_a_library_that_refuses_is_not_used(blas, monkeypatch):
    monkeypatch.setattr(blas, "workspace", 0)  # no algorithm needs so little
    a, b = ab()
    program = jt.jit(lambda a, b: a @ b - 3, device="cuda")
    with pytest.warns(RuntimeWarning, match="cuBLASLt is not used: cuBLASLt has no algorithm"):
        found = program(a, b)
    np.testing.assert_allclose(np.asarray(found), a @ b - 3, 1e-4, 1e-4)
    monkeypatch.setattr(tuner, "_choices", {})
    monkeypatch.setattr(tuner, "EMULATED_WAYS", 2)
    with config(cublas="auto"):
        tuned = jt.jit(lambda a, b: a @ b - 4, device="cuda", autotune=True)
        np.testing.assert_allclose(np.asarray(tuned(a, b)), a @ b - 4, 1e-4, 1e-4)


@emulator_only
def test_no_library_is_a_warning_when_it_was_asked_for(blas, monkeypatch):
    monkeypatch.setitem(cublas._blas, blas.context, BlasError("cuBLASLt is not found"))
    a, b = ab()
    with pytest.warns(RuntimeWarning, match="cuBLASLt is not found"):
        found = jt.jit(lambda a, b: a @ b - 5, device="cuda")(a, b)
    np.testing.assert_allclose(np.asarray(found), a @ b - 5, 1e-4, 1e-4)


def test_where_it_is_looked_for(tmp_path, monkeypatch):
    """In wheels that are installed, newest first, but not what the driver is too old for."""
    for place in ("cu13/lib/libcublasLt.so.13", "cublas/lib/libcublasLt.so.12"):
        path = tmp_path / "nvidia" / place
        path.parent.mkdir(parents=True)
        path.touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)
    new = library_paths(13000)
    assert new.index(f"{tmp_path}/nvidia/cu13/lib/libcublasLt.so.13") == 0
    assert f"{tmp_path}/nvidia/cublas/lib/libcublasLt.so.12" in new
    assert new[-2:] == ["libcublasLt.so.13", "libcublasLt.so.12"]
    assert not any("13" in p.rsplit("/")[-1] for p in library_paths(12040))
    monkeypatch.setattr(cublas, "library_paths", lambda driver: ["no such file"])
    with pytest.raises(BlasError, match="not found: pip install nvidia-cublas"):
        cublas.load(13000)


# The emulated library is strict.


@emulator_only
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda g: g._made.set("MatmulDesc", g._matmul, 3, ctypes.c_int64, 0), "has 4 bytes"),
        (lambda g: g._made.set("MatmulDesc", g._matmul, 9, ctypes.c_int32, 0), "is not known"),
        (lambda g: g._made.set("MatmulDesc", g._a, 3, ctypes.c_int32, 0), "is no matmul"),
        (lambda g: g._made.make("MatmulDesc", 68, 1), "scale type 1"),
        (lambda g: g._made.make("MatrixLayout", 0, 10, 10, 9), "9 apart"),
        (lambda g: g.run(8, 256, 512, 0, 1024, 0), "is not a multiple of 16"),
        (lambda g: g.run(256, 512, 768, 0, 1000, 0), "misaligned"),
        (lambda g: g.run(256, 512, 768, 0, 1024, 0), "not in what is allocated"),
    ],
)
def test_what_is_wrong_is_refused(blas, change, said):
    prepared = blas.prepare(gemm(("float32", "float32"), (1, 8, 8, 8)).steps[0])
    with pytest.raises(BlasError, match=said):
        change(prepared)


@emulator_only
def test_products_that_do_not_fit_are_refused(blas):
    good = gemm(("float32", "float32"), (1, 8, 8, 8)).steps[0]
    blas.prepare(good)
    wrong = gemm(("float64", "float32"), (1, 8, 8, 8)).steps[0]
    with pytest.raises(BlasError, match="elements of types"):
        blas.prepare(wrong)
