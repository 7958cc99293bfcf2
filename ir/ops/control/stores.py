"""store: containers that grow while a program runs, lists, deques, heaps, dicts and sets.

    %root, %t1 = store %t0 method="root"                  where a call's containers are kept
    %all, %t2  = store %root, %t1 method="end"            they leave the call: the first of them
    %list, %t2 = store %root, %t1 method="new"            an empty one: a handle, uint64
    %ok, %t3   = store %list, %x, %t2 method="append" ...

A handle stands for one container, whoever holds it, as a reference does in Python; it is a number, so
that branches choose between handles, loops carry them, and a container may hold others. What happens to
containers is ordered by the token. They live until the call returns.

A container is a *sequence* of records, or a *table* from keys to values. `key` and `value` are the
dtypes of a record: of a table those of its keys and of its values, of a sequence all of a record, of
which those in `key` decide the order where it is sorted (of a heap all, if there are none). A method
says with `ok` whether there is what was asked for; if not, the record that comes with it has no meaning.
Positions in tables are good until the table changes: `changes` counts the keys that were added, and of a
sequence how often it was said to be changed, by `touch`.

The reference is Python: a sequence is a list of tuples, a table a dict, a set a set; lists are sorted by
`list.sort`, heaps are those of `heapq`.
"""

from __future__ import annotations

import bisect
import heapq
import threading
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from ...batching.structured import refuse_stores
from ...graph import Op
from ...opdef import DerivativeError, GraphError, OpDef, register
from ...record import record
from ...types import BOOL, I64, TOKEN, TensorType, Type
from .store_sets import Members, assembled

HANDLE = TensorType((), np.dtype(np.uint64))
_LENGTH = TensorType((), I64)
_FLAG = TensorType((), BOOL)
_LEFT_BEHIND = 16  # runs that failed, of which the interpreter keeps the containers

Record = tuple[Any, ...]
DTypes = tuple[np.dtype[Any], ...]


class Items(list[Record]):
    """A sequence of the interpreter's. `made_of` is what it was made of, if that was there before."""

    changes = 0
    made_of: Any = None


class Table:
    """A table of the interpreter's: records by position, positions by key."""

    made_of: Any = None

    def __init__(self, changes: int = 0) -> None:
        self.positions: dict[Record, int] = {}
        self.records: list[tuple[Record, Record]] = []
        self.changes = changes

    def __len__(self) -> int:
        return len(self.positions)

    def put(self, key: Record, value: Record) -> None:
        position = self.positions.setdefault(key, len(self.records))
        if position == len(self.records):
            self.records.append((key, value))
            self.changes += 1
        else:
            self.records[position] = (self.records[position][0], value)

    def copy(self) -> Table:
        made = Table()
        for position in self.positions.values():
            made.put(*self.records[position])
        return made


class _Runs(threading.local):
    """The interpreter's containers: those of each run that has not ended, by the number of its root."""

    def __init__(self) -> None:
        self.objects: dict[int, list[Any]] = {}
        self.begun = 0

    def begin(self) -> int:
        self.begun += 1
        while len(self.objects) > _LEFT_BEHIND:
            del self.objects[next(iter(self.objects))]
        self.objects[self.begun] = []
        return self.begun << 32 | 1  # odd, as no address of native code's is

    def keep(self, root: int, made: Any) -> int:
        objects = self.objects[root >> 32]
        objects.append(made)
        return root + 2 * len(objects)

    def at(self, handle: int) -> Any:
        return self.objects[handle >> 32][(handle & 0xFFFFFFFF) // 2 - 1]


RUNS = _Runs()


@record
class Method:
    """`run(container, key, value, *operands)`; `takes` and `gives` are types, or "key", "value" or both
    for the parts of a record. `makes`: another container, kept in the root that is the first operand.
    `grows`: native code may run out of memory. `changes`: the container is another one afterwards."""

    run: Callable[..., Any]
    takes: tuple[Any, ...] = ()
    gives: tuple[Any, ...] = ()
    grows: bool = False
    changes: bool = True


def _whole(record: Record, count: int) -> Record:
    return (True, *record) if record else (False, *([0] * count))


def _get(items: Any, i: Any) -> Record:
    return items[i] if -len(items) <= i < len(items) else ()


def _take(items: Any, i: Any) -> Record:
    record: Record = _get(items, i)
    if record:
        del items[int(i)]
    return record


def _set(items: Any, i: Any, *record: Any) -> bool:
    there = -len(items) <= i < len(items)
    if there:
        items[int(i)] = record
    return there


def _find(items: Any, start: Any, *record: Any) -> int:
    indices = range(int(start), len(items))
    return next((i for i in indices if all(map(_equal, items[i], record))), -1)


def _equal(a: Any, b: Any) -> bool:
    return bool(a == b)


def _sort(items: Any, keys: int, descending: Any) -> None:
    items.sort(key=lambda record: record[:keys], reverse=bool(descending))


def _replace(items: Any, *record: Any) -> Record:
    return heapq.heapreplace(items, record) if items else ()


def _bisect(side: Callable[..., int]) -> Callable[..., int]:
    def run(items: Any, start: Any, stop: Any, *record: Any) -> int:
        return side(items, record, int(start), int(stop))

    return run


def _slice(items: Any, first: Any, count: Any, step: Any) -> list[Record]:
    return [items[int(first + k * step)] for k in range(int(count))]


def _remove(table: Table, *key: Any) -> Record:
    position = table.positions.pop(key, None)
    return () if position is None else table.records[position][1] or (0,)


def _value(table: Table, position: Any) -> Record:
    return table.records[int(position)][1] if position >= 0 else ()


def _last(table: Table) -> int:
    return next(reversed(table.positions.values()), -1)


def _first(table: Table) -> int:
    return next(iter(table.positions.values()), -1)


def _clear(container: Any) -> None:
    if isinstance(container, Table):
        container.__init__(container.changes)  # type: ignore[misc]
    else:
        container.clear()


def _entry(table: Table, position: Any) -> Record:
    return sum(table.records[int(position)], ()) if position >= 0 else ()


def _touch(items: Any) -> None:
    items.changes += 1


_R, _N, _B, _H = "record", _LENGTH, _FLAG, HANDLE

# What a method's function gives: nothing, one thing, or a record with a flag before it.
SEQUENCES: dict[str, Method] = {
    "length": Method(len, (), (_N,), changes=False),
    "touch": Method(_touch),
    "changes": Method(lambda s: s.changes, (), (_N,), changes=False),
    "arrive": Method(lambda s: None, grows=True),
    "get": Method(_get, (_N,), (_B, _R), changes=False),
    "set": Method(_set, (_N, _R), (_B,)),
    "append": Method(lambda s, *r: s.append(r), (_R,), (), grows=True),
    "prepend": Method(lambda s, *r: s.insert(0, r), (_R,), (), grows=True),
    "insert": Method(lambda s, i, *r: s.insert(int(i), r), (_N, _R), (), grows=True),
    "pop": Method(lambda s: s.pop() if s else (), (), (_B, _R)),
    "pop_first": Method(lambda s: s.pop(0) if s else (), (), (_B, _R)),
    "take": Method(_take, (_N,), (_B, _R)),
    "find": Method(_find, (_N, _R), (_N,), changes=False),
    "count": Method(
        lambda s, *r: sum(all(map(_equal, x, r)) for x in s), (_R,), (_N,), changes=False
    ),
    "reverse": Method(lambda s: s.reverse()),
    "clear": Method(_clear),
    "sort": Method(_sort, (_B,), (), grows=True),
    "extend": Method(lambda s, other: s.extend(other[:]), (_H,), (), grows=True),
    "fill": Method(lambda s, n, *r: s.extend([r] * int(n)), (_N, _R), (), grows=True),
    "repeat": Method(lambda s, n: s.extend(s[:] * (int(n) - 1)), (_N,), (), grows=True),
    "slice": Method(_slice, (_H, _N, _N, _N), (_H,), grows=True, changes=False),
    "heap_push": Method(lambda s, *r: heapq.heappush(s, r), (_R,), (), grows=True),
    "heap_pop": Method(lambda s: heapq.heappop(s) if s else (), (), (_B, _R)),
    "heap_replace": Method(_replace, (_R,), (_B, _R)),
    "heap_push_pop": Method(lambda s, *r: heapq.heappushpop(s, r), (_R,), (_B, _R)),
    "heapify": Method(heapq.heapify),
    "bisect_left": Method(_bisect(bisect.bisect_left), (_N, _N, _R), (_N,), changes=False),
    "bisect_right": Method(_bisect(bisect.bisect_right), (_N, _N, _R), (_N,), changes=False),
}

TABLES: dict[str, Method] = {
    "table_length": Method(len, (), (_N,), changes=False),
    "table_find": Method(lambda t, *k: t.positions.get(k, -1), ("key",), (_N,), changes=False),
    "table_value": Method(
        lambda t, p: t.records[int(p)][1] if p >= 0 else (), (_N,), ("value",), changes=False
    ),
    "table_entry": Method(
        lambda t, p: sum(t.records[int(p)], ()) if p >= 0 else (), (_N,), (_R,), changes=False
    ),
    "table_put": Method(lambda t, k, v: t.put(k, v), (_R,), (), grows=True),
    "table_remove": Method(_remove, ("key",), (_B, "value")),
    "table_clear": Method(_clear),
    "table_last": Method(_last, (), (_N,), changes=False),
    "table_first": Method(_first, (), (_N,), changes=False),
    "table_positions": Method(
        lambda t: [(p,) for p in t.positions.values()], (_H,), (_H,), grows=True, changes=False
    ),
    "table_copy": Method(lambda t: t.copy(), (_H,), (_H,), grows=True, changes=False),
}

# Positions in sets are those of entries, and good until the set changes; `set_find` gives 0 for what is
# there. `set_sized` and `set_write` lay a set out that Python had while the function was traced.
SETS: dict[str, Method] = {
    "set_length": Method(len, (), (_N,), changes=False),
    "set_find": Method(lambda s, k: 0 if k in s.keys else -1, ("key",), (_N,), changes=False),
    "set_entry": Method(Members.entry, (_N,), ("key",), changes=False),
    "set_put": Method(Members.put, ("key",), (), grows=True),
    "set_remove": Method(Members.remove, ("key",), (_B,)),
    "set_pop": Method(Members.pop, (), (_B, "key")),
    "set_clear": Method(Members.clear),
    "set_first": Method(lambda s: 0 if s.keys else -1, (), (_N,), changes=False),
    "set_positions": Method(
        lambda s: [(i,) for i in range(len(s))], (_H,), (_H,), grows=True, changes=False
    ),
    "set_copy": Method(lambda s: Members(set(s.keys)), (_H,), (_H,), grows=True, changes=False),
    "set_intersection": Method(
        lambda s, t: Members(s.keys & t.keys), (_H, _H), (_H,), grows=True, changes=False
    ),
    "set_difference": Method(
        lambda s, t: Members(s.keys - t.keys), (_H, _H), (_H,), grows=True, changes=False
    ),
    "set_merge": Method(lambda s, t: s.update(t.keys), (_H,), (), grows=True),
    "set_take_keys": Method(lambda s, t: s.update(t), (_H,), (), grows=True),
    "set_take_out": Method(lambda s, t: s.take_out(t.keys), (_H,), (), grows=True),
    "set_toggle": Method(Members.toggle, (_H,), (), grows=True),
    "set_shrink": Method(lambda s: s.take_out([]), (), (), grows=True),
    "set_swap": Method(Members.swap, (_H,)),
    "set_sized": Method(Members.lay_out, (_N, _N), (), grows=True),
    "set_write": Method(Members.write, (_N, _B, "key")),
}
METHODS = {**SEQUENCES, **TABLES, **SETS}
HEAP_METHODS = frozenset(name for name in SEQUENCES if name.startswith("heap"))


def _changes(method: str) -> bool:
    """Whether a method changes a container that was there."""
    return METHODS[method].changes if method in METHODS else method == "end"


_MAKERS: dict[str, Callable[[], Any]] = {"new": Items, "new_table": Table, "new_set": Members}


def types_of(parts: Sequence[Any], key: DTypes, value: DTypes) -> list[Type]:
    """The types that a method takes or gives, for records of these dtypes."""
    named = {"key": key, "value": value, "record": (*key, *value)}
    types: list[Type] = []
    for part in parts:
        if isinstance(part, str):
            types += [TensorType((), dtype) for dtype in named[part]]
        else:
            types.append(part)
    return types


def _infer(
    *types: Type, method: str, key: DTypes = (), value: DTypes = (), form: str = ""
) -> tuple[Type, ...]:
    if not types or types[-1] != TOKEN:
        raise GraphError("the last operand must be a token")
    takes: list[Type]
    gives: list[Type]
    if method in ("root", *_MAKERS, "end"):
        takes, gives = ([] if method == "root" else [HANDLE]), [HANDLE]
    elif method in METHODS:
        takes = [HANDLE, *types_of(METHODS[method].takes, key, value)]
        gives = types_of(METHODS[method].gives, key, value)
    else:
        raise GraphError(f"containers have no method {method!r}")
    if list(types[:-1]) != takes:
        raise GraphError(f"{method} takes {takes}, not {list(types[:-1])}")
    return (*gives, TOKEN)


class _Unordered:
    """A value that does not decide which of two records is less."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return True

    def __lt__(self, other: object) -> bool:
        return False

    __hash__ = None  # type: ignore[assignment]


def _by_key(run: Callable[..., Any], items: Any, count: int, record: Record) -> Any:
    """A method of a heap of which the first values of a record decide the order."""

    def hidden(record: Record) -> Record:
        return (*record[:count], *map(_Unordered, record[count:]))

    def shown(record: Record) -> Record:
        return (*record[:count], *(x.value for x in record[count:]))

    items[:] = map(hidden, items)
    result = run(items, *hidden(record))
    items[:] = map(shown, items)
    return shown(result) if isinstance(result, tuple) else result


def _reference(
    *arrays: Any, method: str, key: DTypes = (), value: DTypes = (), form: str = ""
) -> tuple[Any, ...]:
    operands = [a[()] for a in arrays[:-1]]
    if method == "root":
        return np.asarray(RUNS.begin(), HANDLE.dtype), None
    first = int(operands[0])
    if method in _MAKERS:
        made: Any = _MAKERS[method]()
        return np.asarray(RUNS.keep(first, made), HANDLE.dtype), None
    if method == "end":
        return np.asarray(first, HANDLE.dtype), None
    arguments: list[Any] = operands[1:]
    how = METHODS[method]
    root = None
    if _H in how.gives:
        root, *arguments = arguments
    if _H in how.takes[root is not None :]:
        arguments = [RUNS.at(int(arguments[0]))]
    if method == "set_take_keys":
        arguments = [{assembled(k, form): None for k in arguments[0].positions}]
    elif method in SETS and "key" in how.takes:
        n = len(arguments) - len(key)
        arguments = [*arguments[:n], assembled(arguments[n:], form)]
    if method == "table_put":
        arguments = [tuple(arguments[: len(key)]), tuple(arguments[len(key) :])]
    if method == "sort":
        arguments = [len(key), *arguments]
    if method in HEAP_METHODS and key:
        result = _by_key(how.run, RUNS.at(first), len(key), tuple(arguments))
    else:
        result = how.run(RUNS.at(first), *arguments)
    if root is not None:
        result = Items(result) if isinstance(result, list) else result
        return np.asarray(RUNS.keep(int(root), result), HANDLE.dtype), None
    gives = types_of(how.gives, key, value)
    if not gives:
        return (None,)
    if isinstance(result, tuple):
        if how.gives[0] is _B:
            result = (bool(result), *result[: len(gives) - 1])
        result = result + (0,) * (len(gives) - len(result))
    else:
        result = (result,)
    pairs = zip(result, gives, strict=True)
    return (*(np.asarray(x, t.dtype) for x, t in pairs if isinstance(t, TensorType)), None)


# Derivatives: what is put into a container comes out as a constant, which must not happen unseen.


def _jvp(b: Any, op: Op, tangents: Sequence[Any]) -> list[None]:
    _refuse_derivative(op)


def _vjp(b: Any, op: Op, cotangents: Any, wanted: Any) -> NoReturn:
    _refuse_derivative(op)


def _refuse_derivative(op: Op) -> NoReturn:
    raise DerivativeError(
        "a list, dict, set, deque or heap that grows while compiled code runs has no derivative; keep "
        "what is differentiated in arrays of a known size, or in a jt.TensorArray"
    )


def _batch(b: Any, op: Op, operands: Any, batched: Any) -> NoReturn:
    refuse_stores(op)


STORE = register(
    OpDef(
        "store",
        "effect",
        _infer,
        _reference,
        _jvp,
        _vjp,
        total=False,
        batch=_batch,
        remembers=True,
        attrs=("method", "key", "value", "form"),
        extra={"reads": lambda op: not _changes(op.attrs["method"])},
        effect=True,
        doc="a method of a container that lives as long as the call: a sequence of records, or a table",
    )
)
