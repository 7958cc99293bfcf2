"""Footprints against what steps touch when they are run in the mind, element by element."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from test_index import points, value
from test_regions import row_of

from jitney.codegen.loop_ir.footprints import Footprint, footprints
from jitney.codegen.loop_ir.index import Var, of_var
from jitney.codegen.loop_ir.kernel import Access, Array, Kernel, Nest, Stage
from jitney.codegen.loop_ir.steps import Matmul, outside
from jitney.codegen.scalar import const

F64 = np.dtype(np.float64)
sizes = st.integers(1, 4)


def touched(found: Footprint, row: int) -> set[int]:
    """What an access is to in one row."""
    dims = list(dict.fromkeys([*found.rows, *found.flat.terms]))
    return {
        value(found.flat, at) for at in points(dims, 10_000) if row_of(at, list(found.rows)) == row
    }


@given(sizes, sizes, sizes, sizes, st.booleans(), st.integers(0, 5))
def test_products(batch, m, n, k, turned, offset):
    a, b = Array((offset + batch * m * k,), F64), Array((batch, k, n), F64)
    c = Array((batch, m, n), F64)
    layout = (m * k, 1, m) if turned else (m * k, k, 1)
    product = Matmul(a, b, c, batch, m, n, k, layout, (k * n, n, 1), a_offset=offset)
    left, right, result = footprints(product, batch * m)
    assert [f.array for f in (left, right, result)] == [a, b, c]
    assert [f.writes for f in (left, right, result)] == [False, False, True]
    places = offset + np.arange(batch * m * k).reshape((batch, k, m) if turned else (batch, m, k))
    rows = (places.swapaxes(1, 2) if turned else places).reshape(batch * m, k)
    results = np.arange(batch * m * n).reshape(batch * m, n)
    for row in range(batch * m):
        assert touched(left, row) == set(rows[row])
        assert touched(result, row) == set(results[row])
        assert touched(right, row) >= set(np.arange(b.size).reshape(batch, -1)[row // m])


def test_kernels():
    """Two nests over rows: what lives in the kernel is not seen, what is read is where it lies."""
    x, inside, y = Array((3, 4, 5), F64), Array((3, 4), F64), Array((3, 4), F64, strides=(1, 3))
    dims = tuple(Var(f"i{d}", n) for d, n in enumerate(x.shape))
    fold = Stage(inside, dims, const(0, F64), "reduce", "sum", 2)
    fold.reads = [Access(x, tuple(of_var(v) for v in dims))]
    again = tuple(Var(f"j{d}", n) for d, n in enumerate(y.shape))
    store = Stage(y, again, const(0, F64))
    store.reads = [Access(inside, store.point), Access(x, (*store.point, of_var(Var("o", 1)) + 2))]
    kernel = Kernel((3, 4), [Nest([fold], 2), Nest([store], 2)], local={inside})
    assert outside(kernel) == ([x, x], [y])
    assert footprints(kernel, 5) is None, "no loops come to five"
    for total, inner in ((3, 4), (12, 1)):
        read, picked, written = footprints(kernel, total)
        for row in range(total):
            rows = range(row * inner, (row + 1) * inner)
            assert touched(read, row) == {5 * r + k for r in rows for k in range(5)}
            assert touched(picked, row) == {5 * r + 2 for r in rows}
            assert touched(written, row) == {r // 4 + 3 * (r % 4) for r in rows}
