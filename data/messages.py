"""`Example` and `SequenceExample`: protobuf messages as TensorFlow's public format has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

import jitney as jt

from .errors import DataError, describe

# Of each message: its fields, by name, as (number, type, repeated). A type in angle brackets is a map's.
_MESSAGES = {
    "BytesList": {"value": (1, "bytes", True)},
    "FloatList": {"value": (1, "float", True)},
    "Int64List": {"value": (1, "int64", True)},
    "Feature": {
        "bytes_list": (1, "BytesList", False),
        "float_list": (2, "FloatList", False),
        "int64_list": (3, "Int64List", False),
    },
    "Features": {"feature": (1, "<Feature>", True)},
    "Example": {"features": (1, "Features", False)},
    "FeatureList": {"feature": (1, "Feature", True)},
    "FeatureLists": {"feature_list": (1, "<FeatureList>", True)},
    "SequenceExample": {
        "context": (1, "Features", False),
        "feature_lists": (2, "FeatureLists", False),
    },
}
_SCALARS = {"bytes": 12, "float": 2, "int64": 3, "string": 9}
_MESSAGE, _OPTIONAL, _REPEATED = 11, 1, 3


@cache
def message(name: str) -> Any:
    """The class of a message: `"Example"`, `"SequenceExample"` or a part of them."""
    return _classes()[f"tensorflow.{name}"]


@cache
def _classes() -> dict[str, Any]:
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError as error:
        raise ImportError(
            f"Example needs the protobuf package ({error}): pip install 'jitney[data]'"
        ) from error
    file = descriptor_pb2.FileDescriptorProto(
        name="jitney/example.proto", package="tensorflow", syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        described = file.message_type.add(name=name)
        if name == "Feature":
            described.oneof_decl.add(name="kind")
        for field, (number, kind, repeated) in fields.items():
            if kind.startswith("<"):
                entry = described.nested_type.add(name=f"{field.title().replace('_', '')}Entry")
                entry.options.map_entry = True
                _field(entry, "key", 1, "string", False)
                _field(entry, "value", 2, kind[1:-1], False)
                kind = f"{name}.{entry.name}"
            added = _field(described, field, number, kind, repeated)
            if name == "Feature":
                added.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()  # of our own: another package may have these names
    pool.Add(file)
    return message_factory.GetMessageClassesForFiles([file.name], pool)


def _field(described: Any, name: str, number: int, kind: str, repeated: bool) -> Any:
    label = _REPEATED if repeated else _OPTIONAL
    if kind in _SCALARS:
        return described.field.add(name=name, number=number, label=label, type=_SCALARS[kind])
    kind = f".tensorflow.{kind}"
    return described.field.add(name=name, number=number, label=label, type=_MESSAGE, type_name=kind)


@jt.errors.naming_lines
def feature(value: Any) -> Any:
    """A `Feature` of a number, text, bytes, or a sequence or array of them, which is written flat.

    Floats are float32 in the format; integers, and booleans, int64.

    >>> list(jt.data.feature([1, 2]).int64_list.value)
    [1, 2]
    """
    found = message("Feature")()
    if isinstance(value, (list, tuple)) and not value:
        return found  # of no kind: it will do for each
    if isinstance(value, (str, bytes)):
        value = [value]
    try:
        array = np.asarray(value)
    except ValueError:
        raise TypeError(
            f"a feature is written flat, and {describe(value)} is none: a sequence_example has one for "
            "each step"
        ) from None
    if array.dtype.kind in "OUS" or (isinstance(value, (list, tuple)) and _has_texts(value)):
        flat = np.asarray(value, object).ravel().tolist()
        if not all(isinstance(x, (str, bytes)) for x in flat):
            raise TypeError(f"a feature has numbers, texts or bytes, not {describe(value)}")
        found.bytes_list.value.extend(x.encode() if isinstance(x, str) else x for x in flat)
    elif array.dtype.kind in "iub":
        if array.size and array.dtype == np.uint64 and array.max() > np.iinfo(np.int64).max:
            raise OverflowError(f"features are int64, which {array.max()} is too large for")
        found.int64_list.value.extend(array.ravel().astype(np.int64).tolist())
    elif array.dtype.kind in "fV":
        found.float_list.value.extend(array.ravel().astype(np.float32).tolist())
    else:
        raise TypeError(f"a feature has numbers, texts or bytes, not {describe(array)}")
    return found


def _has_texts(value: Any) -> bool:
    return any(isinstance(x, (str, bytes)) for x in value)


@jt.errors.naming_lines
def example(features: Mapping[str, Any]) -> Any:
    """An `Example` message of named values, each of those that `feature` takes.

    >>> message = jt.data.example({"label": 3, "image": np.zeros((2, 2)), "name": "a"})
    >>> jt.data.parse_example(message, {"label": jt.data.FixedLen((), np.int64)})
    {'label': np.int64(3)}
    """
    found = message("Example")()
    for name, value in features.items():
        found.features.feature[name].CopyFrom(_named(name, value))
    return found


@jt.errors.naming_lines
def sequence_example(context: Mapping[str, Any], lists: Mapping[str, Sequence[Any]]) -> Any:
    """A `SequenceExample`: named values, and named sequences of values, one a step.

    >>> message = jt.data.sequence_example({"id": 1}, {"words": [[1, 2], [3]]})
    >>> len(message.feature_lists.feature_list["words"].feature)
    2
    """
    found = message("SequenceExample")()
    for name, value in context.items():
        found.context.feature[name].CopyFrom(_named(name, value))
    for name, steps in lists.items():
        found.feature_lists.feature_list[name].feature.extend(_named(name, s) for s in steps)
    return found


def _named(name: str, value: Any) -> Any:
    try:
        return feature(value)
    except (TypeError, OverflowError, ValueError) as error:
        error.add_note(f"in feature {name!r}")
        raise


def parsed(record: Any, name: str) -> Any:
    """A message of that name: of its bytes, or as it is. Raises DataError for other bytes."""
    if not isinstance(record, (bytes, bytearray, memoryview)):
        if type(record).__name__ == name:
            return record
        raise TypeError(f"a record is bytes or an {name}, not {describe(record)}")
    try:
        return message(name).FromString(bytes(record))
    except Exception as error:  # DecodeError, whose home is not the same in all versions
        raise DataError(f"{len(record)} bytes are no {name} message ({error})") from error
