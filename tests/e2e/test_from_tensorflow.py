"""The tables of docs/coming_from/ name what exists, with arguments that it takes."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from folders import ROOT

import jitney as jt
from jitney.ir.graph import Graph

PAGE = ROOT / "docs/coming_from/tensorflow.md"
OTHERS = sorted({*PAGE.parent.glob("*.md")} - {PAGE, PAGE.with_name("tensorflow_tasks.md")})
ROOTS = {
    "jt": jt,
    "np": np,
    "f": type(jt.jit(np.sin)),
    "dataset": jt.data.Dataset,
    "graph": Graph,
    "opt": jt.optim.Optimizer,
    "store": jt.nn.Store,
    "trainer": jt.train.Trainer,
}  # what names stand for, or their classes
UNKNOWN = object()


def rows(page: Path = PAGE) -> list[tuple[str, str]]:
    """(what it was called, what it is) of each row."""
    lines = [line for line in page.read_text().splitlines() if line.startswith("| ")]
    cells = [line.strip("| ").split(" | ") for line in lines]
    assert all(len(row) == 2 for row in cells)
    return [(there, here) for there, here in cells if here != "jitney"]


def found(node: ast.AST) -> Any:
    """What an expression names; of an instance its class; UNKNOWN of what only running it tells."""
    if isinstance(node, ast.Name):
        return ROOTS.get(node.id, UNKNOWN)
    if isinstance(node, ast.Call):
        made = found(node.func)
        return made if inspect.isclass(made) else UNKNOWN
    if not isinstance(node, ast.Attribute):
        return UNKNOWN
    base = found(node.value)
    return getattr(base, node.attr, UNKNOWN) if is_instance(base) else getattr(base, node.attr)


def is_instance(base: Any) -> bool:
    """Whether it may have attributes that are not seen."""
    return base is UNKNOWN or inspect.isclass(base)


def check(code: str) -> None:
    """Raise AttributeError and TypeError as running it would."""
    for node in ast.walk(ast.parse(code)):
        called = found(node.func if isinstance(node, ast.Call) else node)
        if not isinstance(node, ast.Call):
            continue
        given = [None] * len(node.args)
        if isinstance(node.func, ast.Attribute) and inspect.isclass(base := found(node.func.value)):
            called = getattr(base, node.func.attr)
            given += [None] * inspect.isfunction(called)  # self
        if called is UNKNOWN or isinstance(node.func, ast.Call):
            continue
        try:
            signature = inspect.signature(called)
        except ValueError:  # one of NumPy's that has none
            continue
        signature.bind(*given, **{keyword.arg or "": None for keyword in node.keywords})


def test_every_row_has_code_whose_names_exist() -> None:
    assert len(rows()) > 150 and len(OTHERS) == 4
    for there, here in [row for page in (PAGE, *OTHERS) for row in rows(page)]:
        codes = re.findall(r"`([^`]+)`", here)
        assert codes or "](" in here, there
        for code in codes:
            if not re.search(r"\b(jt|np|dataset|graph|opt|store|trainer)\.\w", code):
                continue
            try:
                code = code.removeprefix("return ").removeprefix("@")
                check(f"{code} pass" if code.endswith(":") else code)
            except (AttributeError, TypeError, SyntaxError) as error:
                pytest.fail(f"{there}: `{code}`: {error}")


def test_what_is_missing_is_said_with_what_can_be_done() -> None:
    missing = [here for _, here in rows() if "not yet" in here]
    assert missing and all("today: " in here for here in missing)
