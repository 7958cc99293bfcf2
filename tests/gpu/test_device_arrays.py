"""DeviceArrays and the choice of a device."""

import copy
import pickle

import numpy as np
import pytest
from gpu import emulator_only

import jitney as jt
from jitney.tracer.data.accept import refuse
from jitney.tracer.messages.errors import ArgumentError, ReadOnlyError, UnsupportedFunctionError

pytestmark = pytest.mark.usefixtures("gpu")


def on_gpu(x):
    return jt.device_put(x, "cuda")


def check(found, expected) -> None:
    assert type(found) is jt.DeviceArray
    expected = np.asarray(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)


def test_devices() -> None:
    assert [str(d) for d in jt.devices()] == ["cpu", "cuda:0"]
    assert [str(d) for d in jt.devices("cuda")] == ["cuda:0"]
    with pytest.raises(ValueError, match="'tpu'"):
        jt.devices("tpu")


def test_no_gpu_is_an_error_that_says_so() -> None:
    jt.config.cuda = "off"
    assert [str(d) for d in jt.devices()] == ["cpu"]
    with pytest.raises(RuntimeError, match="switches GPUs off"):
        jt.device_put(np.ones(3), "cuda")
    with pytest.raises(RuntimeError, match="switches GPUs off"), jt.device("cuda"):
        pass
    with pytest.raises(RuntimeError, match="switches GPUs off"):
        jt.jit(lambda x: x, device="cuda")(np.ones(3))
    assert jt.jit(lambda x: x + 1)(1.0) == 2.0


def test_names_of_devices() -> None:
    for name in ("gpu", "cuda:x", 3, "cpu:1"):
        with pytest.raises(ValueError, match="choose 'cpu', 'cuda'"):
            jt.jit(lambda x: x, device=name)
    with pytest.raises(RuntimeError, match="there is no cuda:7; this machine has cuda:0"):
        jt.device_put(1.0, "cuda:7")


def test_put_and_get() -> None:
    for x in (
        np.arange(6.0).reshape(2, 3),
        np.arange(12)[::-2],
        np.zeros((0, 3), np.int8),
        np.array(True),
        np.ones((2, 3), np.complex64) * 1j,
        np.arange(6.0).reshape(2, 3).T,
    ):
        y = on_gpu(x)
        assert (y.shape, y.dtype, y.ndim, y.size, y.nbytes) == (
            *(x.shape, x.dtype, x.ndim, x.size, x.nbytes),
        )
        assert not x.size or y.strides == np.ascontiguousarray(x).reshape(x.shape).strides
        assert str(y.device) == "cuda:0"
        np.testing.assert_array_equal(np.asarray(y), x)
        np.testing.assert_array_equal(y.get(), x)
        assert y.tolist() == x.tolist() and y.tobytes() == x.tobytes()
        np.testing.assert_array_equal(jt.device_put(y, "cpu"), x)
        assert jt.device_put(y, "cuda") is y


def test_the_source_may_change_at_once() -> None:
    x = np.ones(1000)
    y = on_gpu(x)
    x[:] = 2
    assert float(y.sum()) == 1000


def test_trees_are_put() -> None:
    tree = jt.device_put({"w": np.ones(2), "n": (1, 2.0)}, "cuda")
    assert type(tree["w"]) is type(tree["n"][0]) is jt.DeviceArray
    assert tree["n"][0].dtype == np.int64
    with pytest.raises(ArgumentError, match="not str"):
        jt.device_put("x", "cuda")


def test_python_protocols() -> None:
    x = on_gpu(np.arange(6.0).reshape(2, 3))
    assert len(x) == 2 and [float(row.sum()) for row in x] == [3.0, 12.0]
    assert repr(x) == "DeviceArray([[0., 1., 2.],\n       [3., 4., 5.]], device='cuda:0')"
    assert f"{x[0, 1]:.2f}" == "1.00" and str(x[0]) == "[0. 1. 2.]"
    assert x.item(4) == 4.0 and float(x[1, 2]) == 5.0 and int(x[1, 2]) == 5 and bool(x[0, 1])
    assert [10, 20, 30][on_gpu(np.int64(1))] == 20 and complex(x[0, 1]) == 1
    assert 5.0 in x and 7.0 not in x
    assert copy.copy(x) is x and copy.deepcopy([x])[0] is x
    np.testing.assert_array_equal(np.asarray(pickle.loads(pickle.dumps(x))), np.asarray(x))
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    with pytest.raises(TypeError, match="does not change"):
        x[0] = 1
    with pytest.raises(TypeError, match="one element"):
        float(x)
    with pytest.raises(TypeError, match="0-d"):
        iter(x[0, 0])
    with pytest.raises(ValueError, match="has to copy"):
        np.array(x, copy=False)


def test_operators() -> None:
    a = np.arange(6.0).reshape(2, 3) + 1
    x = on_gpu(a)
    check(x * 2 + 1, a * 2 + 1)
    check(1 - x, 1 - a)
    check(x / a, a / a)
    check(a / x, a / a)
    check(x @ x.T, a @ a.T)
    check(-x, -a)
    check(x**2 // 3, a**2 // 3)
    check(x > 2, a > 2)
    check((x > 2) & ~(x > 4), (a > 2) & ~(a > 4))
    check(divmod(x, 2)[1], divmod(a, 2)[1])
    check(abs(x - 3), abs(a - 3))
    check(x[1], a[1])
    check(x[:, ::-2], a[:, ::-2])
    check(x[..., None, 1], a[..., None, 1])
    check(x[np.array([1, 0, 1])], a[np.array([1, 0, 1])])
    check(x.T.reshape(2, -1), a.T.reshape(2, -1))
    check(x.astype(np.float32), a.astype(np.float32))
    check(x.mean(axis=0), a.mean(axis=0))
    check(x.sum(), a.sum())
    check(x + np.float32(1), a + np.float32(1))
    check(on_gpu(a.astype(np.float32)) * 2.5, (a * 2.5).astype(np.float32))


def test_numpy_functions() -> None:
    a = np.linspace(-1, 1, 6).reshape(2, 3)
    x = on_gpu(a)
    check(np.sin(x), np.sin(a))
    check(jt.exp(x), np.exp(a))
    check(np.sum(x, axis=1, keepdims=True), np.sum(a, axis=1, keepdims=True))
    check(np.concatenate([x, a]), np.concatenate([a, a]))
    check(np.where(x > 0, x, 0.0), np.where(a > 0, a, 0.0))
    check(np.add.reduce(x, axis=1), np.add.reduce(a, axis=1))
    check(np.multiply.outer(x[0], x[1]), np.multiply.outer(a[0], a[1]))
    check(np.linalg.norm(x), np.linalg.norm(a))
    assert np.shape(x) == (2, 3)
    with pytest.raises(UnsupportedFunctionError, match="out="):
        np.add(x, x, out=np.ones((2, 3)))
    with pytest.raises(UnsupportedFunctionError):
        np.real_if_close(x)


def test_a_number_is_no_reason_to_compile() -> None:
    from jitney.tracer.interop.device_functions import _programs

    x = on_gpu(np.ones(5))
    _ = x * 0.5
    before = len(_programs)
    for k in range(5):
        check(x * float(k), np.ones(5) * k)
    assert len(_programs) == before


def test_jitted_functions_run_where_their_arrays_are() -> None:
    @jt.jit
    def f(a, b):
        return {"sum": a * b + 1, "same": a}, a.sum()

    x = on_gpu(np.arange(3.0))
    for _ in range(2):
        result, total = f(x, 2.0)
        check(result["sum"], np.arange(3.0) * 2 + 1)
        check(total, 3.0)
        assert result["same"] is x
    assert type(f(np.arange(3.0), 2.0)[1]) is np.float64  # NumPy arrays: on the CPU
    for _ in range(2):
        check(f(np.arange(3.0), x)[0]["sum"], np.arange(3.0) ** 2 + 1)


def test_a_device_is_chosen() -> None:
    f = jt.jit(lambda x: x * 2)
    for _ in range(3):  # a native call of the CPU's program would be faster, and wrong
        assert type(f(np.ones(2))) is np.ndarray
    with jt.device("cuda"):
        for _ in range(3):
            check(f(np.ones(2)), np.full(2, 2.0))
        with jt.device("cpu"):
            assert type(f(np.ones(2))) is np.ndarray
        check(f(np.ones(2)), np.full(2, 2.0))
    assert type(f(np.ones(2))) is np.ndarray
    check(jt.jit(lambda x: x * 2, device="cuda:0")(np.ones(2)), np.full(2, 2.0))
    back = jt.jit(lambda x: x * 2, device="cpu")(on_gpu(np.ones(2)))
    assert type(back) is np.ndarray and back.tolist() == [2.0, 2.0]


W = np.ones(3)


def test_closed_over_arrays() -> None:
    global W
    f = jt.jit(lambda a: a * W)
    assert type(f(np.arange(3.0))) is np.ndarray
    W = on_gpu(np.full(3, 2.0))
    check(f(np.arange(3.0)), np.arange(3.0) * 2)
    W = on_gpu(np.full(3, 3.0))
    check(f(np.arange(3.0)), np.arange(3.0) * 3)
    W = np.ones(3)
    assert type(f(np.arange(3.0))) is np.ndarray


def test_assignment() -> None:
    @jt.jit(device="cuda")
    def f(a):
        a[0] = 7
        return a.sum()

    a = np.zeros(4)
    check(f(a), 7.0)
    assert a.tolist() == [7.0, 0.0, 0.0, 0.0]
    with pytest.raises(ReadOnlyError, match="copy"):
        f(on_gpu(np.zeros(4)))


def test_views_of_arguments_are_arrays() -> None:
    x = on_gpu(np.arange(6.0).reshape(2, 3))
    check(jt.jit(lambda x: x.T)(x), np.arange(6.0).reshape(2, 3).T)
    check(jt.jit(lambda x: x[1])(x), np.arange(3.0) + 3)


def test_derivatives_and_batches() -> None:
    a = np.arange(6.0).reshape(2, 3)
    x = on_gpu(a)
    check(jt.grad(lambda x: jt.sum(x**3))(x), 3 * a**2)
    value, gradient = jt.value_and_grad(lambda x: jt.sum(x**2))(x)
    check(value, (a**2).sum())
    check(gradient, 2 * a)
    check(jt.vmap(lambda row: row.sum())(x), a.sum(axis=1))


def test_what_must_be_compiled_says_so() -> None:
    x = on_gpu(np.arange(3.0))
    with pytest.raises(ArgumentError, match=r"under jt\.jit, which runs where its arrays are"):
        refuse(x, "a DeviceArray here")
    out, gradient = jt.jit(lambda x: jt.vjp(lambda x: x * x, x)[1](x) + (x,))(x)[::-1]
    check(out, np.arange(3.0))
    check(gradient, 2 * np.arange(3.0) ** 2)


def test_tracers_and_device_arrays_meet() -> None:
    a = np.arange(3.0)
    boxes = [on_gpu(a)]

    @jt.jit
    def f(x):
        inner = [b for b in boxes]  # noqa: C416
        return x * inner[0] + inner[0]

    np.testing.assert_allclose(np.asarray(f(np.ones(3))), 2 * a)


def test_errors_come_when_somebody_waits() -> None:
    f = jt.jit(lambda x, i: x[i] * 2)
    x = on_gpu(np.arange(3.0))
    check(f(x, 1), 2.0)
    bad = f(x, 5)
    later = bad + 1
    for _ in range(2):
        with pytest.raises(IndexError, match="index 5 is out of bounds"):
            np.asarray(later)
    with pytest.raises(IndexError, match="index 5"):
        bad.block_until_ready()
    check(f(x, 2), 4.0)


@emulator_only
def test_dlpack() -> None:
    a = np.arange(6.0).reshape(2, 3)
    x = on_gpu(a)
    y = np.from_dlpack(x)
    np.testing.assert_array_equal(y, a)
    del x
    np.testing.assert_array_equal(y, a)
    with pytest.raises(AttributeError):
        _ = on_gpu(a).__cuda_array_interface__  # the memory of an emulated GPU is the CPU's


class Foreign:
    """Another library's array in the device's memory."""

    def __init__(self, x) -> None:
        self.x = x
        self.__cuda_array_interface__ = {
            "shape": x.shape,
            "typestr": x.dtype.str,
            "data": (x.buffer.address, False),
            "version": 3,
            "strides": None,
            "stream": None,
        }

    __cuda_array_interface__: dict[str, object] = {}  # noqa: RUF012


def test_arrays_of_other_libraries() -> None:
    a = np.arange(6.0).reshape(2, 3)
    x = on_gpu(a)
    y = jt.device_put(Foreign(x))
    assert y.buffer.address == x.buffer.address
    check(y, a)
    check(jt.jit(lambda x: x + 1)(Foreign(x)), a + 1)
    strided = Foreign(x)
    strided.__cuda_array_interface__ |= {"strides": (8, 16), "shape": (3, 2)}
    with pytest.raises(RuntimeError, match="C-contiguous"):
        jt.device_put(strided)


def test_several_devices_in_one_call() -> None:
    other = on_gpu(np.ones(2))
    f = jt.jit(lambda x, y: x + y)
    check(f(other, np.ones(2)), np.full(2, 2.0))
    check(f(other, 1.0), np.full(2, 2.0))


def test_ptx_needs_no_gpu() -> None:
    jt.config.cuda = "off"
    f = jt.jit(lambda x: np.sin(x) * 2)
    for arch in ("sm_75", "sm_80", "sm_90"):
        text = f.ptx(np.ones(1000, np.float32), arch=arch)
        assert f".target {arch}" in text and text.count(".entry") == 1
    with pytest.raises(RuntimeError, match="sm_12"):
        f.ptx(np.ones(3), arch="sm_12")


def test_what_is_explained_is_what_runs_there() -> None:
    f = jt.jit(lambda x: np.exp(x - x.max(axis=1, keepdims=True)).sum(axis=1))
    x = np.ones((4, 300))
    for g, args in ((jt.jit(f, device="cuda"), (x,)), (f, (on_gpu(x),))):
        lowered = g.lower(*args)
        assert "on cuda:0" in g.explain(*args) and "threads for a row" in g.explain(*args)
        assert lowered.kernels and "ptx_kernel" in lowered.llvm()
        assert ".visible .entry" in lowered.asm()
    assert "cuda" not in f.explain(x)
    with jt.device("cuda"):
        assert "on cuda:0" in f.explain(x)


def test_numpys_generators_are_asked_on_the_host() -> None:
    rng, twin = np.random.default_rng(0), np.random.default_rng(0)

    def f(x):
        return jt.fori_loop(0, 3, lambda i, c: c + rng.random(), 0.0) + x * rng.normal(size=4)

    compiled = jt.jit(f, device="cuda")
    total = 0.0
    for _ in range(3):
        total += twin.random()
    check(compiled(np.ones(4)), total + twin.normal(size=4))
    assert rng.bit_generator.state == twin.bit_generator.state
    assert "Generator.random" in str(compiled.explain(np.ones(4)))


def test_stages_of_what_runs_on_a_gpu():
    f = jt.jit(lambda x: np.tanh(x).sum(axis=1), device="cuda")
    stages = f.stages(np.ones((8, 16)))
    assert ".entry" in str(stages.ptx) and "tanh(x[" in str(stages.fuse)
    assert ".entry" in str(f.explore(np.ones((8, 16)))) and f.draw(np.ones((8, 16))).top.count > 2
