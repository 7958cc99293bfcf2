"""What autograph makes of traced numbers: none of them are compiled in where it cannot."""

import pytest


@pytest.fixture(autouse=True)
def _numbers_are_traced(traced_numbers: None) -> None: ...
