"""Code that runs as a cell of a notebook."""

from __future__ import annotations

from typing import Any

import pytest


def notebook(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A shell of IPython's that is the running one: `run_cell(text)`, `user_ns`. Cells are `In[1]`..."""
    ipython = pytest.importorskip("IPython")
    shell = ipython.core.interactiveshell.InteractiveShell()
    monkeypatch.setattr(ipython, "get_ipython", lambda: shell)
    return shell
