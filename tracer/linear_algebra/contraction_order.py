"""In which order the operands of an einsum are multiplied, two at a time.

Up to `EXACT` operands the order with the fewest multiplications is found by dynamic programming over
sets of operands. Beyond, the best of a few is taken: from left to right, or always the pair whose
product needs the least additional memory, or the fewest multiplications. Letters are bits of an int, and
the cost of a product is that of all letters in it.

`np.einsum_path` does not serve: its optimal orders of six and seven operands take 24 and 1,500 ms (these
0.1 and 1 ms), and its greedy ones up to four times the multiplications.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from heapq import heappop, heappush

EXACT = 8

Pair = tuple[int, int]


def contraction_order(terms: Sequence[str], output: str, sizes: Mapping[str, int]) -> list[Pair]:
    """The pairs to multiply: operands are numbered from 0, and results after them as they come.

    >>> contraction_order(["ij", "jk", "kl"], "il", {"i": 9, "j": 9, "k": 9, "l": 1})
    [(1, 2), (0, 3)]
    """
    letters = {c: 1 << k for k, c in enumerate(sizes)}
    extents = list(sizes.values())

    def bits(text: str) -> int:
        return sum(letters[c] for c in set(text))

    @cache
    def size(mask: int) -> int:
        total = 1
        while mask:
            low = mask & -mask
            total *= extents[low.bit_length() - 1]
            mask ^= low
        return total

    masks, result = [bits(term) for term in terms], bits(output)
    if len(terms) <= EXACT:
        return _exact(masks, result, size)
    orders = [
        _greedy(masks, result, lambda a, b, made: size(made) - size(a) - size(b), size),
        _greedy(masks, result, lambda a, b, made: size(a | b), size),
        [(0, 1), *((k, len(terms) + k - 2) for k in range(2, len(terms)))],
    ]
    return min(orders, key=lambda pairs: _multiplications(pairs, masks, result, size))


def _multiplications(
    pairs: Sequence[Pair], masks: Sequence[int], output: int, size: Callable[[int], int]
) -> int:
    left, total = dict(enumerate(masks)), 0
    for made, (i, j) in enumerate(pairs, len(masks)):
        both = left.pop(i) | left.pop(j)
        needed = output
        for mask in left.values():
            needed |= mask
        total += size(both)
        left[made] = both & needed
    return total


def _exact(masks: list[int], output: int, size: Callable[[int], int]) -> list[Pair]:
    """The best binary tree over all operands."""
    n = len(masks)
    everything = (1 << n) - 1
    union = [0] * (1 << n)
    for subset in range(1, 1 << n):
        low = subset & -subset
        union[subset] = union[subset ^ low] | masks[low.bit_length() - 1]
    # What is left of a set's product: the letters that the result or other operands have.
    live = [union[s] & (output | union[everything ^ s]) for s in range(1 << n)]
    cost: dict[int, tuple[int, int]] = {1 << i: (0, 0) for i in range(n)}
    split: dict[int, int] = {}
    for subset in range(1, 1 << n):
        low = subset & -subset
        rest = subset ^ low
        if not rest:
            continue
        best: tuple[int, int] | None = None
        part = rest
        while part:  # one side of each split: those without the lowest operand
            other = subset ^ part
            a, b = cost[part], cost[other]
            flops = a[0] + b[0] + size(live[part] | live[other])
            candidate = flops, a[1] + b[1] + size(live[subset])
            if best is None or candidate < best:
                best, split[subset] = candidate, part
            part = (part - 1) & rest
        assert best is not None
        cost[subset] = best
    pairs: list[Pair] = []

    def number(subset: int) -> int:
        if subset not in split:
            return subset.bit_length() - 1
        right = split[subset]
        pairs.append(_ordered(number(subset ^ right), number(right)))
        return n + len(pairs) - 1

    number(everything)
    return pairs


def _greedy(
    masks: list[int],
    output: int,
    price: Callable[[int, int, int], int],
    size: Callable[[int], int],
) -> list[Pair]:
    """Pair by pair: what shares letters first, and of those what has the least `price`, a function of
    both and of their product."""
    left = dict(enumerate(masks))
    pairs: list[Pair] = []
    candidates: list[tuple[int, int, int, int]] = []
    uses: dict[int, int] = {}
    for mask in masks:
        for bit in _bits(mask):
            uses[bit] = uses.get(bit, 0) + 1

    def product(a: int, b: int) -> int:
        """The letters of the product that somebody else needs."""
        both = a | b
        gone = sum(
            bit
            for bit in _bits(both)
            if not bit & output and uses[bit] == bool(bit & a) + bool(bit & b)
        )
        return both & ~gone

    def propose(i: int, j: int) -> None:
        a, b = left[i], left[j]
        heappush(candidates, (price(a, b, product(a, b)), size(a | b), i, j))

    numbers = sorted(left)
    for j in numbers:
        for i in numbers[:j]:
            if left[i] & left[j]:
                propose(i, j)
    while len(left) > 1:
        if not candidates:  # nothing shares a letter: outer products, the smallest first
            i, j = sorted(left, key=lambda k: (size(left[k]), k))[:2]
        else:
            *_, i, j = heappop(candidates)
            if i not in left or j not in left:
                continue
        a, b = left.pop(i), left.pop(j)
        made = product(a, b)
        for bit in _bits(a | b):
            uses[bit] += bool(bit & made) - bool(bit & a) - bool(bit & b)
        pairs.append(_ordered(i, j))
        new = len(masks) + len(pairs) - 1
        left[new] = made
        for k in left:
            if k != new and left[k] & made:
                propose(k, new)
    return pairs


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low
        mask ^= low


def _ordered(i: int, j: int) -> Pair:
    return (i, j) if i < j else (j, i)


def pairs_of_path(path: Sequence[Sequence[int]], count: int) -> list[Pair]:
    """NumPy's path, positions in a list that shrinks and gets results at its end, as such pairs.

    >>> pairs_of_path([(0, 2), (0, 1)], 3)
    [(0, 2), (1, 3)]
    """
    numbers = list(range(count))
    pairs: list[Pair] = []
    for step in path:
        taken = sorted({operator.index(i) for i in step})
        if not taken or taken[0] < 0 or taken[-1] >= len(numbers):
            raise ValueError(f"einsum: the path {list(path)} does not fit {count} operands")
        chosen = [numbers[i] for i in taken]
        numbers = [k for k in numbers if k not in chosen]
        first = chosen[0]
        for other in chosen[1:]:
            pairs.append((first, other))
            first = count + len(pairs) - 1
        numbers.append(first)
    if len(numbers) > 1:
        raise ValueError(f"einsum: the path {list(path)} leaves {len(numbers)} operands")
    return pairs
