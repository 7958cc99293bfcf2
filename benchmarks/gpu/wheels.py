"""Packages for machines that reach no package index: wheels in a folder beside this file.

They are unpacked, which is all that most wheels need, for this process and those of the stages. What is
installed comes first.
"""

from __future__ import annotations

import os
import sys
import zipfile
from importlib import invalidate_caches
from pathlib import Path

WHEELS = Path(__file__).resolve().parent / "wheels"


def unpack(target: Path) -> list[str]:
    """Unpack all wheels to a folder; the files' names."""
    wheels = sorted(WHEELS.glob("*.whl"))
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(target)
    if wheels:
        sys.path.append(str(target))
        known = os.environ.get("PYTHONPATH", "")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [known, str(target)]))
        invalidate_caches()
    return [wheel.name for wheel in wheels]
