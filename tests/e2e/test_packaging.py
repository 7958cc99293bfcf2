"""What is built and published: the backend, the files beside the package, what an import loads."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.util
import re
import tomllib
import zipfile
from pathlib import Path

import pytest

import jitney

ROOT = Path(jitney.__file__).resolve().parent


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("setuptools.build_meta")
    spec = importlib.util.spec_from_file_location("backend", ROOT / ".ci" / "backend.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_editable_installs_show_checkers_the_root(backend, tmp_path, monkeypatch) -> None:
    """`.ci/run types` has checkers look at one."""

    def build(folder, *_):
        with zipfile.ZipFile(Path(folder, "j.whl"), "w") as wheel:
            wheel.writestr("finder.py", "hook")
            wheel.writestr("j.dist-info/RECORD", "finder.py,,\nj.dist-info/RECORD,,\n")
        return "j.whl"

    monkeypatch.setattr(backend.build_meta, "build_editable", build)
    monkeypatch.setattr(backend, "LINK", tmp_path / ".editable" / "jitney-stubs")
    for _ in range(2):  # once more, over the first
        assert backend.build_editable(str(tmp_path)) == "j.whl"
    assert backend.LINK.resolve() == tmp_path
    with zipfile.ZipFile(tmp_path / "j.whl") as wheel:
        path = wheel.read("__jitney_typed__.pth")
        rows = list(csv.reader(wheel.read("j.dist-info/RECORD").decode().splitlines()))
        assert wheel.read("finder.py") == b"hook"
    assert path.decode() == f"{backend.LINK.parent}\n"
    digest = base64.urlsafe_b64encode(hashlib.sha256(path).digest()).decode().rstrip("=")
    assert rows[0] == ["__jitney_typed__.pth", f"sha256={digest}", str(len(path))]
    assert len(rows) == 3 and sorted(p.name for p in tmp_path.iterdir()) == [".editable", "j.whl"]


def test_where_links_are_not_allowed_the_wheel_is_setuptools(
    backend, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(backend.build_meta, "build_editable", lambda *_: "j.whl")
    (tmp_path / "file").touch()
    monkeypatch.setattr(backend, "LINK", tmp_path / "file" / "jitney-stubs")
    assert backend.build_editable(str(tmp_path)) == "j.whl"
    assert backend.build_wheel is backend.build_meta.build_wheel


def test_workflows_and_recipes_call_scripts_that_exist() -> None:
    files = [
        *ROOT.glob(".github/workflows/*.yml"),
        *(p for p in ROOT.glob(".ci/*") if p.is_file()),
        ROOT / "CONTRIBUTING.md",
    ]
    named = {(path.name, name) for path in files for name in scripts_of(path.read_text())}
    assert len(named) > 10
    assert [(path, name) for path, name in sorted(named) if not (ROOT / name).exists()] == []


def scripts_of(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w/.])\.ci/[\w.]+\b", text))


def test_steps_that_workflows_name_are_there() -> None:
    for path in ROOT.glob(".github/workflows/*.yml"):
        for steps, script in re.findall(
            r"step: \[([^\]]*)\](?:.|\n)*?run: (\.ci/\w+) \$", path.read_text()
        ):
            there = (ROOT / script).read_text()
            assert all(re.search(rf"^{s}\(\)", there, re.M) for s in re.split(r"[, ]+", steps))


def test_the_conda_recipe_has_the_versions_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    recipe = (ROOT / ".ci" / "conda" / "recipe.yaml").read_text()
    needed = project["project"]["dependencies"] + project["build-system"]["requires"]
    needed += ["python" + project["project"]["requires-python"]]
    listed = {line.strip("- ").replace(" ", "") for line in recipe.split("\n") if " >=" in line}
    assert listed == set(needed)
    assert f'version: "{jitney.__version__}"' in recipe
    entry = project["project"]["scripts"]["jitney"]
    assert f"- jitney = {entry}\n" in recipe


def test_the_change_log_has_a_section_for_what_is_not_released() -> None:
    titles = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert titles[0] == "Unreleased"
    assert all(re.fullmatch(r"\d+\.\d+\.\d+( \(.+\)| - .+)?", title) for title in titles[1:])
