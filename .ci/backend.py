"""Builds the package: setuptools, whose editable installs type checkers find, too.

The repository's root is the package, under whatever name it was cloned, so an editable install finds
it by a hook of Python's imports, which checkers do not run. They are shown a folder with a link to the
root, `.editable/jitney-stubs`: stub packages have such names, and Python itself never imports them.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  # all other hooks of PEP 517 are setuptools'

ROOT = Path(__file__).resolve().parents[1]
LINK = ROOT / ".editable" / "jitney-stubs"


def build_editable(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """setuptools' wheel, with one path more for `sys.path`; without where links are not allowed."""
    name = build_meta.build_editable(wheel_directory, config_settings, metadata_directory)
    try:
        LINK.parent.mkdir(exist_ok=True)
        if not LINK.is_symlink():
            LINK.symlink_to("..", target_is_directory=True)
    except OSError:
        return name
    add_file(Path(wheel_directory, name), "__jitney_typed__.pth", f"{LINK.parent}\n".encode())
    return name


def add_file(wheel: Path, name: str, content: bytes) -> None:
    """Put a file into a wheel, and its hash into the wheel's RECORD."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    whole = wheel.with_suffix(".new")
    with ZipFile(wheel) as before, ZipFile(whole, "w", ZIP_DEFLATED) as after:
        for entry in before.infolist():
            data = before.read(entry)
            if entry.filename.endswith(".dist-info/RECORD"):
                data = f"{name},sha256={digest},{len(content)}\n".encode() + data
            after.writestr(entry, data)
        after.writestr(name, content)
    shutil.move(whole, wheel)
