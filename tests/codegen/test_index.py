"""Index algebra against plain integers, at points of the loop variables."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jitney.codegen.loop_ir.index import (
    Data,
    Div,
    Index,
    Mod,
    Var,
    contiguous_strides,
    data_of,
    delinearise,
    follows,
    linear,
    of_var,
    same,
    variables,
)
from jitney.codegen.schedule.schedule import collapse

Point = dict[Var, int]


def value(index: Index, at: Point) -> int:
    """What an index is at a point, by its definition."""
    total = index.const
    for atom, coeff in index.terms.items():
        assert coeff != 0, "a term that is nothing"
        if isinstance(atom, Var):
            total += coeff * at[atom]
        elif isinstance(atom, Mod):
            total += coeff * (value(atom.index, at) % atom.n)
        elif isinstance(atom, Div):
            total += coeff * (value(atom.index, at) // atom.n)
        else:
            total += coeff * atom.expr
    return total


def points(dims: list[Var], most: int = 400) -> list[Point]:
    """All points, or about `most` of them, corners included."""
    size = math.prod(v.extent for v in dims)
    step = max(size // most, 1)
    every = itertools.product(*(range(v.extent) for v in dims))
    some = [p for k, p in enumerate(every) if k % step == 0 or k == size - 1]
    return [dict(zip(dims, p, strict=True)) for p in some]


extents = st.sampled_from([1, 2, 3, 4, 5, 8, 12, 16])


@st.composite
def indices(draw, dims: list[Var], with_data: bool = True):
    """(index, a function of a point): the same formula in the algebra and in integers."""
    index, plain = of_var(dims[0]), lambda at: at[dims[0]]
    for _ in range(draw(st.integers(0, 7))):
        kind = draw(st.integers(0, 6 if with_data else 5))
        n = draw(st.sampled_from([1, 2, 3, 4, 5, 8, 12]))
        k = draw(st.integers(-20, 20))
        before = plain
        if kind == 0:
            var, k = draw(st.sampled_from(dims)), draw(st.sampled_from([-12, -3, -1, 1, 2, 4, 8]))
            new = index + of_var(var) * k
            index, plain = new, lambda at, f=before, v=var, k=k: f(at) + k * at[v]
        elif kind == 1:
            index, plain = index * k, lambda at, f=before, k=k: f(at) * k
        elif kind == 2:
            index, plain = index // n, lambda at, f=before, n=n: f(at) // n
        elif kind == 3:
            index, plain = index % n, lambda at, f=before, n=n: f(at) % n
        elif kind == 4:
            index, plain = index + k, lambda at, f=before, k=k: f(at) + k
        elif kind == 5:
            index, plain = -index - k, lambda at, f=before, k=k: -f(at) - k
        else:
            lo = draw(st.integers(-5, 5))
            hi = lo + draw(st.integers(0, 9))
            given = draw(st.integers(lo, hi))
            new = index + Index(0, {Data(given, lo, hi, frozenset()): 3})
            index, plain = new, lambda at, f=before, x=given: f(at) + 3 * x
    return index, plain


spaces = st.lists(extents, min_size=1, max_size=3).map(
    lambda sizes: [Var(f"v{d}", n) for d, n in enumerate(sizes)]
)


@given(st.data())
def test_arithmetic(data):
    dims = data.draw(spaces)
    index, plain = data.draw(indices(dims))
    lo, hi = index.range()
    for at in points(dims):
        x = value(index, at)
        assert x == plain(at), f"{index} at {at}"
        assert lo <= x <= hi, f"{index} is {x} at {at}, outside of {lo}..{hi}"


@given(st.data())
def test_equal_indices_hash_alike(data):
    dims = data.draw(spaces)
    a, f = data.draw(indices(dims))
    b, g = data.draw(indices(dims))
    assert (a + b) == (b + a) and hash(a + b) == hash(b + a)
    assert a - a == Index() and a + b - b == a
    if a == b:
        assert hash(a) == hash(b)
        assert all(f(at) == g(at) for at in points(dims))


@given(st.data())
def test_range_of_affine_indices_is_exact(data):
    dims = data.draw(spaces)
    coeffs = [data.draw(st.integers(-9, 9)) for _ in dims]
    index = linear([of_var(v) for v in dims], coeffs, data.draw(st.integers(-50, 50)))
    found = [value(index, at) for at in points(dims, 10_000)]
    assert index.range() == (min(found), max(found))


@given(st.data())
def test_strides(data):
    """What one more trip of a loop adds, if that is always the same."""
    dims = data.draw(spaces)
    index, _ = data.draw(indices(dims))
    for v in dims:
        stride = index.stride(v)
        for at in points(dims):
            if stride is not None and at[v] + 1 < v.extent:
                assert value(index, at | {v: at[v] + 1}) - value(index, at) == stride
    loops = data.draw(st.permutations(dims))
    strides = index.strides(loops)
    if strides is not None:
        for at in points(dims):
            walked = sum(s * at[v] for v, s in zip(loops, strides, strict=True))
            assert value(index, at) == index.const + walked
    else:
        assert not all(isinstance(atom, Var) for atom in index.terms)


@given(st.data())
def test_substitute(data):
    """Replacing variables, then evaluating, is evaluating the replacements first."""
    dims = data.draw(spaces)
    index, plain = data.draw(indices(dims, with_data=False))
    outer = data.draw(spaces)
    env, plains = {}, {}
    for v in dims:
        # Replacements stay within the variable's range, as the compiler's do.
        new, f = data.draw(indices(outer, with_data=False))
        env[v], plains[v] = new % v.extent, lambda at, f=f, n=v.extent: f(at) % n
    if data.draw(st.booleans()):
        untouched = dims[-1]
        del env[untouched]
        outer = [*outer, untouched]
        plains[untouched] = lambda at, v=untouched: at[v]
    result = index.substitute(env)
    assert variables(result) <= set(outer)
    for at in points(outer, 200):
        assert value(result, at) == plain({v: f(at) for v, f in plains.items()})


@given(st.data())
def test_divisions_that_are_exact_vanish(data):
    dims = [Var(f"v{d}", data.draw(st.integers(2, 9))) for d in range(3)]
    shape = tuple(v.extent for v in dims)
    position = tuple(of_var(v) for v in dims)
    flat = linear(position, contiguous_strides(shape))
    assert delinearise(flat, shape) == position
    n = data.draw(st.integers(1, 30))
    assert (flat // n) * n + flat % n == flat


@given(st.lists(st.integers(0, 6), max_size=4), st.data())
def test_delinearise(shape, data):
    shape = tuple(shape)
    if 0 in shape:
        return
    size = math.prod(shape)
    q = Var("q", size)
    start = data.draw(st.integers(0, 3))
    where = delinearise(of_var(q), shape)
    assert len(where) == len(shape)
    for k in range(size):
        at = tuple(value(i, {q: k}) for i in where)
        assert at == tuple(int(x) for x in np.unravel_index(k, shape)) if shape else at == ()
    if start and shape:  # of a window further on: what the flat index of a reshape of a slice is
        moved = delinearise(of_var(Var("q", max(size - start, 1))) + start, shape)
        assert all(len(variables(i)) <= 1 for i in moved)


@given(st.data())
def test_collapse(data):
    """Walking the collapsed loops in order visits the points in order, and env says which."""
    dims = data.draw(spaces)
    kind = data.draw(st.integers(0, 2))
    shape = tuple(v.extent for v in dims)
    position = [of_var(v) for v in dims]
    flats = [linear(position, contiguous_strides(shape))]
    if kind == 1:
        flats.append(data.draw(indices(dims, with_data=False))[0])
    elif kind == 2:  # an array that lies backwards, and one that is repeated along an axis
        back = [-s for s in contiguous_strides(shape)]
        flats.append(linear(position, back, math.prod(shape) - 1))
        repeated = data.draw(st.integers(0, len(shape) - 1))
        kept = [s for d, s in enumerate(shape) if d != repeated]
        strides = iter(contiguous_strides(tuple(kept)))
        flats.append(
            linear(position, [0 if d == repeated else next(strides) for d in range(len(shape))])
        )
    loops = collapse(dims, flats)
    if kind == 0:
        assert len(loops.vars) == (math.prod(shape) > 1), "a contiguous walk is one loop"
    assert all(v.extent > 1 for v in loops.vars)
    assert math.prod(v.extent for v in loops.vars) == math.prod(shape)
    visited = []
    for at in itertools.product(*(range(v.extent) for v in loops.vars)):
        here = dict(zip(loops.vars, at, strict=True))
        visited.append(tuple(value(loops.env[v], here) for v in dims))
    assert visited == list(np.ndindex(*shape))


def test_names_of_loops_that_cannot_merge_stay():
    i, j = Var("i", 3), Var("j", 4)
    loops = collapse([i, j], [of_var(i) + of_var(j) * 3])
    assert loops.vars == (i, j)
    assert loops.env == {i: of_var(i), j: of_var(j)}


def test_positions_in_groups_are_divided_by_groups():
    """(4 i + j) // 12 is i // 3, and what is left is known to be neighbours for all j."""
    i, j = Var("i", 30), Var("j", 4)
    whole = of_var(i) * 4 + of_var(j)
    assert whole // 12 == Index(0, {Div(of_var(i), 3): 1})
    assert whole % 12 == Index(0, {Mod(of_var(i), 3): 4, j: 1})
    assert (whole + 9) // 12 == Index(0, {Div(whole + 9, 12): 1}), "a group that is not whole"


@given(st.data())
def test_the_same_indices_have_the_same_values(data):
    dims = data.draw(spaces)
    a, _ = data.draw(indices(dims, with_data=False))
    b = a + of_var(data.draw(st.sampled_from(dims))) * data.draw(st.integers(0, 1))
    if same(a, b):
        assert all(value(a, at) == value(b, at) for at in points(dims))


def test_what_is_read_from_memory_is_seen_under_divisions():
    row, lane = Var("row", 8), Var("lane", 4)
    number = Index(0, {Data(3, 0, 31, frozenset({row})): 1})
    index = (number % 4) * 64 + (number // 4) * 16 + of_var(lane)
    assert not index.affine and of_var(row).affine
    assert len(data_of(index)) == 2
    assert follows(index, row, {}) and not follows(index, lane, {})
    assert follows(index, lane, {row: of_var(lane) + 4})
