"""Each framework on the GPU: rows prepared as calls, with the stream that they run on.

jitney, PyTorch and JAX run the programs of `benchmarks/frameworks`; Triton has a few kernels here.
Products of float32 are float32 everywhere, not TF32, but in rows that ask for it. `jitney_cublas` and
`jitney_tuned` are jitney again, with products by cuBLASLt and with kernels chosen by measuring.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..rows import Row, map_arrays
from . import rows as gpu_rows

NAMES = ("jitney", "jitney_cublas", "jitney_tuned", "torch", "torch_compile", "jax", "triton")
OWN = frozenset(name for name in NAMES if name.startswith("jitney"))
PRODUCTS = frozenset(
    "matmul_4096 matmul_4096_bf16 matmul_4096_f16 matmul_4096_tf32 matmul_4096_f64 dense "
    "matmul_batched".split()
)


def context() -> Any:
    """The device's context, for clocks, and for what wants to see modules being loaded."""
    from jitney.runtime.cuda.driver import devices

    return devices()[0].context()


def support(name: str) -> Any:
    """A module of the tests' own: `gpu` (poisoned memory), `accuracy` (hard points of functions)."""
    folder = str(Path(__file__).resolve().parent.parent.parent / "tests" / "helpers")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(name)


class Call:
    """A prepared row. Calling it begins a run; `wait` returns when a run's result is there."""

    def __init__(
        self, begin: Callable[[], Any], wait: Callable[[Any], Any], arrays: Callable[[Any], Any]
    ) -> None:
        self._begin, self.wait, self.arrays = begin, wait, arrays

    def __call__(self) -> Any:
        return self._begin()


class Jitney:
    name = "jitney"

    def __init__(self) -> None:
        import jitney as jt
        from jitney.runtime.cuda.client import client_of

        self.jt = jt
        self.client = client_of(jt.devices("cuda")[0])
        self.stream: int | None = self.client.stream
        self.version = jt.__version__

    def program(self, row: Row) -> Callable[..., Any]:
        from ..frameworks import use_jitney

        if row.implementation == "while_loop":
            steps, cos = gpu_rows.LOOP_STEPS, self.jt.cos
            return lambda x: self.jt.fori_loop(0, steps, lambda _, x: cos(x), x)
        if row.implementation == "while_data":
            return self._while_data
        if row.implementation == "histogram":
            at, zeros, n = self.jt.at, self.jt.zeros, gpu_rows.HISTOGRAM_BINS
            return lambda x: at(zeros(n, np.int64))[x].add(1)
        own = {"max_pool": self._max_pool, "depthwise": self._depthwise}
        own["max_pool_grad"] = lambda x, ct: self.jt.vjp(self._max_pool, x)[1](ct)[0]
        known = own.get(row.implementation) or use_jitney.ROWS.get(row.implementation)
        return known or row.program

    def _max_pool(self, x: Any) -> Any:
        return self.jt.max_pool(x, 3, 2, ((1, 1), (1, 1)))

    def _depthwise(self, x: Any, w: Any) -> Any:
        return self.jt.conv(x, w, padding="SAME", groups=x.shape[-1])

    def _while_data(self, x: Any, steps: Any) -> Any:
        start = np.int32(0), x
        return self.jt.while_loop(
            lambda c: c[0] < steps, lambda c: (c[0] + 1, self.jt.cos(c[1])), start
        )[1]

    def prepare(self, row: Row, inputs: tuple[Any, ...]) -> Call:
        elements = gpu_rows.ELEMENTS.get(row.name, "")
        options = {"fastmath": True} if elements == "tf32" else {}
        if row.name in gpu_rows.UNORDERED:
            options["deterministic"] = False
        function = self.jt.jit(self.program(row), device="cuda", **options)
        dtype = None if elements in ("", "tf32") else _dtype(elements)

        def moved(a: Any) -> Any:
            return self.jt.device_put(a if dtype is None else a.astype(dtype), "cuda")

        put = tuple(map_arrays(moved, part) for part in inputs)
        return Call(lambda: function(*put), self.wait, self.arrays)

    def wait(self, result: Any) -> Any:
        self.client.context.synchronize(self.client.stream)
        return result

    def arrays(self, result: Any) -> Any:
        if isinstance(result, dict):
            return {key: self.arrays(part) for key, part in result.items()}
        if isinstance(result, list | tuple):
            return [self.arrays(part) for part in result]
        return _comparable(np.asarray(result))


class JitneyWith(Jitney):
    """jitney with a setting, while functions are compiled; for the rows that it is about."""

    setting: ClassVar[dict[str, Any]] = {}
    rows: ClassVar[frozenset[str]] = frozenset()

    def prepare(self, row: Row, inputs: tuple[Any, ...]) -> Call:
        if row.name not in self.rows:
            raise NotWrittenError
        with self.jt.config(**self.setting):
            call = super().prepare(row, inputs)
            call.wait(call())
        return call


class JitneyCublas(JitneyWith):
    name = "jitney_cublas"
    setting: ClassVar = {"cublas": "on"}
    rows = PRODUCTS

    def __init__(self) -> None:
        from jitney.runtime.cuda.cublas import blas_reason

        super().__init__()
        if reason := blas_reason(self.client.context):
            raise ImportError(reason)


class JitneyTuned(JitneyWith):
    name = "jitney_tuned"
    setting: ClassVar = {"autotune": True, "cublas": "off"}
    rows = frozenset("matmul_4096 matmul_4096_bf16 softmax layernorm sum_columns".split())


def _dtype(name: str) -> Any:
    """NumPy's dtype; bfloat16 is one of ml_dtypes."""
    if name != "bfloat16":
        return np.dtype(name)
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


def _comparable(a: Any) -> Any:
    """Elements of 16 bits as float32, which every dtype can be compared in."""
    a = np.asarray(a)
    return a.astype(np.float32) if "float" in a.dtype.name and a.dtype.itemsize < 4 else a


class Torch:
    name = "torch"
    module = "use_torch"

    def __init__(self) -> None:
        import torch

        if not torch.cuda.is_available():
            raise ImportError("PyTorch sees no GPU")
        torch.set_default_device("cuda")
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        self.torch = torch
        self.version = str(torch.__version__)
        self.use = importlib.import_module(f"..frameworks.{self.module}", __package__)
        self.stream: int | None = torch.cuda.current_stream().cuda_stream
        self._own = {
            "negative": lambda x: -x,
            "cumsum": lambda x: x.cumsum(0),
            "argsort": lambda x: torch.argsort(x, stable=True),
            "top_8": lambda x: torch.topk(x, 8, sorted=True)[0].flip(1),
            "transpose": lambda x: x.T.contiguous(),
            "histogram": lambda x: torch.bincount(x, minlength=gpu_rows.HISTOGRAM_BINS),
            "embedding_grad": lambda g, i: torch.zeros_like(g).index_add(0, i, g),
            "while_loop": self._while_loop,
            "while_data": self._while_data,
            "attention_full": torch.nn.functional.scaled_dot_product_attention,
            "max_pool": self._max_pool,
            "max_pool_grad": self._max_pool_grad,
            "depthwise": self._depthwise,
        }

    def _max_pool(self, x: Any) -> Any:
        """Images NHWC are NCHW in the format that PyTorch calls channels_last."""
        pooled = self.torch.nn.functional.max_pool2d(x.permute(0, 3, 1, 2), 3, 2, 1)
        return pooled.permute(0, 2, 3, 1)

    def _max_pool_grad(self, x: Any, cotangent: Any) -> Any:
        x = x.detach().requires_grad_()
        (found,) = self.torch.autograd.grad(self._max_pool(x), x, cotangent)
        return found

    def _depthwise(self, x: Any, w: Any) -> Any:
        seen, taps = x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1)
        found = self.torch.nn.functional.conv2d(seen, taps, padding=1, groups=x.shape[-1])
        return found.permute(0, 2, 3, 1)

    def _while_loop(self, x: Any) -> Any:
        for _ in range(gpu_rows.LOOP_STEPS):
            x = self.torch.cos(x)
        return x

    def _while_data(self, x: Any, steps: Any) -> Any:
        for _ in range(int(steps)):
            x = self.torch.cos(x)
        return x

    def prepare(self, row: Row, inputs: tuple[Any, ...]) -> Call:
        name = row.implementation
        if name in self._own:
            function, arguments = self.own(name), self.use.tensors(inputs)
        elif name in {**self.use.ROWS, **getattr(self.use, "MAKERS", {})}:
            function, arguments = self.use.prepare(row, inputs)
        else:
            raise NotWrittenError
        elements = gpu_rows.ELEMENTS.get(row.name, "")
        if elements == "tf32":
            return Call(lambda: self._in_tf32(function, arguments), self.use.wait, self.use.arrays)
        if elements:
            dtype = getattr(self.torch, elements)
            arguments = tuple(a.to(dtype) for a in arguments)
            return Call(
                lambda: function(*arguments),
                self.use.wait,
                lambda found: self.use.arrays(self._wide(found)),
            )
        return Call(lambda: function(*arguments), self.use.wait, self.use.arrays)

    def _wide(self, found: Any) -> Any:
        return self.torch.utils._pytree.tree_map(lambda a: a.float(), found)

    def _in_tf32(self, function: Any, arguments: Any) -> Any:
        self.torch.backends.cuda.matmul.allow_tf32 = True
        try:
            return function(*arguments)
        finally:
            self.torch.backends.cuda.matmul.allow_tf32 = False

    def own(self, name: str) -> Callable[..., Any]:
        return self._own[name]


class TorchCompile(Torch):
    """Each compilation takes seconds: only where fusing is what matters."""

    name = "torch_compile"
    module = "use_torch_compile"
    rows = frozenset(
        "axpb gelu softmax layernorm cross_entropy_grad black_scholes sum_rows sum_all call_1 "
        "matmul_4096 dense transpose mlp_adam cumsum_rows".split()
    )

    def prepare(self, row: Row, inputs: tuple[Any, ...]) -> Call:
        if row.name not in self.rows:
            raise NotWrittenError
        return super().prepare(row, inputs)

    def own(self, name: str) -> Callable[..., Any]:
        return self.torch.compile(self._own[name], dynamic=False)


class Jax:
    name = "jax"
    stream: int | None = None  # of its own, which it does not say

    def __init__(self) -> None:
        import jax

        if jax.default_backend() != "gpu":
            raise ImportError("JAX sees no GPU")
        jax.config.update("jax_default_matmul_precision", "highest")
        self.jax = jax
        self.version = jax.__version__
        self.use = importlib.import_module("..frameworks.use_jax", __package__)
        jnp, lax = jax.numpy, jax.lax
        steps = gpu_rows.LOOP_STEPS
        self._own: dict[str, Any] = {
            "negative": lambda x: -x,
            "cumsum": lambda x: x.cumsum(),
            "argsort": lambda x: jnp.argsort(x, stable=True),
            "top_8": lambda x: lax.top_k(x, 8)[0][:, ::-1],
            "transpose": lambda x: x.T,
            "histogram": lambda x: jnp.bincount(x, length=gpu_rows.HISTOGRAM_BINS),
            "embedding_grad": lambda g, i: jnp.zeros_like(g).at[i].add(g),
            "while_loop": lambda x: lax.fori_loop(0, steps, lambda _, x: jnp.cos(x), x),
            "while_data": lambda x, n: lax.while_loop(
                lambda c: c[0] < n, lambda c: (c[0] + 1, jnp.cos(c[1])), (0, x)
            )[1],
            "attention_full": self._attention,
            "max_pool": self._max_pool,
            "max_pool_grad": lambda x, ct: jax.vjp(self._max_pool, x)[1](ct)[0],
            "depthwise": self._depthwise,
        }

    def _max_pool(self, x: Any) -> Any:
        window, strides, pads = (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0))
        lax, least = self.jax.lax, -np.inf
        return lax.reduce_window(x, np.asarray(least, x.dtype), lax.max, window, strides, pads)

    def _depthwise(self, x: Any, w: Any) -> Any:
        names = ("NHWC", "HWIO", "NHWC")
        return self.jax.lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=names, feature_group_count=x.shape[-1]
        )

    def _attention(self, q: Any, k: Any, v: Any) -> Any:
        q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
        return self.jax.nn.dot_product_attention(q, k, v).swapaxes(1, 2)

    def prepare(self, row: Row, inputs: tuple[Any, ...]) -> Call:
        if row.implementation in self._own:
            self.use.ROWS.setdefault(row.implementation, self._own[row.implementation])
        if row.implementation not in self.use.ROWS:
            raise NotWrittenError
        function, arguments = self.use.prepare(row, inputs)
        elements = gpu_rows.ELEMENTS.get(row.name, "")
        if elements == "tf32":
            jnp = self.jax.numpy
            function = self.jax.jit(lambda a, b: jnp.matmul(a, b, precision="tensorfloat32"))
        elif elements:
            arguments = tuple(a.astype(elements) for a in arguments)
        return Call(
            lambda: function(*arguments),
            self.use.wait,
            lambda found: self.jax.tree.map(_comparable, self.use.arrays(found)),
        )


class Triton:
    name = "triton"

    def __init__(self) -> None:
        import torch

        if not torch.cuda.is_available():
            raise ImportError("PyTorch, which Triton's arrays are, sees no GPU")
        import triton

        self.version = triton.__version__
        self.use = importlib.import_module(".use_triton", __package__)
        self.stream: int | None = torch.cuda.current_stream().cuda_stream

    def prepare(self, row: Row, inputs: tuple[Any, ...]) -> Call:
        from ..frameworks import use_torch

        function = self.use.ROWS.get(row.implementation)
        if function is None:
            raise NotWrittenError
        arguments = use_torch.tensors(inputs)
        return Call(lambda: function(*arguments), use_torch.wait, use_torch.arrays)


class NotWrittenError(Exception):
    """The framework has no program of this row."""

    def __str__(self) -> str:
        return "not written for this framework"


KINDS: dict[str, Callable[[], Any]] = {
    "jitney": Jitney,
    "jitney_cublas": JitneyCublas,
    "jitney_tuned": JitneyTuned,
    "torch": Torch,
    "torch_compile": TorchCompile,
    "jax": Jax,
    "triton": Triton,
}
