"""Every public array function on a GPU (emulated, if there is none): the table of calls against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from function_calls import CALLS
from gpu import on_gpu  # noqa: F401

import jitney as jt
