"""Elements as bytes, for caches in files: JSON that has the tree, then the arrays. No pickle."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from .errors import describe


def encode(element: Any) -> bytes:
    """A tree of dicts, lists, tuples, arrays, numbers, texts and bytes as bytes."""
    parts: list[bytes] = []
    tree = json.dumps(_written(element, parts)).encode()
    return b"".join([len(tree).to_bytes(4, "little"), tree, *parts])


def decode(data: bytes) -> Any:
    """The tree of `encode`; its arrays are read-only views of the bytes."""
    size = int.from_bytes(data[:4], "little")
    return _read(json.loads(data[4 : 4 + size]), memoryview(data), [4 + size])


def _written(x: Any, parts: list[bytes]) -> Any:
    if type(x) is dict:
        if any(type(k) not in (str, int) for k in x):
            raise TypeError(
                f"cache(path) writes dicts with texts or ints as keys, not {describe(x)}"
            )
        return {"dict": [[k, _written(v, parts)] for k, v in x.items()]}
    if type(x) is list or type(x) is tuple:
        return {type(x).__name__: [_written(v, parts) for v in x]}
    if x is None or type(x) in (bool, int, float, str):
        return {"is": x}
    if type(x) is bytes:
        parts.append(x)
        return {"bytes": len(x)}
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype == object:
        return {"objects": [_written(v, parts) for v in x.ravel()], "shape": x.shape}
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype.names is None:
        parts.append(np.asarray(x).tobytes())
        kind = "array" if isinstance(x, np.ndarray) else "scalar"
        dtype = x.dtype.str if x.dtype.kind != "V" else x.dtype.name
        return {kind: dtype, "shape": x.shape}
    raise TypeError(f"cache(path) cannot write {describe(x)}; cache() keeps elements in memory")


def _read(x: Any, data: memoryview, at: list[int]) -> Any:
    kind = next(iter(x))
    if kind == "is":
        return x["is"]
    if kind == "dict":
        return {k: _read(v, data, at) for k, v in x["dict"]}
    if kind in ("list", "tuple"):
        parts = [_read(v, data, at) for v in x[kind]]
        return parts if kind == "list" else tuple(parts)
    if kind == "bytes":
        at[0] += x["bytes"]
        return bytes(data[at[0] - x["bytes"] : at[0]])
    if kind == "objects":
        found = np.empty(len(x["objects"]), object)
        found[:] = [_read(v, data, at) for v in x["objects"]]
        return found.reshape(x["shape"])
    try:
        dtype = np.dtype(x[kind])
    except TypeError:
        import ml_dtypes

        dtype = np.dtype(getattr(ml_dtypes, x[kind]))
    count = int(np.prod(x["shape"], dtype=np.int64))
    found = np.frombuffer(data, dtype, count, at[0]).reshape(x["shape"])
    at[0] += found.nbytes
    return found if kind == "array" else found[()]
