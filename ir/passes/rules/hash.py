"""Content keys: what makes two attributes, or two graphs, the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...blake2 import blake2b
from ...graph import Graph, Op, Value
from ...types import Type, dtype_name

_SMALL = 1024  # arrays up to so many bytes are compared by content when ops are merged


def canonical_key(graph: Graph, *, lines: bool = False) -> bytes:
    """A 32-byte digest of what `graph` computes, for caches.

    Independent of names, of the order of attributes, and of source lines; with `lines=True` source
    lines and scopes count (error messages of compiled code name them). Constants count by content,
    to the bit.
    """
    digest = blake2b(digest_size=32)
    parts: list[str] = []
    numbers: dict[Value, int] = {}
    types: dict[Type, str] = {}

    def type_text(type: Type) -> str:
        text = types.get(type)
        if text is None:
            text = types[type] = str(type)
        return text

    for value in graph.params:
        numbers[value] = len(numbers)
        parts.append(type_text(value.type))
    for op in graph.ops:
        parts.append(f"{op.definition.name}({','.join([str(numbers[v]) for v in op.operands])})")
        for name in sorted(op.attrs):
            parts.append(f"{name}={_attribute_text(op.attrs[name])}")
        for region in op.regions:
            parts.append(canonical_key(region, lines=lines).hex())
        for value in op.results:
            numbers[value] = len(numbers)
            parts.append(type_text(value.type))
        if lines and op.loc is not None:
            parts.append(f"@{op.loc.file}:{op.loc.line}{op.loc.named}{op.loc.knobs or ''}")
    parts.append(f"return {','.join([str(numbers[v]) for v in graph.outputs])}")
    digest.update("\n".join(parts).encode())
    return digest.digest()


def _attribute_text(value: Any) -> str:
    """Like `repr`, but exact for arrays and quick for dtypes."""
    if isinstance(value, np.ndarray):
        content = blake2b(value.tobytes(), digest_size=32).hexdigest()
        return f"array({value.shape},{dtype_name(value.dtype)},{content})"
    if isinstance(value, np.dtype):
        return dtype_name(value)
    if isinstance(value, tuple):
        return f"({','.join([_attribute_text(v) for v in value])})"
    return repr(value)


def attributes_key(op: Op) -> Any:
    """A hashable key: equal for two ops of one definition only if their attributes are the same.

    Floats are told apart by their bits (0.0 and -0.0 differ, NaN equals itself). Arrays are
    compared by content if small, else by identity.
    """
    if not op.attrs:
        return ()
    return tuple([(name, _attribute_key(op.attrs[name])) for name in sorted(op.attrs)])


def _attribute_key(value: Any) -> Any:
    if isinstance(value, float):
        return ("float", float(value).hex())
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, tuple):
        return tuple([v if type(v) is int else _attribute_key(v) for v in value])
    if isinstance(value, np.ndarray):
        if value.nbytes <= _SMALL:
            return (value.shape, value.dtype, value.tobytes())
        return ("array", id(value))  # alive as long as its op, and longer than the key
    return value
