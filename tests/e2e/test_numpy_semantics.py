"""Small programs whose answer is NumPy's to the last detail: values, dtypes, kinds of results, errors.

A program is the text of a function of a, b, c, d: statements, and what it returns. Where NumPy raises,
compiled code raises what the same `except` catches, while it is traced or when it runs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import check, check_raises

import jitney as jt

A = np.array
NAN = np.nan

COMPLEX = A([complex(x, y) for x in (0, 1, -1, NAN) for y in (1, 0, NAN)])

Program = tuple[Any, ...]

AXES: list[Program] = [  # in any order, and with companions that have fewer
    ("np.gradient(a, axis=(1, 0))", A([[0.0, 1], [4, 9]])),
    ("np.gradient(a, 1.0, 2.0, axis=(1, -2))", A([[0.0, 1], [4, 9]])),
    ("np.gradient(a, [0, 1.0, 3], 2.0, axis=(-1, 0))", A([[0.0, 1, 5], [4, 9, 3]])),
    ("np.gradient(a, b)", A([[0.0, 1], [4, 9]]), A([0.0, 1])),
    ("np.gradient(a, axis=(0, 0))", A([[0.0, 1], [4, 9]])),
    (
        "np.average(a, axis=(1, 0), weights=b)",
        np.arange(12.0).reshape(2, 2, 3),
        A([[0, 1], [2, 4]]),
    ),
    (
        "np.average(a, axis=(2, 0), weights=b)",
        np.arange(12.0).reshape(2, 2, 3),
        np.arange(6).reshape(3, 2),
    ),
    ("np.average(a, axis=(2, 0), weights=b)", np.arange(12.0).reshape(2, 2, 3), np.ones((2, 3))),
    *(
        (
            f"np.{name}(a, {q}, axis=(2, 0), weights=b, method='inverted_cdf')",
            np.sin(np.arange(12.0)).reshape(2, 2, 3),
            np.arange(6.0).reshape(3, 2),
        )
        for name, q in (("quantile", 0.3), ("percentile", 80))
    ),
    (
        "np.linalg.norm(a, 1, axis=(1, 0)), np.linalg.norm(a, np.inf, axis=(1, 0))",
        A([[1.0, 2], [3, 5]]),
    ),
    (
        "np.sum(a, axis=(2, 0)), np.mean(a, axis=(-1, 0)), np.ptp(a, (1, -3))",
        np.arange(12.0).reshape(2, 2, 3),
    ),
    ("np.sum(a, axis=(0, -2))", np.ones((2, 3))),
    ("np.sum(a, axis=[0])", np.ones((2, 3))),
    (
        "np.trapezoid(a, b, axis=-2)",
        np.arange(24.0).reshape(2, 3, 4) ** 2,
        A([[0, 1, 2, 4.0]] * 3).cumsum(0),
    ),
    ("np.trapezoid(a, b, axis=0)", np.arange(6.0).reshape(2, 3) ** 2, A([[0.0, 1, 2], [1, 3, 5]])),
    ("np.trapezoid(a, b, axis=1)", np.arange(24.0).reshape(2, 3, 4), np.ones((3, 4))),
    ("np.geomspace(a, b, 4, axis=1)", A([1.0, -2]), A([16.0, -8])),
    ("np.geomspace(a, b, 4, axis=-1)", A([1.0, 2]), A([[16.0, 8]] * 3)),
    ("np.geomspace(a, b, 3, False, axis=-2)", A([1.0, 2]), A([[16.0, 8]] * 3)),
    ("np.geomspace(a, b, 1), np.geomspace(a, b, 0)", 1j, 4.0),
    ("np.geomspace(a, b, 4)", A([0.0, 2]), A([16.0, 8])),
    ("np.logspace(a, 2.0, 4, base=b)", 1.0, A([2.0, 3])),
    ("np.logspace(a, 2.0, 4, base=b, axis=-1)", A([1.0, 2]), A([2.0, 3])),
    *(
        (f"np.{f}axis={axis})", x)
        for f in ("take(a, [0], ", "compress([True], a, ", "nanmax(a, ")
        for axis in (0, -1, "None")
        for x in (A(5.0), np.arange(6.0).reshape(2, 3))
    ),
    ("np.nanmax(a, axis=(1, 0))", A([[1.0, NAN], [NAN, NAN]])),
    (
        "np.roll(a, (1, 2, 3), axis=(0, 1, 0)), np.roll(a, 1.9), np.roll(a, -1.9, 1)",
        np.arange(6).reshape(2, 3),
    ),
    (
        "np.roll(a, b), np.roll(a, b, 0), np.roll(a, [b, 1], (-1, 0))",
        np.arange(6).reshape(2, 3),
        1.9,
    ),
    ("np.roll(a, [[1]], 0)", np.arange(3)),
]

INSERTED: list[Program] = [
    *(("np.insert(a, b, 99)", np.arange(10), place) for place in (0, -1, -3, -10, -11, 10, 11)),
    *(
        (f"np.insert(a, {place}, 99)", np.arange(10))
        for place in (-3, -11, [-3], [-1, 2, 2], slice(1, 7, 3))
    ),
    ("np.insert(a, b, c, axis=1)", A([[1.0, 2], [3, 4]]), -1, A([9.0, 8])),
    ("np.insert(a, [1], [1, 2, 3], axis=1)", A([[1, 1], [2, 2], [3, 3]])),
    ("np.insert(a, 1, [1, 2, 3], axis=1)", A([[1, 1], [2, 2], [3, 3]])),
    ("np.insert(a, [1], [[1], [2], [3]], axis=1)", A([[1, 1], [2, 2], [3, 3]])),
    ("np.insert(a, np.array([1]), [1.0, 2.0], axis=1)", A([[1.0, 2], [3, 4]])),
    ("np.insert(a, np.array([True, False]), 9)", A([1.0, 2])),
    ("np.insert(a, [], []), np.insert(a, [], 5)", A([0.0, 1])),
    ("np.insert(a, [[1]], 5)", A([0.0, 1])),
    *(
        ("np.insert(a, b, c, axis=-2)", np.arange(12).reshape(3, 4), A(places), A(values))
        for places, values in (
            *(([2, 1], [[9.7], [8]]), ([1, 1], 7), ([-1, 0], 7), ([3, 0], 7), ([], 7), ([4, 0], 7)),
            *(([-1], [[1, 2, 3, 4], [5, 6, 7, 8]]), ([3, 3, 1], 7), ([1.0, 2], 7)),
        )
    ),
    *(
        ("np.delete(a, b, axis=-1), np.delete(a, b)", np.arange(12).reshape(3, 4), A(places))
        for places in ([1, 2], [1, 1, -1], [[0, 1], [2, 1]], [4], [1.0], [True, False])
    ),
    ("np.delete(a, a > 2)", np.arange(6)),
    ("np.ravel_multi_index((a, 0), (0, 6)), np.ravel_multi_index((0, a), (0, 6))", A([], int)),
    ("np.ravel_multi_index((a, 0), (0, 6))", A([0])),
    *(
        (f"np.{name}(a, b, out=c); c", A([[0, 1, 2]]), A([[1, 1, 2]]), np.zeros(shape, int))
        for name, shape in (("vecdot", (5, 4)), ("vecdot", (5, 4, 3)), ("vecdot", (2,)))
    ),
    *(
        ("np.matmul(a, b, out=c); c", A([[0, 1, 2]]), np.ones((3, 2), int), np.zeros(shape, int))
        for shape in ((1, 2), (4, 1, 2), (3, 2), (4, 3, 2), (2, 1, 1))
    ),
    ("v = np.meshgrid(a, copy=False)[0]; v += 1; a, v", np.arange(3)),
    *(
        (f"np.unique(a, axis={axis}, {more})", x)
        for x in (A([[0, 1, 0], [0, 1, 0], [1, 0, 0]]), np.zeros((2, 0)), np.zeros((0, 2)))
        for axis, more in (
            (0, "return_index=True, return_inverse=True"),
            (-1, "return_counts=True"),
        )
    ),
    ("np.unique(a, axis=1).sum(axis=0), np.unique(a, axis=2)", A([[0, 1], [1, 0]])),
    ("np.setdiff1d(a, b, assume_unique=True), np.setdiff1d(a, b)", A([3, 2, 1]), A([7, 5, 2])),
    *(
        ("np.intersect1d(a, b, return_indices=True)", x, y)
        for x, y in (
            *((A([4, 1, 2, 3, 2]), A([2, 1, 4, 6, 4])), (A([1.0, NAN]), A([NAN, 1.0]))),
            *((A([[1, 2], [2, 1]]), A([2])), (A([], int), A([2])), (A([1]), A([2]))),
        )
    ),
    *(
        (f"np.trim_zeros(a, {trim!r}, axis={axis})", x)
        for x in (A([[0, 0, 0], [0, 1, 0], [0, 2, 0]]), np.zeros((2, 3)), np.zeros((0, 3)))
        for trim, axis in (("fb", None), ("F", -1), ("b", (1, 0)), ("bf", ()), ("front", 0))
    ),
    *(("np.trim_zeros(a), np.trim_zeros(a, 'b')", x) for x in (A(1.0), A([0, 3, 0, 0]), A([]))),
]

EDGES: list[Program] = [
    *(
        (f"np.digitize(a, {bins}{right})", A([0, 9.5, 3.5, 8, 3, NAN]), A(values))
        for values in (
            [8, 4.5, 3, 1],
            [1, 3, 4.5, 8],
            [3.0, 3, 3],
            [8, 8, 3, 3],
            [1, 8, 3],
            [3.0],
            [],
        )
        for bins in ("b", f"np.array({values})")
        for right in ("", ", right=True")
    ),
    ("np.digitize(a, b)", A([1, 2]), A([1j, 2])),
    ("np.interp(a, [3.0], [4.0])", A([NAN, 2, 5])),
    ("np.interp(a, [3.0, 4.0], [4.0, 5.0])", A([NAN, 2, 5])),
    ("np.interp(a, b, c)", 0.5, A([0, 1]), A([0, complex(-np.inf, 0)])),
    ("np.interp(a, b, c, left=2, right=1j)", A([-1, 0.5, 3]), A([0, 1]), A([0, 2 + 1j])),
    ("np.interp(a, b, c, period=360)", 0, A([0]), A([1, 2])),
    ("np.interp(a, b, c, period=3.0)", A([-1.0, 7]), A([5.0, 0, 1]), A([1j, 2, 3])),
    ("np.histogram(a, b)[0]", A([0.1, 0.5, 0.7]), A([0.0, 0.5, 0.7])),
    ("np.histogram(a, b)", A([1.0]), A([3, 2, 1])),
    ("np.histogram(a, np.array(3))[0]", A([1.0, 2])),
    ("np.histogram(a, 3, (0, b)), np.histogram_bin_edges(a, 3, (0, b))", A([0.1, 0.5]), 0.7),
    ("np.histogram_bin_edges(a, 3, range=b)", A([0.1, 0.5]), A([0.5, 0.5])),
    ("np.histogram(a, 3, (0, b))", A([0.1, 0.5]), -0.7),
    ("np.histogram(a, 3, (0, b))", A([0.1, 0.5]), NAN),
    ("np.histogram(a, range=[np.nan, 0.75])", A([1.0])),
    ("np.histogram(a, 2)", A([1.0, NAN, 5])),
    ("np.histogram(a, 1, range=np.array([1.0000001, 2], np.float32))", A([1.0], np.float16)),
    ("np.histogram(a, 1, range=b)", A([1.0], np.float16), A([1.0000001, 2], np.float32)),
    ("np.histogram(a, 2, weights=b)", A([1.0, 2]), A([1.0])),
    ("np.histogram2d(a, b, np.array([6, 5]))", A([0.1, 0.5]), A([0.2, 0.3])),
    ("np.histogram2d(a, b, np.array([[1, 2, 3], [1, 2, 3]]))", A([1, 2]), A([1, 2])),
    ("np.histogram2d(a, b, c)", A([1, 2]), A([1, 2]), A([1.0, 1.5, 3])),
    ("np.histogram2d(a, a, np.array([4]))", A([1.0, 2])),
    ("np.histogramdd(a, np.array([2, 3]))", A([[1.0, 2], [3, 4]])),
    ("np.histogramdd(a, [[1, 2, -3], 1])", A([[1.0, 2]])),
    ("isinstance(np.histogramdd(a, 2)[1], list)", A([[1.0, 2]])),
    ("np.histogram2d(a, a, weights=b)", A([1.0, 2]), A([1j, 2])),
]

INDICES: list[Program] = [
    *(
        (f"np.{call}", np.arange(3), A([1], np.uint64), A([0, 1.7]), A([True, False]))
        for mode in ("raise", "clip", "wrap", None)
        for index in ("b", "c", "d", "[1.0]", "[]", "True")
        for call in (
            f"take(a, {index}, mode={mode!r})",
            f"choose({index}, [a, a], mode={mode!r})",
            f"put(a, {index}, 9, mode={mode!r}); a",
        )
    ),
    *(
        (f"np.repeat(a, {counts})", np.arange(3), A([1], np.uint64), A([0, 1.0, 2]))
        for counts in ("b", "c", "[1.0, 2.0, 0.0]", "True", "2.0")
    ),
    *(
        (f"np.searchsorted(a, b, '{side}')", np.sort(COMPLEX), COMPLEX)
        for side in ("left", "right")
    ),
    ("np.place(a, b, []); a", A([1.0, 2]), A([0, 0])),
    ("np.place(a, b, []); a", A([1.0, 2]), A([0, 1])),
    ("a.conjugate(b), b", A([1j]), A([0j])),
    ("a.choose(b, c)", A([0, 1]), A([5, 6]), A([7, 8])),
    ("a.choose(b, c, d)", A([0, 1, 2]), A([5, 6, 4]), A([7, 8, 3]), A([1, 1, 1])),
    ("a.choose([b, c], mode='wrap')", A([0, 1, 2]), A([5, 6, 4]), A([7, 8, 3])),
    ("np.choose(a, (b, c))", A([True, False]), A([1, 2]), A([3, 4])),
]

STATISTICS: list[Program] = [
    *(
        (f"np.{name}(a, dtype={dtype})", x)
        for name in ("mean", "var", "std", "nanmean", "nanvar", "nanstd")
        for dtype in ("int", "bool", "np.uint8", "np.complex64")
        for x in (A([1.0, 2, 5]), A([[1, 2, 5]]), A([1, 2 + 3j, 5]), A([True, False, True]))
    ),
    *(
        (f"np.{name}(a, axis=0, ddof={ddof})", x)
        for name in ("nanvar", "nanstd")
        for ddof in (1, 2, 2.5, 3)
        for x in (A([1.0, NAN, 2]), A([[1.0, NAN, 2]] * 3), A([1, 2]))
    ),
    ("np.nanargmin(a)", A([NAN, NAN])),
    ("np.nanargmax(a, axis=1)", A([[1.0, 2], [NAN, NAN]])),
    ("np.nanargmax(a, axis=0)", A([[1.0, 2], [NAN, NAN]])),
    ("np.average(a, weights=b)", A([1.0, 2]), A([1.0, -1])),
    ("np.average(a, axis=1, weights=b)", A([[1.0, 2]]), A([1.0, -1])),
    ("np.signbit(np.sum(a, initial=b))", np.zeros(0), np.float64(-0.0)),
    ("np.sum(a, axis=0, initial=2), np.prod(a, axis=0, initial=2)", np.zeros((0, 3))),
    ("np.percentile(a, np.float64(50)), np.percentile(a, 50)", A([1, 2, 3], np.float32)),
    ("np.percentile(a, [])", np.arange(3)),
    ("np.quantile(a, np.zeros((1, 1, 1)))", np.arange(3)),
    ("np.quantile(a, 0.999)", np.arange(50001, dtype=np.float16)),
    ("np.quantile(a, b)", A([1.0, 2]), 1.5),
    ("np.quantile(a, 0.5, weights=b, method='inverted_cdf')", A([1.0, 2]), A([1.0, -1])),
    ("np.quantile(a, 0.5, weights=b, method='inverted_cdf')", A([1.0, 2]), A([0.0, 0])),
    ("np.percentile(a, 50, weights=[1.0, 1, 1], method='inverted_cdf')", A([1.0, 2, 3])),
]

KINDS: list[Program] = [  # dtypes, and what are numbers of Python
    ("a[0] = b; a", np.ones(3, bool), np.zeros((1, 1))),
    ("np.real(a), np.imag(a)", True),
    ("np.array_equal(a, a), np.allclose(a, a), np.array_equiv(a, a)", A([1.0])),
    ("np.array_equal(a, a[:0]), np.array_equiv(a, b)", A([1.0]), np.ones((0, 2))),
    ("~np.allclose(a, a)", A([1.0])),
    ("np.concatenate([a, 1.0], axis=None), np.append(a, 2), np.append(a, [2])", A([1], np.float32)),
    ("np.concatenate([a, 1.0], axis=None)", np.float32(1)),
    ("np.concatenate([a, [b]], axis=None), np.concatenate([a, b], axis=None)", A([1], np.int8), 2),
    ("np.isclose(a, 2, atol=0, rtol=0.4999999999999999)", np.float32(1)),
    (
        "np.isclose(a, b), np.isclose(a, 1.0, rtol=c)",
        A([1, 2], np.int8),
        A([-128, 2], np.int8),
        A([1, 0.5]),
    ),
    ("np.less(a, 3), np.equal(a, a), np.greater_equal(3, a)", 5),
    ("[np.not_equal(a, i) for i in range(3)]", 1),
    ("a ** 2, np.power(a, 2), a ** 3", A([True, False])),
    ("a ** 2, a ** 1", np.True_),
    ("np.sinc(a)", A([0, 1], np.float16)),
    (
        "np.correlate(a, b, 'full'), np.correlate(b, a), np.convolve(a, b)",
        A([True, False]),
        A([True, True, False]),
    ),
    ("np.correlate(a, b)", np.zeros(0), A([1.0, 2])),
    ("np.correlate(a, b)", np.ones((2, 2)), A([1.0, 2])),
    ("jt.array([a, a + 1], dtype=np.float32), jt.asarray([0, a], 'f4'), jt.array([[a]], float)", 1),
    ("a + 2**70, np.maximum(a, 2**70), a < 2**70", A([1.0, 2], np.float32)),
    ("a + 2**70", A([1, 2])),
    ("np.copyto(a, 10**64, casting='unsafe'); a", np.ones(1, np.float32)),
    ("jt.eye(3, 4, a), jt.tri(3, 4, a), jt.eye(2, k=-a)", 1),
    ("np.piecewise(a, b, [1, 2]), np.piecewise(a, b, [1])", A([1.0, 2]), True),
    ("np.piecewise(a, a > 0, [1, 2])", A(1.0)),
    ("np.piecewise(a, [a > 0, a > 1], [lambda v: v, 1, 5])", A([-1, 1.0, 2])),
    (
        "np.piecewise(a, [[True, False]], [1, 2]), np.piecewise(a, [True, False], [1, 2])",
        A([1.0, 2]),
    ),
    ("np.piecewise(a, [b], [1])", A([1.0, 2]), True),
    ("np.rollaxis(a, 0, 3), np.rollaxis(a, 1, -2)", np.ones((1, 2, 3))),
    ("np.rollaxis(a, 0, -4)", np.ones((1, 2, 3))),
    ("np.rollaxis(a, 0, 4)", np.ones((1, 2, 3))),
    ("np.convolve(a, a, None)", np.ones(2)),
]

UFUNCS: list[Program] = [
    ("np.add(a, 4, signature=(np.float64, np.float64, None))", np.int64(3)),
    ("np.add(a, 4, sig=('f8', None, None)), np.add(a, 2, sig='dd->d')", A([1], np.float32)),
    ("np.add(a, b, sig=('e', 'd', None))", np.float16(1), np.uint64(2)),
    ("np.add(a, 0.5, sig='i', casting='unsafe')", A([0.0, 1])),
    ("np.add(a, 4.0, casting='equiv')", np.ones(3, np.float32)),
    ("np.add(a, a, casting='equiv'), np.add(a, 4.0, casting='no')", np.ones(3, np.float32)),
    ("np.subtract.reduce(a), np.add.reduceat(a, [0])", A([1, 4e-4, 4e-4, 4e-4], np.float16)),
    ("np.divide.reduce(a[None], axis=1, keepdims=True)", A([1, 0.3, 0.7], np.float16)),
    ("np.pow(a, -1), a ** -2, np.reciprocal(a), 1 / a, a ** 2", A([0j, 2j])),
    ("np.add.accumulate(a, axis=None), np.add.reduceat(a, [0, 1], axis=None)", np.arange(3)),
    ("np.add.accumulate(a, axis=None)", np.ones((2, 2))),
    ("np.equal.reduce(a, dtype=bool), np.less.reduce(a, dtype=bool)", A([0, 2, 1])),
    ("np.equal.accumulate(a, dtype=bool), np.equal.reduceat(a, [0, 1], dtype=bool)", A([0, 1, 1])),
    ("np.vecdot(a, a, axes=[0, 0], keepdims=True), np.vecdot(a, a, axis=0)", np.ones((3, 2))),
    ("np.vecdot(a, a, axes=[0, 0, -1])", np.ones((3, 2))),
    *(
        ("a @= b; a", np.ones(m, p), np.ones(n))
        for m, n, p in (
            ((3,), (3,), float),
            ((3, 3), (3,), float),
            ((3, 3), (3, 1), float),
            ((3,), (3, 3), float),
            ((2, 3, 3), (3, 3), float),
            ((3, 3), (2, 3, 3), float),
            ((3,), (3, 2), float),
        )
    ),
]

REFUSED: list[Program] = [  # by NumPy, which says why
    *(
        (f"np.{name}(a, kind={kind})", A([2, 1, 1]))
        for name in ("sort", "argsort")
        for kind in ("'nonsense'", "''", "1", "'Quick'", "'stable', stable=True")
    ),
    *(
        (f"np.{name}(a, 0, kind={kind})", A([2, 1, 1]))
        for name in ("partition", "argpartition")
        for kind in ("'quicksort'", "None")
    ),
    *(
        (f"np.partition(a, {kth})[1]", A([2, 1, 3]))
        for kth in ("1.0", "[[1]]", "True", "3", "-4", "[]", "[0, 5]")
    ),
    *(("np.partition(a, b)[1]", A([2, 1, 3]), kth) for kth in (1, 3, 1.0, A([1, 5]))),
    *(
        (f"np.searchsorted(a, b, sorter={sorter})", A([5, 2, 7]), 4)
        for sorter in (
            "[0, 1, 2, 3]",
            "[-1, 0, 1]",
            "[0.0, 1, 2]",
            "[]",
            "[[0, 1, 2]]",
            "[True] * 3",
            "[1, 0, 2]",
        )
    ),
    ("np.searchsorted(a, b, sorter=c)", A([5, 2, 7]), 4, A([-1, 0, 1])),
    *(
        (text, A([x]))
        for x in (1.5, 1, True, 9)
        for text in (
            "np.unravel_index(a, (2, 3))",
            "np.unravel_index(a, ())",
            "np.ravel_multi_index((a, a), (5, 3))",
            "np.ravel_multi_index((a, a), (3, 0), mode='wrap')",
            "np.ravel_multi_index((a, a), (9, 9), mode=None)",
        )
    ),
    ("np.unravel_index(a, ())", A(0)),
    *(
        (f"np.isin(a, [1, 2], kind='{kind}')", x)
        for kind in ("quicksort", "table", "sort")
        for x in (np.arange(3.0), np.arange(3))
    ),
    ("np.pad(a, 1, 'empty', constant_values=0).size", np.arange(3)),
    ("np.pad(a, 0, 'minimum', stat_length=0)", np.ones(2)),
    ("np.unpackbits(a, count=-20)", A([1, 2], np.uint8)),
    ("np.reshape(a, (True, -1))", np.ones(2)),
    ("jt.asarray_chkfinite(a, float)", A([np.inf])),
    ("np.cov(a, fweights=b)", A([[0, 1, 2], [2, 1, 0]]), A([-1, -1, -1])),
    *(
        (f"a[{index}] = {value}; a", np.ones(3), 1, A([5.0]))
        for index in ("0", "b", "np.array(0)", "[0]", "0:1", "...")
        for value in ("c", "[5.0]", "5", "c[0]")
    ),
    ("a[()] = b; a", A(1.0), A([5.0])),
    ("a[...] = b; a", A(1.0), A([5.0])),
    ("a[0, b] = c; a", np.ones((2, 2)), -1, A([[5.0]])),
    ("np.polymul([], a)", A([1.0])),
    *(
        (f"np.convolve(a, a, {mode}), np.correlate(a, a, {mode})", A([1.0, 2]))
        for mode in (0, 1, 2, 3, "'f'")
    ),
    ("[1, 2] * a", 2.5),
    ("[1, 2] * a", A([2, 3])),
    ("[1, 2] * a.size, a.shape[0] * (0,)", A([2, 3])),
]

TABLES = {
    "axes": AXES,
    "inserted": INSERTED,
    "edges": EDGES,
    "indices": INDICES,
    "statistics": STATISTICS,
    "kinds": KINDS,
    "ufuncs": UFUNCS,
    "refused": REFUSED,
}


def function(text: str, count: int, name: str = "np") -> Callable[..., Any]:
    """The function of a program; `name` is the module that stands for jt's functions in NumPy."""
    *lines, last = text.split("; ")
    body = "".join(f"    {line}\n" for line in [*lines, f"return {last}"])
    space = {"np": np, "jt": jt}
    exec(f"def f({', '.join('abcd'[:count])}):\n{body}", space)
    made: Callable[..., Any] = space["f"]
    return made


def test_what_is_repeated_as_often_as_a_traced_number_says() -> None:
    assert jt.jit(lambda x: [0] * int(x[0]))(np.array([3])) == [0, 0, 0]
    for count in (3, np.int64(3), True):
        assert jt.jit(lambda n: [0] * n)(count) == [0] * count


def test_a_power_with_a_modulus() -> None:
    assert jt.jit(lambda n: pow(int(n[0]), 3, 5))(np.array([2])) == 3
    assert jt.jit(lambda n: pow(n, 3, 5))(2) == 3
    with pytest.raises(ValueError, match="first coefficient"):
        jt.jit(np.roots)(A([0.0, 1, 2]))


def test_few_floats_as_uint32() -> None:
    """Out of range they keep the low bits of an int64, as what NumPy's groups of four leave does."""
    with np.errstate(invalid="ignore"):
        for values in ([6565996657.0, -3e9, 5e9], [1e19, NAN], -5.0, [3e9, 2.5, -1.5]):
            for dtype in (np.float64, np.float32):
                x = A(values, dtype)
                got = jt.jit(lambda x: x.astype(np.uint32))(x)
                np.testing.assert_array_equal(got, x.astype(np.uint32))


def test_complex_numbers_of_python_take_a_float64_for_a_float() -> None:
    x = np.float64(1.5)
    for f in (lambda x: 2j * x, lambda x: 2j - x, lambda x: x * 2j, lambda x: np.exp(x) + 2j):
        got = jt.jit(f)(x)
        assert got == f(x) and type(got) is type(f(x))
    for other in (np.float32(1.5), A(1.5), A([1.5])):
        assert type(jt.jit(lambda x: 2j * x)(other)) is type(2j * other)


def test_arrays_compared_with_none_and_text() -> None:
    for other in (None, "a", b"b"):
        for x in (A([1.0, 2.0]), A(1.0), np.zeros((0, 2), bool)):
            for f in (
                lambda x, o=other: x == o,
                lambda x, o=other: x != o,
                lambda x, o=other: o == x,
            ):
                got, want = jt.jit(f)(x), f(x)
                assert type(got) is type(want)
                np.testing.assert_array_equal(got, want, strict=True)
        assert jt.jit(lambda x, o=other: x == o)(np.float64(1)) is False


def test_nothing_is_written_to_what_is_read_only() -> None:
    def read_only(*shape: int) -> Any:
        x = np.zeros(shape)
        x.flags.writeable = False
        return x

    cases: list[tuple[Callable[[Any], Any], Any]] = [
        (lambda x: np.put(x, [], 1.0), (3,)),
        (lambda x: x.put([0], []), (3,)),
        (lambda x: np.put(x, [], 1.0), (0,)),
        (lambda x: np.fill_diagonal(x, 1.0), (0, 0)),
        (lambda x: np.fill_diagonal(x, 1.0), (0, 3)),
    ]
    for f, shape in cases:
        for g in (f, jt.jit(f)):
            with pytest.raises(ValueError, match="read-only"):
                g(read_only(*shape))
        x = np.zeros(shape)
        jt.jit(f)(x)
        assert not x.any()


def put_into(x: Any, value: Any) -> list[Callable[[], Any]]:
    """Ways of putting a number into an array."""
    return [
        lambda: np.put(x, [0], value),
        lambda: np.place(x, x > 0, value),
        lambda: np.putmask(x, x > 0, value),
        lambda: np.copyto(x, value, casting="unsafe"),
        lambda: np.fill_diagonal(x, value),
        lambda: x.flat.__setitem__(0, value),
        lambda: x.flat.__setitem__(slice(None), value),
        lambda: np.insert(x, 0, value),
        lambda: np.sum(x, dtype=x.dtype, initial=value),
        lambda: np.max(x, initial=value),
        lambda: np.hypot.reduce(x[0], initial=value) if x.dtype.kind == "f" else x,
    ]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.float32, np.bool_])
@pytest.mark.parametrize("value", [300, -1, 2**70, NAN, np.inf, 1e30, 2.7, 1j])
def test_numbers_that_an_array_cannot_hold(dtype: Any, value: Any) -> None:
    x = A([[1, 0], [1, 1]], dtype)
    for i in range(len(put_into(x, value))):

        def f(x: Any, i: int = i) -> Any:
            return put_into(x, value)[i](), x

        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                f(x.copy())
        except Exception:
            check_raises(f, x)
        else:
            if not (value == 2**70 and dtype in (np.float32, np.bool_)):  # which is refused
                check(f, x)


def test_numbers_under_the_casting_rule_equiv() -> None:
    got = jt.jit(lambda x: np.add(x, 3.0, casting="equiv"))(A([1.0]))
    np.testing.assert_array_equal(got, [4.0], strict=True)
    with pytest.raises(TypeError, match="equiv"):
        jt.jit(lambda x: np.add(x, 3.0, casting="equiv"))(A([1.0], np.float32))


def test_an_array_also_for_a_scalar() -> None:
    got = jt.jit(lambda x: np.sum(x, out=...))(A([1.0, 2.0]))
    assert isinstance(got, np.ndarray) and got == 3

    def ufuncs(a: Any) -> Any:
        quotient, rest = np.divmod(a, 2, out=...)
        total = np.add.reduce(np.atleast_1d(a), out=...)
        return np.multiply(a, 5, out=...), np.sin(a, out=...), quotient, rest, total

    for x, y in zip(jt.jit(ufuncs)(np.int64(3)), ufuncs(np.int64(3)), strict=True):
        assert type(x) is type(y) is np.ndarray and x.dtype == y.dtype and np.allclose(x, y)


@pytest.mark.parametrize(
    "program",
    [pytest.param(p, id=f"{name}: {p[0]}") for name, table in TABLES.items() for p in table],
)
def test_programs(program: Program) -> None:
    text, *args = program
    f = function(text, len(args))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            f(*(x.copy() if isinstance(x, np.ndarray) else x for x in args))
        except Exception:
            check_raises(f, *args)
        else:
            check(f, *args)
