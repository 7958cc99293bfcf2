"""What computes with `DeviceArray`s outside of compiled functions: operators, methods, functions.

Each is a small compiled function, kept by its name, the types of its arrays and its other arguments.
"""

from __future__ import annotations

import copyreg
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.types import TensorType
from ...runtime.cuda.array import DeviceArray, method
from ...runtime.devices import CPU, parse_device
from ..arrays.lowerings import LOWERINGS
from ..arrays.python_operators import BINARY, COMPARISONS, UNARY
from ..arrays.table import BY_NUMPY, ArrayFunction, unsupported
from ..core.finish import device_finisher
from ..core.specs import Spec, Static
from ..core.trace import current_trace
from ..core.tracers import WEAK_DTYPES, Tracer, as_tracer
from ..core.tracing import trace_function
from ..data import pytree
from ..data.accept import check_array
from ..data.exact import exact_key
from ..data.foreign import is_foreign
from ..devices.device_calls import serve
from ..devices.devices import client, device_of, own_device, put, put_all, resolved, unpickled
from ..functions import operators
from ..jit.decorator import jit
from ..messages import errors
from ..messages.errors import complain

if TYPE_CHECKING:
    from ...runtime.cuda.client import LoadedProgram

_KEPT = 4096  # programs; the least recently used goes first
_WEAK = {bool: "b", int: "i", float: "f", complex: "c"}
_programs: OrderedDict[Hashable, tuple[LoadedProgram, Callable[..., Any]]] = OrderedDict()
_quick: dict[
    Hashable, tuple[LoadedProgram, Callable[..., Any]]
] = {}  # some of these, by simpler keys


def run(
    name: str,
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    numbers: bool = False,
) -> Any:
    """`function(*args, **kwargs)`, written over tracers, on the device of its DeviceArrays.

    `name` stands for the function in the key. With `numbers`, Python scalars are inputs of the program;
    without, they are part of it (axes, shapes).
    """
    if current_trace() is not None:
        return function(*[as_tracer(x) if type(x) is DeviceArray else x for x in args], **kwargs)
    quick = None if kwargs else _quick_key(name, args, numbers)
    if quick is not None and (entry_by_types := _quick.get(quick)) is not None:
        program, finish = entry_by_types
        arrays = put_all(program.client, args)
        return finish(program.run(arrays), arrays)
    leaves, tree = pytree.flatten((tuple(args), dict(kwargs)))
    leaves = _adopted(leaves)
    device = device_of(leaves)
    assert device is not None
    specs = [_spec(leaf, numbers) for leaf in leaves]
    key = (name, tree, device, tuple(_key(spec) for spec in specs))
    entry = _programs.get(key)
    inputs = [leaf for leaf, spec in zip(leaves, specs, strict=True) if isinstance(spec, Spec)]
    if entry is None:
        traced = trace_function(
            function, specs, tree, what=name, name=_identifier(name), values_only=False, views=False
        )
        program = client(device).compile(traced.graph)
        captures = [capture.outer for capture in traced.captures]
        finish = device_finisher(traced)
        if captures:
            return finish(program.run(put_all(program.client, [*inputs, *captures])), inputs)
        entry = _programs[key] = program, finish
        if len(_programs) > _KEPT:
            _programs.popitem(last=False)
            _quick.clear()  # it refills from the others
    _programs.move_to_end(key)
    program, finish = entry
    if quick is not None:
        _quick[quick] = entry
    arrays = put_all(program.client, inputs)
    return finish(program.run(arrays), arrays)


def _adopted(leaves: Sequence[Any]) -> list[Any]:
    """With arrays of other libraries on a GPU as DeviceArrays."""
    return [put(leaf, own_device(leaf)) if is_foreign(leaf) else leaf for leaf in leaves]


def _quick_key(name: str, args: Sequence[Any], numbers: bool) -> Hashable:
    """A key of its own for DeviceArrays and numbers that are inputs; None for all else."""
    key: list[Any] = [name, numbers]
    for arg in args:
        kind = type(arg)
        if kind is DeviceArray:
            key += (arg.client, arg.dtype, arg.shape)
        elif numbers and kind in _WEAK and (kind is not int or -(2**63) < arg < 2**63):
            key.append(kind)
        else:
            return None
    return tuple(key)


def _identifier(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name).strip("_") or "op"


def _spec(leaf: Any, numbers: bool) -> Spec | Static:
    if isinstance(leaf, DeviceArray):
        return Spec(TensorType(leaf.shape, leaf.dtype), writeable=False)
    if isinstance(leaf, np.ndarray):
        return Spec(TensorType(leaf.shape, check_array(leaf).dtype), writeable=False)
    if isinstance(leaf, np.generic) and (numbers or leaf.dtype.kind == "c"):
        return Spec(TensorType((), leaf.dtype), None, True)
    kind = _WEAK.get(type(leaf))
    if numbers and kind is not None and not (kind == "i" and abs(leaf) >= 2**63):
        return Spec(TensorType((), WEAK_DTYPES[kind]), kind, True)
    return Static(leaf)


def _key(spec: Spec | Static) -> Hashable:
    if isinstance(spec, Spec):
        return spec
    value = spec.value
    if isinstance(value, slice):
        return slice, exact_key((value.start, value.stop, value.step))
    try:
        hash(value)
    except TypeError:
        return id(value), _Alive(value)
    return exact_key(value)


class _Alive:
    """Keeps a value that cannot be hashed alive, so that its id stays its own."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Alive) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def run_entry(entry: ArrayFunction, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A function of the table on DeviceArrays."""
    if kwargs.get("out") is not None:
        complain(
            errors.UnsupportedFunctionError,
            f"{entry.name} with out= a DeviceArray, which does not change",
            "leave out= out and use the result.",
        )
    numbers = isinstance(entry.numpy, np.ufunc) or entry.name in ("where", "clip")

    def call(*args: Any, **kwargs: Any) -> Any:
        return entry.trace(args, kwargs)

    return run(entry.name, call, args, kwargs, numbers)


# Operators, methods and attributes: those of a Tracer


def _forward(name: str, numbers: bool = False) -> Callable[..., Any]:
    def call(self: DeviceArray, *args: Any, **kwargs: Any) -> Any:
        if numbers and any(operators.foreign(x) for x in args):
            args = tuple(_adopted(args))
            if any(operators.foreign(x) for x in args):
                return NotImplemented
        if any(isinstance(x, Tracer) for x in args):  # the other operand is being traced
            return getattr(as_tracer(self), name)(*args, **kwargs)
        return run(name, getattr(Tracer, name), (self, *args), kwargs, numbers)

    call.__name__, call.__qualname__ = name, f"DeviceArray.{name}"
    return call


def _attribute(name: str) -> property:
    get = getattr(Tracer, name).fget
    return property(lambda self: run(name, get, (self,), {}))


def _install() -> None:
    for name in (*UNARY, "invert"):
        method(f"__{name}__")(_forward(f"__{name}__", True))
    for name in (*BINARY, "matmul", "divmod"):
        method(f"__{name}__")(_forward(f"__{name}__", True))
        method(f"__r{name}__")(_forward(f"__r{name}__", True))
    for name in COMPARISONS:
        method(f"__{name}__")(_forward(f"__{name}__", True))
    for name in (
        "all any argmax argmin argsort argpartition astype choose clip compress conj conjugate copy "
        "cumprod cumsum diagonal dot flatten max mean min prod ravel repeat reshape round "
        "searchsorted squeeze std sum swapaxes take trace transpose var __getitem__ __round__"
    ).split():
        method(name)(_forward(name))
    for name in ("T", "mT", "real", "imag"):
        setattr(DeviceArray, name, _attribute(name))


_install()


@method("__contains__")
def _contains(self: DeviceArray, value: Any) -> bool:
    return bool((self == value).any())


@method("to_device")
def _to_device(self: DeviceArray, device: Any, /, *, stream: Any = None) -> Any:
    return put(self, resolved(parse_device(device)))


@method("get")
def _get(self: DeviceArray) -> np.ndarray[Any, Any]:
    """The elements as a NumPy array."""
    result: np.ndarray[Any, Any] = put(self, CPU)
    return result


copyreg.pickle(DeviceArray, lambda x: (unpickled, (np.asarray(x), x.device)))


# NumPy's protocols


@method("__array_ufunc__")
def _array_ufunc(self: DeviceArray, ufunc: np.ufunc, how: str, *inputs: Any, **options: Any) -> Any:
    if any(isinstance(x, Tracer) for x in inputs):
        return NotImplemented
    name = ufunc.__name__
    if options.get("out") is not None or how == "at":
        complain(
            errors.UnsupportedFunctionError,
            f"np.{name} that writes to an array, with a DeviceArray",
            "leave out= out and use the result; NumPy arrays take elements from np.asarray(x).",
        )
    options = {k: v for k, v in options.items() if v is not None}
    entry = BY_NUMPY.get(ufunc) or operators.of_scipy(name)
    if how == "__call__" and entry is not None and name not in LOWERINGS:
        return run_entry(entry, inputs, options)
    if name not in LOWERINGS:
        unsupported(ufunc, name if how == "__call__" else f"{name}.{how}")
    function = operators.ufunc_method(ufunc, how)

    def call(*args: Any, **kwargs: Any) -> Any:
        return function.trace(args, kwargs)

    return run(f"{name}.{how}", call, inputs, options, numbers=how in ("__call__", "outer"))


@method("__array_function__")
def _array_function(
    self: DeviceArray, function: Any, types: Any, args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    entry = BY_NUMPY.get(function)
    if entry is None:
        unsupported(function)
    return run_entry(entry, args, options)


@method("__array_namespace__")
def _array_namespace(self: DeviceArray, *, api_version: str | None = None) -> Any:
    return Tracer.__array_namespace__(self)  # type: ignore[attr-defined]


serve(jit, run, run_entry)
