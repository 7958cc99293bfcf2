"""On a GPU: Fourier transforms as products of matrices, decompositions by the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matrices import numbers

import jitney as jt
from jitney.ir.build import Builder
from jitney.ir.graph import Graph
from jitney.ir.interpreter import evaluate
from jitney.ir.passes.compositions import compose
from jitney.ir.types import type_of

LENGTHS = (1, 2, 5, 8, 60, 64, 67, 96, 128, 134, 139, 4096, 2 * 211)


def on_gpu(f: Any, *arrays: Any) -> Any:
    found = jt.jit(f, device="cuda")(*arrays)
    leaves = found if isinstance(found, tuple) else (found,)
    assert all(type(x) is jt.DeviceArray for x in leaves)
    return tuple(map(np.asarray, leaves)) if isinstance(found, tuple) else np.asarray(found)


@pytest.mark.parametrize("n", LENGTHS)
def test_transforms_as_products(n: int) -> None:
    """Every way of cutting a length: one product, several, a prime one."""
    z, x = numbers((2, n), np.complex128), numbers((2, n))
    half = numbers((2, n // 2 + 1), np.complex128)
    for name, array, attrs, expected in (
        ("fft", z, {"inverse": False, "factor": 1.0}, np.fft.fft(z)),
        ("fft", z, {"inverse": True, "factor": 1 / n}, np.fft.ifft(z)),
        ("rfft", x, {"factor": 1.0}, np.fft.rfft(x)),
        ("irfft", half, {"n": n, "factor": 1 / n}, np.fft.irfft(half, n)),
    ):
        graph = Graph(name)
        graph.outputs = [Builder(graph).op(name, graph.add_param(type_of(array)), **attrs)]
        composed = compose(graph)
        assert all("fft" not in op.name for op in composed.walk())
        (found,) = evaluate(composed, [array])
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, atol=1e-12 * max(n, 8), rtol=0)


@pytest.mark.usefixtures("gpu")
def test_transforms_on_a_gpu() -> None:
    z, x = numbers((3, 80), np.complex64), numbers((3, 12))
    np.testing.assert_allclose(on_gpu(lambda z: np.fft.fft(z), z), np.fft.fft(z), atol=1e-4)
    np.testing.assert_allclose(on_gpu(lambda z: np.fft.ifft2(z), z), np.fft.ifft2(z), atol=1e-5)
    got = on_gpu(lambda x: np.fft.irfft(np.fft.rfft(x) * 2), x)
    np.testing.assert_allclose(got, 2 * x, atol=1e-12)


@pytest.mark.usefixtures("gpu")
def test_decompositions_on_a_gpu() -> None:
    a, b = numbers((2, 4, 4)), numbers((2, 4, 1), seed=1)
    z = numbers((3, 3), np.complex128)
    np.testing.assert_allclose(
        on_gpu(lambda a, b: np.linalg.solve(a, b) + 1, a, b), np.linalg.solve(a, b) + 1
    )
    for name in ("inv", "qr", "svd", "slogdet"):
        want = getattr(np.linalg, name)(z)
        got = on_gpu(lambda z, n=name: getattr(np.linalg, n)(z), z)
        for x, y in zip(got, want, strict=True) if isinstance(got, tuple) else [(got, want)]:
            np.testing.assert_allclose(x, y, atol=1e-12)
    gradient = on_gpu(jt.grad(lambda a: np.linalg.det(a).sum()), a)
    np.testing.assert_allclose(
        gradient, np.linalg.det(a)[:, None, None] * np.linalg.inv(a).swapaxes(1, 2)
    )
    with pytest.raises(np.linalg.LinAlgError, match=r"Singular matrix[\s\S]*test_cuda_library"):
        on_gpu(lambda a: np.linalg.inv(a), np.zeros((3, 3)))


@pytest.mark.usefixtures("gpu")
def test_programs_with_decompositions_are_kept() -> None:
    """A second process finds them on disk: what the host calls is a loop of NumPy's."""
    import pickle

    from jitney.codegen.cuda.target import CudaTarget
    from jitney.codegen.device.compile import compile_device

    graph = Graph("f")
    graph.outputs = [Builder(graph).op("inv", graph.add_param(type_of(np.eye(3))), mode="check")]
    program = pickle.loads(pickle.dumps(compile_device(graph, CudaTarget(90))))
    (found,) = program.callbacks[0].function(2 * np.eye(3))
    np.testing.assert_array_equal(found, np.eye(3) / 2)
