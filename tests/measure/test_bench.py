"""`jt.bench`: tables of times that compare only what computes the same; no test depends on times."""

import html.parser

import numpy as np
import pytest

import jitney as jt
from jitney.measure.chart import chart
from jitney.measure.clock import Timing
from jitney.measure.results import difference
from jitney.measure.table import Work, rows, shown

X = np.linspace(0, 1, 200)
QUICK = {"seconds": 0.002}


def plain(x):
    return np.exp(-x * x).sum()


fast = jt.jit(plain)


def timing(median, first=1.0):
    return Timing(median, median * 0.9, median * 1.2, 7, first)


def test_functions_have_rows_with_their_names():
    table = jt.bench({"numpy": plain, "mine": fast}, X, **QUICK)
    assert [row.name for row in table.rows] == ["numpy", "mine"]
    assert all(row.low <= row.seconds <= row.high and row.rounds >= 5 for row in table.rows)
    assert min(row.ratio for row in table.rows) == 1.0
    assert "GFLOP/s" in table and "numpy" in table and "first call" in table
    assert {row.nbytes for row in table.rows} == {X.nbytes + 8}
    assert list(table.to_dict()["name"]) == ["numpy", "mine"]


def test_one_function_and_several_without_names():
    assert [row.name for row in jt.bench(plain, X, **QUICK).rows] == ["plain"]
    names = [row.name for row in jt.bench([plain, np.sum, np.sum], X, check=False, **QUICK).rows]
    assert names == ["plain", "sum", "sum (3)"]


def test_sizes_make_rows_and_a_chart():
    table = jt.bench([plain, fast], lambda n: X[:n], sizes=[10, 50], **QUICK)
    assert [row.size for row in table.rows] == [10, 10, 50, 50]
    assert table.splitlines()[0].startswith("size")
    assert "<svg" in table._repr_html_() and "NaN" not in table._repr_html_()
    assert [row.size for row in jt.bench(np.sort, sizes=[5], **QUICK).rows] == [5]


DIFFERENT = {
    "values": (lambda x: x * 2, lambda x: x * 2 + 1e-6),
    "shapes": (lambda x: x, lambda x: x[:, None]),
    "numbers of arrays": (lambda x: (x, x), lambda x: x),
    "NaN": (lambda x: x, lambda x: np.where(x > 0.5, np.nan, x)),
    "infinities": (lambda x: x / 0.0 if 0 else x + np.inf, lambda x: x - np.inf),
    "integers": (lambda x: np.arange(3), lambda x: np.arange(3) + (np.arange(3) == 2)),
    "texts": (lambda x: "a", lambda x: "b"),
}


@pytest.mark.parametrize("kind", DIFFERENT)
def test_functions_whose_results_differ_are_not_compared(kind):
    one, other = DIFFERENT[kind]
    with pytest.raises(ValueError, match="one and other do not compute the same"):
        jt.bench({"one": one, "other": other}, X, **QUICK)
    assert len(jt.bench({"one": one, "other": other}, X, check=False, **QUICK).rows) == 2


def test_rounding_is_no_difference():
    ulp = np.nextafter(X, 2)
    assert difference(X, ulp, None) == "" and difference(X.astype("f4"), X, None) == ""
    assert difference(X, ulp, 0.0) and "[" in difference(X, ulp, 0.0)
    assert difference([np.nan, np.inf], [np.nan, np.inf], None) == ""


def test_what_changes_its_argument_gets_a_new_one_each_time():
    seen = []

    def grows(x):
        seen.append(x[0])
        x += 1
        return x

    given = np.zeros(3)
    jt.bench({"a": grows, "b": lambda x: x + 1}, given, **QUICK)
    assert set(seen) == {0.0} and not given.any()


def test_wrong_arguments_say_what_is_wanted():
    with pytest.raises(TypeError, match="makes the arguments of a size"):
        jt.bench(plain, X, sizes=[1, 2])
    with pytest.raises(TypeError, match="is no function"):
        jt.bench({"x": 3}, X)
    with pytest.raises(ValueError, match="no function"):
        jt.bench({}, X)
    with pytest.raises(ValueError, match="no size"):
        jt.bench(plain, sizes=[])


def test_the_table_as_text():
    work = Work(nbytes=2e6, flops=1e6, bandwidth=4e9, peak_flops=1e11)
    table = shown(rows("", [("numpy", timing(2e-3, 2e-3)), ("mine", timing(1e-3, 0.5))], work))
    assert table.splitlines() == [
        "function  a call  spread            slower  first call  GB/s  GFLOP/s  of the limit",
        "numpy     2 ms    1.8 ms to 2.4 ms  2.00 x  2 ms        1     0.5      25% bandwidth",
        "mine      1 ms    900 us to 1.2 ms          500 ms      2     1        50% bandwidth",
    ]


def test_html_is_well_formed_and_escaped():
    table = shown(rows("", [("<b>&", timing(1e-9)), ("y", timing(3.0))], None))
    page = table._repr_html_()
    assert "<b>&" not in page and "&lt;b&gt;&amp;" in page
    open_tags = []

    class Checker(html.parser.HTMLParser):
        def handle_starttag(self, tag, attrs):
            open_tags.append(tag)

        def handle_startendtag(self, tag, attrs):
            pass

        def handle_endtag(self, tag):
            assert open_tags.pop() == tag

    Checker().feed(page)
    assert not open_tags


def test_charts_of_odd_sizes():
    assert chart(rows("", [("a", timing(1.0))], None)) == ""
    words = [*rows("small", [("a", timing(1e-3))], None), *rows("big", [("a", timing(5.0))], None)]
    assert "small" in chart(words) and "nan" not in chart(words)
