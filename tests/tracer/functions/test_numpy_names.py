"""Every name of NumPy's: `jt` has it, or says why not. `docs/reference/numpy_names.md` lists them.

JITNEY_UPDATE_GOLDEN=1 writes the page anew.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from folders import ROOT

import jitney as jt
from jitney.tracer.arrays.numpy_names import ABSENT, FROM_NUMPY
from jitney.tracer.arrays.table import FUNCTIONS

PAGE = ROOT / "docs" / "reference" / "numpy_names.md"
SPACES = {"": np, "linalg.": np.linalg, "fft.": np.fft}


def numpy_names(space: str) -> list[str]:
    inside = {"linalg", "fft", "random"}
    return sorted(set(SPACES[space].__all__) - inside)


def compiled(space: str) -> list[str]:
    return [n for n in numpy_names(space) if space + n in FUNCTIONS]


def ours() -> list[str]:
    """Array functions that NumPy does not have."""
    names = (n for n in FUNCTIONS if "." not in n)
    return sorted(n for n in names if not hasattr(np, n))


def page() -> str:
    """The page, as Markdown."""
    lines = [
        "# NumPy's names",
        "",
        "What of NumPy's namespace `jt` has. "
        "This page is made by `tests/tracer/functions/test_numpy_names.py`.",
    ]
    for space in SPACES:
        names = " ".join(f"`{n}`" for n in compiled(space))
        title = f"`np.{space.rstrip('.')}`" if space else "`np`"
        lines += ["", f"## Compiled, from {title}", "", names]
    ours_too = " ".join(f"`{n}`" for n in ours())
    lines += ["", "## Compiled, and not in NumPy", "", ours_too]
    plain = [n for n in numpy_names("") if n not in FUNCTIONS and n not in ABSENT]
    lines += ["", "## As they are in NumPy, or jitney's own of that name", ""]
    lines += [" ".join(f"`{n}`" for n in plain)]
    lines += ["", "## Not there, and why", "", "| name | why |", "|---|---|"]
    lines += [f"| `{n}` | {ABSENT[n]} |" for n in sorted(ABSENT)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("space", list(SPACES))
def test_every_name_is_there_or_has_a_reason(space: str) -> None:
    namespace = getattr(jt, space.rstrip(".")) if space else jt
    for name in numpy_names(space):
        if name in ABSENT and not space:
            with pytest.raises(AttributeError, match="jitney has no"):
                getattr(jt, name)
        elif name != "LinAlgError":
            assert hasattr(namespace, name), name


def test_reasons_and_reexports_speak_of_what_exists() -> None:
    assert not FROM_NUMPY & set(ABSENT)
    assert not FROM_NUMPY & set(FUNCTIONS)
    for name in FROM_NUMPY:
        assert getattr(jt, name) is getattr(np, name)


def test_the_reason_is_in_the_error() -> None:
    with pytest.raises(TypeError, match="depends on the values"):
        jt.jit(lambda x: np.real_if_close(x))(np.ones(3))
    with pytest.raises(AttributeError, match=r"jt\.vstack"):
        _ = jt.row_stack


def test_the_page_is_up_to_date() -> None:
    if os.environ.get("JITNEY_UPDATE_GOLDEN"):
        PAGE.write_text(page())
    if np.__version__.startswith("2.4"):
        assert PAGE.read_text() == page()
