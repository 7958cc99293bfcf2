"""Every Python block of the README and of the pages in `DOCUMENTS` runs, in order, and prints
what the next `text` block says."""

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

DOCUMENTS = {
    "README.md": 5,
    "docs/autodidax.md": 8,
    "docs/guides/nn.md": 7,
    "docs/guides/optim.md": 8,
    "docs/concepts/randomness.md": 4,
    "docs/guides/solve.md": 4,
    "docs/guides/data.md": 6,
    "docs/guides/train.md": 7,
    "docs/guides/ahead_of_time.md": 6,
    "docs/guides/recurrent.md": 6,
    "docs/guides/sequences.md": 10,
    "docs/coming_from/tensorflow_tasks.md": 25,
    "docs/guides/scaling.md": 4,
}  # and how many blocks they have at least
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(document: Path) -> Iterator[tuple[str, int, str]]:
    """(language, line of the first line of code, code) of each fenced block."""
    text = document.read_text()
    for match in BLOCK.finditer(text):
        yield match[1], text.count("\n", 0, match.start()) + 2, match[2]


def run(document: Path) -> Iterator[tuple[int, str, str | None]]:
    """Of each Python block: its line, what it printed, what it should print if the page says so."""
    module = sys.modules[document.stem] = ModuleType(document.stem)  # which dataclasses look up
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
    assert {language for language, _, _ in blocks(document)} <= {"python", "text", "sh"}
    assert document.read_text().count("```") == 2 * len(list(blocks(document)))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_snippets_run_and_print_what_is_promised(name: str) -> None:
    results = list(run(ROOT / name))
    assert len(results) >= DOCUMENTS[name]
    for line, printed, promised in results:
        if promised is not None:
            assert printed.split("\n") == promised.split("\n"), f"{name}:{line}"
    assert sum(promised is not None for _, _, promised in results) >= 4


@pytest.mark.parametrize(
    "name", [*DOCUMENTS, "docs/coming_from/tensorflow.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
)
def test_files_that_are_named_exist(name: str) -> None:
    text = (ROOT / name).read_text()
    for path in re.findall(r"`([\w./-]+(?:\.md|\.ipynb|\.py|\w/))`", text):
        assert (ROOT / path).exists(), path
