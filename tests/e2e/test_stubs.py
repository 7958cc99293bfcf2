"""The stubs of the public face: made from what is there, and what a type checker makes of them."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from stubs import ROOT, texts

import jitney as jt

TEXTS = texts()
# Which functions a NumPy has is its own matter; the stubs are made with one that has all.
NEWEST = pytest.mark.skipif(np.__version__ < "2.4", reason="an older NumPy lacks names")


def names_of(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname for alias in node.names if alias.asname == alias.name}
        elif isinstance(node, ast.FunctionDef):
            names.add(node.name)
    return names


@NEWEST
@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_stubs_are_of_this_tree(path: Path) -> None:
    assert path.read_text() == TEXTS[path], "run `python tests/helpers/stubs.py`"


def test_no_stub_is_left_over() -> None:
    assert set(ROOT.glob("*.pyi")) | set(ROOT.glob("tracer/typed/*.pyi")) == set(TEXTS)


@NEWEST
@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_each_name_has_a_type_and_is_there(path: Path) -> None:
    space = jt if path.parent == ROOT else getattr(jt, path.stem)
    listed = (
        set(dir(jt)) - {"__array_api_version__", "__doc__"} if space is jt else set(vars(space))
    )
    named = names_of(path) - {"load_ipython_extension", "__getattr__"}
    assert named >= {n for n in listed if not n.startswith("_") or space is jt}
    assert all(hasattr(space, name) for name in named)


def test_a_checker_sees_signatures_of_array_functions(tmp_path: Path) -> None:
    """Without the modules that the stubs name, which take a checker half a minute: `.ci/run types`."""
    pytest.importorskip("mypy")
    (tmp_path / "jitney").symlink_to(ROOT)
    (tmp_path / "mypy.ini").write_text(
        "[mypy]\nwarn_unused_ignores = true\n[mypy-jitney.*]\nfollow_imports = skip\n"
    )
    files = [*TEXTS, ROOT / "tests" / "helpers" / "typed_functions.py"]
    told = [str(Path("jitney", path.relative_to(ROOT))) for path in files]
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), *told]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
