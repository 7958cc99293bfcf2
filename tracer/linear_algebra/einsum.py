"""einsum: any of NumPy's expressions, as diagonals, sums, transposes and one dot op per pair.

`contraction_order` chooses the pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays.common import array, common_dtype, finish
from ..arrays.creation import filled
from ..arrays.reductions import sum_
from ..arrays.table import function, refuse_option
from ..core import views
from ..core.tracers import Tracer, as_value, wrap
from ..data.layout import inner_axes_first
from ..data.promotion import DType, can_cast, canonical
from ..functions.diagonals import diagonal_view
from ..messages import errors
from ..messages.errors import complain
from .contraction_order import contraction_order, pairs_of_path
from .products import accumulating, accumulator, contract

# An operand and the letter of each axis; size-1 axes that stretch are gone.
Term = tuple[Tracer, str]


@accumulating("einsum")
def einsum(
    *operands: Any,
    out: Any = None,
    optimize: Any = False,
    dtype: Any = None,
    casting: str = "safe",
    order: str = "K",
    preferred_element_type: Any = None,
) -> Tracer:
    inputs, output, arrays = parse(operands)
    sizes = _sizes(inputs, arrays)
    if len(arrays) == 1 and out is None and set(inputs[0]) == set(output):
        return _view(arrays[0], inputs[0], output)
    loop_dtype = common_dtype(*arrays)
    if dtype is not None:
        loop_dtype = _loop_dtype(loop_dtype, canonical(dtype), casting, arrays)
    loop_dtype = accumulator("einsum", loop_dtype, preferred_element_type)
    if any(n == 0 and letter not in output for letter, n in sizes.items()):
        # A sum of nothing. Pair by pair it could be a product of some zeros and an infinity.
        zeros = wrap(as_value(filled([sizes[c] for c in output], 0, loop_dtype)))
        return finish(zeros, out, casting)
    tidy = [
        _tidy((x.astype(loop_dtype), axes), sizes) for x, axes in zip(arrays, inputs, strict=True)
    ]
    terms: dict[int, Term] = dict(enumerate(tidy))
    for made, (i, j) in enumerate(_order(tidy, inputs, output, sizes, optimize), len(tidy)):
        pair = terms.pop(i), terms.pop(j)
        terms[made] = _combine(pair, set(output).union(*(set(axes) for _, axes in terms.values())))
    (result,) = terms.values()
    x = _arrange(_sum_out(result, set(output)), output, sizes)
    if out is None and not optimize:
        x._strides = _strides(inputs, output, sizes, arrays)
    return finish(x, out, casting)


def _strides(
    inputs: Sequence[str], output: str, sizes: dict[str, int], arrays: Sequence[Tracer]
) -> tuple[int, ...]:
    """The memory order of what NumPy's iterator over all letters makes."""
    letters = output + "".join(sorted(set(sizes) - set(output)))
    layouts = []
    for axes, x in zip(inputs, arrays, strict=True):
        own = dict(zip(axes, x.shape, strict=True))
        steps = dict.fromkeys(letters, 0)
        for letter, step in zip(axes, x.element_strides, strict=True):
            steps[letter] += step
        layouts.append((tuple(own.get(c, 1) for c in letters), tuple(steps.values())))
    strides, step = {}, 1
    for i in inner_axes_first(len(letters), layouts):
        if letters[i] in output:
            strides[letters[i]] = step
            step *= max(sizes[letters[i]], 1)
    return tuple(strides[c] for c in output)


def _view(x: Tracer, axes: str, output: str) -> Tracer:
    """Nothing is summed: NumPy returns a view, whatever `dtype` and `order` say."""
    if not x.ndim:
        return wrap(as_value(x))
    x, axes = _diagonals(x, axes)
    return views.transpose(x, [axes.index(c) for c in output])


def _loop_dtype(promoted: DType, wanted: DType, casting: str, arrays: Sequence[Tracer]) -> DType:
    """`dtype=`, if the operands may be cast to it."""
    if not can_cast(promoted, wanted, casting):
        complain(
            errors.CastingError,
            f"Iterator operand required casting from {promoted!r} to {wanted!r}, which the casting "
            f"rule {casting!r} does not allow",
            "pass casting='same_kind' or 'unsafe', or convert the operands with .astype.",
            operands={f"operand {i}": x for i, x in enumerate(arrays)},
        )
    return wanted


def parse(operands: Sequence[Any]) -> tuple[list[str], str, list[Tracer]]:
    """Letters of each operand, letters of the result, the operands. Ellipses become letters."""
    if not operands:
        raise ValueError("must specify the einstein sum subscripts string and at least one operand")
    if isinstance(operands[0], str):
        text = operands[0].replace(" ", "")
        arrays = [array(x) for x in operands[1:]]
    else:
        text, arrays = _from_lists(operands)
    left, arrow, right = text.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(arrays):
        complain(
            errors.ShapeError,
            f"einsum {text!r} names {len(inputs)} operands, and {len(arrays)} are given",
            "give one term per operand, separated by commas.",
            operands={f"operand {i}": x for i, x in enumerate(arrays)},
        )
    plain = set(text) - set(".,->")
    if any(not c.isalpha() or not c.isascii() for c in plain):
        bad = next(c for c in sorted(plain) if not (c.isalpha() and c.isascii()))
        raise ValueError(f"Character {bad!r} is not a valid symbol in einsum {text!r}")
    free = [c for c in _LETTERS if c not in plain]
    longest = 0
    counts = []
    for axes, x in zip(inputs, arrays, strict=True):
        named = len(axes.replace("...", ""))
        extra = x.ndim - named
        if ("..." not in axes and extra) or extra < 0 or "." in axes.replace("...", "", 1):
            complain(
                errors.ShapeError,
                f"einsum {text!r}: term {axes!r} does not fit an operand with {x.ndim} axes",
                "write one letter per axis, or ... for the axes that are not named.",
                operands={"operand": x},
            )
        counts.append(extra)
        longest = max(longest, extra)
    dots = "".join(free[:longest])
    inputs = [
        axes.replace("...", dots[longest - n :]) for axes, n in zip(inputs, counts, strict=True)
    ]
    if arrow:
        output = right.replace("...", dots)
        if len(set(output)) != len(output) or set(output) - set("".join(inputs)):
            raise ValueError(
                f"einstein sum subscripts string {text!r}: the output names an axis twice, or one "
                "that no operand has"
            )
    else:
        joined = "".join(inputs)
        output = dots + "".join(sorted(c for c in plain if joined.count(c) == 1))
    return inputs, output, arrays


_LETTERS = "".join(chr(c) for base in (65, 97) for c in range(base, base + 26)) + "".join(
    chr(c) for c in range(192, 192 + 64)
)


def _from_lists(operands: Sequence[Any]) -> tuple[str, list[Tracer]]:
    """The form einsum(x, [0, 1], y, [1, 2], [0, 2])."""
    arrays = [array(x) for x in operands[: len(operands) // 2 * 2 : 2]]
    lists = list(operands[1::2])

    def letters(axes: Sequence[Any]) -> str:
        return "".join("..." if i is Ellipsis else _LETTERS[int(i)] for i in axes)

    text = ",".join(letters(axes) for axes in lists)
    if len(operands) % 2:
        text += "->" + letters(operands[-1])
    return text, arrays


def _sizes(inputs: Sequence[str], arrays: Sequence[Tracer]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    operands = {f"operand {i}": a for i, a in enumerate(arrays)}
    for axes, x in zip(inputs, arrays, strict=True):
        own: dict[str, int] = {}
        for letter, n in zip(axes, x.shape, strict=True):
            if own.setdefault(letter, n) != n:
                complain(
                    errors.ShapeError,
                    f"einsum: axes {letter!r} of one operand have sizes {own[letter]} and {n}",
                    "a diagonal needs axes of equal size.",
                    operands=operands,
                )
            size = sizes.setdefault(letter, n)
            if size != n and 1 not in (size, n):
                complain(
                    errors.ShapeError,
                    f"einsum: axis {letter!r} has size {size} in one operand and {n} in another",
                    "axes with the same letter must have the same size, or 1.",
                    operands=operands,
                )
            sizes[letter] = n if size == 1 else size
    return sizes


def _tidy(term: Term, sizes: dict[str, int]) -> Term:
    """Take diagonals of repeated letters, and drop axes of size 1 that stretch."""
    x, axes = _diagonals(*term)
    ones = [i for i, c in enumerate(axes) if x.shape[i] == 1 and sizes[c] != 1]
    if ones:
        x = x.reshape(tuple(n for i, n in enumerate(x.shape) if i not in ones))
        axes = "".join(c for i, c in enumerate(axes) if i not in ones)
    return x, axes


def _diagonals(x: Tracer, axes: str) -> Term:
    """One axis for each letter."""
    for letter in dict.fromkeys(axes):
        while axes.count(letter) > 1:
            i = axes.index(letter)
            j = axes.index(letter, i + 1)
            x = diagonal_view(x, i, j)
            axes = axes[:i] + axes[i + 1 : j] + axes[j + 1 :] + letter
    return x, axes


def _order(
    terms: Sequence[Term],
    inputs: Sequence[str],
    output: str,
    sizes: dict[str, int],
    optimize: Any,
) -> list[tuple[int, int]]:
    """Which terms to combine. NumPy's named algorithms and given paths are followed; without one the
    order is our own, because no loop of this compiler multiplies more than two operands at a time."""
    if len(terms) <= 2:
        return [(0, 1)][: len(terms) - 1]
    if isinstance(optimize, (bool, np.bool_)) or optimize is None:
        return contraction_order([axes for _, axes in terms], output, sizes)
    path = list(optimize) if isinstance(optimize, (list, tuple)) else [optimize]
    if not path or not isinstance(path[0], str):
        raise TypeError(f"Did not understand the path: {optimize}")
    if path[0] != "einsum_path":
        ascii_letters = _LETTERS[:52]
        if len(sizes) > len(ascii_letters):
            return contraction_order([axes for _, axes in terms], output, sizes)
        rename = dict(zip(sizes, ascii_letters, strict=False))
        text = ",".join("".join(rename[c] for c in axes) for axes in inputs)
        shapes = [np.broadcast_to(np.float32(0), [sizes[c] for c in axes]) for axes in inputs]
        result = "".join(rename[c] for c in output)
        path = np.einsum_path(f"{text}->{result}", *shapes, optimize=optimize)[0]
    return pairs_of_path(path[1:], len(terms))


def _combine(pair: tuple[Term, Term], later: set[str]) -> Term:
    """Two terms into one, summed over the letters that nobody needs later."""
    (a, left), (b, right) = pair
    # What only one side has, and nobody needs, is summed before.
    a, left = _sum_out((a, left), later | set(right))
    b, right = _sum_out((b, right), later | set(left))
    shared = [c for c in left if c in right]
    batch = [c for c in shared if c in later]
    summed = [c for c in shared if c not in later]
    value = contract(
        as_value(a),
        as_value(b),
        (tuple(left.index(c) for c in summed), tuple(right.index(c) for c in summed)),
        (tuple(left.index(c) for c in batch), tuple(right.index(c) for c in batch)),
    )
    free = [c for c in left if c not in shared] + [c for c in right if c not in shared]
    return wrap(value, scalar=False), "".join(batch + free)


def _sum_out(term: Term, needed: set[str]) -> Term:
    x, axes = term
    gone = tuple(i for i, c in enumerate(axes) if c not in needed)
    if not gone:
        return term
    x = sum_(x, axis=gone, dtype=x.dtype)
    return x, "".join(c for c in axes if c in needed)


def _arrange(term: Term, output: str, sizes: dict[str, int]) -> Tracer:
    """The axes in the output's order; letters that only had stretched axes are put back."""
    x, axes = term
    x = views.transpose(x, [axes.index(c) for c in output if c in axes])
    if len(axes) != len(output):
        x = x[tuple(slice(None) if c in axes else None for c in output)]
        x = views.broadcast_to(x, [sizes[c] for c in output])
    return wrap(as_value(x))


@function("einsum_path")
def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: bool = False) -> Any:
    if einsum_call:
        refuse_option("einsum_path", einsum_call=True)
    stand_ins = [
        np.broadcast_to(np.zeros((), x.dtype), x.shape) if isinstance(x, Tracer) else x
        for x in operands
    ]
    return np.einsum_path(*stand_ins, optimize=optimize)
