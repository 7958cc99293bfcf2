"""Every Python block of the README runs, in order, and prints what the next `text` block says."""

import contextlib
import io
import linecache
import re
from pathlib import Path

import pytest

import jitney

README = Path(jitney.__file__).resolve().parent / "README.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks():
    """(language, line of the first line of code, code) of each fenced block."""
    text = README.read_text()
    for match in BLOCK.finditer(text):
        yield match[1], text.count("\n", 0, match.start()) + 2, match[2]


@pytest.fixture(scope="module")
def run_readme():
    """Line of each Python block -> (what it printed, what it should print or None)."""
    namespace = {"__name__": "readme"}
    found = list(blocks())
    results = {}
    settings = dict(jitney.config._set)
    for position, (language, line, code) in enumerate(found):
        if language != "python":
            continue
        # Padded, so that errors and jitney's own messages name the README's lines.
        source = "\n" * (line - 1) + code
        linecache.cache[str(README)] = len(source), None, source.splitlines(True), str(README)
        program = compile(source, str(README), "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(program, namespace)
        following = found[position + 1] if position + 1 < len(found) else ("", 0, "")
        expected = following[2] if following[0] == "text" else None
        results[line] = printed.getvalue(), expected
    for name in jitney.config._set:  # it shows how they are set
        setattr(jitney.config, name, settings.get(name))
    return results


def test_every_block_has_a_known_language():
    assert {language for language, _, _ in blocks()} <= {"python", "text", "sh"}
    assert README.read_text().count("```") == 2 * len(list(blocks()))


def test_snippets_run_and_print_what_is_promised(run_readme):
    assert len(run_readme) >= 5
    checked = 0
    for line, (printed, expected) in run_readme.items():
        if expected is not None:
            assert printed.split("\n") == expected.split("\n"), f"README.md:{line}"
            checked += 1
    assert checked >= 4


def test_links_point_to_files():
    for name in re.findall(r"`([\w./-]+\.(?:md|ipynb))`", README.read_text()):
        assert (README.parent / name).exists(), name
