"""Write docs/repomap.md, which has a line for every module: `python tests/helpers/repomap.py`.

A line is the first sentence of the module's docstring, so the map says what the modules say.
"""

from __future__ import annotations

import ast
import inspect
import re
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MAP = ROOT / "docs" / "repomap.md"
HEAD = """\
# A line for every file

Made by `python tests/helpers/repomap.py` from the first sentence of each module. A folder's own
docstring, in its `__init__.py`, says more.
"""
# What a module begins with. To parse modules, for this alone, takes fifty times longer.
_DOCSTRING = re.compile(r'(?:\s|#.*\n)*(r?""".*?""")', re.DOTALL)


def modules() -> list[Path]:
    """All modules of the repository, by folder, each folder's `__init__` first."""
    paths = (path.relative_to(ROOT) for path in ROOT.rglob("*.py"))
    ours = [path for path in paths if not any(_is_foreign(part) for part in path.parts[:-1])]
    return sorted(ours, key=lambda path: (str(path.parent), path.name != "__init__.py", path.name))


def _is_foreign(folder: str) -> bool:
    return folder.startswith(".") or folder in ("build", "dist", "venv", "__pycache__")


def first_sentence(module: Path) -> str:
    found = _DOCSTRING.match((ROOT / module).read_text())
    docstring = inspect.cleandoc(ast.literal_eval(found[1])) if found else ""
    paragraph = " ".join(docstring.partition("\n\n")[0].split())
    sentence = re.split(r"(?<=[.:!?]) (?=[A-Z`])", paragraph)[0]
    return sentence.rstrip(".:")


def repomap() -> str:
    parts = [HEAD]
    for folder, paths in groupby(modules(), key=lambda path: path.parent):
        own, lines = "", []
        for path in paths:
            if path.name == "__init__.py":
                own = first_sentence(path)
            else:
                lines.append(f"- `{path.name}` {first_sentence(path)}".rstrip())
        parts.append(f"## {folder.as_posix()}/\n\n{own}\n\n" + "\n".join(lines))
    return re.sub(r"\n{3,}", "\n\n", "\n\n".join(parts)).rstrip() + "\n"


if __name__ == "__main__":
    MAP.write_text(repomap())
