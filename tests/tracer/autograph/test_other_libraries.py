"""Tables and plots in compiled code: what is given traced values says so, and where."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import jitney as jt


def test_a_table_of_traced_values_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class DataFrame:
        def __init__(self, rows: Any) -> None:
            self.rows = rows

    pandas = ModuleType("pandas")
    DataFrame.__module__ = "pandas.core.frame"
    pandas.DataFrame = DataFrame  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pandas", pandas)

    def traced(x: Any) -> Any:
        rows = []
        for v in x:
            rows.append({"v": v})
        return pandas.DataFrame(rows)

    def known(x: Any) -> Any:
        return x * len(pandas.DataFrame([1, 2]).rows)

    with pytest.raises(jt.errors.UnsupportedFunctionError, match="pandas.DataFrame is called with"):
        jt.jit(traced)(np.ones(3))
    assert jt.jit(known)(np.ones(3)).tolist() == [2, 2, 2]
