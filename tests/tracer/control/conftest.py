"""Programs of control flow run compiled, interpreted, and as plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from backends import BACKENDS

import jitney as jt


@pytest.fixture(params=[None, *BACKENDS])
def wrap(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Identity (plain Python) and `jit` with each backend: the same numbers in all of them."""
    backend = request.param
    return (lambda f: f) if backend is None else lambda f: jt.jit(f, backend=backend)


@pytest.fixture(params=BACKENDS)
def jit(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """`jit` with each backend."""
    return lambda f: jt.jit(f, backend=request.param)
