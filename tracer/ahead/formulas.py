"""Numbers that depend on how often loops run: sums of products of counts, `512 + 24·n1 + 8·n1·n2`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

Monomial = tuple[str, ...]  # the counts whose product it is, in order


class Formula:
    """A polynomial in counts that are not known before a program runs, such as `n1`.

    `formula.at(n1=100)` has a number in the place of a count. Sums and products of formulas and numbers
    are formulas; `simple` makes numbers of those that no count is left in.
    """

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[Monomial, float]) -> None:
        self.terms = {names: factor for names, factor in terms.items() if factor}

    @property
    def names(self) -> tuple[str, ...]:
        """The counts that it depends on."""
        return tuple(dict.fromkeys(name for names in self.terms for name in names))

    def at(self, **counts: float) -> Amount:
        """With these counts in the place of their names: a number, if no other is left."""
        return total(
            Formula({tuple(n for n in names if n not in counts): factor})
            * math.prod(counts[n] for n in names if n in counts)
            for names, factor in self.terms.items()
        )

    def __add__(self, other: Amount) -> Formula:
        terms = dict(self.terms)
        for names, factor in _terms(other).items():
            terms[names] = terms.get(names, 0) + factor
        return Formula(terms)

    def __mul__(self, other: Amount) -> Formula:
        terms: dict[Monomial, float] = {}
        for a, x in self.terms.items():
            for b, y in _terms(other).items():
                names = tuple(sorted((*a, *b), key=_order))
                terms[names] = terms.get(names, 0) + x * y
        return Formula(terms)

    __radd__ = __add__
    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (Formula, int, float)):
            return NotImplemented
        return self.terms == Formula(_terms(other)).terms

    def __float__(self) -> float:
        if self.names:
            raise TypeError(f"{self} is no number before {' and '.join(self.names)} are known")
        return float(self.terms.get((), 0))

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __repr__(self) -> str:
        return self.text(_number)

    def text(self, number: Callable[[float], str]) -> str:
        """Its terms, the constant one first; `number` shows a factor."""
        ordered = sorted(self.terms.items(), key=lambda i: (len(i[0]), i[0]))
        return " + ".join("·".join([number(x), *names]) for names, x in ordered) or number(0)


Amount: TypeAlias = "Formula | float"


def count(name: str) -> Formula:
    """The count of this name."""
    return Formula({(name,): 1})


def simple(amount: Amount) -> Amount:
    """A number, if it depends on no count."""
    if isinstance(amount, Formula) and not amount.names:
        return amount.terms.get((), 0)
    return amount


def total(amounts: Iterable[Amount]) -> Amount:
    """The sum of amounts."""
    result: Amount = 0
    for amount in amounts:
        result = result + amount
    return simple(result)


def once(amount: Amount) -> float:
    """What it is if each loop that nobody can count runs once."""
    return sum(amount.terms.values()) if isinstance(amount, Formula) else amount


def _terms(amount: Amount) -> Mapping[Monomial, float]:
    return amount.terms if isinstance(amount, Formula) else {(): amount}


def _order(name: str) -> tuple[int, str]:
    """`n2` before `n10`."""
    return len(name), name


def _number(x: float) -> str:
    return f"{x:,}" if isinstance(x, int) else f"{x:.3g}"
