"""Arrays outside of a function that its compiled code takes as inputs: what they have to be like."""

from __future__ import annotations

from collections.abc import Hashable
from types import ModuleType
from typing import Any

import numpy as np

from ...ir.record import record, replace
from ...ir.types import TensorType, is_supported, type_of
from ...runtime.cuda.array import DeviceArray
from ..core.specs import Spec, Static
from ..data import pytree
from ..data.generators import handle_of, kind_of
from ..messages.errors import ArgumentError
from .frozen import attributes_of, freeze
from .guards import SourceText
from .paths import Path, state_of

_CONTAINERS = (list, tuple, dict)


@record
class Hidden:
    """An outside value that is an array or a container with arrays. Read at each call.

    What is not `substituted` are generators, and their states, which find what stands in for them.
    """

    path: Path
    tree: pytree.TreeDef
    structure: Hashable  # with the order of dicts
    specs: tuple[Spec | Static, ...]
    substituted: bool = True  # the stand-in is put at the path, in copies of what leads there

    @property
    def n_arrays(self) -> int:
        return sum(isinstance(spec, Spec) for spec in self.specs)


def hidden_at(path: Path, value: Any, substituted: bool = True) -> Hidden | None:
    """The arrays in what is found at `path`, if they can be inputs; else None."""
    is_data = isinstance(value, (np.ndarray, DeviceArray)) or type(value) in _CONTAINERS
    is_data = is_data or pytree.is_converted_class(type(value))
    if not is_data and kind_of(value) is None:
        return None
    if substituted and not all(
        _is_copyable(Path(path.kind, path.root, path.name, path.attrs[:i]).read())
        for i in range(len(path.attrs))
    ):
        return None
    leaves, tree = _flattened(value)
    if tree is None or not any(is_traceable_array(leaf) for leaf in leaves):
        return None
    names = pytree.leaf_names(value, str(path))
    specs = tuple(
        _spec(leaf, name) if is_traceable_array(leaf) else Static(freeze(leaf))
        for leaf, name in zip(leaves, names, strict=True)
    )
    return Hidden(path, tree, pytree.as_written(value)[1], specs, substituted)


def _flattened(value: Any) -> tuple[list[Any], pytree.TreeDef | None]:
    """The leaves of a container, and how it is built; nothing of one that is nested too deeply."""
    try:
        return pytree.flatten(value)
    except ArgumentError:
        return [], None


def _spec(leaf: Any, name: str) -> Spec:
    array = array_of(leaf)
    spec = array_spec(array, name)
    return spec if array is leaf else replace(spec, holder=holder_of(leaf))


def array_of(leaf: Any) -> Any:
    """A traced leaf, or what compiled code takes for one that is a generator: the state of ours, where
    the state is of NumPy's and Python's."""
    state = state_of(leaf)
    if state is not None:
        return getattr(leaf, state)
    return leaf if kind_of(leaf) is None else handle_of(leaf)


def holder_of(leaf: Any) -> Any:
    """What makes of the array of a generator what the function sees."""
    return kind_of(leaf) or type(leaf)


def stand_in_for(leaf: Any, inside: Any) -> tuple[Any, Any]:
    """A generator or the state of one, and what stands in for that: `inside` is for the whole."""
    return (leaf, inside) if kind_of(leaf) is not None else (array_of(leaf), array_of(inside))


def is_generator(leaf: Any) -> bool:
    """Whether a leaf is a generator of ours, NumPy's or Python's."""
    return state_of(leaf) is not None or kind_of(leaf) is not None


def _is_state(path: Path) -> bool:
    """Whether a path leads to the state of a generator."""
    if not path.attrs:
        return False
    *above, last = path.attrs
    return state_of(Path(path.kind, path.root, path.name, tuple(above)).read()) == last


def states_at(path: Path, value: Any) -> Hidden | None:
    """A value in whose place nothing can be put, if its arrays are the states of generators."""
    if type(value) in _CONTAINERS:
        arrays = [leaf for leaf in _flattened(value)[0] if is_traceable_array(leaf)]
        are_states = all(map(is_generator, arrays))
    else:
        are_states = kind_of(value) is not None
        are_states = are_states or (isinstance(value, np.ndarray) and _is_state(path))
    return hidden_at(path, value, substituted=False) if are_states else None


def _is_copyable(value: Any) -> bool:
    """Whether a shallow copy with other attributes can stand in for an object."""
    if isinstance(value, (type, ModuleType)) or attributes_of(value) is None:
        return False
    try:
        object.__new__(type(value))
    except TypeError:
        return False
    return True


def is_traceable_array(leaf: Any) -> bool:
    """Whether a value is an array that can be an input, or a generator, whose state or handle is one."""
    if is_generator(leaf):
        return True
    return type(leaf) is DeviceArray or (type(leaf) is np.ndarray and is_supported(leaf.dtype))


def array_spec(array: Any, name: str = "") -> Spec:
    """The Spec of an ndarray or a DeviceArray; its layout class is None for C order, else strides
    in elements."""
    strides = None
    if type(array) is DeviceArray:
        type_ = TensorType(array.shape, array.dtype)
        return Spec(type_, None, False, False, None, name, device=array.device)
    if not array.flags.c_contiguous:
        size = array.itemsize
        if all(s % size == 0 for s, n in zip(array.strides, array.shape, strict=True) if n > 1):
            strides = tuple(
                s // size if n > 1 else 0 for s, n in zip(array.strides, array.shape, strict=True)
            )
    return Spec(type_of(array), None, False, True, strides, name)


def array_checks(source: SourceText, name: str, spec: Spec) -> list[str]:
    """Lines of Python that return None unless `name` is an array of this spec."""
    dtype = source.name(spec.type.dtype)
    shape = source.name(spec.type.shape)
    kind = DeviceArray if spec.device else np.ndarray
    lines = [
        f"        if {name}.__class__ is not {source.name(kind)} or {name}.shape != {shape} "
        f"or {name}.dtype != {dtype}: return None"
    ]
    if spec.device:
        lines.append(f"        if {name}.device != {source.name(spec.device)}: return None")
    elif spec.strides is None:
        lines.append(f"        if not {name}.flags.c_contiguous: return None")
    else:
        same = source.name(_same_layout)
        lines.append(f"        if not {same}({name}, {source.name(spec)}): return None")
    return lines


def _same_layout(array: Any, spec: Spec) -> bool:
    now = array_spec(array)
    return (now.strides, now.device) == (spec.strides, spec.device)


def same_spec(array: Any, spec: Spec) -> bool:
    """Whether an array is like the one that was traced."""
    same = (array.shape, array.dtype) == (spec.type.shape, spec.type.dtype)
    return same and _same_layout(array, spec)


def flatten_like(hidden: Hidden, value: Any) -> list[Any] | None:
    """The arrays of `value`, if it has the structure and specs of `hidden`; else None."""
    if pytree.as_written(value)[1] != hidden.structure:
        return None
    leaves = pytree.flatten(value)[0]
    arrays = []
    for leaf, spec in zip(leaves, hidden.specs, strict=True):
        if isinstance(spec, Static):
            if freeze(leaf) != spec.value:
                return None
            continue
        if spec.holder is not None:
            if holder_of(leaf) != spec.holder:
                return None
            leaf = array_of(leaf)
        if not is_traceable_array(leaf) or not same_spec(leaf, spec):
            return None
        arrays.append(leaf)
    return arrays
