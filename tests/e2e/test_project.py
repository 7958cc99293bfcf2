"""The project itself: packaging, names, layers, and what an import costs."""

import ast
import functools
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from importlib import metadata
from pathlib import Path

import networkx
import pytest

import jitney

ROOT = Path(jitney.__file__).resolve().parent
OUTSIDE = {"tests", "benchmarks", "notebooks", "examples", "docs", "build", "dist"}
LAYERS = ["ir", "codegen", "runtime", "tracer"]  # each may import itself and what stands before it

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def package_folders():
    """Every folder of the tree that is part of the package, as dotted names."""
    for folder, subfolders, files in os.walk(ROOT):
        parts = Path(folder).relative_to(ROOT).parts
        subfolders[:] = [
            name
            for name in subfolders
            if not name.startswith((".", "__")) and not (not parts and name in OUTSIDE)
        ]
        if "__init__.py" in files:
            yield ".".join(("jitney", *parts))


def package_modules():
    for package in package_folders():
        yield from sorted(ROOT.joinpath(*package.split(".")[1:]).glob("*.py"))


def test_package_list_is_the_tree():
    assert sorted(PROJECT["tool"]["setuptools"]["packages"]) == sorted(package_folders())


def test_every_folder_with_modules_is_a_package():
    """A forgotten __init__.py would leave a folder out of the wheel without a word."""
    packages = set(package_folders())
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).parts[:-1]
        if not parts or parts[0] in OUTSIDE or parts[0].startswith("."):
            continue
        assert ".".join(("jitney", *parts)) in packages, path


def test_version_stands_in_one_place():
    assert metadata.version("jitney") == jitney.__version__
    assert "version" in PROJECT["project"]["dynamic"]
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", jitney.__version__)


def test_python_versions_agree():
    classifiers = PROJECT["project"]["classifiers"]
    named = [c.rsplit(" ", 1)[1] for c in classifiers if re.search(r":: 3\.\d+$", c)]
    assert named == ["3.11", "3.12", "3.13", "3.14"]
    assert PROJECT["project"]["requires-python"] == f">={named[0]}"
    assert PROJECT["tool"]["ruff"]["target-version"] == "py" + named[0].replace(".", "")


def test_root_names_shadow_nothing():
    """With the root as working directory, its folders and modules come first on sys.path."""
    names = {p.stem for p in ROOT.glob("*.py")} | {p.name for p in ROOT.iterdir() if p.is_dir()}
    names = {n for n in names if n.isidentifier() and not n.startswith("__")}
    installed = {
        name
        for name, distributions in metadata.packages_distributions().items()
        if set(distributions) != {"jitney"}
    }
    known = {"array", "jax", "numba", "pandas", "random", "scipy", "torch", "types"}
    assert not names & (set(sys.stdlib_module_names) | (installed - {"tests"}) | known)


def test_root_is_imported_once():
    """pytest must not have imported the checkout a second time, under the folder's own name."""
    init = str(ROOT / "__init__.py")
    assert [n for n, m in sys.modules.items() if getattr(m, "__file__", None) == init] == ["jitney"]
    assert not (ROOT / "tests" / "__init__.py").exists()


@functools.cache
def parts_of(path):
    """The docstring of a module, its imports, which of them only types need, and its classes."""
    tree = ast.parse(path.read_text())
    imports, typing, classes = [], set(), []
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            imports.append(node)
        elif isinstance(node, ast.ClassDef):
            bases = [ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases]
            classes.append((node.name, bases))
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            typing.update(ast.walk(node))
    return ast.get_docstring(tree), imports, typing.intersection(imports), classes


def imported_rooms(path):
    """(line, dotted target inside jitney) for every import of `path` that stays in the package."""
    package = ["jitney", *path.relative_to(ROOT).parts[:-1]]
    for node in parts_of(path)[1]:
        if isinstance(node, ast.ImportFrom):
            if node.level:
                base = package[: len(package) - node.level + 1]
                target = [*base, *(node.module.split(".") if node.module else [])]
            else:
                target = node.module.split(".")
            if target[0] == "jitney":
                # `from .. import x`: x may be a room of the root
                for alias in node.names:
                    yield node.lineno, [*target, alias.name]
        else:
            for alias in node.names:
                if alias.name.split(".")[0] == "jitney":
                    yield node.lineno, alias.name.split(".")


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_run_one_way(layer):
    allowed = set(LAYERS[: LAYERS.index(layer) + 1])
    for path in sorted((ROOT / layer).rglob("*.py")):
        for line, target in imported_rooms(path):
            where = f"{path.relative_to(ROOT)}:{line} imports {'.'.join(target)}"
            room = target[1] if len(target) > 1 else ""
            assert room in allowed, where


def imports_of_files():
    """Module -> the modules that it imports, inside of functions too; what only types need apart."""
    files = {
        path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in package_modules()
    }
    modules = {name.removesuffix(".__init__") for name in files.values()}
    found = {}
    for path, name in files.items():
        package = list(path.relative_to(ROOT).parts[:-1])
        _, imports, typing, _ = parts_of(path)
        targets = found.setdefault(name.removesuffix(".__init__"), set())
        for node in imports:
            if isinstance(node, ast.ImportFrom) and node.level and node not in typing:
                base = package[: len(package) - node.level + 1]
                base += node.module.split(".") if node.module else []
                for alias in node.names:
                    full, short = ".".join([*base, alias.name]), ".".join(base)
                    target = full if full in modules else short
                    targets |= {target} - {name} if target in modules else set()
    return found


def circles(graph):
    graph = networkx.DiGraph([(a, b) for a, targets in graph.items() for b in targets])
    return [sorted(c) for c in networkx.strongly_connected_components(graph) if len(c) > 1]


def test_no_imports_in_circles():
    files = imports_of_files()
    assert circles(files) == []
    folders = {}
    for name, targets in files.items():
        here = name.rpartition(".")[0]
        for target in targets:
            there = target.rpartition(".")[0]
            inside = f"{here}.".startswith(f"{there}.") or f"{there}.".startswith(f"{here}.")
            if here and there and not inside:
                folders.setdefault(here, set()).add(there)
    assert circles(folders) == []


def test_folders_are_not_full():
    count = Counter(path.parent.relative_to(ROOT) for path in package_modules())
    assert [str(folder) for folder, n in count.items() if n > 25] == []


def test_imports_inside_the_package_are_relative():
    """Libraries on top are written as a user would write them: `import jitney as jt`."""
    for path in package_modules():
        parts = path.relative_to(ROOT).parts
        if parts[0] not in LAYERS:
            continue
        for node in parts_of(path)[1]:
            absolute = (
                [a.name for a in node.names]
                if isinstance(node, ast.Import)
                else []
                if node.level
                else [node.module]
            )
            for name in absolute:
                assert name.split(".")[0] != "jitney", f"{path}:{node.lineno}"


def run_python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT / "tests",
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_leaves_the_heavy_libraries_alone():
    """The import loads none of them; wrapping a function loads LLVM, so that its call need not."""
    heavy = ["llvmlite", "networkx", "scipy", "sklearn", "matplotlib"]
    loaded = f"print([m for m in {heavy} if m in sys.modules])"
    assert run_python(f"import sys, jitney; {loaded}") == "[]"
    wrap = "jitney.jit(lambda x: x)"
    assert run_python(f"import sys, jitney; {wrap}; {loaded}") == "['llvmlite']"


def test_import_is_fast(tmp_path):
    """Processor time of `import jitney`, NumPy included, from bytecode."""
    code = (
        "import time; start = time.process_time(); import jitney, numpy; jitney.float32; "
        "print(time.process_time() - start)"
    )
    environment = {"PYTHONPYCACHEPREFIX": str(tmp_path), "PYTHONDONTWRITEBYTECODE": ""}
    times = [float(run_python(code, **environment)) for _ in range(5)]
    assert min(times[1:]) < 0.3


def test_classes_are_records():
    """`dataclasses` would take half of the time of a first call: see ir/record.py."""
    for layer in LAYERS:
        for path in sorted(ROOT.joinpath(layer).rglob("*.py")):
            assert not re.search(r"^@dataclass\b", path.read_text(), re.MULTILINE), path


def test_classes_are_at_most_three_deep():
    """What a class needs of others it holds: see docs/decisions/0010-emitters-by-composition.md. What
    users derive their own from, `nn.Module`, is none of the three."""
    bases: dict[str, list[str]] = {}
    for path in package_modules():
        for name, names in parts_of(path)[3]:
            bases.setdefault(name, []).extend(n for n in names if n != name)

    def depth(name):
        own = [base for base in bases[name] if base in bases and base != "Module"]
        return 1 + max(map(depth, own), default=0)

    assert {name: depth(name) for name in bases if depth(name) > 3} == {}


def test_modules_are_small_and_have_docstrings():
    for path in package_modules():
        text = path.read_text()
        if not text.strip():
            continue
        assert parts_of(path)[0], f"{path.relative_to(ROOT)} has no docstring"
        lines = text.count("\n")
        assert lines <= 800, f"{path.relative_to(ROOT)} has {lines} lines; split it by idea"


def test_words_of_the_glossary_are_where_it_says():
    rows = [r for r in (ROOT / "docs/glossary.md").read_text().splitlines() if r.endswith("` |")]
    words = [row.split("|")[1].strip() for row in rows]
    assert words == sorted(words) and len(words) == len(set(words)) > 30
    for word, row in zip(words, rows, strict=True):
        modules = re.findall(r"`([\w/]+\.py)`", row.split("|")[3])
        assert modules, word
        for module in modules:
            text = re.sub(r"[\s_-]", "", module + (ROOT / module).read_text().lower())
            assert re.sub(r"[\s-]", "", word.partition(" (")[0]) in text, (word, module)


def test_license_and_changelog():
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text and "END OF TERMS AND CONDITIONS" in text
    assert PROJECT["project"]["license"] == "Apache-2.0"
    assert "## " in (ROOT / "CHANGELOG.md").read_text()


def test_contributing_fits_one_screen():
    assert len((ROOT / "CONTRIBUTING.md").read_text().splitlines()) <= 45


def test_ci_runs_the_commands_of_the_readme():
    readme = (ROOT / "README.md").read_text()
    ci = (ROOT / ".ci" / "run").read_text()
    assert "python -m pip install '.[demo]' && python -m jitney" in readme
    command = "python -m pip install -e '.[test]' && python -m pytest"
    assert command in readme and command in ci
    assert len(readme.splitlines()) < 100  # one screen and a half: tables and settings have pages


def test_documented_settings_are_the_ones_that_are_read():
    """The table of environment variables, both ways."""
    page = (ROOT / "docs" / "reference" / "settings.md").read_text()
    documented = set(re.findall(r"^\| `(JITNEY_\w+)", page, re.M))
    asks = r"(?:environ\S*[(\[]|(?:flag|choice|mebibytes|count|Setting)\()"
    read = set()
    for path in package_modules():
        read |= set(re.findall(asks + r"\"(JITNEY_\w+)\"", path.read_text()))
    assert documented == read


def test_info_describes_the_machine():
    done = subprocess.run(
        [sys.executable, "-m", "jitney", "info"],
        capture_output=True,
        text=True,
        cwd=ROOT / "tests",
    )
    assert done.returncode == 0, done.stderr
    for words in (jitney.__version__, "llvmlite", "numpy", "cpu", "vector", "threads", "cache"):
        assert words in done.stdout.lower(), words


def test_python_m_jitney_helps():
    done = subprocess.run(
        [sys.executable, "-m", "jitney", "--help"],
        capture_output=True,
        text=True,
        cwd=ROOT / "tests",
    )
    assert done.returncode == 0
    assert "info" in done.stdout and "demo" in done.stdout
