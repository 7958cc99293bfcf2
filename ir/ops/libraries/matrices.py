"""Formulas over batches of matrices: `q.H @ t`, `x.tril()`, as `term` has them over elements."""

from __future__ import annotations

from ...build import Builder
from ...graph import Value
from ...types import I64, is_complex
from ..term import Term


class Matrix(Term):
    """A value of shape [*batch, rows, columns]; or of vectors, [*batch, n], where it says so."""

    __slots__ = ()

    def __matmul__(self, other: Matrix) -> Matrix:
        lead = tuple(range(len(self.value.shape) - 2))
        contract = ((len(lead) + 1,), (len(lead),))
        product = self.b.op("dot", self.value, other.value, contract=contract, batch=(lead, lead))
        return Matrix(self.b, product)

    @property
    def mT(self) -> Matrix:
        rank = len(self.value.shape)
        perm = (*range(rank - 2), rank - 1, rank - 2)
        return Matrix(self.b, self.b.op("transpose", self.value, perm=perm))

    @property
    def H(self) -> Matrix:
        """The conjugate transpose."""
        return self.conjugate().mT

    def conjugate(self) -> Matrix:
        return Matrix(self.b, self.b.op("conj", self.value)) if self.complex else self

    @property
    def complex(self) -> bool:
        return is_complex(self.value.dtype)

    def real_part(self) -> Matrix:
        return Matrix(self.b, self.b.op("real", self.value)) if self.complex else self

    def like(self, other: Matrix) -> Matrix:
        """Real numbers as complex ones, if the other's are."""
        if self.value.dtype == other.value.dtype:
            return self
        return Matrix(self.b, self.b.op("convert", self.value, dtype=other.value.dtype))

    def indices(self) -> tuple[Term, Term]:
        """The numbers of rows and of columns."""
        shape, rank = self.value.shape[-2:], len(self.value.shape)

        def index(axis: int) -> Term:
            number = self.b.op("iota", shape=shape, dtype=I64, axis=axis)
            dims = (rank - 2, rank - 1)
            if rank > 2:
                number = self.b.op("broadcast", number, shape=self.value.shape, dims=dims)
            return Term(self.b, number)

        return index(0), index(1)

    def tril(self, strictly: bool = False) -> Matrix:
        """The lower triangle; zeros above, and on the diagonal too if `strictly`."""
        row, column = self.indices()
        return self._masked(column < row if strictly else column <= row)

    def triu(self) -> Matrix:
        row, column = self.indices()
        return self._masked(row <= column)

    def diagonal_only(self) -> Matrix:
        row, column = self.indices()
        return self._masked(row.eq(column))

    def without_diagonal(self) -> Matrix:
        row, column = self.indices()
        return self._masked(row.ne(column))

    def _masked(self, mask: Term) -> Matrix:
        zero = self.b.full_like(self.value, 0)
        return Matrix(self.b, self.b.op("select", mask.value, self.value, zero))

    def hermitian(self) -> Matrix:
        """The Hermitian matrix whose lower triangle this one's is."""
        diagonal = self.diagonal_only()
        if self.complex:
            diagonal = diagonal.real_part().like(self)
        below = self.tril(strictly=True)
        return diagonal + below + below.H

    def diagonal(self) -> Matrix:
        """The diagonals, as vectors."""
        short = min(self.value.shape[-2:])
        square = self.columns(short).rows(short)
        axes = (len(self.value.shape) - 1,)
        return Matrix(self.b, self.b.op("sum", square.diagonal_only().value, axes=axes))

    def columns(self, count: int) -> Matrix:
        return self._first(count, -1)

    def rows(self, count: int) -> Matrix:
        return self._first(count, -2)

    def _first(self, count: int, axis: int) -> Matrix:
        shape = list(self.value.shape)
        if shape[axis] == count:
            return self
        shape[axis] = count
        zeros, ones = (0,) * len(shape), (1,) * len(shape)
        part = self.b.op("slice", self.value, start=zeros, stop=tuple(shape), step=ones)
        return Matrix(self.b, part)

    def columns_from(self, start: int) -> Matrix:
        """All columns but the first ones."""
        shape = self.value.shape
        first = (*(0,) * (len(shape) - 1), start)
        part = self.b.op("slice", self.value, start=first, stop=shape, step=(1,) * len(shape))
        return Matrix(self.b, part)

    def rows_from(self, start: int) -> Matrix:
        return self.mT.columns_from(start).mT

    def beside(self, other: Matrix) -> Matrix:
        """The columns of both."""
        axis = len(self.value.shape) - 1
        return Matrix(self.b, self.b.op("concat", self.value, other.value, axis=axis))

    def trace(self) -> Matrix:
        rank = len(self.value.shape)
        return Matrix(
            self.b, self.b.op("sum", self.diagonal_only().value, axes=(rank - 2, rank - 1))
        )

    def total(self) -> Matrix:
        """The sum of each matrix's elements."""
        rank = len(self.value.shape)
        return Matrix(self.b, self.b.op("sum", self.value, axes=(rank - 2, rank - 1)))

    def column_sums(self) -> Matrix:
        """The sum of each column, as vectors."""
        rank = len(self.value.shape)
        return Matrix(self.b, self.b.op("sum", self.value, axes=(rank - 2,)))

    def as_rows(self, rows: int) -> Matrix:
        """Vectors, each repeated as all rows of a matrix."""
        *batch, n = self.value.shape
        dims = (*range(len(batch)), len(batch) + 1)
        shape = (*batch, rows, n)
        return Matrix(self.b, self.b.op("broadcast", self.value, shape=shape, dims=dims))

    def as_columns(self, columns: int) -> Matrix:
        """Vectors, each repeated as all columns of a matrix."""
        *batch, n = self.value.shape
        shape = (*batch, n, columns)
        dims = tuple(range(len(batch) + 1))
        return Matrix(self.b, self.b.op("broadcast", self.value, shape=shape, dims=dims))

    # Vectors, and numbers per matrix.

    def product(self) -> Matrix:
        """The product of each vector's elements."""
        axes = (len(self.value.shape) - 1,)
        return Matrix(self.b, self.b.op("prod", self.value, axes=axes))

    def repeated(self, count: int) -> Matrix:
        """Numbers as vectors of equal elements."""
        shape = self.value.shape
        dims = tuple(range(len(shape)))
        return Matrix(self.b, self.b.op("broadcast", self.value, shape=(*shape, count), dims=dims))

    def element(self, index: int) -> Value:
        """One element of each vector."""
        lead = self.value.shape[:-1]
        start, stop = (*(0,) * len(lead), index), (*lead, index + 1)
        part = self.b.op("slice", self.value, start=start, stop=stop, step=(1,) * len(stop))
        made: Value = self.b.op("reshape", part, shape=lead)
        return made

    def positions(self) -> Term:
        """The position of each element in its vector."""
        axis = len(self.value.shape) - 1
        return Term(self.b, self.b.op("iota", shape=self.value.shape, dtype=I64, axis=axis))

    def solve(self, right: Matrix) -> Matrix:
        """`self^-1 @ right`; NaN where there is none."""
        return Matrix(self.b, self.b.op("solve", self.value, right.value, mode="fill"))


def matrices(b: Builder, *values: Value) -> tuple[Matrix, ...]:
    """Values as matrices, to compute with."""
    return tuple(Matrix(b, v) for v in values)
