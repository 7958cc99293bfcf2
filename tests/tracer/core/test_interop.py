"""Arrays of other libraries and of other kinds, as arguments of compiled functions and around them."""

from __future__ import annotations

import array
import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt
from jitney.runtime.dlpack import CPU, lend

VALUES = np.arange(6.0)


class WithInterface:
    def __init__(self, a: Any) -> None:
        self.a = a
        self.__array_interface__ = a.__array_interface__


class WithArray:
    """The protocol as it was before `copy=`."""

    def __init__(self, a: Any) -> None:
        self.a = a

    def __array__(self, dtype: Any = None) -> Any:
        return self.a


class WithArrayAndCopy(WithArray):
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.a, dtype, copy=copy)


class WithDlpack:
    def __init__(self, a: Any) -> None:
        self.a = a

    def __dlpack__(self, **options: Any) -> Any:
        return self.a.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.a.__dlpack_device__()


class WithSmallFloats:
    """Lends what NumPy cannot lend."""

    def __init__(self, a: Any) -> None:
        self.a = a

    def __dlpack__(self, **options: Any) -> Any:
        return lend(self.a.ctypes.data, self.a.shape, self.a.dtype, (CPU, 0), self.a)

    def __dlpack_device__(self) -> Any:
        return CPU, 0


class Sub(np.ndarray):
    pass


def fresh() -> np.ndarray[Any, Any]:
    return VALUES.copy()


def misaligned() -> np.ndarray[Any, Any]:
    a = np.zeros(8 * VALUES.size + 1, np.uint8)[1:].view(np.float64)
    a[:] = VALUES
    return a


def field() -> np.ndarray[Any, Any]:
    a = np.zeros(VALUES.size, [("a", "i1"), ("b", "f8")])["b"]
    a[:] = VALUES
    return a


def misaligned_backwards() -> np.ndarray[Any, Any]:
    a = np.zeros(16 * VALUES.size + 1, np.uint8)[1:].view(np.float64)[::-2]
    a[:] = VALUES
    return a


# Each shares its memory: what is assigned to inside a function is seen outside.
SHARED: dict[str, Callable[[], Any]] = {
    "memoryview": lambda: memoryview(fresh()),
    "array.array": lambda: array.array("d", VALUES),
    "ctypes": lambda: (ctypes.c_double * 6)(*VALUES),
    "interface": lambda: WithInterface(fresh()),
    "array with copy": lambda: WithArrayAndCopy(fresh()),
    "dlpack": lambda: WithDlpack(fresh()),
    "other byte order": lambda: VALUES.astype(">f8"),
    "other byte order, transposed": lambda: np.array([VALUES], ">f8").T[:, 0],
    "misaligned": misaligned,
    "misaligned backwards": misaligned_backwards,
    "field": field,
    "backwards": lambda: VALUES[::-1].copy()[::-1],
}
READ_ONLY: dict[str, Callable[[], Any]] = {
    "array": lambda: WithArray(fresh()),
    "bytes": lambda: memoryview(VALUES.tobytes()).cast("d"),
    "broadcast": lambda: np.broadcast_to(3.0, (6,)),
}
KINDS = {**SHARED, **READ_ONLY}


def elements(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(x.a if hasattr(x, "a") else x).astype(np.float64)


@pytest.mark.parametrize("kind", KINDS)
def test_foreign_arrays_are_arguments(kind: str) -> None:
    f = jt.jit(lambda x, y: {"z": np.sin(x) * y["scale"]})
    for _ in range(3):
        x = KINDS[kind]()
        want = np.sin(elements(x)) * 2
        np.testing.assert_allclose(f(x, {"scale": 2.0})["z"], want, rtol=1e-15)
    assert f.cache_info().misses == 1


@pytest.mark.parametrize("kind", SHARED)
def test_assignments_reach_their_memory(kind: str) -> None:
    @jt.jit
    def f(x: Any) -> Any:
        x[1:3] = x[1:3] * 10
        x += 1
        return x.sum()

    want = VALUES.copy()
    x = SHARED[kind]()
    for _ in range(3):
        want[1:3] *= 10
        want += 1
        assert f(x) == want.sum()
        np.testing.assert_array_equal(elements(x), want)


@pytest.mark.parametrize("kind", READ_ONLY)
def test_what_cannot_be_shared_cannot_be_assigned_to(kind: str) -> None:
    @jt.jit
    def f(x: Any) -> None:
        x[0] = 1

    with pytest.raises(jt.errors.ReadOnlyError, match="read-only"):
        f(READ_ONLY[kind]())


@pytest.mark.parametrize("kind", SHARED)
def test_donated_arrays_of_all_kinds(kind: str) -> None:
    f = jt.jit(lambda x: x * 2 + 1, donate_argnums=0)
    for _ in range(3):
        np.testing.assert_array_equal(f(SHARED[kind]()), VALUES * 2 + 1)


@pytest.mark.parametrize("kind", KINDS)
def test_closed_over_arrays_are_read_at_each_call(kind: str) -> None:
    v = KINDS[kind]()
    f, g = jt.jit(lambda y: np.add(y, v)), jt.jit(lambda y: y - v)
    for step in range(3):
        np.testing.assert_array_equal(f(np.ones(6)), 1 + elements(v))
        np.testing.assert_array_equal(g(np.ones(6)), 1 - elements(v))
        if kind in SHARED:
            (v.a if hasattr(v, "a") else v)[2] = 100.0 + step


def test_nested_functions_take_foreign_arrays() -> None:
    inner = jt.jit(lambda x: x * 2)
    v = array.array("d", VALUES)
    np.testing.assert_array_equal(jt.jit(lambda y: inner(v) + y)(1.0), VALUES * 2 + 1)


def test_overlapping_foreign_arrays_are_as_in_numpy() -> None:
    def f(x: Any, y: Any) -> None:
        x[:] = y * 2

    memory = np.arange(8.0)
    want = memory.copy()
    f(want[:-1], want[1:])
    jt.jit(f)(memoryview(memory)[:-1], memoryview(memory)[1:])
    np.testing.assert_array_equal(memory, want)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_small_floats_by_dlpack(name: str) -> None:
    a = np.arange(6).reshape(2, 3).astype(getattr(jt, name))
    taken = jt.from_dlpack(WithSmallFloats(a))
    assert taken.dtype == a.dtype and np.shares_memory(taken.view(np.uint8), a.view(np.uint8))
    assert not np.shares_memory(jt.from_dlpack(WithSmallFloats(a), copy=True), a)
    for x in (WithSmallFloats(a), jt.asarray(WithSmallFloats(a))):
        got = jt.jit(lambda x: x + x)(x)
        assert got.dtype == a.dtype
        np.testing.assert_array_equal(got.astype(float), 2 * a.astype(float))


def test_asarray_takes_what_only_dlpack_shows() -> None:
    x = jt.asarray(WithDlpack(VALUES))
    assert x.dtype == np.float64 and np.shares_memory(x, VALUES)


# Files


def memmap(path: Path, mode: Any, **options: Any) -> Any:
    np.arange(1000.0).tofile(path)
    return np.memmap(path, np.float64, mode, **options)


@pytest.mark.parametrize("options", [{}, {"offset": 8}, {"offset": 3, "shape": (20,)}])
def test_memory_maps_are_read_where_they_are(tmp_path: Path, options: Any) -> None:
    x = memmap(tmp_path / "x", "r", **options)
    f = jt.jit(lambda x: (x * 2).sum())
    for _ in range(3):
        assert f(x) == (np.asarray(x) * 2).sum()
    with pytest.raises(jt.errors.ReadOnlyError):
        jt.jit(lambda x: x.fill(0))(x)


def test_memory_maps_are_not_copied(tmp_path: Path) -> None:
    """A file much larger than what the function touches: a copy would read all of it."""
    size = 2**31
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(size)
    x = np.memmap(tmp_path / "sparse", np.float64, "r")
    f = jt.jit(lambda x: x[:10].sum() + x[-10:].sum())
    before = resident()
    for _ in range(3):
        assert f(x) == 0
    assert resident() - before < size // 8


def resident() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    except OSError:
        pytest.skip("this system does not tell the memory of a process in /proc")


@pytest.mark.parametrize("options", [{}, {"offset": 8}, {"offset": 3, "shape": (20,)}])
def test_assignments_reach_the_file(tmp_path: Path, options: Any) -> None:
    @jt.jit
    def f(x: Any) -> None:
        x[1:] = x[:-1] * 3

    x = memmap(tmp_path / "x", "r+", **options)
    want = np.array(x)
    for _ in range(2):
        want[1:] = want[:-1] * 3
        f(x)
    x.flush()
    again = np.memmap(tmp_path / "x", np.float64, "r", **options)
    np.testing.assert_array_equal(again, want)


def test_a_memory_map_that_is_returned_is_itself(tmp_path: Path) -> None:
    x = memmap(tmp_path / "x", "r+")
    assert jt.jit(lambda x: x)(x) is x


# Other libraries


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    f = jt.jit(lambda x: x * 2)
    t = torch.arange(6.0, dtype=torch.float64).reshape(2, 3)
    np.testing.assert_array_equal(f(t), t.numpy() * 2)
    np.testing.assert_array_equal(f(t.T), t.numpy().T * 2)
    jt.jit(lambda x: x.__setitem__(0, 7.0))(t)
    assert float(t[0, 0]) == 7
    assert f(t.bfloat16()).dtype == jt.bfloat16
    result = f(t)
    back = torch.from_dlpack(result)
    back[0, 0] = 99
    assert result[0, 0] == 99
    with pytest.raises(RuntimeError, match="detach"):
        f(t.clone().requires_grad_())


def test_jax_arrays() -> None:
    jnp = pytest.importorskip("jax.numpy")
    x = jnp.arange(6.0).reshape(2, 3)
    f = jt.jit(lambda x: x * 2)
    np.testing.assert_array_equal(f(x), np.asarray(x) * 2)
    assert f(x.astype(jnp.bfloat16)).dtype == jt.bfloat16
    with pytest.raises(jt.errors.ReadOnlyError):
        jt.jit(lambda x: x.fill(0))(x)
    np.testing.assert_array_equal(jnp.from_dlpack(f(x)), np.asarray(x) * 2)


# What is refused

REFUSED: dict[str, tuple[Any, str]] = {
    "structured": (np.zeros(3, [("mass", "f8"), ("name", "U4")]), r"x\['mass'\]"),
    "record": (np.rec.array([(1, "b")], dtype=[("a", int), ("b", "S3")]), r"x\['a'\]"),
    "record scalar": (np.zeros(1, [("a", "f8"), ("b", object)])[0], r"x\['a'\]"),
    "void": (np.zeros(3, "V3"), "uint8"),
    "object": (np.array([1, "a", None], object), r"astype\(np.float64\)"),
    "string": (np.array(["a"]), "codes"),
    "bytes": (np.array([b"a"]), "codes"),
    "variable strings": (np.array(["a"], np.dtypes.StringDType()), "codes"),
    "dates": (np.array(["2020-01-01"], "M8[D]"), r"its unit \(D\), x.astype\(np.int64\)"),
    "date": (np.datetime64("2020-01-01"), "int64"),
    "differences of dates": (np.array([1], "m8[s]"), r"\(s\)"),
    "long double": (np.zeros(2, np.longdouble), r"astype\(np.float64\)"),
    "long double scalar": (np.longdouble(2), r"astype\(np.float64\)"),
    "complex long double": (np.zeros(2, np.clongdouble), "complex128"),
    "masked": (np.ma.array(VALUES, mask=VALUES > 2), "x.mask"),
    "matrix": (VALUES.reshape(1, 6).view(np.matrix), "@"),
    "subclass": (VALUES.view(Sub), r"np.asarray\(x\)"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_refusals_name_argument_dtype_and_remedy(kind: str) -> None:
    value, remedy = REFUSED[kind]
    function = jt.jit(lambda first, table: first)
    with pytest.raises(jt.errors.ArgumentError, match=remedy) as error:
        function(1.0, {"a": [value]})
    said = str(error.value)
    assert "table['a'][0]" in said.partition("\n")[0]
    if type(value) is np.ndarray:
        assert str(value.dtype) in said


@pytest.mark.parametrize("kind", REFUSED)
def test_they_are_refused_around_the_function_too(kind: str) -> None:
    value, remedy = REFUSED[kind]
    for f in (lambda y: np.add(y, value), lambda y: y + value, lambda y: jt.stack([y, value])):
        with pytest.raises(TypeError, match=f"(?s)test_interop.*{remedy}"):
            jt.jit(f)(VALUES)


# Anything at all

LEAVES = st.one_of(
    st.sampled_from(
        [
            *(
                "f4",
                "f8",
                ">f8",
                ">f4",
                "i1",
                ">i2",
                "u8",
                "?",
                "c8",
                ">c16",
                "f2",
                "O",
                "U3",
                "S2",
            ),
            *("M8[s]", "m8[D]", "V5", "g", "T", "i4,f8", "f8,f8"),
        ]
    )
    .flatmap(
        lambda dtype: st.tuples(
            st.just(dtype),
            st.lists(st.integers(0, 4), max_size=3),
            st.integers(0, 3),
            st.sampled_from([None, Sub, np.matrix, np.ma.MaskedArray]),
        )
    )
    .map(lambda parts: strange(*parts)),
    st.binary(max_size=5),
    st.builds(bytearray, st.binary(max_size=5)),
    st.builds(lambda b: memoryview(b), st.binary(max_size=5)),
    st.sampled_from([None, 3, 2.5, True, 1j, 2**70, "s", range(3), {1, 2}, object(), len]),
    st.builds(WithArray, st.sampled_from([VALUES, np.zeros(3, "O"), np.zeros(2, ">i4"), 3])),
    st.builds(WithDlpack, st.sampled_from([VALUES, np.zeros((2, 0)), VALUES[::2]])),
)


def strange(dtype: str, shape: list[int], layout: int, cls: Any) -> Any:
    a = np.zeros([n + 1 for n in shape] if layout else shape, dtype)
    if a.dtype.kind in "iufc?":
        a += np.arange(a.size, dtype=np.uint8).reshape(a.shape).astype(a.dtype)
    if layout == 1:
        a = a.T[(..., *(slice(None, None, -1) for _ in shape))]
    elif layout == 2 and shape:
        a = a[1:]
    elif layout == 3 and a.dtype.kind in "iufc?":
        raw = np.zeros(a.nbytes + 1, np.uint8)[1:].view(a.dtype).reshape(a.shape)
        raw[...] = a
        a = raw
    if cls is not None and a.ndim == 2:
        a = a.view(cls)
    return a


@given(LEAVES, LEAVES)
@settings(max_examples=50, deadline=None)
def test_any_argument_gives_numpys_result_or_a_refusal(x: Any, y: Any) -> None:
    """Whatever is passed, a call gives what the function gives for `np.asarray` of it, or TypeError."""
    f = jt.jit(lambda x, y: (x, np.positive(y) if jt.isdtype(y.dtype, "numeric") else y))
    try:
        got = f(x, y)
    except (TypeError, AttributeError):
        return
    if isinstance(y, (np.ndarray, bytearray, memoryview, WithArray, WithDlpack)):
        want = np.asarray(y.a if hasattr(y, "a") else y)
        assert got[1].dtype == want.dtype.newbyteorder("=")
        np.testing.assert_array_equal(got[1], want)
