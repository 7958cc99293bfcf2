"""Index algebra: integer expressions over loop variables, kept in a normal form.

An `Index` is `const + sum(coeff * atom)`. Atoms are loop variables (`Var`), floor divisions and
remainders by a positive constant that could not be simplified (`Div`, `Mod`), and values read from
memory (`Data`). Movement ops of the graph become operations on indices here: nothing is copied.

The normal form makes the common cases vanish: `n * (i // n) + i % n` is `i`, and `(n*i + j) // n` is
`i` where `0 <= j < n`. Ranges are exact for affine indices, so bounds need no run-time test.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import gcd
from typing import Any

from ...ir.types import contiguous_strides as contiguous_strides


class Var:
    """A loop variable running over 0..extent-1. Compared by identity.

    Where loops around it say how far it runs, as in a triangle, it stays below `limit` too.
    """

    __slots__ = ("name", "extent", "limit", "depth")

    def __init__(self, name: str, extent: int, limit: Index | None = None) -> None:
        self.name = name
        self.extent = extent
        self.limit = limit
        outer = [v.depth for v in limit.terms if isinstance(v, Var)] if limit is not None else []
        self.depth: int = 1 + max(outer, default=0)

    def __repr__(self) -> str:
        return self.name


class Div:
    """floor(index / n) of an index that does not divide evenly."""

    __slots__ = ("index", "n")

    def __init__(self, index: Index, n: int) -> None:
        self.index = index
        self.n = n

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.n == self.n and other.index == self.index

    def __hash__(self) -> int:
        return hash((type(self), self.index, self.n))

    def __repr__(self) -> str:
        return f"({self.index!r} {'%' if isinstance(self, Mod) else '//'} {self.n})"


class Mod(Div):
    """index - n * floor(index / n)."""

    __slots__ = ()


class Data:
    """An integer computed by the program: a scalar expression of dtype int64 in lo..hi.

    `vars` are the loop variables that it was built with. With it an index lies below the length of the
    axis of which `within` is the capacity (see `codegen.sizes`), where it is read.
    """

    __slots__ = ("expr", "lo", "hi", "vars", "within")

    def __init__(
        self, expr: Any, lo: int, hi: int, vars: frozenset[Var], within: int | None = None
    ) -> None:
        self.expr = expr
        self.lo = lo
        self.hi = hi
        self.vars = vars
        self.within = within

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Data) and other.expr is self.expr

    def __hash__(self) -> int:
        return hash((Data, id(self.expr)))

    def __repr__(self) -> str:
        return "data"


Atom = Var | Div | Data


class Index:
    """const + sum(coeff * atom); immutable and hashable."""

    __slots__ = ("const", "terms", "_hash")

    def __init__(self, const: int = 0, terms: Mapping[Atom, int] | None = None) -> None:
        self.const = const
        self.terms: Mapping[Atom, int] = terms or {}
        self._hash: int | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Index) and self.const == other.const and self.terms == other.terms

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.const, frozenset(self.terms.items())))
        return self._hash

    def __repr__(self) -> str:
        parts = [f"{c}*{a!r}" if c != 1 else repr(a) for a, c in self.terms.items()]
        if self.const or not parts:
            parts.append(str(self.const))
        return " + ".join(parts)

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return self if other == 0 else Index(self.const + other, self.terms)
        if not other.terms:
            return self + other.const
        terms = dict(self.terms)
        for atom, coeff in other.terms.items():
            total = terms.get(atom, 0) + coeff
            if total:
                terms[atom] = total
            else:
                terms.pop(atom, None)
        return _recombine(Index(self.const + other.const, terms))

    def __mul__(self, k: int) -> Index:
        if k == 1:
            return self
        if k == 0:
            return ZERO
        return Index(self.const * k, {a: c * k for a, c in self.terms.items()})

    def __neg__(self) -> Index:
        return self * -1

    def __sub__(self, other: Index | int) -> Index:
        return self + (-other)

    def __floordiv__(self, n: int) -> Index:
        return self._divmod(n)[0]

    def __mod__(self, n: int) -> Index:
        return self._divmod(n)[1]

    def _divmod(self, n: int) -> tuple[Index, Index]:
        if n == 1:
            return self, ZERO
        quotient_terms = {a: c // n for a, c in self.terms.items() if c % n == 0}
        rest = Index(self.const % n, {a: c for a, c in self.terms.items() if c % n})
        quotient = Index(self.const // n, quotient_terms)
        lo, hi = rest.range()
        if lo // n == hi // n:  # the rest never crosses a multiple of n
            return quotient + lo // n, rest - (lo // n) * n
        grouped = rest._in_groups(n)
        if grouped is not None:
            g, groups, within = grouped
            q, r = groups._divmod(n // g)
            return quotient + q, r * g + within
        return quotient + Index(0, {Div(rest, n): 1}), Index(0, {Mod(rest, n): 1})

    def _in_groups(self, n: int) -> tuple[int, Index, Index] | None:
        """g * i + j as (g, i, j), where g divides n and j is in 0..g-1; None if there is no such g."""
        for g in sorted({gcd(n, c) for c in self.terms.values()}, reverse=True):
            i = {a: c // g for a, c in self.terms.items() if c % g == 0}
            j = Index(self.const % g, {a: c for a, c in self.terms.items() if c % g})
            lo, hi = j.range()
            if g > 1 and lo >= 0 and hi < g:
                return g, Index(self.const // g, i), j
        return None

    def range(self) -> tuple[int, int]:
        """Smallest and largest value, inclusive (exact for affine indices, else a bound)."""
        lo = hi = self.const
        for atom, coeff in self.terms.items():
            a, b = _atom_range(atom)
            lo += coeff * (a if coeff > 0 else b)
            hi += coeff * (b if coeff > 0 else a)
        return lo, hi

    def reach(self) -> tuple[int, int]:
        """As `range`, and exact where a variable's limit is an affine index of variables around it."""
        return -(-self)._greatest(), self._greatest()

    def _greatest(self) -> int:
        index = self
        while True:
            limited = [v for v in index.terms if isinstance(v, Var) and v.limit is not None]
            if not limited:
                return index.range()[1]
            var = max(limited, key=lambda v: v.depth)
            assert var.limit is not None
            coeff = index.terms[var]
            rest = Index(index.const, {a: c for a, c in index.terms.items() if a is not var})
            index = rest + (var.limit - 1) * coeff if coeff > 0 else rest

    def coeff(self, var: Atom) -> int:
        return self.terms.get(var, 0)

    @property
    def affine(self) -> bool:
        """Whether it is a sum of loop variables: no division is left, nothing is read from memory."""
        return all(type(atom) is Var for atom in self.terms)

    def is_affine_in(self, var: Var) -> bool:
        """Whether `var` occurs only as `coeff * var`, never under a division or in data."""
        return self.stride(var) is not None

    def stride(self, var: Var) -> int | None:
        """By how much each iteration of a loop moves the index; None if not by the same each time."""
        stride = 0
        for atom, coeff in self.terms.items():
            if atom is var:
                stride = coeff
            elif type(atom) is not Var and depends_on(atom, var):
                return None
        return stride

    def strides(self, loops: Sequence[Var]) -> tuple[int, ...] | None:
        """The stride of each loop, if there is nothing else to the index but a constant."""
        if any(atom not in loops for atom in self.terms):
            return None
        return tuple([self.coeff(v) for v in loops])

    def substitute(self, env: Mapping[Var, Index]) -> Index:
        """Replace variables; data atoms must not depend on them (the caller checks)."""
        parts: list[tuple[Index, int]] = []
        changed = False
        for atom, coeff in self.terms.items():
            new = None
            if isinstance(atom, Var):
                new = env.get(atom)
            elif isinstance(atom, Div):
                inner = atom.index.substitute(env)
                new = inner % atom.n if isinstance(atom, Mod) else inner // atom.n
            changed |= new is not None
            parts.append((Index(0, {atom: 1}) if new is None else new, coeff))
        return _sum(self.const, parts) if changed else self


ZERO = Index()


def of_var(var: Var) -> Index:
    """The index that is just `var`; a variable with one value is 0."""
    return Index(0, {var: 1}) if var.extent != 1 else ZERO


def linear(indices: Iterable[Index], strides: Iterable[int], offset: int = 0) -> Index:
    """The element offset of a position in a strided array."""
    return _sum(offset, list(zip(indices, strides, strict=True)))


def delinearise(flat: Index, shape: tuple[int, ...]) -> tuple[Index, ...]:
    """The position in a C-contiguous array of `shape` whose flat index is `flat`."""
    out: list[Index] = []
    for n in reversed(shape[1:]):
        flat, r = flat._divmod(n) if n else (flat, ZERO)
        out.append(r)
    if shape:
        out.append(flat)
    return tuple(reversed(out))


def depends_on(atom: Atom, var: Var) -> bool:
    """Whether the atom's value changes with `var`."""
    if isinstance(atom, Var):
        return atom is var
    if isinstance(atom, Div):
        return any(depends_on(a, var) for a in atom.index.terms)
    return var in atom.vars


def data_of(index: Index) -> list[Data]:
    """What an index reads from memory, under divisions too."""
    data: list[Data] = []
    for atom in index.terms:
        if isinstance(atom, Data):
            data.append(atom)
        elif isinstance(atom, Div):
            data += data_of(atom.index)
    return data


def follows(index: Index, loop: Var, env: Mapping[Var, Index]) -> bool:
    """Whether what an index reads from memory may change along a loop.

    `env`: what the loops that the data were computed with have become. (`substitute` leaves data alone.)
    """
    made_with = {v for data in data_of(index) for v in data.vars}
    return any(loop in variables(env[v]) if v in env else v is loop for v in made_with)


def same(index: Index, other: Index) -> bool:
    """Whether two indices have the same value at each point, loops of one iteration aside."""
    ones = {v: ZERO for v in variables(index) | variables(other) if v.extent == 1}
    return index.substitute(ones) == other.substitute(ones)


def variables(index: Index) -> set[Var]:
    """Every loop variable in `index`, those under divisions and inside data too."""
    names: set[Var] = set()
    for atom in index.terms:
        if isinstance(atom, Var):
            names.add(atom)
        else:
            names |= variables(atom.index) if isinstance(atom, Div) else atom.vars
    return names


def _atom_range(atom: Atom) -> tuple[int, int]:
    if isinstance(atom, Var):
        return 0, max(atom.extent - 1, 0)
    if isinstance(atom, Mod):
        return 0, atom.n - 1
    if isinstance(atom, Div):
        lo, hi = atom.index.range()
        return lo // atom.n, hi // atom.n
    return atom.lo, atom.hi


def _sum(const: int, parts: Sequence[tuple[Index, int]]) -> Index:
    """const + sum(index * factor), added up in this order."""
    terms: dict[Atom, int] = {}
    total = const
    for index, factor in parts:
        if not factor:
            continue
        total += index.const * factor
        for atom, coeff in index.terms.items():
            if type(atom) is Mod:  # may meet what it recombines with
                return sum((i * k for i, k in parts), Index(const))
            both = terms.get(atom, 0) + coeff * factor
            if both:
                terms[atom] = both
            else:
                del terms[atom]
    return Index(total, terms)


def _recombine(index: Index) -> Index:
    """n*k*(x // n) + k*(x % n) -> k*x."""
    for atom, coeff in index.terms.items():
        if type(atom) is Mod:
            div = Div(atom.index, atom.n)
            if index.terms.get(div) == coeff * atom.n:
                terms = {a: c for a, c in index.terms.items() if a != atom and a != div}
                return Index(index.const, terms) + atom.index * coeff
    return index
