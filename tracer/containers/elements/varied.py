"""Elements that hold texts, or one thing here and another there: unions in the place of these.

    counts["a" if x > 0 else "b"] += 1      # keys: Union(tag, {5: "a", 6: "b"})
    parent[v] = None                        # values: Union(tag, {0: None, 3: a number})

A *constant*, a text or a member of an enumeration, has no words but the tag of its union, which is the
number of its form in the whole of the trace. Texts are marked so (`marked`) also if there is but one.
An option that is not there is zeros, so that equal elements have equal words.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import reduce
from typing import Any

import numpy as np

from ....ir.graph import Value
from ....ir.types import BOOL, I64
from ...control.number_classes import FLAGS, flag_of, of_flag
from ...control.unions import NONE, Union, number_of, number_of_form, possible
from ...core.tracers import Tracer, as_value, emit, wrap
from ...data import pytree
from ...messages import errors
from ...messages.errors import complain

Words = tuple[list[Value], Any]
"""The words of an element that is asked for, and whether there can be one: True, or traced."""


class Unfit(Exception):
    """An element that no native container can hold."""


class Slot:
    """The place of a number in an example of elements, which has this leaf of their form."""

    def __init__(self, leaf: Any) -> None:
        self.leaf = leaf


class _Constant:
    """A constant in an element: no leaf, and itself again when the element is made."""

    def __init__(self, value: Any) -> None:
        self.value = value


pytree.register_pytree(_Constant, lambda x: ((), x.value), lambda value, _: value)


def is_constant(x: Any) -> bool:
    """Whether something is no number, but one of the objects that are the same always."""
    return isinstance(x, (str, bytes, Enum))


def has_no_words(x: Any) -> bool:
    """Whether an option is what its number says, with nothing to be stored."""
    return x is None or is_constant(x)


def narrowed(x: Any) -> Any:
    """An element without unions that can be but one of their options here."""
    if type(x) is Union:
        numbers = possible(x)
        return narrowed(x.options[numbers[0]]) if len(numbers) == 1 else x
    return mapped(narrowed, x) if isinstance(x, tuple) else x


def mapped(function: Callable[[Any], Any], items: tuple[Any, ...]) -> Any:
    """A tuple of what a function makes of each part."""
    parts = [function(item) for item in items]
    if all(a is b for a, b in zip(parts, items, strict=True)):
        return items
    return type(items)(*parts) if hasattr(items, "_fields") else tuple(parts)


def as_element(x: Any) -> Any:
    """The same of a whole element, which may be None itself."""
    return Union(np.int64(NONE), {NONE: None}) if x is None else marked(x)


def marked(x: Any) -> Any:
    """An element with a union in the place of each constant, and unions as containers know them."""
    if is_constant(x):
        number = number_of(x)
        return Union(np.int64(number), {number: _Constant(x)})
    if type(x) is Union:
        tag, options = _known(x)
        return Union(tag, {n: _option(o) for n, o in options.items()})
    if is_array(x):
        return _placed[0](x)
    return mapped(marked, x) if isinstance(x, tuple) else x


_placed: list[Callable[[Any], Any]] = []  # `boxes`, which lies above, puts it here


def serve_arrays(placed: Callable[[Any], Any]) -> None:
    """Let `placed(x)` be what stands for an array in the form of an element."""
    _placed[:] = [placed]


def is_array(x: Any) -> bool:
    """Whether something is an array, and no number."""
    return isinstance(x, (Tracer, np.ndarray)) and x.ndim > 0


def has_arrays(x: Any) -> bool:
    """Whether arrays are in an example."""
    if type(x) is Union:
        return any(map(has_arrays, x.options.values()))
    if isinstance(x, tuple):
        return any(map(has_arrays, x))
    return getattr(getattr(x, "kind", None), "shape", None) is not None


def again_marked(x: Any) -> Any:
    """An example, whose constants were made of their marks, with these marks."""
    if type(x) is Union:
        return Union(
            x.tag,
            {n: _Constant(o) if is_constant(o) else again_marked(o) for n, o in x.options.items()},
        )
    return mapped(again_marked, x) if isinstance(x, tuple) else x


def _option(x: Any) -> Any:
    return _Constant(x) if is_constant(x) else marked(x)


def _known(union: Union) -> tuple[Any, dict[int, Any]]:
    """The tag and the options of a union by the numbers that they have in elements: tuples that differ
    in their constants alone are of one form there."""
    tag, options = union.tag, dict[int, Any]()
    for n in possible(union):
        option = union.options[n]
        number = _number(option)
        if number in options:
            raise Unfit
        options[number] = option
        if number != n:
            same = as_value(union.tag == n, BOOL)
            tag = wrap(
                emit("select", same, as_value(number, I64), as_value(tag)).value, scalar=True
            )
    return tag, options


def _number(x: Any) -> int:
    """The number of the form of an element, or of an example, as an option."""
    if x is None or is_constant(x):
        return number_of(x)
    if isinstance(x, _Constant):
        return number_of(x.value)
    leaves, tree = pytree.flatten(_skeleton(x))
    return number_of_form(tree, [leaf.leaf for leaf in leaves])


def numbers_in(x: Any) -> set[int]:
    """Of which options a value is, or may be, as an element."""
    x = narrowed(x)
    if type(x) is Union:
        return {_number(marked(x.options[n])) for n in possible(x)}
    return {_number(marked(x))}


def _skeleton(x: Any) -> Any:
    if isinstance(x, Slot):
        dtype = x.leaf[0]
        return Slot("bool" if dtype == BOOL else "number")
    if x is None or is_constant(x) or isinstance(x, (Union, _Constant)):
        return Slot("choice")
    if isinstance(x, tuple):
        return mapped(_skeleton, x)
    leaves, tree = pytree.flatten(x)
    return pytree.unflatten(tree, [Slot("bool" if _is_bool(leaf) else "number") for leaf in leaves])


def _is_bool(leaf: Any) -> bool:
    if isinstance(leaf, Slot):
        leaf = leaf.leaf[0].type(0)
    return bool((leaf if isinstance(leaf, Tracer) else np.asarray(leaf)).dtype == BOOL)


def has_unions(x: Any) -> bool:
    """Whether there is a union in an example."""
    return type(x) is Union or (isinstance(x, tuple) and any(map(has_unions, x)))


def joined(a: Any, b: Any, leaves: Callable[[Any, Any], Any]) -> Any:
    """An example of what both are examples of; `leaves` joins two leaves, or gives None where they are
    two options. Unfit if there is none."""
    if isinstance(a, Slot) and isinstance(b, Slot):
        leaf = leaves(a.leaf, b.leaf)
        return _apart(a, b, leaves) if leaf is None else Slot(leaf)
    if a is None and b is None:
        return None
    if type(a) is Union or type(b) is Union or a is None or b is None:
        return _either(a, b, leaves)
    if isinstance(a, tuple) and type(a) is type(b) and len(a) == len(b):
        parts = [joined(x, y, leaves) for x, y in zip(a, b, strict=True)]
        return again_marked(type(a)(*parts) if hasattr(a, "_fields") else tuple(parts))
    if type(a) is type(b) and hasattr(a, "kind") and a.kind.can_be_one(b.kind):
        a.kind.unite(b.kind)
        return a
    return _apart(a, b, leaves)


def _apart(a: Any, b: Any, leaves: Callable[[Any, Any], Any]) -> Union:
    if _number(a) == _number(b):
        raise Unfit
    return _either(a, b, leaves)


def _either(a: Any, b: Any, leaves: Callable[[Any, Any], Any]) -> Union:
    options: dict[int, Any] = {}
    for x in (a, b):
        for n, option in (x.options if type(x) is Union else {_number(x): x}).items():
            if n in options and not has_no_words(option):
                option = joined(options[n], option, leaves)
            options[n] = option
    return again_marked(Union(Slot((I64, None)), options))


def words_of(example: Any, x: Any) -> list[Any]:
    """The numbers of an element, in the order of the leaves of what it is an example of."""
    if isinstance(example, Slot):
        return [x]
    if type(example) is Union:
        tag, given = _known(x) if type(x) is Union else (None, {_number(x): x})
        found: list[Any] = [np.int64(next(iter(given))) if tag is None else tag]
        for n, option in example.options.items():
            if n not in given:
                found += _nothing(option)
                continue
            words = words_of(option, given[n])
            found += words if tag is None or len(given) == 1 else _where(tag == n, words, option)
        return found
    if isinstance(example, tuple):
        if not isinstance(x, tuple) or len(x) != len(example):
            raise Unfit
        return [w for part, y in zip(example, x, strict=True) for w in words_of(part, y)]
    return list(pytree.flatten(x)[0]) if not is_constant(example) else []


def _nothing(example: Any) -> list[Any]:
    return [leaf.leaf[0].type(0) for leaf in _leaves(example)]


def _leaves(example: Any) -> list[Slot]:
    return pytree.flatten(_Constant(example) if is_constant(example) else example)[0]


def _where(test: Any, words: list[Any], example: Any) -> list[Any]:
    """The words if it is this option, else zeros."""
    found, chosen = [], as_value(test, BOOL)
    for word, leaf in zip(words, _leaves(example), strict=True):
        dtype, weak = leaf.leaf
        value = emit("select", chosen, as_value(word, dtype), as_value(dtype.type(0))).value
        mixed = weak in FLAGS
        found.append(
            of_flag(value, flag_of(word, weak), weak) if mixed else wrap(value, scalar=True)
        )
    return found


def texts_in(example: Any) -> list[list[str]] | None:
    """The texts that each union in an example may be, by number; None if one may be something else."""
    if type(example) is Union:
        options = [example.options[n] for n in sorted(example.options)]
        return [options] if all(isinstance(option, str) for option in options) else None
    found: list[list[str]] = []
    for part in example if isinstance(example, tuple) else ():
        texts = texts_in(part)
        if texts is None:
            return None
        found += texts
    return found


def settled(x: Any) -> Any:
    """An element that was made of its words: what can be but one thing is that."""
    if type(x) is Union and len(x.options) == 1:
        return next(iter(x.options.values()))
    return mapped(settled, x) if isinstance(x, tuple) else x


Ask = Callable[[Any, Any], tuple[Value, Any] | None]


def asked(example: Any, x: Any, number: Ask) -> Words | None:
    """What to look for among elements like the example; None: nothing equals it. `number` says it of a
    leaf and a number."""
    if isinstance(example, Slot) and type(x) is not Union:
        if isinstance(x, tuple) or has_no_words(x):
            return None
        one = number(example.leaf, x)
        return one and ([one[0]], one[1])
    if isinstance(example, tuple):
        if not isinstance(x, tuple) or len(x) != len(example):
            return None
        parts = [asked(part, y, number) for part, y in zip(example, x, strict=True)]
        if any(part is None for part in parts):
            return None
        words = [word for part in parts for word in part[0]]  # type: ignore[index]
        return words, _all([part[1] for part in parts])  # type: ignore[index]
    if example is None:
        return ([], True) if x is None else None
    options = example.options if type(example) is Union else {_number(example): example}
    _require_one_class(options)
    tag, given = _known(x) if type(x) is Union else (None, {_number(x): x})
    there = [n for n in given if n in options]
    if not there:
        return None
    words = (
        [as_value(np.int64(there[0]) if tag is None else tag, I64)]
        if type(example) is Union
        else []
    )
    tests: list[Any] = []
    if tag is not None and len(there) < len(given):
        tests.append(reduce(lambda a, b: a | b, [tag == n for n in there]))
    for n, option in options.items():
        found = asked(option, given[n], number) if n in given and not is_constant(option) else None
        if found is None:
            if n in given and not is_constant(option) and option is not None:
                tests.append(False if tag is None else tag != n)
            words += [as_value(zero) for zero in _nothing(option)]
            continue
        inner = [wrap(word, scalar=True) for word in found[0]]
        words += [as_value(w) for w in (inner if tag is None else _where(tag == n, inner, option))]
        if found[1] is not True:
            tests.append(found[1] if tag is None else found[1] | (tag != n))
    if any(test is False for test in tests):
        return None
    return words, _all(tests)


def has_bools_among_numbers(example: Any) -> bool:
    """Whether something is a bool here and a number there: as keys these may be one."""
    if type(example) is Union:
        parts = example.options.values()
        if len({x.leaf[0] == BOOL for x in parts if isinstance(x, Slot)}) > 1:
            return True
        return any(map(has_bools_among_numbers, parts))
    return isinstance(example, tuple) and any(map(has_bools_among_numbers, example))


def _require_one_class(options: dict[int, Any]) -> None:
    """True is 1 where something is looked for: bools and numbers would be options that are equal."""
    if has_bools_among_numbers(Union(None, options)):
        complain(
            errors.TransformError,
            "a search among elements of which some are bools and some numbers",
            "compare them in a `for` statement, or keep bools as numbers, int(x).",
        )


def _all(tests: list[Any]) -> Any:
    tests = [test for test in tests if test is not True]
    return reduce(lambda a, b: a & b, tests) if tests else True
