"""Small functions of objects, each with a way of changing what it is given."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt

CASES: dict[str, tuple[Callable[[], Any], Callable[..., Any], tuple[tuple[Any, ...], ...]]] = {}


class Box:
    """Attributes, as they are given."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)

    def bump(self, d: Any) -> None:
        self.n += d  # type: ignore[attr-defined]


class Item(Box):
    pass


class Slotted:
    __slots__ = ("n", "w")

    def __init__(self) -> None:
        self.n, self.w = 0, np.zeros(2)


class Guarded:
    """Attributes behind properties, and a count of the class."""

    base = 2.0

    def __init__(self) -> None:
        self._level = 1.0

    @property
    def level(self) -> Any:
        return self._level

    @level.setter
    def level(self, value: Any) -> None:
        self._level = value * self.base


def shared_array() -> Box:
    array = np.ones(3)
    return Box(a=array, b=array)


def shared_object() -> Box:
    item = Item(n=1)
    return Box(a=item, b=item)


def case(make: Callable[[], Any], *calls: tuple[Any, ...]) -> Callable[..., Any]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES[function.__name__] = make, function, calls
        return function

    return register


X = ((1.0,), (2.0,), (3.0,))

# Numbers and arrays


@case(lambda: Box(n=0, w=1), *X)
def int_to_float(s: Any, x: Any) -> Any:
    s.n += 1
    s.w += x / 2
    return s.w


@case(lambda: Box(a=1, b=2.0), *X)
def swapped_numbers(s: Any, x: Any) -> Any:
    s.a, s.b = s.b, s.a
    return x


@case(lambda: Box(n=1, w=np.zeros(4)), *X)
def number_as_a_shape(s: Any, x: Any) -> Any:
    s.w = np.zeros(s.n) + x
    s.n += 1
    return s.w


@case(lambda: Box(n=0, w=np.ones(4)), (1,), (9,), (2,))
def raises_of_an_index(s: Any, i: Any) -> Any:
    s.n += 1
    s.w = s.w * 2
    s.w[i] = 0
    return s.n


@case(lambda: Box(n=0, w=np.ones(4)), (1,), (9,), (2,))
def raises_in_place(s: Any, i: Any) -> Any:
    s.n += 1
    s.w *= 2
    s.w[i] = 0
    return s.n


@case(lambda: Box(n=0, w=np.ones(4)), (1,), (9,), (2,))
def raises_its_own(s: Any, i: Any) -> Any:
    s.n += 1
    s.w[0] = 5.0
    if i > 5:
        raise ValueError("too large")
    s.w[i] += 1
    return s.n


@case(lambda: Box(n=0, done=False), *X, *X)
def early_return(s: Any, x: Any) -> Any:
    if s.n >= 2:
        s.done = True
        return s.n * 1.0
    s.n += 1
    return x


@case(lambda: Box(n=0), (1.0,))
def deleted(s: Any, x: Any) -> Any:
    s.m = x
    del s.n
    return x


@case(lambda: Box(n=0), *X)
def asked_for(s: Any, x: Any) -> Any:
    if hasattr(s, "k"):
        s.k = s.k + x
    else:
        s.k = x
    return getattr(s, "k", 0.0)


@case(lambda: Box(n=0, mode="a"), *X)
def text(s: Any, x: Any) -> Any:
    s.mode = "b" if s.mode == "a" else "a"
    return x


@case(Slotted, *X)
def slots(s: Any, x: Any) -> Any:
    s.n += 1
    s.w = s.w + x
    return s.n


@case(Guarded, *X)
def properties(s: Any, x: Any) -> Any:
    s.level = s.level + x
    return s.level


@case(lambda: Box(n=0), *X)
def by_name(s: Any, x: Any) -> Any:
    for name in ("p", "q"):
        setattr(s, name, getattr(s, name, 0.0) + x)
    return s.p  # type: ignore[no-any-return]


# Who is whom


@case(shared_array, *X)
def one_array_twice(s: Any, x: Any) -> Any:
    s.a += x
    s.b[0] = 7.0
    return s.a.sum() + s.b.sum()


@case(lambda: Box(a=np.ones(3)), *X)
def another_name(s: Any, x: Any) -> Any:
    s.b = s.a
    s.a *= x
    s.c = s.b
    return s.b is s.a


@case(lambda: Box(a=np.ones(3)), *X)
def view_of_a_held_array(s: Any, x: Any) -> Any:
    s.v = s.a[1:]
    s.v += x
    return s.a


@case(lambda: Box(a=np.ones(3)), *X)
def view_of_a_new_array(s: Any, x: Any) -> Any:
    s.a = s.a + x
    s.v = s.a[1:]
    return s.a


@case(lambda: Box(a=np.ones(3)), *X)
def returned_and_kept(s: Any, x: Any) -> Any:
    s.a = s.a + x
    return s.a, s.a, [s.a]


@case(lambda: Box(a=np.ones(3)), *((np.arange(3.0) + k,) for k in range(3)))
def argument_kept(s: Any, x: Any) -> Any:
    s.a = x
    return s.a.sum()


@case(shared_object, *X)
def one_object_twice(s: Any, x: Any) -> Any:
    s.a.n += 1
    s.b.n += 10
    return s.a.n * x


@case(lambda: Box(n=0), *X)
def gives_itself(s: Any, x: Any) -> Any:
    s.n += 1
    return s


# Containers, and objects in them


@case(lambda: Box(xs=[1.0, 2.0]), *X)
def items_of_a_list(s: Any, x: Any) -> Any:
    s.xs[0] += x
    s.xs[-1] = s.xs[0] * 2
    return s.xs


@case(lambda: Box(rows=[[1.0, 2.0], [3.0, 4.0]]), *X)
def nested_lists(s: Any, x: Any) -> Any:
    for row in s.rows:
        row[0] += x
    s.rows[1][1] = s.rows[0][0]
    return s.rows


@case(lambda: Box(d={"a": 1.0}), *X)
def items_of_a_dict(s: Any, x: Any) -> Any:
    s.d["a"] += x
    s.d["b"] = s.d["a"] * 2
    return len(s.d)


@case(lambda: Box(d={"a": 1.0, "k": 2.0}, xs=[1.0, 2.0, 3.0]), *X)
def removed(s: Any, x: Any) -> Any:
    if "k" in s.d:
        s.d.pop("k")
    if len(s.xs) > 1:
        s.xs.pop()
    return x


@case(lambda: Box(log=[], last=deque(maxlen=2), names=set()), *X)
def added_to(s: Any, x: Any) -> None:
    s.log.append(x * 2)
    s.last.append(x)
    s.names.add("k")
    s.log.extend([1.0, x])


@case(lambda: Box(item=Item(n=1, w=np.ones(2)), items=[Item(n=2), Item(n=3)]), *X)
def inner_objects(s: Any, x: Any) -> Any:
    s.item.n += 1
    s.item.w *= x
    for item in s.items:
        item.bump(2)
    return sum(item.n for item in s.items)


@case(lambda: Box(items=[Item(n=2.0), Item(n=3.0)]), *X)
def swapped_objects(s: Any, x: Any) -> Any:
    s.items[0], s.items[1] = s.items[1], s.items[0]
    s.items[0].n += x
    return s.items[0].n


@case(lambda: Box(head=None, n=0), *X)
def new_objects(s: Any, x: Any) -> Any:
    s.head = Item(v=x, next=s.head)
    s.n += 1
    return x


@case(lambda: Box(t=(np.ones(2), 1.0)), *X)
def new_tuples(s: Any, x: Any) -> Any:
    a, b = s.t
    s.t = (a * x, b + 1)
    return b


@case(lambda: Box(t=(np.ones(2), [np.zeros(2)])), *X)
def arrays_in_tuples(s: Any, x: Any) -> Any:
    s.t[0][:] += x
    s.t[1][0] = s.t[1][0] - x
    return s.t[0]


@case(lambda: Box(n=0, f=lambda x: x * 2), *X)
def functions(s: Any, x: Any) -> Any:
    s.n += 1
    return s.f(x)


# Branches and loops


@case(lambda: Box(n=0, w=np.zeros(3)), (2.0,), (-1.0,), (3.0,))
def branch(s: Any, x: Any) -> Any:
    if x > 0:
        s.n += 1
    else:
        s.w = s.w + x
    return s.n


@case(lambda: Box(best=np.zeros(3), value=0.0), *((np.arange(3.0) * k,) for k in (1, -1, 2)))
def branch_keeps_the_argument(s: Any, x: Any) -> Any:
    if x.sum() > s.value:
        s.best = x
        s.value = x.sum()
    return s.value


@case(lambda: Box(a=np.zeros(3), b=np.ones(3)), (2.0, 1), (-1.0, 1), (3.0, 0), (-2.0, 0))
def branches_in_branches(s: Any, x: Any, k: Any) -> Any:
    if x > 0:
        if k > 0:
            s.a = s.b
        else:
            s.b = s.b * x
    return s.a.sum()


@case(lambda: Box(w=np.zeros(3)), (2.0,), (-1.0,), (3.0,))
def first_in_both_branches(s: Any, x: Any) -> Any:
    if x > 0:
        s.last = x
    else:
        s.last = -x
    return s.last


@case(lambda: Box(n=0, w=np.zeros(3)), (2,), (0,), (3,))
def loop(s: Any, k: Any) -> Any:
    i = 0
    while i < k:
        s.n += 2
        s.w[i] += i
        i += 1
    return i


@case(lambda: Box(x=np.ones(2), n=0), (2,), (0,), (3,))
def loop_of_rebinding(s: Any, k: Any) -> Any:
    for _ in range(k):
        s.x = s.x * 2
        s.n += 1
    return s.n


@case(lambda: Box(x=np.ones(2), y=np.zeros(2)), (2.0,), (0.5,), (9.0,))
def loop_with_a_branch(s: Any, x: Any) -> Any:
    i = 0
    while i < 4:
        if i > x:
            s.y = s.x
        i += 1
    return s.y.sum()


@case(lambda: Box(items=[Item(n=1.0), Item(n=2.0)]), *X)
def objects_in_a_loop(s: Any, x: Any) -> Any:
    i = 0
    while i < x:
        for item in s.items:
            item.bump(i)
        i += 1
    return i


# Transformations


@case(lambda: Box(w=np.ones(4)), *X)
def step_by_a_gradient(s: Any, x: Any) -> Any:
    g = jt.grad(lambda w: ((w * x) ** 2).sum())(s.w)
    s.w -= 0.1 * g
    return g


@case(lambda: Box(n=0, w=np.arange(3.0)), *X)
def cond(s: Any, x: Any) -> Any:
    def yes() -> Any:
        s.n += 1
        return x

    def no() -> Any:
        s.w[1] = 5.0
        return x * 2

    return jt.cond(x > 1, yes, no)


@case(lambda: Box(n=0, w=np.arange(3.0)), *X)
def while_loop(s: Any, x: Any) -> Any:
    def body(i: Any) -> Any:
        s.n += 1
        s.w[0] += x
        return i + 1

    return jt.while_loop(lambda i: i < 3, body, 0)


@case(lambda: Box(n=0, last=0.0), *X)
def fori_loop(s: Any, x: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        s.last = s.last + c
        s.n += 1
        return c * x

    return jt.fori_loop(0, 3, body, 1.0)


@case(lambda: Box(n=0, seen=np.zeros(3), w=np.arange(3.0)), *X)
def scan(s: Any, x: Any) -> Any:
    def body(c: Any, r: Any) -> Any:
        s.n += 1
        s.seen += r
        return c + r, s.n

    return jt.scan(body, 0.0, s.w * x)


@case(lambda: Box(n=0, seen=np.zeros(3), w=np.arange(3.0)), *X)
def vmap(s: Any, x: Any) -> Any:
    def one(r: Any) -> Any:
        s.n += 1
        s.seen[0] += 1.0
        s.seen[1:] = x
        return r * x

    return jt.vmap(one)(s.w)
