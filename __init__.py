"""jitney: an array compiler for NumPy functions.

    import jitney as jt

    @jt.jit
    def softmax(x):
        e = jt.exp(x - jt.max(x, axis=1, keepdims=True))
        return e / jt.sum(e, axis=1, keepdims=True)

This is the public face and nothing else. Names are looked up on first use, so that `import jitney`
costs next to nothing: `_HOMES` says where each transformation lives, and whatever else NumPy programs
call (`jt.sin`, `jt.linalg.norm`, ...) comes from the table of array functions. Type checkers read
`__init__.pyi`, which is made from both.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import_module(".ir.forks", __name__)  # before all else: it lets children import the rest
import_module(".ir.surface", __name__).provides("solvers")(
    lambda: import_module(".solve", __name__)
)  # SciPy's in compiled code are ours
__array_api_version__ = "2024.12"

_HOMES = {
    "shard_map": "distributed.sharding",
    "all_gather": "tracer.transforms.named_axes",
    "all_to_all": "tracer.transforms.named_axes",
    "axis_index": "tracer.transforms.named_axes",
    "axis_size": "tracer.transforms.named_axes",
    "pbroadcast": "tracer.transforms.named_axes",
    "pmax": "tracer.transforms.named_axes",
    "pmean": "tracer.transforms.named_axes",
    "pmin": "tracer.transforms.named_axes",
    "ppermute": "tracer.transforms.named_axes",
    "pshuffle": "tracer.transforms.named_axes",
    "psum": "tracer.transforms.named_axes",
    "psum_scatter": "tracer.transforms.named_axes",
    "Device": "runtime.devices",
    "DeviceArray": "runtime.cuda.array",
    "ShapeDtype": "tracer.data.shapes",
    "__array_namespace_info__": "tracer.interop.array_api",
    "__version__": "ir.version",
    "TensorArray": "tracer.control.tensor_array",
    "Variable": "nn.variable",
    "assert_close": "tracer.checks.asserts",
    "assert_compatible": "tracer.checks.shapes",
    "assert_dtype": "tracer.checks.shapes",
    "assert_equal": "tracer.checks.asserts",
    "assert_finite": "tracer.checks.asserts",
    "assert_greater": "tracer.checks.asserts",
    "assert_greater_equal": "tracer.checks.asserts",
    "assert_in_range": "tracer.checks.asserts",
    "assert_less": "tracer.checks.asserts",
    "assert_less_equal": "tracer.checks.asserts",
    "assert_negative": "tracer.checks.asserts",
    "assert_non_negative": "tracer.checks.asserts",
    "assert_non_positive": "tracer.checks.asserts",
    "assert_not_equal": "tracer.checks.asserts",
    "assert_positive": "tracer.checks.asserts",
    "assert_rank": "tracer.checks.shapes",
    "assert_shape": "tracer.checks.shapes",
    "assert_shapes": "tracer.checks.shapes",
    "check": "tracer.checks.asserts",
    "associative_scan": "tracer.control.associative",
    "bench": "measure.bench",
    "breakpoint": "tracer.control.debugging",
    "c_": "tracer.indexing.concatenators",
    "capture": "tracer.jit.capturing",
    "case": "tracer.control.control",
    "check_grads": "tracer.transforms.check_grads",
    "checkpoint": "tracer.transforms.remat",
    "checkpoint_name": "tracer.transforms.remat",
    "compute_gradient_error": "tracer.transforms.check_grads",
    "compare": "tracer.compare.compare",
    "cond": "tracer.control.control",
    "config": "runtime.config",
    "cost": "tracer.ahead.cost",
    "custom_jvp": "tracer.transforms.custom",
    "custom_vjp": "tracer.transforms.custom",
    "debug_callback": "tracer.control.debugging",
    "debug_print": "tracer.control.debugging",
    "disable_jit": "tracer.jit.asked",
    "device": "tracer.devices.devices",
    "device_put": "tracer.devices.devices",
    "devices": "tracer.devices.devices",
    "foldl": "tracer.control.scans",
    "foldr": "tracer.control.scans",
    "fori_loop": "tracer.control.control",
    "from_dlpack": "tracer.interop.array_api",
    "grad": "tracer.transforms.gradients",
    "guvectorize": "tracer.kernels.guvectorize",
    "hessian": "tracer.transforms.jacobians",
    "eval_shape": "tracer.ahead.shapes",
    "export": "tracer.ahead.export",
    "finfo": "tracer.data.promotion",
    "hvp": "tracer.transforms.linear",
    "implicit": "tracer.transforms.implicit",
    "io_callback": "tracer.control.callbacks",
    "is_traced": "tracer.checks.traced",
    "isdtype": "tracer.interop.array_api",
    "jacfwd": "tracer.transforms.jacobians",
    "jacrev": "tracer.transforms.jacobians",
    "jit": "tracer.jit.decorator",
    "jvp": "tracer.transforms.derivatives",
    "linear_transpose": "tracer.transforms.linear",
    "linearize": "tracer.transforms.linear",
    "load_exported": "tracer.export.loaded",
    "machine_limits": "runtime.machine_limits",
    "map_fn": "tracer.control.scans",
    "name": "tracer.core.naming",
    "name_scope": "tracer.core.naming",
    "materialize": "tracer.core.knobs",
    "parse_graph": "tracer.interop.parsed",
    "profile": "tracer.profiling.profile",
    "prange": "tracer.control.prange",
    "pure_callback": "tracer.control.callbacks",
    "py_func": "tracer.control.callbacks",
    "r_": "tracer.indexing.concatenators",
    "recursive": "tracer.autograph.recursion.recursive",
    "register_pytree": "tracer.data.pytree",
    "scan": "tracer.control.scans",
    "schedule": "tracer.core.knobs",
    "stencil": "tracer.kernels.stencil",
    "stop_gradient": "tracer.transforms.derivatives",
    "switch": "tracer.control.control",
    "threads": "runtime.threads.pool",
    "value_and_grad": "tracer.transforms.gradients",
    "vectorize": "tracer.kernels.vectorize",
    "vjp": "tracer.transforms.derivatives",
    "vmap": "tracer.transforms.vmap",
    "while_loop": "tracer.control.control",
}
_MODULES = {
    "data": "data",
    "distributed": "distributed",
    "errors": "errors",
    "filters": "tracer.checks.filters",
    "nn": "nn",
    "optim": "optim",
    "random": "tracer.random",
    "solve": "solve",
    "sparse": "tracer.sparse",
    "summary": "summary",
    "train": "train",
    "tree": "tracer.data.tree",
}
_FROM_NUMPY = (
    *("pi", "e", "inf", "nan", "newaxis"),
    *("bool", "bool_", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"),
    *("complex64", "complex128"),
    "iinfo",
)
_FROM_ML_DTYPES = (
    *("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3", "float8_e3m4"),
    *("float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3b11fnuz"),
)


@cache  # who asks for a name that is not there should not pay for all that are
def _array_functions() -> dict[str, Any]:
    tracer = import_module(".tracer", __name__)
    tracer.ensure("trace")
    tracer.ensure("special")
    tracer.ensure("ops")
    return import_module(".tracer.functions.public", __name__).public_names()


def __getattr__(name: str) -> Any:
    if name.startswith("_") and name not in _HOMES:  # who looks at modules asks for many of those
        raise AttributeError(name)
    if name in _FROM_NUMPY:
        value = getattr(import_module("numpy"), name)
    elif name in _FROM_ML_DTYPES:
        value = getattr(import_module("ml_dtypes"), name)
    elif name in _MODULES:
        value = import_module(f".{_MODULES[name]}", __name__)
    elif name in _HOMES:
        with import_module(".ir.collector", __name__).loading():
            value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    else:
        functions = _array_functions()
        for key, function in functions.items():
            globals().setdefault(key, function)
        if name in functions:
            return functions[name]
        names = import_module(".tracer.arrays.numpy_names", __name__)
        if name not in names.FROM_NUMPY:
            why = names.ABSENT.get(name)
            reason = f": {why}" if why else _nearest(name, functions)
            raise AttributeError(f"jitney has no {name!r}{reason}")
        value = getattr(import_module("numpy"), name)
    globals()[name] = value
    return value


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext jitney`: the magics `%%jit` and `%jt`.

    >>> from IPython.core.interactiveshell import InteractiveShell
    >>> shell = InteractiveShell.instance()
    >>> jt.load_ipython_extension(shell)
    >>> "jt" in shell.magics_manager.magics["line"]
    True
    """
    import_module(".measure.magics", __name__).load(shell)


def _nearest(name: str, functions: dict[str, Any]) -> str:
    from difflib import get_close_matches
    from pathlib import Path

    package = import_module(__name__)
    homes = [
        r for r in ("ops", "special", "random", "linalg") if hasattr(getattr(package, r), name)
    ]
    for room in (
        "nn",
        "optim",
        "data",
        "train",
        "solve",
        "summary",
        "distributed",
    ):  # read, which is not imported
        if f" as {name}\n" in Path(__file__).with_name(room).joinpath("__init__.py").read_text():
            homes.append(room)
    if homes:
        return f": it is {' or '.join(f'jt.{room}.{name}' for room in homes)}"
    near = get_close_matches(name, [*functions, *_HOMES], n=3)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def __dir__() -> list[str]:
    names = {
        *_HOMES,
        *_MODULES,
        *_FROM_NUMPY,
        *_FROM_ML_DTYPES,
        *import_module(".tracer.arrays.numpy_names", __name__).FROM_NUMPY,
        *_array_functions(),
        "__array_api_version__",
        "__doc__",
    }
    return sorted(names)
