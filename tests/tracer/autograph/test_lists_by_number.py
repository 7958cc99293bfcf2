"""Lists and tuples of numbers, made outside or written down, read at a traced index: as Python's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import misses

import jitney as jt

DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
WEIGHTS = (0.5, -1.5, 2.25)
FLAGS = [True, False, True]
MIXED = [1, 2.5, 3]
HUGE = [1, 2**70]


class Date:
    def __init__(self, day: Any, month: Any, year: Any) -> None:
        self.day, self.month, self.year = day, month, year

    def later(self, months: Any) -> Any:
        month, year = self.month + months, self.year
        while month > 12:
            month, year = month - 12, year + 1
        day = self.day
        if day > DAYS[month - 1]:
            day = DAYS[month - 1]
        return Date(day, month, year)


def days_until(n: Any) -> Any:
    total = 0
    for month in range(n):
        total += DAYS[month % 12]
    return total


def weighted(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total += WEIGHTS[int(x[i]) % 3] * x[i]
    return total


def from_the_end(k: Any) -> Any:
    return DAYS[-k], WEIGHTS[-1 - k % 3]


def flag(k: Any) -> Any:
    return 1 if FLAGS[k] else 2


def of_an_argument(table: Any, x: Any) -> Any:
    total = 0.0
    for value in x:
        total += table[int(value)]
    return total


def later(day: Any, month: Any) -> Any:
    date = Date(day, month, 2020).later(13)
    return date.day, date.month, date.year


def bisect(x: Any) -> Any:
    low, high = 0, len(WEIGHTS)
    while low < high:
        middle = (low + high) // 2
        if WEIGHTS[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low


CASES: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
    "counted": (days_until, [(0,), (5,), (30,)]),
    "weighted": (weighted, [(np.array([0.0, 1.0, 5.0]),), (np.array([2.0, 2.0, 7.0]),)]),
    "from the end": (from_the_end, [(1,), (12,)]),
    "flag": (flag, [(0,), (1,), (-1,)]),
    "argument": (
        of_an_argument,
        [([1.0, 2.0, 4.0], np.array([0.0, 2.0])), ([3.0, 2.0, 1.0], np.array([1.0, 2.0]))],
    ),
    "objects": (later, [(31, 1), (30, 12), (31, 10)]),
    "search": (bisect, [(0.7,), (9.0,), (-3.0,)]),
}


@pytest.mark.parametrize("name", CASES)
def test_as_python(name: str) -> None:
    function, calls = CASES[name]
    compiled = jt.jit(function)
    for args in calls:
        got, wanted = compiled(*args), function(*args)
        assert got == wanted and type(got) is type(wanted)
    assert misses(compiled) == 1


def test_beyond_the_end() -> None:
    def read(x: Any) -> Any:
        return DAYS[int(x[0])]

    compiled = jt.jit(read)
    assert compiled(np.array([3.0])) == 30
    for k in (12.0, -13.0):
        with pytest.raises(IndexError):
            compiled(np.array([k]))


def test_a_changed_list_is_read_anew() -> None:
    table = [1.0, 2.0, 3.0]

    def read(k: Any) -> Any:
        return table[k]

    compiled = jt.jit(read)
    assert compiled(1) == 2.0
    table[1] = 9.0
    assert [compiled(k) for k in range(3)] == [1.0, 9.0, 3.0]


@pytest.mark.parametrize("table", [MIXED, HUGE], ids=["mixed", "huge"])
def test_numbers_that_no_array_holds_are_compiled_in(table: list[Any]) -> None:
    compiled = jt.jit(lambda k: table[k])
    for k in (0, 1):
        got = compiled(k)
        assert got == table[k] and type(got) is type(table[k])


STEPS = [[0, 1], [1, 0], [0, -1]]
TABLE = [[1.5, 2.0, 3.0], [4.0, 5.0, 6.5]]


def walk(x: Any) -> Any:
    row, column, total = 1, 1, 0.0
    for i in range(len(x)):
        down, right = STEPS[x[i]]
        row, column = row + down, column + right
        total += TABLE[row % 2][x[i]] * STEPS[i % 3][1]
        for step in STEPS[x[i]]:
            total += step
    return row, column, total


def which(x: Any) -> Any:
    row = STEPS[x[0]]
    down, right = row
    return row is STEPS[1], row is STEPS[2], down, sum(row), max(row), len(row), row + [3]


def changes(x: Any) -> Any:
    row = STEPS[x[0]]
    down, _ = row
    row[0] = 7
    STEPS[2][1] = 4
    return down, row[0]


def made_here(x: Any) -> Any:
    colors = [[0, 0, 255], [0, 255, 0], [255, 0, 0]]
    out = np.zeros((len(x), 3))
    for i in range(len(x)):
        out[i] = colors[x[i]]
        out[x > 1] = colors[x[i] - 1]
    red, green, blue = colors[x[0]]
    return out.tolist(), red + 2 * green + 3 * blue


@pytest.mark.parametrize("function", [walk, which, changes, made_here])
def test_rows_of_lists(function: Callable[..., Any]) -> None:
    x, before = np.array([1, 0, 2, 2]), [list(row) for row in STEPS]
    results = []
    for run in (function, jt.jit(function)):
        STEPS[:] = [list(row) for row in before]
        results.append((run(x), STEPS[:]))
    STEPS[:] = before
    assert results[0] == results[1]


def test_rows_of_another_length_are_refused() -> None:
    rows = [[1, 2], [3, 4, 5], [6]]

    def unpack(k: Any) -> Any:
        a, b = rows[k[0]]
        return a + b

    def store(k: Any) -> Any:
        out = np.zeros(2)
        out[:] = rows[k[0]]
        return out

    for function in (unpack, store):
        compiled = jt.jit(function)
        assert np.array_equal(compiled(np.array([0])), function(np.array([0])))
        for k in (1, 2):
            with pytest.raises(ValueError, match="unpack|broadcast"):
                compiled(np.array([k]))
    with pytest.raises(TypeError, match="NumPy is given a list"):
        jt.jit(lambda x, k: x * rows[k[0]])(np.ones(2), np.array([0]))
