"""Examples to arrays: which features are wanted, of which shape and dtype.

A feature of one length becomes a dense array, one of any length an array that batches pad, a `Ragged`
or a `Sparse`; `parse_example` does one record, `parse_examples` a batch of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import jitney as jt

from .errors import DataError, refuse
from .messages import parsed
from .trees import Array, stack, texts


class FixedLen(NamedTuple):
    """A feature that has this shape in each example; `default` stands where it is missing.

    >>> jt.data.parse_example(jt.data.example({}), {"x": jt.data.FixedLen((2,), np.float32, 0)})
    {'x': array([0., 0.], dtype=float32)}
    """

    shape: Sequence[int]
    dtype: Any
    default: Any = None


class FixedLenSequence(NamedTuple):
    """A feature of any number of entries, each of this shape: an array `(entries, *shape)`.

    `missing=True` lets it be missing, as no entries. In a SequenceExample an entry is a step.

    >>> message = jt.data.example({"x": [1, 2, 3, 4]})
    >>> jt.data.parse_example(message, {"x": jt.data.FixedLenSequence((2,), np.int64)})["x"].tolist()
    [[1, 2], [3, 4]]
    """

    shape: Sequence[int]
    dtype: Any
    missing: bool = False


class VarLen(NamedTuple):
    """A feature of any length, or none. One example has it as an array of one axis.

    A batch has it as a `Ragged`, with `layout="padded"` as an array filled up with `value`, with
    `layout="sparse"` as a `Sparse`.

    >>> messages = [jt.data.example({"x": [1, 2]}), jt.data.example({"x": [3]})]
    >>> jt.data.parse_examples(messages, {"x": jt.data.VarLen(np.int64, "padded")})["x"].tolist()
    [[1, 2], [3, 0]]
    """

    dtype: Any
    layout: str = "ragged"
    value: Any = 0


class Ragged(NamedTuple):
    """Rows of different lengths, one after the other: row i is `values[offsets[i]:offsets[i + 1]]`.

    >>> jt.data.Ragged(np.array([1, 2, 3]), np.array([0, 2, 2, 3])).rows()
    [array([1, 2]), array([], dtype=int64), array([3])]
    """

    values: Array
    offsets: Array

    @property
    def stacks(self) -> bool:
        """Whether two of them can be stacked part by part."""
        return False

    @property
    def lengths(self) -> Array:
        return np.diff(self.offsets)

    def rows(self) -> list[Array]:
        """The rows, which are views."""
        return [self.values[a:b] for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True)]

    def padded(self, value: Any = 0) -> Array:
        """One array `(rows, longest)`, filled up."""
        lengths = self.lengths
        out = np.full((len(lengths), max(lengths, default=0)), value, self.values.dtype)
        out[np.arange(out.shape[1]) < lengths[:, None]] = self.values
        return out

    def sparse(self) -> Sparse:
        """The same as coordinates and values."""
        lengths = self.lengths
        rows = np.repeat(np.arange(len(lengths)), lengths)
        columns = np.arange(len(self.values)) - np.repeat(self.offsets[:-1], lengths)
        shape = (len(lengths), int(max(lengths, default=0)))
        return Sparse(np.stack([rows, columns], 1), self.values, shape)


class Sparse(NamedTuple):
    """Entries by their coordinates: `dense[tuple(indices[i])] == values[i]`.

    `scipy.sparse.coo_array((values, indices.T), shape)` is the same for SciPy.

    >>> jt.data.Ragged(np.array([7, 8]), np.array([0, 0, 2])).sparse().indices.tolist()
    [[1, 0], [1, 1]]
    """

    indices: Array
    values: Array
    shape: tuple[int, ...]

    @property
    def stacks(self) -> bool:
        """Whether two of them can be stacked part by part."""
        return False


Features = Mapping[str, FixedLen | FixedLenSequence | VarLen]
_FIELDS = {"O": "bytes_list", "i": "int64_list", "u": "int64_list", "b": "int64_list"}


def parse_example(record: Any, features: Features) -> dict[str, Any]:
    """The features of one Example, of its bytes or the message.

    Texts are bytes, as they are stored; `dtype=str` decodes them. Raises DataError for bytes that are
    no Example, and for a feature that is missing or has another length or kind.

    >>> message = jt.data.example({"x": [1.0, 2.0], "name": "a"})
    >>> wanted = {"x": jt.data.VarLen(np.float32), "name": jt.data.FixedLen((), str)}
    >>> jt.data.parse_example(message.SerializeToString(), wanted)
    {'x': array([1., 2.], dtype=float32), 'name': 'a'}
    """
    try:
        found = parsed(record, "Example").features.feature
        return {name: _value(found, name, wanted) for name, wanted in features.items()}
    except Exception as error:
        _check_wanted(features)
        jt.errors.note_line(error)
        raise


@jt.errors.naming_lines
def parse_examples(records: Sequence[Any], features: Features) -> dict[str, Any]:
    """A batch of the features of several Examples: stacked, ragged, padded or sparse.

    >>> records = [jt.data.example({"x": 1}), jt.data.example({"x": 2})]
    >>> jt.data.parse_examples(records, {"x": jt.data.FixedLen((), np.int64)})["x"]
    array([1, 2])
    """
    rows: list[dict[str, Any]] = []
    for i, record in enumerate(records):
        try:
            rows.append(parse_example(record, features))
        except DataError as error:
            error.add_note(f"in record {i} of the batch")
            raise
    return {
        name: _batch([row[name] for row in rows], wanted, name) for name, wanted in features.items()
    }


@jt.errors.naming_lines
def parse_sequence_example(
    record: Any, context: Features, sequences: Features
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The context of one SequenceExample, and its sequences.

    Of a sequence, `FixedLenSequence(shape, dtype)` gives an array `(steps, *shape)`, and `VarLen` a
    `Ragged` (or padded, or sparse) of one row for each step.

    >>> message = jt.data.sequence_example({"id": 1}, {"words": [[1, 2], [3]]})
    >>> jt.data.parse_sequence_example(
    ...     message, {"id": jt.data.FixedLen((), np.int64)},
    ...     {"words": jt.data.VarLen(np.int64, "padded")})
    ({'id': np.int64(1)}, {'words': array([[1, 2],
           [3, 0]])})
    """
    found = parsed(record, "SequenceExample")
    outer = {n: _value(found.context.feature, n, wanted) for n, wanted in context.items()}
    lists = found.feature_lists.feature_list
    return outer, {n: _steps(lists, n, wanted) for n, wanted in sequences.items()}


def _steps(lists: Any, name: str, wanted: Any) -> Any:
    if isinstance(wanted, FixedLen):
        raise TypeError(
            f"the sequence {name!r} is a FixedLenSequence(shape, dtype) or a VarLen(dtype)"
        )
    if name not in lists:
        if isinstance(wanted, FixedLenSequence) and not wanted.missing:
            raise DataError(f"feature list {name!r} is missing; the record has {sorted(lists)}")
        steps = []
    else:
        steps = [
            _flat(step, f"{name!r}, step {i}", wanted.dtype)
            for i, step in enumerate(lists[name].feature)
        ]
    if isinstance(wanted, VarLen):
        return _batch(steps, wanted, name)
    if not steps:
        return _empty(wanted.dtype).reshape(0, *wanted.shape)
    shaped = [_shaped(s, f"{name!r}, step {i}", wanted.shape) for i, s in enumerate(steps)]
    return np.asarray(stack(shaped))


def _batch(rows: list[Any], wanted: Any, name: str) -> Any:
    if isinstance(wanted, FixedLen):
        return stack(rows) if rows else _empty(wanted.dtype).reshape(0, *wanted.shape)
    lengths = [len(row) for row in rows]
    if isinstance(wanted, FixedLenSequence):
        out = np.zeros((len(rows), max(lengths, default=0), *wanted.shape), _stored(wanted.dtype))
        for i, row in enumerate(rows):
            out[i, : len(row)] = row
        return out
    values = np.concatenate(rows) if rows else _empty(wanted.dtype)
    ragged = Ragged(
        values, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
    )
    if wanted.layout == "padded":
        return ragged.padded(wanted.value)
    if wanted.layout == "sparse":
        return ragged.sparse()
    if wanted.layout != "ragged":
        raise ValueError(
            f'VarLen {name!r} has no layout {wanted.layout!r}: give "ragged", "padded" or "sparse"'
        )
    return ragged


def _check_wanted(features: Features) -> None:
    for name, wanted in features.items():
        if not isinstance(wanted, (FixedLen, FixedLenSequence, VarLen)):
            refuse(
                f"feature {name!r} is wanted as {wanted!r}",
                "give FixedLen(shape, dtype), VarLen(dtype) or FixedLenSequence(shape, dtype).",
                TypeError,
            )


def _value(features: Any, name: str, wanted: Any) -> Any:
    if name not in features or features[name].WhichOneof("kind") is None:
        if isinstance(wanted, FixedLen) and wanted.default is not None:
            filled = np.full(tuple(wanted.shape), wanted.default, _stored(wanted.dtype))
            return filled[()] if filled.dtype != object or wanted.shape else wanted.default
        if isinstance(wanted, VarLen):
            return _empty(wanted.dtype)
        if isinstance(wanted, FixedLenSequence) and wanted.missing:
            return _empty(wanted.dtype).reshape(0, *wanted.shape)
        raise DataError(
            f"feature {name!r} is missing; the record has {sorted(features)}: give one of these, or "
            "FixedLen a default="
        )
    flat = _flat(features[name], repr(name), wanted.dtype)
    if isinstance(wanted, VarLen):
        return flat
    if isinstance(wanted, FixedLen):
        return _shaped(flat, repr(name), wanted.shape)
    inner = int(np.prod(wanted.shape, dtype=np.int64))
    if inner == 0 or len(flat) % inner:
        raise DataError(
            f"feature {name!r} has {len(flat)} values, not a number of {tuple(wanted.shape)}"
        )
    return flat.reshape(-1, *wanted.shape)


def _shaped(flat: Array, name: str, shape: Sequence[int]) -> Any:
    try:
        return flat.reshape(tuple(shape))[()]
    except ValueError:
        raise DataError(
            f"feature {name} has {len(flat)} values, and is wanted in shape {tuple(shape)}: VarLen "
            "takes any number"
        ) from None


def _stored(dtype: Any) -> np.dtype[Any]:
    return np.dtype(object if dtype in (str, bytes) else dtype)


def _empty(dtype: Any) -> Array:
    return np.empty(0, _stored(dtype))


def _flat(feature: Any, name: str, dtype: Any) -> Array:
    """The values of a feature, of the dtype that is asked for."""
    kind = feature.WhichOneof("kind")
    if kind is None or not getattr(feature, kind).value:
        return _empty(dtype)
    stored = _stored(dtype)
    fits = _FIELDS.get(stored.kind, "float_list")
    if kind != fits:
        raise DataError(
            f"feature {name} is a {kind}, and was asked for as {stored}: ask for bytes, ints or "
            "floats, as it is stored"
        )
    values = getattr(feature, kind).value
    if kind == "float_list":
        return _floats(feature.float_list, len(values)).astype(stored)
    if kind == "int64_list":
        found = np.array(values, np.int64)
        narrow = found.astype(stored)
        if stored != np.int64 and (narrow != found).any():
            raise DataError(
                f"feature {name} has {found[narrow != found][0]}, too large for {stored}"
            )
        return narrow
    try:
        return texts([v.decode() for v in values] if dtype is str else list(values))
    except UnicodeDecodeError as error:
        raise DataError(f"feature {name} is not UTF-8 ({error}): ask for bytes") from error


def _floats(stored: Any, count: int) -> Array:
    """They lie in the message's bytes one after the other, behind its head: no object for each."""
    data = stored.SerializeToString()
    return np.frombuffer(data, "<f4", count, len(data) - 4 * count)
