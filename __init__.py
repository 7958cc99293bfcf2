"""jitney: an array compiler for NumPy functions.

    import jitney as jt

    @jt.jit
    def softmax(x):
        e = jt.exp(x - jt.max(x, axis=1, keepdims=True))
        return e / jt.sum(e, axis=1, keepdims=True)

This is the public face and nothing else. Names are looked up on first use, so that `import jitney`
costs next to nothing: `_HOMES` says where each transformation lives, and whatever else NumPy programs
call (`jt.sin`, `jt.linalg.norm`, ...) comes from the table of array functions.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import_module(".ir.forks", __name__)  # before all else: it lets children import the rest

__version__ = "0.1.0"
__array_api_version__ = "2024.12"

if TYPE_CHECKING:
    from .ir.text import parse_graph as parse_graph
    from .runtime.config import config as config
    from .runtime.cuda.array import DeviceArray as DeviceArray
    from .runtime.devices import Device as Device
    from .runtime.pool import threads as threads
    from .tracer import errors as errors
    from .tracer import random as random
    from .tracer import tree as tree
    from .tracer.array_api import __array_namespace_info__ as __array_namespace_info__
    from .tracer.array_api import from_dlpack as from_dlpack
    from .tracer.array_api import isdtype as isdtype
    from .tracer.associative import associative_scan as associative_scan
    from .tracer.callbacks import debug_print as debug_print
    from .tracer.callbacks import io_callback as io_callback
    from .tracer.callbacks import pure_callback as pure_callback
    from .tracer.callbacks import py_func as py_func
    from .tracer.check_grads import check_grads as check_grads
    from .tracer.check_grads import compute_gradient_error as compute_gradient_error
    from .tracer.concatenators import c_ as c_
    from .tracer.concatenators import r_ as r_
    from .tracer.control import case as case
    from .tracer.control import cond as cond
    from .tracer.control import fori_loop as fori_loop
    from .tracer.control import switch as switch
    from .tracer.control import while_loop as while_loop
    from .tracer.custom import custom_jvp as custom_jvp
    from .tracer.custom import custom_vjp as custom_vjp
    from .tracer.devices import device as device
    from .tracer.devices import device_put as device_put
    from .tracer.devices import devices as devices
    from .tracer.jacobians import hessian as hessian
    from .tracer.jacobians import jacfwd as jacfwd
    from .tracer.jacobians import jacrev as jacrev
    from .tracer.jit import jit as jit
    from .tracer.linear import hvp as hvp
    from .tracer.linear import linear_transpose as linear_transpose
    from .tracer.linear import linearize as linearize
    from .tracer.pytree import register_pytree as register_pytree
    from .tracer.remat import checkpoint as checkpoint
    from .tracer.remat import checkpoint_name as checkpoint_name
    from .tracer.scans import foldl as foldl
    from .tracer.scans import foldr as foldr
    from .tracer.scans import map_fn as map_fn
    from .tracer.scans import scan as scan
    from .tracer.shapes import ShapeDtype as ShapeDtype
    from .tracer.tensor_array import TensorArray as TensorArray
    from .tracer.transforms import grad as grad
    from .tracer.transforms import jvp as jvp
    from .tracer.transforms import stop_gradient as stop_gradient
    from .tracer.transforms import value_and_grad as value_and_grad
    from .tracer.transforms import vjp as vjp
    from .tracer.vectorize import vectorize as vectorize
    from .tracer.vmap import vmap as vmap

_HOMES = {
    "Device": "runtime.devices",
    "DeviceArray": "runtime.cuda.array",
    "ShapeDtype": "tracer.shapes",
    "__array_namespace_info__": "tracer.array_api",
    "TensorArray": "tracer.tensor_array",
    "associative_scan": "tracer.associative",
    "c_": "tracer.concatenators",
    "case": "tracer.control",
    "check_grads": "tracer.check_grads",
    "checkpoint": "tracer.remat",
    "checkpoint_name": "tracer.remat",
    "compute_gradient_error": "tracer.check_grads",
    "cond": "tracer.control",
    "config": "runtime.config",
    "custom_jvp": "tracer.custom",
    "custom_vjp": "tracer.custom",
    "debug_print": "tracer.callbacks",
    "device": "tracer.devices",
    "device_put": "tracer.devices",
    "devices": "tracer.devices",
    "foldl": "tracer.scans",
    "foldr": "tracer.scans",
    "fori_loop": "tracer.control",
    "from_dlpack": "tracer.array_api",
    "grad": "tracer.transforms",
    "hessian": "tracer.jacobians",
    "finfo": "tracer.promotion",
    "hvp": "tracer.linear",
    "io_callback": "tracer.callbacks",
    "isdtype": "tracer.array_api",
    "jacfwd": "tracer.jacobians",
    "jacrev": "tracer.jacobians",
    "jit": "tracer.jit",
    "jvp": "tracer.transforms",
    "linear_transpose": "tracer.linear",
    "linearize": "tracer.linear",
    "map_fn": "tracer.scans",
    "parse_graph": "ir.text",
    "pure_callback": "tracer.callbacks",
    "py_func": "tracer.callbacks",
    "r_": "tracer.concatenators",
    "register_pytree": "tracer.pytree",
    "scan": "tracer.scans",
    "stop_gradient": "tracer.transforms",
    "switch": "tracer.control",
    "threads": "runtime.pool",
    "value_and_grad": "tracer.transforms",
    "vectorize": "tracer.vectorize",
    "vjp": "tracer.transforms",
    "vmap": "tracer.vmap",
    "while_loop": "tracer.control",
}
_MODULES = {"errors": "tracer.errors", "random": "tracer.random", "tree": "tracer.tree"}
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


def _array_functions() -> dict[str, Any]:
    import_module(".tracer.functions", __name__)
    import_module(".tracer.special", __name__)
    return import_module(".tracer.functions.table", __name__).public_names()


def __getattr__(name: str) -> Any:
    if name.startswith("__") and name not in _HOMES:
        raise AttributeError(name)
    if name in _FROM_NUMPY:
        value = getattr(import_module("numpy"), name)
    elif name in _FROM_ML_DTYPES:
        value = getattr(import_module("ml_dtypes"), name)
    elif name in _MODULES:
        value = import_module(f".{_MODULES[name]}", __name__)
    elif name in _HOMES:
        with import_module(".ir.collector", __name__).resting_collector():
            value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    else:
        functions = _array_functions()
        for key, function in functions.items():
            globals().setdefault(key, function)
        if name in functions:
            return functions[name]
        names = import_module(".tracer.numpy_names", __name__)
        if name not in names.FROM_NUMPY:
            why = names.ABSENT.get(name)
            reason = f": {why}" if why else _nearest(name, functions)
            raise AttributeError(f"jitney has no {name!r}{reason}")
        value = getattr(import_module("numpy"), name)
    globals()[name] = value
    return value


def _nearest(name: str, functions: dict[str, Any]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, [*functions, *_HOMES], n=3)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def __dir__() -> list[str]:
    names = {
        *_HOMES,
        *_MODULES,
        *_FROM_NUMPY,
        *_FROM_ML_DTYPES,
        *import_module(".tracer.numpy_names", __name__).FROM_NUMPY,
        *_array_functions(),
        "__version__",
        "__array_api_version__",
        "__doc__",
    }
    return sorted(names)
