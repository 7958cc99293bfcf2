"""Trees as arrays by name and a description in JSON, and back.

The description has a node for each place: plain values stand for themselves, all else is an object
with one key that says what it is (`{"array": name}`, `{"dict": [[key, node], ...]}`, `{"generator":
...}`). Of objects only the class's name is kept, to be read by people: nothing is imported or run.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from . import places
from .checkpoint_file import Array, CheckpointError, Entry, as_stored, can_store, named_dtype
from .places import Kind

_BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")


class Taken:
    """A tree taken apart: its description, and its arrays by name, as the file holds them."""

    def __init__(self, tree: Any, copied: bool = False) -> None:
        self.arrays: dict[str, Array] = {}
        self._copied = copied
        self._names: dict[int, str] = {}
        self._alive: list[Any] = []  # what ids were taken of
        self.node = self._take(tree, "", False)

    def _take(self, value: Any, path: str, in_module: bool) -> Any:
        kind = places.kind_of(value)
        if kind is Kind.PLAIN:
            return _plain_node(value)
        if kind is Kind.ARRAY:
            return self._array(value, path)
        if kind is Kind.GENERATOR:
            return {"generator": self._take(generator_state(value), path, False)}
        if kind is Kind.STATEFUL:
            return {"state": self._take(value.state(), path, False)}
        if kind in places.CONTAINERS:
            return self._container(value, kind, path, in_module)
        if kind is Kind.STATIC or in_module:
            return {"static": type(value).__qualname__}
        raise TypeError(
            f"{places.shown(path)} is a {type(value).__qualname__}, which a checkpoint can't "
            "hold: give arrays, numbers, texts, generators, and dicts, lists, tuples and objects of them"
        )

    def _array(self, value: Any, path: str) -> Any:
        if (known := self._names.get(id(value))) is not None:
            return {"array": known, **self._marks(value)}
        array = np.asarray(value.value if places.is_variable(value) else value)
        if not can_store(array.dtype) or not hasattr(value, "__array__"):
            what = array.dtype if hasattr(value, "__array__") else "no values"
            raise TypeError(
                f"{places.shown(path)} is an array of {what}, which a checkpoint can't hold: give "
                "numbers, bools or dates; texts as a list"
            )
        name = path or "tree"
        self._names[id(value)] = name
        self._alive.append(value)
        stored = as_stored(array)
        self.arrays[name] = stored.copy() if self._copied else stored
        return {"array": name, **self._marks(value)}

    def _marks(self, value: Any) -> dict[str, Any]:
        dtype = np.dtype(value.dtype)
        stored = as_stored(np.empty(0, dtype)).dtype
        dtype = dtype.newbyteorder("=")
        marks: dict[str, Any] = {} if stored == dtype else {"dtype": _dtype_name(dtype)}
        return {**marks, "scalar": True} if isinstance(value, np.generic) else marks

    def _container(self, value: Any, kind: Kind, path: str, in_module: bool) -> Any:
        places.check_depth(path, value)
        inside = in_module or places.is_module(value)
        nodes = []
        for key, part in places.parts(value, kind):
            node = self._take(part, places.child(path, key, kind), inside)
            # A module's numbers and texts are settings, which its constructor makes.
            if not inside or (isinstance(node, dict) and "static" not in node):
                nodes.append([_key_node(key, path), node])
        if kind is Kind.OBJECT:
            return {"object": type(value).__qualname__, "parts": nodes}
        if not nodes and len(value):
            return {"static": type(value).__qualname__}
        if kind is Kind.DICT or len(nodes) < len(value):
            return {"dict": nodes}
        return {kind.value: [node for _, node in nodes]}


def leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The path and the node of all that has a value and is no container."""
    what, inner = _container(node)
    if what is None:
        if not isinstance(node, dict) or "static" not in node:
            yield path, node
        return
    for key, part in inner:
        yield from leaves(part, places.child(path, key, Kind.DICT))


def build(node: Any, array: Callable[[str, str | None], Any]) -> Any:
    """The tree that a node describes, with `array(name, dtype)` for its arrays. Objects are dicts of
    their attributes, what has a state is that state, what was static is None."""
    what, inner = _container(node)
    if what in ("dict", "object"):
        return {key: build(part, array) for key, part in inner}
    if what in ("list", "tuple"):
        built = [build(part, array) for _, part in inner]
        return tuple(built) if what == "tuple" else built
    if not isinstance(node, dict):
        return node
    if "array" in node:
        found = array(node["array"], node.get("dtype"))
        return found[()] if node.get("scalar") else found
    if "generator" in node:
        return generator_of(build(node["generator"], array))
    return build(node["state"], array) if "state" in node else _plain(node)


def check(node: Any, entries: Mapping[str, Entry], depth: int = 0) -> None:
    """Raise ValueError for a description that `Taken` would not have made, or whose arrays are not
    there."""
    if depth > 4 * places.DEEPEST:
        raise ValueError("it is nested too deeply")
    if node is None or isinstance(node, (bool, int, float, str)):
        return
    if not isinstance(node, dict):
        raise ValueError(f"a {type(node).__name__} stands where a node should")
    keys = set(node)
    if keys == {"object", "parts"} and isinstance(node["object"], str):
        node = {"dict": node["parts"]}
    if keys <= {"array", "dtype", "scalar"} and isinstance(node.get("array"), str):
        _check_array(node, entries)
        return
    ((what, inner),) = node.items() if len(node) == 1 else [("nothing known", None)]
    if what in ("list", "tuple") and isinstance(inner, list):
        for part in inner:
            check(part, entries, depth + 1)
    elif what == "dict" and isinstance(inner, list):
        for pair in inner:
            if not isinstance(pair, list) or len(pair) != 2:
                raise ValueError("an entry of a dict is no pair")
            _key(pair[0])
            check(pair[1], entries, depth + 1)
    elif what in ("generator", "state"):
        check(inner, entries, depth + 1)
    elif what in ("float", "complex", "bytes", "static") and isinstance(inner, str):
        _plain(node)
    else:
        raise ValueError(f"a node says {what!r}")


def _check_array(node: dict[str, Any], entries: Mapping[str, Entry]) -> None:
    name = node["array"]
    if name not in entries:
        raise ValueError(f"there is no array {name!r}")
    if node.get("scalar", True) is not True or (node.get("scalar") and entries[name].shape[1:]):
        raise ValueError(f"array {name!r} is no scalar")
    if "dtype" in node:
        dtype = named_dtype(node["dtype"])
        if not can_store(dtype) or as_stored(np.empty((), dtype)).dtype != entries[name].dtype:
            raise ValueError(f"array {name!r} says that it holds {node['dtype']!r}")
        if dtype.kind == "c" and entries[name].shape[-1:] != (2,):
            raise ValueError(f"array {name!r} says that it holds pairs")


def plain_leaf(node: Any) -> bool:
    """Whether a leaf's node is a number, a text or None."""
    return not isinstance(node, dict) or bool({"float", "complex", "bytes"} & set(node))


def set_state(generator: Any, state: Any, path: str) -> None:
    """Put a generator where another one was; CheckpointError if it is of another class."""
    kind = generator_state(generator)["bit_generator"]
    has = state.get("bit_generator") if isinstance(state, dict) else type(state).__name__
    if has != kind:
        raise CheckpointError(
            f"{places.shown(path)} is a {kind}, and the checkpoint has a {has}: give one of that kind"
        )
    state = {key: value for key, value in state.items() if key != "class"}
    if isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    else:
        getattr(generator, "bit_generator", generator).state = state


def generator_of(state: Any) -> Any:
    """A new generator; ValueError if that is no generator's state."""
    if not isinstance(state, dict) or state.get("bit_generator") not in _BIT_GENERATORS:
        raise ValueError("that is the state of no known generator")
    bits = getattr(np.random, state["bit_generator"])(0)
    classes = {"Generator": np.random.Generator, "RandomState": np.random.RandomState}
    cls: Any = classes.get(state.get("class"), lambda bits: bits)  # type: ignore[arg-type]
    generator = cls(bits)
    try:
        set_state(generator, state, "")
    except (TypeError, KeyError, OverflowError, AttributeError) as error:
        raise ValueError(f"that is no state of a {state['bit_generator']}: {error}") from error
    return generator


def generator_state(generator: Any) -> dict[str, Any]:
    """The state of a generator, and which class of generator it is."""
    if isinstance(generator, np.random.RandomState):
        state: Any = generator.get_state(legacy=False)
    else:
        state = getattr(generator, "bit_generator", generator).state
    name = "BitGenerator" if isinstance(generator, np.random.BitGenerator) else ""
    return {**state, "class": name or type(generator).__name__}


def _container(node: Any) -> tuple[str | None, list[tuple[Any, Any]]]:
    if isinstance(node, dict):
        if "object" in node:
            return "object", [(_key(key), part) for key, part in node["parts"]]
        if "dict" in node:
            return "dict", [(_key(key), part) for key, part in node["dict"]]
        for what in ("list", "tuple"):
            if what in node:
                return what, list(enumerate(node[what]))
    return None, []


def _plain_node(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, complex):
        return {"complex": f"{value.real!r} {value.imag!r}"}
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    return value


def _plain(node: dict[str, str]) -> Any:
    if "float" in node:
        return float(node["float"])
    if "complex" in node:
        real, imaginary = map(float, node["complex"].split(" "))
        return complex(real, imaginary)
    if "bytes" in node:
        return base64.b64decode(node["bytes"], validate=True)
    return None


def _key_node(key: Any, path: str) -> Any:
    if isinstance(key, tuple):
        return {"tuple": [_key_node(part, path) for part in key]}
    if places.kind_of(key) is Kind.PLAIN:
        return _plain_node(key)
    raise TypeError(
        f"{places.shown(path)} is a dict with the key {key!r}, a {type(key).__qualname__}: keys in "
        "checkpoints are texts, numbers, or tuples of them"
    )


def _key(node: Any) -> Any:
    if isinstance(node, dict) and isinstance(node.get("tuple"), list):
        return tuple(map(_key, node["tuple"]))
    if isinstance(node, list):
        raise ValueError("a list stands where a key should")
    return _plain(node) if isinstance(node, dict) else node


def _dtype_name(dtype: np.dtype[Any]) -> str:
    try:
        if named_dtype(dtype.str) == dtype:
            return dtype.str
    except TypeError:
        pass
    return dtype.name  # those of ml_dtypes
