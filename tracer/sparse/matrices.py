"""Sparse matrices as trees of arrays: compressed rows, compressed columns, coordinates."""

from __future__ import annotations

import operator
from typing import Any, ClassVar, NoReturn, TypeVar

import numpy as np

from ..data import pytree
from ..messages import errors
from ..messages.errors import complain
from .products import compressed_product, coordinate_product, numbers_of_rows, whole_matrix

M = TypeVar("M", bound="Sparse")
_NUMBERS = (bool, int, float, complex, np.generic)


class Sparse:
    """What all formats do. Elements are in `data`; those that stand for one place add up."""

    __array_ufunc__ = None  # so NumPy's `x @ matrix` comes here
    __array_priority__ = 1000
    data: Any
    shape: tuple[int, int]
    ndim: ClassVar[int] = 2

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self.data.dtype

    @property
    def nnz(self) -> int:
        """How many elements are there."""
        return int(self.data.shape[0])

    @property
    def T(self) -> Any:
        """The transposed matrix, of the same arrays."""
        raise NotImplementedError

    def with_data(self: M, data: Any) -> M:
        """The matrix with other elements in the same places: `A.with_data(np.exp(A.data))`."""
        if np.shape(data) != (self.nnz,):
            _refuse("there is not one element for each place", data=data, matrix=self)
        return _made(type(self), {**vars(self), "data": data})

    def astype(self: M, dtype: Any) -> M:
        """The matrix with its elements converted."""
        return self.with_data(self.data.astype(dtype))

    def tocoo(self) -> COO:
        """The matrix as coordinates."""
        raise NotImplementedError

    def to_dense(self) -> Any:
        """The whole matrix, with zeros; elements that stand for one place are added.

        >>> jt.sparse.COO(np.array([1.0, 2.0]), np.array([0, 0]), np.array([1, 1]), (1, 2)).to_dense()
        array([[0., 3.]])
        """
        a = self.tocoo()
        return whole_matrix(a.row, a.col, a.data, self.shape)

    toarray = to_dense

    def to_scipy(self) -> Any:
        """SciPy's array of the same format, sharing memory. Not in compiled code."""
        import scipy.sparse as scipy_sparse

        parts = [np.asarray(v) for v in self._arrays()]
        made = getattr(scipy_sparse, f"{type(self).__name__.lower()}_array")
        return made(self._scipy(parts), shape=self.shape)

    def _arrays(self) -> tuple[Any, ...]:
        children, _ = pytree.dataclass_fields(type(self)) or ((), ())
        return tuple(getattr(self, name) for name in children)

    def _scipy(self, parts: list[Any]) -> Any:
        return tuple(parts)

    def dot(self, other: Any) -> Any:
        """`self @ other`."""
        return self @ other

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, Sparse) or _is_scipy(other):
            complain(
                errors.UnsupportedFunctionError,
                "a product of two sparse matrices has as many elements as values say",
                "multiply them outside of compiled code, by SciPy, or one of them as to_dense().",
                operands={"left": self, "right": other},
            )
        x = _operand(other)
        if x.ndim not in (1, 2) or x.shape[0] != self.shape[1]:
            _refuse_product(self, x, matrix=self, other=x)
        return self._product(x)

    def __rmatmul__(self, other: Any) -> Any:
        x = _operand(other)
        if x.ndim not in (1, 2) or x.shape[-1] != self.shape[0]:
            _refuse_product(x, self, other=x, matrix=self)
        return (self.T @ x.T).T

    def _product(self, x: Any) -> Any:
        raise NotImplementedError

    def __mul__(self: M, other: Any) -> M:
        if np.shape(other) != ():
            return NotImplemented
        return self.with_data(self.data * other)

    __rmul__ = __mul__

    def __truediv__(self: M, other: Any) -> M:
        if np.shape(other) != ():
            return NotImplemented
        return self.with_data(self.data / other)

    def __neg__(self: M) -> M:
        return self.with_data(-self.data)

    def sum(self, axis: int | None = None) -> Any:
        """The sum of all elements, of each column (axis 0) or of each row (axis 1)."""
        if axis is None:
            return self.data.sum()
        whole = self.T if axis % 2 == 0 else self
        return whole @ np.ones(whole.shape[1], self.dtype if self.dtype != bool else np.int64)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.shape[0]} x {self.shape[1]}, {self.nnz} of {self.dtype})"
        )


def _operand(x: Any) -> Any:
    return x if hasattr(x, "dtype") else np.asarray(x)


def _made(cls: type[M], fields: dict[str, Any]) -> M:
    matrix = object.__new__(cls)
    matrix.__dict__.update(fields)
    return matrix


def _shape(shape: Any) -> tuple[int, int]:
    sizes = tuple(operator.index(n) for n in shape)
    if len(sizes) != 2 or min(sizes) < 0:
        raise ValueError(f"a sparse matrix has two sizes, not shape={shape}")
    return sizes


def _checked(matrix: Sparse, **integers: Any) -> None:
    """The parts of a matrix: 1-d, numbers of integers; lists become arrays."""
    for name in ("data", *integers):
        x = _operand(getattr(matrix, name))
        setattr(matrix, name, x)
        if x.ndim != 1 or (name != "data" and x.dtype.kind not in "iu"):
            what = "elements" if name == "data" else "integers"
            _refuse(f"{name} is no array of {what} with one axis", **{name: x})
    for name, length in integers.items():
        x = getattr(matrix, name)
        if length is not None and x.shape[0] != length:
            _refuse(
                f"{name} has {x.shape[0]} numbers, not {length}", **{name: x, "data": matrix.data}
            )


def _check_range(name: str, x: Any, n: int) -> None:
    if isinstance(x, np.ndarray) and x.size and not 0 <= x.min() <= x.max() < n:
        wrong = x.min() if x.min() < 0 else x.max()
        complain(
            errors.BoundsError,
            f"sparse: {name} has the number {wrong}, and they are from 0 to {n - 1}",
            "give numbers in that range, or a larger shape.",
            operands={name: x},
        )


def _refuse(what: str, **shown: Any) -> NoReturn:
    complain(
        errors.ShapeError,
        f"sparse: {what}",
        "give arrays as scipy.sparse has them: data, indices, indptr; or data, row, col.",
        operands=shown,
    )


def _refuse_product(left: Any, right: Any, **shown: Any) -> NoReturn:
    complain(
        errors.ShapeError,
        f"sparse: shapes {left.shape} and {right.shape} do not go together in a product",
        "the last size of the left one is the first size of the right; operands have one axis or two.",
        operands=shown,
    )


class COO(Sparse):
    """A sparse matrix by coordinates: `data[k]` stands in row `row[k]` and column `col[k]`.

    >>> A = jt.sparse.COO(np.array([2.0, 3.0]), np.array([0, 1]), np.array([1, 0]), (2, 2))
    >>> A @ np.array([1.0, 10.0])
    array([20.,  3.])
    """

    def __init__(self, data: Any, row: Any, col: Any, shape: Any) -> None:
        self.data, self.row, self.col, self.shape = data, row, col, _shape(shape)
        _checked(self, row=None, col=None)
        _checked(self, row=self.nnz, col=self.nnz)
        _check_range("row", self.row, self.shape[0])
        _check_range("col", self.col, self.shape[1])

    @property
    def T(self) -> COO:
        return _made(
            COO, {"data": self.data, "row": self.col, "col": self.row, "shape": self.shape[::-1]}
        )

    def tocoo(self) -> COO:
        return self

    def _product(self, x: Any) -> Any:
        return coordinate_product(self.row, self.col, self.data, x, self.shape[0])

    def _scipy(self, parts: list[Any]) -> Any:
        return parts[0], (parts[1], parts[2])


class _Compressed(Sparse):
    """Rows, or columns, one after the other: `indptr` says where each begins."""

    _major: ClassVar[int]

    def __init__(self, data: Any, indices: Any, indptr: Any, shape: Any) -> None:
        self.data, self.indices, self.indptr, self.shape = data, indices, indptr, _shape(shape)
        major, minor = self.shape[self._major], self.shape[1 - self._major]
        _checked(self, indices=None, indptr=None)
        _checked(self, indices=self.nnz, indptr=major + 1)
        _check_range("indices", self.indices, minor)
        p = self.indptr
        if isinstance(p, np.ndarray) and (p[0] != 0 or p[-1] > self.nnz or (np.diff(p) < 0).any()):
            _refuse(
                "indptr does not rise from 0 to the number of elements", indptr=p, data=self.data
            )

    @property
    def T(self) -> Any:
        return _made(_OTHER[type(self)], {**vars(self), "shape": self.shape[::-1]})

    def tocoo(self) -> COO:
        number = numbers_of_rows(self.indptr, self.nnz)
        places = (number, self.indices)[:: 1 if self._major == 0 else -1]
        return _made(
            COO, {"data": self.data, "row": places[0], "col": places[1], "shape": self.shape}
        )

    def _product(self, x: Any) -> Any:
        across = self._major == 1
        return compressed_product(
            self.indptr, self.indices, self.data, x, self.shape[1 - self._major], across
        )


class CSR(_Compressed):
    """A sparse matrix by rows: elements `data[indptr[r]:indptr[r + 1]]` of row r stand in the columns
    `indices[indptr[r]:indptr[r + 1]]`.

    >>> A = jt.sparse.CSR(np.array([2.0, 3.0]), np.array([1, 0]), np.array([0, 1, 2]), (2, 2))
    >>> A @ np.array([1.0, 10.0]), A.T.to_dense().tolist()
    (array([20.,  3.]), [[0.0, 3.0], [2.0, 0.0]])
    """

    _major = 0


class CSC(_Compressed):
    """A sparse matrix by columns, as `CSR` is by rows: what a CSR transposed is.

    >>> jt.sparse.CSC(np.array([2.0]), np.array([1]), np.array([0, 0, 1]), (2, 2)).to_dense()
    array([[0., 0.],
           [0., 2.]])
    """

    _major = 1


_OTHER: dict[type, Any] = {CSR: CSC, CSC: CSR}
pytree.register_attributes(COO, ("data", "row", "col"), ("shape",))
for _cls in (CSR, CSC):
    pytree.register_attributes(_cls, ("data", "indices", "indptr"), ("shape",))


def _is_scipy(x: Any) -> bool:
    return str(type(x).__module__).startswith("scipy.sparse")


def from_scipy(matrix: Any) -> Any:
    """SciPy's sparse matrix or array as CSR, CSC or COO, sharing memory; other formats become CSR.

    Functions under `jt.jit`, `jt.grad` and their kin take SciPy's own, too.

    >>> import scipy.sparse
    >>> jt.sparse.from_scipy(scipy.sparse.eye_array(3, format="csr"))
    CSR(3 x 3, 3 of float64)
    """
    if not _is_scipy(matrix) or matrix.ndim != 2:
        complain(
            errors.ArgumentError,
            f"from_scipy: {type(matrix).__name__} is no sparse matrix of SciPy's with two axes",
            "give one of scipy.sparse, or arrays to jt.sparse.CSR.",
            operands={"matrix": matrix},
        )
    name = matrix.format
    if name == "coo":
        parts = {"data": matrix.data, "row": matrix.row, "col": matrix.col}
        return _made(COO, {**parts, "shape": matrix.shape})
    if name not in ("csr", "csc"):
        matrix, name = matrix.tocsr(), "csr"
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
    return _made(CSR if name == "csr" else CSC, {**parts, "shape": matrix.shape})


def take_scipys() -> None:
    """Let SciPy's matrices stand for what `from_scipy` makes of them, in every tree."""
    import scipy.sparse as scipy_sparse

    for name in ("coo", "csr", "csc", "bsr", "dia", "dok", "lil"):
        for kind in ("array", "matrix"):
            pytree.convert_leaves(getattr(scipy_sparse, f"{name}_{kind}"), from_scipy)
