"""The documentation site, without building it: every page is in a table of contents, every public
name and every error has its entry."""

from __future__ import annotations

import os
import re
import types
from typing import Any

from folders import ROOT

import jitney as jt
from jitney.tracer.arrays.numpy_names import FROM_NUMPY

DOCS = ROOT / "docs"
NAMES = re.compile(r"^```\{names\} (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPACES = (
    *("jt", "jt.errors", "jt.linalg", "jt.fft", "jt.special", "jt.ops", "jt.image", "jt.random"),
    *("jt.tree", "jt.filters", "jt.sparse", "jt.solve", "jt.nn", "jt.nn.losses", "jt.optim"),
    *("jt.data", "jt.train", "jt.train.metrics", "jt.summary", "jt.distributed"),
)


def space(name: str) -> Any:
    found: Any = jt
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def public(name: str) -> set[str]:
    """What a user finds in a namespace, without what its module imports."""
    package = space(name)
    names = getattr(package, "__all__", None) or [
        n for n in dir(package) if n[0] != "_" and is_public(getattr(package, n))
    ]
    return set(names) - (set(FROM_NUMPY) if package is jt else set())


def is_public(value: Any) -> bool:
    if isinstance(value, (types.ModuleType, types.SimpleNamespace)):
        return False
    home = getattr(value, "__module__", None) or ""
    return not home.startswith(("typing", "collections", "__future__"))


def listed() -> dict[str, set[str]]:
    """The names that the reference has entries for, by namespace."""
    found: dict[str, set[str]] = {}
    for page in sorted((DOCS / "reference" / "api").glob("*.md")):
        for name, words in NAMES.findall(page.read_text()):
            assert not found.setdefault(name, set()) & set(words.split()), page
            found[name] |= set(words.split())
    return found


def test_every_public_name_is_in_the_reference() -> None:
    entries = listed()
    assert set(entries) == {*SPACES, "f"}
    for name in SPACES:
        assert public(name) <= entries[name], name
        assert not [n for n in entries[name] if not hasattr(space(name), n)], name
    compiled = type(jt.jit(lambda x: x))
    assert {n for n in dir(compiled) if n[0] != "_" and callable(getattr(compiled, n))} == entries[
        "f"
    ]


def test_every_error_says_its_cause_and_cure() -> None:
    sections = re.split(r"^## ", (DOCS / "errors.md").read_text(), flags=re.MULTILINE)[1:]
    told = {text.split("\n")[0]: text for text in sections}
    errors = {n for n in public("jt.errors") if isinstance(getattr(jt.errors, n), type)}
    assert set(told) == {n for n in errors if issubclass(getattr(jt.errors, n), BaseException)}
    assert all("**Cause.**" in text and "**Cure.**" in text for text in told.values())


def test_every_page_is_in_a_table_of_contents() -> None:
    reached = {"index"}
    for page in DOCS.rglob("*.md"):
        for tree in TREE.findall(page.read_text()):
            for entry in tree.split("\n"):
                if not entry or entry.startswith(":"):
                    continue
                pattern = os.path.relpath(os.path.normpath(page.parent / entry), DOCS) + ".*"
                found = [p for p in DOCS.glob(pattern) if p.suffix in (".md", ".ipynb")]
                assert found, (page, entry)
                reached |= {str(p.relative_to(DOCS).with_suffix("")) for p in found}
    pages = {str(p.relative_to(DOCS).with_suffix("")) for p in DOCS.rglob("*.md")}
    pages = {
        page for page in pages if not page.startswith("gallery/")
    }  # one page shows that folder
    assert pages <= reached
    tutorials = (DOCS / "tutorials.md").read_text()
    assert all(f"notebooks/{p.stem}\n" in tutorials for p in (ROOT / "notebooks").glob("*.ipynb"))
