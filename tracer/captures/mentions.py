"""What code does with names, whatever they belong to: which it reads, stores, only adds to."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable
from types import CodeType

from ...ir.record import field, record
from .loads import instructions_of

_ADDING = frozenset({"append", "extend", "add"})
_CHANGING = _ADDING | frozenset(
    "appendleft clear discard extendleft insert pop popitem popleft remove reverse rotate setdefault "
    "sort update move_to_end subtract intersection_update difference_update "
    "symmetric_difference_update __setitem__ __delitem__".split()
)
_CHANGING |= frozenset(  # functions that change what they are given
    "heappush heappop heapify heapreplace heappushpop insort insort_left insort_right shuffle".split()
)
_REFLECTIVE = frozenset(
    {"getattr", "hasattr", "setattr", "delattr", "vars", "__dict__", "__setattr__"}
)
_CATCHING = frozenset({"AttributeError", "Exception", "BaseException"})
_MAKING = frozenset({"__init__", "__new__", "__post_init__"})  # they assign to what is new
_LOADS = frozenset({"LOAD_ATTR", "LOAD_METHOD", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_NAME"})
_STORES = frozenset({"STORE_ATTR", "DELETE_ATTR"})
ITEM_STORES = frozenset({"STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE"})


# What writes into an array that it is given, or belongs to.
_FILLING = frozenset(
    "fill put copyto place putmask put_along_axis fill_diagonal itemset partition sort resize at "
    "shuffle out __setitem__ __iadd__".split()
)

# What makes an array or a number of what it is given, and nothing else where that is traced.
_CONVERTING = frozenset(
    "array asarray asanyarray ascontiguousarray asfortranarray fromiter float complex".split()
)


@functools.lru_cache(2048)
def converts_values(code: CodeType) -> bool:
    """Whether code may put traced values where only numbers and arrays of NumPy's can be."""
    if not _CONVERTING.isdisjoint(code.co_names):
        return True
    return any(op.opname in ITEM_STORES for op in instructions_of(code))


@functools.lru_cache(2048)
def fills_arrays(code: CodeType) -> bool:
    """Whether code may write into an array that is there."""
    keywords = [name for c in code.co_consts if isinstance(c, tuple) for name in c]
    if not _FILLING.isdisjoint((*code.co_names, *(k for k in keywords if isinstance(k, str)))):
        return True
    ops = instructions_of(code)
    return any(op.opname in ITEM_STORES or op.opname.startswith("INPLACE") for op in ops) or any(
        op.opname == "BINARY_OP" and op.argrepr.endswith("=") for op in ops
    )


@record(frozen=False)
class Mentions:
    """`names` of attributes that code may read, `stored` those that it assigns to, `changed` those of
    them that not only `__init__` and its kin assign to. `logs` are names of which code only ever calls
    `append`, `extend` or `add`. `writes`: it may change objects or containers that are not new.
    `asks`: it may find out that an attribute is not there. `reflects`: it makes up names of them."""

    names: set[str] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    logs: frozenset[str] = frozenset()
    writes: bool = False
    asks: bool = False
    reflects: bool = False


def mentions_of(codes: Iterable[CodeType]) -> Mentions:
    """What all of the code together does with names."""
    mentions = Mentions()
    loaded: Counter[str] = Counter()
    added: Counter[str] = Counter()
    texts: set[str] = set()
    for code in codes:
        mentions.names.update(code.co_names)
        texts.update(c for c in code.co_consts if isinstance(c, str))
        before = ""  # the name that the instruction before has loaded
        for op in instructions_of(code):
            name = op.argval if op.opname in _LOADS else ""
            if name:
                loaded[name] += 1
                if before and name in _ADDING:
                    added[before] += 1
                mentions.writes |= name in _CHANGING
            elif op.opname in _STORES:
                mentions.stored.add(op.argval)
                if code.co_name not in _MAKING:
                    mentions.changed.add(op.argval)
                    mentions.writes = True
            mentions.writes |= op.opname in ITEM_STORES
            if op.opname not in ("CACHE", "PUSH_NULL"):
                before = name
    if mentions.names & _REFLECTIVE:
        mentions.names |= texts
        mentions.reflects = True
        if {"setattr", "delattr", "__setattr__", "vars", "__dict__"} & mentions.names:
            mentions.stored |= texts
            mentions.changed |= texts
            mentions.writes = True
    mentions.asks = bool(mentions.names & (_REFLECTIVE | _CATCHING))
    mentions.logs = frozenset(n for n, count in added.items() if loaded[n] == count)
    return mentions
