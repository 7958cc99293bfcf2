"""What an operand of a product is: its element in a row and at a position of the sum, by its index.

    a matrix that lies in memory        a[batch, row, k] = array[offset + batch * s + row * r + k * t]
    the pixels under a kernel           array[...] where the pixel exists, else 0
    whatever is computed element by element      tanh(array[...] + bias[...])

The first two are *copies* of elements, or of zeros; copies of neighbours go together, without passing
through registers where the GPU can do that. Anything else is computed on the way to shared memory.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from typing import NamedTuple

from ....ir.record import record
from ...cuda.lanes import same_for_all
from ...cuda.schedule import is_wide
from ...loop_ir.index import Index, Var, data_of, depends_on, follows, linear, of_var, variables
from ...loop_ir.kernel import Access, Array, Stage
from ...scalar import DType, Expr
from ...schedule.survey import loads
from .cuda_tiles import CHUNK


@record(frozen=False, eq=False)
class Source:
    """An operand: element `value` in row `row` of matrix `batch`, at position `k` of the sum.

    If elements are copies, `array[flat]`, there is no `value`; zero where `guard` does not hold.
    """

    batch: Var
    row: Var
    k: Var
    dtype: DType
    array: Array | None = None
    flat: Index = Index()
    guard: Expr | None = None
    value: Expr | None = None


def lying(
    array: Array, offset: int, strides: tuple[int, int, int], extents: tuple[int, int, int]
) -> Source:
    """A matrix that lies in memory, with strides of batch, row and k."""
    batch, row, k = (Var(n, e) for n, e in zip(("batch", "row", "k"), extents, strict=True))
    flat = linear((of_var(batch), of_var(row), of_var(k)), strides, offset)
    return Source(batch, row, k, array.dtype, array, flat)


def computed(stage: Stage) -> Source:
    """What a stage would store, which has the dims batch, row and k."""
    batch, row, k = stage.dims
    value, guards = stage.value, []
    while value.op == "select" and _is_zero(value.args[2]):
        guards.append(value.args[0])
        value = value.args[1]
    if value.op == "load" and value.dtype == stage.array.dtype:
        access: Access = value.attr
        guards = guards or list(value.args)  # a load's own guard holds where those around it do
        flat = linear(access.index, access.array.strides)
        if not data_of(flat):
            guard = functools.reduce(operator.and_, guards) if guards else None
            return Source(batch, row, k, value.dtype, access.array, flat, guard)
    return Source(batch, row, k, stage.array.dtype, value=stage.value)


def _is_zero(expr: Expr) -> bool:
    return expr.op == "const" and expr.attr == 0


class Lie(NamedTuple):
    """How an operand is read: its lines are along k or along its rows, `width` elements at a time."""

    along_k: bool
    width: int


def lie(source: Source, ends: tuple[int, ...], rows: int, alignments: Mapping[Array, int]) -> Lie:
    """How an operand lies in memory; `ends`: where sums end, `rows`: how many rows there are."""
    wide = {
        along: _width(source, source.k if along else source.row, alignments, whole)
        for along, whole in ((True, ends), (False, (rows,)))
    }
    if wide[True] != wide[False]:
        along_k = wide[True] > wide[False]
    else:
        along_k = _nearness(source, source.k) >= _nearness(source, source.row)
    return Lie(along_k, wide[along_k])


def _width(
    source: Source, along: Var, alignments: Mapping[Array, int], ends: tuple[int, ...]
) -> int:
    """How many neighbours along a loop are read together."""
    width = CHUNK // source.dtype.itemsize
    while width > 1 and not _together(source, along, width, alignments, ends):
        width //= 2
    return width


def split(along: Var, width: int) -> tuple[Var, Var, dict[Var, Index]]:
    """A loop as groups of neighbours: the loops over groups and in one, and what the loop is then."""
    group, lane = Var("group", -(-along.extent // width)), Var("lane", width)
    return group, lane, {along: of_var(group) * width + of_var(lane)}


def _together(
    source: Source, along: Var, width: int, alignments: Mapping[Array, int], ends: tuple[int, ...]
) -> bool:
    if any(n % width for n in ends):
        return False
    _, lane, env = split(along, width)

    def wide(array: Array, flat: Index) -> bool:
        if follows(flat, lane, env):
            return False
        return is_wide(flat.substitute(env), lane, width, array, alignments[array])

    if source.value is None:
        assert source.array is not None
        if source.guard is not None and not same_for_all(source.guard, lane, env):
            return False
        return wide(source.array, source.flat)
    moving = [(a.array, f) for a, f in _flats(source) if along in variables(f)]
    size = max((a.size for a, _ in moving), default=0)
    largest = [(a, f) for a, f in moving if 2 * a.size > size]
    return bool(largest) and all(
        width * a.dtype.itemsize <= CHUNK and wide(a, f) for a, f in largest
    )


def _flats(source: Source) -> list[tuple[Access, Index]]:
    if source.value is None:
        assert source.array is not None
        return [(Access(source.array, ()), source.flat)]
    accesses: list[Access] = [load.attr for load in loads(source.value)]
    return [(a, linear(a.index, a.array.strides)) for a in accesses]


def _nearness(source: Source, along: Var) -> int:
    """How near neighbours along a loop are to each other in memory; the larger the better."""
    score = 0
    for access, flat in _flats(source):
        if along not in variables(flat):
            continue
        step = _step(flat, along)
        score = max(score, access.array.size // max(step, 1))
    return score


def _step(flat: Index, along: Var) -> int:
    """The least distance between elements that are read along a loop."""
    strides = [abs(coeff) for atom, coeff in flat.terms.items() if depends_on(atom, along)]
    return min(strides, default=0)
