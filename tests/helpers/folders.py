"""Where things are that tests read and hand to child processes."""

from __future__ import annotations

from pathlib import Path

import jitney

HELPERS = Path(__file__).resolve().parent
TESTS = HELPERS.parent
ROOT = Path(jitney.__file__).resolve().parent
