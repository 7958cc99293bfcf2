"""Regions against the sets that they stand for, element by element."""

from __future__ import annotations

import itertools
import math

from hypothesis import given
from hypothesis import strategies as st
from test_index import indices, points, spaces, value

from jitney.codegen.loop_ir.index import Data, Index, Var, linear, of_var
from jitney.codegen.schedule.regions import (
    Region,
    aligned,
    apart,
    around,
    covers,
    distance,
    in_rows,
    interval,
    one_to_one,
    region,
    slab,
    within,
)

strides = st.integers(-12, 12)


def elements(found: Region) -> set[int]:
    """What a region is, by its definition."""
    walks = [range(0, stride * count, stride) for stride, count in found.steps]
    return {found.low + sum(place) for place in itertools.product(*walks)}


def values(index: Index, dims: list[Var]) -> list[int]:
    return [value(index, at) for at in points(dims, 10_000)]


@st.composite
def affine(draw):
    """An affine index, and its loops."""
    dims = draw(spaces)
    coeffs = [draw(strides) for _ in dims]
    return linear([of_var(v) for v in dims], coeffs, draw(st.integers(-40, 40))), dims


@given(affine())
def test_regions_of_affine_indices_are_what_is_touched(drawn):
    found = region(drawn[0])
    assert found.exact and elements(found) == set(values(*drawn))
    assert (found.low, found.high) == (min(values(*drawn)), max(values(*drawn)))


@given(st.data())
def test_regions_of_other_indices_are_no_less(data):
    dims = data.draw(spaces)
    index, _ = data.draw(indices(dims))
    touched = set(values(index, dims))
    found = region(index)
    assert touched <= elements(found)
    if found.exact:
        assert touched == elements(found)


@given(affine(), affine())
def test_apart(a, b):
    meet = set(values(*a)) & set(values(*b))
    assert apart(region(a[0]), region(b[0])) == (not meet)


def test_apart_gives_up_on_puzzles():
    """A sum of many strides that have little in common: not found out, so not certain."""
    steps = tuple((s, 1000) for s in (100003, 100019, 100043, 100049, 100057))
    puzzle = Region(0, tuple(reversed(steps)))
    assert not apart(puzzle, Region(99_999_999))
    assert apart(puzzle, Region(99_999)), "less than any stride"


@given(affine(), affine())
def test_covers(a, b):
    outer, inner = region(a[0]), region(b[0])
    if covers(outer, inner):
        assert set(values(*b)) <= set(values(*a))
    assert covers(outer, outer)


@given(st.integers(-9, 9), st.integers(1, 40), affine())
def test_an_interval_covers_what_lies_in_it(low, count, b):
    inside = set(values(*b)) <= set(range(low, low + count))
    assert covers(interval(low, count), region(b[0])) == inside


def test_rows_with_gaps_cover_their_parts():
    rows = region(of_var(Var("i", 5)) * 16 + of_var(Var("j", 10)))
    part = region(of_var(Var("i", 2)) * 32 + of_var(Var("j", 4)) + 18)
    assert covers(rows, part)
    assert not covers(rows, Region(10)), "a gap"
    assert not covers(part, rows)
    assert not covers(Region(0, ((1, 9),), exact=False), Region(3)), "it may not be touched"


@given(affine())
def test_one_to_one(drawn):
    found = values(*drawn)
    assert one_to_one(*drawn) == (len(set(found)) == len(found))


@given(st.data())
def test_one_to_one_is_certain(data):
    dims = data.draw(spaces)
    index, _ = data.draw(indices(dims))
    if one_to_one(index, dims):
        found = values(index, dims)
        assert len(set(found)) == len(found)


def test_one_to_one_around_what_is_read_from_memory():
    """A window at a place that is read from memory is as wide as ever; a place for each point is not."""
    i = Var("i", 5)
    start = Index(0, {Data(3, 0, 9, frozenset()): 1})
    assert one_to_one(start + of_var(i), [i])
    places = Index(0, {Data(3, 0, 9, frozenset([i])): 1})
    assert not one_to_one(places + of_var(i), [i])


@given(st.data())
def test_within(data):
    dims = data.draw(spaces)
    position = [data.draw(indices(dims))[0] for _ in range(data.draw(st.integers(0, 2)))]
    shape = [data.draw(st.integers(1, 60)) for _ in position]
    inside = all(0 <= x < n for i, n in zip(position, shape, strict=True) for x in values(i, dims))
    if all(region(i).exact for i in position):
        assert within(position, shape) == inside
    elif within(position, shape):
        assert inside


def row_of(at, rows: list[Var]) -> int:
    row = 0
    for v in rows:
        row = row * v.extent + at[v]
    return row


@given(st.data())
def test_in_rows(data):
    dims = data.draw(spaces)
    index, _ = data.draw(indices(dims, with_data=False))
    rows = dims[: data.draw(st.integers(1, len(dims)))]
    first = data.draw(st.integers(0, math.prod(v.extent for v in rows) - 1))
    last = data.draw(st.integers(first, math.prod(v.extent for v in rows) - 1))
    found = in_rows(index, rows, first, last)
    here = {value(index, at) for at in points(dims, 10_000) if first <= row_of(at, rows) <= last}
    touched = set().union(*map(elements, found))
    assert here <= touched
    if region(index).exact:
        assert here == touched


@given(st.data())
def test_slab(data):
    dims = data.draw(spaces)
    rows = dims[: data.draw(st.integers(1, len(dims)))]
    count = math.prod(v.extent for v in rows)
    if data.draw(st.booleans()):
        index, _ = data.draw(indices(dims))
    else:  # the place in rows of `size` elements, or a little more, of that in a row
        size = data.draw(st.integers(1, 20))
        weights = [size * math.prod(v.extent for v in rows[k + 1 :]) for k in range(len(rows))]
        inner = [data.draw(st.integers(-2, 5)) for _ in dims[len(rows) :]]
        index = linear([of_var(v) for v in dims], weights + inner, data.draw(st.integers(-1, 9)))
    found = slab(index, rows)

    def own(n: int) -> bool:
        return all(0 <= value(index, at) - n * row_of(at, rows) < n for at in points(dims, 10_000))

    if found is not None:
        assert found > 0 and own(found)
    elif count > 1 and all(isinstance(a, Var) for a in index.terms):
        assert not index.stride(rows[-1]) or not own(abs(index.stride(rows[-1])))


def test_distance():
    i, j = Var("i", 9), Var("j", 4)
    assert distance((of_var(i) - 2, of_var(j)), i) == -2
    assert distance((of_var(i) * 2,), i) is None
    assert distance((of_var(i) + of_var(j),), i) is None
    assert distance((), i) is None


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), max_size=3))
def test_around(sizes):
    """The boxes and the one in the middle tile the whole, without overlaps."""
    shape = tuple(map(sum, sizes))
    start, size = tuple(s[0] for s in sizes), tuple(s[1] for s in sizes)
    boxes = [(start, size), *around(shape, start, size)]
    tiles = [
        place
        for low, box in boxes
        for place in itertools.product(*(range(a, a + n) for a, n in zip(low, box, strict=True)))
    ]
    assert sorted(tiles) == list(itertools.product(*map(range, shape)))


@given(st.data())
def test_aligned_iterations_are_elements_side_by_side(data):
    dims = data.draw(spaces)
    index, _ = data.draw(indices(dims, with_data=False))
    loop, count = data.draw(st.sampled_from(dims)), data.draw(st.sampled_from([1, 2, 4]))
    if data.draw(st.booleans()):  # more often yes
        index = index * count + of_var(loop)
    if loop.extent % count or not aligned(index, loop, count):
        return
    for at in points(dims):
        first = value(index, {**at, loop: at[loop] - at[loop] % count})
        assert first % count == 0
        assert value(index, at) == first + at[loop] % count
