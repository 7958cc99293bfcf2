"""What Sphinx makes of source: entries of public names, and the gallery.

    ```{names} jt.random
    key split normal
    ```

has an entry for each name. Docstrings are plain text: paragraphs, code in backticks, examples,
lists, indented blocks as they stand, and terms with indented texts. What is NumPy's own has its
first sentence, a link to NumPy's page, and what is different here.
"""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import jitney as jt
from jitney.tracer.arrays.table import FUNCTIONS

COMPILED = type(jt.jit(np.sin))  # what `jt.jit` gives


def inline(text: str) -> list[nodes.Node]:
    """Text whose parts in backticks are code."""
    parts = re.split(r"(`[^`]+`)", " ".join(text.split()))
    return [
        nodes.literal(p, p[1:-1]) if p.startswith("`") and len(p) > 2 else nodes.Text(p)
        for p in parts
        if p
    ]


def paragraph(text: str) -> nodes.Node:
    return nodes.paragraph("", "", *inline(text.replace("``", "`")))


def code(text: str, language: str) -> nodes.Node:
    block = nodes.literal_block(text, text)
    block["language"] = language
    return block


def rendered(text: str) -> list[nodes.Node]:
    """A docstring as nodes, block by block."""
    out: list[nodes.Node] = []
    for block in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        lines = block.splitlines()
        while lines and lines[0][:1] != " " and not lines[0].startswith(">>>"):
            start = next((i for i, s in enumerate(lines) if s.startswith(">>>")), len(lines))
            out += prose(lines[:start])
            lines = lines[start:]
        if lines:
            body = inspect.cleandoc("\n" + "\n".join(lines))
            out.append(code(body, "pycon" if body.startswith(">>>") else "text"))
    return out


def prose(lines: list[str]) -> list[nodes.Node]:
    """A list of points, terms with texts, or a paragraph."""
    if lines[0].startswith("- "):
        points = re.split(r"^- ", "\n".join(lines), flags=re.MULTILINE)[1:]
        return [nodes.bullet_list("", *(nodes.list_item("", paragraph(p)) for p in points))]
    if len(lines) > 1 and lines[0][:1] != " " and lines[1].startswith("    "):
        terms = nodes.definition_list()
        for line in lines:
            if line[:1] != " ":
                terms += nodes.definition_list_item("", nodes.term("", "", *inline(line)))
                said: list[str] = []
                terms[-1] += nodes.definition("", nodes.paragraph())
            said.append(line)
            terms[-1][1][0].children = []
            terms[-1][1][0].extend(inline(" ".join(said[1:])))
        return [terms]
    return [paragraph(" ".join(lines))]


def signature(found: Any) -> str:
    """The parameters of a function or class, without types, and defaults as they are written."""
    try:
        parameters = list(inspect.signature(found).parameters.values())
    except (TypeError, ValueError):
        return "(...)"
    shown = []
    for p in parameters:
        default = p.default
        if default is p.empty:
            pass
        elif hasattr(default, "__name__"):
            p = p.replace(default=Shown(default.__name__))
        elif repr(default).startswith("<"):  # an address, or NumPy's "<no value>"
            p = p.replace(default=Shown("..."))
        shown.append(p.replace(annotation=p.empty))
    try:
        return str(inspect.Signature(shown))
    except ValueError:
        return "(...)"


class Shown:
    """A default that is shown as a text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def described(name: str, found: Any) -> list[nodes.Node]:
    """What is said of a name."""
    text = inspect.getdoc(found) or ""
    entry = FUNCTIONS.get(name.removeprefix("jt."))
    if entry is not None and entry.numpy is not None:
        first = re.split(r"\n\s*\n", text.strip())
        summary = next((p for p in first if not re.match(r"\w+\(.*\)", p)), "")
        page = f"https://numpy.org/doc/stable/reference/generated/numpy.{name[3:]}.html"
        link = nodes.reference("", f"numpy.{name[3:]}", refuri=page)
        out: list[nodes.Node] = [paragraph(summary), nodes.paragraph("", "", link)]
        if "In jitney: " in text:
            out.append(paragraph("In jitney: " + text.rpartition("In jitney: ")[2]))
        return out
    if not callable(found) and not inspect.isclass(found):
        if type(found).__module__.startswith("jitney"):
            return rendered(type(found).__doc__ or "")
        return [paragraph(f"`{found!r}`")]
    if not (getattr(found, "__module__", "") or "").startswith("jitney"):
        return [
            paragraph(re.split(r"\n\s*\n", text)[0]),
            paragraph(f"NumPy's, as `np.{name[3:]}`."),
        ]
    return rendered(text)


class Names(SphinxDirective):
    """Entries of public names."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        space = self.arguments[0]
        if space == "f":
            return [self.entry("f", name, getattr(COMPILED, name)) for name in self.words()]
        package: Any = jt
        for part in space.split(".")[1:]:
            package = getattr(package, part)
        return [self.entry(space, name, getattr(package, name)) for name in self.words()]

    def words(self) -> list[str]:
        return " ".join(self.content).split()

    def entry(self, space: str, name: str, found: Any) -> nodes.Node:
        full = f"{space}.{name}"
        kind = "class" if inspect.isclass(found) else "function" if callable(found) else "data"
        desc = addnodes.desc("", domain="py", objtype=kind, noindex=False)
        desc["classes"] += ["py", kind]
        head = addnodes.desc_signature("", "", ids=[full], fullname=full)
        head += addnodes.desc_addname("", space + ".")
        head += addnodes.desc_name("", name)
        if kind != "data":
            head += addnodes.desc_sig_punctuation("", signature(found))
        body = addnodes.desc_content("", *described(full, found))
        if kind == "class" and issubclass(found, BaseException):
            bases = [b.__name__ for b in found.__mro__[1:] if b.__module__ == "builtins"]
            body += paragraph(f"Also a `{bases[0]}`: handlers of that take it, too.")
        elif kind == "class":
            for method, value in vars(found).items():
                if method[0] == "_" or not inspect.getdoc(value):
                    continue
                line = nodes.definition_list_item("", nodes.term("", "", nodes.literal("", method)))
                line += nodes.definition("", *rendered(inspect.getdoc(value) or ""))
                if not isinstance(body[-1] if len(body) else None, nodes.definition_list):
                    body += nodes.definition_list()
                body[-1] += line
        self.env.get_domain("py").note_object(full, kind, full, location=head)
        desc += [head, body]
        return desc


class Programs(SphinxDirective):
    """The gallery: the table of times, of each program its docstring, its picture, and the file."""

    def run(self) -> list[nodes.Node]:
        folder = Path(self.env.srcdir) / "gallery"
        times = folder / "times.md"  # a table of all of them
        shown = self.parse_text_to_nodes(times.read_text()) if times.exists() else []
        for file in sorted(folder.glob("*.py")):
            text = file.read_text()
            said = ast.get_docstring(ast.parse(text))
            if said is None or file.stem == "build":
                continue
            title, _, said = said.partition("\n\n")
            section = nodes.section("", nodes.title("", title.rstrip(".")), ids=[file.stem])
            section += rendered(said) if said else []
            for picture in folder.glob(f"pictures/{file.stem}.*"):
                section += nodes.image(uri=f"gallery/pictures/{picture.name}", alt=title)
            section += code(re.sub(r'^""".*?"""\s*', "", text, flags=re.DOTALL).rstrip(), "python")
            shown.append(section)
            self.env.note_dependency(str(file))
        return shown


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("names", Names)
    app.add_directive("programs", Programs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
