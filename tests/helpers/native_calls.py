"""What the tests of native calls share: whether a call was native, equality, random arguments."""

from __future__ import annotations

from typing import Any, NamedTuple

import hypothesis.extra.numpy as hnp
import numpy as np
from hypothesis import strategies as st

import jitney as jt


def native_hits(f: Any) -> int:
    entries = [e for bucket in f._buckets.values() for e in bucket.entries]
    return sum(program.hits for e in entries for program in e.programs)


def warm(f: Any, *args: Any, **kwargs: Any) -> Any:
    """Call until the call is native; the result of a native one."""
    f(*args, **kwargs)
    before = native_hits(f)
    result = f(*args, **kwargs)
    assert native_hits(f) == before + 1, "the second call should have been native"
    return result


def same(got: Any, want: Any) -> None:
    """Equal in structure, types, dtypes and values."""
    assert type(got) is type(want)
    if isinstance(want, dict):
        assert list(got) == list(want)
        for key in want:
            same(got[key], want[key])
    elif isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            same(a, b)
    else:
        np.testing.assert_array_equal(got, want)
        if isinstance(want, (np.ndarray, np.generic)):
            assert got.dtype == want.dtype and got.shape == want.shape


class Pair(NamedTuple):
    first: Any
    second: Any


X = np.arange(6.0)


class Options:  # hashable by identity
    scale = 3.0


class Model:
    def __init__(self) -> None:
        self.w = np.ones(6)
        self.rate = 0.5
        self.sizes = [1, 2]

    @jt.jit
    def forward(self, x: Any, scale: Any = 1.0) -> Any:
        return x * self.w * self.rate * len(self.sizes) * scale


# Random arguments


_DTYPES = [np.dtype(name) for name in ("f8", "f4", "i8", "i4", "u1", "?", ">f8", ">i4")]


@st.composite
def leaves(draw: st.DrawFn) -> Any:
    kind = draw(st.sampled_from(["array", "array", "array", "float", "int", "bool", "generic"]))
    if kind == "float":
        return draw(st.floats(-8, 8))
    if kind == "int":
        return draw(st.integers(-8, 8))
    if kind == "bool":
        return draw(st.booleans())
    dtype = draw(st.sampled_from(_DTYPES))
    if kind == "generic":
        return dtype.newbyteorder("=").type(draw(st.integers(0, 5)))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    layout = draw(st.sampled_from(["c", "f", "reversed", "strided", "misaligned", "frozen"]))
    if layout == "f":
        array = np.asfortranarray(array)
    elif layout == "reversed" and shape:
        array = array[::-1]
    elif layout == "strided" and shape:
        array = np.repeat(array, 2, axis=-1)[..., ::2]
    elif layout == "misaligned" and dtype.itemsize > 1:
        raw = np.zeros(array.nbytes + 1, np.uint8)[1:].view(dtype).reshape(shape)
        raw[...] = array
        array = raw
    elif layout == "frozen":
        array.setflags(write=False)
    return array


trees = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.builds(Pair, inner, inner),
        st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), inner, max_size=3),
        st.none(),
    ),
    max_leaves=6,
)
