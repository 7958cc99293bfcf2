"""Random operations on containers: a program reads what to do from arrays, and does it as Python."""

from __future__ import annotations

import bisect
import heapq
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt

STEPS = 40


def lists(codes, values):
    s, log = [], []
    for i in range(len(codes)):
        code, x = codes[i], values[i]
        if code < 4:
            s.append(x)
        elif code == 4:
            s.insert(x, i)
        elif code == 5:
            if s:
                log.append(s.pop())
        elif code == 6:
            if len(s) > 2:
                log.append(s.pop(x % len(s)))
        elif code == 7:
            if x in s:
                log.append(s.index(x))
                s.remove(x)
        elif code == 8:
            s.reverse()
        elif code == 9:
            s.sort(reverse=bool(x > 2))
        elif code == 10:
            log.append(s.count(x) + len(s))
            s.extend(s[1 : x % 4])
        elif code == 11:
            if len(s) > 3:
                s[x % 3] = s[-1] + 1
                del s[-2]
        elif code == 12:
            t = s[::-2]
            t *= 2
            log.append(sum(t))
            log += t[-2:]
        elif code == 13:
            s.insert(0, x)
        elif code == 14 and s:
            log.append(s.pop(0) + max(s, default=0) + (x not in s))
    return s, log


def deques(codes, values):
    q, short, log = deque(), deque(maxlen=4), []
    for i in range(len(codes)):
        code, x = codes[i], values[i]
        if code < 4:
            q.append((i, x))
            short.append(x)
        elif code < 7:
            q.appendleft((x, i))
            short.appendleft(i)
        elif code < 9:
            if q:
                log.append(q.popleft())
        elif code < 11:
            if q:
                log.append(q.pop())
        elif code == 11:
            q.rotate(x)
        elif code == 12:
            q.reverse()
        elif code == 13:
            q.extendleft([(1, x), (2, x)])
        elif code == 14 and len(q) > 1:
            log.append(q[-1])
            q[0] = (x, x)
    return q, short, log


def heaps(codes, values):
    h, log, ordered = [], [], []
    for i in range(len(codes)):
        code, x = codes[i], values[i]
        if code < 7:
            heapq.heappush(h, (x, i / 2))
            bisect.insort(ordered, x)
        elif code < 10:
            if h:
                log.append(heapq.heappop(h))
        elif code == 10:
            log.append(heapq.heappushpop(h, (x, 0.5)))
        elif code == 11:
            if h:
                log.append(heapq.heapreplace(h, (x, -1.0)))
        elif code == 12:
            h.sort(key=lambda item: -item[1])
            heapq.heapify(h)
        elif code == 13:
            log.append((bisect.bisect_left(ordered, x), float(bisect.bisect_right(ordered, x))))
    return h, log, ordered


def dicts(codes, values):
    d, c, g, o, log = {}, Counter(), defaultdict(int), OrderedDict(), []
    for i in range(len(codes)):
        code, x = codes[i], values[i]
        if code < 4:
            d[x] = i
            o[x] = i
            c[x] += 1
        elif code == 4:
            d[x] = d.get(x, 0) + 1
            g[x % 3] += i
        elif code == 5:
            if x in d:
                log.append(d[x])
                del d[x]
        elif code == 6:
            log.append(d.pop(x, -1))
        elif code == 7:
            log.append(d.setdefault(x, i))
        elif code == 8:
            if d:
                k, v = d.popitem()
                log.append(k * v)
        elif code == 9:
            if o:
                k, v = o.popitem(last=False)
                log.append(k - v)
        elif code == 10:
            for k, v in d.items():
                log.append(k + 2 * v)
        elif code == 11:
            log.append(sum(d.values()) + len(d) + g[x] + c[x])
        elif code == 12:
            e = d.copy()
            e.update({1: 2, 3: 4})
            log.append(len(e))
            d.update(e)
        elif code == 13:
            if x in o:
                o.move_to_end(x)
            del c[x]
        elif code == 14:
            d.clear()
    return d, c, g, o, log


def sets(codes, values):
    s, t, log = set(), set(), []
    for i in range(len(codes)):
        code, x = codes[i], values[i]
        if code < 5:
            s.add((x, x % 2 == 0))
        elif code < 8:
            t.add((x, True))
        elif code == 8:
            s.discard((x, True))
        elif code == 9:
            if (x, False) in s:
                s.remove((x, False))
        elif code == 10:
            log.append(len(s | t))
            log.append(len(s & t))
        elif code == 11:
            log.append(len(s - t) - len(s ^ t))
        elif code == 12:
            s |= t
        elif code == 13:
            t.clear()
    return s, t, log


MACHINES = (lists, deques, heaps, dicts, sets)
COMPILED = {machine: jt.jit(machine) for machine in MACHINES}


def plain(x: Any) -> Any:
    if isinstance(x, (list, tuple, deque)):
        return type(x).__name__, [plain(v) for v in x]
    if isinstance(x, dict):
        return type(x).__name__, [(k, v) for k, v in x.items()]
    return x


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: m.__name__)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_machines(machine: Any, data: st.DataObject) -> None:
    codes = data.draw(st.lists(st.integers(0, 15), min_size=STEPS, max_size=STEPS))
    values = data.draw(st.lists(st.integers(-3, 6), min_size=STEPS, max_size=STEPS))
    args = np.array(codes), np.array(values)
    assert plain(COMPILED[machine](*args)) == plain(machine(*args))


@pytest.mark.parametrize("machine", [heaps, dicts], ids=lambda m: m.__name__)
def test_machines_run_long(machine: Any) -> None:
    rng = np.random.default_rng(1)
    compiled = jt.jit(machine)
    args = rng.integers(0, 14, 1500), rng.integers(-500, 500, 1500)
    assert plain(compiled(*args)) == plain(machine(*args))
