"""Every Python block of the README and of all pages of docs/ runs, in order, and prints what the next
`text` block says."""

import contextlib
import io
import linecache
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest
from folders import ROOT

PAGES = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md"))]
DOCUMENTS = [name for name in PAGES if "\n```python\n" in (ROOT / name).read_text()]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(document: Path) -> Iterator[tuple[str, int, str]]:
    """(language, line of the first line of code, code) of each fenced block."""
    text = document.read_text()
    for match in BLOCK.finditer(text):
        yield match[1], text.count("\n", 0, match.start()) + 2, match[2]


def run(document: Path) -> Iterator[tuple[int, str, str | None]]:
    """Of each Python block: its line, what it printed, what it should print if the page says so."""
    name = f"page_{document.stem}"  # no module's: there is a page numpy.md
    module = sys.modules[name] = ModuleType(name)  # which dataclasses look up
    all_blocks = [*blocks(document), ("", 0, "")]
    for (language, line, code), following in pairwise(all_blocks):
        if language != "python":
            continue
        # Padded, so that errors and jitney's own messages name the page's lines.
        source = "\n" * (line - 1) + code
        linecache.cache[str(document)] = len(source), None, source.splitlines(True), str(document)
        program = compile(source, str(document), "exec", dont_inherit=True)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(program, vars(module))
        yield line, printed.getvalue(), following[2] if following[0] == "text" else None


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_block_has_a_known_language(name: str) -> None:
    document = ROOT / name
    text = re.sub(r"^```\{.*?^```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert {language for language, _, _ in blocks(document)} <= {"python", "text", "sh"}
    assert text.count("```") == 2 * len(list(blocks(document)))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_snippets_run_and_print_what_is_promised(name: str) -> None:
    results = list(run(ROOT / name))
    for line, printed, promised in results:
        if promised is not None:
            assert printed.split("\n") == promised.split("\n"), f"{name}:{line}"
    assert any(promised is not None for _, _, promised in results)


@pytest.mark.parametrize(
    "name", [*DOCUMENTS, "docs/coming_from/tensorflow.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
)
def test_files_that_are_named_exist(name: str) -> None:
    text = (ROOT / name).read_text()
    for path in re.findall(r"`([\w./-]+(?:\.md|\.ipynb|\.py|\w/))`", text):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("name", PAGES)
def test_links_between_pages_lead_somewhere(name: str) -> None:
    text = BLOCK.sub("", (ROOT / name).read_text())
    for path in re.findall(r"\]\((?!\w+:)([^)#\s]+)", text):
        assert ((ROOT / name).parent / path).exists(), path
