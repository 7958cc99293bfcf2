"""Lists of lists of numbers that compiled code only reads are read natively, each time as they are."""

from __future__ import annotations

import numpy as np
import pytest
from native_calls import native_hits

import jitney as jt


def total(table, k):
    s = 0
    for row in table:
        for x in row:
            s += x * k
    return s


TABLES = {
    "ints": [[i * 7 + j for j in range(5)] for i in range(6)],
    "floats": [[i / 3 + j for j in range(4)] for i in range(9)],
    "bools": [[(i + j) % 3 == 0 for j in range(8)] for i in range(4)],
}


@pytest.mark.parametrize("kind", TABLES)
def test_read_natively(kind):
    table = TABLES[kind]
    f = jt.jit(total)
    for _ in range(3):
        assert f(table, 2) == total(table, 2)
    before = native_hits(f)
    f(table, 2)
    assert native_hits(f) == before + 1
    table = [list(row) for row in table]
    table[2][1] = type(table[0][0])(1)
    assert f(table, 2) == total(table, 2)


@pytest.mark.parametrize(
    "other",
    [
        [[1, 2, 3, 4, 5]] * 6,  # one row six times
        [[1, 2, 3, 4, 5] for _ in range(5)],
        [[1, 2, 3, 4] for _ in range(6)],
        [[1, 2, 3, 4, 5] for _ in range(5)] + [[1]],
        [[1, 2, 3, 4, 5.5] for _ in range(6)],
        [[1, 2, 3, 4, True] for _ in range(6)],
        [[1, 2, 3, 4, np.int64(5)] for _ in range(6)],
        [(1, 2, 3, 4, 5) for _ in range(6)],
        ([1, 2, 3, 4, 5],) * 6,
        np.arange(30).reshape(6, 5),
    ],
    ids=str,
)
def test_others_are_told_apart(other):
    f = jt.jit(total)
    for _ in range(3):
        f(TABLES["ints"], 2)
    for _ in range(3):
        assert f(other, 2) == total(other, 2)
        assert f(TABLES["ints"], 2) == total(TABLES["ints"], 2)


def test_a_number_that_no_dtype_holds_stays_pythons():
    f = jt.jit(total)
    table = [list(row) for row in TABLES["ints"]]
    for _ in range(3):
        f(table, 2)
    table[5][4] = 1 << 70
    assert f(table, 2) == total(table, 2) > 1 << 70


def test_rows_that_are_changed_are_the_callers():
    def bump(table, i):
        table[i][0] += 1
        return table[i], table

    f, table = jt.jit(bump), [list(row) for row in TABLES["ints"]]
    want = [list(row) for row in table]
    for i in (0, 3, 3, 5):
        row, back = f(table, i)
        bump(want, i)
        assert table == want and back is table and row is table[i]
    shared = [[0, 1, 2, 3]] * 5
    assert f(shared, 2)[1] == [[1, 1, 2, 3]] * 5


def test_a_row_that_is_returned_is_the_callers():
    f, table = jt.jit(lambda table, i: (table[i], table)), TABLES["ints"]
    for i in (1, 4, 1):
        row, back = f(table, i)
        assert row is table[i] and back is table
